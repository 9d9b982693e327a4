//! Internal to [Borehole](https://docs.rs/borehole), whose own crates alone depend on it. Its interface may change at any time.
//!
//! Reads the stacks and the heap of a PHP process from outside.
//!
//! * [`Php::attach`] finds PHP in a process, detects its release from the loaded modules, and checks that the structures in
//!   memory are those of that release. If they are not, the error says why.
//! * [`Php::executors`] lists what has a stack: one executor, or one for each thread.
//! * [`StackWalker::sample`] returns the current stack of an executor. It usually needs one read call.
//! * [`analyze`] returns the whole contents of the heap in a memory dump.
//!
//! Everything reads through [`borehole_process::ForeignProcess`] and [`borehole_process::ForeignMemory`], so the same code
//! walks live processes, core files and recorded images. No data read is trusted: no number read determines the size of an
//! allocation, and every chain followed has a limit.

#![forbid(unsafe_code)]

mod attach;
mod chain;
mod error;
mod executor;
mod failed;
mod function;
mod heap;
mod heap_pointer;
mod layout;
mod lookup;
mod modules;
mod name;
mod opcodes;
mod prefix;
mod proof;
mod release;
mod remote;
mod request;
mod snapshot;
mod walker;
mod watch;

pub use attach::{AttachOptions, IsPhp, Php};
pub use error::{Error, ErrorKind};
pub use executor::Executor;
pub use failed::{FailedCall, FatalError};
pub use heap::{Analysis, AnalyzeOptions, analyze};
pub use release::{Identity, PhpRelease, ThreadModel};
pub use request::ServedRequest;
pub use walker::{SampleOutcome, SampledStack, StackWalker, WalkOptions};
