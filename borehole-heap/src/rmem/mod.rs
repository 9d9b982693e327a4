//! `.rmem` files: reli's container of a heap graph, with indexes of ours.

mod check;
mod index;
mod layout;
mod read;
mod sections;
mod write;

pub use layout::MAGIC;
pub use read::View;
pub use write::write;
