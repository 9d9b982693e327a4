//! Rotation by time.

use borehole_formats::Compression;
use std::io;

use borehole_formats::rbt::{ExportOptions, Exporter, FrameDef, SegmentedWriter, Timestamps};
use borehole_model::{Context, Frame, ProfileSink as _, Sample, Segment, Tables};
use borehole_wire::envelope::MEMBER_MAGIC;

use super::writer::{Flaky, Full};
use super::{read, recover, samples};

fn frames(name: &str) -> [FrameDef<'_>; 1] {
    [FrameDef::php(name, "/f.php", 3)]
}

fn write(writer: &mut SegmentedWriter<'_, Vec<u8>>, times_us: &[u64]) {
    for &time_us in times_us {
        writer.write_trace(&frames("f"), time_us).unwrap();
    }
}

/// The lines of samples written at these times, with segments of 100 us.
fn lines(times_us: &[u64]) -> Vec<String> {
    let mut writer = SegmentedWriter::single(Vec::new(), 7, 100, Compression::None).unwrap();
    write(&mut writer, times_us);
    read(&writer.finish().unwrap().unwrap()).lines
}

#[test]
fn a_segment_ends_at_the_first_sample_after_its_duration() {
    let f = |delta: u64, time: u64| format!("f /f.php:3 +{delta}us @{time}us");
    let start = || "segment timed 7us".to_owned();
    // The difference of the first sample of a segment counts from the last sample of the previous segment.
    let expected = [start(), f(0, 0), f(99, 99), start(), f(1, 1), f(50, 51), start(), f(400, 400)];
    assert_eq!(lines(&[1000, 1099, 1100, 1150, 1550]), expected);
}

#[test]
fn a_clock_that_steps_back_gives_no_negative_difference() {
    let expected =
        ["segment timed 7us", "f /f.php:3 +0us @0us", "f /f.php:3 +0us @0us", "f /f.php:3 +30us @30us"];
    assert_eq!(lines(&[1000, 970, 1000]), expected);
}

#[test]
fn each_segment_has_its_own_stream_which_is_returned() {
    for compression in [Compression::None, Compression::Gzip] {
        let (mut opened, mut closed) = (Vec::new(), Vec::new());
        let open = |index| {
            opened.push(index);
            Ok(Vec::new())
        };
        let close = |stream: Vec<u8>| {
            closed.push(stream);
            Ok(())
        };
        let mut writer = SegmentedWriter::rotating(open, close, 7, 100, compression).unwrap();
        write(&mut writer, &[0, 50, 100, 350]);
        assert_eq!(writer.finish().unwrap(), None);
        assert_eq!(opened, [0, 1, 2]);
        let counts = closed.iter().map(|stream| {
            assert_eq!(stream.starts_with(&MEMBER_MAGIC), compression == Compression::Gzip);
            samples(stream).len()
        });
        assert_eq!(counts.collect::<Vec<_>>(), [2, 1, 1]);
    }
}

#[test]
fn a_compressed_segment_is_a_member_that_can_be_read_alone() {
    let mut writer = SegmentedWriter::single(Vec::new(), 7, 100, Compression::Gzip).unwrap();
    write(&mut writer, &[0, 50, 100, 350]);
    let bytes = writer.finish().unwrap().unwrap();
    let starts: Vec<_> = memchr::memmem::find_iter(&bytes, &MEMBER_MAGIC).collect();
    assert_eq!(starts.len(), 3);
    let ends = starts.iter().skip(1).copied().chain([bytes.len()]);
    let counts = starts.iter().zip(ends).map(|(&start, end)| samples(&bytes[start..end]).len());
    assert_eq!(counts.collect::<Vec<_>>(), [2, 1, 1]);
    assert_eq!(samples(&bytes).len(), 4);
}

#[test]
fn a_segment_defines_what_it_uses_and_no_more() {
    let mut lengths = Vec::new();
    let close = |stream: Vec<u8>| {
        lengths.push(stream.len());
        Ok(())
    };
    let mut writer = SegmentedWriter::rotating(|_| Ok(Vec::new()), close, 7, 100, Compression::None).unwrap();
    for index in 0..500 {
        writer.write_trace(&frames(&format!("function_{index:03}")), index * 100).unwrap();
    }
    writer.finish().unwrap();
    assert_eq!(lengths.len(), 500);
    // The first difference is shorter.
    assert!(lengths[1..].iter().all(|&length| length == lengths[1]), "{lengths:?}");
}

#[test]
fn processes_and_annotations_are_kept() {
    let mut writer = SegmentedWriter::single(Vec::new(), 7, 100, Compression::None).unwrap();
    writer.write_annotated(&frames("f"), 5, Some(9), &[(b"q", b"1")]).unwrap();
    writer.write_annotated(&frames("g"), 200, None, &[]).unwrap();
    let bytes = writer.finish().unwrap().unwrap();
    assert_eq!(samples(&bytes), ["f /f.php:3 pid 9 +0us @0us {q=1}", "g /f.php:3 +195us @195us"]);
}

#[test]
fn a_checkpoint_comes_every_thousand_samples() {
    let mut writer = SegmentedWriter::single(Vec::new(), 7, u64::MAX, Compression::None).unwrap();
    write(&mut writer, &[0; 2500]);
    let bytes = writer.finish().unwrap().unwrap();
    let checkpoint = |count: i64| super::build::Trace::default().checkpoint(1, 1, count).0;
    let has = |count| memchr::memmem::find(&bytes, &checkpoint(count)).is_some();
    assert_eq!([1000, 2000, 2500, 1500].map(has), [true, true, true, false]);
    assert!(read(&bytes).recovery.is_clean());
}

/// Writes samples at these times to an output that fails once and refuses some. Compares the times of the others with those
/// that are read.
fn times_of_what_is_taken(mut write: impl FnMut(u64) -> io::Result<()>, finish: impl FnOnce() -> Vec<u8>) {
    let all = (0..4000).map(|number| number * 10);
    let taken: Vec<_> = all.filter(|&time_us| write(time_us).is_ok()).map(|us| format!("@{us}us")).collect();
    drop(write);
    let reading = read(&finish());
    let samples = reading.samples();
    let times = samples.iter().map(|line| line.rsplit(' ').next().unwrap().to_owned());
    assert!(taken.len() < 4000 && times.eq(taken), "{:?}", samples.last());
}

#[test]
fn the_time_of_a_sample_that_was_refused_is_in_the_difference_of_the_next() {
    let output = Flaky::new(65_536);
    let writer = SegmentedWriter::single(output, 7, u64::MAX, Compression::None).unwrap();
    let writer = std::cell::RefCell::new(Some(writer));
    times_of_what_is_taken(
        |time_us| {
            let name = format!("function_{time_us}");
            writer.borrow_mut().as_mut().unwrap().write_trace(&frames(&name), time_us)
        },
        || writer.take().unwrap().finish().unwrap().unwrap().written,
    );
}

#[test]
fn refused_samples_keep_later_times_right() {
    let options = ExportOptions { timestamps: Timestamps::Always, ..ExportOptions::default() };
    let (mut tables, segment) = (Tables::default(), Segment::default());
    let exporter = std::cell::RefCell::new(Some(Exporter::new(Flaky::new(65_536), options)));
    let at = Context { tables: &tables, segment: &segment };
    exporter.borrow_mut().as_mut().unwrap().segment(at).unwrap();
    times_of_what_is_taken(
        |time_us| {
            let function = tables.intern_string(format!("function_{time_us}").as_bytes()).unwrap();
            let frame = tables.intern_frame(&Frame::named(function)).unwrap();
            let stack = Some(tables.intern_stack(None, frame).unwrap());
            let time_ns = i64::try_from(time_us * 1000).ok();
            let at = Context { tables: &tables, segment: &segment };
            let sample = Sample { stack, count: 1, time_ns, ..Sample::default() };
            exporter.borrow_mut().as_mut().unwrap().sample(at, &sample).map(drop)
        },
        || exporter.take().unwrap().into_output().unwrap().unwrap().written,
    );
}

#[test]
fn the_errors_of_streams_are_passed_on() {
    let full = |error: &io::Error| error.kind() == io::ErrorKind::StorageFull;
    for room in [0, 10, 200] {
        for compression in [Compression::None, Compression::Gzip] {
            let attempt = || -> io::Result<()> {
                let mut writer = SegmentedWriter::single(Full(room), 7, 100, compression)?;
                for index in 0..1000 {
                    writer.write_trace(&frames(&format!("function_{index}")), index * 10)?;
                }
                writer.finish().map(drop)
            };
            assert!(full(&attempt().unwrap_err()), "{room}");
        }
    }
    let denied = || io::Error::from(io::ErrorKind::PermissionDenied);
    let open = |index| if index < 2 { Ok(Vec::new()) } else { Err(denied()) };
    let mut writer = SegmentedWriter::rotating(open, |_| Ok(()), 7, 100, Compression::None).unwrap();
    write(&mut writer, &[0, 100]);
    assert_eq!(writer.write_trace(&frames("f"), 200).unwrap_err().kind(), io::ErrorKind::PermissionDenied);
    assert!(writer.write_trace(&frames("f"), 300).is_err(), "a writer without a stream writes nothing");
    let mut writer =
        SegmentedWriter::rotating(|_| Ok(Vec::new()), |_| Err(denied()), 7, 100, Compression::None).unwrap();
    write(&mut writer, &[0]);
    assert_eq!(writer.finish().unwrap_err().kind(), io::ErrorKind::PermissionDenied);
}

#[test]
fn a_stream_that_a_segment_has_failed_on_is_not_completed_in_silence() {
    let mut writer = SegmentedWriter::single(Flaky::new(60), 7, 100, Compression::Gzip).unwrap();
    writer.write_trace(&frames("f"), 0).unwrap();
    assert!(writer.write_trace(&frames("f"), 100).is_err());
    assert!(writer.write_trace(&frames("f"), 110).is_err());
    let error = writer.finish().unwrap_err();
    assert_eq!(error.to_string(), "no open segment: the last one failed");
}

#[test]
fn a_writer_that_was_killed_leaves_what_it_had_completed() {
    let mut writer = SegmentedWriter::single(Vec::new(), 7, 100, Compression::Gzip).unwrap();
    write(&mut writer, &[0, 50, 100, 350]);
    let bytes = writer.finish().unwrap().unwrap();
    let third = memchr::memmem::rfind(&bytes, &MEMBER_MAGIC).unwrap();
    for length in third..bytes.len() {
        assert!(recover(&bytes[..length]).samples().len() >= 3, "{length}");
    }
}
