//! A PHP heap as a graph: nodes, the edges between them, and the memory that each represents.
//!
//! The vocabulary (types of nodes and locations, names of links, regions, strengths) is that of reli's memory profiler,
//! so that its users can keep their queries and habits.
#![forbid(unsafe_code)]

pub mod compare;
mod error;
pub mod findings;
mod graph;
pub mod heapsnapshot;
pub mod hprof;
mod info;
pub mod json;
mod largest;
pub mod lines;
mod names;
mod number;
pub mod path;
pub mod retention;
pub mod rmem;
mod sink;
mod totals;
pub mod views;

pub use error::{Error, ErrorKind};
pub use graph::{
    Attribute, Builder, Child, Counts, Graph, HeapGraph, Parents, Total, Totals, TreeParents, ValueKind,
    Vocabulary,
};
pub use info::{Info, References, info};
pub use names::{LocationType, NodeType, Region, Strength};
pub use sink::{Edge, HeapSink, Location, NodeId, StringId, Value};
pub use totals::{Scope, totals};
