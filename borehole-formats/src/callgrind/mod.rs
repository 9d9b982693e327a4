//! The `callgrind` format.
