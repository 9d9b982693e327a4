//! Whole reports as text and as JSON, from the options of the command line.

use anyhow::anyhow;
use borehole_analysis::ReportSink;
use borehole_model::{
    Context, Frame, Label, LabelValue, LaneId, Mode, NameParts, ProfileSink, Sample, Segment, Tables,
};
use clap::Parser;
use serde_json::{Value, json};

use super::render::render;
use super::{ReportArgs, ReportDialect, run};

#[derive(Parser)]
struct Command {
    #[command(flatten)]
    report: ReportArgs,
}

fn args(options: &[&str]) -> ReportArgs {
    Command::try_parse_from([&["report"], options].concat()).unwrap_or_else(|error| panic!("{error}")).report
}

fn rejected(options: &[&str]) -> String {
    match Command::try_parse_from([&["report"], options].concat()) {
        Ok(_) => panic!("expected {options:?} to be refused"),
        Err(error) => error.to_string(),
    }
}

/// A profile under construction; frames are written `function|file|line|opcode`, stacks leaf first.
struct Profile {
    tables: Tables,
    samples: Vec<Sample<'static>>,
    mode: Mode,
}

impl Profile {
    fn new() -> Self {
        Self { tables: Tables::default(), samples: Vec::new(), mode: Mode::Wall }
    }

    fn string(&mut self, text: &str) -> borehole_model::StringId {
        // `?` stands for a byte that is not UTF-8.
        let bytes: Vec<_> = text.bytes().map(|byte| if byte == b'?' { 0xff } else { byte }).collect();
        self.tables.intern_string(&bytes).unwrap()
    }

    fn frame(&mut self, text: &str) -> borehole_model::FrameId {
        let fields: Vec<_> = text.split('|').collect();
        let mut frame = Frame::named(self.string(fields[0]));
        if let Some((namespace, (class, method))) =
            fields[0].rsplit_once('\\').and_then(|(ns, rest)| Some((ns, rest.split_once("::")?)))
        {
            let [namespace, class, method] = [namespace, class, method].map(|part| self.string(part));
            frame.parts = Some(NameParts { namespace, class, method });
        }
        frame.file = fields.get(1).map(|file| self.string(file));
        frame.line = fields.get(2).map(|line| line.parse().unwrap()).filter(|&line: &i64| line != -1);
        frame.opcode = fields.get(3).map(|opcode| self.string(opcode));
        self.tables.intern_frame(&frame).unwrap()
    }

    fn add(
        mut self,
        count: u64,
        frames: &[&str],
        change: impl FnOnce(&mut Self, &mut Sample<'static>),
    ) -> Self {
        let frames: Vec<_> = frames.iter().map(|frame| self.frame(frame)).collect();
        let stack = self.tables.intern_stack_leaf_first(&frames).unwrap();
        let mut sample = Sample { stack, count, ..Sample::default() };
        change(&mut self, &mut sample);
        self.samples.push(sample);
        self
    }

    fn labelled(&mut self, key: &str, value: &str) -> Option<borehole_model::LabelsId> {
        let key = self.string(key);
        let value = LabelValue::Text(self.string(value));
        Some(self.tables.intern_labels(&[Label { key, value }]).unwrap())
    }

    fn feed(&self, sink: &mut dyn ProfileSink) -> anyhow::Result<()> {
        for (index, sample) in self.samples.iter().enumerate() {
            let index = index as u64;
            let segment =
                Segment { index, period_ns: Some(10_000_000), mode: self.mode, ..Segment::default() };
            let at = Context { tables: &self.tables, segment: &segment };
            sink.segment(at)?;
            let _ = sink.sample(at, sample)?;
        }
        Ok(sink.finish(&self.tables)?)
    }

    /// Standard output and standard error.
    fn report(&self, dialect: ReportDialect, options: &[&str]) -> (String, String) {
        let (mut out, mut err) = (Vec::new(), Vec::new());
        let args = ReportArgs { dialect, ..args(options) };
        run(&args, |sink| self.feed(sink), &mut out, &mut err).unwrap();
        (String::from_utf8(out).unwrap(), String::from_utf8(err).unwrap())
    }

    fn out(&self, options: &[&str]) -> String {
        self.report(ReportDialect::Native, options).0
    }

    fn json(&self, options: &[&str]) -> Value {
        serde_json::from_str(&self.out(&[&["--json"], options].concat())).unwrap()
    }
}

const MAIN: &str = "<main>|/var/www/public/index.php|3";
const LOOP: &str = r"App\Worker::loop|/var/www/src/Worker.php|42|ZEND_DO_FCALL";
const QUERY: &str = r"PDO::query|/var/www/src/Db.php|142|ZEND_DO_ICALL";
const SLEEP: &str = "sleep|<internal>|-1";

fn web() -> Profile {
    Profile::new()
        .add(5, &[QUERY, LOOP, MAIN], |_, sample| (sample.process, sample.thread) = (Some(7), Some(9)))
        .add(2, &[SLEEP, LOOP, MAIN], |profile, sample| {
            sample.process = Some(8);
            sample.labels = profile.labelled("http.url", "/checkout\u{1b}[2J");
        })
        .add(1, &[LOOP, MAIN], |_, _| {})
}

#[test]
fn the_default_report_is_two_tables() {
    let (out, err) = web().report(ReportDialect::Native, &[]);
    assert_eq!(err, "trace: 8 samples, 8 matched, sampling period 10000 us, ~0.08 s sampled wall\n");
    assert_eq!(
        out,
        r"# top by self time
count    pct  frame
    5  62.5%  PDO::query /var/www/src/Db.php:142
    2  25.0%  sleep <internal>:-1
    1  12.5%  App\Worker::loop /var/www/src/Worker.php:42

# top by total time
count     pct  frame
    8  100.0%  App\Worker::loop /var/www/src/Worker.php:42
    8  100.0%  <main> /var/www/public/index.php:3
    5   62.5%  PDO::query /var/www/src/Db.php:142
    2   25.0%  sleep <internal>:-1
"
    );
}

#[test]
fn short_paths_and_opcodes() {
    let out = web().out(&["--path=short", "--with-opcode", "--sections=self", "--crop=32"]);
    assert_eq!(
        out,
        "\
# top by self time
count    pct  frame
    5  62.5%  PDO::query Db.php…
    2  25.0%  sleep <internal>:…
    1  12.5%  App\\Worker::loop …
"
    );
}

#[test]
fn a_crop_may_keep_the_right_end() {
    let out = web().out(&["--no-line", "--sections=self", "--crop=25", "--crop-anchor=right"]);
    assert_eq!(
        out,
        "\
# top by self time
count    pct  frame
    5  62.5%  PDO::query
    2  25.0%  sleep
    1  12.5%  …rker::loop
"
    );
}

#[test]
fn neighbours_show_without_the_top_tables() {
    let web = web();
    let out = web.out(&["--top=0", "--no-line", "--callers=::loop$", "--callees=::loop$"]);
    assert_eq!(
        out,
        "\
# callers of frames matching /::loop$/
count     pct  frame
    8  100.0%  <main>

# callees of frames matching /::loop$/
count    pct  frame
    5  62.5%  PDO::query
    2  25.0%  sleep
    1  12.5%  <leaf>
"
    );
    assert_eq!(
        web.out(&["--top=0", "--callers=nobody"]),
        "# callers of frames matching /nobody/\n  (no matches)\n"
    );
    assert_eq!(web.out(&["--top=0"]), "");
    assert_eq!(web.out(&["--top=0", "--callers="]), "");
}

#[test]
fn the_tail_shows_labels_and_ages() {
    let out = web().out(&["--top=0", "--last=3", "--path=short"]);
    assert_eq!(
        out,
        r"# last 3 sample(s)
  ── sample (2 ago) ──
  [ 0] sleep <internal>:-1
  [ 1] App\Worker::loop Worker.php:42
  [ 2] <main> index.php:3
  # http.url = /checkout\x1b[2J
  ── sample (1 ago) ──
  [ 0] sleep <internal>:-1
  [ 1] App\Worker::loop Worker.php:42
  [ 2] <main> index.php:3
  # http.url = /checkout\x1b[2J
  ── sample (now) ──
  [ 0] App\Worker::loop Worker.php:42
  [ 1] <main> index.php:3
"
    );
}

#[test]
fn the_tail_can_be_cut() {
    let web = web();
    let one = "# last 1 sample(s)\n  ── sample (now) ──\n  [ 0] App\\Worker::…\n";
    let options = ["--top=0", "--last", "--last-depth=1", "--crop=20"];
    assert_eq!(web.report(ReportDialect::Reli, &options).0, one);
    assert_eq!(web.out(&options), format!("{one}  (1 more; --last-d…\n"));
    let none = Profile::new().out(&["--top=0", "--last"]);
    assert_eq!(none, "# last 0 sample(s)\n  (no samples)\n");
}

#[test]
fn sections_stand_beside_each_other() {
    let options = ["--no-line", "--last", "--sections=self+tail,callers", "--match=sleep"];
    let (out, err) = web().report(ReportDialect::Native, &options);
    assert_eq!(err, "trace: 8 samples, 2 matched, sampling period 10000 us, ~0.08 s sampled wall\n");
    assert_eq!(
        out,
        r"# top by self time    # last 1 sample(s)
count     pct  frame    ── sample (now) ──
    2  100.0%  sleep    [ 0] sleep
                        [ 1] App\Worker::loop
                        [ 2] <main>
                        # http.url = /checkout\x1b[2J
"
    );
}

#[test]
fn auto_crop_shares_the_terminal() {
    let args = args(&["--sections=self+total", "--crop=auto"]);
    let mut sink = borehole_analysis::ReportSink::new(args.query().unwrap());
    web().feed(&mut sink).unwrap();
    let mut out = Vec::new();
    super::render::render(&sink.into_view(), &[], &args.rendering(52), &mut out).unwrap();
    assert_eq!(
        String::from_utf8(out).unwrap(),
        "\
# top by self time         # top by total time
count    pct  frame        count     pct  frame
    5  62.5%  PDO::query…      8  100.0%  App\\Worke…
    2  25.0%  sleep <int…      8  100.0%  <main> /v…
    1  12.5%  App\\Worker…      5   62.5%  PDO::quer…
                               2   25.0%  sleep <in…
"
    );
}

#[test]
fn a_cut_table_says_so_except_to_those_who_know_reli() {
    let options = ["--limit=1", "--no-line", "--sections=self"];
    let reli = "\
# self-time top
+-------+--------+------------+
| count | pct    | frame      |
+-------+--------+------------+
| 5     |  62.5% | PDO::query |
+-------+--------+------------+
";
    assert_eq!(web().report(ReportDialect::Reli, &options).0, reli);
    let native = "# top by self time\ncount    pct  frame\n    5  62.5%  PDO::query\n";
    assert_eq!(web().out(&options), format!("{native}  (1 of 3 shown; --all for all)\n"));
    assert!(!web().out(&["--all", "--sections=self"]).contains("shown"));
}

#[test]
fn a_limit_is_what_it_is_in_other_commands() {
    let out = |option: &str| web().out(&[option, "--no-line"]);
    assert_eq!([out("--limit=0"), out("--limit=1")], [out("--all"), out("--top=1")]);
    for other in ["--top=1", "--all"] {
        assert!(rejected(&["--limit=1", other]).contains("cannot be used with"), "{other}");
    }
}

#[test]
fn names_are_cut_on_a_terminal_while_something_of_them_stays() {
    let on_terminal_of = |columns: usize| {
        let (args, mut out) = (args(&["--sections=self"]).fitting(true), Vec::new());
        let mut sink = ReportSink::new(args.query().unwrap());
        web().feed(&mut sink).unwrap();
        render(&sink.into_view(), &[], &args.rendering(columns), &mut out).unwrap();
        String::from_utf8(out).unwrap()
    };
    assert!(on_terminal_of(30).contains("…"), "{}", on_terminal_of(30));
    assert!(!on_terminal_of(29).contains("…"), "{}", on_terminal_of(29));
}

#[test]
fn hidden_frames_are_dropped_and_empty_stacks_skipped() {
    let options = ["--no-line", "--hide=^(PDO|App|<main>)", "--sections=total"];
    let (out, err) = web().report(ReportDialect::Native, &options);
    assert_eq!(err, "trace: 8 samples, 2 matched, sampling period 10000 us, ~0.08 s sampled wall\n");
    assert!(out.contains("\n    2  100.0%  sleep\n"), "{out}");
}

#[test]
fn samples_by_what_they_have() {
    let table = |by: &str| web().out(&["--top=0", "--by", by]);
    assert_eq!(
        table("pid"),
        "\
# samples by pid
count    pct    wall  pid
    5  62.5%  0.05 s  7
    2  25.0%  0.02 s  8
    1  12.5%  0.01 s  <none>
"
    );
    assert!(table("thread").contains("\n    5  62.5%  0.05 s  7/9\n"));
    assert!(table("http.url").contains("    2  25.0%  0.02 s  /checkout\\x1b[2J\n"));
    assert!(table("label:pid").contains("\n    8  100.0%  0.08 s  <none>\n"));
}

#[test]
fn frames_by_what_they_have() {
    let table = |by: &str| web().out(&["--top=0", "--by", by]);
    assert_eq!(
        table("class"),
        r"# self and total time by class
self    pct  total     pct  class
   5  62.5%      5   62.5%  PDO
   2  25.0%      8  100.0%  <none>
   1  12.5%      8  100.0%  App\Worker
"
    );
    assert!(table("file").contains("\n   0   0.0%      8  100.0%  /var/www/public/index.php\n"));
}

#[test]
fn by_comes_first_unless_it_has_a_place() {
    let order = |sections: &str| {
        let out = web().out(&["--by=pid", sections]);
        let titles = out.lines().filter_map(|line| line.strip_prefix("# "));
        titles.map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(order("--sections=self"), ["samples by pid", "top by self time"]);
    assert_eq!(order("--sections=self,by"), ["top by self time", "samples by pid"]);
}

#[test]
fn names_that_are_not_utf8_are_spelled_out() {
    let profile = Profile::new().add(1, &["caf?|/tmp/?.php|1"], |_, _| {});
    assert!(profile.out(&["--path=short"]).contains(r"  caf\xff \xff.php:1"));
    let json = profile.json(&[]);
    assert_eq!(json["self"]["rows"][0]["function"], "caf\u{fffd}");
}

#[test]
fn json_says_what_the_text_says() {
    let options = ["--json", "--top=1", "--by=pid", "--last=2", "--callers=sleep", "--callees=sleep"];
    let (out, err) = web().report(ReportDialect::Native, &options);
    assert_eq!((err.as_str(), out.lines().count()), ("", 1));
    assert!(out.starts_with(r#"{"schema_version":1,"summary":{"samples":8,"matched":8,"#));
    let json: serde_json::Value = serde_json::from_str(&out).unwrap();
    let expected = serde_json::json!({
        "distinct": 3,
        "rows": [{
            "frame": "PDO::query /var/www/src/Db.php:142", "function": "PDO::query",
            "file": "/var/www/src/Db.php", "line": 142,
            "count": 5, "percent": 62.5, "value": 50_000_000, "wall_ns": 50_000_000,
        }],
    });
    assert_eq!(json["self"], expected);
    assert_eq!(json["callers"]["pattern"], "sleep");
    assert_eq!(json["callees"]["rows"][0]["frame"], "<leaf>");
    assert_eq!(json["summary"]["periods"], serde_json::json!([{"period_ns": 10_000_000, "samples": 8}]));
    let by = serde_json::json!({
        "by": "pid", "distinct": 3,
        "rows": [{"pid": 7, "count": 5, "percent": 62.5, "value": 50_000_000, "wall_ns": 50_000_000}],
    });
    assert_eq!(json["by"], by);
    assert_eq!(json["last"][0]["labels"], serde_json::json!([["http.url", "/checkout\u{1b}[2J"]]));
    assert_eq!((&json["last"][0]["count"], &json["last"][0]["age"]), (&1.into(), &1.into()));
    assert_eq!(json["last"][1]["frames"][0]["line"], 42);
}

#[test]
fn json_leaves_out_what_is_unknown_or_not_asked_for() {
    let json = web().json(&["--top=0"]);
    let keys: Vec<_> = json.as_object().unwrap().keys().collect();
    assert_eq!(keys, ["schema_version", "summary"]);
    let json: serde_json::Value =
        serde_json::from_str(&web().out(&["--json", "--no-line", "--by=class"])).unwrap();
    assert_eq!(json["self"]["rows"][0].get("file"), None);
    let class = serde_json::json!({"count": 8, "percent": 100.0, "value": 80_000_000, "wall_ns": 80_000_000});
    assert_eq!(json["by"]["rows"][1].get("name"), None);
    assert_eq!(json["by"]["rows"][1]["total"], class);
}

#[test]
fn a_view_serializes_as_the_tables_of_the_document() {
    let options = ["--by=class", "--last=2", "--callers=sleep"];
    let mut sink = ReportSink::new(args(&options).query().unwrap());
    web().feed(&mut sink).unwrap();
    let (view, mut document) = (json!(sink.into_view()), web().json(&options));
    for key in ["self", "total", "last"] {
        assert_eq!(view[key], document[key], "{key}");
    }
    // The command adds what was asked for.
    let _ = document["callers"].as_object_mut().unwrap().remove("pattern").unwrap();
    let _ = document["by"].as_object_mut().unwrap().remove("by").unwrap();
    assert_eq!((&view["callers"], &view["by"]), (&document["callers"], &document["by"]));
    assert_eq!((view.get("callees"), view.get("states")), (None, None));
}

#[test]
fn json_has_wall_times_of_wall_time_only() {
    let mut profile = web();
    let options = ["--callers=sleep", "--callees=sleep", "--by=class"];
    assert_eq!(profile.json(&options)["summary"]["wall_ns"], 80_000_000);
    profile.mode = Mode::Cpu;
    for by in ["--by=class", "--by=pid"] {
        let json = profile.json(&["--callers=sleep", "--callees=sleep", by]);
        assert!(!json.to_string().contains("wall_ns"), "{json}");
        assert_eq!(
            (&json["summary"]["value_type"], &json["summary"]["unit"]),
            (&"cpu".into(), &"nanoseconds".into())
        );
        assert_eq!(json["self"]["rows"][0]["value"], 50_000_000);
    }
}

#[test]
fn json_has_lanes_and_labels_as_numbers_where_they_are() {
    let lane = |text| LaneId::parse(text).unwrap();
    let profile = Profile::new()
        .add(2, &["f"], |profile, sample| {
            (sample.process, sample.thread) = (Some(lane("100.1").to_process()), Some(lane("#2").to_u64()));
            let [size, depth, unit] = ["size", "depth", "bytes"].map(|text| profile.string(text));
            let number = |key, value, unit| Label { key, value: LabelValue::Number { value, unit } };
            let labels = [number(size, 3, Some(unit)), number(depth, 4, None)];
            sample.labels = Some(profile.tables.intern_labels(&labels).unwrap());
        })
        .add(1, &["f"], |_, sample| (sample.process, sample.thread) = (Some(-1), Some(9)));
    let json = profile.json(&["--last=9", "--by=thread"]);
    let [first, last] = [0, 1].map(|run| json["last"][run].clone());
    assert_eq!((&first["pid"], &first["tid"]), (&"100.1".into(), &"#2".into()));
    assert_eq!((&last["pid"], &last["tid"]), (&(-1).into(), &9.into()));
    assert_eq!(first["labels"], json!([["size", {"number": 3, "unit": "bytes"}], ["depth", 4]]));
    let rows = json["by"]["rows"].as_array().unwrap();
    let lanes: Value = rows.iter().map(|row| json!([row["pid"], row["tid"]])).collect();
    assert_eq!(lanes, json!([["100.1", "#2"], [-1, 9]]));
    assert!(rows.iter().all(|row| row.get("name").is_none()), "{json}");
    assert_eq!(profile.json(&["--by=pid"])["by"]["rows"][0]["pid"], "100.1");
}

#[test]
fn numbers_of_json_stop_at_64_bits() {
    let json = Profile::new().add(1_000_000_000_000_000, &["f"], |_, _| {}).json(&[]);
    for numbers in [&json["summary"], &json["self"]["rows"][0]] {
        assert_eq!((&numbers["value"], &numbers["wall_ns"]), (&i64::MAX.into(), &u64::MAX.into()));
    }
}

#[test]
fn an_enormous_run_is_no_trouble() {
    let profile = Profile::new().add(1_000_000_000_000, &["f", "main"], |_, _| {});
    let (out, err) = profile.report(ReportDialect::Native, &["--sections=self,tail", "--last=2"]);
    assert_eq!(
        err,
        "trace: 1000000000000 samples, 1000000000000 matched, sampling period 10000 us, \
         ~10000000000.00 s sampled wall\n"
    );
    assert!(out.contains("\n1,000,000,000,000  100.0%  f\n"), "{out}");
    assert_eq!(out.matches("── sample").count(), 2);
}

#[test]
fn a_bad_pattern_is_named_with_its_option_and_nothing_is_written() {
    let (mut out, mut err) = (Vec::new(), Vec::new());
    let read = |_: &mut dyn ProfileSink| -> anyhow::Result<()> { panic!("read before the pattern was seen") };
    let error = run(&args(&["--hide=a("]), read, &mut out, &mut err).unwrap_err();
    assert_eq!(format!("{error:#}"), "cannot use --hide: invalid pattern 'a(': unclosed group");
    assert!(out.is_empty() && err.is_empty());
}

#[test]
fn a_profile_that_cannot_be_read_writes_nothing() {
    let (mut out, mut err) = (Vec::new(), Vec::new());
    let read = |_: &mut dyn ProfileSink| -> anyhow::Result<()> { Err(anyhow!("bad file")) };
    let error = run(&args(&[]), read, &mut out, &mut err).unwrap_err();
    assert_eq!(error.to_string(), "bad file");
    assert!(out.is_empty() && err.is_empty());
}

#[test]
fn options_are_checked_before_anything_is_read() {
    assert!(rejected(&["--crop=wide"]).contains("expected a number of columns or auto, found 'wide'"));
    assert!(rejected(&["--sections=self+nothing"]).contains("unknown section 'nothing'"));
    assert!(rejected(&["--path=middle"]).contains("full, short"));
    assert!(rejected(&["--crop-anchor=top"]).contains("left, right"));
    assert!(rejected(&["--top=3", "--all"]).contains("--all"));
}
