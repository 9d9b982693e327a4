//! The documentation of the format matches the code.

use borehole_formats::rbt::layout::{
    CHECKPOINT_INTERVAL, EventType, FRAME_HAS_OPCODE, FRAME_NATIVE, HAS_TIMESTAMPS, HEADER_BYTES, MAGIC,
    RESERVED_EVENT, VERSION,
};
use borehole_formats::{Limits, rbt::Header};

use borehole_testkit::page_tables;

const PAGE: &str = include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/formats/rbt.md"));

fn rows(head: &str) -> Vec<Vec<&'static str>> {
    page_tables::rows(PAGE, head)
}

#[test]
fn event_types_have_their_numbers_and_names() {
    let said: Vec<_> = rows("| type | name |").iter().map(|row| format!("{} {}", row[0], row[1])).collect();
    let types =
        EventType::ALL.iter().map(|&event_type| format!("{:#04x} {}", event_type as u8, event_type.name()));
    assert_eq!(said, types.collect::<Vec<_>>());
    for (byte, &event_type) in (1..).zip(EventType::ALL) {
        assert_eq!(EventType::from_byte(byte), Some(event_type));
    }
    for byte in (0..=0).chain(12..=255) {
        assert_eq!(EventType::from_byte(byte), None);
    }
}

#[test]
fn the_two_types_without_a_length_are_marked() {
    let is_marked = |row: &Vec<&str>| row[2].starts_with("no length: ");
    let marked: Vec<_> = rows("| type | name |").into_iter().filter(is_marked).map(|row| row[1]).collect();
    assert_eq!(marked, [EventType::CompactSample, EventType::RepeatSample].map(EventType::name));
}

#[test]
fn the_header_has_its_fields_at_their_offsets() {
    let number = |cell: &str| cell.parse::<usize>().unwrap();
    let fields: Vec<_> = rows("| offset | bytes |")
        .iter()
        .map(|row| (number(row[0]), number(row[1]), row[2], row[3]))
        .collect();
    let mut end = 0;
    for (offset, bytes, ..) in &fields {
        assert_eq!(*offset, end);
        end += bytes;
    }
    assert_eq!(end, HEADER_BYTES);
    let header = Header { has_timestamps: true, period_us: 0x0403_0201 }.encode();
    let field = |name: &str| {
        let (offset, bytes, ..) = fields.iter().find(|(_, _, field, _)| *field == name).unwrap();
        &header[*offset..offset + bytes]
    };
    assert_eq!(field("magic"), MAGIC);
    assert_eq!(fields[0].3.as_bytes(), MAGIC);
    assert_eq!(field("version"), [VERSION]);
    assert_eq!(fields[1].3, VERSION.to_string());
    assert_eq!(field("flags"), [HAS_TIMESTAMPS]);
    assert_eq!(field("sampling period"), [1, 2, 3, 4]);
}

#[test]
fn flags_are_the_bits_that_the_page_names() {
    let bit = |text: &str| 1_u64 << text.parse::<u32>().unwrap();
    let frames: Vec<_> = rows("| bit | name |").iter().map(|row| (bit(row[0]), row[1])).collect();
    assert_eq!(frames, [(FRAME_NATIVE, "native"), (FRAME_HAS_OPCODE, "opcode")]);
    let flags = rows("| offset | bytes |")[2][3];
    assert!(flags.starts_with("bit 0: samples carry timestamps") && HAS_TIMESTAMPS == 1, "{flags}");
}

#[test]
fn numbers_in_the_text_are_those_of_the_code() {
    let reserved = format!("`{RESERVED_EVENT:#04x}`, the `R` of the magic, never is a type");
    let interval = format!("every {CHECKPOINT_INTERVAL} samples");
    let limit = format!("longer than {} MiB", Limits::default().payload_bytes >> 20);
    for text in [reserved, interval, limit] {
        assert!(PAGE.contains(&text), "the page lacks: {text}");
    }
}
