//! The `pprof` format.
