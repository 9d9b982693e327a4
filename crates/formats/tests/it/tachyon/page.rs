//! The documentation of the format matches the code.

use borehole_formats::tachyon::layout::{
    Config, FOOTER_BYTES, HEADER_BYTES, MAGIC, MAX_DEPTH, RUN_BYTES, RecordKind, VERSION,
};
use borehole_formats::tachyon::{ByteOrder, FileHeader, HeaderLayout, JOURNAL_MAGIC};
use borehole_model::Status;

use borehole_testkit::page_tables;

const PAGE: &str = include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/formats/tachyon.md"));

fn rows(head: &str) -> Vec<Vec<&'static str>> {
    page_tables::rows(PAGE, head)
}

/// The offset of a field in one of the layouts according to the page, and its width.
fn place(row: &[&str], layout: HeaderLayout) -> Option<(usize, usize)> {
    let cell = row[if layout == HeaderLayout::New { 1 } else { 2 }].replace('*', "");
    let mut words = cell.split(", ");
    let offset = words.next()?.parse().ok()?;
    let width = words.next().map_or(4, |width| width[1..].parse::<usize>().unwrap() / 8);
    Some((offset, width))
}

/// A header in which all bits of the field are set, and no others.
fn with_field(name: &str, layout: HeaderLayout) -> FileHeader {
    let mut header = FileHeader { layout, ..FileHeader::default() };
    match name {
        "version" => header.version = u32::MAX,
        "Python" => header.python = [u8::MAX; 3],
        "start" => header.start_us = u64::MAX,
        "period" => header.interval_us = u64::MAX,
        "samples" => header.samples = if layout == HeaderLayout::New { u64::MAX } else { u32::MAX.into() },
        "pairs" => header.threads = u32::MAX,
        "strings" => header.strings_offset = u64::MAX,
        "frames" => header.frames_offset = u64::MAX,
        "compression" => header.compression = u32::MAX,
        "configuration" => header.config = Config(u32::MAX),
        name => panic!("a field that the code does not have: {name}"),
    }
    header
}

#[test]
fn both_headers_have_their_fields_where_the_page_says() {
    let names = [
        ("magic", ""),
        ("version, 1", "version"),
        ("version of Python", "Python"),
        ("start", "start"),
        ("period", "period"),
        ("samples", "samples"),
        ("pairs", "pairs"),
        ("strings", "strings"),
        ("frames", "frames"),
        ("compression", "compression"),
        ("configuration", "configuration"),
    ];
    let rows = rows("| field | as released |");
    assert_eq!(rows.len(), names.len());
    for (row, (begins, name)) in rows.iter().zip(names) {
        assert!(row[0].starts_with(begins), "{row:?}");
        for layout in [HeaderLayout::New, HeaderLayout::Old] {
            let Some((offset, width)) = place(row, layout) else {
                assert_eq!((name, layout), ("configuration", HeaderLayout::Old));
                continue;
            };
            if name.is_empty() {
                assert_eq!((offset, width), (0, 4));
                continue;
            }
            let found = with_field(name, layout).encode();
            let nothing = FileHeader { layout, ..FileHeader::default() }.encode();
            let set: Vec<_> = (0..HEADER_BYTES).filter(|&at| found[at] != nothing[at]).collect();
            // The last byte of Python's version is unused.
            let width = if name == "Python" { 3 } else { width };
            assert_eq!(set, (offset..offset + width).collect::<Vec<_>>(), "{name} {layout:?}");
        }
    }
}

#[test]
fn records_have_their_numbers_and_names() {
    let said: Vec<_> = rows("| kind | then |").iter().map(|row| row[0].to_owned()).collect();
    let kinds = RecordKind::ALL.iter().map(|&kind| format!("{} {}", kind as u8, kind.name()));
    assert_eq!(said, kinds.collect::<Vec<_>>());
}

#[test]
fn sections_have_their_lengths() {
    let rows = rows("| from | content |");
    assert_eq!(rows[0][1], format!("header, {HEADER_BYTES} bytes"));
    assert_eq!(rows[1][0], HEADER_BYTES.to_string());
    assert_eq!(rows.last().unwrap()[0], format!("size − {FOOTER_BYTES}"));
}

#[test]
fn numbers_and_names_in_the_text_are_those_of_the_code() {
    let one_line = PAGE.split_whitespace().collect::<Vec<_>>().join(" ");
    let begins = |order: ByteOrder| String::from_utf8(order.bytes_of_u32(MAGIC).to_vec()).unwrap();
    let list = |names: &[&str]| names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ");
    for text in [
        format!("magic `{MAGIC:#x}`"),
        format!("begins `{}` (little-endian) or `{}`", begins(ByteOrder::Little), begins(ByteOrder::Big)),
        format!("its journal: `{}`, the {HEADER_BYTES} bytes", String::from_utf8_lossy(&JOURNAL_MAGIC)),
        format!("Both have version {VERSION},"),
        format!("of at most {MAX_DEPTH}."),
        format!("the innermost {} are kept", MAX_DEPTH - 1),
        format!("runs of at most {} KiB", RUN_BYTES >> 10),
        format!("in bits 0 to 2 ({};", list(&Config::MODES)),
        format!("the features {}.", list(&Config::FEATURES)),
        format!("Status bits, from bit 0: {}.", list(&Status::NAMES)),
    ] {
        assert!(one_line.contains(&text), "the page does not say: {text}");
    }
}
