//! The rules of the specification, and reli's behaviour where it leaves something open.

use borehole_formats::{Limits, OnDamage, ReadOptions};

use super::build::{Trace, numbers};
use super::{read, read_with, samples};

const F: &str = "f /f.php:3";
const G: &str = "f /f.php:3;g /f.php:5";

mod headers {
    use super::*;

    #[test]
    fn a_header_gives_flags_and_period() {
        assert_eq!(read(&Trace::default().header(0, 10_000).0).lines, ["segment 10000us"]);
        assert_eq!(read(&Trace::default().header(1, u32::MAX).0).lines, ["segment timed 4294967295us"]);
    }

    #[test]
    fn an_empty_file_holds_nothing_and_is_well() {
        let reading = read(b"");
        assert!(reading.error.is_none() && reading.recovery.is_clean() && reading.lines.is_empty());
    }

    #[test]
    fn one_to_three_bytes_hold_nothing() {
        for bytes in [&b"R"[..], b"REL", b"xyz"] {
            let reading = read(bytes);
            assert!(reading.error.is_none() && reading.lines.is_empty());
            assert_eq!(reading.recovery.lost_bytes, bytes.len() as u64);
        }
    }

    #[test]
    fn a_cut_off_header_is_the_end_of_the_data() {
        for length in 4..16 {
            let reading = read(&Trace::bare().0[..length]);
            let warning = format!("truncated segment header: expected 16 bytes, found {length}");
            assert!(reading.error.is_none());
            assert_eq!(reading.warnings(), [warning]);
        }
    }

    #[test]
    fn another_magic_is_an_error() {
        let message = "invalid magic: expected \"RELI\", found \"RELX\"";
        assert_eq!(read(b"RELX\x01\0\0\0\0\0\0\0\0\0\0\0").failure(), (message, 0));
    }

    #[test]
    fn another_version_is_unsupported() {
        let reading = read(b"RELI\x02\0\0\0\0\0\0\0\0\0\0\0");
        assert_eq!(reading.failure(), ("unsupported version: expected 1, found 2", 0));
        assert!(reading.error.unwrap().is_unsupported());
    }

    #[test]
    fn reserved_bits_and_bytes_are_ignored() {
        let reading = read(b"RELI\x01\xfe\xff\xff\x10\x27\0\0\xff\xff\xff\xff");
        assert!(reading.error.is_none());
        assert_eq!(reading.lines, ["segment 10000us"]);
    }
}

mod segments {
    use super::*;

    #[test]
    fn a_segment_ends_at_its_end_at_a_header_or_with_the_file() {
        let one = Trace::compact().compact_sample(0);
        for first in [one.clone().end(), one.clone()] {
            assert_eq!(samples(&first.then(&one).0), [F, F]);
        }
    }

    #[test]
    fn strings_frames_and_stacks_are_forgotten_at_a_header() {
        let first = Trace::compact().compact_sample(0);
        let cases = [
            (Trace::bare().compact_sample(0), "invalid COMPACT_SAMPLE: undefined stack 0"),
            (Trace::bare().stack(&[0, 1, 0]).compact_sample(0), "invalid COMPACT_SAMPLE: undefined frame 0"),
            (Trace::bare().frame(&[0, 0, 0, 0, 1, 2, 3]), "invalid FRAME_DEF: undefined string 0"),
        ];
        for (second, message) in cases {
            let reading = read(&first.clone().then(&second).0);
            assert_eq!(reading.samples(), [F]);
            assert_eq!(reading.failure().0, message);
        }
    }

    #[test]
    fn the_completed_sample_is_forgotten_at_a_header() {
        let message = "no sample before it in this segment";
        for (event, name) in [
            (Trace::compact().repeat(1), "REPEAT_SAMPLE"),
            (Trace::compact().annotation(&[0]), "SAMPLE_ANNOTATION"),
        ] {
            let reading = read(&Trace::compact().compact_sample(0).then(&event).0);
            assert_eq!(reading.failure().0, format!("invalid {name}: {message}"));
        }
    }

    #[test]
    fn time_starts_anew_at_a_header() {
        let one = Trace::timed().sample(&[0, 10]).sample(&[0, 20]);
        let expected = ["+10us @10us", "+20us @30us"].map(|time| format!("{F} {time}"));
        assert_eq!(samples(&one.clone().then(&one).0), [expected.clone(), expected].concat());
    }

    #[test]
    fn each_header_sets_flags_and_period() {
        let trace = Trace::default().header(1, 5).then(&Trace::default().header(0, 7));
        assert_eq!(read(&trace.0).lines, ["segment timed 5us", "segment 7us"]);
    }

    #[test]
    fn metadata_is_of_its_segment() {
        let trace = Trace::bare().metadata(b"pid", b"7").then(&Trace::bare().metadata(b"host", b""));
        assert_eq!(read(&trace.0).lines, ["segment 10000us", "pid = 7", "segment 10000us", "host = "]);
    }

    #[test]
    fn one_to_three_bytes_after_an_end_are_a_note() {
        for tail in [&[0][..], &[0, 0], &[7, 7, 7]] {
            let reading = read(&Trace::compact().compact_sample(0).end().raw(tail).0);
            assert!(reading.error.is_none());
            assert_eq!(reading.samples(), [F]);
            assert_eq!(reading.recovery.lost_bytes, tail.len() as u64);
        }
    }

    #[test]
    fn other_bytes_after_an_end_are_an_error() {
        let ended = Trace::compact().compact_sample(0).end();
        for tail in [&[0; 4][..], b"\x08\x00\x08\x00", b"RELIC!!!!!!!!!!!"] {
            let reading = read(&ended.clone().raw(tail).0);
            assert_eq!(reading.samples(), [F]);
            assert_eq!(reading.failure().1, ended.here());
        }
    }
}

mod varints {
    use super::*;

    #[test]
    fn ids_take_as_many_bytes_as_they_need() {
        for id in [127, 128, 16_383, 16_384, 2_097_151, 1 << 35, i64::MAX, -1, i64::MIN] {
            let trace = Trace::compact().stack(&[id, 1, 0]).compact_sample(id);
            assert_eq!(samples(&trace.0), [F], "{id}");
        }
    }

    #[test]
    fn negative_numbers_take_ten_bytes() {
        let trace = Trace::compact().frame(&[9, 0, 0, 0, 1, 2, -1]).stack(&[9, 1, 9]).compact_sample(9);
        assert!(trace.0.windows(10).any(|bytes| bytes == b"\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"));
        assert_eq!(samples(&trace.0), ["f /f.php:-1"]);
    }

    #[test]
    fn any_length_is_read_and_bits_above_the_64th_are_dropped() {
        let padded = Trace::compact().raw(b"\x08\x81\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x00");
        assert_eq!(samples(&padded.0), [G]);
        let high = Trace::compact().raw(b"\x08\x81\x80\x80\x80\x80\x80\x80\x80\x80\x7e");
        assert_eq!(samples(&high.0), [G]);
    }
}

mod events {
    use super::*;

    #[test]
    fn unknown_types_are_skipped_by_their_length() {
        let trace = Trace::compact().compact_sample(0);
        let trace =
            [0x00, 0x0c, 0x51, 0x53, 0xff].iter().fold(trace, |trace, &byte| trace.event(byte, b"RELI\x08"));
        assert_eq!(samples(&trace.compact_sample(1).0), [F, G]);
    }

    #[test]
    fn an_unknown_event_does_not_part_a_sample_from_its_annotation() {
        let trace = Trace::compact().compact_sample(0).event(0x7f, b"?").annotation(&[1, 1, 3]);
        assert_eq!(samples(&trace.0), [format!("{F} {{f=g}}")]);
    }

    #[test]
    fn the_first_byte_of_the_magic_is_not_an_event_type() {
        let before = Trace::compact().compact_sample(0);
        let reading = read(&before.clone().event(0x52, b"abc").0);
        let message = "invalid event type 0x52: expected \"RELI\", found \"R\\x03ab\"";
        assert_eq!(reading.samples(), [F]);
        assert_eq!(reading.failure(), (message, before.here()));
    }

    #[test]
    fn a_payload_may_be_as_long_as_the_limit_and_no_longer() {
        let options = ReadOptions {
            limits: Limits { payload_bytes: 300, ..Limits::default() },
            ..ReadOptions::default()
        };
        let trace = |length| Trace::compact().event(0x7f, &vec![0; length]).compact_sample(0);
        assert_eq!(read_with(&trace(300).0, options).samples(), [F]);
        let reading = read_with(&trace(301).0, options);
        assert_eq!(reading.failure().0, "payload too large: expected at most 300 bytes, found 301");
        assert!(reading.error.unwrap().is_limit());
        assert_eq!(Limits::default().payload_bytes, 16_777_216);
    }

    #[test]
    fn a_length_with_its_sign_bit_set_is_none() {
        let trace = Trace::compact().raw(&[0x7f]).raw(&numbers(&[-5])).compact_sample(0);
        assert_eq!(samples(&trace.0), [F]);
    }

    #[test]
    fn surplus_bytes_of_a_payload_are_ignored() {
        let trace = Trace::bare()
            .string(0, b"f")
            .frame(&[0, 0, 0, 0, 0, 0, 3, 9, 9])
            .stack(&[0, 1, 0, 9, 9])
            .sample(&[0, 9, 9])
            .event(0x04, &numbers(&[1, 1, 1, 9]))
            .event(0x06, b"\x01k\x01v??")
            .pid_sample(&[0, 7, 9, 9])
            .annotation(&[1, 0, 0, 9])
            .event(0x05, b"end");
        assert_eq!(samples(&trace.0), ["f\\f::f f:3", "f\\f::f f:3 pid 7 {f=f}"]);
    }
}

mod definitions {
    use super::*;

    /// A sampled frame with these fields after its flags. Strings 10 to 13 are `N`, `C`, `m`, `ZEND_ADD`.
    fn framed(flags: i64, fields: &[i64]) -> Vec<u8> {
        let trace =
            Trace::compact().string(10, b"N").string(11, b"C").string(12, b"m").string(13, b"ZEND_ADD");
        trace.frame(&[&[9, flags], fields].concat()).stack(&[9, 1, 9]).compact_sample(9).0
    }

    #[test]
    fn a_function_is_named_by_the_parts_that_it_has() {
        for (parts, name) in [([10, 11], "N\\C::m"), ([0, 11], "C::m"), ([10, 0], "N\\m"), ([0, 0], "m")] {
            assert_eq!(samples(&framed(0, &[parts[0], parts[1], 12, 2, 3])), [format!("{name} /f.php:3")]);
        }
    }

    #[test]
    fn an_opcode_follows_the_line_if_its_flag_is_set() {
        assert_eq!(samples(&framed(2, &[0, 0, 12, 2, 3, 13])), ["m /f.php:3 [ZEND_ADD]"]);
        assert_eq!(samples(&framed(0, &[0, 0, 12, 2, 3, 13])), ["m /f.php:3"]);
        assert_eq!(samples(&framed(2, &[0, 0, 12, 2, 3])), ["m /f.php:3"]);
    }

    #[test]
    fn a_native_frame_has_symbol_module_and_offset() {
        assert_eq!(samples(&framed(1, &[12, 2, 31])), ["/f.php!m+31"]);
        assert_eq!(samples(&framed(3, &[12, 2, -31])), ["/f.php!m+-31"]);
    }

    #[test]
    fn reserved_flags_of_a_frame_are_ignored() {
        assert_eq!(samples(&framed(0x7c, &[0, 0, 12, 2, 3])), ["m /f.php:3"]);
    }

    #[test]
    fn a_frame_of_an_undefined_string_is_an_error() {
        for fields in [&[99, 0, 12, 2, 3][..], &[0, 99, 12, 2, 3], &[0, 0, 99, 2, 3], &[0, 0, 12, 99, 3]] {
            let message = "invalid FRAME_DEF: undefined string 99";
            assert_eq!(read(&framed(0, fields)).failure().0, message);
        }
        assert!(read(&framed(2, &[0, 0, 12, 2, 3, 99])).error.is_some());
        assert!(read(&framed(1, &[99, 2, 3])).error.is_some());
    }

    #[test]
    fn a_frame_that_lacks_fields_is_an_error() {
        let reading = read(&framed(0, &[0, 0, 12, 2]));
        assert!(
            reading.failure().0.starts_with("invalid FRAME_DEF: payload truncated"),
            "{:?}",
            reading.error
        );
    }

    #[test]
    fn strings_are_bytes() {
        let trace = Trace::compact().string(9, b"\xff\0\n").annotation(&[1, 9, 9]);
        let reading = read(&Trace::compact().compact_sample(0).raw(&trace.0[Trace::compact().0.len()..]).0);
        assert_eq!(reading.samples(), [format!("{F} {{\\xff\\x00\\n=\\xff\\x00\\n}}")]);
    }

    #[test]
    fn a_string_defined_again_does_not_change_frames() {
        let trace = Trace::compact().string(1, b"other").compact_sample(0).frame(&[0, 0, 0, 0, 1, 2, 3]);
        assert_eq!(samples(&trace.compact_sample(0).0), [F, "other /f.php:3"]);
    }

    #[test]
    fn a_frame_defined_again_changes_later_samples_only() {
        let trace = Trace::compact().compact_sample(1).frame(&[0, 0, 0, 0, 3, 2, 8]).compact_sample(1);
        assert_eq!(samples(&trace.0), [G, "g /f.php:8;g /f.php:5"]);
    }

    #[test]
    fn a_stack_defined_again_changes_later_samples_only() {
        let trace = Trace::compact().compact_sample(0).stack(&[0, 2, 1, 0]).compact_sample(0);
        assert_eq!(samples(&trace.0), [F, G]);
    }

    #[test]
    fn a_stack_may_name_frames_that_are_defined_later() {
        let trace = Trace::compact().stack(&[5, 1, 7]).frame(&[7, 0, 0, 0, 1, 2, 9]).compact_sample(5);
        assert_eq!(samples(&trace.0), ["f /f.php:9"]);
    }

    #[test]
    fn a_stack_of_undefined_frames_is_an_error_when_it_is_sampled() {
        let trace = Trace::compact().stack(&[5, 1, 7]);
        assert!(read(&trace.clone().compact_sample(0).0).error.is_none());
        let message = "invalid COMPACT_SAMPLE: undefined frame 7";
        assert_eq!(read(&trace.compact_sample(5).0).failure().0, message);
    }

    #[test]
    fn a_stack_deeper_than_its_payload_is_an_error() {
        let reading = read(&Trace::compact().stack(&[5, 3, 0, 1]).0);
        assert!(reading.failure().0.starts_with("invalid STACK_DEF: payload truncated"));
        // The depth in the file does not decide how much memory is reserved.
        assert!(read(&Trace::compact().stack(&[5, i64::MAX, 0, 1]).0).error.is_some());
    }

    #[test]
    fn a_stack_of_no_frames_is_empty() {
        for depth in [0, -3] {
            assert_eq!(samples(&Trace::compact().stack(&[5, depth]).compact_sample(5).0), [""]);
        }
    }

    #[test]
    fn ids_may_be_sparse_and_in_any_order() {
        let trace = Trace::bare()
            .string(1 << 40, b"f")
            .string(-7, b"")
            .frame(&[5000, 0, -7, -7, 1 << 40, -7, 3])
            .stack(&[i64::MIN, 1, 5000])
            .compact_sample(i64::MIN);
        assert_eq!(samples(&trace.0), ["f :3"]);
    }

    const TOO_MUCH: &str = "needs more than 4096 bytes of memory for the definitions of a segment";

    #[test]
    fn definitions_beyond_the_limit_are_refused() {
        let limits = Limits { memory_bytes: 4096, ..Limits::default() };
        let options = ReadOptions { limits, ..ReadOptions::default() };
        let trace = (0..50).fold(Trace::bare(), |trace, id| trace.string(id, &[b'x'; 100]));
        for on_damage in [OnDamage::Fail, OnDamage::ReadOn] {
            let reading = read_with(&trace.0, ReadOptions { on_damage, ..options });
            assert_eq!(reading.failure().0, TOO_MUCH);
            let error = reading.error.unwrap();
            assert!(error.is_memory() && error.is_limit());
        }
    }

    #[test]
    fn metadata_beyond_the_limit_is_refused() {
        let limits = Limits { memory_bytes: 4096, ..Limits::default() };
        let options = ReadOptions { limits, ..ReadOptions::default() };
        // Metadata after a sample waits until the sample is complete.
        for begin in [Trace::compact(), Trace::compact().compact_sample(0)] {
            let trace = (0..50).fold(begin, |trace, _| trace.metadata(b"k", &[b'x'; 100]));
            let reading = read_with(&trace.0, options);
            assert_eq!(reading.failure().0, TOO_MUCH);
            assert!(reading.error.unwrap().is_memory());
        }
    }
}
