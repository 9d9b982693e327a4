//! Frames as text formats name them.

pub(crate) mod composed;
pub(crate) mod function_name;
pub(crate) mod location;
pub(crate) mod memo;
pub(crate) mod profiler;
pub(crate) mod texts;
