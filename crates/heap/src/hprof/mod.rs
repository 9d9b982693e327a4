//! Exports a graph as a Java heap dump, which Eclipse MAT and VisualVM open.
//!
//! Source: OpenJDK 17, `src/hotspot/share/services/heapDumper.cpp`: the records of `JAVA PROFILE 1.0.2`.

mod classes;
mod records;
mod write;

pub use write::write;
