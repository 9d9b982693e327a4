//! The `phpspy` format.
