//! Gzip envelopes.
