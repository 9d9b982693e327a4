//! The numbers of the stream.
//!
//! Source: Austin 3.7.0 and 4.0.0, `src/mojo.h`; austin-python 2.4.0, `austin/format/mojo.py`.

/// The first bytes. The version follows as a number.
pub(super) const MAGIC: &[u8; 3] = b"MOJ";

/// The newest version.
pub(super) const NEWEST_VERSION: i64 = 4;

/// The version from which on frames have columns.
pub(super) const COLUMNS_SINCE: i64 = 2;

/// The version from which on stacks have an interpreter.
pub(super) const INTERPRETERS_SINCE: i64 = 3;

/// The key of the string `<unknown>`, which is not in the stream.
pub(super) const UNKNOWN_STRING: i64 = 1;

/// The first byte of events.
pub(super) mod event {
    pub(crate) const METADATA: u8 = 1;
    pub(crate) const STACK: u8 = 2;
    pub(crate) const FRAME: u8 = 3;
    pub(crate) const INVALID_FRAME: u8 = 4;
    pub(crate) const FRAME_REFERENCE: u8 = 5;
    pub(crate) const KERNEL_FRAME: u8 = 6;
    pub(crate) const GC: u8 = 7;
    pub(crate) const IDLE: u8 = 8;
    pub(crate) const TIME: u8 = 9;
    pub(crate) const MEMORY: u8 = 10;
    pub(crate) const STRING: u8 = 11;
    pub(crate) const STRING_REFERENCE: u8 = 12;
    pub(crate) const REPEATED_STACK: u8 = 13;
    pub(crate) const TASK_STACK: u8 = 14;
    pub(crate) const TASK_WAITER: u8 = 15;
    pub(crate) const RUNNING_TASK: u8 = 16;
}
