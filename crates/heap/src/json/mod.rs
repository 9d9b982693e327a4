//! The JSON of reli's memory profiler: `summary`, totals, and the graph as a tree with references.
//!
//! Source: reli 0.12 `-f json`, as its files in `corpus/php/reli-json` show it.

mod locations;
mod read;
mod text;
mod token;
mod write;

pub(crate) use text::{is_number, put_string};

pub use read::read;
pub use write::{JsonLayout, write};

/// The name of the format in messages.
const FORMAT: &str = "heap json";

const NODE_ID: &str = "#node_id";
const REFERENCE: &str = "#reference_node_id";
const TYPE: &str = "#type";
const LOCATIONS: &str = "#locations";
