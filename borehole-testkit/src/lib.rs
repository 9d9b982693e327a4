//! The corpus and the reference programs, for tests.
