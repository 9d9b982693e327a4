//! Adding up the results of inputs.

use borehole_model::{Recovery, Warning};

fn warning(lost_bytes: u64) -> Warning {
    Warning::new("odd").at(3_u64).losing(lost_bytes)
}

#[test]
fn warnings_beyond_the_limit_and_their_losses_are_counted() {
    let mut recovery = Recovery::default();
    assert!(recovery.is_clean());
    for _ in 0..Recovery::MAX_WARNINGS + 5 {
        recovery.warn(warning(2));
    }
    assert_eq!((recovery.warnings.len(), recovery.more_warnings), (Recovery::MAX_WARNINGS, 5));
    assert_eq!(recovery.lost_bytes, 2 * (Recovery::MAX_WARNINGS as u64 + 5));
    assert!(!recovery.is_clean());
    let mut merged = Recovery::default();
    for _ in 0..2 {
        merged.merge(recovery.clone());
    }
    assert_eq!((merged.warnings.len(), merged.more_warnings), (Recovery::MAX_WARNINGS, 1010));
    assert_eq!(merged.lost_bytes, 2 * recovery.lost_bytes);
}

#[test]
fn lost_bytes_never_overflow() {
    let mut recovery = Recovery::default();
    recovery.warn(warning(u64::MAX));
    recovery.warn(warning(1));
    assert_eq!(recovery.lost_bytes, u64::MAX);
}

#[test]
fn recoveries_of_several_inputs_add_up() {
    let mut first = Recovery { samples: 5, segments: 1, ..Recovery::default() };
    first.warn(warning(2));
    let mut second =
        Recovery { samples: u64::MAX, segments: 2, stopped: true, more_warnings: 4, ..Recovery::default() };
    second.warn(warning(3));
    first.merge(second);
    let expected = Recovery {
        samples: u64::MAX,
        segments: 3,
        lost_bytes: 5,
        warnings: vec![warning(2), warning(3)],
        more_warnings: 4,
        stopped: true,
        ..Recovery::default()
    };
    assert_eq!(first, expected);
}
