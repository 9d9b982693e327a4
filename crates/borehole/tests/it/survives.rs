//! Checks the table of the README that shows what each format keeps.
//!
//! For formats that are read, a property is kept if it comes back. For those that are only written, it is kept if it changes
//! the output. For formats that are only read, it is kept if a real file has it.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::io;
use std::ops::ControlFlow;
use std::path::Path;

use borehole::model::{Context, Event, ProfileSink, Sample};
use borehole::{Export, Format, Input, InputOptions, Source, Target, convert, import_all};

/// A property of a profile: its heading in the table, its text in the lines of a profile that has it, and the text if it has
/// another value.
struct Fact {
    name: &'static str,
    said: &'static str,
    otherwise: &'static str,
}

const fn fact(name: &'static str, said: &'static str, otherwise: &'static str) -> Fact {
    Fact { name, said, otherwise }
}

const FACTS: [Fact; 18] = [
    fact("functions", "needle_function", "needle_Function"),
    fact("files", "needle_file.php", "needle_File.php"),
    fact("lines", "\"line\":48611", "\"line\":48612"),
    fact("columns", "\"column\":3181", "\"column\":3182"),
    fact("modules", "libneedle.so", "libNeedle.so"),
    fact("opcodes", "NEEDLE_OP", "NEEDLE_IP"),
    fact("counts", "\"samples\":70005", "\"count\":70002"),
    fact("period", "\"period_us\":7000", "\"period_us\":7001"),
    fact("times", "\"time_ns\":123456000", "\"time_ns\":124456000"),
    fact("date", "\"start_unix_ns\":1700000000000000000", "\"start_unix_ns\":1700000001000000000"),
    fact("process", "\"pid\":31337", "\"pid\":31338"),
    fact("thread", "\"tid\":424242", "\"tid\":424243"),
    fact("its name", "needle_thread", "needle_Thread"),
    fact("interpreter", "\"interpreter\":7", "\"interpreter\":8"),
    fact("state", "\"status\":[\"has_gil\"", "\"status\":[\"on_cpu\""),
    fact("labels", "needle_label", "needle_Label"),
    fact("values", "\"values\":[98765", "\"values\":[98766"),
    fact("metadata", "needle_value", "needle_Value"),
];

/// A profile with all properties.
const PROFILE: &str = concat!(
    r#"{"type":"file","schema_version":1,"format":"rbt"}
{"type":"segment","index":0,"format":"rbt","period_us":7000,"has_times":true,"start_unix_ns":1700000000000000000,"metadata":[["needle_key","needle_value"]],"value_types":[["alloc_space","bytes"]]}
{"type":"thread","pid":31337,"tid":424242,"name":"needle_thread"}
"#,
    r#"{"type":"stack","id":1,"frames":[{"function":"needle_function","file":"/srv/needle_file.php","line":48611,"column":3181,"opcode":"NEEDLE_OP"},{"function":"main","file":"/srv/main.php","line":3}]}
{"type":"sample","stack":1,"count":1,"time_ns":0,"pid":31337,"tid":424242,"interpreter":7,"status":["has_gil","main_thread"],"labels":[["key","needle_label"]],"values":[98765]}
{"type":"stack","id":2,"frames":[{"function":"needle_native","native":true,"module":"libneedle.so","offset":66},{"function":"main","file":"/srv/main.php","line":3}]}
"#,
    r#"{"type":"sample","stack":2,"count":3,"time_ns":123456000,"pid":31337,"tid":424242,"interpreter":7,"status":["has_gil"],"values":[5]}
{"type":"sample","stack":1,"count":70001,"time_ns":250000000,"pid":31337,"tid":424242,"interpreter":7,"values":[5]}
{"type":"end","samples":70005,"events":0,"lost_bytes":0,"warnings":[]}
"#
);

/// The profile with samples that are only counted, for formats with one number per sample.
fn sampled() -> String {
    let (mut text, mut rest) = (String::new(), PROFILE);
    while let Some((before, values)) = rest.split_once(",\"value") {
        text.push_str(before);
        rest = values.split_once(']').map_or("", |(_, after)| after.strip_prefix(']').unwrap_or(after));
    }
    text + rest
}

/// A trace of one event that is not a sample.
const EVENT: &str = r#"{"type":"file","schema_version":1,"format":"trc"}
{"type":"segment","index":0,"format":"trc","has_times":true}
{"type":"event","name":"needle_event","type_id":1,"time_ns":1000,"fields":[["number",4711]]}
{"type":"end","samples":0,"events":1,"lost_bytes":0,"warnings":[]}
"#;

fn converted(bytes: &[u8], from: Format, to: Format) -> Vec<u8> {
    let options = InputOptions { format: Some(from), ..InputOptions::default() };
    let input = Input::open(Source::reader("profile", io::Cursor::new(bytes.to_vec())), &options).unwrap();
    let mut output = Vec::new();
    convert([input], &Target::new(to), &mut output).unwrap();
    output
}

/// The samples of a format as lines, even if they are events there.
fn samples(bytes: &[u8], from: Format) -> Vec<u8> {
    let options = InputOptions { format: Some(from), ..InputOptions::default() };
    let input = Input::open(Source::reader("profile", io::Cursor::new(bytes.to_vec())), &options).unwrap();
    let mut output = Vec::new();
    let mut exporter = Samples(Target::new(Format::Jsonl).exporter(&mut output).unwrap());
    import_all([input], &mut exporter).unwrap();
    drop(exporter);
    output
}

/// A sink that takes samples only, so that events are converted to samples.
struct Samples<'w>(Box<dyn Export + 'w>);

impl ProfileSink for Samples<'_> {
    fn sample(&mut self, at: Context<'_>, sample: &Sample<'_>) -> io::Result<ControlFlow<()>> {
        self.0.sample(at, sample)
    }

    fn next(&mut self) -> Option<&mut dyn ProfileSink> {
        Some(&mut *self.0)
    }

    fn event(&mut self, _at: Context<'_>, _event: &Event<'_>) -> io::Result<ControlFlow<()>> {
        Ok(ControlFlow::Continue(()))
    }

    fn keeps_events(&mut self) -> bool {
        false
    }
}

/// The properties that the lines of a profile have.
fn said(lines: &[u8]) -> BTreeSet<&'static str> {
    let text = String::from_utf8_lossy(lines).into_owned();
    // Another number may begin with the same digits.
    let is_whole = |rest: &str| !rest.starts_with(|next: char| next.is_ascii_digit());
    let says = |fact: &&Fact| text.split(fact.said).skip(1).any(is_whole);
    let mut said: BTreeSet<_> = FACTS.iter().filter(says).map(|fact| fact.name).collect();
    if text.contains("needle_event") {
        said.insert("events");
    }
    said
}

/// The properties that survive conversions through `formats`, all of which are read.
fn kept(formats: &[Format]) -> BTreeSet<&'static str> {
    let through = |lines: &str| {
        let (mut bytes, mut from) = (lines.as_bytes().to_vec(), Format::Jsonl);
        for &to in formats {
            bytes = converted(&bytes, from, to);
            from = to;
        }
        (bytes, from)
    };
    let mut kept = BTreeSet::new();
    for profile in [PROFILE, &sampled()] {
        let (bytes, last) = through(profile);
        kept.extend(said(&samples(&bytes, last)));
    }
    let (bytes, last) = through(EVENT);
    kept.extend(said(&converted(&bytes, last, Format::Jsonl)));
    kept
}

/// The properties that change the output of a format that is only written.
fn shown(format: Format) -> BTreeSet<&'static str> {
    let output = |lines: &str| converted(lines.as_bytes(), Format::Jsonl, format);
    let changes = |fact: &&Fact| {
        let said = if fact.name == "counts" { "\"count\":70001" } else { fact.said };
        let changes = |profile: &str| {
            let changed = profile.replace(said, fact.otherwise);
            assert_ne!(changed, profile, "{}", fact.name);
            output(&changed) != output(profile)
        };
        changes(PROFILE) || (fact.name != "values" && changes(&sampled()))
    };
    let mut shown: BTreeSet<_> = FACTS.iter().filter(changes).map(|fact| fact.name).collect();
    if output(EVENT) != output(&EVENT.replace("needle_event", "needle_Event")) {
        shown.insert("events");
    }
    shown
}

/// Files of the formats that are only read.
const EXAMPLES: [(Format, &str); 12] = [
    (Format::Jfr, "jfr/work.jfr"),
    (Format::Mojo, "austin/full.mojo"),
    (Format::PerfData, "perf/threads.data"),
    (Format::Heapprofile, "v8/heap.heapprofile"),
    (Format::Dhat, "dhat/alloc.json"),
    (Format::Stackprof, "stackprof/wall.json"),
    (Format::Rbspy, "rbspy/shop.rbspy"),
    (Format::Pyinstrument, "pyinstrument/shop.pyisession"),
    (Format::Scalene, "scalene/shop.json"),
    (Format::XdebugTrace, "xdebug/calls.1.xt"),
    (Format::PprofText, "pprof-text/go-heap.txt"),
    (Format::Gperftools, "pprof-text/alloc.cpu"),
];

/// The text in lines that have a property.
const KEYS: [(&str, &str); 17] = [
    ("functions", "\"function\":"),
    ("files", "\"file\":"),
    ("lines", "\"line\":"),
    ("columns", "\"column\":"),
    ("modules", "\"module\":"),
    ("opcodes", "\"opcode\":"),
    ("period", "\"period_us\":"),
    ("times", "\"time_ns\":"),
    ("date", "\"start_unix_ns\":"),
    ("process", "\"pid\":"),
    ("thread", "\"tid\":"),
    ("its name", "\"type\":\"thread\""),
    ("interpreter", "\"interpreter\":"),
    ("state", "\"status\":"),
    ("labels", "\"labels\":"),
    ("values", "\"values\":"),
    ("metadata", "\"metadata\":[["),
];

/// The properties that a file of a format has that is only read.
fn held(format: Format) -> BTreeSet<&'static str> {
    let (_, file) = EXAMPLES.iter().find(|(known, _)| *known == format).expect("a file of each format");
    let lines = samples(&borehole_testkit::read_corpus(file), format);
    let lines = String::from_utf8(lines).unwrap();
    let has_counts = lines.split("\"count\":").skip(1).any(|rest| !rest.starts_with("1,"));
    let keys = KEYS.iter().filter(|(_, key)| lines.contains(key)).map(|(name, _)| *name);
    keys.chain(has_counts.then_some("counts")).collect()
}

fn row(format: Format) -> BTreeSet<&'static str> {
    match (format.readable(), format.writable()) {
        (true, true) => kept(&[format]),
        (true, false) => held(format),
        (false, _) => shown(format),
    }
}

fn table() -> String {
    let names = || FACTS.iter().map(|fact| fact.name).chain(["events"]);
    let mut table = String::from("| format | read | write |");
    names().for_each(|name| write!(table, " {name} |").unwrap());
    table.push_str("\n|---|---|---|");
    names().for_each(|_| table.push_str("---|"));
    table.push('\n');
    for &format in Format::ALL {
        let mark = |is: bool| if is { "✓" } else { "–" };
        let name = match format.facts().page {
            "" => format.name().to_owned(),
            page => format!("[{}](docs/{page})", format.name()),
        };
        write!(table, "| {name} | {} | {} |", mark(format.readable()), mark(format.writable())).unwrap();
        let row = row(format);
        names().for_each(|name| write!(table, " {} |", mark(row.contains(name))).unwrap());
        table.push('\n');
    }
    table
}

const BEGIN: &str = "<!-- what survives: written by a test -->\n";
const END: &str = "<!-- end -->\n";

#[test]
fn the_readme_says_what_survives() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../README.md");
    let text = std::fs::read_to_string(&path).unwrap();
    let (before, rest) = text.split_once(BEGIN).unwrap();
    let (found, after) = rest.split_once(END).unwrap();
    let table = table();
    if borehole_testkit::updates_golden() {
        std::fs::write(&path, format!("{before}{BEGIN}{table}{END}{after}")).unwrap();
    } else {
        assert_eq!(found, table, "run with UPDATE_GOLDEN=1 to write it");
    }
    for page in Format::ALL.iter().map(|format| format.facts().page).filter(|page| !page.is_empty()) {
        assert!(path.with_file_name("docs").join(page).is_file(), "{page}");
    }
}

#[test]
fn binary_formats_are_marked_as_such() {
    for format in Format::ALL.iter().copied().filter(|format| format.writable()) {
        let bytes = converted(PROFILE.as_bytes(), Format::Jsonl, format);
        let is_text = bytes.iter().all(|&byte| byte >= b' ' || b"\t\n".contains(&byte));
        assert_eq!(format.facts().is_binary, !is_text, "{}", format.name());
    }
}

#[test]
fn conversions_keep_what_both_formats_keep() {
    // A timeline can be written of profiles with times only, and few formats keep them.
    // Sums of functions and calls have no stacks.
    let others = [Format::ChromeTrace, Format::Pstats, Format::Callgrind];
    let is_read = |format: &Format| format.readable() && format.writable() && !others.contains(format);
    let readable: Vec<_> = Format::ALL.iter().copied().filter(is_read).collect();
    assert!(readable.len() >= 10, "{readable:?}");
    let rows: Vec<_> = readable.iter().map(|&format| row(format)).collect();
    let mut others = Vec::new();
    for (from, from_row) in readable.iter().zip(&rows) {
        for (to, to_row) in readable.iter().zip(&rows) {
            let mut both: BTreeSet<_> = from_row.intersection(to_row).copied().collect();
            match (from, to) {
                // JSON Lines keep the events that stand for samples as events.
                (Format::Trc, Format::Jsonl) => continue,
                // Without labels and states, samples of one stack are one row with the sum of their values.
                (Format::Speedscope | Format::PerfScript, Format::Pprof) => _ = both.remove("values"),
                // A line of folded stacks holds the sum of their values, which are periods, and not their number.
                (Format::PerfScript, Format::Folded) => _ = both.remove("counts"),
                _ => {}
            }
            let mut found = kept(&[*from, *to]);
            if *to == Format::Cpuprofile {
                // A sample with a time as its value is one entry; any other is an entry for each time it counts.
                found.remove("counts");
            }
            let (lost, won): (Vec<_>, Vec<_>) =
                (both.difference(&found).collect(), found.difference(&both).collect());
            if !(lost.is_empty() && won.is_empty()) {
                others.push(format!("{} to {}: without {lost:?}, with {won:?}", from.name(), to.name()));
            }
        }
    }
    assert_eq!(others, [""; 0], "{}", others.join("\n"));
}
