//! The `flamegraph` format.
