//! Internal to [Borehole](https://docs.rs/borehole), whose own crates alone depend on it. Its interface may change at any time.
//!
//! A PHP heap as a graph: nodes, the edges between them, and the memory that each represents.
//!
//! The vocabulary (types of nodes and locations, names of links, regions, strengths) is that of reli's memory profiler,
//! so that its users can keep their queries and habits.
#![forbid(unsafe_code)]

pub mod compare;
mod contradiction;
mod doc_graph;
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
mod serialized;
mod sink;
mod totals;
pub mod views;

pub use borehole_text::{Error, ErrorKind};
pub use contradiction::{CONTRADICTION, contradiction};
pub use graph::{
    Child, Graph, GraphBuilder, GraphCounts, GraphStorage, HeapGraph, MemoryTotal, NodeAttribute, Parents,
    Totals, TreeParents, Vocabulary,
};
pub use info::{HeapInfo, References, info};
pub use names::{LocationType, NodeType, Region, Strength};
pub use sink::{AttributeValue, Edge, HeapSink, MemoryLocation, NodeId, StringId, ValueKind};
pub use totals::{TotalsScope, totals};
