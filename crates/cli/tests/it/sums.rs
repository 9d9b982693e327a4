//! Compares all views of each profile in the corpus: the whole value, its type, and the self and total of each function.
//!
//! The test compares the output of `report` with that of the other commands for the same file: folded text, the flame graph, the
//! data of the page, the diff of the file with itself, and reports of the file after a conversion to another format.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::thread;

use borehole_testkit::Scratch;
use serde_json::Value;

use crate::program::{Ended, program, run, text};

/// The folders of the corpus that hold profiles.
const FOLDERS: [&str; 9] =
    ["folded", "gecko", "otlp", "pprof", "rbt", "speedscope", "tachyon", "trc", "zstd"];

/// Folders in these that hold something else, or profiles that take too long.
const LEFT_OUT: [&str; 6] = ["analysis", "expected", "opcodes", "sweeps", "synthetic", "text"];

/// Profiles of a million samples, one that decompresses to a gigabyte, and one whose time does not fit in 64 bits: some views
/// stop at the largest number, others have doubles.
const TOO_LARGE: [&str; 3] =
    ["rbt/samples_1m.rbt", "tachyon/corrupt/zstd_bomb_1100MB.bin", "rbt/repeat_huge.rbt"];

/// The most bytes of a file.
const MOST_BYTES: u64 = 2_000_000;

/// Known differences between views and reports: the file, the view, and the reason.
const DIFFERENCES: [(&str, &str, &str); 3] = [
    ("rbt/big_string.rbt", "page", "pages cut names"),
    ("rbt/unicode.rbt", "page", "pages replace control characters"),
    ("tachyon/corrupt/string_with_nul.bin", "page", "pages replace control characters"),
];

/// The option that hides the frames of Python's own profiler, as reports do.
const HIDE: [&str; 2] = ["--hide", r"_sync_coordinator\.py"];

/// The sums that a view shows of a profile.
#[derive(Debug, Default, PartialEq)]
struct Sums {
    /// Kind and unit.
    value_type: String,
    value: i64,
    /// The value of empty stacks, if the report says it.
    empty: Option<i64>,
    functions: Functions,
}

/// Self and total by name, without those that have neither.
type Functions = BTreeMap<String, (i64, i64)>;

/// A profile that is compared.
struct Profile<'a> {
    /// Its path in the corpus.
    name: String,
    path: String,
    /// The kind of the values that are added up, as `--value` takes it.
    kind: String,
    /// The sums of `report`.
    sums: Sums,
    /// Its folded stacks.
    lines: String,
    /// The value of samples with an empty stack: reports leave it out, other views include it.
    empty: i64,
    /// The folder for intermediate files.
    folder: &'a Path,
}

/// Compares a view of a profile with its report and returns the differences.
type View = fn(&Profile<'_>) -> Result<Vec<String>, String>;

const VIEWS: [(&str, View); 6] = [
    ("folded", folded),
    ("flamegraph", flamegraph),
    ("pprof", pprof),
    ("speedscope", speedscope),
    ("page", page),
    ("diff", diff),
];

/// The standard output of the program; an error unless it exits with 0.
fn written(ended: Ended) -> Result<Vec<u8>, String> {
    match ended.code {
        0 => Ok(ended.stdout),
        code => Err(format!("ends with {code}: {}", ended.stderr)),
    }
}

fn json(arguments: &[&str]) -> Result<Value, String> {
    let text = written(run(arguments))?;
    serde_json::from_slice(&text).map_err(|error| format!("{arguments:?}: {error}"))
}

/// The sums of a report, with functions named by `key`.
fn sums_of(report: &Value, key: &str) -> Sums {
    let summary = &report["summary"];
    let word = |key: &str| summary[key].as_str().unwrap().to_owned();
    let mut functions = Functions::new();
    let mut add = |table: &str, put: fn(&mut (i64, i64), i64)| {
        for row in report[table]["rows"].as_array().unwrap() {
            let sums = functions.entry(row[key].as_str().unwrap().to_owned()).or_default();
            put(sums, row["value"].as_i64().unwrap());
        }
    };
    add("self", |sums, value| sums.0 = sums.0.saturating_add(value));
    add("total", |sums, value| sums.1 = sums.1.saturating_add(value));
    Sums {
        value_type: format!("{}/{}", word("value_type"), word("unit")),
        value: summary["value"].as_i64().unwrap(),
        empty: summary["empty_value"].as_i64(),
        functions: with_something(functions),
    }
}

fn with_something(mut functions: Functions) -> Functions {
    functions.retain(|_, sums| *sums != (0, 0));
    functions
}

/// The sums of `report` for a file.
fn reported(path: &str, kind: &str) -> Result<Sums, String> {
    let report = json(&["report", "--json", "--limit", "0", "--no-line", "--value", kind, path])?;
    Ok(sums_of(&report, "function"))
}

/// The differences between two views.
fn differences(expected: &Sums, found: &Sums) -> Vec<String> {
    let mut differences = Vec::new();
    if expected.value_type != found.value_type {
        differences.push(format!("expected {}, found {}", expected.value_type, found.value_type));
    }
    if expected.value != found.value {
        differences.push(format!("expected {} in all, found {}", expected.value, found.value));
    }
    differences.extend(differing(&expected.functions, &found.functions));
    differences
}

/// The first functions whose sums differ.
fn differing(expected: &Functions, found: &Functions) -> Vec<String> {
    let names: BTreeSet<&String> = expected.keys().chain(found.keys()).collect();
    let differing = names.into_iter().filter(|name| expected.get(*name) != found.get(*name));
    let said = differing.map(|name| {
        let [expected, found] = [expected, found].map(|sums| sums.get(name).copied().unwrap_or_default());
        format!("{name:?}: expected self and total {expected:?}, found {found:?}")
    });
    said.take(3).collect()
}

/// A name as one word, without the characters that folded stacks replace.
fn plain(name: &str) -> String {
    let plain = |c: char| match c {
        ';' => ":".to_owned(),
        '#' => "_".to_owned(),
        c if c.is_ascii_whitespace() => "_".to_owned(),
        c if c.is_ascii_control() => format!("\\x{:02x}", u32::from(c)),
        c => c.to_string(),
    };
    name.chars().map(plain).collect()
}

/// Folded stacks with their numbers.
fn lines(text: &str) -> Result<Vec<(&str, i64)>, String> {
    text.split_terminator('\n').map(line).collect()
}

fn line(text: &str) -> Result<(&str, i64), String> {
    let (stack, number) = text.rsplit_once(' ').ok_or("a line without a number")?;
    Ok((stack, number.parse().map_err(|_| format!("no number: {number}"))?))
}

/// The lines of folded stacks, whose frames have lines as well.
fn folded(profile: &Profile<'_>) -> Result<Vec<String>, String> {
    let Profile { path, kind, lines, .. } = profile;
    let report = json(&["report", "--json", "--limit", "0", "--value", kind, path])?;
    let mut found = Sums::default();
    for (stack, number) in self::lines(lines)?.into_iter().filter(|(stack, _)| !stack.is_empty()) {
        found.value = found.value.saturating_add(number);
        let frames: Vec<String> = stack.split(';').map(plain).collect();
        for frame in frames.iter().collect::<BTreeSet<_>>() {
            let sums = found.functions.entry(frame.clone()).or_default();
            sums.1 = sums.1.saturating_add(number);
        }
        let sums = found.functions.entry(frames[frames.len() - 1].clone()).or_default();
        sums.0 = sums.0.saturating_add(number);
    }
    let mut expected = sums_of(&report, "frame");
    let mut functions = Functions::new();
    for (name, (own, total)) in std::mem::take(&mut expected.functions) {
        let sums = functions.entry(plain(&name)).or_default();
        *sums = (sums.0.saturating_add(own), sums.1.saturating_add(total));
    }
    // Lines do not contain the type of their numbers.
    found.value_type.clone_from(&expected.value_type);
    found.functions = with_something(found.functions);
    Ok(differences(&Sums { functions, ..expected }, &found))
}

/// Compares the total in the title of a flame graph.
fn flamegraph(profile: &Profile<'_>) -> Result<Vec<String>, String> {
    let Profile { path, kind, .. } = profile;
    let svg = written(run(&["convert", "--to", "flamegraph", "-o", "-", "--value", kind, path]))?;
    let svg = String::from_utf8_lossy(&svg);
    let expected = profile.whole();
    let Some((_, rest)) = svg.split_once("<title>all (") else {
        let said = (expected != 0).then(|| format!("expected {expected}, found nothing"));
        return Ok(said.into_iter().collect());
    };
    let (number, rest) = rest.split_once(' ').ok_or("a number without a unit")?;
    let (unit, _) = rest.split_once(", 100%)").ok_or("a number that is no whole")?;
    let number: i64 = number.replace(',', "").parse().map_err(|_| format!("no number: {number}"))?;
    // Times are rounded to the digits that are shown.
    let divisor: i64 = match unit.split(' ').next() {
        Some("us") => 1_000,
        Some("ms") => 1_000_000,
        _ => 1,
    };
    let mut differences = Vec::new();
    if number.saturating_mul(divisor).abs_diff(expected) > divisor.unsigned_abs() / 2 {
        differences.push(format!("expected {expected}, found {number} {unit}"));
    }
    if unit.rsplit(' ').next() != Some(kind.as_str()) {
        differences.push(format!("expected {kind}, found {unit}"));
    }
    Ok(differences)
}

/// The report of the file in another format.
fn again(profile: &Profile<'_>, file: &str, options: &[&str]) -> Result<Vec<String>, String> {
    let Profile { path, kind, sums, folder, .. } = profile;
    let copy = folder.join(file);
    let convert = ["convert", "--force", "-o", text(&copy), path];
    written(run(&[&convert[..], &HIDE, options].concat()))?;
    Ok(differences(sums, &reported(text(&copy), kind)?))
}

fn pprof(profile: &Profile<'_>) -> Result<Vec<String>, String> {
    again(profile, "again.pb.gz", &[])
}

fn speedscope(profile: &Profile<'_>) -> Result<Vec<String>, String> {
    // Reports have U+FFFD too in the place of invalid UTF-8.
    let options = ["--value", &profile.kind, "--utf8-errors", "substitute"];
    again(profile, "again.speedscope.json", &options)
}

/// The data of the page: the sum of its cells, and its table, which lists functions of the same name in several files
/// separately.
fn page(profile: &Profile<'_>) -> Result<Vec<String>, String> {
    let Profile { path, kind, sums, folder, .. } = profile;
    let mut open = program(&["open", "--no-browser", "--value", kind, path]);
    let address = written(open.env("TMPDIR", folder).output().unwrap().into())?;
    let address = String::from_utf8(address).map_err(|error| error.to_string())?;
    let file = PathBuf::from(address.trim_end().strip_prefix("file://").ok_or("no address")?);
    let html = fs::read_to_string(&file).map_err(|error| error.to_string())?;
    fs::remove_file(&file).map_err(|error| error.to_string())?;
    let (_, data) = html.split_once("id=\"data\">").ok_or("a page without data")?;
    let (data, _) = data.split_once("</script>").ok_or("data without an end")?;
    let data: Value = serde_json::from_str(data).map_err(|error| error.to_string())?;
    let mut found = Sums {
        value_type: [&data["value_kind"], &data["value_unit"]].map(|word| word.as_str().unwrap()).join("/"),
        value: numbers(&data["cells"]["values"]).into_iter().fold(0, i64::saturating_add),
        empty: None,
        functions: Functions::new(),
    };
    let mut expected = Sums { functions: Functions::new(), value_type: sums.value_type.clone(), ..*sums };
    let mut rows: BTreeMap<&str, Vec<(i64, i64)>> = BTreeMap::new();
    for row in data["top"].as_array().unwrap() {
        let [function, own, total] = numbers(row)[..] else { return Err(format!("no row: {row}")) };
        let name = data["names"][usize::try_from(function).unwrap()].as_str().unwrap();
        rows.entry(name).or_default().push((own, total));
    }
    for (name, rows) in rows {
        let [own, total] = [0, 1].map(|column| rows.iter().map(|row| [row.0, row.1][column]).sum::<i64>());
        let wanted = sums.functions.get(name).copied().unwrap_or_default();
        // A stack with two functions of the same name counts for the total of both.
        let total = if rows.len() > 1 { total.min(wanted.1) } else { total };
        found.functions.insert(name.to_owned(), (own, total));
    }
    // If there are very many functions, the page does not list all of them.
    let is_cut = data["distinct"] != data["top"].as_array().unwrap().len();
    let shown = sums.functions.iter().filter(|(name, _)| !is_cut || found.functions.contains_key(*name));
    expected.functions = shown.map(|(name, sums)| (name.clone(), *sums)).collect();
    Ok(differences(&expected, &found))
}

fn numbers(list: &Value) -> Vec<i64> {
    list.as_array().unwrap().iter().map(|number| number.as_i64().unwrap()).collect()
}

/// The diff of the file with itself: both sides equal the report, and nothing has changed.
fn diff(profile: &Profile<'_>) -> Result<Vec<String>, String> {
    let Profile { path, kind, sums, .. } = profile;
    let diff = json(&["diff", "--json", "--limit", "0", "--key", "function", "--value", kind, path, path])?;
    let expected = Sums { value: profile.whole(), value_type: sums.value_type.clone(), ..Sums::default() };
    let mut differences = Vec::new();
    for side in ["before", "after"] {
        let whole = whole_of(&diff[side]);
        // For sampled time, only shares are shown.
        if diff[side].get("value").is_some() || kind == "samples" {
            let found = self::differences(&expected, &whole);
            differences.extend(found.into_iter().map(|said| format!("{side}: {said}")));
        }
        let found = with_something(shares(&diff, side, expected.value)?);
        let found = differing(&sums.functions, &found);
        differences.extend(found.into_iter().map(|said| format!("{side}: {said}")));
    }
    let changes = diff["functions"]["rows"].as_array().unwrap().iter();
    let changes = changes.flat_map(|row| [&row["self"], &row["total"]]).chain([&diff["whole"]]);
    for change in changes.filter(|change| change["significant"] != false || change["change"] != 0.0) {
        differences.push(format!("expected no change, found {change}"));
    }
    Ok(differences)
}

/// The sum of a side of a diff. Sides that count samples have no value type.
fn whole_of(side: &Value) -> Sums {
    let word = |key: &str, otherwise: &str| side[key].as_str().unwrap_or(otherwise).to_owned();
    Sums {
        value_type: format!("{}/{}", word("value_type", "samples"), word("unit", "count")),
        value: side.get("value").unwrap_or(&side["samples"]).as_i64().unwrap_or(i64::MAX),
        empty: None,
        functions: Functions::new(),
    }
}

/// The functions of a side, whose shares are of `whole`.
fn shares(diff: &Value, side: &str, whole: i64) -> Result<Functions, String> {
    let whole = Value::from(whole).as_f64().ok_or("no number")?;
    let mut functions = Functions::new();
    for row in diff["functions"]["rows"].as_array().unwrap() {
        let [own, total] = ["self", "total"].map(|part| {
            // A double is more exact than these sums, except for one that fits in no number.
            let sum = row[part][side]["value"].as_f64().unwrap() * whole;
            format!("{sum:.0}").parse().unwrap_or(i64::MAX)
        });
        functions.insert(row["function"].as_str().unwrap().to_owned(), (own, total));
    }
    Ok(functions)
}

impl<'a> Profile<'a> {
    fn new(name: &str, path: &str, kind: &str, folder: &'a Path) -> Result<Self, String> {
        let sums = reported(path, kind)?;
        let convert = ["convert", "--to", "folded", "-o", "-", "--value", kind, path];
        let text = written(run(&[&convert[..], &HIDE].concat()))?;
        let text = String::from_utf8_lossy(&text).into_owned();
        let without_stack = lines(&text)?.into_iter().filter(|(stack, _)| stack.is_empty());
        let empty = without_stack.fold(0, |sum: i64, (_, number)| sum.saturating_add(number));
        let [name, path, kind] = [name, path, kind].map(str::to_owned);
        Ok(Self { name, path, kind, sums, lines: text, empty, folder })
    }

    /// The value, including that of empty stacks.
    const fn whole(&self) -> i64 {
        self.sums.value.saturating_add(self.empty)
    }

    /// The reason why a view may differ from the report.
    fn reason(&self, view: &str) -> Option<&'static str> {
        let mut known = DIFFERENCES.iter().filter(|(file, of, _)| self.name == *file && *of == view);
        known.next().map(|known| known.2)
    }

    /// The differences of all views.
    fn failures(&self) -> Vec<String> {
        let mut failures = Vec::new();
        for (view, ask) in VIEWS {
            let found = ask(self).unwrap_or_else(|error| vec![error]);
            let said = match self.reason(view) {
                None => found,
                Some(reason) if found.is_empty() => vec![format!("does not differ, though {reason}")],
                Some(_) => Vec::new(),
            };
            failures.extend(
                said.into_iter().map(|said| format!("{} ({}), {view}: {said}", self.name, self.kind)),
            );
        }
        failures
    }
}

/// The values that can be requested of a profile: its samples and their time, or values of its own.
fn kinds(summary: &Value) -> Vec<&str> {
    let mut kinds = Vec::new();
    if summary["is_valued"] == false {
        kinds.push("samples");
    }
    let others = summary["other_value_types"].as_array().into_iter().flatten();
    for value_type in [&summary["value_type"]].into_iter().chain(others) {
        let kind = value_type.as_str().unwrap().split('/').next().unwrap();
        if !kinds.contains(&kind) {
            kinds.push(kind);
        }
    }
    kinds
}

/// The differences of all views of a file; `None` if it is damaged, or has no profile or no sample.
fn compared(name: &str, folder: &Path) -> Option<Vec<String>> {
    let path = borehole_testkit::corpus(name);
    let report = json(&["report", "--json", "--limit", "0", text(&path)]).ok()?;
    let summary = &report["summary"];
    let is_sound = ["warnings", "lost_bytes"].iter().all(|key| summary[key] == 0);
    if !is_sound || summary["samples"] == 0 {
        return None;
    }
    let mut failures = Vec::new();
    for kind in kinds(summary) {
        match Profile::new(name, text(&path), kind, folder) {
            Err(error) => failures.push(format!("{name} ({kind}), report: {error}")),
            Ok(profile) => {
                if let Some(said) = profile.sums.empty.filter(|&said| said != profile.empty) {
                    let found = profile.empty;
                    failures
                        .push(format!("{name} ({kind}), report: {said} of empty stacks, folded: {found}"));
                }
                if kind == "samples" && summary["is_valued"] == false && summary["empty"] != profile.empty {
                    let (expected, found) = (&summary["empty"], profile.empty);
                    failures.push(format!("{name}, report: expected {expected} empty stacks, found {found}"));
                }
                failures.extend(profile.failures());
            }
        }
    }
    Some(failures)
}

/// The files in a folder of the corpus, and below it, that may be profiles.
fn files(folder: &str) -> Vec<String> {
    let mut files = Vec::new();
    for entry in fs::read_dir(borehole_testkit::corpus(folder)).unwrap() {
        let entry = entry.unwrap();
        let name = entry.file_name().into_string().unwrap();
        let path = format!("{folder}/{name}");
        let metadata = entry.metadata().unwrap();
        if metadata.is_dir() {
            files.extend(if LEFT_OUT.contains(&&*name) { Vec::new() } else { self::files(&path) });
        } else if metadata.len() <= MOST_BYTES && !TOO_LARGE.contains(&&*path) {
            files.push(path);
        }
    }
    files
}

#[test]
fn every_view_of_every_profile_of_the_corpus_adds_up_to_the_same() {
    let waiting = Mutex::new(FOLDERS.iter().flat_map(|folder| files(folder)).collect::<Vec<_>>());
    let (profiles, failures) = (Mutex::new(Vec::new()), Mutex::new(Vec::new()));
    thread::scope(|scope| {
        for _ in 0..thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(|| {
                let folder = Scratch::new();
                loop {
                    let Some(name) = waiting.lock().unwrap().pop() else { return };
                    let Some(found) = compared(&name, folder.folder()) else { continue };
                    failures.lock().unwrap().extend(found);
                    profiles.lock().unwrap().push(name);
                }
            });
        }
    });
    let (profiles, mut failures) = (profiles.into_inner().unwrap(), failures.into_inner().unwrap());
    failures.sort();
    assert!(failures.is_empty(), "{} differences:\n{}", failures.len(), failures.join("\n"));
    // A test over no profiles shows nothing.
    for folder in FOLDERS {
        assert!(profiles.iter().any(|name| name.starts_with(folder)), "no profile of {folder}");
    }
    assert!(profiles.len() > 150, "{}", profiles.len());
}
