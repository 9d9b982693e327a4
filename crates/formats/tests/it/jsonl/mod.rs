//! JSON Lines: the round trip of random profiles, damaged lines, and the page that describes the lines.

mod damage;
mod page;
mod plain;
mod plain_event;
mod round_trip;

use borehole_formats::jsonl::{ExportOptions, Exporter, import};
use borehole_formats::{ReadError, ReadOptions};
use borehole_model::{Recovery, Tables, Warning};

use plain::{Call, Recorder, play};

const TABLES: ExportOptions = ExportOptions { flat: false };
const FLAT: ExportOptions = ExportOptions { flat: true };

/// The lines of a profile.
fn export(calls: &[Call], warnings: &[Warning], options: ExportOptions) -> Vec<u8> {
    let mut exporter = Exporter::new(Vec::new(), options);
    play(calls, warnings, &mut exporter);
    exporter.into_inner()
}

/// The calls that a sink gets for lines, and the result of the importer.
fn read(lines: &[u8], options: &ReadOptions) -> (Recorder, Result<Recovery, ReadError>) {
    let mut recorder = Recorder::default();
    let outcome = import(lines, options, &mut Tables::default(), &mut recorder);
    (recorder, outcome)
}

fn read_strictly(lines: &[u8]) -> (Vec<Call>, Recovery) {
    let (recorder, outcome) = read(lines, &ReadOptions::default());
    (recorder.calls, outcome.unwrap())
}
