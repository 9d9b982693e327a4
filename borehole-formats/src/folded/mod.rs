//! The `folded` format.
