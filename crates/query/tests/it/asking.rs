//! Answers of queries, and the files that are read for them.

use std::collections::BTreeMap;

use borehole::model::{
    Context, Frame, Label, LabelValue, ProfileSink, Recovery, Sample, Sampled, Segment, Tables, ValueType,
    Weigher,
};
use borehole_analysis::diff::{DiffQuery, DiffSink};
use borehole_analysis::{LineRows, Query, ReportSink};
use borehole_query::{Error, InputDetails, Lake, SampleChoice, SampleKey, SampleSelector};
use borehole_testkit::{project_file, read_corpus};

use crate::world::{HOUR_US, NOON_US, add, add_folded, lake, number, read, rows, source, whole};

#[test]
fn functions_have_the_numbers_of_a_report() {
    let (_scratch, lake) = lake();
    let bytes = read_corpus("rbt/daemon_worker.rbt");
    add(&lake, source("worker", "web", &bytes), &bytes).unwrap();
    let query = Query { lines: LineRows::Together, limit: None, ..Query::default() };
    let (mut report, mut tables) = (ReportSink::new(query), Tables::default());
    read("worker", bytes, &mut tables, &mut report);
    report.finish(&tables).unwrap();
    let view = report.into_view();
    let mut expected: BTreeMap<String, [u64; 2]> = BTreeMap::new();
    for (table, place) in [(&view.self_table, 0), (&view.total_table, 1)] {
        for row in &table.rows {
            let name = String::from_utf8(row.frame.function.clone()).unwrap();
            expected.entry(name).or_default()[place] += row.share.count;
        }
    }
    let found = rows(&lake, &borehole_query::top(&SampleChoice::default(), None));
    let by_name =
        found.iter().map(|row| (row[0].clone(), [1, 2].map(|column: usize| row[column].parse().unwrap())));
    assert_eq!(by_name.collect::<BTreeMap<_, _>>(), expected);
    let view = rows(
        &lake,
        "SELECT function, sum(self), sum(total) FROM functions GROUP BY 1 ORDER BY 2 DESC, 3 DESC, 1",
    );
    let named: Vec<_> = found.iter().map(|row| row[..3].to_vec()).collect();
    assert_eq!(view, named);
}

/// Files that measure different things, with the service of each.
const KINDS: [(&str, &str); 3] =
    [("rbt/daemon_worker.rbt", "php"), ("pprof/go-cpu.pb.gz", "go"), ("pprof/go-heap-in-use.pb.gz", "heap")];

/// The self values of functions in a report, without zeros.
fn weights(bytes: &[u8], asked: &str) -> BTreeMap<String, i128> {
    let query = Query { lines: LineRows::Together, limit: None, ..Query::default() };
    let mut report = ReportSink::new(query).weighing(Weigher::new(Some(asked), Sampled::Count));
    let mut tables = Tables::default();
    read("file", bytes.to_vec(), &mut tables, &mut report);
    report.finish(&tables).unwrap();
    let mut weights: BTreeMap<String, i128> = BTreeMap::new();
    for row in &report.into_view().self_table.rows {
        *weights.entry(String::from_utf8(row.frame.function.clone()).unwrap()).or_default() +=
            row.share.value;
    }
    weights.retain(|_, weight| *weight != 0);
    weights
}

#[test]
fn values_of_every_kind_have_the_numbers_of_a_report() {
    let (_scratch, lake) = lake();
    for (file, service) in KINDS {
        let bytes = read_corpus(file);
        add(&lake, source(file, service, &bytes), &bytes).unwrap();
    }
    let session = lake.session().unwrap();
    let asked = [(0, "samples"), (1, "samples"), (1, "cpu"), (2, "inuse_space"), (2, "alloc_objects/count")];
    for (place, value) in asked {
        let (file, service) = KINDS[place];
        let choice = SampleChoice { service: Some(service.to_owned()), ..SampleChoice::default() };
        let addend = session.addend(&[&choice], Some(value)).unwrap();
        let found = rows(&lake, &borehole_query::top(&SampleChoice { addend, ..choice }, None));
        let mut found: BTreeMap<String, i128> =
            found.iter().map(|row| (row[0].clone(), row[1].parse().unwrap())).collect();
        found.retain(|_, weight| *weight != 0);
        let expected = weights(&read_corpus(file), value);
        assert!(!expected.is_empty());
        assert_eq!(found, expected, "{file} {value}");
    }
}

#[test]
fn numbers_of_different_kinds_are_never_added_up() {
    let (_scratch, lake) = lake();
    let bytes = read_corpus(KINDS[0].0);
    add(&lake, source(KINDS[0].0, KINDS[0].1, &bytes), &bytes).unwrap();
    let alone = whole(&lake, None);
    assert_eq!(alone.1, "samples/count");
    for (file, service) in &KINDS[1..] {
        let bytes = read_corpus(file);
        add(&lake, source(file, service, &bytes), &bytes).unwrap();
    }
    let session = lake.session().unwrap();
    let of = |service: &str, asked: Option<&str>| {
        let choice = SampleChoice { service: Some(service.to_owned()), ..SampleChoice::default() };
        let addend = session.addend(&[&choice], asked)?;
        let others: Vec<_> = addend.others().iter().map(ToString::to_string).collect();
        Ok::<_, borehole_query::Error>((addend.value_type().to_string(), others.join(" ")))
    };
    assert_eq!(of("php", None).unwrap(), ("samples/count".to_owned(), String::new()));
    let heap = of("heap", None).unwrap();
    assert_eq!(heap.0, "inuse_space/bytes");
    assert!(heap.1.contains("alloc_space/bytes") && !heap.1.contains("inuse_space"), "{}", heap.1);
    let error = of("heap", Some("wall")).unwrap_err().to_string();
    let known = "alloc_objects/count, alloc_space/bytes, inuse_objects/count, inuse_space/bytes";
    assert_eq!(error, format!("unknown value type: expected one of {known}, found wall"));
    assert_eq!(number(&lake, "SELECT count(*) FROM samples WHERE service = 'heap'"), 0);
    // Each kind has only its own stacks, whichever file comes first.
    let php = |asked| whole(&lake, asked).0.into_iter().filter(|line| alone.0.contains(line)).count();
    assert_eq!(php(Some("inuse_space")), 0);
    assert_eq!(php(Some("samples")), alone.0.len());
}

#[test]
fn too_large_sums_become_the_maximum() {
    let (_scratch, lake) = lake();
    let mut adding = lake.adding();
    let (tables, mut addition) = adding.input(source("large", "web", b"large"));
    let value_types = vec![ValueType::new("space", "bytes"), ValueType::new("wait", "s")];
    let segment = Segment { value_types, is_uncounted: true, ..Segment::default() };
    let name = tables.intern_string(b"main").unwrap();
    let frame = tables.intern_frame(&Frame::named(name)).unwrap();
    let stack = Some(tables.intern_stack(None, frame).unwrap());
    let at = Context { tables, segment: &segment };
    addition.segment(at).unwrap();
    for _ in 0..3 {
        let values = &[i64::MAX / 2, 5_000_000_000];
        let _ = addition.sample(at, &Sample { stack, count: 1, values, ..Sample::default() }).unwrap();
    }
    addition.commit(tables, &Recovery::default()).unwrap();
    let largest = i64::MAX.to_string();
    assert_eq!(whole(&lake, Some("space")).0, [format!("main {largest}")]);
    assert_eq!(whole(&lake, None), (vec![format!("main {largest}")], "wait/nanoseconds".to_owned()));
    let session = lake.session().unwrap();
    let addend = session.addend(&[&SampleChoice::default()], Some("space")).unwrap();
    let found = rows(&lake, &borehole_query::top(&SampleChoice { addend, ..SampleChoice::default() }, None));
    assert_eq!(found, [["main", &largest, &largest, "100", "100"]]);
}

#[test]
fn a_recursive_function_counts_once_per_sample() {
    let (_scratch, lake) = lake();
    add_folded(&lake, "web", "main;walk;walk;walk 5\nmain;walk;read 2\n");
    let found = rows(&lake, &borehole_query::top(&SampleChoice::default(), Some(3)));
    let expected = [
        ["walk", "5", "7", "71.43", "100"],
        ["read", "2", "2", "28.57", "28.57"],
        ["main", "0", "7", "0", "100"],
    ];
    assert_eq!(found, expected);
}

#[test]
fn stack_functions_return_their_values() {
    let (_scratch, lake) = lake();
    add_folded(&lake, "web", "main;App\\Db::query;App\\Db::query;tokio::run::poll 1\n");
    let one = |call: &str| rows(&lake, &format!("SELECT {call} FROM stacks"))[0][0].clone();
    assert_eq!(one("leaf(stack)"), "tokio::run::poll");
    assert_eq!(one("root(stack)"), "main");
    assert_eq!(one("depth(stack)"), "4");
    assert_eq!(one("folded(stack)"), "main;App\\Db::query;App\\Db::query;tokio::run::poll");
    assert_eq!(one("frames_of(stack)"), r#"["main","App\\Db::query","tokio::run::poll"]"#);
    assert_eq!(one("folded(collapse_package(stack))"), "main;App;tokio::run");
    assert_eq!(one("contains_function(stack, '^App')"), "true");
    assert_eq!(one("contains_function(stack, 'nothing$')"), "false");
    let session = lake.session().unwrap();
    let error = session.ask("SELECT leaf('text') FROM stacks").err().unwrap().to_string();
    assert!(error.contains("expected leaf(stack) with the column `stack` of `stacks`"), "{error}");
    let mut answer = session.ask("SELECT contains_function(stack, '(') FROM stacks").unwrap();
    assert!(answer.next_rows().unwrap_err().to_string().contains("unclosed group"));
}

#[test]
fn query_errors_are_in_our_style() {
    let (_scratch, lake) = lake();
    let session = lake.session().unwrap();
    let error = |sql: &str| match session.ask(sql) {
        Ok(mut answer) => answer.next_rows().unwrap_err(),
        Err(error) => error,
    };
    let named = [
        ("SELECT * FROM x", "unknown table x"),
        ("SELECT * FROM x.y", "unknown table x.y"),
        (
            "SELECT x FROM stacks",
            "unknown column x: expected one of stacks.stack_id, stacks.stack, stacks.frames",
        ),
        ("SELECT service", "unknown column service"),
        (
            "SELECT colapse_package(stack) FROM stacks",
            "unknown function colapse_package; did you mean 'collapse_package'?",
        ),
    ];
    for (sql, said) in named {
        let error = error(sql);
        assert_eq!(error.to_string(), said, "{sql}");
        assert!(error.hint().is_some_and(|hint| hint.contains("--schema")), "{sql}");
    }
    let others = [
        ("SELEC 1", "expected an SQL statement, found SELEC at line 1, column 1"),
        ("SELECT 1 FROM", "expected identifier, found EOF"),
        ("SELECT 'x", "unterminated string literal at line 1, column 8"),
        ("SELECT label(1)", "expected label(labels, key), found 1 argument"),
        ("SELECT 1; SELECT 2", "unsupported: the context currently only supports a single SQL statement"),
        ("DROP TABLE samples", "DDL not supported: DropTable"),
        ("SELECT CAST('a' AS INT)", "cannot cast string 'a' to value of Int32 type"),
        ("SELECT 1 / 0", "divide by zero error"),
    ];
    for (sql, said) in others {
        let error = error(sql);
        assert_eq!((error.to_string().as_str(), error.hint()), (said, None), "{sql}");
    }
}

#[test]
fn only_files_that_may_match_are_read() {
    let (_scratch, lake) = lake();
    for (service, day) in [("web", 0), ("web", 1), ("web", 2), ("api", 0), ("api", 1)] {
        let name = format!("{service} {day}");
        let began = (NOON_US + day * 24 * HOUR_US) * 1000;
        let source = InputDetails { began_unix_ns: Some(began), ..source(&name, service, name.as_bytes()) };
        add(&lake, source, format!("main;{service} 1\n").as_bytes()).unwrap();
    }
    let files = |condition: &str| {
        let plan = rows(&lake, &format!("EXPLAIN SELECT sum(value) FROM samples WHERE {condition}"));
        plan.iter().map(|row| row[1].matches(".parquet").count()).max().unwrap()
    };
    assert_eq!(files("true"), 5);
    assert_eq!(files("service = 'web'"), 3);
    assert_eq!(files("time >= '2026-11-02T00:00:00Z' AND time < '2026-11-03T00:00:00Z'"), 2);
    assert_eq!(files("service = 'api' AND time > '2026-11-01T18:00:00Z'"), 1);
    assert_eq!(files("service = 'none'"), 0);
    assert_eq!(files("label(labels, 'uri') = '/cart'"), 0);
    assert_eq!(files("labels['uri'] = '/cart'"), 0);
    assert_eq!(files("labels['uri'] IN ('/cart', '/buy')"), 0);
}

#[test]
fn filters_on_labels_select_files() {
    let (_scratch, lake) = lake();
    let bytes = read_corpus("rbt/annotations.rbt");
    add(&lake, source("labelled", "web", &bytes), &bytes).unwrap();
    add_folded(&lake, "web", "main 1\n");
    let labels = rows(&lake, "SELECT labels FROM samples WHERE labels IS NOT NULL LIMIT 1");
    let object: serde_json::Value = serde_json::from_str(&labels[0][0]).unwrap();
    let (key, value) = object.as_object().unwrap().iter().next().unwrap();
    for labelled in [format!("label(labels, '{key}')"), format!("labels['{key}']")] {
        let condition = format!("{labelled} = '{}'", value.as_str().unwrap());
        let plan = rows(&lake, &format!("EXPLAIN SELECT sum(value) FROM samples WHERE {condition}"));
        assert_eq!(plan.iter().map(|row| row[1].matches(".parquet").count()).max(), Some(1));
        assert!(number(&lake, &format!("SELECT sum(value) FROM samples WHERE {condition}")) > 0);
    }
}

#[test]
fn labels_are_maps_that_can_be_listed_indexed_and_grouped_by() {
    let (_scratch, lake) = lake();
    let hostile = [("it's", "a=b;\"c\""), ("é\n", ""), ("n", "3"), ("{}", "[]")];
    for (name, version) in [("a", "1"), ("b", "2")] {
        let pairs = hostile.into_iter().chain([("version", version)]);
        let labels = pairs.map(|(key, value)| (key.to_owned(), value.to_owned())).collect();
        add(&lake, InputDetails { labels, ..source(name, "web", name.as_bytes()) }, b"main;f 2\n").unwrap();
    }
    add_folded(&lake, "api", "main 1\n");
    for _ in 0..2 {
        let keys = "SELECT DISTINCT unnest(map_keys(labels)) AS key FROM samples ORDER BY key";
        assert_eq!(rows(&lake, keys), [["it's"], ["n"], ["version"], ["{}"], ["é\n"]]);
        for (key, value) in hostile {
            let key = key.replace('\'', "''");
            let sql = format!("SELECT DISTINCT labels['{key}'] FROM samples WHERE service = 'web'");
            assert_eq!(rows(&lake, &sql), [[value]]);
        }
        let sums = "SELECT labels['version'] AS version, sum(value) FROM samples GROUP BY 1 ORDER BY 1";
        assert_eq!(rows(&lake, sums), [["1", "2"], ["2", "2"], ["", "1"]]);
        assert_eq!(rows(&lake, "SELECT count(*) FROM samples GROUP BY labels"), [["1"], ["1"], ["1"]]);
        let json = rows(&lake, "SELECT labels FROM samples WHERE labels['version'] = '1'");
        let object: serde_json::Value = serde_json::from_str(&json[0][0]).unwrap();
        assert_eq!(object["it's"], "a=b;\"c\"");
        lake.compact().unwrap();
    }
}

#[test]
fn sources_are_found_by_their_start() {
    let (_scratch, lake) = lake();
    let bytes = read_corpus("rbt/annotations_ts.rbt");
    add(&lake, source("timed", "web", &bytes), &bytes).unwrap();
    let ends = |what: &str| number(&lake, &format!("SELECT CAST({what} AS BIGINT) FROM sources"));
    let (first, last) = (ends("time"), ends("until"));
    assert!(first < last);
    let between =
        format!("arrow_cast({}, 'Timestamp(Microsecond, Some(\"+00:00\"))')", i64::midpoint(first, last));
    let count = |condition: &str| number(&lake, &format!("SELECT count(*) FROM sources WHERE {condition}"));
    assert_eq!(count(&format!("time < {between}")), 1);
    assert_eq!(count(&format!("time > {between}")), 0);
    assert_eq!(count(&format!("until > {between}")), 1);
    let info = lake.info().unwrap();
    let of_sources = info.tables.iter().find(|table| table.name == "sources").unwrap();
    assert_eq!(of_sources.span_us, Some((first, last)));
}

#[test]
fn repeated_labels_select_files() {
    let (_scratch, lake) = lake();
    let mut adding = lake.adding();
    let (tables, mut addition) = adding.input(source("twice", "web", b"twice"));
    let mut text = |text: &[u8]| tables.intern_string(text).unwrap();
    let [key, x, y] = [&b"k"[..], b"x", b"y"].map(&mut text);
    let labels = [x, y].map(|value| Label { key, value: LabelValue::Text(value) });
    let labels = Some(tables.intern_labels(&labels).unwrap());
    let at = Context { tables, segment: &Segment::default() };
    let _ = addition.sample(at, &Sample { labels, count: 7, ..Sample::default() }).unwrap();
    addition.commit(tables, &Recovery::default()).unwrap();
    let found = rows(&lake, "SELECT label(labels, 'k'), sum(value) FROM samples GROUP BY 1");
    assert_eq!(found, [[r#"["x","y"]"#, "7"]]);
    let sql = "SELECT sum(value) FROM samples WHERE label(labels, 'k') = ";
    assert_eq!(number(&lake, &format!("{sql}'[\"x\",\"y\"]'")), 7);
    assert_eq!(number(&lake, &format!("{sql}'x'")), 0);
}

#[test]
fn trends_have_a_focus() {
    let (_scratch, lake) = lake();
    add_folded(&lake, "web", "main;a;f 3\nmain;b;f 1\n");
    let trend = |focus: Option<&str>| {
        let choice = SampleChoice { focus: focus.map(str::to_owned), ..SampleChoice::default() };
        rows(&lake, &borehole_query::trend("f", HOUR_US, &choice, &[])).remove(0)[1..].join(" ")
    };
    // Shares are in percent of all samples, as in `top`.
    assert_eq!(trend(None), "4 4 4 100 100");
    assert_eq!(trend(Some("^a$")), "4 3 3 75 75");
    assert_eq!(trend(Some("nothing")), "4 0 0 0 0");
}

#[test]
fn shares_change_from_one_day_to_the_next() {
    let (_scratch, lake) = lake();
    for (day, text) in [(0, "main;old 3\nmain;same 1\n"), (1, "main;new 1\nmain;same 3\n")] {
        let began = (NOON_US + day * 24 * HOUR_US) * 1000;
        let source = InputDetails { began_unix_ns: Some(began), ..source(text, "web", text.as_bytes()) };
        add(&lake, source, text.as_bytes()).unwrap();
    }
    let half = NOON_US + 12 * HOUR_US;
    let before = SampleChoice { until_us: Some(half), ..SampleChoice::default() };
    let after = SampleChoice { since_us: Some(half), ..SampleChoice::default() };
    let session = lake.session().unwrap();
    let (mut tables, mut sink) = (Tables::default(), DiffSink::new(DiffQuery::default()));
    for side in [&before, &after] {
        session.replay(side, false, &mut tables, &mut sink).unwrap();
        sink.begin_after();
    }
    sink.finish(&tables).unwrap();
    let shares = |name: &[u8]| {
        let view = sink.clone().into_view();
        let row = view.functions.into_iter().find(|row| row.frame.function == name).unwrap().self_change;
        (row.before.value, row.after.value)
    };
    assert_eq!([shares(b"old"), shares(b"same")], [(0.75, 0.0), (0.25, 0.75)]);
    let trend = rows(&lake, &borehole_query::trend("same", 24 * HOUR_US, &SampleChoice::default(), &[]));
    let shares: Vec<_> = trend.iter().map(|row| (row[0].as_str(), row[4].as_str())).collect();
    assert_eq!(shares, [("2026-11-01T00:00:00Z", "25"), ("2026-11-02T00:00:00Z", "75")]);
}

#[test]
fn queries_change_nothing() {
    let (_scratch, lake) = lake();
    let session = lake.session().unwrap();
    for sql in [
        "DROP TABLE samples",
        "INSERT INTO samples SELECT * FROM samples",
        "COPY samples TO '/tmp/x.csv'",
        "SET datafusion.execution.batch_size = 1",
        "SELECT 1; SELECT 2",
        "SELECT nothing FROM samples",
    ] {
        let error = session.ask(sql).err().unwrap_or_else(|| panic!("{sql} was answered")).to_string();
        assert!(!error.is_empty() && !error.contains('\n'), "{sql}: {error}");
    }
}

#[test]
fn the_documentation_lists_all_tables_views_and_functions() {
    let document = std::fs::read_to_string(project_file("docs/lake.md")).unwrap();
    assert!(
        document.contains(&borehole_query::page()),
        "docs/lake.md: expected the output of `borehole lake query --schema`"
    );
}

/// A folded profile of a host and a version.
fn add_version(lake: &borehole_query::Lake, host: &str, version: &str, text: &str) {
    let name = format!("{host} {version} {text}");
    let labels = vec![("service.version".to_owned(), version.to_owned())];
    let details =
        InputDetails { host: Some(host.to_owned()), labels, ..source(&name, "web", name.as_bytes()) };
    add(lake, details, text.as_bytes()).unwrap();
}

#[test]
fn samples_are_grouped_and_chosen_by_where_they_come_from() {
    let (_scratch, lake) = lake();
    add_version(&lake, "a", "1", "main;query 6\nmain;render 2\n");
    add_version(&lake, "b", "1", "main;query 1\n");
    add_version(&lake, "b", "2", "main;query 1\nmain;render 3\n");
    let groups = |keys: &[&str], choice: &SampleChoice| {
        let keys: Vec<_> = keys.iter().map(|key| SampleKey::new(key)).collect();
        let found = rows(&lake, &borehole_query::groups(choice, &keys, None));
        found.iter().map(|row| row.join(" ")).collect::<Vec<_>>()
    };
    let all = SampleChoice::default();
    assert_eq!(groups(&["version"], &all), ["1 9 69.23", "2 4 30.77"]);
    assert_eq!(groups(&["host", "service.version"], &all), ["a 1 8 61.54", "b 2 4 30.77", "b 1 1 7.69"]);
    let focused = SampleChoice { focus: Some("^query$".to_owned()), ..SampleChoice::default() };
    assert_eq!(groups(&["version"], &focused), ["1 9 7 77.78", "2 4 1 25"]);
    for (selector, expected) in [("version=2", "4"), ("version!=2", "9"), ("host=b", "5"), ("pod!=x", "13")] {
        let selectors = vec![SampleSelector::parse(selector).unwrap()];
        let choice = SampleChoice { selectors, ..SampleChoice::default() };
        let value = groups(&["service"], &choice).remove(0);
        assert_eq!(value, format!("web {expected} 100"), "{selector}");
    }
    let step = borehole_query::trend("query", HOUR_US, &all, &[SampleKey::new("version")]);
    let trend: Vec<_> = rows(&lake, &step).iter().map(|row| row[1..4].join(" ")).collect();
    assert_eq!(trend, ["1 9 7", "2 4 1"]);
    let facts = rows(&lake, "SELECT DISTINCT label(labels, 'service.version') FROM sources ORDER BY 1");
    assert_eq!(facts, [["1"], ["2"]]);
    let by_source = "SELECT count(*) FROM samples JOIN sources USING (source) WHERE samples.host = 'b'";
    assert_eq!(number(&lake, by_source), 3);
}

/// Notes the segments and samples of an export.
#[derive(Default)]
struct Exported(Vec<String>);

impl ProfileSink for Exported {
    fn segment(&mut self, at: Context<'_>) -> std::io::Result<()> {
        let Segment { start_unix_ns, value_types, .. } = at.segment;
        let kinds: Vec<_> = value_types.iter().map(ToString::to_string).collect();
        self.0.push(format!("{:?} {}", start_unix_ns.map(|ns| ns / 1000 - NOON_US), kinds.join(",")));
        Ok(())
    }

    fn sample(&mut self, at: Context<'_>, sample: &Sample<'_>) -> std::io::Result<std::ops::ControlFlow<()>> {
        let text = |id| String::from_utf8_lossy(at.tables.string(id)).into_owned();
        let labels = sample.labels.map(|labels| at.tables.labels(labels).iter());
        let labels: Vec<_> = labels
            .into_iter()
            .flatten()
            .map(|label| match label.value {
                LabelValue::Text(value) => format!("{}={}", text(label.key), text(value)),
                LabelValue::Number { value, .. } => format!("{}={value}", text(label.key)),
            })
            .collect();
        let time_us = sample.time_ns.map(|ns| ns / 1000);
        self.0.push(format!("{time_us:?} {} {} {:?}", labels.join(","), sample.count, sample.values));
        Ok(std::ops::ControlFlow::Continue(()))
    }
}

fn exported(lake: &Lake, sql: &str) -> Result<Vec<String>, Error> {
    let session = lake.session()?;
    let answer = session.ask(sql)?;
    let mut sink = Exported::default();
    session.export(answer, &mut sink)?;
    Ok(sink.0)
}

#[test]
fn exports_carry_time_labels_kind_and_unit() {
    let (_scratch, lake) = lake();
    for (name, version, hours) in [("a", "1", 0), ("b", "2", 1)] {
        let labels = vec![("version".to_owned(), version.to_owned())];
        let began_unix_ns = Some((NOON_US + hours * HOUR_US) * 1000);
        let details = InputDetails { labels, began_unix_ns, ..source(name, "web", name.as_bytes()) };
        add(&lake, details, b"main;f 2\n").unwrap();
    }
    let all = exported(&lake, "SELECT stack_id, value, time, labels FROM samples ORDER BY time").unwrap();
    assert_eq!(all, ["Some(0) ", "Some(0) version=1 2 []", "Some(3600000000) version=2 2 []"]);
    let sums = exported(&lake, "SELECT stack_id, sum(value) FROM samples GROUP BY 1").unwrap();
    assert_eq!(sums, ["None ", "None  4 []"]);
    let keys = [SampleKey::new("version")];
    let by_version = exported(&lake, &SampleChoice::default().stacks_by(&keys)).unwrap();
    assert_eq!(by_version, ["None ", "None version=1 2 []", "None version=2 2 []"]);
    let kinds = "SELECT folded(stack) AS stack, 5 AS value, k AS kind, 'bytes' AS unit FROM stacks";
    let one = exported(&lake, &format!("{kinds} CROSS JOIN (SELECT 'inuse_space' AS k)")).unwrap();
    assert_eq!(one, ["None inuse_space/bytes", "None  1 [5]"]);
    let mixed = format!("{kinds} CROSS JOIN (SELECT 'inuse_space' AS k UNION ALL SELECT 'alloc_space')");
    let error = exported(&lake, &mixed).unwrap_err().to_string();
    assert!(error.starts_with("a profile needs numbers of one kind: expected "), "{error}");
}
