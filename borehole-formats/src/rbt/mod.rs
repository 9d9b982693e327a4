//! The `rbt` format.
