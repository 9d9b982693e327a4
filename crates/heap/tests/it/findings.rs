//! Findings on graphs of all shapes. Those on heaps of real programs are tested with the command.

use borehole_heap::findings::{Fact, FindingKind, FindingSeverity, HeapFinding, HeapReport, report};
use borehole_heap::retention::Follow;
use borehole_heap::rmem::MappedGraph;
use borehole_heap::views::Heap;
use borehole_heap::{
    AttributeValue, Edge, Graph, GraphBuilder, HeapGraph, HeapSink as _, LocationType, MemoryLocation,
    NodeId, NodeType, Region, Strength, json,
};
use proptest::prelude::*;

use crate::graphs::{graph, small};
use crate::json::reli;
use crate::rmem::written;

fn report_on(graph: &dyn Graph) -> HeapReport {
    report(&Heap::new(graph, Follow::default()))
}

fn find(report: &HeapReport, kind: FindingKind) -> Option<&HeapFinding> {
    report.findings.iter().find(|finding| finding.kind == kind)
}

fn alarms(report: &HeapReport) -> Vec<&'static str> {
    let alarms = report.findings.iter().filter(|finding| finding.severity < FindingSeverity::Low);
    alarms.map(|finding| finding.kind.name()).collect()
}

/// All numbers of a report can be shown, and the most important findings come first.
fn check(report: &HeapReport) {
    let order = |finding: &HeapFinding| (finding.severity, std::cmp::Reverse(finding.impact_bytes));
    assert!(report.findings.is_sorted_by_key(order));
    for finding in &report.findings {
        for (name, fact) in &finding.facts {
            check_fact(name, fact);
        }
        let texts = [&finding.summary, &finding.hypothesis];
        assert!(texts.iter().all(|text| !text.contains("NaN") && !text.contains("inf ")), "{finding:?}");
        assert!(finding.severity == FindingSeverity::Info || !finding.hypothesis.is_empty(), "{finding:?}");
    }
}

fn check_fact(name: &str, fact: &Fact) {
    match fact {
        Fact::Share(share) => assert!(share.is_finite(), "{name}: {share}"),
        Fact::Rows(rows) => rows.iter().flatten().for_each(|(name, fact)| check_fact(name, fact)),
        _ => {}
    }
}

/// Builds graphs of objects, arrays and strings, each with its own memory.
pub(crate) struct Sketch {
    builder: GraphBuilder,
    address: u64,
    /// The reference count of the next value.
    refcount: u32,
}

impl Sketch {
    fn new() -> Self {
        let mut builder = GraphBuilder::new();
        // A heap large enough for findings, and a limit at which they matter.
        builder.summary("zend_mm_heap_usage", "8388608");
        builder.summary("memory_limit", "4194304");
        Self { builder, address: 0x7000_0000, refcount: 1 }
    }

    fn node(
        &mut self,
        parent: Option<NodeId>,
        link: &str,
        node_type: NodeType,
        strength: Strength,
    ) -> NodeId {
        let child = self.builder.node(node_type);
        let link = self.builder.string(link.as_bytes());
        self.builder.edge(Edge { parent, child, link, is_tree: true, strength });
        child
    }

    fn edge(&mut self, parent: NodeId, child: NodeId, link: &str) {
        let link = self.builder.string(link.as_bytes());
        let parent = Some(parent);
        self.builder.edge(Edge { parent, child, link, is_tree: false, strength: Strength::Strong });
    }

    fn locate(&mut self, node: NodeId, location_type: LocationType, size: u64, name: &str) {
        let name = Some(self.builder.string(name.as_bytes()));
        let is_string = location_type == LocationType::STRING;
        let is_object = location_type == LocationType::OBJECT;
        self.address += size.max(16);
        let location = MemoryLocation {
            class: name.filter(|_| is_object),
            string: name.filter(|_| is_string),
            refcount: Some(std::mem::replace(&mut self.refcount, 1)),
            type_info: Some(8),
            region: Some(Region::HEAP),
            ..MemoryLocation::new(location_type, self.address, size)
        };
        self.builder.location(node, &location);
    }

    /// An object with a node for its properties. Returns both.
    fn object(&mut self, parent: Option<NodeId>, link: &str, class: &str, size: u64) -> (NodeId, NodeId) {
        let object = self.node(parent, link, NodeType::OBJECT, Strength::Strong);
        self.locate(object, LocationType::OBJECT, size, class);
        let properties =
            self.node(Some(object), "object_properties", NodeType::OBJECT_PROPERTIES, Strength::Strong);
        (object, properties)
    }

    fn string(&mut self, parent: Option<NodeId>, link: &str, text: &str, size: u64) -> NodeId {
        let string = self.node(parent, link, NodeType::STRING, Strength::Strong);
        self.locate(string, LocationType::STRING, size, text);
        string
    }

    /// An array with a node for its elements, which claims to have this many.
    fn array(&mut self, parent: Option<NodeId>, link: &str, table: [u64; 2], count: i64) -> (NodeId, NodeId) {
        self.table(parent, link, table, count, true)
    }

    /// An array with string keys.
    fn keyed(&mut self, parent: Option<NodeId>, link: &str, bytes: u64, count: i64) -> (NodeId, NodeId) {
        self.table(parent, link, [bytes, 0], count, false)
    }

    fn table(
        &mut self,
        parent: Option<NodeId>,
        link: &str,
        table: [u64; 2],
        count: i64,
        is_list: bool,
    ) -> (NodeId, NodeId) {
        let array = self.node(parent, link, NodeType::ARRAY_HEADER, Strength::Strong);
        self.locate(array, LocationType::ARRAY, 56, "");
        let unused = self.node(
            Some(array),
            "possible_unused_area",
            NodeType::ARRAY_POSSIBLE_OVERHEAD,
            Strength::Strong,
        );
        self.locate(unused, LocationType::ARRAY_TABLE_OVERHEAD, table[1], "");
        let elements = self.node(Some(array), "array_elements", NodeType::ARRAY_ELEMENTS, Strength::Strong);
        self.locate(elements, LocationType::ARRAY_TABLE, table[0], "");
        let (key, packed) = (self.builder.string(b"#count"), self.builder.string(b"is_packed"));
        self.builder.attribute(elements, key, AttributeValue::Integer(count));
        self.builder.attribute(elements, packed, AttributeValue::Bool(is_list));
        (array, elements)
    }

    fn scalar(&mut self, parent: NodeId, link: &str, value: i64) {
        let scalar = self.node(Some(parent), link, NodeType::SCALAR_VALUE, Strength::Strong);
        let key = self.builder.string(b"value");
        self.builder.attribute(scalar, key, AttributeValue::Integer(value));
    }

    fn element(&mut self, elements: NodeId, key: u32) -> NodeId {
        self.node(Some(elements), &key.to_string(), NodeType::ARRAY_ELEMENT, Strength::Strong)
    }

    fn globals(&mut self) -> NodeId {
        let root = self.node(None, "global_variables", NodeType::GLOBAL_VARIABLES, Strength::Strong);
        self.node(Some(root), "array_elements", NodeType::ARRAY_ELEMENTS, Strength::Strong)
    }

    pub(crate) fn report(self) -> HeapReport {
        let graph = self.builder.finish().unwrap();
        let report = report_on(&graph);
        check(&report);
        report
    }
}

#[test]
fn empty_graphs_have_no_findings() {
    let report = report_on(&GraphBuilder::new().finish().unwrap());
    check(&report);
    assert_eq!(alarms(&report), [""; 0]);
    assert!(report.arrays.is_empty() && report.roots.is_empty());
    let mut sketch = Sketch::new();
    sketch.string(None, "only", "text", 32);
    assert_eq!(alarms(&sketch.report()), [""; 0]);
    let report = report_on(&small());
    check(&report);
    assert_eq!(alarms(&report), [""; 0]);
}

/// No root, and only cycles: all nodes are unreached or garbage. This still gives a result.
#[test]
fn graphs_without_roots_are_reported() {
    let mut builder = GraphBuilder::new();
    let link = builder.string(b"next");
    let nodes: Vec<NodeId> = (0..100).map(|_| builder.node(NodeType::OBJECT)).collect();
    for pair in 0..100 {
        let (parent, child) = (Some(nodes[pair]), nodes[(pair + 1) % 100]);
        builder.edge(Edge { parent, child, link, is_tree: true, strength: Strength::Strong });
    }
    let report = report_on(&builder.finish().unwrap());
    check(&report);
    assert_eq!(alarms(&report), [""; 0]);
}

/// Two objects in each step, and a million steps: the path to the last is cut, and the first is named.
#[test]
fn a_long_list_is_found_by_its_head() {
    const COUNT: usize = 1_000_000;
    let mut sketch = Sketch::new();
    let globals = sketch.globals();
    let (head, mut properties) = sketch.object(Some(globals), "list", "Node", 56);
    for _ in 1..COUNT {
        properties = sketch.object(Some(properties), "next", "Node", 56).1;
    }
    let report = sketch.report();
    let bottleneck = find(&report, FindingKind::BottleneckPath).unwrap();
    assert_eq!(bottleneck.severity, FindingSeverity::High);
    assert_eq!(bottleneck.impact_bytes, 56 * COUNT as u64);
    assert_eq!(bottleneck.place.as_ref().map(|place| (place.node, &*place.path)), Some((head, "$list")));
    assert!(bottleneck.facts.contains(&("chain_length", Fact::from(COUNT))));
    // Its class and its property are no findings of their own.
    assert_eq!(alarms(&report), ["bottleneck_path"]);
    assert!(bottleneck.details[0].starts_with("Node: 1,000,000 instances"), "{:?}", bottleneck.details);
}

#[test]
fn an_object_with_many_referrers_is_not_a_finding() {
    const COUNT: u32 = 1_000_000;
    let mut sketch = Sketch::new();
    let globals = sketch.globals();
    let (shared, _) = sketch.object(Some(globals), "service", "Service", 40);
    let (_, elements) = sketch.array(Some(globals), "all", [16 << 20, 0], i64::from(COUNT));
    for number in 0..COUNT {
        let element = sketch.element(elements, number);
        sketch.edge(element, shared, "value");
    }
    let report = sketch.report();
    let bottleneck = find(&report, FindingKind::BottleneckPath).unwrap();
    assert_eq!(bottleneck.place.as_ref().unwrap().path, "$all");
    assert_eq!(bottleneck.impact_bytes, (16 << 20) + 56);
}

/// Programs whose heaps reli recorded incompletely, which is reported.
#[test]
fn graphs_of_reli_have_only_the_finding_of_incompleteness() {
    for name in ["m1_objects", "m3_closures", "m4_generators", "m5_mixed"] {
        let graph = json::read(&reli(name)).unwrap();
        let report = report_on(&graph);
        check(&report);
        let mut alarms = alarms(&report);
        alarms.retain(|&kind| kind != "coverage_gap");
        assert_eq!(alarms, [""; 0], "{name}");
        assert!(!report.overview.call_stack.is_empty() && report.counts.nodes > 1000, "{name}");
    }
}

/// Ten thousand rows, all but one alike.
pub(crate) fn rows_alike() -> Sketch {
    let mut sketch = Sketch::new();
    let globals = sketch.globals();
    let (_, list) = sketch.array(Some(globals), "rows", [8000, 0], 10_000);
    for row in 0..10_000 {
        let element = sketch.element(list, row);
        let (_, elements) = sketch.array(Some(element), "value", [136, 0], 2);
        for (key, value) in [(0, 7), (1, if row == 9_999 { 8 } else { 7 })] {
            let element = sketch.element(elements, key);
            sketch.scalar(element, "value", value);
        }
    }
    sketch
}

#[test]
fn duplicate_arrays_are_found_with_their_savings() {
    let report = rows_alike().report();
    let duplicates = find(&report, FindingKind::DuplicateArrays).unwrap();
    assert_eq!((duplicates.impact_bytes, duplicates.severity), (9_998 * (136 + 56), FindingSeverity::Medium));
    assert_eq!(duplicates.place.as_ref().unwrap().path, "$rows[]");
}

/// Tables with more room than elements.
pub(crate) fn roomy_tables() -> Sketch {
    let mut sketch = Sketch::new();
    let globals = sketch.globals();
    let slots = |count: u64| count * 16 + 8;
    // Five elements of formerly 131,072, and a thousand lists with 2 of 256.
    sketch.array(Some(globals), "sparse", [slots(5), slots(131_072) - slots(5)], 5);
    let (_, list) = sketch.array(Some(globals), "lists", [slots(1024), 0], 1000);
    for number in 0..1000 {
        let element = sketch.element(list, number);
        sketch.array(Some(element), "value", [slots(2), slots(256) - slots(2)], 2);
    }
    // Lists that were not filled in order have keys: 40 bytes a slot instead of 16.
    let (_, list) = sketch.array(Some(globals), "keyed", [slots(1024), 0], 1000);
    for number in 0..1000 {
        let element = sketch.element(list, number);
        let (_, elements) = sketch.keyed(Some(element), "value", 40 * 8, 8);
        for key in 0..8 {
            // Not a list: its first key is 1.
            let key = if number == 999 { key + 1 } else { key };
            let element = sketch.element(elements, key);
            sketch.scalar(element, "value", i64::from(number));
        }
    }
    sketch
}

#[test]
fn oversized_tables_are_found_with_their_needed_size() {
    let slots = |count: u64| count * 16 + 8;
    let report = roomy_tables().report();
    let sparse = find(&report, FindingKind::SparseArray).unwrap();
    assert_eq!((sparse.impact_bytes, sparse.severity), (slots(131_072) - slots(8), FindingSeverity::Medium));
    assert_eq!(sparse.place.as_ref().unwrap().path, "$sparse");
    let many = find(&report, FindingKind::OverallocatedArrays).unwrap();
    assert_eq!(many.impact_bytes, 1000 * (slots(256) - slots(8)) + 999 * (8 * 40 - slots(8)));
    assert_eq!(many.place.as_ref().unwrap().path, "$lists[]");
}

/// Objects that come together.
pub(crate) fn users_with_profiles() -> Sketch {
    let mut sketch = Sketch::new();
    let globals = sketch.globals();
    let (_, list) = sketch.array(Some(globals), "users", [64 << 10, 0], 4000);
    for number in 0..4000 {
        let element = sketch.element(list, number);
        let (_, user) = sketch.object(Some(element), "value", "App\\User", 400);
        let (_, profile) = sketch.object(Some(user), "profile", "App\\Profile", 400);
        sketch.scalar(profile, "level", i64::from(number % 3));
        sketch.string(Some(user), "name", &format!("user {number}"), 500);
        sketch.object(Some(user), "nothing", "App\\Nothing", 300);
    }
    sketch
}

#[test]
fn classes_are_found_by_content_and_companions() {
    let report = users_with_profiles().report();
    let kind = |kind| find(&report, kind).unwrap();
    let ownership = kind(FindingKind::OwnershipPattern);
    assert_eq!(ownership.impact_bytes, 4000 * 400);
    assert!(ownership.summary.starts_with("each App\\User owns one App\\Profile in App\\User::$profile"));
    // The cost of each user is a detail of the list that holds them.
    let details = &kind(FindingKind::BottleneckPath).details;
    let each = "App\\User (4,000 instances): each retains 1.17 KiB in 3 properties";
    assert!(details.iter().any(|detail| detail == each), "{details:?}");
    assert_eq!(kind(FindingKind::ExpensiveProperty).facts[0].1, Fact::from("App\\User::$name"));
    assert_eq!(kind(FindingKind::CompanionCluster).impact_bytes, 4000 * (400 + 400 + 300));
    // Three levels, each of which needs only one object.
    assert_eq!(kind(FindingKind::StructuralDuplicate).impact_bytes, 3997 * 400);
    assert_eq!(kind(FindingKind::EmptyObject).impact_bytes, 4000 * 300);
}

/// Objects of these classes, each a property of the previous one, and the first one of the last.
fn ring(sketch: &mut Sketch, parent: NodeId, classes: &[impl AsRef<str>], size: u64) {
    let (first, mut properties) = sketch.object(Some(parent), "value", classes[0].as_ref(), size);
    for class in &classes[1..] {
        properties = sketch.object(Some(properties), "next", class.as_ref(), size).1;
    }
    sketch.edge(properties, first, "back");
}

/// Cycles of three kinds.
pub(crate) fn rings() -> Sketch {
    let mut sketch = Sketch::new();
    let globals = sketch.globals();
    let (_, list) = sketch.array(Some(globals), "rings", [1024, 0], 51);
    for number in 0..50 {
        let element = sketch.element(list, number);
        match number {
            0..20 => ring(&mut sketch, element, &["App\\Parent", "App\\Child"], 100),
            _ => ring(&mut sketch, element, &["App\\Queue", "App\\Job", "App\\Log"], 16 << 10),
        }
    }
    let services: Vec<String> = (0..20).map(|number| format!("App\\Service{number}")).collect();
    let element = sketch.element(list, 50);
    ring(&mut sketch, element, &services, 8 << 10);
    sketch
}

#[test]
fn cycles_are_found_by_their_members() {
    let report = rings().report();
    let told = |kind| {
        let finding = find(&report, kind).unwrap();
        let fact = |wanted: &str| finding.facts.iter().find(|(name, _)| *name == wanted).unwrap().1.clone();
        assert_eq!(fact("entry_points"), Fact::from(1_u64));
        (finding.severity, finding.impact_bytes, fact("cycles"), fact("back_reference"))
    };
    let micro = told(FindingKind::MicroCycle);
    // Parents and children that know each other are normal.
    assert_eq!((micro.0, micro.1, micro.2), (FindingSeverity::Info, 20 * 200, Fact::from(20_u64)));
    assert_eq!(micro.3, Fact::from("App\\Child::$back -> App\\Parent"));
    let cluster = told(FindingKind::CycleCluster);
    assert_eq!(
        (cluster.0, cluster.1, cluster.2),
        (FindingSeverity::Medium, 90 * (16 << 10), Fact::from(30_u64))
    );
    assert_eq!(cluster.3, Fact::from("App\\Log::$back -> App\\Queue"));
    // So many classes are a container of services, which is normal.
    let container = told(FindingKind::DiContainerCycle);
    assert_eq!(
        (container.0, container.1, container.2),
        (FindingSeverity::Info, 20 * (8 << 10), Fact::from(1_u64))
    );
}

/// Values that many share, and large ones.
pub(crate) fn shared_and_large_values() -> Sketch {
    let mut sketch = Sketch::new();
    let globals = sketch.globals();
    sketch.refcount = 1501;
    let (connection, _) = sketch.object(Some(globals), "db", "App\\Connection", 64);
    let (_, list) = sketch.array(Some(globals), "users", [24 << 10, 0], 1500);
    for number in 0..1500 {
        let element = sketch.element(list, number);
        let (user, properties) = sketch.object(Some(element), "value", "App\\User", 600);
        sketch.edge(properties, connection, "db");
        sketch.string(Some(properties), "country", "Norway", 100);
        sketch.keyed(Some(user), "dynamic_properties", 320, 3);
    }
    // The largest one is reported as the bottleneck.
    sketch.string(Some(globals), "log", "one line and another", 3 << 20);
    sketch.string(Some(globals), "trace", "a further line", 2 << 20);
    sketch
}

#[test]
fn shared_duplicate_and_large_values_are_found() {
    let report = shared_and_large_values().report();
    let told = |kind| {
        let finding = find(&report, kind).unwrap_or_else(|| panic!("expected {kind:?}"));
        (finding.severity, finding.impact_bytes, finding.place.as_ref().map(|place| place.path.as_str()))
    };
    assert_eq!(told(FindingKind::SharedSingleton).2, Some("$db"));
    let fan_in = find(&report, FindingKind::SharedFanin).unwrap();
    assert!(
        fan_in.summary.starts_with("App\\User::$db: 1,500 references to shared objects of App\\Connection")
    );
    // One of the texts is enough; each saves the same share.
    assert_eq!(
        told(FindingKind::DedupCandidate),
        (FindingSeverity::Low, 1500 * (1499 * 100 / 1500), Some("$users[0]->country"))
    );
    let dynamic = told(FindingKind::DynamicPropertiesOverhead);
    assert_eq!((dynamic.0, dynamic.1), (FindingSeverity::Low, 1500 * (56 + 320)));
    assert_eq!(told(FindingKind::BottleneckPath).2, Some("$log"));
    assert_eq!(told(FindingKind::LargeString), (FindingSeverity::Medium, 2 << 20, Some("$trace")));
    let users = 1500 * (600 + 100 + 56 + 320) + (24 << 10) + 56;
    assert_eq!((told(FindingKind::LargeArray).1, told(FindingKind::LargeArray).2), (users, Some("$users")));
    // The only root keeps all of it alive.
    let [root] = &*report.roots else { panic!("{:?}", report.roots) };
    assert_eq!((root.exclusive_bytes, root.shared_bytes), (users + (5 << 20) + 64, 0));
    assert!(
        find(&report, FindingKind::RootBlame).is_some()
            && find(&report, FindingKind::RetainedExact).is_some()
    );
}

/// Small objects that hold much.
pub(crate) fn small_holders() -> Sketch {
    let mut sketch = Sketch::new();
    let globals = sketch.globals();
    // The bottleneck, and two others.
    sketch.string(Some(globals), "text", "long", 4 << 20);
    for (name, class, bytes) in [("parser", "Parser", 3_u64 << 20), ("cache", "Cache", 1 << 20)] {
        let (_, properties) = sketch.object(Some(globals), name, class, 56);
        let (_, inner) = sketch.object(Some(properties), "inner", "Inner", 56);
        sketch.string(Some(inner), "buffer", name, bytes);
    }
    sketch
}

#[test]
fn small_objects_that_hold_much_are_choke_points() {
    let report = small_holders().report();
    let points: Vec<&HeapFinding> =
        report.findings.iter().filter(|finding| finding.kind == FindingKind::ChokePoint).collect();
    let told: Vec<_> = points
        .iter()
        .map(|point| (point.place.as_ref().unwrap().path.as_str(), point.severity, point.impact_bytes))
        .collect();
    // The lowest object that still holds it is named.
    assert_eq!(told, [("$parser->inner", FindingSeverity::High, (3 << 20) + 56)]);
    // The other one is told once, as the value of a property.
    let of_cache =
        |finding: &&HeapFinding| finding.place.as_ref().is_some_and(|place| place.path.starts_with("$cache"));
    let of_cache: Vec<FindingKind> =
        report.findings.iter().filter(of_cache).map(|found| found.kind).collect();
    assert_eq!(of_cache, [FindingKind::ExpensiveProperty]);
    assert_eq!(find(&report, FindingKind::BottleneckPath).unwrap().place.as_ref().unwrap().path, "$text");
}

#[test]
fn a_bottleneck_is_not_a_choke_point_too() {
    let mut sketch = Sketch::new();
    let globals = sketch.globals();
    let (_, properties) = sketch.object(Some(globals), "parser", "Parser", 56);
    sketch.string(Some(properties), "buffer", "long", 4 << 20);
    let report = sketch.report();
    assert_eq!(
        find(&report, FindingKind::BottleneckPath).unwrap().place.as_ref().unwrap().path,
        "$parser->buffer"
    );
    assert!(find(&report, FindingKind::ChokePoint).is_none());
}

/// Each root is a bit of a number.
#[test]
fn at_most_64_roots_share_the_blame() {
    for count in [63, 64, 65, 200] {
        let mut sketch = Sketch::new();
        for number in 0..count {
            sketch.string(None, &format!("root{number}"), "text", 100 + number);
        }
        let roots = sketch.report().roots;
        assert_eq!(roots.len() as u64, count.min(64));
        assert!(roots.iter().all(|root| root.shared_bytes == 0));
        assert_eq!(roots[0].exclusive_bytes, 100 + count.min(64) - 1);
    }
}

#[test]
fn memory_that_two_roots_lead_to_is_shared() {
    let mut sketch = Sketch::new();
    let first = sketch.string(None, "first", "a", 1000);
    let second = sketch.string(None, "second", "b", 2000);
    let both = sketch.string(Some(first), "both", "c", 500);
    sketch.edge(second, both, "both");
    let roots = sketch.report().roots;
    let told: Vec<_> =
        roots.iter().map(|root| (root.name.as_str(), root.exclusive_bytes, root.shared_bytes)).collect();
    assert_eq!(told, [("second", 2000, 500), ("first", 1000, 500)]);
}

#[test]
fn an_empty_heap_has_no_gap() {
    let mut sketch = Sketch::new();
    let globals = sketch.globals();
    sketch.string(Some(globals), "text", "of the program, not of a request", 600 << 10);
    for key in ["memory_get_usage", "zend_mm_heap_usage", "heap_memory_analyzed_percentage"] {
        sketch.builder.summary(key, "0");
    }
    let report = sketch.report();
    assert_eq!((report.used_bytes, report.overview.heap_usage), (0, 0));
    assert_eq!(report.overview.analyzed_percentage, None);
    assert!(find(&report, FindingKind::CoverageGap).is_none(), "{:?}", alarms(&report));
}

/// The report on a heap of which only these facts are known.
pub(crate) fn of_counters(facts: &[(&str, u64)]) -> HeapReport {
    let mut builder = GraphBuilder::new();
    for (key, value) in facts {
        builder.summary(key, &value.to_string());
    }
    let report = report_on(&builder.finish().unwrap());
    check(&report);
    report
}

/// Findings from PHP's counters alone.
#[test]
fn the_allocator_s_counters_are_judged() {
    let kinds = |facts: &[(&str, u64)]| alarms(&of_counters(facts));
    let chunk = 2_u64 << 20;
    assert_eq!(kinds(&[("memory_get_peak_usage", 79), ("memory_limit", 100)]), [""; 0]);
    assert_eq!(kinds(&[("memory_get_peak_usage", 80), ("memory_limit", 100)]), ["near_memory_limit"]);
    assert_eq!(kinds(&[("memory_get_peak_usage", 99), ("memory_limit", i64::MAX as u64)]), [""; 0]);
    assert_eq!(kinds(&[("heap_memory_analyzed_percentage", 94)]), ["coverage_gap"]);
    assert_eq!(kinds(&[("heap_memory_analyzed_percentage", 95)]), [""; 0]);
    assert_eq!(kinds(&[("memory_get_usage", 1), ("heap_memory_analyzed_percentage", 94)]), ["coverage_gap"]);
    assert_eq!(kinds(&[("chunks_count", 2), ("cached_chunks_count", 8)]), ["zendmm_cache_bloat"]);
    assert_eq!(kinds(&[("chunks_count", 8), ("cached_chunks_count", 8)]), [""; 0]);
    assert_eq!(
        kinds(&[("chunks_count", 8), ("last_chunks_delete_count", 3)]),
        ["zendmm_cache_expansion_imminent"]
    );
    let pinned =
        |count| [("chunks_count", 8), ("chunks_mostly_empty_count", count), ("memory_get_usage", 8 * chunk)];
    assert_eq!(kinds(&pinned(1)), [""; 0], "the last chunk is always partly empty");
    assert_eq!(kinds(&pinned(2)), ["zendmm_chunks_pinned_by_fragmentation"]);
    let free = [("chunks_count", 8), ("chunks_total_free_bytes", 7 * chunk), ("memory_get_usage", chunk)];
    assert_eq!(kinds(&free), ["zendmm_heap_fragmentation_high"]);
    let blocks = [("chunks_count", 8), ("chunks_free_blocks_bytes", 7 * chunk), ("memory_get_usage", chunk)];
    assert_eq!(
        kinds(&blocks),
        ["zendmm_heap_fragmentation_high"],
        "free slots in pages of one size are free"
    );
    let mut everything: Vec<(&str, u64)> = Vec::new();
    for key in
        ["memory_limit", "memory_get_peak_usage", "chunks_count", "cached_chunks_count", "memory_get_usage"]
    {
        everything.push((key, u64::MAX));
    }
    kinds(&everything);
}

#[test]
fn freeable_caches_are_a_finding() {
    let remedy = |reclaimable: u64| {
        let mut builder = GraphBuilder::new();
        for (key, value) in [
            ("chunks_count", 62),
            ("chunks_free_blocks_bytes", 122 << 20),
            ("chunks_reclaimable_bytes", reclaimable),
            ("memory_get_usage", 1 << 20),
        ] {
            builder.summary(key, &value.to_string());
        }
        let report = report_on(&builder.finish().unwrap());
        let found = find(&report, FindingKind::HeapFragmentation).unwrap();
        assert_eq!(found.impact_bytes, 122 << 20);
        assert!(found.summary.starts_with("122 MiB is free in 62 chunks"), "{}", found.summary);
        found.next_checks.clone()
    };
    let all = remedy(122 << 20);
    assert_eq!(
        all,
        ["Call gc_mem_caches() between jobs. It frees 122 MiB and releases chunks that become empty."]
    );
    let none = remedy(0);
    assert!(none.iter().all(|check| !check.contains("gc_mem_caches")), "{none:?}");
}

/// A thousand strings alike.
pub(crate) fn strings_alike() -> Sketch {
    let mut sketch = Sketch::new();
    let globals = sketch.globals();
    let (_, list) = sketch.array(Some(globals), "all", [16 << 10, 0], 1000);
    for number in 0..1000 {
        let element = sketch.element(list, number);
        sketch.string(Some(element), "value", "the same", 6000);
    }
    sketch
}

#[test]
fn specific_findings_come_before_general_ones() {
    let report = strings_alike().report();
    let first = &report.findings[0];
    assert_eq!((first.kind, first.impact_bytes), (FindingKind::DuplicateStrings, 999 * 6000));
    assert_eq!(first.place.as_ref().unwrap().path, "$all[]");
    assert_eq!(find(&report, FindingKind::BottleneckPath).unwrap().severity, FindingSeverity::Medium);
    assert!(find(&report, FindingKind::DominantType).is_none());
}

/// Findings from a file equal those from memory, in repeated runs.
#[test]
fn reports_are_equal_for_files_and_memory() {
    let graph: HeapGraph = json::read(&reli("m5_mixed")).unwrap();
    let file = written(&graph);
    let view = MappedGraph::open(&file).unwrap();
    let (of_memory, of_file) = (report_on(&graph), report_on(&view));
    assert_eq!(of_memory, of_file);
    assert_eq!(of_memory, report_on(&graph));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn any_graph_has_a_report(graph in graph()) {
        check(&report_on(&graph));
    }

    #[test]
    fn damaged_files_have_reports(graph in graph(), changes in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..40)) {
        let mut file = written(&graph);
        for (at, value) in changes {
            let at = at.index(file.len());
            file[at] = value;
        }
        if let Ok(view) = MappedGraph::open(&file) {
            check(&report_on(&view));
        }
    }
}

/// A loop of one object of 100,000 bytes below the garbage.
pub(crate) fn with_garbage() -> (Sketch, NodeId) {
    let mut sketch = Sketch::new();
    let garbage = sketch.node(None, "garbage", NodeType::GARBAGE, Strength::Strong);
    let leak = sketch.node(Some(garbage), "7", NodeType::OBJECT, Strength::Weak);
    sketch.locate(leak, LocationType::OBJECT, 100_000, "Leak");
    let properties =
        sketch.node(Some(leak), "object_properties", NodeType::OBJECT_PROPERTIES, Strength::Strong);
    sketch.edge(properties, leak, "self");
    (sketch, leak)
}

#[test]
fn an_address_found_by_searching_does_not_hide_garbage() {
    let (sketch, _) = with_garbage();
    let report = sketch.report();
    let before = find(&report, FindingKind::GarbageCycles).unwrap();
    assert!(before.facts.iter().all(|(name, _)| *name != "possible_reference"), "{before:?}");
    let (mut sketch, leak) = with_garbage();
    let globals = sketch.globals();
    let element = sketch.node(Some(globals), "buffer", NodeType::ARRAY_ELEMENT, Strength::Strong);
    let (buffer, _) = sketch.object(Some(element), "value", "Buffer", 80);
    let link = sketch.builder.string(b"internal+56");
    let (parent, child) = (Some(buffer), leak);
    sketch.builder.edge(Edge { parent, child, link, is_tree: false, strength: Strength::Weak });
    let report = sketch.report();
    let found = find(&report, FindingKind::GarbageCycles).unwrap();
    assert_eq!(found.impact_bytes, before.impact_bytes);
    let holder = found.facts.iter().find(|(name, _)| *name == "possible_reference").unwrap();
    assert_eq!(holder.1, Fact::Text("$buffer.internal+56".to_owned()));
}

#[test]
fn nothing_that_rests_on_sizes_is_reported_if_they_contradict_each_other() {
    let (mut sketch, _) = with_garbage();
    sketch.builder.summary("zend_mm_heap_total", "65536");
    let report = sketch.report();
    let text = "inconsistent sizes: expected at most 65536 bytes in the heap, found 100000";
    assert_eq!(report.contradiction.as_deref(), Some(text));
    assert!(find(&report, FindingKind::GarbageCycles).is_none());
    assert!(find(&report, FindingKind::RetainedExact).is_none());
    assert!(find(&report, FindingKind::Overview).is_some());
    assert!(report.types.is_empty() && report.classes.is_empty() && report.roots.is_empty());
}
