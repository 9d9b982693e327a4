//! Formats against files and programs that were not written for these tests.

mod peer;
mod play;
mod pprof;
mod speedscope;
