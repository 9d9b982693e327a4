//! The requirements of the specification, sentence by sentence, on hand-made streams.

use borehole_trc::layout::{FieldKind, FieldType, FrameTag, HEADER_TAG, MAX_DELTA_NS, OPTIONAL};
use borehole_trc::{Content, Definition, Reader, Schema, ValueDef, Writer};
use borehole_trc::{ErrorKind, ReadOptions};

use super::stream::{Stream, read};

const VARINT: u8 = FieldKind::Varint as u8;
const POOLED: u8 = FieldKind::PooledString as u8;

/// A stream with the type 7: `E`, timestamped, one varint `v`.
fn one_type() -> Stream {
    Stream::new().schema(7, "E", 1, &[("v", VARINT)])
}

#[test]
fn a_stream_begins_with_one_header_of_five_bytes_and_may_end_there() {
    assert_eq!(Stream::new().len(), 5);
    assert_eq!(Stream::new().events(), Vec::<String>::new());
    assert_eq!(one_type().event(7, 1, &[5]).events(), [r#"E @1 v={"uint":5}"#]);
}

#[test]
fn a_magic_that_does_not_match_is_refused() {
    for at in 0..4 {
        let mut stream = one_type().event(7, 1, &[5]);
        stream.0[at] ^= 0x20;
        let found = stream.0[..4].escape_ascii().to_string();
        let expected = format!(r#"invalid magic: expected "TRC\x00", found "{found}""#);
        assert_eq!(stream.refused(0), (ErrorKind::Malformed, 0, expected));
    }
}

#[test]
fn a_version_that_is_not_supported_is_refused() {
    for version in (0..=255).filter(|&version| version != 1) {
        let mut stream = one_type().event(7, 1, &[5]);
        stream.0[4] = version;
        let expected = format!("unsupported version: expected 1, found {version}");
        assert_eq!(stream.refused(0), (ErrorKind::Unsupported, 4, expected));
        let (events, error, recovery) = read(&stream.0, ReadOptions::lenient());
        assert!(events.len() == 1 && error.is_none() && !recovery.is_clean(), "{version}");
    }
}

#[test]
fn a_header_in_the_place_of_a_frame_begins_a_batch_in_which_nothing_before_holds() {
    let batch = |stream: Stream, name| {
        let stream = stream.schema(7, name, 1, &[("p", POOLED)]).strings(&[(0, name)]);
        stream.reset(100).event(7, 1, &[0, 0, 0, 0])
    };
    let two = batch(batch(Stream::new(), "A").header(), "B");
    let pooled = |name| format!(r#"{name} @101 p={{"is":"{name}","pstr":0}}"#);
    assert_eq!(two.events(), [pooled("A"), pooled("B")]);
    let empty = batch(Stream::new(), "A").header();
    let at = empty.len();
    let (kind, offset, message) = empty.event(7, 1, &[0; 4]).refused(1);
    assert_eq!((kind, offset), (ErrorKind::Malformed, at + 1), "{message}");
    let unresolved =
        batch(Stream::new(), "A").header().schema(7, "C", 1, &[("p", POOLED)]).event(7, 1, &[0; 4]);
    assert_eq!(unresolved.events()[1], r#"C @1 p={"is":null,"pstr":0}"#);
}

#[test]
fn unknown_tags_stop_the_reading_after_all_earlier_events() {
    let known = |byte: &u8| FrameTag::from_byte(*byte).is_none() && *byte != HEADER_TAG;
    for byte in (0..=255).filter(known) {
        let stream = one_type().event(7, 1, &[5]);
        let at = stream.len();
        let expected = format!("unknown frame tag: expected 0x01 to 0x06, found {byte:#04x}");
        // The following bytes are never read.
        let refused = stream.bytes(&[byte]).event(7, 1, &[5]).refused(1);
        assert_eq!(refused, (ErrorKind::Malformed, at, expected));
    }
}

#[test]
fn frames_may_be_in_any_order() {
    let early = Stream::new().reset(50).strings(&[(3, "x")]).schema(1, "P", 1, &[("p", POOLED)]);
    let late = early.event(1, 2, &[3, 0, 0, 0]).reset(10).schema(0, "Q", 1, &[]).event(0, 0, &[]);
    assert_eq!(late.events(), [r#"P @52 p={"is":"x","pstr":3}"#, "Q @10"]);
}

#[test]
fn a_schema_comes_before_its_events() {
    let refused = Stream::new().event(7, 1, &[5]).schema(7, "E", 1, &[("v", VARINT)]).refused(0);
    let expected = "unknown type id: expected one defined by an earlier schema, found 7";
    assert_eq!(refused, (ErrorKind::Malformed, 6, expected.to_owned()));
}

#[test]
fn an_event_of_an_unknown_schema_is_refused() {
    let stream = one_type().event(7, 1, &[5]);
    let at = stream.len() + 1;
    let (kind, offset, message) = stream.event(0x1234, 1, &[5]).refused(1);
    assert_eq!((kind, offset), (ErrorKind::Malformed, at));
    assert!(message.ends_with("found 4660"), "{message}");
}

#[test]
fn a_schema_has_the_contents_of_its_frame() {
    let fields = [("größe", 0x84), ("", VARINT), ("", 13)];
    let stream = Stream::new().schema(65535, "Ereignis ✓", 0, &fields);
    let mut reader = Reader::new(stream.0.as_slice());
    let header = reader.next_frame().unwrap().unwrap();
    assert!(matches!(header.content, Content::Header { version: 1 }));
    let frame = reader.next_frame().unwrap().unwrap();
    assert_eq!((frame.offset, frame.bytes), (5, &stream.0[5..]));
    let Content::Schema { type_id, schema } = frame.content else { panic!("{frame:?}") };
    assert_eq!((type_id, schema.name(), schema.has_timestamp()), (65535, "Ereignis ✓", false));
    let said: Vec<_> =
        schema.fields().iter().map(|field| (field.name.as_str(), field.field_type.to_byte())).collect();
    assert_eq!(said, fields);
}

#[test]
fn the_identical_schema_may_be_registered_again() {
    let stream = one_type().event(7, 1, &[5]).schema(7, "E", 1, &[("v", VARINT)]).event(7, 1, &[6]);
    assert_eq!(stream.events().len(), 2);
    // Annotations in between make no difference.
    let annotated = one_type().bytes(&[6, 7, 1, 0, 0, 0, 4, 0]).bytes(b"unit").u32(2).bytes(b"ns");
    assert_eq!(annotated.schema(7, "E", 1, &[("v", VARINT)]).event(7, 1, &[6]).events().len(), 1);
}

#[test]
fn a_different_schema_of_a_type_id_is_refused() {
    type Other<'a> = (&'a str, u8, &'a [(&'a str, u8)]);
    let others: [Other<'_>; 6] = [
        ("F", 1, &[("v", VARINT)]),
        ("E", 0, &[("v", VARINT)]),
        ("E", 1, &[("w", VARINT)]),
        ("E", 1, &[("v", 11)]),
        ("E", 1, &[]),
        ("E", 1, &[("v", VARINT), ("v", VARINT)]),
    ];
    for (name, has_timestamp, fields) in others {
        let stream = one_type().event(7, 1, &[5]);
        let at = stream.len() + 1;
        let expected = "conflicting schema: expected the earlier definition of type id 7, found another";
        let refused = stream.schema(7, name, has_timestamp, fields).refused(1);
        assert_eq!(refused, (ErrorKind::Malformed, at, expected.to_owned()));
    }
}

#[test]
fn the_timestamp_is_in_the_head_and_not_among_the_fields() {
    let stream = Stream::new().schema(0, "T", 1, &[]).schema(1, "N", 0, &[]);
    let stream = stream.bytes(&[2, 0, 0, 0x03, 0x02, 0x01]).bytes(&[2, 1, 0]);
    assert_eq!(stream.events(), ["T @66051", "N"]);
    assert_eq!(stream.times(), [Some(0x01_02_03), None]);
}

#[test]
fn the_base_is_zero_at_first_and_moves_on_to_each_event() {
    let stream = one_type().event(7, 10, &[0]).event(7, 0, &[0]).event(7, 0xff_ffff, &[0]);
    assert_eq!(stream.times(), [Some(10), Some(10), Some(16_777_225)]);
}

#[test]
fn an_event_without_a_time_does_not_move_the_base() {
    let stream = one_type().schema(8, "N", 0, &[]).event(7, 10, &[0]).untimed(8, &[]).event(7, 5, &[0]);
    assert_eq!(stream.times(), [Some(10), None, Some(15)]);
}

#[test]
fn a_reset_sets_the_base_forwards_and_backwards() {
    let stream = one_type().event(7, 10, &[0]).reset(u64::MAX - 1).event(7, 1, &[0]);
    let stream = stream.reset(3).reset(4).event(7, 2, &[0]).reset(9);
    assert_eq!(stream.times(), [Some(10), Some(u64::MAX), Some(6)]);
    assert_eq!(Stream::new().reset(1).len(), 5 + 9);
}

#[test]
fn a_time_beyond_64_bits_is_refused() {
    let stream = one_type().reset(u64::MAX - 1);
    let at = stream.len() + 3;
    let (kind, offset, message) = stream.event(7, 2, &[0]).refused(0);
    assert_eq!((kind, offset), (ErrorKind::Malformed, at));
    assert!(message.ends_with("found 18446744073709551614 ns + 2 ns"), "{message}");
}

/// The bytes of a writer after the schema of a type without fields.
fn written(times: &[u64]) -> Vec<u8> {
    let schema = Schema::new("T", []).unwrap();
    let mut writer = Writer::new(Vec::new());
    writer.want_type_id(&schema, 0);
    times.iter().for_each(|&at| writer.write_event(&schema, at, &[]).unwrap());
    let bytes = writer.finish().unwrap();
    let head = Stream::new().schema(0, "T", 1, &[]).0;
    bytes.strip_prefix(head.as_slice()).unwrap().to_vec()
}

#[test]
fn a_writer_resets_before_a_delta_that_does_not_fit_and_before_an_earlier_time() {
    let frames = |stream: Stream| stream.0[5..].to_vec();
    let event = |delta| Stream::new().event(0, delta, &[]);
    assert_eq!(written(&[0xff_ffff]), frames(event(0xff_ffff)));
    assert_eq!(written(&[MAX_DELTA_NS + 1]), frames(Stream::new().reset(0x100_0000).event(0, 0, &[])));
    assert_eq!(written(&[5, 3]), frames(event(5).reset(3).event(0, 0, &[])));
    assert_eq!(written(&[5, 5, 6]), frames(event(5).event(0, 0, &[]).event(0, 1, &[])));
    let far = event(5).reset(u64::MAX).event(0, 0, &[]).reset(u64::MAX - 1).event(0, 0, &[]);
    assert_eq!(written(&[5, u64::MAX, u64::MAX - 1]), frames(far));
}

#[test]
fn a_schema_says_whether_the_writer_packs_a_time() {
    let untimed = Schema::define(Definition { name: "N".into(), ..Definition::default() }).unwrap();
    let mut writer = Writer::new(Vec::new());
    writer.want_type_id(&untimed, 1);
    writer.write_event(&untimed, None, &[]).unwrap();
    let expected = Stream::new().schema(1, "N", 0, &[]).untimed(1, &[]);
    assert_eq!(writer.finish().unwrap(), expected.0);
}

#[test]
fn several_pools_may_define_strings_for_later_events() {
    let stream = Stream::new().schema(1, "P", 1, &[("p", POOLED)]).strings(&[(9, "nine"), (0, "")]);
    let stream = stream.strings(&[]).strings(&[(u32::MAX, "last")]);
    let events = [[9, 0, 0, 0], [0; 4], [255; 4]].iter().fold(stream, |stream, id| stream.event(1, 0, id));
    let line = |id: u32, text: &str| format!(r#"P @0 p={{"is":"{text}","pstr":{id}}}"#);
    assert_eq!(events.events(), [line(9, "nine"), line(0, ""), line(u32::MAX, "last")]);
}

#[test]
fn a_string_that_is_not_defined_yet_is_visibly_unresolved() {
    let stream = Stream::new().schema(1, "P", 1, &[("p", POOLED)]).event(1, 0, &[5, 0, 0, 0]);
    let stream = stream.strings(&[(5, "late")]).event(1, 0, &[5, 0, 0, 0]);
    assert_eq!(stream.events(), [r#"P @0 p={"is":null,"pstr":5}"#, r#"P @0 p={"is":"late","pstr":5}"#]);
}

/// Each type of the specification, an encoded example, and its meaning.
const TYPES: [(u8, &[u8], &str); 12] = [
    (1, &[0xfe, 255, 255, 255, 255, 255, 255, 255], r#"{"i64":-2}"#),
    (2, &[0, 0, 0, 0, 0, 0, 0xf8, 0x3f], r#"{"bits":"3ff8000000000000"}"#),
    (3, &[0], "false"),
    (4, &[3, 0, 0, 0, 0xc3, 0xa4, b'b'], r#""äb""#),
    (5, &[2, 0, 0, 0, 0, 0xff], r#"{"bytes":"00ff"}"#),
    (7, &[1, 2, 0, 0], r#"{"is":null,"pstr":513}"#),
    (8, &[2, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0], r#"{"stack":[1,256]}"#),
    (9, &[0xac, 0x02], r#"{"uint":300}"#),
    (10, &[1, 0, 0, 0, 1, 0, 0, 0, b'k', 0, 0, 0, 0], r#"{"smap":[["k",""]]}"#),
    (11, &[0xff], r#"{"uint":255}"#),
    (12, &[0, 1], r#"{"uint":256}"#),
    (13, &[0, 0, 0, 1], r#"{"uint":16777216}"#),
];

#[test]
fn every_field_type_is_read_as_the_table_says() {
    for (byte, wire, meaning) in TYPES {
        let stream = Stream::new().schema(0, "E", 1, &[("v", byte), ("end", 11)]);
        let events = stream.event(0, 0, &[wire, &[7]].concat()).events();
        assert_eq!(events, [format!(r#"E @0 v={meaning} end={{"uint":7}}"#)]);
    }
}

#[test]
fn an_optional_field_follows_a_presence_byte() {
    for (byte, wire, meaning) in TYPES {
        let stream = Stream::new().schema(0, "E", 1, &[("v", byte | OPTIONAL), ("end", 11)]);
        let present = [&[1], wire, &[7]].concat();
        let events = stream.event(0, 0, &present).event(0, 0, &[0, 7]).events();
        let line = |meaning| format!(r#"E @0 v={meaning} end={{"uint":7}}"#);
        assert_eq!(events, [line(meaning), line("null")]);
    }
}

#[test]
fn a_value_that_is_cut_off_ends_the_data_before_its_event() {
    for (byte, wire, _) in TYPES {
        let stream = Stream::new().schema(0, "E", 1, &[("v", byte)]).event(0, 0, wire);
        for cut in 1..6 + wire.len() {
            let (events, error, recovery) = read(&stream.0[..stream.0.len() - cut], ReadOptions::default());
            assert!(events.is_empty() && error.is_none(), "{byte} {cut}: {error:?}");
            assert_eq!(recovery.lost_bytes, (6 + wire.len() - cut) as u64);
        }
    }
}

#[test]
fn every_other_byte_than_zero_is_true() {
    let stream = Stream::new().schema(0, "E", 0, &[("v", 3)]);
    let stream = (0..=255).fold(stream, |stream, byte| stream.untimed(0, &[byte]));
    let expected: Vec<_> = (0..=255).map(|byte| format!("E v={}", byte != 0)).collect();
    assert_eq!(stream.events(), expected);
}

#[test]
fn a_field_type_that_is_not_recognised_is_refused_with_its_schema() {
    for byte in (0..=255).filter(|&byte| FieldType::from_byte(byte).is_none()) {
        let stream = one_type().event(7, 1, &[5]);
        let at = stream.len() + 1 + 2 + 3 + 1 + 2 + 3 + 1 + 3;
        let refused = stream.schema(8, "B", 1, &[("a", VARINT), ("b", byte)]).refused(1);
        let expected = format!(
            "unsupported field type: expected 0x01 to 0x0f, plus 0x80 if optional, found {byte:#04x}"
        );
        assert_eq!(refused, (ErrorKind::Unsupported, at, expected));
    }
}

#[test]
fn addresses_are_eight_bytes_each_in_their_order() {
    let mut writer = Writer::new(Vec::new());
    let schema = Schema::new("S", [("s", FieldType::required(FieldKind::Stack))]).unwrap();
    writer.want_type_id(&schema, 0);
    writer.write_event(&schema, 0, &[ValueDef::Stack(&[u64::MAX, 1])]).unwrap();
    writer.write_event(&schema, 0, &[ValueDef::Stack(&[])]).unwrap();
    let wire = [&[2, 0, 0, 0][..], &[255; 8], &[1, 0, 0, 0, 0, 0, 0, 0]].concat();
    let expected = Stream::new().schema(0, "S", 1, &[("s", 8)]).event(0, 0, &wire).event(0, 0, &[0; 4]);
    assert_eq!(writer.finish().unwrap(), expected.0);
    assert_eq!(expected.events(), [r#"S @0 s={"stack":[18446744073709551615,1]}"#, r#"S @0 s={"stack":[]}"#]);
}

#[test]
fn a_map_keeps_the_order_of_its_pairs_and_equal_keys() {
    let pairs = [("b", "1"), ("a", ""), ("b", "2")];
    let schema = Schema::new("M", [("m", FieldType::required(FieldKind::StringMap))]).unwrap();
    let mut writer = Writer::new(Vec::new());
    writer.write_event(&schema, 0, &[ValueDef::TextMap(&pairs)]).unwrap();
    let stream = Stream(writer.finish().unwrap());
    assert_eq!(stream.events(), [r#"M @0 m={"smap":[["b","1"],["a",""],["b","2"]]}"#]);
}

#[test]
fn a_varint_has_seven_bits_a_byte_and_ten_bytes_at_most() {
    let max = [[255; 9].as_slice(), &[1]].concat();
    assert_eq!(one_type().event(7, 0, &max).events(), [format!(r#"E @0 v={{"uint":{}}}"#, u64::MAX)]);
    assert_eq!(one_type().event(7, 0, &[0x80, 0x80, 0]).events(), [r#"E @0 v={"uint":0}"#]);
    let stream = one_type();
    let at = stream.len() + 6;
    let refused = stream.event(7, 0, &[[255; 10].as_slice(), &[1]].concat()).refused(0);
    let expected = "invalid varint: expected at most 10 bytes, found more";
    assert_eq!(refused, (ErrorKind::Malformed, at, expected.to_owned()));
}

#[test]
fn names_that_are_not_utf8_are_refused_where_their_length_stands() {
    let mut named = one_type();
    named.0[5 + 1 + 2 + 2] = 0xff;
    let refused =
        (ErrorKind::Malformed, 8, "invalid event name: expected UTF-8, found other bytes".to_owned());
    assert_eq!(named.refused(0), refused);
    let mut field = one_type();
    *field.0.iter_mut().rfind(|byte| **byte == b'v').unwrap() = 0xff;
    let refused =
        (ErrorKind::Malformed, 14, "invalid field name: expected UTF-8, found other bytes".to_owned());
    assert_eq!(field.refused(0), refused);
}

#[test]
fn the_limits_are_those_of_the_numbers_that_count() {
    let long = "n".repeat(65_535);
    let fields: Vec<_> = (0..65_535).map(|_| ("", 11)).collect();
    let stream = Stream::new().schema(0, &long, 0, &[(&long, 11)]).schema(65_535, "", 0, &fields);
    let stream = stream.untimed(0, &[1]).untimed(65_535, &[2; 65_535]);
    let mut reader = Reader::new(stream.0.as_slice());
    let first = reader.next_event().unwrap().unwrap();
    assert_eq!((first.name().len(), first.schema().fields()[0].name.len()), (65_535, 65_535));
    let second = reader.next_event().unwrap().unwrap();
    assert_eq!((second.type_id(), second.len()), (65_535, 65_535));
    assert!(second.values().all(|value| value.as_u64() == Some(2)));
    assert!(reader.next_event().unwrap().is_none() && reader.recovery().is_clean());
}
