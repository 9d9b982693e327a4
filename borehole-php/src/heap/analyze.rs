//! Memory of a process as a graph of its heap.

use borehole_heap::HeapSink;
use borehole_process::Dump;

use crate::attach::{AttachOptions, Php};
use crate::error::{Error, ErrorKind};
use crate::executor::Executor;
use crate::failed::Failure;
use crate::heap::blocks::Blocks;
use crate::heap::walk::{self, Chain, WalkOptions};
use crate::release::Identity;

/// How memory is analysed.
#[derive(Clone, Copy, Default)]
pub struct AnalyzeOptions<'o> {
    /// How PHP is found in it.
    pub attach: AttachOptions<'o>,
    /// The thread whose heap it is to be, where each has one; `None`: the first that runs PHP.
    pub thread: Option<i32>,
    /// The error with which the program ended, when its calls are to be those of then.
    pub failure: Option<Failure<'o>>,
    /// Whether the contents of strings are replaced by their lengths and a hash, which differs from one analysis to the next.
    /// Strings that PHP keeps once for all, as the names and literals of programs, stay.
    pub redact: bool,
}

/// What an analysis came to, beside the graph.
#[derive(Clone, Debug)]
pub struct Analysis {
    /// Which PHP it is.
    pub identity: Identity,
    /// The threads that have a heap of their own; none where there is one heap.
    pub threads: Vec<i32>,
    /// Bytes in use by the allocator's own count; `None` where PHP uses another allocator.
    pub used_bytes: Option<u64>,
    /// Of those, bytes of blocks that something was found to lead to.
    pub reached_bytes: u64,
    /// Why the blocks that were found do not add up to what the allocator counts; `None`: they do, to the byte.
    pub doubt: Option<String>,
    /// Whether a call that failed was looked for and is not on the stack any more: the calls are those of the moment.
    pub is_failure_missing: bool,
    /// How often memory was needed that is not in the dump.
    pub missing: u64,
    /// How often memory contradicted itself.
    pub torn: u64,
    /// Whether the walk was given up, because memory led to more than it can hold.
    pub is_incomplete: bool,
}

/// Walks the heap in `dump` into `sink`.
///
/// # Errors
/// When there is no PHP in the dump, or one that is not understood, or it lacks the thread.
pub fn analyze<S: HeapSink>(
    dump: &Dump,
    options: &AnalyzeOptions<'_>,
    sink: &mut S,
) -> Result<Analysis, Error> {
    let php = Php::attach(dump, &options.attach)?;
    let executors = php.executors(dump)?;
    let executor = choose(&executors, options.thread)?;
    let mut blocks = Blocks::of(dump, &php, executor)?;
    let failed_call = match &options.failure {
        Some(failure) => php.failed_call(dump, executor, failure)?,
        None => None,
    };
    let chain = failed_call.zip(options.failure).map(|(call, failure)| Chain {
        innermost: call.frame,
        depth: u32::try_from(call.depth).unwrap_or(u32::MAX),
        line: failure.line,
    });
    let walk = WalkOptions { chain, redact: options.redact };
    let walked = walk::walk(dump, &php, executor, &mut blocks, &walk, sink);
    Ok(Analysis {
        identity: php.identity().clone(),
        threads: executors.iter().filter_map(|executor| executor.thread).collect(),
        used_bytes: blocks.allocator().map(|_| blocks.sums().bytes()),
        reached_bytes: walked.reached_bytes,
        doubt: blocks.proof().err().map(|error| error.to_string()),
        is_failure_missing: options.failure.is_some() && failed_call.is_none(),
        missing: walked.missing,
        torn: walked.torn,
        is_incomplete: walked.is_stopped,
    })
}

/// The executor of a thread.
fn choose(executors: &[Executor], thread: Option<i32>) -> Result<&Executor, Error> {
    let found = match thread {
        None => executors.first(),
        Some(_) => executors.iter().find(|executor| executor.thread == thread),
    };
    found.ok_or_else(|| {
        let there: Vec<_> = executors
            .iter()
            .filter_map(|executor| executor.thread)
            .map(|thread| thread.to_string())
            .collect();
        let wanted = thread.map_or_else(|| "a thread".to_owned(), |thread| format!("thread {thread}"));
        let found = match there.join(", ") {
            none if none.is_empty() => "a PHP without threads".to_owned(),
            threads => format!("those of {threads}"),
        };
        let text = format!("missing heap: expected that of {wanted}, found {found}");
        Error::new(ErrorKind::Implausible, text)
    })
}
