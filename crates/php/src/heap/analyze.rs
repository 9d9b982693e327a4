//! Analysis of memory as a graph of its heap.

use borehole_heap::HeapSink;
use borehole_process::Dump;

use crate::attach::{AttachOptions, Php};
use crate::error::{Error, ErrorKind};
use crate::executor::Executor;
use crate::failed::FatalError;
use crate::heap::blocks::HeapBlocks;
use crate::heap::walk::{self, FailedChain, HeapWalkOptions};
use crate::release::Identity;

/// Options of a heap analysis.
#[derive(Clone, Copy, Default)]
pub struct AnalyzeOptions<'o> {
    /// The options for finding PHP in the dump.
    pub attach: AttachOptions<'o>,
    /// The thread whose heap is analyzed, if each thread has one; `None`: the first that runs PHP.
    pub thread: Option<i32>,
    /// The error that ended the program, if its calls at that time are wanted.
    pub failure: Option<FatalError<'o>>,
    /// Whether to replace the contents of strings by their lengths and a hash, which differs between analyses.
    ///
    /// Interned strings, such as the names and literals of programs, stay.
    pub redact: bool,
    /// The memory, in bytes, that the analysis may take, if it was chosen; `None`: half of what is analyzed. Unpacked memory is kept
    /// within it.
    pub memory_goal: Option<usize>,
}

/// The results of an analysis besides the graph.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Analysis {
    /// The identity of PHP.
    pub identity: Identity,
    /// The threads that have their own heap; empty if there is only one heap.
    pub threads: Vec<i32>,
    /// Bytes in use by the allocator's count; `None` if PHP uses another allocator.
    pub used_bytes: Option<u64>,
    /// Bytes in use that are in reached blocks.
    pub reached_bytes: u64,
    /// The reason why the blocks found do not add up to the allocator's count, or why the sizes of what they hold contradict each
    /// other; `None` if all adds up, to the byte.
    pub doubt: Option<String>,
    /// Whether the failed call was searched for and is no longer on the stack; the calls are then the current ones.
    pub is_failure_missing: bool,
    /// The number of times that required memory was missing from the dump.
    pub missing: u64,
    /// The number of times that memory was inconsistent.
    pub torn: u64,
    /// The number of times that required memory was in shared memory that was left out of the dump.
    pub left_out: u64,
    /// Whether the walk was given up, because memory led to more than it can hold.
    pub is_incomplete: bool,
}

/// Analyzes the heap in `dump` and writes its graph to `sink`.
///
/// # Errors
/// If there is no PHP in the dump, it is unsupported, or the thread does not exist.
pub fn analyze<S: HeapSink>(
    dump: &Dump,
    options: &AnalyzeOptions<'_>,
    sink: &mut S,
) -> Result<Analysis, Error> {
    let php = Php::attach(dump, &options.attach)?;
    let executors = php.executors(dump)?;
    let executor = choose(&executors, options.thread)?;
    let mut blocks = HeapBlocks::of(dump, &php, executor)?;
    let failed_call = match &options.failure {
        Some(failure) => php.failed_call(dump, executor, failure)?,
        None => None,
    };
    let chain = failed_call.zip(options.failure).map(|(call, failure)| FailedChain {
        innermost: call.frame,
        depth: u32::try_from(call.depth).unwrap_or(u32::MAX),
        line: failure.line,
    });
    let walk = HeapWalkOptions { chain, redact: options.redact };
    let walked = walk::walk(dump, &php, executor, &mut blocks, &walk, sink);
    Ok(Analysis {
        identity: php.identity().clone(),
        threads: executors.iter().filter_map(|executor| executor.thread).collect(),
        used_bytes: blocks.allocator().map(|_| blocks.sums.bytes()),
        reached_bytes: walked.reached_bytes,
        doubt: walked.contradiction.or_else(|| blocks.proof().err().map(|error| error.to_string())),
        is_failure_missing: options.failure.is_some() && failed_call.is_none(),
        missing: walked.missing,
        torn: walked.torn,
        left_out: walked.left_out,
        is_incomplete: walked.is_stopped,
    })
}

fn choose(executors: &[Executor], thread: Option<i32>) -> Result<&Executor, Error> {
    let found = match thread {
        None => executors.first(),
        Some(_) => executors.iter().find(|executor| executor.thread == thread),
    };
    found.ok_or_else(|| {
        let threads: Vec<_> =
            executors.iter().filter_map(|executor| Some(executor.thread?.to_string())).collect();
        let text = match thread {
            None => "missing heap: no thread runs PHP".to_owned(),
            Some(thread) if threads.is_empty() => {
                format!("missing heap of thread {thread}: this PHP has one heap, without threads")
            }
            Some(thread) => {
                format!("missing heap of thread {thread}: PHP runs in the threads {}", threads.join(", "))
            }
        };
        Error::new(ErrorKind::Implausible, text)
    })
}
