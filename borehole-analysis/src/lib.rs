//! Views of profiles.
