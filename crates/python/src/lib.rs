//! Internal to [Borehole](https://docs.rs/borehole), whose own crates alone depend on it. Its interface may change at any time.
//!
//! Reads the stacks of a CPython process from outside.
//!
//! * [`Python::attach`] finds CPython in a process, reads its release, and checks that the structures in memory are those of
//!   that release. If they are not, the error says why.
//! * [`Python::threads`] lists the threads of all interpreters.
//! * [`StackWalker::sample`] returns the current stack of a thread. It usually needs one read call.
//!
//! Everything reads through [`borehole_process::ForeignProcess`] and [`borehole_process::ForeignMemory`], so the same code
//! walks live processes, core files and recorded images. No data read is trusted: no number read determines the size of an
//! allocation, and every chain followed has a limit.

#![forbid(unsafe_code)]

mod attach;
mod chain;
mod codes;
mod containers;
mod coroutines;
mod debug_offsets;
mod error;
mod joined;
mod layout;
mod line_table;
mod locals;
mod location;
mod modules;
mod noted;
mod object_layout;
mod objects;
mod release;
mod runtime;
mod snapshot;
mod spans;
mod status;
mod task_layout;
mod tasks;
mod threads;
mod values;
mod walker;
mod watched;

pub use attach::Python;
pub use error::{Error, ErrorKind};
pub use locals::LocalVariable;
pub use modules::ThreadNames;
pub use release::{PythonBuild, PythonIdentity, PythonVersion};
pub use status::ThreadStatus;
pub use tasks::TaskNames;
pub use threads::{PythonThread, ThreadList};
pub use walker::{
    OpcodeNames, PythonCall, PythonSample, SampleOutcome, SampledTasks, StackWalker, Stillness, WalkOptions,
};
