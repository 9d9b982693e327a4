//! Lakes as programs hold them: real files, real folders, the real engine.

#![allow(clippy::unwrap_used, reason = "a panic is how a test fails, in what it calls as well")]

mod adding;
mod asking;
mod journal;
mod keeping;
mod racing;
mod roundtrip;
mod world;
