//! Checks that the memory of a process matches its version, before a stack is walked.

use borehole_process::ForeignMemory;

use crate::error::{Error, ErrorKind};
use crate::executor::Executor;
use crate::layout::{Layout, fixed};
use crate::release::PhpRelease;
use crate::remote::{self, moved, u64_at};

/// The number of functions and classes checked.
const LOOKED_AT: usize = 4;

/// Checks that the symbol of the executor's state has at least the size of the release.
pub(crate) fn executor_size(found: u64, layout: &Layout, release: PhpRelease) -> Result<(), Error> {
    if found == 0 || found >= layout.executor_size as u64 {
        return Ok(());
    }
    let size = layout.executor_size;
    let what = format!(
        "implausible executor_globals: expected at least {size} bytes in PHP {release}, found {found}"
    );
    Err(Error::new(ErrorKind::Implausible, what))
}

/// The number of attempts before a running executor counts as implausible; it may be in the middle of a change.
pub(crate) const ATTEMPTS: usize = 16;

/// Checks that the state of `executor` leads to functions and classes whose names match their keys, and that its stack is
/// within its page. Before the first request it leads nowhere, and the compiler's state is checked instead.
pub(crate) fn executor(
    memory: &impl ForeignMemory,
    layout: &Layout,
    executor: &Executor,
) -> Result<(), Error> {
    let mut state = vec![0; layout.executor_before_exception + 8];
    memory.read(executor.globals, &mut state).map_err(reading)?;
    let at = |offset| u64_at(&state, offset).unwrap_or_default();
    let tables = [at(layout.executor_function_table), at(layout.executor_function_table + 8)];
    let current = at(layout.executor_current);
    if let (Some(compiler), 0, [0, 0]) = (executor.compiler, current, tables) {
        let mut tables = [0; 16];
        memory.read(moved(compiler, fixed::COMPILER_FUNCTION_TABLE), &mut tables).map_err(reading)?;
        return listed_tables(memory, [0, 8].map(|offset| u64_at(&tables, offset).unwrap_or_default()));
    }
    listed_tables(memory, tables)?;
    if current == 0 {
        return Ok(());
    }
    let [top, end, page] = [0, 8, 16].map(|offset| at(layout.executor_stack_top + offset));
    let page_end = remote::mapped(memory.read_u64(moved(page, fixed::STACK_PAGE_END))).map_err(reading)?;
    match page_end {
        None => Err(missing("stack", page)),
        Some(page_end) if page < top && top <= end && end == page_end => Ok(()),
        Some(_) => Err(implausible("stack", page)),
    }
}

fn reading(error: borehole_process::Error) -> Error {
    Error::reading("cannot read PHP's executor", error)
}

fn listed_tables(memory: &impl ForeignMemory, [functions, classes]: [u64; 2]) -> Result<(), Error> {
    for (what, table, name) in
        [("functions", functions, fixed::FUNCTION_NAME), ("classes", classes, fixed::CLASS_NAME)]
    {
        let found = remote::mapped(are_listed(memory, table, name)).map_err(reading)?;
        match found {
            None => return Err(missing(what, table)),
            Some(false) => return Err(implausible(what, table)),
            Some(true) => {}
        }
    }
    Ok(())
}

/// Missing data does not indicate the version: a copy may have been cut off.
fn missing(what: &str, found: u64) -> Error {
    let text = format!("missing {what} of PHP's executor: no memory at {found:#x}");
    Error::new(ErrorKind::Implausible, text)
}

fn implausible(what: &str, found: u64) -> Error {
    let text = format!(
        "implausible {what} of PHP's executor at {found:#x}: the structures do not match the PHP version"
    );
    Error::new(ErrorKind::Implausible, text)
}

/// Whether the first entries of the table at `address` are internal and have the names that they are listed under.
fn are_listed(
    memory: &impl ForeignMemory,
    address: u64,
    name_offset: usize,
) -> Result<bool, borehole_process::Error> {
    let buckets = remote::buckets(memory, address, LOOKED_AT)?;
    for bucket in &buckets {
        // Functions and classes have equal marks.
        let mut entry = [0; 24];
        memory.read(bucket.pointer, &mut entry)?;
        let name = remote::string(memory, u64_at(&entry, name_offset).unwrap_or_default())?;
        let key = remote::string(memory, bucket.key)?;
        if entry[0] != fixed::FUNCTION_INTERNAL || key.is_empty() || !name.eq_ignore_ascii_case(&key) {
            return Ok(false);
        }
    }
    Ok(buckets.len() == LOOKED_AT)
}
