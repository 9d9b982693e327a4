//! What format an input is in, told by its first bytes.
