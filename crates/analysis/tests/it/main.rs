//! Views, compared with a naive reading of the same samples.
#![expect(clippy::unwrap_used, reason = "tests fail by panics")]

mod calls;
mod edges;
mod naive;
mod profile;
mod properties;
mod values;
