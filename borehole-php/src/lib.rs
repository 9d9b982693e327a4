//! The stacks and the heap of a PHP process, walked from outside.
