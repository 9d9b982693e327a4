//! The `jsonl` format.
