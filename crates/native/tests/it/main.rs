//! Unwinding real programs.

mod backtraces;
mod images;
mod programs;
