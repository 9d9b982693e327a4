//! The heap of a process that has crashed, from its core file.

use std::time::Instant;

use borehole_php::Php;
use borehole_process::{Core, Dump, Target as _, prefaulted};

use crate::error::Error;
use crate::heap::plan::Plan;
use crate::heap::{HeapOptions, HeapStatistics, Taken, attach_options, copy, record};

/// Copies the memory that a core file holds. Of the options, whether to stop and what to leave out of the heap have no
/// meaning here.
///
/// # Errors
/// When it is not of a PHP that is understood, or does not hold what is needed to tell.
pub fn of_core(core: &Core, options: &HeapOptions) -> Result<Taken, Error> {
    let begun = Instant::now();
    let attach = attach_options(options);
    let image = record(core, &attach)?;
    let spans = core.spans(options.include_binary);
    let bytes = spans.iter().map(|span| span.length).sum();
    let mut buffer = prefaulted(bytes);
    let preparing = begun.elapsed();
    let copied = copy::all(core, &spans, &mut buffer)?;
    let mut dump = Dump::new(image);
    dump.insert_spans(buffer, copied.placed);
    let data = Plan::of_php_data(core.mappings());
    let mut buffer = vec![0; data.bytes];
    let placed = copy::all(core, &data.spans, &mut buffer)?.placed;
    dump.insert_spans(buffer, placed);
    let identity = Php::attach(&dump, &attach)?.identity().clone();
    let statistics = HeapStatistics {
        preparing,
        copying: begun.elapsed() - preparing,
        copied_bytes: bytes as u64 - copied.unreadable_bytes,
        unreadable_bytes: copied.unreadable_bytes,
        attempts: 1,
        ..HeapStatistics::default()
    };
    if let Some(process) = core.threads()?.first() {
        dump.set_fact("pid", process.to_string());
    }
    dump.set_fact("php", identity.to_string());
    dump.set_fact("stopped", "core");
    dump.set_fact("unreadable_bytes", statistics.unreadable_bytes.to_string());
    if !options.created_at.is_empty() {
        dump.set_fact("created_at", options.created_at.as_str());
    }
    Ok(Taken { dump, identity, statistics })
}
