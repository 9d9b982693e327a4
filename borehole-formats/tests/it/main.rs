//! The formats, held against files and parsers that are not ours.

#![allow(clippy::unwrap_used, reason = "in a test a panic is the message")]

mod detect;
#[cfg(feature = "jsonl")]
mod jsonl;
