//! Views against a naive reading of the same samples.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod calls;
mod edges;
mod naive;
mod profile;
mod properties;
mod values;
