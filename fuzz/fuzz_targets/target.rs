//! The target of borehole-testkit that the environment names: `BOREHOLE_FUZZ_TARGET=folded cargo +nightly fuzz run target`.

#![no_main]

use std::sync::LazyLock;

use borehole_testkit::fuzzing::Target;
use libfuzzer_sys::fuzz_target;

static TARGET: LazyLock<Target> = LazyLock::new(|| {
    let name = std::env::var("BOREHOLE_FUZZ_TARGET").expect("BOREHOLE_FUZZ_TARGET names the target");
    Target::named(&name)
});

fuzz_target!(|bytes: &[u8]| TARGET.run(bytes));
