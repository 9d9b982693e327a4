//! Heap graphs and their files.

mod damage;
mod exports;
mod graphs;
mod json;
mod rmem;
