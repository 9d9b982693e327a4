//! The formats, held against files, programs and parsers that are not ours.

#![allow(clippy::unwrap_used, reason = "a panic is how a test fails, in what it calls as well")]

mod detect;
mod jsonl;
mod rbt;
