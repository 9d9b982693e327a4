//! The `borehole` command.

fn main() {}
