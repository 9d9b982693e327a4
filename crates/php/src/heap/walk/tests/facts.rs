//! Compares heaps with the facts that programs report about themselves.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io::{BufReader, BufWriter};
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use borehole_heap::{LocationType, NodeId, NodeType};
use borehole_process::Dump;

use super::graph::{Graph, WalkedHeap, see, walked};
use crate::attach::{AttachOptions, Php};
use crate::heap::allocator::CHUNK_BYTES;
use crate::heap::blocks::HeapBlocks;
use crate::heap::live::{self, CopiedProgram};
use crate::heap::view::read;

/// The settings that `facts.php` is run with.
const OPCACHE: [&str; 2] = ["opcache.enable_cli=0", "opcache.enable_cli=1"];

/// A heap of `facts.php`: its origin, the program's report, and the walk's result.
struct Heap {
    name: String,
    ready: serde_json::Value,
    seen: WalkedHeap,
}

/// The heaps of `facts.php` of every recorded and every available PHP, walked once.
static HEAPS: LazyLock<Vec<Heap>> = LazyLock::new(|| {
    let mut heaps: Vec<Heap> =
        recordings().into_iter().map(|(name, ready, dump)| recorded(name, ready, &dump)).collect();
    for (name, peer, root) in live::phps() {
        for opcache in OPCACHE {
            let copied = live::copy(&peer, &root, "mem/facts", &["-d", opcache], &[]);
            let copied = copied.unwrap_or_else(|| panic!("{name}: not run"));
            let ready = serde_json::from_str(&copied.ready).unwrap();
            heaps.push(Heap { name: format!("{name} {opcache}"), ready, seen: see(&copied) });
        }
    }
    heaps
});

fn recorded(name: String, ready: serde_json::Value, dump: &Dump) -> Heap {
    let php = Php::attach(dump, &AttachOptions::default()).unwrap();
    let executor = php.executors(dump).unwrap()[0];
    Heap { name, ready, seen: walked(dump, &php, &executor) }
}

fn with_facts(check: impl Fn(&str, &Graph<'_>, &serde_json::Value, &WalkedHeap)) {
    for Heap { name, ready, seen } in HEAPS.iter() {
        check(name, &Graph::new(&seen.heap), ready, seen);
    }
}

#[test]
fn there_is_a_heap_of_each_release() {
    let release = |name: &str| name.split('.').take(2).collect::<Vec<_>>().join(".");
    let releases: BTreeSet<_> = recordings().iter().map(|(name, ..)| release(name)).collect();
    assert_eq!(Vec::from_iter(releases), ["7.0", "7.2", "7.4", "8.1", "8.2", "8.3", "8.4", "8.5", "8.6"]);
}

/// The recorded heaps of `facts.php`, with the program's report.
pub(super) fn recordings() -> Vec<(String, serde_json::Value, Dump)> {
    let folder = fs::read_dir(borehole_testkit::corpus("php/heap")).unwrap();
    let files = folder.map(|entry| entry.unwrap().path());
    let mut dumps: Vec<_> = files.filter(|path| path.extension().is_some_and(|end| end == "rdump")).collect();
    dumps.sort();
    let read = |path: &PathBuf| {
        let dump = Dump::read(BufReader::new(File::open(path).unwrap())).unwrap();
        let ready = serde_json::from_slice(&fs::read(path.with_extension("json")).unwrap()).unwrap();
        (path.file_stem().unwrap().to_string_lossy().into_owned(), ready, dump)
    };
    dumps.iter().map(read).collect()
}

/// Records the heaps of `facts.php` of every available PHP, and of `lazy.php` where supported, with only the memory that the
/// walk reads. Runs if `UPDATE_GOLDEN=1` is set.
#[test]
fn recordings_are_updated_on_request() {
    if !borehole_testkit::updates_golden() {
        return;
    }
    let [folder, lazy] = ["heap", "lazy"].map(|name| borehole_testkit::corpus("php").join(name));
    for (name, peer, root) in live::phps() {
        let copied = live::copy(&peer, &root, "mem/facts", &["-d", OPCACHE[0]], &[]).unwrap();
        let version = &copied.php.identity().version;
        let name = if name.ends_with("-zts") { format!("{version}-zts") } else { version.clone() };
        keep(&copied, &folder.join(format!("{name}.rdump")));
        fs::write(folder.join(format!("{name}.json")), &copied.ready).unwrap();
        if let Some(copied) = live::copy(&peer, &root, "internals/lazy", &[], &[]) {
            keep(&copied, &lazy.join(format!("{name}.rdump")));
        }
    }
}

fn keep(copied: &CopiedProgram, path: &Path) {
    thinned(copied).write(BufWriter::new(File::create(path).unwrap())).unwrap();
}

/// The memory of `copied` that the walk reads.
fn thinned(copied: &CopiedProgram) -> Dump {
    let mut blocks = HeapBlocks::default();
    let mut pages = read::pages_of(|| blocks = see(copied).blocks);
    // The allocator's data is in the first pages of its chunks, and its lists lead through other pages.
    for block in blocks.iter() {
        pages.insert(block.address / CHUNK_BYTES * CHUNK_BYTES);
        pages.extend((block.address / 4096..=(block.end() - 1) / 4096).map(|page| page * 4096));
    }
    let mut dump = Dump::new(copied.image.clone());
    for page in pages {
        if let Some(bytes) = copied.dump.bytes(page, 4096) {
            dump.insert(page, bytes.to_vec());
        }
    }
    dump
}

#[test]
fn values_are_what_the_program_says() {
    with_facts(|name, graph, facts, seen| {
        assert_eq!((seen.walked.missing, seen.walked.torn, seen.walked.is_stopped), (0, 0, false), "{name}");
        for (array, count) in facts["counts"].as_object().unwrap() {
            let elements = graph.child(graph.global(array), "array_elements");
            let count = usize::try_from(count.as_u64().unwrap()).unwrap();
            assert_eq!(graph.count(elements), count, "{name} {array}");
            assert_eq!(graph.links(elements).len(), count, "{name} {array}");
        }
        for (string, length) in facts["lengths"].as_object().unwrap() {
            let string = graph.global(string);
            assert_eq!(graph.string(string).len() as u64, length.as_u64().unwrap(), "{name}");
            assert_eq!(graph.location(string).size, 24 + length.as_u64().unwrap(), "{name}");
        }
        for (array, keys) in facts["keys"].as_object().unwrap() {
            let elements = graph.child(graph.global(array), "array_elements");
            let keys: Vec<_> = keys.as_array().unwrap().iter().map(|key| key.as_str().unwrap()).collect();
            assert_eq!(graph.links(elements), keys, "{name} {array}");
        }
        let hash = graph.global("hash");
        let values = ["a", "b", "c", "d", "e"].map(|key| graph.scalar(graph.element(hash, key)).to_owned());
        assert_eq!(values, ["1", "2.5", "null", "false", "true"], "{name}");
        assert_eq!(graph.string(graph.element(hash, "1000")), "thousand", "{name}");
        let copies = graph.global("copies");
        for at in ["0", "1", "2"] {
            assert_eq!(graph.element(copies, at), graph.global("packed"), "{name}");
        }
        // The variable, and three in `$copies`.
        assert_eq!(graph.location(graph.global("packed")).refcount, Some(4), "{name}");
    });
}

#[test]
fn references_are_one_node_and_a_cycle_of_them_ends() {
    with_facts(|name, graph, _, _| {
        let one = graph.child(graph.global("one"), "array_elements");
        let [r, s] = ["r", "s"].map(|key| graph.child(graph.child(one, key), "value"));
        assert_eq!(r, s, "{name}");
        assert_eq!(graph.heap.nodes[r.0 as usize], NodeType::PHP_REFERENCE);
        assert_eq!(graph.location(r).refcount, Some(3), "{name}");
        assert_eq!(graph.at(&["global_variables", "array_elements", "value", "value"]), r, "{name}");
        let own = graph.global("self");
        assert_eq!(graph.element(own, "me"), own, "{name}");
    });
}

#[test]
fn objects_have_the_numbers_and_properties_that_the_program_gave_them() {
    with_facts(|name, graph, facts, _| {
        let store = graph.at(&["objects_store"]);
        let numbers = facts["leaves"].as_array().unwrap();
        for (at, number) in numbers.iter().enumerate() {
            let leaf = graph.child(store, &number.to_string());
            assert_eq!(graph.class(leaf), "Facts\\Leaf", "{name}");
            assert_eq!(graph.string(graph.property(leaf, "label")), format!("leaf {at}"), "{name}");
            let next = graph.child(store, &numbers[(at + 1) % 10].to_string());
            assert_eq!(graph.property(leaf, "next"), next, "{name}");
            assert_eq!(graph.scalar(graph.property(leaf, "number")), (at + 1).to_string(), "{name}");
            assert_eq!(graph.string(graph.property(leaf, "hidden")), "of leaf", "{name}");
            let links = graph.links(graph.child(leaf, "object_properties"));
            let expected =
                ["label", "list", "Facts\\Base::hidden", "number", "hidden", "next", "price", "flag", "none"];
            assert_eq!(links, expected, "{name}");
            // `$leaves`, `Base::$all`, `$next` of the preceding one.
            let references = 3;
            assert_eq!(graph.location(leaf).refcount, Some(references), "{name}");
            assert_eq!(graph.location(leaf).size, 40 + 9 * 16, "{name}");
        }
        let loose = graph.child(store, &facts["loose"].to_string());
        let dynamic = graph.child(graph.child(loose, "dynamic_properties"), "array_elements");
        assert_eq!(graph.links(dynamic), ["first", "second", "7"], "{name}");
        assert!(!graph.links(loose).contains(&"object_properties"), "{name}");
    });
}

#[test]
fn tables_of_the_engine_have_as_many_entries_as_the_program_counts() {
    with_facts(|name, graph, facts, _| {
        let number = |fact: &serde_json::Value| usize::try_from(fact.as_u64().unwrap()).unwrap();
        // A name that begins with a 0 byte is that of a closure or of a class not yet declared, and unknown to programs.
        let is_named = |name: &&str| !name.starts_with('\0');
        let functions = graph.children[&Some(graph.at(&["function_table"]))].iter();
        let functions = functions.filter(|(name, _)| is_named(&name.as_str()));
        let (internal, user): (Vec<_>, Vec<_>) =
            functions.map(|(_, node)| graph.attribute(*node, "#is_internal")).partition(|is| *is == "true");
        assert_eq!(user.len(), number(&facts["functions"]["user"]), "{name}");
        assert_eq!(internal.len(), number(&facts["functions"]["internal"]), "{name}");
        let classes = graph.links(graph.at(&["class_table"])).into_iter().filter(is_named).count();
        assert_eq!(classes, number(&facts["classes"]), "{name}");
        let constants = graph.links(graph.at(&["global_constants"])).len();
        assert_eq!(constants, number(&facts["constants"]), "{name}");
        let files: Vec<_> =
            facts["files"].as_array().unwrap().iter().map(|file| file.as_str().unwrap()).collect();
        assert_eq!(graph.links(graph.at(&["included_files"])), files, "{name}");
        let table = graph.at(&["global_constants", "facts\\TABLE", "value"]);
        assert_eq!(graph.string(graph.element(table, "b")), "text", "{name}");
    });
}

#[test]
fn classes_have_their_static_properties_constants_and_methods() {
    with_facts(|name, graph, facts, _| {
        let class = |class: &str| graph.at(&["class_table", &format!("facts\\{class}")]);
        let statics = graph.child(class("leaf"), "static_properties");
        let all = graph.plain(graph.child(statics, "all"));
        assert_eq!(
            graph.count(graph.child(all, "array_elements")) as u64,
            facts["all"].as_u64().unwrap(),
            "{name}"
        );
        let others = graph.plain(graph.child(graph.child(class("other"), "static_properties"), "all"));
        assert_eq!(graph.count(graph.child(others, "array_elements")), 1, "{name}");
        let counted = graph.plain(graph.child(statics, "count"));
        assert_eq!(graph.scalar(counted), facts["counted"].to_string(), "{name}");
        let limits =
            graph.plain(graph.child(graph.child(graph.child(class("base"), "constants"), "LIMITS"), "value"));
        assert_eq!(graph.scalar(graph.element(graph.element(limits, "high"), "1")), "20", "{name}");
        let methods = graph.links(graph.child(class("base"), "methods"));
        assert!(
            ["__construct", "name", "number"].iter().all(|method| methods.contains(method)),
            "{name} {methods:?}"
        );
        assert_eq!(
            graph.string(graph.child(class("base"), "doc_comment")),
            "/** A base with every kind of property. */"
        );
        let seen = graph.child(graph.child(graph.child(class("base"), "methods"), "name"), "op_array");
        let seen = graph.child(graph.child(seen, "static_variables"), "array_elements");
        assert_eq!(graph.links(seen), ["calls", "seen"], "{name}");
    });
}

#[test]
fn frames_have_their_functions_lines_variables_and_arguments() {
    with_facts(|name, graph, facts, _| {
        let frames = graph.at(&["call_frames"]);
        let names: Vec<_> = (0..)
            .map_while(|at: usize| graph.children[&Some(frames)].get(at))
            .map(|(_, frame)| graph.attribute(*frame, "function_name"))
            .collect();
        let stack = facts["stack"].as_array().unwrap().iter().map(|frame| frame.as_str().unwrap());
        let expected: Vec<_> = std::iter::once("usleep").chain(stack).chain(["<main>"]).collect();
        assert_eq!(names, expected, "{name}");
        assert_eq!(graph.count(frames), expected.len(), "{name}");
        let frame = |at: usize| graph.child(frames, &at.to_string());
        assert_eq!(graph.attribute(frame(0), "lineno"), "-1", "{name}");
        let wanted = std::fs::read_to_string(borehole_testkit::corpus("php/mem/facts.php")).unwrap();
        let line = wanted.lines().position(|line| line.contains("usleep(")).unwrap() + 1;
        assert_eq!(graph.attribute(frame(1), "lineno"), line.to_string(), "{name}");
        let variables = |at| graph.child(frame(at), "local_variables");
        let usleep = graph.links(variables(0));
        assert_eq!(usleep, ["$args_to_internal_function[0]"], "{name}");
        let leaf = graph.links(variables(1));
        let known = ["depth", "known", "extra", "local", "end", "$extra_args[0]", "$extra_args[1]"];
        assert_eq!(leaf, known, "{name}");
        assert_eq!(graph.string(graph.child(variables(1), "$extra_args[0]")), "one more", "{name}");
        assert_eq!(graph.string(graph.child(variables(2), "local")), "x".repeat(21), "{name}");
        let temporary = graph.links(variables(2)).iter().filter(|link| link.starts_with("$_T[")).count();
        // The array whose second element is being evaluated; 7.0 does not record which temporaries are live.
        assert_eq!(temporary, usize::from(!name.contains("7.0")), "{name} {:?}", graph.links(variables(2)));
    });
}

#[test]
fn callbacks_and_settings_are_roots() {
    with_facts(|name, graph, _, _| {
        let callbacks = graph.at(&["global_callbacks"]);
        for handler in ["error_handler", "exception_handler"] {
            assert_eq!(graph.class(graph.child(callbacks, handler)), "Closure", "{name}");
        }
        // The preceding one; newer releases also record that there was none before that.
        let before = graph.children[&Some(graph.child(callbacks, "error_handlers"))].last().unwrap().1;
        assert_eq!(graph.class(before), "Closure", "{name}");
        let precision = graph.at(&["ini_directives", "precision"]);
        assert_eq!(graph.string(graph.child(precision, "value")), "11", "{name}");
    });
}

#[test]
fn every_node_has_one_tree_edge_that_comes_right_after_it() {
    with_facts(|name, graph, _, seen| {
        let heap = graph.heap;
        let mut next = 0;
        for edge in heap.edges.iter().filter(|edge| edge.is_tree) {
            assert_eq!(edge.child, NodeId(next), "{name}");
            assert!(edge.parent.is_none_or(|parent| parent.0 < next), "{name}");
            next += 1;
        }
        assert_eq!(next as usize, heap.nodes.len(), "{name}");
        let mut known = BTreeMap::new();
        for (_, location) in heap.locations.iter().filter(|(_, location)| location.size > 0) {
            let end = location.address + location.size;
            if let Some(block) = seen.blocks.find(location.address) {
                assert!(end <= block.end(), "{name} {location:x?} {block:x?}");
                assert!(
                    end + u64::from(location.bin_overhead) <= block.end(),
                    "{name} {location:x?} {block:x?}"
                );
                known.insert(location.address, (end, location.location_type));
            }
        }
        // No byte of the heap belongs to two locations.
        for ((start, (end, what)), (next, (_, other))) in known.iter().zip(known.iter().skip(1)) {
            let [what, other] = [what, other].map(|what| LocationType::NAMES[usize::from(what.number())]);
            assert!(end <= next, "{name}: {what} {start:x} to {end:x}, and {other} {next:x}");
        }
    });
}
