//! Heap graphs and their files.

#![allow(clippy::unwrap_used, reason = "a panic is how a test fails, in what it calls as well")]

mod compare;
mod damage;
mod exports;
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
