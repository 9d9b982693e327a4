//! Documents: files whose parts refer to each other, read whole and written piece by piece.

pub(crate) mod chains;
#[cfg(feature = "json")]
pub(crate) mod json;
#[cfg(feature = "json")]
pub(crate) mod json_copy;
#[cfg(feature = "json")]
pub(crate) mod json_stream;
pub(crate) mod numbered;
pub(crate) mod protobuf;
pub(crate) mod protobuf_fields;
pub(crate) mod samples;
pub(crate) mod whole;
