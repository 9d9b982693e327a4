//! The heap of a crashed process, from its core file.

use std::time::Instant;

use borehole_php::{AttachOptions, Php};
use borehole_process::{CoreFile, Dump, ForeignProcess as _, prefaulted};

use crate::error::Error;
use crate::heap::copy;
use crate::heap::plan::CopyPlan;
use crate::heap::windows::{Changed, PackedCopy};
use crate::heap::{CapturedHeap, HeapOptions, HeapStatistics, record, state};

/// Copies the memory in a core file.
///
/// # Errors
/// If the process did not run a supported PHP, or the file lacks the data to find out.
pub fn of_core(core: &CoreFile, attach: &AttachOptions<'_>) -> Result<CapturedHeap, Error> {
    let begun = Instant::now();
    let mut dump = Dump::new(record(core, attach)?);
    let plan = CopyPlan::new(core.spans(false));
    let preparing = begun.elapsed();
    let mut copy = PackedCopy::default();
    let read = copy.read(core, &plan, Changed::Packed, Default::default())?;
    let unreadable_bytes = copy.replace(read);
    let copied_bytes = plan.bytes as u64 - unreadable_bytes;
    copy.into_dump(&mut dump);
    insert_data(core, &mut dump)?;
    let copying = begun.elapsed() - preparing;
    let statistics = HeapStatistics {
        preparing,
        copying,
        copied_bytes,
        unreadable_bytes,
        attempts: 1,
        ..HeapStatistics::default()
    };
    let identity = Php::attach(&dump, attach)?.identity().clone();
    if let Some(process) = core.threads()?.first() {
        dump.set_fact("pid", process.to_string());
    }
    dump.set_fact("stopped", "core");
    Ok(state(dump, &identity, statistics, &HeapOptions::default()))
}

/// Copies the data of PHP's files, which is in these files and not in the core file.
fn insert_data(core: &CoreFile, dump: &mut Dump) -> Result<(), Error> {
    let plan = CopyPlan::of_php_data(core.mappings());
    let mut buffer = prefaulted(plan.bytes);
    let placed = copy::all(core, &plan, &mut buffer)?.placed;
    dump.insert_spans(buffer, placed);
    Ok(())
}
