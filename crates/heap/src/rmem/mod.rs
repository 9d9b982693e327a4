//! `.rmem` files: reli's container for a heap graph, with our indexes.

mod check;
mod index;
mod layout;
mod read;
mod sections;
mod write;

pub use layout::MAGIC;
pub use read::MappedGraph;
pub use write::write;
