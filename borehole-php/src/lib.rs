//! The stacks and the heap of a PHP process, walked from outside.
//!
//! * [`Php::attach`] finds the PHP in a process, tells its release by the modules that are loaded, and proves that the
//!   structures in memory are those of that release, or says why not.
//! * [`Php::executors`] are what has a stack: one, or one for each thread.
//! * [`Walker::sample`] gives the stack that an executor has now. In the common case it costs one read call.
//! * [`analyze`] gives all that the heap in a dump of memory holds.
//!
//! All of it is written against [`borehole_process::Target`] and [`borehole_process::Memory`]: a live process, a core file
//! and a recorded image are walked by the same code. Nothing that is read is trusted; no number read sizes an
//! allocation, and no chain read is followed without an end.

mod attach;
mod chain;
mod error;
mod executor;
mod failed;
mod function;
mod heap;
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
pub use failed::{FailedCall, Failure};
pub use heap::{Analysis, AnalyzeOptions, analyze};
pub use release::{Identity, Release, Threads};
pub use request::Request;
pub use walker::{Outcome, Stack, WalkOptions, Walker};
