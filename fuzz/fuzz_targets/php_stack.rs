//! The target `php_stack` of borehole-testkit.

#![no_main]

use borehole_testkit::fuzzing::Target;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| (Target::named("php_stack").run)(bytes));
