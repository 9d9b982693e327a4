//! The `borehole` command.

#[cfg_attr(not(test), expect(dead_code, reason = "the command's dispatch does not call it yet"))]
mod report;

fn main() {}
