//! Samples, repeats, annotations, times, checkpoints and metadata, by the specification and as in reli.

use super::build::{Trace, numbers};
use super::{read, samples};

const F: &str = "f /f.php:3";
const G: &str = "f /f.php:3;g /f.php:5";

#[test]
fn a_sample_of_an_undefined_stack_is_an_error() {
    for (trace, name) in [
        (Trace::compact().compact_sample(7), "COMPACT_SAMPLE"),
        (Trace::compact().sample(&[7]), "SAMPLE"),
        (Trace::compact().pid_sample(&[7, 1]), "PID_SAMPLE"),
    ] {
        let message = format!("invalid {name}: undefined stack 7");
        assert_eq!(read(&trace.0).failure().0, message);
    }
}

#[test]
fn a_sample_of_a_segment_without_timestamps_has_no_time() {
    let trace = Trace::compact().sample(&[0]).sample(&[0, 10]).pid_sample(&[1, 7, 10]);
    assert_eq!(samples(&trace.0), [F, F, &format!("{G} pid 7")]);
}

#[test]
fn a_sample_of_a_segment_with_timestamps_may_lack_its_time() {
    let trace = Trace::timed().sample(&[0]).compact_sample(1).pid_sample(&[0, 7]).sample(&[0, 5]);
    assert_eq!(samples(&trace.0), [F, G, &format!("{F} pid 7"), &format!("{F} +5us @5us")]);
}

#[test]
fn a_sample_that_lacks_its_stack_or_process_is_an_error() {
    for (trace, name) in
        [(Trace::compact().sample(&[]), "SAMPLE"), (Trace::compact().pid_sample(&[0]), "PID_SAMPLE")]
    {
        let reading = read(&trace.0);
        assert!(reading.failure().0.starts_with(&format!("invalid {name}: payload truncated")));
    }
}

#[test]
fn times_add_up_and_may_step_back() {
    let trace = Trace::timed().sample(&[0, 0]).pid_sample(&[0, 7, 30]).sample(&[0, -10]);
    let expected = ["+0us @0us", "pid 7 +30us @30us", "+-10us @20us"].map(|times| format!("{F} {times}"));
    assert_eq!(samples(&trace.0), expected);
}

#[test]
fn a_time_that_overflows_is_unknown_from_there_on() {
    let next = Trace::timed().sample(&[0, 1]);
    let reading = read(&Trace::timed().sample(&[0, i64::MAX]).sample(&[0, 1]).sample(&[0, 2]).then(&next).0);
    let max = i64::MAX;
    let expected =
        [&*format!("+{max}us @{max}us"), "+1us", "+2us", "+1us @1us"].map(|times| format!("{F} {times}"));
    assert_eq!(reading.samples(), expected);
    assert!(reading.error.is_none());
    assert_eq!(reading.warnings(), [format!("timestamp overflow: {max} us + 1 us; later times are unknown")]);
}

#[test]
fn a_repeat_adds_to_the_sample_with_all_that_it_has() {
    let trace = Trace::timed().pid_sample(&[0, 7, 30]).annotation(&[1, 1, 3]).repeat(4).sample(&[0, 5]);
    assert_eq!(samples(&trace.0), [format!("{F} x5 pid 7 +30us @30us {{f=g}}"), format!("{F} +5us @35us")]);
}

#[test]
fn a_repeat_after_a_repeat_adds_more() {
    assert_eq!(samples(&Trace::compact().compact_sample(0).repeat(2).repeat(3).0), [format!("{F} x6")]);
}

#[test]
fn a_repeat_of_none_or_fewer_adds_nothing() {
    for count in [0, -1, i64::MIN] {
        assert_eq!(samples(&Trace::compact().compact_sample(0).repeat(count).0), [F]);
    }
}

#[test]
fn a_huge_repeat_is_one_sample() {
    let trace = Trace::compact().compact_sample(0).repeat(1 << 40).repeat(i64::MAX).repeat(i64::MAX);
    assert_eq!(samples(&trace.0), [format!("{F} x{}", u64::MAX)]);
}

#[test]
fn a_repeat_without_a_sample_is_an_error() {
    let reading = read(&Trace::compact().repeat(1).0);
    let message = "invalid REPEAT_SAMPLE: no sample before it in this segment";
    assert_eq!(reading.failure(), (message, Trace::compact().here()));
}

#[test]
fn definitions_checkpoints_and_metadata_do_not_part_a_sample_from_its_repeat() {
    let trace =
        Trace::compact().compact_sample(0).string(9, b"x").checkpoint(2, 2, 1).metadata(b"k", b"v").repeat(1);
    assert_eq!(samples(&trace.0), [format!("{F} x2")]);
}

#[test]
fn an_annotation_belongs_to_the_sample_before_it() {
    for (sample, text) in [
        (Trace::compact().compact_sample(0), F.to_owned()),
        (Trace::compact().sample(&[0]), F.to_owned()),
        (Trace::compact().pid_sample(&[0, 7]), format!("{F} pid 7")),
    ] {
        let trace = sample.annotation(&[2, 1, 3, 2, 0]).compact_sample(1);
        assert_eq!(samples(&trace.0), [format!("{text} {{f=g,/f.php=}}"), G.to_owned()]);
    }
}

#[test]
fn definitions_checkpoints_and_metadata_do_not_part_a_sample_from_its_annotation() {
    let trace = Trace::compact()
        .compact_sample(0)
        .string(9, b"SELECT 1")
        .checkpoint(2, 2, 1)
        .metadata(b"k", b"v")
        .annotation(&[1, 1, 9]);
    assert_eq!(samples(&trace.0), [format!("{F} {{f=SELECT 1}}")]);
}

#[test]
fn an_annotation_without_a_sample_is_an_error() {
    let message = "invalid SAMPLE_ANNOTATION: no sample before it in this segment";
    assert_eq!(read(&Trace::compact().annotation(&[1, 1, 3]).0).failure().0, message);
}

#[test]
fn an_annotation_after_a_repeat_is_an_error() {
    let reading = read(&Trace::compact().compact_sample(0).repeat(1).annotation(&[1, 1, 3]).0);
    let message = "invalid SAMPLE_ANNOTATION: expected before REPEAT_SAMPLE, found after it";
    assert_eq!(reading.failure().0, message);
    assert_eq!(reading.samples(), [format!("{F} x2")]);
}

#[test]
fn an_annotation_that_cannot_be_used_leaves_the_one_before() {
    let annotated = Trace::compact().compact_sample(0).annotation(&[1, 1, 3]);
    let cases = [
        (annotated.clone().annotation(&[1, 2, 99]), ""),
        (annotated.repeat(1).annotation(&[1, 2, 0]), " x2"),
    ];
    for (trace, count) in cases {
        let reading = read(&trace.0);
        assert!(reading.error.is_some());
        assert_eq!(reading.samples(), [format!("{F}{count} {{f=g}}")]);
    }
}

#[test]
fn a_second_annotation_takes_the_place_of_the_first() {
    let trace = Trace::compact().compact_sample(0).annotation(&[1, 1, 3]).annotation(&[1, 2, 0]);
    assert_eq!(samples(&trace.0), [format!("{F} {{/f.php=}}")]);
}

#[test]
fn the_later_of_two_equal_keys_counts() {
    let trace = Trace::compact().string(9, b"f").compact_sample(0).annotation(&[3, 1, 3, 2, 0, 9, 2]);
    assert_eq!(samples(&trace.0), [format!("{F} {{f=/f.php,/f.php=}}")]);
    // Many keys are distinguished by other code.
    let pairs: Vec<i64> = (20..80).flat_map(|id| [id, 1]).chain([25, 2]).collect();
    let trace = (20..80).fold(Trace::compact(), |trace, id| trace.string(id, id.to_string().as_bytes()));
    let trace = trace.compact_sample(0).annotation(&[&[61], &pairs[..]].concat());
    let expected: Vec<_> =
        (20..80).map(|id| format!("{id}={}", if id == 25 { "/f.php" } else { "f" })).collect();
    assert_eq!(samples(&trace.0), [format!("{F} {{{}}}", expected.join(","))]);
}

#[test]
fn an_annotation_of_no_pairs_is_not_none() {
    let trace = Trace::compact().compact_sample(0).annotation(&[0]).compact_sample(0).annotation(&[-2]);
    assert_eq!(samples(&trace.compact_sample(0).0), [&format!("{F} {{}}"), &format!("{F} {{}}"), F]);
}

#[test]
fn an_annotation_of_undefined_strings_or_too_few_is_an_error() {
    let trace = Trace::compact().compact_sample(0);
    let message = "invalid SAMPLE_ANNOTATION: undefined string 99";
    assert_eq!(read(&trace.clone().annotation(&[1, 1, 99]).0).failure().0, message);
    for fields in [&[2, 1, 3][..], &[i64::MAX, 1, 3]] {
        let reading = read(&trace.clone().annotation(fields).0);
        assert!(reading.failure().0.starts_with("invalid SAMPLE_ANNOTATION: payload truncated"));
    }
}

#[test]
fn a_checkpoint_may_hold_counts_or_largest_ids() {
    for (frames, stacks) in [(2, 2), (1, 1)] {
        assert_eq!(
            samples(&Trace::compact().compact_sample(0).repeat(4).checkpoint(frames, stacks, 5).0).len(),
            1
        );
    }
}

#[test]
fn a_checkpoint_that_differs_is_a_warning() {
    let cases = [
        ([9, 2, 1], "CHECKPOINT mismatch: expected 9 frames, found 2"),
        ([2, 0, 1], "CHECKPOINT mismatch: expected 0 stacks, found 2"),
        ([2, 2, 7], "CHECKPOINT mismatch: expected 7 samples, found 1"),
    ];
    for ([frames, stacks, count], message) in cases {
        let reading =
            read(&Trace::compact().compact_sample(0).checkpoint(frames, stacks, count).compact_sample(1).0);
        assert!(reading.error.is_none());
        assert_eq!(reading.samples(), [F, G]);
        assert_eq!(reading.warnings(), [message]);
    }
    let reading = read(&Trace::compact().event(0x04, &numbers(&[2, 2])).0);
    assert_eq!(reading.warnings(), ["invalid CHECKPOINT: expected three numbers"]);
}

#[test]
fn metadata_keeps_its_place_among_samples() {
    let trace = Trace::compact()
        .metadata(b"a", b"1")
        .compact_sample(0)
        .metadata(b"b", b"2")
        .metadata(b"c", b"3")
        .compact_sample(1)
        .metadata(b"d", b"4");
    let expected = ["segment 10000us", "a = 1", F, "b = 2", "c = 3", G, "d = 4"];
    assert_eq!(read(&trace.0).lines, expected);
}

#[test]
fn a_metadata_value_longer_than_the_payload_is_cut() {
    let trace = Trace::compact().event(0x06, b"\x03pid\x09473").compact_sample(0);
    assert_eq!(read(&trace.0).lines[1..], ["pid = 473", F]);
}

#[test]
fn a_metadata_key_longer_than_the_payload_is_an_error() {
    let reading = read(&Trace::compact().event(0x06, b"\x09pid").0);
    assert!(reading.failure().0.starts_with("invalid METADATA: payload truncated"));
}

#[test]
fn all_samples_before_an_error_are_given_out() {
    let reading = read(&Trace::compact().compact_sample(0).compact_sample(1).repeat(3).compact_sample(9).0);
    assert_eq!(reading.samples(), [F, &format!("{G} x4")]);
    assert!(reading.error.is_some());
    assert_eq!(reading.recovery.samples, 5);
}

#[test]
fn a_cut_off_event_is_the_end_of_the_data() {
    let before = Trace::timed().sample(&[0, 10]);
    let whole = before.clone().pid_sample(&[1, 300, 70_000]);
    let missing = |length: usize| match length - before.0.len() {
        1 => 1,
        got => whole.0.len() - before.0.len() - got,
    };
    for length in before.0.len() + 1..whole.0.len() {
        let reading = read(&whole.0[..length]);
        assert!(reading.error.is_none());
        assert_eq!(reading.samples(), [format!("{F} +10us @10us")]);
        assert_eq!(
            reading.warnings(),
            [format!("truncated PID_SAMPLE: {} bytes missing at the end", missing(length))]
        );
        assert_eq!(reading.recovery.lost_bytes, (length - before.0.len()) as u64);
    }
}

#[test]
fn a_length_that_reaches_beyond_the_end_over_a_segment_is_an_error() {
    let reading = read(&Trace::compact().compact_sample(0).raw(&[0x7f, 0x7f]).then(&Trace::compact()).0);
    assert_eq!(reading.samples(), [F]);
    assert!(reading.failure().0.contains("another segment starts inside it"), "{:?}", reading.error);
}
