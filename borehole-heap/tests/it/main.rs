//! Heap graphs and their files.

mod damage;
mod graphs;
mod json;
mod rmem;
