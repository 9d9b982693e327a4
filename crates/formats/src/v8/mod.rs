//! Profiles of V8, as files and as parts of traces have them.

pub(crate) mod frames;
pub(crate) mod profile;
pub(crate) mod samples;
