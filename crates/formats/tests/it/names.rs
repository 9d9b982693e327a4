//! Names that a terminal would obey or a reader would take for structure, in every format that is text.

use std::io::{self, Cursor};
use std::ops::ControlFlow;

use borehole_formats::detect::Format;
use borehole_formats::registry::{Destination, Import};
use borehole_formats::{ReadOptions, WriteOptions};
use borehole_model::{Context, ProfileSink, Sample, Segment};

use crate::flat::{Collect, FlatFrame, FlatSample, play};

/// A control character each, and what looks like the beginning, the end or a part of a stack.
const NAMES: [&[u8]; 20] = [
    b"class@anonymous\0/srv/app.php:12$0::run",
    b"two\nlines",
    b"x\n0 forged /f.php:1\n\n",
    b"carriage\rreturn",
    b"tab\tname",
    b"a\t1 b /f.php:1",
    b"\x1b[31mred\x1b[0m",
    b"\x07\x08\x7f",
    "\u{9b}31m\u{85}".as_bytes(),
    "\u{202e}php.g\u{2066}".as_bytes(),
    b"semi;colon",
    b"\xff\xfe\x9b",
    b"\xc2\x9b\xc2",
    b"# comment",
    b"name 12",
    b" ",
    b"fn=(1)",
    b"</text><script>",
    b"\"quoted\\",
    "\u{2028}\u{feff}".as_bytes(),
];

/// Stacks of two functions: each name is a root and a leaf, in a file of that name.
fn samples() -> Vec<FlatSample> {
    let frame = |name: &[u8]| FlatFrame {
        function: name.to_vec(),
        file: Some([b"/", name].concat()),
        line: Some(3),
        ..FlatFrame::default()
    };
    let roots = NAMES.iter().zip(NAMES.iter().cycle().skip(1));
    let sample = |(root, leaf): (&&[u8], &&[u8])| FlatSample {
        frames_leaf_first: vec![frame(leaf), frame(root)],
        count: 1,
        labels: vec![(leaf.to_vec(), root.to_vec())],
        ..FlatSample::default()
    };
    roots.map(sample).collect()
}

/// Gives each sample a time, which timelines need.
struct Timed<'s>(&'s mut dyn ProfileSink, i64);

impl ProfileSink for Timed<'_> {
    fn sample(&mut self, at: Context<'_>, sample: &Sample<'_>) -> io::Result<ControlFlow<()>> {
        self.1 += 10_000_000;
        self.0.sample(at, &Sample { time_ns: Some(self.1), ..*sample })
    }

    fn next(&mut self) -> Option<&mut dyn ProfileSink> {
        Some(self.0)
    }
}

fn write(format: Format) -> Vec<u8> {
    let mut output = Vec::new();
    let destination =
        Destination { output: Box::new(&mut output), spool: || Ok(Box::new(Cursor::new(Vec::new()))) };
    let mut exporter = (format.exporter().unwrap().start)(destination, &WriteOptions::default());
    let segment = Segment { period_ns: Some(10_000_000), has_times: true, ..Segment::default() };
    play(&samples(), &segment, &mut Timed(&mut *exporter, 0)).unwrap();
    drop(exporter);
    output
}

/// The text formats that are written.
fn text_formats() -> impl Iterator<Item = Format> {
    Format::ALL.iter().copied().filter(|format| format.writable() && !format.facts().is_binary)
}

#[test]
fn no_control_character_gets_into_a_text() {
    let mut count = 0;
    for format in text_formats() {
        let output = write(format);
        let text = String::from_utf8_lossy(&output);
        let is_json = matches!(text.as_bytes(), [b'{' | b'[', ..]);
        // JSON escapes the control characters of ASCII.
        // Collapsed stacks keep tabs and line breaks, as CPython does. Frames of perf script begin with a tab.
        let has_tabs = matches!(format, Format::Collapsed | Format::PerfScript);
        let is_kept = |c: char| c == '\n' || (c == '\t' && has_tabs);
        let found = text.chars().find(|&c| !is_kept(c) && if is_json { c < ' ' } else { c.is_control() });
        assert_eq!(found, None, "{}: {text}", format.name());
        count += 1;
    }
    assert!(count >= 10, "{count}");
}

#[test]
fn no_name_forges_or_hides_a_stack() {
    // Collapsed stacks keep line breaks, as CPython does.
    for format in text_formats().filter(|&format| format != Format::Collapsed) {
        let reader = format.facts().read_as.map_or(Some(format), Format::from_name);
        let Some(importer @ (Import::Plain(_) | Import::Accompanied { .. })) =
            reader.and_then(Format::importer)
        else {
            continue;
        };
        let output = write(format);
        let mut collect = Collect::default();
        let mut input: &[u8] = &output;
        let mut input: io::BufReader<&mut dyn io::Read> = io::BufReader::new(&mut input);
        let (mut tables, options) = (Default::default(), ReadOptions::default());
        let recovery = match importer {
            Import::Accompanied { import, .. } => {
                import(&mut input, None, &options, &mut tables, &mut collect)
            }
            Import::Plain(import) => import(&mut input, &options, &mut tables, &mut collect),
            _ => continue,
        };
        let text = String::from_utf8_lossy(&output);
        let recovery = recovery.unwrap_or_else(|error| panic!("{}: {error}: {text}", format.name()));
        assert!(recovery.is_clean(), "{}: {recovery:?}", format.name());
        let count: u64 = collect.0.iter().map(|sample| sample.count).sum();
        assert_eq!(count, NAMES.len() as u64, "{}: {text}", format.name());
        // Sums of frames and of calls have no stacks.
        let has_depths = !matches!(format, Format::TachyonJsonl | Format::Callgrind);
        let is_two = |sample: &FlatSample| sample.frames_leaf_first.len() == 2;
        assert!(!has_depths || collect.0.iter().all(is_two), "{}: {text}", format.name());
    }
}
