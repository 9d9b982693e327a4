//! The `speedscope` format.
