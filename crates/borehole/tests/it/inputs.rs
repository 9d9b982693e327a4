//! Opening sources as inputs, and reading samples from them.

use std::fs;
use std::io::{self, Read, Seek, Write as _};
use std::ops::ControlFlow;
use std::path::Path;

use borehole::model::{Context, Count, Sample, Tables};
use borehole::{
    Advice, Error, Format, Input, InputOptions, Limits, ProfileSink, ReadOptions, Recovery, Source, Target,
    convert, import_all,
};
use borehole_testkit::{Scratch, corpus, corpus_files, read_corpus};
use borehole_wire::envelope::Envelope;
use borehole_wire::envelope::GzipWriter;
use borehole_wire::zstd::ZstdWriter;

fn open(bytes: &[u8]) -> Result<Input, Error> {
    Input::open(Source::reader("bytes", io::Cursor::new(bytes.to_vec())), &InputOptions::default())
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut member = GzipWriter::new(Vec::new());
    member.write_all(bytes).unwrap();
    member.complete().unwrap()
}

fn folded(inputs: impl IntoIterator<Item = Input>) -> Vec<u8> {
    let mut output = Vec::new();
    convert(inputs, &Target::new(Format::Folded), &mut output).unwrap();
    output
}

#[test]
fn content_overrides_the_name() {
    let trace = read_corpus("rbt/tiny_one.rbt");
    let source = Source::reader("profile.pb.gz", io::Cursor::new(trace));
    assert_eq!(Input::open(source, &InputOptions::default()).unwrap().format(), Format::Rbt);
    assert_eq!(open(&read_corpus("pprof/go-cpu.pb.gz")).unwrap().format(), Format::Pprof);
    let texts = corpus_files("phpspy", ".txt");
    // One input is empty, so its format is unknown.
    for file in texts.iter().filter(|file| file.metadata().unwrap().len() > 0) {
        let input = Input::open(Source::path(file).unwrap(), &InputOptions::default()).unwrap();
        assert_eq!(input.format(), Format::Phpspy, "{}", file.display());
    }
}

/// A profile in the layout of samply whose address has no name, and the symbols that samply writes beside it.
const SAMPLY_PAIR: [&str; 2] = [
    r#"{"meta":{"preprocessedProfileVersion":49},"libs":[{"path":"/app/work","debugName":"work","breakpadId":"0AB0"}],
    "threads":[{"tid":"8","stringArray":["0x46"],"samples":{"stack":[0]},"stackTable":{"frame":[0],"prefix":[null]},
    "frameTable":{"func":[0],"address":[70]},"funcTable":{"name":[0],"resource":[0]},"resourceTable":{"lib":[0]}}]}"#,
    r#"{"string_table":["order"],"data":[{"debug_name":"work","debug_id":"0ab-0","code_id":"",
    "symbol_table":[{"rva":64,"symbol":0}],"known_addresses":[[70,0]]}]}"#,
];

#[test]
fn the_symbols_beside_a_profile_are_read_with_it() {
    let [profile, symbols] = SAMPLY_PAIR;
    let read = |path: &Path| {
        let source = Source::path(path).unwrap();
        let Ok(borehole::Unpacked::Source(source)) =
            borehole::Archive::unpack(source, &InputOptions::default())
        else {
            panic!("no archive")
        };
        String::from_utf8(folded([Input::open(source, &InputOptions::default()).unwrap()])).unwrap()
    };
    for (profile_name, bytes, symbols_name) in [
        ("work.json", profile.as_bytes().to_vec(), "work.syms.json"),
        ("work.json.gz", gzip(profile.as_bytes()), "work.json.syms.json"),
        ("work.json.gz", gzip(profile.as_bytes()), "work.syms.json"),
    ] {
        let scratch = Scratch::new();
        let path = scratch.write(profile_name, &bytes);
        assert!(read(&path).contains("0x46"), "{}", read(&path));
        fs::write(scratch.path(symbols_name), symbols).unwrap();
        assert!(read(&path).contains("order") && !read(&path).contains("0x46"), "{}", read(&path));
        // A folder of that name is not taken for it.
        fs::remove_file(scratch.path(symbols_name)).unwrap();
        fs::create_dir(scratch.path(symbols_name)).unwrap();
        assert!(read(&path).contains("0x46"));
    }
    let error = Input::open(Source::reader("work.syms.json", symbols.as_bytes()), &InputOptions::default());
    let message = error.err().unwrap().to_string();
    assert!(message.contains("the symbols of a profile of samply"), "{message}");
    let error = Input::open(Source::reader("work.json.br", &b"\x0b\x02\x80"[..]), &InputOptions::default());
    assert!(error.err().unwrap().to_string().contains("a brotli file"));
}

#[test]
fn a_compressed_empty_file_counts_as_empty() {
    let nothing = gzip(b"");
    for (bytes, is_empty) in [
        (&b""[..], true),
        (&nothing, true),
        (&nothing.repeat(2), true),
        // The missing rest, or later data, may hold something.
        (&nothing[..5], false),
        (&[&nothing[..], &gzip(&read_corpus("rbt/tiny_one.rbt"))].concat(), false),
        (&nothing.repeat(4000), false),
    ] {
        let source = Source::reader("a.rbt", io::Cursor::new(bytes.to_vec()));
        let input = Input::open(source, &InputOptions::default()).unwrap();
        assert_eq!((input.is_empty(), input.format()), (is_empty, Format::Rbt), "{} bytes", bytes.len());
    }
    let recovery = import_all([open(&nothing).unwrap()], &mut Count::default()).unwrap();
    assert_eq!(recovery.notes[0].message, "empty: read as rbt without samples");
}

#[test]
fn the_name_decides_whether_an_empty_input_is_a_profile() {
    let nothing = gzip(b"");
    let open = |name: &str| {
        let bytes = if name.ends_with(".gz") { nothing.clone() } else { Vec::new() };
        Input::open(Source::reader(name, io::Cursor::new(bytes)), &InputOptions::default())
    };
    for (name, format) in [
        ("standard input", Format::Rbt),
        ("a", Format::Rbt),
        ("a.txt", Format::Rbt),
        ("a.rbt", Format::Rbt),
        ("a.rbt.gz", Format::Rbt),
        ("a.phpspy", Format::Phpspy),
        ("a.folded", Format::Folded),
        ("a.collapsed", Format::Folded),
    ] {
        let recovery = import_all([open(name).unwrap()], &mut Count::default()).unwrap();
        let message = format!("empty: read as {} without samples", format.name());
        assert_eq!((recovery.samples, &*recovery.notes[0].message), (0, &*message), "{name}");
    }
    for (name, expected) in [
        ("a.trc", "trc"),
        ("a.pprof", "pprof"),
        ("a.pb.gz", "pprof"),
        ("a.otlp", "otlp"),
        ("a.speedscope.json", "speedscope"),
        ("a.gecko.json", "gecko"),
        ("a.jsonl", "jsonl"),
        ("a.tachyon.jsonl", "tachyon-jsonl"),
        ("a.callgrind", "callgrind"),
        ("a.svg", "flamegraph"),
        ("a.json", "a profile"),
        ("A.JSON.gz", "a profile"),
    ] {
        let error = open(name).err().unwrap_or_else(|| panic!("{name} was opened"));
        assert_eq!(error.to_string(), format!("{name}: expected {expected}, found an empty file"));
        assert_eq!(error.advice(), None, "{name}");
    }
}

#[test]
fn an_empty_input_of_a_given_format_is_reported_as_empty() {
    for (format, expected) in [(Format::Speedscope, "speedscope"), (Format::Tachyon, "tachyon")] {
        let options = InputOptions { format: Some(format), ..InputOptions::default() };
        let input = Input::open(Source::reader("a", io::Cursor::new(Vec::new())), &options).unwrap();
        let error = import_all([input], &mut Count::default()).unwrap_err();
        assert_eq!(error.to_string(), format!("a: expected {expected}, found an empty file"));
    }
}

#[test]
fn unrecognised_inputs_are_shown_decompressed() {
    let Err(Error::Unrecognised { begins, .. }) = open(&gzip(&b"Buy milk\n".repeat(100))) else {
        panic!("the format was recognised");
    };
    assert_eq!(begins, &b"Buy milk\n".repeat(8)[..64]);
    let cut = &gzip(b"Buy milk")[..5];
    assert!(matches!(open(cut), Err(Error::Unrecognised { begins, .. }) if begins == cut));
}

#[test]
fn a_source_of_single_bytes_is_read() {
    struct Trickle(io::Cursor<Vec<u8>>);
    impl Read for Trickle {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            let one = buffer.len().min(1);
            self.0.read(&mut buffer[..one])
        }
    }
    for file in
        ["rbt/gzip_members.rbt.gz", "rbt/unicode.rbt", "rbt/text/two_traces.txt", "pprof/go-cpu.pb.gz"]
    {
        let bytes = read_corpus(file);
        let source = Source::reader(file, Trickle(io::Cursor::new(bytes.clone())));
        let trickled = Input::open(source, &InputOptions::default()).unwrap();
        assert!(folded([trickled]) == folded([open(&bytes).unwrap()]), "{file}");
    }
}

#[test]
fn several_inputs_share_tables_and_finish_once() {
    #[derive(Default)]
    struct Finishes(Count, u32, usize);
    impl ProfileSink for Finishes {
        fn sample(&mut self, at: Context<'_>, sample: &Sample<'_>) -> io::Result<ControlFlow<()>> {
            self.0.sample(at, sample)
        }
        fn finish(&mut self, tables: &Tables) -> io::Result<()> {
            self.1 += 1;
            self.2 = tables.frame_count();
            Ok(())
        }
    }
    let trace = read_corpus("rbt/daemon_worker.rbt");
    let mut sink = Finishes::default();
    let recovery = import_all([open(&trace).unwrap(), open(&trace).unwrap()], &mut sink).unwrap();
    assert_eq!((sink.0.samples, sink.1, sink.2, recovery.segments), (60, 1, 6, 6));
}

#[test]
fn a_full_sink_stops_the_reading_of_all_inputs() {
    struct First(u64);
    impl ProfileSink for First {
        fn sample(&mut self, _: Context<'_>, sample: &Sample<'_>) -> io::Result<ControlFlow<()>> {
            self.0 += sample.count;
            Ok(ControlFlow::Break(()))
        }
    }
    for file in ["rbt/pid_samples.rbt", "rbt/text/two_traces.txt", "pprof/go-cpu.pb.gz"] {
        let bytes = read_corpus(file);
        let mut first = First(0);
        let inputs = [open(&bytes).unwrap(), open(&bytes).unwrap()];
        let recovery = import_all(inputs, &mut first).unwrap();
        assert!(recovery.stopped, "{file}");
        assert_eq!((first.0, recovery.samples), (1, 1), "{file}");
    }
}

#[test]
fn harmless_oddities_leave_an_input_clean_and_damage_does_not() {
    let recovery = |bytes: &[u8]| import_all([open(bytes).unwrap()], &mut Count::default()).unwrap();
    let padded = recovery(&read_corpus("rbt/gzip_trailing_zeros.rbt.gz"));
    assert_eq!((padded.is_clean(), padded.notes.len()), (true, 1));
    let cut = recovery(&read_corpus("rbt/truncated_varint.rbt"));
    assert_eq!((cut.is_clean(), cut.notes.len(), cut.warnings.len()), (false, 0, 1));
}

/// A trace in each format that is read and written, with its name. It has no times, which timelines need.
fn in_every_format() -> Vec<(Format, Vec<u8>)> {
    let trace = read_corpus("rbt/pid_samples.rbt");
    let is_both =
        |format: &&Format| format.readable() && format.writable() && **format != Format::ChromeTrace;
    let write = |&format: &Format| {
        let mut written = Vec::new();
        convert([open(&trace).unwrap()], &Target::new(format), &mut written).unwrap();
        // Without an envelope of its own.
        let mut plain = Vec::new();
        Envelope::new(&written[..]).read_to_end(&mut plain).unwrap();
        (format, plain)
    };
    Format::ALL.iter().filter(is_both).map(write).collect()
}

fn zstd(bytes: &[u8]) -> Vec<u8> {
    let mut frame = ZstdWriter::new(Vec::new()).unwrap();
    frame.write_all(bytes).unwrap();
    frame.complete().unwrap()
}

/// The numbers of samples and of events, and what was lost.
fn read_as(format: Format, bytes: &[u8]) -> Result<([u64; 2], Recovery), Error> {
    let source = Source::reader("bytes", io::Cursor::new(bytes.to_vec()));
    let options = InputOptions { format: Some(format), ..InputOptions::default() };
    let recovery = import_all([Input::open(source, &options)?], &mut Count::default())?;
    Ok(([recovery.samples, recovery.events], recovery))
}

#[test]
fn garbage_after_a_member_is_ignored_with_a_warning() {
    let formats = in_every_format();
    assert!(formats.len() >= 10, "{formats:?}");
    for (format, plain) in formats {
        let whole = read_as(format, &plain).unwrap().0;
        for member in [gzip(&plain), zstd(&plain)] {
            let followed_by = |rest: &[u8]| read_as(format, &[&member, rest].concat());
            for garbage in
                [&b"trailing garbage"[..], b"\xde\xad\xbe\xef\n\0", b"</html>\n", b"\0\0\0\0garbage"]
            {
                let (found, recovery) = followed_by(garbage).unwrap();
                assert_eq!(found, whole, "{format:?}");
                let [warning] = &recovery.warnings[..] else { panic!("{format:?}: {recovery:?}") };
                assert!(warning.message.starts_with("ignored the bytes after a "), "{format:?}: {warning:?}");
                let padding = garbage.iter().take_while(|&&byte| byte == 0).count();
                assert_eq!(warning.lost_bytes, (garbage.len() - padding) as u64, "{format:?}");
            }
            let (found, recovery) = followed_by(&[0; 512]).unwrap();
            assert!(found == whole && recovery.is_clean(), "{format:?}: {recovery:?}");
            // This is the beginning of another member.
            let damage = match followed_by(&member[..20]) {
                Ok((_, recovery)) => recovery.warnings[0].message.clone(),
                Err(error) => format!("{error:?}"),
            };
            assert!(damage.contains("truncated"), "{format:?}: {damage}");
        }
    }
}

#[test]
fn plain_data_of_the_same_format_may_follow_a_member() {
    // Documents cannot follow each other.
    let is_document = |format| {
        matches!(
            format,
            Format::Speedscope | Format::Gecko | Format::Tachyon | Format::Cpuprofile | Format::Pstats
        )
    };
    for (format, plain) in in_every_format().into_iter().filter(|(format, _)| !is_document(*format)) {
        let once = read_as(format, &plain).unwrap().0;
        let (found, recovery) = read_as(format, &[gzip(&plain), plain].concat()).unwrap();
        assert!(found == once.map(|count| 2 * count) && recovery.is_clean(), "{format:?}: {recovery:?}");
    }
}

#[test]
fn exceeded_limits_are_errors_that_name_the_limit() {
    let mut read = ReadOptions::default();
    read.limits.memory_bytes = 10_000;
    let source = Source::path(corpus("rbt/realistic_54k_ts.rbt")).unwrap();
    let input = Input::open(source, &InputOptions { read, ..InputOptions::default() }).unwrap();
    match import_all([input], &mut Count::default()) {
        Err(Error::Read { source, .. }) => assert!(source.is_limit(), "{source}"),
        other => panic!("expected a limit, found {other:?}"),
    }
}

#[test]
fn tachyon_files_are_mapped_and_may_have_any_size() {
    let file = corpus("tachyon/corpus/25_multiline.bin");
    // More than the names of the file take, and less than the file does.
    let limits = Limits { memory_bytes: 8 << 10, ..Limits::default() };
    assert!(fs::metadata(&file).unwrap().len() > 8 << 10);
    let options =
        InputOptions { read: ReadOptions { limits, ..ReadOptions::default() }, ..InputOptions::default() };
    let read = |source: Source| {
        let mut count = Count::default();
        let input = Input::open(source, &options)?;
        input.read_into(&mut Tables::default(), &mut count).map(|_| count.samples)
    };
    assert_eq!(read(Source::path(&file).unwrap()).unwrap(), 2257);
    let pipe = Source::reader("pipe", io::Cursor::new(fs::read(&file).unwrap()));
    let error = read(pipe).unwrap_err().to_string();
    assert!(error.contains("needs more than 8192 bytes of memory (tachyon"), "{error}");
}

#[test]
fn a_file_is_mapped_from_its_current_position() {
    let scratch = borehole_testkit::Scratch::new();
    let path = scratch.path("within");
    let profile = read_corpus("tachyon/corpus/25_multiline.bin");
    fs::write(&path, [b"before".as_slice(), &profile].concat()).unwrap();
    let mut file = fs::File::open(&path).unwrap();
    file.seek(io::SeekFrom::Start(6)).unwrap();
    let input = Input::open(Source::file("within", file).unwrap(), &InputOptions::default()).unwrap();
    assert_eq!(folded([input]), folded([open(&profile).unwrap()]));
}

#[test]
fn text_may_have_a_byte_order_mark_and_be_utf16() {
    let text = "main /index.php:5;query /db.php:7 12\nmain /index.php:5 3\n";
    let plain = folded([open(text.as_bytes()).unwrap()]);
    let coded = |mark: &[u8], bytes: fn(u16) -> [u8; 2]| {
        mark.iter().copied().chain(text.encode_utf16().flat_map(bytes)).collect::<Vec<_>>()
    };
    for bytes in [
        [b"\xef\xbb\xbf", text.as_bytes()].concat(),
        coded(b"\xff\xfe", u16::to_le_bytes),
        coded(b"\xfe\xff", u16::to_be_bytes),
        gzip(&coded(b"\xff\xfe", u16::to_le_bytes)),
    ] {
        assert_eq!(folded([open(&bytes).unwrap()]), plain);
    }
}

#[test]
fn files_of_other_programs_are_recognised_unless_a_format_is_given() {
    for (head, said) in [
        (&b"memray\0\x0c\0\0\0"[..], "x.bin: unsupported input: expected a profile, found a memray capture"),
        (b"Nettrace\x14\0\0\0", "x.bin: unsupported input: expected a profile, found a .NET trace"),
    ] {
        let source = |bytes: &[u8]| Source::reader("x.bin", io::Cursor::new(bytes.to_vec()));
        let error = Input::open(source(head), &InputOptions::default()).err().unwrap();
        assert_eq!(error.to_string(), said);
        assert_ne!(error.advice(), Some(Advice::ReadOn));
        let options = InputOptions { format: Some(Format::Folded), ..InputOptions::default() };
        assert_eq!(Input::open(source(head), &options).unwrap().format(), Format::Folded);
    }
    let source = Source::reader("x.bin", io::Cursor::new(b"anything else".to_vec()));
    assert!(matches!(Input::open(source, &InputOptions::default()), Err(Error::Unrecognised { .. })));
}
