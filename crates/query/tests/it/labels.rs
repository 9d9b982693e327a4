//! Labels of any text, wherever they come from.

use borehole::model::{
    Context, Frame, Label, LabelValue, ProfileSink as _, Recovery, Sample, Segment, Tables,
};
use borehole_query::{
    AmendMode, InputDetails, Lake, LakeValue, Relabeling, RowChoice, SampleChoice, SampleKey, SampleSelector,
    groups,
};
use borehole_testkit::hostile_labels::hostile_labels;
use borehole_text::lossless::escape;

use crate::world::{add, lake, number, source};

/// The text of a lake for a text of a file, or for one that its user gives. No text of a lake has the character NUL.
fn stored(text: &str, is_given: bool) -> String {
    if is_given { text.replace('\0', "\u{fffd}00") } else { escape(text.as_bytes()).into_owned() }
}

/// A literal of SQL.
fn literal(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}

/// Adds a sample for each label, the first one once, the second twice, and so on.
fn add_sampled(lake: &Lake, labels: &[(String, String)]) {
    let mut adding = lake.adding();
    let (tables, mut addition) = adding.input(source("sampled", "sampled", b"sampled"));
    let segment = Segment::default();
    addition.segment(Context { tables, segment: &segment }).unwrap();
    for (count, (key, value)) in (1..).zip(labels) {
        let mut text = |text: &str| tables.intern_string(text.as_bytes()).unwrap();
        let label = Label { key: text(key), value: LabelValue::Text(text(value)) };
        let (labels, stack) = (Some(tables.intern_labels(&[label]).unwrap()), stack(tables, count));
        let sample = Sample { stack, count, labels, ..Sample::default() };
        let _ = addition.sample(Context { tables, segment: &segment }, &sample).unwrap();
    }
    addition.commit(tables, &Recovery::default()).unwrap();
}

fn stack(tables: &mut Tables, number: u64) -> Option<borehole::model::StackId> {
    let function = tables.intern_string(format!("f{number}").as_bytes()).unwrap();
    let frame = tables.intern_frame(&Frame::named(function)).unwrap();
    tables.intern_stack_leaf_first(&[frame]).unwrap()
}

/// The sums of a service by the value of a label; absent labels have none.
fn sums(lake: &Lake, service: &str, key: &str) -> Vec<(Option<String>, String)> {
    let choice = SampleChoice { service: Some(service.to_owned()), ..SampleChoice::default() };
    let session = lake.session().unwrap();
    let mut answer = session.ask(&groups(&choice, &[SampleKey::label(key)], None)).unwrap();
    let mut sums = Vec::new();
    while let Some(rows) = answer.next_rows().unwrap() {
        sums.extend(rows.into_iter().map(|row| match &row[0] {
            LakeValue::Text(text) => (Some(text.clone()), row[1].to_text()),
            _ => (None, row[1].to_text()),
        }));
    }
    sums
}

#[track_caller]
fn assert_found(lake: &Lake, service: &str, labels: &[(String, String)]) {
    for (count, (key, value)) in (1..).zip(labels) {
        let said = format!("{service} {key:.40?} {value:.40?}");
        let [key, value] = [key, value].map(|text| stored(text, service != "sampled"));
        let (key_sql, value_sql) = (literal(&key), literal(&value));
        for column in [format!("labels[{key_sql}]"), format!("label(labels, {key_sql})")] {
            let sql = format!(
                "SELECT CAST(sum(value) AS BIGINT) FROM samples WHERE service = '{service}' AND {column} = {value_sql}"
            );
            assert_eq!(number(lake, &sql), count, "{said}");
        }
        let keys = format!(
            "SELECT count(*) FROM samples WHERE service = '{service}' AND array_has(map_keys(labels), {key_sql})"
        );
        assert_eq!(number(lake, &keys), 1, "{said}");
        assert!(sums(lake, service, &key).contains(&(Some(value.clone()), count.to_string())), "{said}");
        let choice = SampleChoice {
            service: Some(service.to_owned()),
            selectors: vec![SampleSelector::equal(SampleKey::label(&key), value)],
            ..SampleChoice::default()
        };
        let session = lake.session().unwrap();
        let mut answer = session.ask(&borehole_query::top(&choice, None)).unwrap();
        let objects = answer.next_objects().unwrap().unwrap_or_default();
        let number =
            |object: &String| serde_json::from_str::<serde_json::Value>(object).unwrap()["self"].as_i64();
        assert_eq!(objects.iter().filter_map(number).sum::<i64>(), count, "{said}");
    }
}

#[test]
fn hostile_labels_are_added_changed_found_and_grouped_by_like_others() {
    let (_scratch, lake) = lake();
    let labels = hostile_labels();
    add_sampled(&lake, &labels);
    for (count, label) in (1..).zip(&labels) {
        let text = format!("main;f{count} {count}\n");
        for (service, labels) in [("given", vec![label.clone()]), ("relabelled", Vec::new())] {
            let name = format!("{service} {count}");
            let details = InputDetails { labels, ..source(&name, service, name.as_bytes()) };
            add(&lake, details, text.as_bytes()).unwrap();
        }
        let change = Relabeling::default().set(&format!("label:{}", label.0), &label.1);
        let choice = RowChoice { sources: vec![format!("relabelled {count}")], ..RowChoice::default() };
        lake.relabel(&choice, &change, AmendMode::Change).unwrap();
    }
    for service in ["sampled", "given", "relabelled"] {
        assert_found(&lake, service, &labels);
    }
    lake.compact().unwrap();
    for service in ["sampled", "given", "relabelled"] {
        assert_found(&lake, service, &labels);
    }
    assert_eq!(lake.check().unwrap().findings, []);
}
