//! The target `tachyon_jsonl` of borehole-testkit.

#![no_main]

use borehole_testkit::fuzzing::Target;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| (Target::named("tachyon_jsonl").run)(bytes));
