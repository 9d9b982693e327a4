//! Through the model: there and back again.

use std::io::Cursor;
use std::ops::ControlFlow;

use borehole_formats::tachyon::{ByteOrder, Compression, ExportOptions, Exporter, HeaderLayout, import};
use borehole_formats::{Export as _, ReadOptions};
use borehole_model::{Context, Frame, ProfileSink as _, Sample, Segment, Status, Tables};

use super::{comparable, functions, read_well, real, real_names};

/// A file through the model into another.
fn convert(bytes: &[u8], options: ExportOptions) -> Vec<u8> {
    let mut out = Vec::new();
    let mut exporter = Exporter::new(&mut out, options, || Ok(Cursor::new(Vec::new())));
    let mut tables = Tables::default();
    let recovery = import(bytes, &ReadOptions::default(), &mut tables, &mut exporter).unwrap();
    assert!(recovery.is_clean());
    exporter.finish(&tables).unwrap();
    assert!(exporter.losses().is_empty(), "{}", exporter.losses());
    drop(exporter);
    out
}

#[test]
fn every_file_comes_back_from_the_model_byte_for_byte() {
    for name in real_names() {
        let bytes = real(&name);
        let again = convert(&bytes, ExportOptions::default());
        assert!(comparable(&again) == comparable(&bytes), "{name}");
    }
}

#[test]
fn a_file_is_swapped_recompressed_and_taken_to_the_old_layout_and_back() {
    for name in ["05_threads20_none", "06_threads20_zstd", "37_config_unknown_nostats"] {
        let bytes = real(name);
        let options = ExportOptions {
            compression: Some(if name.ends_with("zstd") { Compression::None } else { Compression::Zstd }),
            byte_order: ByteOrder::Big,
            ..ExportOptions::default()
        };
        let other = convert(&bytes, options);
        assert!(other.starts_with(b"TACH"));
        let compression = Some(if name.ends_with("zstd") { Compression::Zstd } else { Compression::None });
        let back = convert(&other, ExportOptions { compression, ..ExportOptions::default() });
        assert!(comparable(&back) == comparable(&bytes), "{name}");
        let old = convert(&bytes, ExportOptions { layout: HeaderLayout::Old, ..ExportOptions::default() });
        assert_eq!(read_well(&old), read_well(&bytes), "{name}");
    }
}

/// Plays samples of `functions`, the outermost first, into an exporter.
fn export(samples: &[Sample<'_>], depths: &[usize], segment: &Segment) -> (Vec<u8>, String) {
    let mut tables = Tables::default();
    let mut out = Vec::new();
    let mut exporter = Exporter::new(&mut out, ExportOptions::default(), || Ok(Cursor::new(Vec::new())));
    exporter.segment(Context { tables: &tables, segment }).unwrap();
    for (sample, &depth) in samples.iter().zip(depths) {
        let mut stack = None;
        for level in 0..depth {
            let function = tables.intern_string(format!("f{level}").as_bytes()).unwrap();
            let frame = tables.intern_frame(&Frame::named(function)).unwrap();
            stack = Some(tables.intern_stack(stack, frame).unwrap());
        }
        let at = Context { tables: &tables, segment };
        assert_eq!(exporter.sample(at, &Sample { stack, ..*sample }).unwrap(), ControlFlow::Continue(()));
    }
    exporter.finish(&tables).unwrap();
    let losses = exporter.losses().to_string();
    drop(exporter);
    (out, losses)
}

#[test]
fn samples_without_times_follow_each_other_by_the_period() {
    let segment = Segment { period_ns: Some(10_000_000), ..Segment::default() };
    let sample = Sample { count: 3, ..Sample::default() };
    let (bytes, losses) = export(&[sample, sample], &[1, 2], &segment);
    let samples = read_well(&bytes);
    let times: Vec<_> = samples.iter().map(|sample| sample.time_us).collect();
    assert_eq!(times, [10_000, 20_000, 30_000, 40_000, 50_000, 60_000]);
    assert!(samples.iter().all(|sample| (sample.thread, sample.status) == (0, 4)));
    assert_eq!(functions(&samples[5]), ["f1", "f0"]);
    assert_eq!(losses, "");
}

#[test]
fn of_a_stack_that_is_too_deep_the_inner_part_is_kept_upon_a_mark() {
    let sample = Sample { count: 1, status: Some(Status(1)), ..Sample::default() };
    let (bytes, losses) = export(&[sample], &[300], &Segment::default());
    let samples = read_well(&bytes);
    let names = functions(&samples[0]);
    assert_eq!((names.len(), names[0], names[254], names[255]), (256, "f299", "f45", "<truncated>"));
    assert_eq!(losses, "outer frames of stacks deeper than 256 dropped: 1");
}

#[test]
fn a_run_that_is_too_long_is_refused_with_a_word_on_what_to_do() {
    let (tables, segment) = (Tables::default(), Segment::default());
    let mut exporter = Exporter::new(Vec::new(), ExportOptions::default(), || Ok(Cursor::new(Vec::new())));
    let at = Context { tables: &tables, segment: &segment };
    exporter.segment(at).unwrap();
    let error = exporter.sample(at, &Sample { count: 1 << 40, ..Sample::default() }).unwrap_err();
    assert!(error.to_string().contains("rbt and pprof store counts"), "{error}");
}

#[test]
fn a_profile_of_nothing_is_a_file() {
    let mut out = Vec::new();
    let mut exporter = Exporter::new(&mut out, ExportOptions::default(), || Ok(Cursor::new(Vec::new())));
    exporter.finish(&Tables::default()).unwrap();
    drop(exporter);
    assert!(read_well(&out).is_empty());
}
