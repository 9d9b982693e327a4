//! The formats against the corpus and against programs that we did not write.

#![allow(clippy::unwrap_used, reason = "clippy's own exception for tests does not cover their helpers")]

mod rbt;
