//! Internal to [Borehole](https://docs.rs/borehole), whose own crates alone depend on it. Its interface may change at any time.
//!
//! Unwinds the native stacks of a stopped thread from outside, and joins them to the stacks of an interpreter.
//!
//! * [`Unwinder::unwind`] follows the C stack of a thread from its registers to its root.
//! * [`join`] finds where the frames of a script belong between native ones: at each call of the interpreter.
//!
//! Everything comes from the memory of the process, the information for unwinding included: a file may have been replaced since
//! it was mapped, or belong to another file system. So the same code unwinds live processes, core files and recorded images.
//! No data read is trusted: no number read determines the size of an allocation beyond a named limit, every loop ends, and a
//! stack that cannot be unwound says why.

#![forbid(unsafe_code)]

mod code;
mod frame_table;
mod join;
mod module;
mod saved;
mod stack_copy;
mod stack_print;
mod unwind;

pub use join::{CallPlace, EntryFunction, Joined, Joining, join};
pub use module::SectionPool;
pub use stack_print::StackPrint;
pub use unwind::{NativeAddress, NativeStack, StackEnd, Unwinder};
