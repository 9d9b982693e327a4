//! Statistics in a file, by function.
//!
//! Source: CPython 3.8 to 3.15, `Lib/cProfile.py`, `create_stats`; `Lib/profile.py`; `Lib/pstats.py`.

use super::marshal::{MarshalObject, MarshalReader};
use super::{NAME, SAMPLED};
use crate::{Error, Limits, Position};

/// The name of the file that built-in functions have.
pub(super) const BUILT_IN: &[u8] = b"~";

/// A function.
#[derive(Clone, Copy, Debug)]
pub(super) struct FunctionKey<'a> {
    pub(super) file: &'a [u8],
    /// 0 if it has none.
    pub(super) line: i64,
    pub(super) name: &'a [u8],
}

/// Sums of a function, or of its calls by another one. Times are in nanoseconds.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct CallStats {
    pub(super) calls: i64,
    /// The calls that are not within another call of the function.
    pub(super) primitive_calls: i64,
    pub(super) self_ns: i64,
    pub(super) total_ns: i64,
}

/// A function with its callers.
#[derive(Clone, Debug)]
pub(super) struct FunctionStats<'a> {
    pub(super) function: FunctionKey<'a>,
    pub(super) sums: CallStats,
    pub(super) callers: Vec<(FunctionKey<'a>, CallStats)>,
}

/// All functions of a file.
#[derive(Debug)]
pub(super) struct FileStats<'a> {
    pub(super) functions: Vec<FunctionStats<'a>>,
    /// Whether calls are samples, of which the primitive ones are those in which the function was executing.
    pub(super) is_sampled: bool,
    /// The number of bytes behind the statistics.
    pub(super) rest: usize,
}

impl<'a> FileStats<'a> {
    /// Reads a file.
    ///
    /// # Errors
    /// If it is damaged, holds something else, or takes more memory than allowed.
    pub(super) fn read(bytes: &'a [u8], limits: Limits) -> Result<Self, Error> {
        let mut reader = MarshalReader::new(bytes, limits);
        let object = reader.object()?;
        if !matches!(object, MarshalObject::Dictionary(_)) {
            return Err(invalid("expected a dictionary of functions"));
        }
        let mut stats = Self { functions: Vec::new(), is_sampled: false, rest: reader.rest().len() };
        for [key, sums] in reader.parts(&object).as_chunks().0 {
            match reader.parts(key) {
                [MarshalObject::Text(text)] if *text == SAMPLED.as_bytes() => stats.is_sampled = true,
                _ => stats.functions.push(function_stats(&reader, key, sums)?),
            }
        }
        Ok(stats)
    }
}

fn function_stats<'a>(
    objects: &MarshalReader<'a>,
    key: &MarshalObject<'a>,
    sums: &MarshalObject<'a>,
) -> Result<FunctionStats<'a>, Error> {
    let [primitive, calls, own, total, callers @ MarshalObject::Dictionary(_)] = objects.parts(sums) else {
        return Err(invalid("expected calls, times and callers of a function"));
    };
    let sums = call_stats([calls, primitive, own, total])?;
    let caller = |[key, sums]: &[MarshalObject<'a>; 2]| {
        let sums = match sums {
            // `profile` counts calls only, and so does the sampling profiler.
            MarshalObject::Integer(calls) => CallStats { calls: *calls, ..CallStats::default() },
            _ => {
                let [calls, primitive, own, total] = objects.parts(sums) else {
                    return Err(invalid("expected calls and times of a caller"));
                };
                call_stats([calls, primitive, own, total])?
            }
        };
        Ok((function_key(objects, key)?, sums))
    };
    let callers = objects.parts(callers).as_chunks().0.iter().map(caller).collect::<Result<_, _>>()?;
    Ok(FunctionStats { function: function_key(objects, key)?, sums, callers })
}

fn function_key<'a>(objects: &MarshalReader<'a>, key: &MarshalObject<'a>) -> Result<FunctionKey<'a>, Error> {
    match objects.parts(key) {
        [MarshalObject::Text(file), MarshalObject::Integer(line), MarshalObject::Text(name)] => {
            Ok(FunctionKey { file, line: *line, name })
        }
        _ => Err(invalid("expected file, line and name of a function")),
    }
}

fn call_stats([calls, primitive, own, total]: [&MarshalObject<'_>; 4]) -> Result<CallStats, Error> {
    let count = |object: &MarshalObject<'_>| match object {
        MarshalObject::Integer(count) => Ok(*count),
        _ => Err(invalid("expected a number of calls")),
    };
    let time = |object: &MarshalObject<'_>| match object {
        MarshalObject::Integer(seconds) => Ok(seconds.saturating_mul(1_000_000_000)),
        MarshalObject::Float(seconds) => Ok(nanoseconds(*seconds)),
        _ => Err(invalid("expected a time")),
    };
    Ok(CallStats {
        calls: count(calls)?,
        primitive_calls: count(primitive)?,
        self_ns: time(own)?,
        total_ns: time(total)?,
    })
}

/// Converts seconds. What is too large becomes the largest.
#[expect(clippy::cast_possible_truncation, reason = "what is too large becomes the largest")]
fn nanoseconds(seconds: f64) -> i64 {
    (seconds * 1e9).round() as i64
}

fn invalid(expected: &str) -> Error {
    Error::malformed(NAME, Position::Whole, format!("{expected}, found another object"))
}
