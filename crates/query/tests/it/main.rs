//! Lakes in use: real files, real folders, the real engine.

#![allow(clippy::unwrap_used, reason = "tests fail by panics, in helper functions too")]

mod adding;
mod amending;
mod asking;
mod costs;
mod journal;
mod keeping;
mod labels;
mod native;
mod racing;
mod roundtrip;
mod upgrading;
mod world;
