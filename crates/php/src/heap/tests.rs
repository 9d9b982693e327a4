//! Facts about the heaps of whole programs: their coverage, the contents of containers, and garbage.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::BufReader;
use std::path::Path;

use borehole_heap::retention::Follow;
use borehole_heap::views::Heap;
use borehole_heap::{
    Edge, Graph as _, GraphBuilder, LocationType, MemoryLocation, NodeId, NodeType, Region, Strength,
};
use borehole_process::Dump;
use borehole_testkit::corpus;

use crate::attach::{AttachOptions, Php};
use crate::executor::Executor;
use crate::heap::blocks::HeapBlocks;
use crate::heap::collected::Collected;
use crate::heap::layout::HeapLayout;
use crate::heap::live::{self, CopiedProgram};
use crate::heap::view::DumpView;
use crate::heap::walk::{HeapWalkOptions, walk};
use crate::release::PhpRelease;
use crate::remote::moved;

impl Collected {
    fn of(copied: &CopiedProgram) -> Self {
        Self::walked(&copied.dump, &copied.php, &copied.executor)
    }

    /// Analyzes a memory file.
    fn recorded(path: &Path) -> Self {
        let dump = Dump::read(BufReader::new(File::open(path).unwrap())).unwrap();
        let php = Php::attach(&dump, &AttachOptions::default()).unwrap();
        let executor = php.executors(&dump).unwrap()[0];
        Self::walked(&dump, &php, &executor)
    }

    fn walked(dump: &Dump, php: &Php, executor: &Executor) -> Self {
        let mut blocks = HeapBlocks::of(dump, php, executor).unwrap();
        let mut heap = Self::default();
        let walked = walk(dump, php, executor, &mut blocks, &HeapWalkOptions::default(), &mut heap);
        assert!(!walked.is_stopped);
        heap.damage = (walked.missing, walked.torn);
        heap.reached_bytes = walked.reached_bytes;
        heap
    }

    /// Whether tables of arrays are part of the compiler's memory.
    fn is_laid_out(&self) -> bool {
        let mut tables =
            self.locations.iter().filter(|(_, at)| at.location_type == LocationType::ARRAY_TABLE);
        tables.any(|(_, at)| at.region == Some(Region::COMPILER_ARENA))
    }

    fn number(&self, key: &str) -> u64 {
        self.summary.get(key).unwrap_or_else(|| panic!("{key}")).parse().unwrap()
    }

    /// The percentage of memory in use that was reached.
    fn share(&self) -> f64 {
        self.summary["heap_memory_analyzed_percentage"].parse().unwrap()
    }

    /// The root node with the name `link`.
    fn root(&self, link: &str) -> Option<NodeId> {
        let edge = self.edges.iter().find(|edge| edge.parent.is_none() && self.text(edge.link) == link);
        edge.map(|edge| edge.child)
    }

    fn children(&self, node: NodeId) -> impl Iterator<Item = &Edge> {
        self.edges.iter().filter(move |edge| edge.parent == Some(node))
    }

    /// The paths of the strings that a program made, by their label in the program.
    fn made(&self) -> BTreeMap<String, String> {
        let strings =
            self.locations.iter().filter(|(_, location)| location.location_type == LocationType::STRING);
        let texts = strings.filter_map(|(node, location)| Some((*node, self.text(location.string?))));
        let made = texts.filter_map(|(node, text)| {
            let name = text.strip_prefix("made-")?.strip_suffix(&"-".repeat(20))?.to_owned();
            Some((name, self.path(node)))
        });
        made.collect()
    }

    /// The class of an object.
    fn class(&self, node: NodeId) -> String {
        let location = self.locations.iter().find(|(of, location)| *of == node && location.class.is_some());
        location.map(|(_, location)| self.text(location.class.unwrap())).unwrap_or_default()
    }

    /// The unattributed blocks of the heap, for the message of a failing test.
    fn unattributed(&self) -> Vec<String> {
        let unknown = self
            .locations
            .iter()
            .filter(|(_, location)| location.location_type == LocationType::UNATTRIBUTED);
        unknown.map(|(node, location)| format!("{} {}", self.path(*node), location.size)).collect()
    }
}

/// Checks each program in each available PHP that supports it.
fn with_programs(programs: &[&str], mut check: impl FnMut(&str, &CopiedProgram, &Collected)) {
    let mut count = 0;
    for (name, peer, root) in live::phps() {
        for program in programs {
            let Some(copied) = live::copy(&peer, &root, program, &[], &[]) else { continue };
            check(&format!("{name} {program}"), &copied, &Collected::of(&copied));
            count += 1;
        }
    }
    assert!(count > 0, "no program was run");
}

/// Checks that nothing is damaged, and that all memory is counted once.
fn check_sizes(name: &str, heap: &Collected) {
    // The locations and the overhead of their blocks add up to the heap.
    let located = || heap.locations.iter().map(|(_, at)| at).filter(|at| at.region.is_some());
    // No memory has two locations, and none has the address of the next thing.
    let kind = |at: &MemoryLocation| LocationType::NAMES[usize::from(at.location_type.number())];
    let mut ranges: Vec<_> = located().map(|at| (at.address, at.address + at.size, kind(at))).collect();
    ranges.sort_unstable();
    let twice = ranges.windows(2).find(|pair| pair[0].1 > pair[1].0 || pair[0].0 == pair[1].0);
    assert_eq!(twice, None, "{name}");
    let bytes: u64 = located().map(|at| at.size + u64::from(at.bin_overhead)).sum();
    assert!(bytes <= heap.number("memory_get_usage"), "{name}: {bytes}");
    assert_eq!(heap.damage, (0, 0), "{name}");
    assert_eq!(heap.summary["heap_memory_accounting"], "exact", "{name}");
}

#[test]
fn nearly_every_byte_is_reached() {
    let mut unattributed = 0;
    with_programs(&live::PROGRAMS, |name, copied, heap| {
        check_sizes(name, heap);
        let least = if name.contains("m1_") || name.contains("m2_") { 99.9 } else { 99.5 };
        assert!(heap.share() >= least, "{name}: {} {:#?}", heap.share(), heap.unattributed());
        let asking = if name.contains("mem/") { live::ASKING } else { 0 };
        assert_eq!(heap.number("memory_get_usage") + asking, copied.usage, "{name}");
        // Blocks that are only listed were not reached.
        let listed = heap.locations.iter().map(|(_, location)| location);
        let listed = listed.filter(|location| location.location_type == LocationType::UNATTRIBUTED);
        let listed: u64 = listed.map(|location| location.size).sum();
        unattributed += listed;
        assert_eq!(heap.reached_bytes, heap.number("memory_get_usage") - listed, "{name}");
    });
    assert!(unattributed > 0, "blocks of modules that nothing known leads to");
}

/// The roots that the path of a known value never begins with.
const GUESSED: [&str; 3] = ["modules", "unattributed", "objects_store"];

/// Checks the paths of a program's strings, by their label in the program.
fn expect_made(name: &str, heap: &Collected, expected: &[(&str, &str)]) {
    let made = heap.made();
    for (what, links) in expected {
        let path = made.get(*what).unwrap_or_else(|| panic!("{name}: {what} of {made:#?}"));
        assert!(path.contains(links), "{name}: {what} in {path}, expected {links}");
        assert!(!GUESSED.iter().any(|root| path.starts_with(root)), "{name}: {what} in {path}");
    }
}

#[test]
fn containers_hold_what_was_put_into_them() {
    with_programs(&["internals/containers"], |name, _, heap| {
        expect_made(
            name,
            heap,
            &[
                (
                    "object storage key",
                    "local_variables -> storage -> storage -> 0 -> key -> storage -> array_elements",
                ),
                ("object storage value", "local_variables -> storage -> storage -> 0 -> value"),
                ("object storage value 19", "local_variables -> storage -> storage -> 20 -> value"),
                ("array object", "local_variables -> array -> storage -> array_elements -> in"),
                ("array iterator", "local_variables -> iterator -> storage -> array_elements"),
                ("fixed array", "local_variables -> fixed -> storage -> 1"),
                ("linked list 9", "local_variables -> list -> storage -> 9 -> value"),
                ("queue 0", "local_variables -> queue -> storage -> 0 -> value"),
                ("stack 5", "local_variables -> stack -> storage -> 5 -> value"),
                ("heap", "local_variables -> heap -> storage -> 0"),
                ("priority queue 9", "local_variables -> priorities -> storage -> 0"),
                ("nested array object", "local_variables -> nested -> storage -> storage -> array_elements"),
                ("multiple iterator", "local_variables -> multiple -> storage -> 0 -> key -> storage"),
                ("property of a container", "local_variables -> own -> object_properties -> more"),
                ("own storage", "local_variables -> own -> storage -> 0 -> value"),
                (
                    "bound variable",
                    "local_variables -> binding -> closure -> func -> op_array -> static_variables -> array_elements -> bound",
                ),
                (
                    "generator argument",
                    "local_variables -> generating -> generator -> call_frames -> 0 -> local_variables -> argument",
                ),
                (
                    "generator local",
                    "local_variables -> generating -> generator -> call_frames -> 0 -> local_variables -> local",
                ),
                ("generator value", "local_variables -> generating -> generator -> value"),
                ("generator key", "local_variables -> generating -> generator -> key"),
                ("inner generator", "local_variables -> delegating -> generator -> "),
            ],
        );
        // Values that only unknown structures hold.
        let made = heap.made();
        for what in
            ["caching iterator", "limit iterator", "append iterator", "stream context", "shutdown argument"]
        {
            assert!(made.contains_key(what), "{name}: {what} of {made:#?}");
        }
    });
}

#[test]
fn fibers_weak_maps_and_closures_of_methods_hold_what_they_do() {
    with_programs(&["internals/modern"], |name, _, heap| {
        expect_made(
            name,
            heap,
            &[
                ("fiber local", "local_variables -> fiber -> fiber -> "),
                ("fiber deep local", "local_variables -> fiber -> fiber -> call_frames -> "),
                ("fiber argument", "local_variables -> fiber -> fiber -> call_frames -> "),
                ("fiber result", "local_variables -> done -> fiber -> result"),
                (
                    "fiber 3",
                    "local_variables -> many -> array_elements -> 3 -> value -> fiber -> call_frames -> 1 -> local_variables -> own",
                ),
                ("weak map value", "local_variables -> map -> weak_map -> entries -> 0 -> value"),
                ("thing", "local_variables -> thing -> object_properties -> name"),
                ("named argument", "local_variables -> named -> generator -> call_frames -> 0 -> "),
                ("magic", "local_variables -> magic -> object_properties -> data"),
                ("anonymous", "local_variables -> anonymous -> object_properties -> text"),
                // A weak map or a weak reference leads to both first.
                (
                    "kept key",
                    "local_variables -> keeping -> array_elements -> 0 -> value -> object_properties -> name",
                ),
                (
                    "kept referent",
                    "local_variables -> keeping -> array_elements -> 1 -> value -> object_properties -> name",
                ),
            ],
        );
        let weak: BTreeSet<_> =
            heap.edges.iter().filter(|edge| edge.strength == Strength::Weak).collect_links(heap);
        assert!(weak.contains("referent") && weak.contains("key"), "{name}: {weak:?}");
    });
}

#[test]
fn stacks_of_fibers_add_up_and_only_those_have_calls_that_wait() {
    with_programs(&["internals/fibers"], |name, _, heap| {
        let located = heap.locations.iter().filter(|(_, location)| location.region.is_some());
        let bytes: u64 = located.map(|(_, location)| location.size + u64::from(location.bin_overhead)).sum();
        // The compiler's memory may contain data that is not known for each release.
        let arena = heap.number("compiler_arena_total") - heap.number("compiler_arena_usage");
        assert_eq!(bytes + arena, heap.number("memory_get_usage"), "{name}");
        assert_eq!(heap.number("vm_stack_usage"), heap.number("vm_stack_total"), "{name}");
        expect_made(
            name,
            heap,
            &[
                ("result", "ended -> fiber -> result"),
                ("suspended 19", "many -> array_elements -> 19 -> value -> fiber -> call_frames -> 1"),
                ("on many pages", "pages -> fiber -> call_frames -> "),
                ("behind arguments", "arguments -> fiber -> call_frames -> "),
                ("kept 39", "call_frames -> 6 -> local_variables -> keep -> array_elements -> 39"),
                ("of the innermost", "call_frames -> 3 -> local_variables -> mine"),
                ("prepared", "call_frames -> 9 -> prepared_call[0] -> $args[0]"),
            ],
        );
        let made = heap.made();
        let returned: Vec<_> = made.keys().filter(|what| what.starts_with("returned")).collect();
        assert_eq!(returned, Vec::<&String>::new(), "{name}");
        let in_place = made.iter().find(|(what, _)| what.starts_with("in its place")).unwrap();
        assert!(in_place.1.ends_with("call_frames -> 9 -> local_variables -> place"), "{name}: {in_place:?}");
        let fibers = (0..).zip(&heap.nodes).filter(|(_, kind)| **kind == NodeType::FIBER);
        let fibers: Vec<_> = fibers.map(|(number, _)| NodeId(number)).collect();
        let with = |link| {
            let parts = fibers.iter().flat_map(|fiber| heap.children(*fiber));
            parts.filter(|edge| heap.text(edge.link) == link).map(|edge| edge.child).collect::<Vec<_>>()
        };
        // The fibers of `$many`, of `$pages`, of `$arguments`, `$running`, and the one that it resumed.
        assert_eq!((fibers.len(), with("call_frames").len(), with("vm_stack").len()), (27, 22, 24), "{name}");
        for stack in with("vm_stack") {
            let parts = heap.locations.iter().filter(|(node, _)| *node == stack).map(|(_, part)| part);
            let sizes = [LocationType::VM_STACK_HEADER, LocationType::VM_STACK_UNUSED].map(|kind| {
                parts.clone().filter(move |part| part.location_type == kind).map(|part| part.size)
            });
            let [pages, unused] = sizes.map(|sizes| (sizes.clone().count(), sizes.sum::<u64>()));
            let path = heap.path(stack);
            let is_long = ["pages", "arguments"]
                .iter()
                .any(|name| path.contains(&format!("local_variables -> {name} -> fiber")));
            assert_eq!(pages.0 > 4, is_long, "{name}: {pages:?}");
            assert!(is_long || (8 << 10..16 << 10).contains(&unused.1), "{name}: {unused:?}");
        }
    });
}

#[test]
fn calls_that_do_not_go_on_as_they_are_hold_what_they_do() {
    with_programs(&["internals/suspended"], |name, _, heap| {
        let waiting = "generator -> call_frames -> 0 -> local_variables -> $_T[";
        expect_made(
            name,
            heap,
            &[
                ("sum", waiting),
                ("inner sum", waiting),
                ("text", waiting),
                ("delegated", waiting),
                ("first", "call_frames -> 6 -> local_variables -> $_T["),
                ("returned", "call_frames -> 5 -> local_variables -> $_T["),
                ("argument", "call_frames -> 5 -> prepared_call[0] -> $args[0]"),
                ("prepared", "call_frames -> 4 -> prepared_call[0] -> $args[0]"),
                (
                    "named",
                    "call_frames -> 4 -> prepared_call[0] -> extra_named_params -> array_elements -> name",
                ),
            ],
        );
    });
}

#[test]
fn lazy_objects_hold_their_initializers() {
    let check = |name: &str, heap: &Collected| {
        let made = heap.made();
        for what in ["captured by initializer", "resolved proxy", "initialized ghost"] {
            assert!(made.contains_key(what), "{name}: {what} of {made:#?}");
        }
        assert!(!made.contains_key("never"), "{name}");
    };
    check("recorded", &Collected::recorded(&corpus("php/lazy/8.4.24.rdump")));
    for (name, peer, root) in live::phps() {
        if let Some(copied) = live::copy(&peer, &root, "internals/lazy", &[], &[]) {
            check(&name, &Collected::of(&copied));
        }
    }
}

trait Links {
    fn collect_links(self, heap: &Collected) -> BTreeSet<String>;
}

impl<'e, I: Iterator<Item = &'e Edge>> Links for I {
    fn collect_links(self, heap: &Collected) -> BTreeSet<String> {
        self.map(|edge| heap.text(edge.link)).collect()
    }
}

/// The number of objects and other values under `garbage`, by class.
fn garbage(heap: &Collected) -> BTreeMap<String, usize> {
    let mut classes = BTreeMap::new();
    for edge in heap.root("garbage").into_iter().flat_map(|root| heap.children(root)) {
        assert_eq!(edge.strength, Strength::Weak);
        *classes.entry(heap.class(edge.child)).or_default() += 1;
    }
    classes
}

#[test]
fn garbage_is_what_holds_itself_and_nothing_else() {
    let mut count = 0;
    let programs = ["internals/garbage", "mem/m5_mixed", "mem/m4_generators", "internals/containers"];
    with_programs(&programs, |name, _, heap| {
        let expected: &[(&str, usize)] = if name.contains("garbage") {
            count += 1;
            &[("", 10), ("Pair", 20), ("SplObjectStorage", 10)]
        } else if name.contains("m5_mixed") {
            count += 1;
            &[("stdClass", 100)]
        } else {
            &[]
        };
        let expected = expected.iter().map(|&(class, count)| (class.to_owned(), count)).collect();
        assert_eq!(garbage(heap), expected, "{name}");
        // Only the table of objects also leads to what garbage leads to.
        for edge in heap.edges.iter().filter(|edge| !edge.is_tree && edge.strength == Strength::Strong) {
            let parent = edge.parent.map(|parent| heap.path(parent)).unwrap_or_default();
            let leads_into =
                heap.path(edge.child).starts_with("garbage -> ") && !heap.class(edge.child).is_empty();
            assert!(!leads_into || parent.starts_with("garbage"), "{name}: {parent}");
        }
    });
    assert!(count > 0);
}

#[test]
fn remnants_of_freed_objects_hold_nothing() {
    with_programs(&["internals/remnants"], |name, _, heap| {
        let mut found = garbage(heap);
        assert_eq!(found.remove("Leak"), Some(480), "{name}: {found:?}");
        assert_eq!(found.remove("SplObjectStorage"), Some(10), "{name}: {found:?}");
        assert!(matches!(found.remove("FiberLeak"), None | Some(10)), "{name}: {found:?}");
    });
}

/// The retained sizes of the properties of the one object of class `Structures`.
fn retained_structures(copied: &CopiedProgram) -> BTreeMap<String, u64> {
    let mut builder = GraphBuilder::new();
    let CopiedProgram { dump, php, executor, .. } = copied;
    let mut blocks = HeapBlocks::of(dump, php, executor).unwrap();
    walk(dump, php, executor, &mut blocks, &HeapWalkOptions::default(), &mut builder);
    let graph = builder.finish().unwrap();
    let heap = Heap::new(&graph, Follow::default());
    let of_class =
        |&row: &usize| graph.location(row).class.is_some_and(|class| graph.string(class) == b"Structures");
    let object = graph.location_node((0..graph.counts().locations).find(of_class).unwrap());
    let rows = |node| graph.children(Some(node)).filter_map(|row| graph.child(row));
    let properties = rows(object).find(|child| graph.string(child.link) == b"object_properties").unwrap();
    let text = |link| String::from_utf8_lossy(graph.string(link)).into_owned();
    rows(properties.node).map(|child| (text(child.link), heap.retention().retained(child.node))).collect()
}

#[test]
fn what_is_retained_is_what_php_frees() {
    with_programs(&["internals/freed"], |name, copied, _| {
        let ready: serde_json::Value = serde_json::from_str(&copied.ready).unwrap();
        let freed = ready["freed"].as_object().unwrap().iter();
        let freed: BTreeMap<_, _> =
            freed.map(|(what, bytes)| (what.clone(), bytes.as_u64().unwrap())).collect();
        assert!(freed.len() >= 13 && freed.values().all(|&bytes| bytes > 1000), "{name}: {freed:?}");
        assert_eq!(retained_structures(copied), freed, "{name}");
    });
}

/// opcache lays out scripts in the memory of the process if it keeps them in files, or if its own memory is full.
#[test]
fn scripts_of_opcache_are_counted_once() {
    let scratch = borehole_testkit::Scratch::new();
    for (name, peer, root) in live::phps().into_iter().filter(|(_, _, root)| root == Path::new("/")) {
        let folder = format!("opcache.file_cache={}", scratch.path("").display());
        let options = ["enable_cli=1", "file_cache_only=1", "file_update_protection=0"];
        let options = options.map(|option| format!("opcache.{option}"));
        let options = options.iter().map(String::as_str).chain([&*folder]);
        let options: Vec<&str> = options.flat_map(|option| ["-d", option]).collect();
        for program in live::PROGRAMS {
            let Some(copied) = live::copy(&peer, &root, program, &options, &[]) else { continue };
            let heap = Collected::of(&copied);
            let name = format!("{name} {program}");
            assert!(heap.is_laid_out(), "{name}");
            check_sizes(&name, &heap);
        }
    }
}

#[test]
fn garbage_is_found_without_a_list_of_blocks() {
    for (name, peer, root) in live::phps() {
        let environment = [("USE_ZEND_ALLOC", "0")];
        let copied = live::copy_with(&peer, &root, "internals/garbage", &[], &[], &environment).unwrap();
        let expected = [("Pair".to_owned(), 20), ("SplObjectStorage".to_owned(), 10)];
        assert_eq!(garbage(&Collected::of(&copied)), BTreeMap::from(expected), "{name}");
    }
}

#[test]
fn a_heap_without_an_account_is_walked_all_the_same() {
    for (name, peer, root) in live::phps() {
        let environment = [("USE_ZEND_ALLOC", "0")];
        let copied = live::copy_with(&peer, &root, "internals/containers", &[], &[], &environment).unwrap();
        let heap = Collected::of(&copied);
        assert!(heap.summary["heap_memory_accounting"].starts_with("none: "), "{name}: {:?}", heap.summary);
        assert!(!heap.summary.contains_key("memory_get_usage"), "{name}");
        let made = heap.made();
        for what in ["array object", "queue 0", "generator local", "property of a container"] {
            assert!(made.contains_key(what), "{name}: {what} of {made:#?}");
        }
    }
}

#[test]
fn a_request_is_active_in_every_recording() {
    let mut count = 0;
    for entry in std::fs::read_dir(corpus("php/heap")).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|extension| extension == "rdump") {
            let dump = Dump::read(BufReader::new(File::open(&path).unwrap())).unwrap();
            let php = Php::attach(&dump, &AttachOptions::default()).unwrap();
            let executor = php.executors(&dump).unwrap()[0];
            let layout = HeapLayout::of(php.identity().release);
            let active = DumpView::new(&dump).array(moved(executor.globals, layout.executor_active));
            assert_eq!(active, Some([1]), "{path:?}");
            count += 1;
        }
    }
    assert!(count > 8, "{count}");
}

#[test]
fn summaries_have_the_keys_of_the_memory_database() {
    with_programs(&["internals/objects"], |name, copied, heap| {
        let since_7_2 = copied.php.identity().release >= PhpRelease::of_version(7, 2).unwrap();
        let keys = [
            "memory_get_usage",
            "memory_get_real_usage",
            "memory_get_peak_usage",
            "memory_limit",
            "zend_mm_heap_total",
            "zend_mm_heap_usage",
            "vm_stack_total",
            "compiler_arena_total",
            "cached_chunks_size",
            "chunks_count",
            "peak_chunks_count",
            "cached_chunks_count",
            "chunks_total_free_bytes",
            "chunks_mostly_empty_count",
        ];
        let numbers: BTreeMap<_, _> = keys.map(|key| (key, heap.number(key))).into();
        assert_eq!(heap.summary.contains_key("last_chunks_delete_count"), since_7_2, "{name}");
        assert_eq!(numbers["vm_stack_total"], 256 << 10, "{name}");
        assert_eq!(numbers["compiler_arena_total"] % (64 << 10), 0, "{name}");
        assert_eq!(
            numbers["memory_get_real_usage"],
            (numbers["chunks_count"] + numbers["cached_chunks_count"]) * (2 << 20)
                + heap.number("zend_mm_huge_total"),
            "{name}"
        );
        assert!(numbers["memory_get_usage"] <= numbers["memory_get_peak_usage"], "{name}");
        assert!(heap.summary["php_version"].starts_with('v'), "{name}");
    });
}
