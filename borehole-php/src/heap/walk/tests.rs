use std::collections::{BTreeMap, BTreeSet};
use std::time::Instant;

use borehole_heap::{Edge, HeapSink, Location, LocationType, NodeId, NodeType, StringId, Value};
use hashbrown::HashMap;

use super::*;
use crate::heap::live::{self, Copied};

/// A heap held whole.
#[derive(Default)]
struct Collected {
    strings: Vec<Vec<u8>>,
    numbers: HashMap<Vec<u8>, u32>,
    nodes: Vec<NodeType>,
    edges: Vec<Edge>,
    locations: Vec<(NodeId, Location)>,
    attributes: Vec<(NodeId, StringId, String)>,
}

impl HeapSink for Collected {
    fn string(&mut self, string: &[u8]) -> StringId {
        if let Some(&number) = self.numbers.get(string) {
            return StringId(number);
        }
        let number = u32::try_from(self.strings.len()).unwrap();
        self.strings.push(string.to_vec());
        self.numbers.insert(string.to_vec(), number);
        StringId(number)
    }

    fn node(&mut self, node_type: NodeType) -> NodeId {
        self.nodes.push(node_type);
        NodeId(u32::try_from(self.nodes.len() - 1).unwrap())
    }

    fn edge(&mut self, edge: Edge) {
        self.edges.push(edge);
    }

    fn location(&mut self, node: NodeId, location: &Location) {
        self.locations.push((node, *location));
    }

    fn attribute(&mut self, node: NodeId, key: StringId, value: Value<'_>) {
        let text = match value {
            Value::Null => "null".to_owned(),
            Value::Bool(is) => is.to_string(),
            Value::Integer(number) => number.to_string(),
            Value::Float(number) => number.to_string(),
            Value::Text(text) => String::from_utf8_lossy(text).into_owned(),
        };
        self.attributes.push((node, key, text));
    }

    fn summary(&mut self, _: &str, _: &str) {}
}

impl Collected {
    fn text(&self, string: StringId) -> String {
        String::from_utf8_lossy(&self.strings[string.0 as usize]).into_owned()
    }
}

/// What became of a program's heap.
struct Seen {
    heap: Collected,
    walked: Walked,
    blocks: Blocks,
}

fn see(copied: &Copied) -> Seen {
    let mut blocks = Blocks::of(&copied.dump, &copied.php, &copied.executor).unwrap();
    let mut heap = Collected::default();
    let walked =
        walk(&copied.dump, &copied.php, &copied.executor, &mut blocks, &WalkOptions::default(), &mut heap);
    Seen { heap, walked, blocks }
}

/// Counts.
#[derive(Default)]
struct Counting {
    strings: u32,
    nodes: u32,
    edges: u64,
    locations: u64,
    bytes: u64,
    attributes: u64,
}

impl HeapSink for Counting {
    fn string(&mut self, _: &[u8]) -> StringId {
        self.strings += 1;
        StringId(self.strings)
    }

    fn node(&mut self, _: NodeType) -> NodeId {
        self.nodes += 1;
        NodeId(self.nodes - 1)
    }

    fn edge(&mut self, _: Edge) {
        self.edges += 1;
    }

    fn location(&mut self, _: NodeId, location: &Location) {
        self.locations += 1;
        self.bytes += location.size;
    }

    fn attribute(&mut self, _: NodeId, _: StringId, _: Value<'_>) {
        self.attributes += 1;
    }

    fn summary(&mut self, _: &str, _: &str) {}
}

#[test]
fn look() {
    let only = std::env::var("ONLY").unwrap_or_default();
    let program = std::env::var("PROGRAM").unwrap_or("mem/m1_objects".into());
    for (name, peer, root) in live::phps() {
        if !only.is_empty() && only != name {
            continue;
        }
        let opcache = std::env::var("OPCACHE").unwrap_or("opcache.enable_cli=0".into());
        let Some(copied) = live::copy(&peer, &root, &program, &["-d", &opcache], &[]) else {
            println!("{name}: not run");
            continue;
        };
        let seen = see(&copied);
        let heap = &seen.heap;
        let total: u64 = seen.blocks.sums().bytes();
        let reached: u64 =
            seen.blocks.iter().filter(|b| seen.walked.reached.contains(b.index)).map(|b| b.bytes).sum();
        println!(
            "{name}: {} nodes {} edges {} locations {} attributes, missing {} torn {} reached {reached} of {total} {:.2}%",
            heap.nodes.len(),
            heap.edges.len(),
            heap.locations.len(),
            heap.attributes.len(),
            seen.walked.missing,
            seen.walked.torn,
            reached as f64 * 100.0 / total as f64
        );
        let all = types(heap);
        println!(
            "    {:?} {:?}",
            all.get("UnattributedMemoryLocation"),
            all.get("InternalDataMemoryLocation")
        );
        for (node, location) in &heap.locations {
            if location.location_type == LocationType::UNATTRIBUTED {
                println!(
                    "      {} {} {:x?}",
                    location.size,
                    path(heap, *node),
                    copied.dump.bytes(location.address, 32)
                );
            }
        }
        if !only.is_empty() {
            let mut bins = BTreeMap::new();
            for block in seen.blocks.iter().filter(|b| !seen.walked.reached.contains(b.index)) {
                *bins.entry(block.bytes).or_insert(0) += 1;
                if std::env::var("BLOCKS").is_ok() {
                    println!(
                        "  {:x} {} {:x?}",
                        block.address,
                        block.bytes,
                        copied.dump.bytes(block.address, (block.bytes as usize).min(64)).map(|b| b
                            .chunks(8)
                            .map(|w| u64::from_le_bytes(w.try_into().unwrap()))
                            .collect::<Vec<_>>())
                    );
                }
            }
            println!("unreached {bins:?}");
            let mut types: BTreeMap<&str, (u64, u64)> = BTreeMap::new();
            for (_, location) in heap.locations.iter().filter(|(_, l)| l.region.is_some()) {
                let sum = types
                    .entry(LocationType::NAMES[usize::from(location.location_type.number())])
                    .or_default();
                sum.0 += 1;
                sum.1 += location.size;
            }
            println!("{types:#?}");
            let damaged = heap.attributes.iter().filter(|(_, key, _)| heap.text(*key) == "#damage");
            for (node, _, value) in damaged.take(20) {
                println!("damage {} {} {}", node.0, value, path(heap, *node));
            }
        }
    }
}

/// The links from a root to `node`.
fn path(heap: &Collected, node: NodeId) -> String {
    let parents: HashMap<NodeId, &Edge> =
        heap.edges.iter().filter(|e| e.is_tree).map(|e| (e.child, e)).collect();
    let mut links = Vec::new();
    let mut at = Some(node);
    while let Some(edge) = at.and_then(|node| parents.get(&node)) {
        links.push(heap.text(edge.link));
        at = edge.parent;
    }
    links.reverse();
    format!("{} ({})", links.join(" -> "), NodeType::NAMES[usize::from(heap.nodes[node.0 as usize].number())])
}

/// A heap to be asked.
struct Graph<'h> {
    heap: &'h Collected,
    children: HashMap<Option<NodeId>, Vec<(String, NodeId)>>,
    locations: HashMap<NodeId, Vec<&'h Location>>,
    attributes: HashMap<(NodeId, String), String>,
}

impl<'h> Graph<'h> {
    fn new(heap: &'h Collected) -> Self {
        let mut graph =
            Self { heap, children: HashMap::new(), locations: HashMap::new(), attributes: HashMap::new() };
        for edge in &heap.edges {
            graph.children.entry(edge.parent).or_default().push((heap.text(edge.link), edge.child));
        }
        for (node, location) in &heap.locations {
            graph.locations.entry(*node).or_default().push(location);
        }
        for &(node, key, ref value) in &heap.attributes {
            graph.attributes.insert((node, heap.text(key)), value.clone());
        }
        graph
    }

    fn links(&self, node: impl Into<Option<NodeId>>) -> Vec<&str> {
        let children = self.children.get(&node.into());
        children.into_iter().flatten().map(|(link, _)| link.as_str()).collect()
    }

    fn child(&self, node: impl Into<Option<NodeId>>, link: &str) -> NodeId {
        let node = node.into();
        let found = self.children.get(&node).into_iter().flatten().find(|(name, _)| name == link);
        let place = || node.map_or("root".to_owned(), |node| path(self.heap, node));
        found.unwrap_or_else(|| panic!("no {link} in {} but {:?}", place(), self.links(node))).1
    }

    /// The node at the end of links.
    fn at(&self, path: &[&str]) -> NodeId {
        path.iter().fold(None, |node, link| Some(self.child(node, link))).unwrap()
    }

    /// The value of a global variable, past references.
    fn global(&self, name: &str) -> NodeId {
        self.plain(self.at(&["global_variables", "array_elements", name, "value"]))
    }

    /// What a reference refers to.
    fn plain(&self, node: NodeId) -> NodeId {
        let is_reference = self.heap.nodes[node.0 as usize] == NodeType::PHP_REFERENCE;
        if is_reference { self.child(node, "referenced") } else { node }
    }

    /// The value of an element of an array.
    fn element(&self, array: NodeId, key: &str) -> NodeId {
        self.plain(self.child(self.child(self.child(array, "array_elements"), key), "value"))
    }

    fn property(&self, object: NodeId, name: &str) -> NodeId {
        self.plain(self.child(self.child(object, "object_properties"), name))
    }

    fn attribute(&self, node: NodeId, key: &str) -> &str {
        &self.attributes[&(node, key.to_owned())]
    }

    fn scalar(&self, node: NodeId) -> &str {
        self.attribute(node, "value")
    }

    fn location(&self, node: NodeId) -> &Location {
        self.locations[&node][0]
    }

    fn string(&self, node: NodeId) -> String {
        self.heap.text(self.location(node).string.unwrap())
    }

    fn class(&self, node: NodeId) -> String {
        self.heap.text(self.location(node).class.unwrap())
    }

    fn count(&self, node: NodeId) -> usize {
        self.attribute(node, "#count").parse().unwrap()
    }
}

/// Runs `facts.php` in every PHP at hand, without and with opcache, with what it says.
fn with_facts(check: impl Fn(&str, &Graph<'_>, &serde_json::Value, &Seen)) {
    let mut count = 0;
    for (name, peer, root) in live::phps() {
        for opcache in ["opcache.enable_cli=0", "opcache.enable_cli=1"] {
            let copied = live::copy(&peer, &root, "mem/facts", &["-d", opcache], &[]);
            let copied = copied.unwrap_or_else(|| panic!("{name}: not run"));
            let seen = see(&copied);
            let facts = serde_json::from_str(&copied.ready).unwrap();
            check(&format!("{name} {opcache}"), &Graph::new(&seen.heap), &facts, &seen);
            count += 1;
        }
    }
    assert!(count > 0);
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
            // `$leaves`, `Base::$all`, `$next` of the one before.
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
        // What begins with a 0 is a closure or a class that was not declared yet: it has no name that a program knows.
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
        // The array whose second element is on its way; 7.0 does not say which temporaries live.
        assert_eq!(
            temporary,
            usize::from(!name.starts_with("php-7.0")),
            "{name} {:?}",
            graph.links(variables(2))
        );
    });
}

#[test]
fn callbacks_and_settings_are_roots() {
    with_facts(|name, graph, _, _| {
        let callbacks = graph.at(&["global_callbacks"]);
        for handler in ["error_handler", "exception_handler"] {
            assert_eq!(graph.class(graph.child(callbacks, handler)), "Closure", "{name}");
        }
        // The one before; newer releases also have that there was none before that.
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
        // No byte of the heap belongs to two.
        for ((start, (end, what)), (next, (_, other))) in known.iter().zip(known.iter().skip(1)) {
            let [what, other] = [what, other].map(|what| LocationType::NAMES[usize::from(what.number())]);
            assert!(end <= next, "{name}: {what} {start:x} to {end:x}, and {other} {next:x}");
        }
    });
}

/// How many objects of each class there are, and how large they are together.
fn classes(heap: &Collected) -> BTreeMap<String, (u64, u64)> {
    let mut classes: BTreeMap<String, (u64, u64)> = BTreeMap::new();
    for (_, location) in heap.locations.iter().filter(|(_, location)| location.region.is_some()) {
        if let Some(class) = location.class {
            let sum = classes.entry(heap.text(class)).or_default();
            sum.0 += 1;
            sum.1 += location.size;
        }
    }
    classes
}

/// How many locations of each type there are in PHP's own memory, and how large they are together.
fn types(heap: &Collected) -> BTreeMap<String, (u64, u64)> {
    let mut types: BTreeMap<String, (u64, u64)> = BTreeMap::new();
    for (_, location) in heap.locations.iter().filter(|(_, location)| location.region.is_some()) {
        let name = LocationType::NAMES[usize::from(location.location_type.number())];
        let sum = types.entry(name.to_owned()).or_default();
        sum.0 += 1;
        sum.1 += location.size;
    }
    types
}

fn reli(program: &str) -> serde_json::Value {
    let path = borehole_testkit::corpus(&format!("php/reli-json/{program}.json.gz"));
    let file = flate2::read::GzDecoder::new(std::fs::File::open(path).unwrap());
    serde_json::from_reader(file).unwrap()
}

fn summary(json: &serde_json::Value, key: &str) -> BTreeMap<String, (u64, u64)> {
    let number = |value: &serde_json::Value, key: &str| value[key].as_u64().unwrap();
    let rows = json[key].as_object().unwrap().iter();
    rows.map(|(name, sums)| (name.clone(), (number(sums, "count"), number(sums, "memory_usage")))).collect()
}

/// Classes whose objects are more than their properties, of which reli counts no more than these.
const MORE_THAN_PROPERTIES: &[&str] = &[
    "ArrayIterator",
    "ArrayObject",
    "DOMDocument",
    "DateInterval",
    "DatePeriod",
    "DateTime",
    "DateTimeImmutable",
    "DirectoryIterator",
    "Generator",
    "ReflectionClass",
    "SimpleXMLElement",
    "SplDoublyLinkedList",
    "SplFixedArray",
    "SplMinHeap",
    "SplObjectStorage",
    "SplPriorityQueue",
    "WeakMap",
    "WeakReference",
];

/// Types of locations of which reli sees all.
const EQUAL: &[&str] = &[
    "DefaultPropertiesTableMemoryLocation",
    "DefaultStaticMembersTableMemoryLocation",
    "ObjectsStoreMemoryLocation",
    "StaticMembersTableMemoryLocation",
    "ZendClassConstantMemoryLocation",
    "ZendClassEntryMemoryLocation",
    "ZendPropertyInfoMemoryLocation",
];

/// Types of which it does not see all, and why.
const MORE: &[(&str, &str)] = &[
    ("CallFrameHeaderMemoryLocation", "frames of generators and fibers"),
    ("CallFrameVariableTableMemoryLocation", "frames of generators and fibers"),
    ("DynamicFuncDefsTableMemoryLocation", "code outside of functions"),
    ("LocalVariableNameTableMemoryLocation", "code outside of functions"),
    ("RuntimeCacheMemoryLocation", "code outside of functions, caches of closures"),
    ("ZendArgInfosMemoryLocation", "what is returned, and arguments of any number"),
    ("ZendOpArrayBodyMemoryLocation", "code outside of functions"),
    ("ZendOpArrayHeaderMemoryLocation", "code outside of functions"),
    ("ZendReferenceMemoryLocation", "variables that closures bind by reference, where code begins with them"),
    ("ZendResourceMemoryLocation", "32 bytes each since 8.1, not 24"),
];

/// Types that depend on the variables of the environment, which were others; and objects, which are compared by class.
const ENVIRONMENT: &[&str] = &[
    "ZendObjectMemoryLocation",
    "ZendArrayMemoryLocation",
    "ZendArrayTableMemoryLocation",
    "ZendArrayTableOverheadMemoryLocation",
    "ZendStringMemoryLocation",
];

/// Classes of the extension that the machine's PHP need not have.
const LEFT_OUT: &[&str] = &["PDO", "PDOStatement"];

#[test]
fn objects_of_each_class_are_as_many_and_as_large_as_reli_sees() {
    for_each_reli(|program, heap, reli| {
        let (ours, theirs) = (classes(heap), summary(reli, "class_objects_summary"));
        let left_out = |class: &&String| !LEFT_OUT.contains(&class.as_str());
        let names: BTreeSet<_> = ours.keys().chain(theirs.keys().filter(left_out)).collect();
        for name in names {
            let ((count, bytes), (reli_count, reli_bytes)) = (ours[name], theirs[name]);
            assert_eq!(count, reli_count, "{program} {name}");
            if MORE_THAN_PROPERTIES.contains(&name.as_str()) {
                assert!(bytes > reli_bytes, "{program} {name}: {bytes}");
            } else {
                assert_eq!(bytes, reli_bytes, "{program} {name}");
            }
        }
    });
}

#[test]
fn locations_of_each_type_are_those_that_reli_sees_or_more_for_a_reason() {
    for_each_reli(|program, heap, reli| {
        let (ours, theirs) = (types(heap), summary(reli, "location_types_summary"));
        for (name, &(reli_count, reli_bytes)) in &theirs {
            let (count, bytes) = ours[name];
            let name = name.as_str();
            let reason = MORE.iter().find(|(more, _)| *more == name);
            if program == "m5_without_pdo" && name == "CallFrameVariableTableMemoryLocation" {
                // The variables of the database are gone.
                assert_eq!((count, bytes), (reli_count, reli_bytes - 7 * 16), "{program} {name}");
            } else if EQUAL.contains(&name) {
                assert_eq!((count, bytes), (reli_count, reli_bytes), "{program} {name}");
            } else if let Some((_, reason)) = reason {
                assert!(count >= reli_count, "{program} {name}: {count}, {reli_count} without {reason}");
                assert!(bytes >= reli_bytes, "{program} {name}: {bytes}, {reli_bytes} without {reason}");
            } else {
                assert!(ENVIRONMENT.contains(&name), "{program} {name}");
            }
        }
    });
}

/// Walks the programs that reli walked, in the same release as far as that is at hand.
fn for_each_reli(check: impl Fn(&str, &Collected, &serde_json::Value)) {
    let Some((_, peer, root)) = live::phps().into_iter().find(|(name, ..)| name == "php") else { return };
    let programs =
        [("m1_objects", "m1_objects"), ("m3_closures", "m3_closures"), ("m4_generators", "m4_generators")];
    // The database of the fifth has no driver everywhere.
    for (program, seen_by_reli) in programs.into_iter().chain([("m5_without_pdo", "m5_mixed")]) {
        let copied =
            live::copy(&peer, &root, &format!("mem/{program}"), &["-d", "opcache.enable_cli=0"], &[]);
        let seen = see(&copied.unwrap_or_else(|| panic!("{program}: not run")));
        check(program, &seen.heap, &reli(seen_by_reli));
    }
}

#[test]
fn speed() {
    let count = std::env::var("COUNT").unwrap_or("100000".into());
    let (_, peer, root) = live::phps().remove(0);
    let copied = live::copy(&peer, &root, "mem/scale", &[], &[&count]).unwrap();
    for _ in 0..3 {
        let start = Instant::now();
        let mut blocks = Blocks::of(&copied.dump, &copied.php, &copied.executor).unwrap();
        let listed = start.elapsed();
        let start = Instant::now();
        let mut sink = Counting::default();
        let walked = walk(
            &copied.dump,
            &copied.php,
            &copied.executor,
            &mut blocks,
            &WalkOptions::default(),
            &mut sink,
        );
        let took = start.elapsed();
        println!(
            "{count} objects: blocks {listed:?}, walk {took:?}, {} nodes ({} ns a node), {} edges {} locations {} attributes {} strings, torn {} missing {}",
            sink.nodes,
            took.as_nanos() / u128::from(sink.nodes),
            sink.edges,
            sink.locations,
            sink.attributes,
            sink.strings,
            walked.torn,
            walked.missing
        );
    }
}

/// The walk of a list goes along it, and not down into it.
#[test]
fn lists_and_nests_a_million_deep_and_cycles_end() {
    let (_, peer, root) = live::phps().remove(0);
    let count = 300_000;
    let copied =
        live::copy(&peer, &root, "mem/deep", &["-d", "memory_limit=2G"], &[&count.to_string()]).unwrap();
    let seen = std::thread::Builder::new()
        .stack_size(256 << 10)
        .spawn(move || see(&copied))
        .unwrap()
        .join()
        .unwrap();
    assert_eq!((seen.walked.missing, seen.walked.torn, seen.walked.is_stopped), (0, 0, false));
    assert_eq!(classes(&seen.heap)["Link"], (count + 1, (count + 1) * 56));
    let arrays = seen.heap.nodes.iter().filter(|kind| **kind == NodeType::ARRAY_HEADER).count();
    assert!(arrays as u64 > count, "{arrays}");
}

/// Random numbers, the same ones each time.
struct Noise(u64);

impl Noise {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn below(&mut self, end: usize) -> usize {
        usize::try_from(self.next() % end as u64).unwrap()
    }
}

/// The memory of `copied` with `words` words of it changed.
fn damaged(copied: &Copied, noise: &mut Noise, words: usize) -> Dump {
    let mut ranges: Vec<(u64, Vec<u8>)> =
        copied.dump.ranges().map(|(address, bytes)| (address, bytes.to_vec())).collect();
    let places: Vec<(u64, usize)> = ranges.iter().map(|(address, bytes)| (*address, bytes.len())).collect();
    let heap = copied.dump.ranges().position(|(address, bytes)| {
        let stack =
            View::new(&copied.dump).pointer(copied.executor.globals, copied.php.layout.executor_stack_top);
        (address..address + bytes.len() as u64).contains(&stack)
    });
    for _ in 0..words {
        // Half of the damage is where values are.
        let range = if noise.next() % 2 == 0 { heap.unwrap() } else { noise.below(ranges.len()) };
        let bytes = &mut ranges[range].1;
        let at = noise.below(bytes.len() / 8) * 8;
        let value = match noise.next() % 4 {
            0 => noise.next(),
            // Addresses of something lead further into nonsense than wild ones.
            1 | 2 => {
                let (address, length) =
                    places[if noise.next() % 2 == 0 { heap.unwrap() } else { noise.below(places.len()) }];
                address + noise.below(length / 8) as u64 * 8
            }
            _ => u64::MAX,
        };
        bytes[at..at + 8].copy_from_slice(&value.to_le_bytes());
    }
    let mut dump = Dump::default();
    for (address, bytes) in ranges {
        dump.insert(address, bytes);
    }
    dump
}

#[test]
fn damaged_memory_is_walked_to_an_end() {
    for (name, peer, root) in
        live::phps().into_iter().filter(|(name, ..)| ["php", "php-7.0", "php-8.4"].contains(&name.as_str()))
    {
        let copied = live::copy(&peer, &root, "mem/facts", &[], &[]).unwrap();
        let whole = see(&copied).heap.nodes.len();
        let (mut noise, mut torn) = (Noise(0x9e37_79b9_7f4a_7c15), 0);
        for trial in 0..60 {
            let dump = damaged(&copied, &mut noise, 1 << (trial % 14));
            let mut blocks =
                Blocks::of(&dump, &copied.php, &copied.executor).unwrap_or_else(|_| Blocks::none());
            let mut sink = Counting::default();
            let start = Instant::now();
            let walked =
                walk(&dump, &copied.php, &copied.executor, &mut blocks, &WalkOptions::default(), &mut sink);
            if start.elapsed().as_millis() > 1000 {
                println!(
                    "{name} {trial}: {:?} {} nodes of {whole}, torn {} missing {}",
                    start.elapsed(),
                    sink.nodes,
                    walked.torn,
                    walked.missing
                );
            }
            assert!(u64::from(sink.nodes) <= dump.held_bytes() / 4, "{name} {trial}: {}", sink.nodes);
            torn += walked.torn + walked.missing;
        }
        assert!(torn > 1000, "{name}: {torn}");
    }
}
