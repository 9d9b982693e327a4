//! Shows that the memory of a process bears out what its version promises, before a stack is walked.

use borehole_process::Memory;

use crate::error::{Error, ErrorKind};
use crate::layout::{Layout, fixed};
use crate::release::Release;
use crate::remote::{self, moved, u64_at};

/// How many functions and classes are looked at.
const LOOKED_AT: usize = 4;

/// Its type: a function that is part of PHP. Classes are marked in the same way.
const INTERNAL: u8 = 1;

/// The symbol of the executor's state must be as large as the release made it, or larger.
pub(crate) fn executor_size(found: u64, layout: &Layout, release: Release) -> Result<(), Error> {
    if found == 0 || found >= layout.executor_size as u64 {
        return Ok(());
    }
    let size = layout.executor_size;
    let what = format!(
        "implausible executor_globals: expected at least {size} bytes in PHP {release}, found {found}"
    );
    Err(Error::new(ErrorKind::Implausible, what))
}

/// The executor's state at `globals` must lead to functions and classes that carry the names they are listed under, and
/// its stack must lie within its page.
pub(crate) fn executor(memory: &impl Memory, layout: &Layout, globals: u64) -> Result<(), Error> {
    let mut state = vec![0; layout.executor_before_exception + 8];
    let reading = |error| Error::reading("cannot read PHP's executor", error);
    memory.read(globals, &mut state).map_err(reading)?;
    let at = |offset| u64_at(&state, offset).unwrap_or_default();
    listed(memory, at(layout.executor_function_table), fixed::FUNCTION_NAME)
        .ok_or_else(|| implausible("functions", at(layout.executor_function_table)))?;
    listed(memory, at(layout.executor_class_table), fixed::CLASS_NAME)
        .ok_or_else(|| implausible("classes", at(layout.executor_class_table)))?;
    if at(layout.executor_current) == 0 {
        return Ok(());
    }
    let [top, end, page] = [0, 8, 16].map(|offset| at(layout.executor_stack_top + offset));
    let page_end = memory.read_u64(moved(page, fixed::STACK_PAGE_END)).map_err(reading)?;
    if page < top && top <= end && end == page_end {
        return Ok(());
    }
    Err(implausible("stack", page))
}

fn implausible(what: &str, found: u64) -> Error {
    let text = format!(
        "implausible {what} of PHP's executor at {found:#x}: its structures are not those of its version"
    );
    Error::new(ErrorKind::Implausible, text)
}

/// Some if the first entries of the table at `address` are of PHP itself and have the names that they are listed under.
fn listed(memory: &impl Memory, address: u64, name_offset: usize) -> Option<()> {
    let buckets = remote::buckets(memory, address, LOOKED_AT).ok()?;
    let is_right = |bucket: &remote::Bucket| {
        let mut entry = [0; 24];
        memory.read(bucket.pointer, &mut entry).ok()?;
        let name = remote::string(memory, u64_at(&entry, name_offset)?).ok()?;
        let key = remote::string(memory, bucket.key).ok()?;
        Some(entry[0] == INTERNAL && !key.is_empty() && name.eq_ignore_ascii_case(&key))
    };
    let all = buckets.len() == LOOKED_AT && buckets.iter().all(|bucket| is_right(bucket) == Some(true));
    all.then_some(())
}
