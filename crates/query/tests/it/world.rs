//! Helpers of the tests: inputs, and queries with short answers.

use std::fs::File;
use std::path::Path;

use borehole::model::{CodePlaces, ProfileSink, Tables};
use borehole::{Format, Input, InputOptions, OnDamage, ReadOptions, SampleKind, Source as Bytes, Target};
use borehole_query::{AddedInput, Error, InputDetails, Lake, LakeValue, SampleChoice};
use borehole_testkit::Scratch;

/// Noon on the first of November 2026.
pub(crate) const NOON_US: i64 = 1_793_534_400_000_000;
pub(crate) const HOUR_US: i64 = 3_600_000_000;

/// A lake in a temporary folder.
pub(crate) fn lake() -> (Scratch, Lake) {
    let scratch = Scratch::new();
    let lake = Lake::open_or_create(scratch.path("lake").to_str().unwrap()).unwrap();
    (scratch, lake)
}

pub(crate) fn source(name: &str, service: &str, bytes: &[u8]) -> InputDetails {
    InputDetails {
        name: name.to_owned(),
        format: "test".to_owned(),
        sha256: borehole_query::sha256(&mut &*bytes).unwrap(),
        service: Some(service.to_owned()),
        began_unix_ns: Some(NOON_US * 1000),
        ..InputDetails::default()
    }
}

/// Reads `bytes` into `sink` as `borehole lake add` does.
pub(crate) fn read(
    name: &str,
    bytes: Vec<u8>,
    tables: &mut Tables,
    sink: &mut dyn ProfileSink,
) -> borehole::Recovery {
    let read = ReadOptions {
        on_damage: OnDamage::ReadOn,
        samples: SampleKind::All,
        code_places: CodePlaces::All,
        ..ReadOptions::default()
    };
    // A single word and a number are not detected as folded stacks.
    let format = bytes.starts_with(b"main ").then_some(Format::Folded);
    let input = Bytes::reader(name, std::io::Cursor::new(bytes));
    Input::open(input, &InputOptions { format, read, ..InputOptions::default() })
        .unwrap()
        .read_into(tables, sink)
        .unwrap()
}

/// Adds an input.
pub(crate) fn add(lake: &Lake, source: InputDetails, bytes: &[u8]) -> Result<AddedInput, Error> {
    let (mut adding, name) = (lake.adding(), source.name.clone());
    let (tables, mut addition) = adding.input(source);
    let recovery = read(&name, bytes.to_vec(), tables, &mut addition);
    addition.commit(tables, &recovery)
}

/// Adds folded stacks.
pub(crate) fn add_folded(lake: &Lake, service: &str, text: &str) -> AddedInput {
    let name = format!("{service}: {text}");
    add(lake, source(&name, service, name.as_bytes()), text.as_bytes()).unwrap()
}

/// The rows of an answer, as texts.
pub(crate) fn rows(lake: &Lake, sql: &str) -> Vec<Vec<String>> {
    let session = lake.session().unwrap();
    let mut answer = session.ask(sql).unwrap();
    let mut all = Vec::new();
    while let Some(rows) = answer.next_rows().unwrap() {
        all.extend(rows.iter().map(|row| row.iter().map(LakeValue::to_text).collect::<Vec<_>>()));
    }
    all
}

/// The only number of an answer.
pub(crate) fn number(lake: &Lake, sql: &str) -> i64 {
    let rows = rows(lake, sql);
    assert_eq!(rows.len(), 1, "{rows:?}");
    if rows[0][0].is_empty() { 0 } else { rows[0][0].parse().unwrap() }
}

/// The contents of a lake, or its values `asked` for, as sorted folded stacks; and the value type.
pub(crate) fn whole(lake: &Lake, asked: Option<&str>) -> (Vec<String>, String) {
    let session = lake.session().unwrap();
    let addend = session.addend(&[&SampleChoice::default()], asked).unwrap();
    let choice = SampleChoice { addend, ..SampleChoice::default() };
    let answer = session.ask(&choice.stacks()).unwrap();
    let mut text = Vec::new();
    let mut exporter = Target::new(Format::Folded).exporter(&mut text).unwrap();
    session.export_sums(answer, &choice.addend, &mut *exporter).unwrap();
    drop(exporter);
    (sorted_lines(&text), choice.addend.value_type().to_string())
}

/// An answer as sorted folded stacks.
pub(crate) fn folded(lake: &Lake, sql: &str) -> Vec<String> {
    let session = lake.session().unwrap();
    let answer = session.ask(sql).unwrap();
    let mut text = Vec::new();
    let mut exporter = Target::new(Format::Folded).exporter(&mut text).unwrap();
    session.export(answer, &mut *exporter).unwrap();
    drop(exporter);
    sorted_lines(&text)
}

pub(crate) fn sorted_lines(text: &[u8]) -> Vec<String> {
    let mut lines: Vec<_> = String::from_utf8_lossy(text).lines().map(str::to_owned).collect();
    lines.sort();
    lines
}

/// The Parquet files of a table.
pub(crate) fn files_of(folder: &Path, table: &str) -> Vec<std::path::PathBuf> {
    let mut files = Vec::new();
    let mut folders = vec![folder.join("lake").join(table)];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).into_iter().flatten() {
            let path = entry.unwrap().path();
            if path.is_dir() { folders.push(path) } else { files.push(path) }
        }
    }
    files.sort();
    files
}

/// Whether a file can be opened.
pub(crate) fn exists(path: &Path) -> bool {
    File::open(path).is_ok()
}
