//! The documentation of the format matches the files.

use borehole_process::Dump;

const PAGE: &str = include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/formats/rdump.md"));

fn rows() -> impl Iterator<Item = Vec<&'static str>> {
    let lines = PAGE.lines().filter(|line| line.starts_with('|'));
    lines.map(|line| line.trim_matches('|').split('|').map(str::trim).collect())
}

#[test]
fn the_head_of_a_file_is_that_of_the_page() {
    let mut file = Vec::new();
    Dump::default().write(&mut file).unwrap();
    let magic: Vec<String> = file[..8].iter().map(|byte| format!("{byte:02x}")).collect();
    let said = format!("magic number: `{}`", magic.join(" "));
    assert!(rows().any(|row| row == ["8", &said]), "{said}");
    let version = u32::from_le_bytes(*file[8..].first_chunk().unwrap());
    assert!(rows().any(|row| row == ["4", &format!("version: {version}")]));
    assert!(PAGE.contains(&format!("\nVersion {version}.")) && file[12..16] == [0; 4]);
}

/// A dump has a block of each kind, with the codes of the page, and is no larger than its header claims.
#[test]
fn the_blocks_of_a_file_are_those_of_the_page() {
    let mut file = Vec::new();
    crate::dumps::example().write(&mut file).unwrap();
    let mut codes: Vec<u8> = Vec::new();
    for at in crate::dumps::boundaries(&file).into_iter().filter(|&at| at < file.len()) {
        codes.push(file[at]);
        assert_eq!(file[at + 1..at + 4], [0; 3]);
    }
    codes.sort_unstable();
    codes.dedup();
    let kinds = ["end", "facts", "mappings", "threads", "symbols", "pages", "memory"];
    let said: Vec<u8> = kinds
        .iter()
        .map(|kind| rows().find(|row| row.len() == 3 && row[1] == *kind).unwrap()[0].parse().unwrap())
        .collect();
    assert_eq!(codes, said);
}
