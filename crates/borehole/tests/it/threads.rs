//! Work moves to other threads: a program opens an input on one, and reads or writes on another.

use borehole::Compression;
use std::sync::mpsc;
use std::{io, thread};

use borehole::formats::rbt::{FrameDef, SegmentedWriter};
use borehole::model::{Count, Tables};
use borehole::{Archive, Export, Format, Input, InputOptions, Output, Redact, Source, Target, convert};
use borehole_testkit::corpus;

fn is_send<T: Send>() {}

fn is_send_and_sync<T: Send + Sync>() {}

#[test]
fn what_reads_and_writes_is_send_and_plain_data_is_sync() {
    is_send::<Source>();
    is_send::<Input>();
    is_send::<Archive>();
    is_send::<Output>();
    is_send::<Box<dyn Export + Send>>();
    is_send::<Redact<Count>>();
    is_send::<borehole::SortByTime<Count>>();
    is_send::<SegmentedWriter<'static, Vec<u8>>>();
    is_send::<borehole::formats::rbt::Reader<io::Empty>>();
    is_send::<borehole::trc::Writer<Vec<u8>>>();
    is_send::<borehole::trc::Reader<io::Empty>>();
    is_send::<borehole::formats::tachyon::Writer<Vec<u8>>>();
    is_send_and_sync::<Tables>();
    is_send_and_sync::<Target>();
    is_send_and_sync::<InputOptions>();
    is_send_and_sync::<borehole::Error>();
    is_send_and_sync::<borehole::Outcome>();
}

#[cfg(feature = "heap")]
#[test]
fn heaps_are_send_and_sync() {
    is_send_and_sync::<borehole::heap::HeapFile>();
    is_send_and_sync::<borehole::heap::HeapGraph>();
    is_send_and_sync::<borehole::heap::Opened<'static>>();
    is_send_and_sync::<borehole::heap::Error>();
}

#[test]
fn an_input_opened_here_is_converted_there_with_an_exporter_of_any_format() {
    for &format in Format::ALL.iter().filter(|format| format.writable()) {
        let file = corpus("rbt/annotations_ts.rbt");
        let input = Input::open(Source::path(file).unwrap(), &InputOptions::default()).unwrap();
        let mut output = Vec::new();
        let mut exporter = Target::new(format).exporter(&mut output).unwrap();
        let samples = thread::scope(|scope| {
            let reading = scope.spawn(move || borehole::import_all([input], &mut *exporter).unwrap().samples);
            reading.join().unwrap()
        });
        assert_eq!(samples, 6, "{}", format.name());
        assert!(!output.is_empty(), "{}", format.name());
    }
}

#[test]
fn a_segmented_writer_moves_into_the_thread_that_samples() {
    let (send, files) = mpsc::channel();
    let mut writer = SegmentedWriter::rotating(
        |_| Ok(Vec::new()),
        move |file: Vec<u8>| send.send(file).map_err(io::Error::other),
        10_000,
        1_000_000,
        Compression::None,
    )
    .unwrap();
    let sampler = thread::spawn(move || {
        for time_us in [0, 400_000, 1_200_000] {
            writer.write_trace(&[FrameDef::php("main", "/app/index.php", 1)], time_us).unwrap();
        }
        writer.finish().unwrap();
    });
    sampler.join().unwrap();
    let files: Vec<Vec<u8>> = files.iter().collect();
    assert_eq!(files.len(), 2);
    let inputs = files.into_iter().map(|file| Source::reader("segment", io::Cursor::new(file)));
    let inputs = inputs.map(|source| Input::open(source, &InputOptions::default()).unwrap());
    let outcome = convert(inputs, &Target::new(Format::Folded), io::sink()).unwrap();
    assert_eq!(outcome.recovery.samples, 3);
}
