//! Imports a document into the model.

use std::io::BufRead;
use std::marker::PhantomData;

use borehole_model::{ProfileSink, Recovery, Segment, Tables};

use super::NAME;
use crate::documents::json::{self, JsonMemory};
use crate::documents::whole::DocumentDamage;
use crate::v8::profile::{CpuProfile, VALUE_BYTES};
use crate::v8::samples::deliver;
use crate::{Error, Position, ReadError, ReadOptions};

/// Reads a CPU profile of V8. Each sample lasts until the next one, which is its value `wall/nanoseconds`; the last one lasts
/// until the end of the profile. A profile without samples has the counts of its nodes.
///
/// The line of a frame is the one at which its function begins. `(program)`, `(idle)` and `(garbage collector)` are functions
/// below nothing, as V8 has them.
///
/// # Errors
/// If the input is not such a profile or exceeds the limit, or the sink fails. Positions are lines.
///
/// # Examples
///
/// ```
/// use borehole_formats::{ReadOptions, cpuprofile};
/// use borehole_model::{Count, Tables};
///
/// let text = br#"{"nodes":[{"id":1,"callFrame":{"functionName":"f","url":"/f.js","lineNumber":0}}],
///     "startTime":0,"endTime":30,"samples":[1,1],"timeDeltas":[10,10]}"#;
/// let mut count = Count::default();
/// let recovery = cpuprofile::import(&text[..], &ReadOptions::default(), &mut Tables::default(), &mut count)?;
/// assert_eq!(recovery.samples, 2);
/// # Ok::<(), borehole_formats::ReadError>(())
/// ```
pub fn import(
    input: impl BufRead,
    options: &ReadOptions,
    tables: &mut Tables,
    sink: &mut dyn ProfileSink,
) -> Result<Recovery, ReadError> {
    let mut damage = DocumentDamage::new(options);
    let memory = JsonMemory::of_values(options.limits, VALUE_BYTES);
    let read = json::parse(NAME, input, &memory, PhantomData::<CpuProfile>);
    let found = read.and_then(|profile| {
        let missing = || Error::malformed(NAME, Position::Whole, "missing field `nodes`");
        if profile.nodes.is_some() { Ok(profile) } else { Err(missing()) }
    });
    match found {
        Ok(profile) => {
            let base = Segment { format: NAME, ..Segment::default() };
            deliver(&profile, (base, None), &mut damage, tables, sink)?;
        }
        Err(error) => damage.meet(error, 0)?,
    }
    damage.finish(sink)
}
