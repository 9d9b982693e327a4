//! Profiles of many formats.
