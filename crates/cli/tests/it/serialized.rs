//! The JSON of the command is the views of the library, as they serialize.

use std::path::Path;

use borehole::heap::compare::compare;
use borehole::heap::findings::report;
use borehole::heap::retention::Follow;
use borehole::heap::views::{Heap, classes};
use borehole::heap::{Graph, HeapFile, OpenOptions, info};
use borehole::{Input, InputOptions, ReadOptions, Source, import_all};
use borehole_analysis::Inventory;
use borehole_testkit::corpus;
use serde::Serialize;
use serde_json::{Value, json};

use crate::program::run;

/// The JSON of the command on files of the corpus. Other words stay as they are.
fn printed(arguments: &[&str], words: &[&str]) -> Value {
    let path = |word: &&str| match word.contains('/') {
        true => corpus(word).to_str().unwrap().to_owned(),
        false => (*word).to_owned(),
    };
    let paths: Vec<_> = words.iter().map(path).collect();
    let arguments: Vec<&str> = arguments.iter().copied().chain(paths.iter().map(String::as_str)).collect();
    serde_json::from_slice(&run(&arguments).stdout).unwrap()
}

/// The serialized view, which must be all that the command prints, but for the keys in `added`.
fn assert_view(printed: &Value, view: impl Serialize, added: &[(&str, Value)]) {
    let mut view = serde_json::to_value(view).unwrap();
    view["schema_version"] = 1.into();
    for (key, value) in added {
        view[*key] = value.clone();
    }
    assert_eq!(printed, &view);
}

const HEAPS: [&str; 2] = ["php/heap/8.3.6.rdump", "php/heap/8.4.24.rdump"];

fn with_heaps(look: impl FnOnce([&dyn Graph; 2])) {
    let files = HEAPS.map(|name| HeapFile::open(Path::new(&corpus(name))).unwrap());
    let [first, second] = files.each_ref().map(|file| file.graph(&OpenOptions::default()).unwrap().graph);
    look([&*first, &*second]);
}

#[test]
fn heaps_are_printed_as_their_views_serialize() {
    with_heaps(|[graph, later]| {
        let heap = Heap::new(graph, Follow::default());
        assert_view(&printed(&["heap", "report", "--json"], &HEAPS[..1]), report(&heap), &[]);
        let format = [("format", "rdump".into())];
        assert_view(&printed(&["heap", "info", "--json"], &HEAPS[..1]), info(&graph), &format);
        let asked = printed(&["heap", "ask", "--json", "--limit", "0"], &[HEAPS[0], "top-classes"]);
        let mut classes = json!(classes(&heap));
        for (class, row) in classes.as_array_mut().unwrap().iter_mut().zip(asked["rows"].as_array().unwrap())
        {
            class["path"] = row["path"].clone();
        }
        assert_eq!(asked["rows"], classes);
        let node = asked["rows"][0]["largest_node_id"].to_string();
        let asked = printed(&["heap", "ask", "--json"], &[HEAPS[0], "node", &node]);
        let view = json!(heap.node(node.parse().unwrap()));
        for (key, value) in asked["rows"][0].as_object().unwrap() {
            assert_eq!(&view[key], value, "{key}");
        }

        let mut comparison = compare(&[graph, later], Follow::default());
        comparison.metrics.retain(|series| series.growth() != 0.0);
        let differ = |counts: &[u64], growth: i64| growth != 0 || counts.first() != counts.last();
        comparison.types.retain(|row| differ(&row.counts, row.growth()));
        comparison.classes.retain(|row| differ(&row.counts, row.growth()));
        for list in [&mut comparison.holders, &mut comparison.added, &mut comparison.removed] {
            list.retain(|growth, _| growth != 0);
        }
        assert_view(&printed(&["heap", "compare", "--json", "--limit", "0"], &HEAPS), comparison, &[]);
    });
}

#[test]
fn contents_of_profiles_are_printed_as_they_serialize() {
    for (name, has_ticks) in [("rbt/bitflip_middle.rbt", false), ("tachyon/corpus/23_short.bin", true)] {
        let mut inventory = Inventory::default();
        let options = InputOptions { read: ReadOptions::lenient(), ..InputOptions::default() };
        let input = Input::open(Source::path(corpus(name)).unwrap(), &options).unwrap();
        let recovery = import_all([input], &mut inventory).unwrap();
        let printed = printed(&["info", "--json"], &[name]);
        let (inventory, recovery) = (json!(inventory), json!(recovery));
        for (key, value) in inventory.as_object().unwrap().iter().filter(|(key, _)| *key != "ticks") {
            assert_eq!(&printed[key], value, "{key}");
        }
        assert_eq!(printed["ticks"].is_null(), !has_ticks);
        for key in ["lost_bytes", "warnings", "more_warnings", "notes"] {
            assert_eq!(printed[key], recovery[key], "{key}");
        }
    }
}
