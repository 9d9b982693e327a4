//! Imports statistics into the model.

use std::io::BufRead;

use borehole_model::{
    Frame, FrameId, Measure, ProfileSink, Recovery, Segment, TableFull, Tables, ValueType, Warning,
};
use hashbrown::HashMap;

use super::NAME;
use super::read::{BUILT_IN, CallStats, FileStats, FunctionKey, FunctionStats};
use crate::documents::whole::{DocumentDamage, read_whole};
use crate::sums::calls::{CallSums, rest};
use crate::{ReadError, ReadOptions};

/// The value types of counted calls. The last one is the default.
const CALL_TYPES: [(&str, &str); 4] =
    [("ncalls", "count"), ("pcalls", "count"), ("cumtime", "nanoseconds"), ("tottime", "nanoseconds")];

/// The value types of samples.
const SAMPLE_TYPES: [(&str, &str); 3] =
    [("cumulative", "count"), ("cumtime", "nanoseconds"), ("tottime", "nanoseconds")];

/// Reads statistics of functions, as `cProfile` and `profile` write them, or CPython's sampling profiler.
///
/// A function is a stack of itself, and for what is known by caller, of its caller and itself: `tottime`, `cumtime`, `ncalls` and
/// `pcalls` of a leaf are those of `pstats`. Longer paths are not known. If the time in a function is counted for several callers
/// at once, because it is called again by what it called, `cumtime` is not divided. The samples of a sampling profiler are counts.
///
/// # Errors
/// If the input is not such a file or exceeds the limit, or the sink fails.
///
/// # Examples
///
/// ```
/// use borehole_formats::{ReadOptions, pstats};
/// use borehole_model::{Count, Tables};
///
/// let mut bytes = b"{)\x03z\x01~i\0\0\0\0z\x03len)\x05i\x02\0\0\0i\x02\0\0\0".to_vec();
/// bytes.extend(b"g\0\0\0\0\0\0\xf0?g\0\0\0\0\0\0\xf0?{00");
/// let mut count = Count::default();
/// let recovery = pstats::import(&bytes[..], &ReadOptions::default(), &mut Tables::default(), &mut count)?;
/// assert_eq!(recovery.samples, 1);
/// # Ok::<(), borehole_formats::ReadError>(())
/// ```
pub fn import(
    input: impl BufRead,
    options: &ReadOptions,
    tables: &mut Tables,
    sink: &mut dyn ProfileSink,
) -> Result<Recovery, ReadError> {
    let mut damage = DocumentDamage::new(options);
    let bytes = read_whole(NAME, input, &options.limits)?;
    match FileStats::read(&bytes, options.limits) {
        Ok(stats) => deliver(&stats, &mut damage, tables, sink)?,
        Err(error) => damage.meet(error, bytes.len() as u64)?,
    }
    damage.finish(sink)
}

fn deliver(
    stats: &FileStats<'_>,
    damage: &mut DocumentDamage,
    tables: &mut Tables,
    sink: &mut dyn ProfileSink,
) -> Result<(), ReadError> {
    let types = if stats.is_sampled { &SAMPLE_TYPES[..] } else { &CALL_TYPES };
    let segment = Segment {
        format: NAME,
        value_types: types.iter().map(|&(kind, unit)| ValueType::new(kind, unit)).collect(),
        default_measure: stats.is_sampled.then_some(Measure::Count),
        is_uncounted: !stats.is_sampled,
        ..Segment::default()
    };
    let recovery = &mut damage.recovery;
    let mut sums = CallSums::begin(segment, tables, sink, recovery)?;
    let mut frames = KnownFrames::default();
    let (mut callers, mut undivided) = (0_u64, 0_u64);
    for function in &stats.functions {
        if stats.is_sampled {
            callers += u64::from(!function.callers.is_empty());
            sampled(function, &mut frames, &mut sums, recovery)?;
        } else if called(function, &mut frames, &mut sums, recovery)? == Division::None {
            undivided += 1;
        }
    }
    if callers > 0 {
        let message =
            format!("callers of {callers} functions are dropped: they are counts of samples, not calls");
        recovery.note(Warning::new(message));
    }
    if undivided > 0 {
        let message =
            format!("cumtime of {undivided} functions is not divided among callers: they are recursive");
        recovery.note(Warning::new(message));
    }
    if stats.rest > 0 {
        recovery.warn(Warning::new("ignored the bytes after the statistics").losing(stats.rest as u64));
    }
    Ok(())
}

/// Whether the total time of a function is known by caller.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Division {
    ByCaller,
    None,
}

/// Passes the samples of a function.
fn sampled(
    function: &FunctionStats<'_>,
    frames: &mut KnownFrames,
    sums: &mut CallSums<'_>,
    recovery: &mut Recovery,
) -> Result<(), ReadError> {
    let frame = frames.intern(&function.function, sums.tables)?;
    let CallStats { calls, primitive_calls, self_ns, total_ns } = function.sums;
    let count = u64::try_from(primitive_calls).unwrap_or(0);
    sums.add(None, frame, (count, &[calls, total_ns, self_ns]), recovery)
}

/// Passes the calls of a function: a stack for each caller, and one for the rest.
fn called(
    function: &FunctionStats<'_>,
    frames: &mut KnownFrames,
    sums: &mut CallSums<'_>,
    recovery: &mut Recovery,
) -> Result<Division, ReadError> {
    let frame = frames.intern(&function.function, sums.tables)?;
    let callers = function.callers.iter().map(|(caller, _)| frames.intern(caller, sums.tables));
    let callers = callers.collect::<Result<Vec<_>, _>>()?;
    let part = |number: fn(&CallStats) -> i64| -> Vec<i64> {
        function.callers.iter().map(|(_, sums)| number(sums)).collect()
    };
    let mut columns = [
        part(|sums| sums.calls),
        part(|sums| sums.primitive_calls),
        part(|sums| sums.total_ns),
        part(|sums| sums.self_ns),
    ];
    // Its own calls are within those of others.
    for (total, _) in columns[2].iter_mut().zip(&callers).filter(|(_, caller)| **caller == frame) {
        *total = 0;
    }
    let is_timed = columns[2].iter().any(|&total| total != 0);
    // Each number was rounded.
    let tolerance = i64::try_from(callers.len()).unwrap_or(i64::MAX);
    let CallStats { calls, primitive_calls, self_ns, total_ns } = function.sums;
    let whole = [calls, primitive_calls, total_ns, self_ns];
    let mut left = [0; 4];
    for ((left, whole), column) in left.iter_mut().zip(whole).zip(&mut columns) {
        *left = rest(whole, column, tolerance);
    }
    for (index, &caller) in callers.iter().enumerate() {
        let values = [0, 1, 2, 3].map(|column| columns[column][index]);
        sums.add(Some(caller), frame, (1, &values), recovery)?;
    }
    sums.add(None, frame, (1, &left), recovery)?;
    let is_divided = columns[2].iter().any(|&total| total != 0);
    Ok(if is_timed && !is_divided { Division::None } else { Division::ByCaller })
}

/// The frames of functions, by the places of their texts in the file and their lines: callers have the texts of functions.
#[derive(Debug, Default)]
struct KnownFrames(HashMap<(*const u8, i64, *const u8), FrameId>);

impl KnownFrames {
    fn intern(&mut self, key: &FunctionKey<'_>, tables: &mut Tables) -> Result<FrameId, TableFull> {
        let place = (key.file.as_ptr(), key.line, key.name.as_ptr());
        if let Some(&known) = self.0.get(&place) {
            return Ok(known);
        }
        let function = tables.intern_string(key.name)?;
        let is_known = !key.file.is_empty() && key.file != BUILT_IN;
        let file = is_known.then(|| tables.intern_string(key.file)).transpose()?;
        let line = (key.line > 0).then_some(key.line);
        let frame = tables.intern_frame(&Frame { file, line, ..Frame::named(function) })?;
        self.0.insert(place, frame);
        Ok(frame)
    }
}
