//! Lakes in use: real files, real folders, the real engine.

#![allow(clippy::unwrap_used, reason = "tests fail by panics, in helper functions too")]

mod adding;
mod asking;
mod journal;
mod keeping;
mod racing;
mod roundtrip;
mod world;
