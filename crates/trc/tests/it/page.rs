//! The documentation of the format matches the code.

use borehole_trc::FieldKind;
use borehole_trc::Limits;
use borehole_trc::layout::{
    FIRST_DYNAMIC_TYPE_ID, FrameTag, HEADER_BYTES, MAGIC, MAX_DELTA_NS, MAX_ELEMENTS, MAX_NESTING,
    MAX_VARINT_BYTES, OPTIONAL, VERSION,
};

use borehole_testkit::page_tables;

const PAGE: &str = include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/formats/trc.md"));

fn rows(head: &str) -> Vec<Vec<&'static str>> {
    page_tables::rows(PAGE, head)
}

#[test]
fn frames_have_their_tags_and_names() {
    let said: Vec<_> = rows("| tag | name |").iter().map(|row| format!("{} {}", row[0], row[1])).collect();
    let tags = FrameTag::ALL.iter().map(|&tag| format!("{:#04x} {}", tag as u8, tag.name()));
    assert_eq!(said, tags.collect::<Vec<_>>());
}

#[test]
fn field_types_have_their_numbers_names_and_widths() {
    let rows = rows("| type | name | value |");
    let said: Vec<_> = rows.iter().map(|row| format!("{} {}", row[0], row[1])).collect();
    let kinds = FieldKind::ALL.iter().map(|&kind| format!("{} {}", kind as u8, kind.name()));
    assert_eq!(said, kinds.collect::<Vec<_>>());
    for (row, &kind) in rows.iter().zip(FieldKind::ALL) {
        let says = |text| row[2].starts_with(text);
        let fixed = match kind.fixed_bytes() {
            Some(1) => says("1 byte") || says("a byte"),
            Some(2) => says("2 bytes"),
            Some(4) => says("4 bytes") || says("id u32"),
            Some(8) => says("8 bytes"),
            _ => says("length u32") || says("count u32") || says("LEB128"),
        };
        assert!(fixed, "{row:?}");
    }
}

#[test]
fn the_header_has_its_fields_at_their_offsets() {
    let said: Vec<_> = rows("| offset | bytes |").iter().map(|row| (row[0], row[1], row[3])).collect();
    let magic = MAGIC.escape_ascii().to_string().replace("\\x00", "\\0");
    assert_eq!(said, [("0", "4", magic.as_str()), ("4", "1", VERSION.to_string().as_str())]);
    assert_eq!(HEADER_BYTES, 4 + 1);
}

#[test]
fn numbers_in_the_text_are_those_of_the_code() {
    for text in [
        format!("more than {MAX_DELTA_NS} ns later"),
        format!("With `{OPTIONAL:#04x}` added"),
        format!("more than {MAX_VARINT_BYTES} bytes"),
        format!("more than {MAX_ELEMENTS} elements"),
        format!("more than {MAX_NESTING} deep"),
        format!("count from {FIRST_DYNAMIC_TYPE_ID},"),
        format!("a frame of more than {} MiB", Limits::default().frame_bytes >> 20),
    ] {
        assert!(PAGE.contains(&text), "the page does not say: {text}");
    }
}
