//! Heap graphs and their files.

#![allow(clippy::unwrap_used, reason = "tests fail by panics, in helper functions too")]

mod compare;
mod damage;
mod exports;
mod finding_texts;
mod findings;
mod graphs;
mod info;
mod json;
mod lines;
mod path;
mod retention;
mod rmem;
mod views;
mod walk;
