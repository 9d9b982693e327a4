//! Compares heaps with reli's results for the same programs.

use std::collections::{BTreeMap, BTreeSet};

use borehole_heap::{NodeId, NodeType};

use super::graph::{classes, see, types};
use crate::heap::collected::Collected;
use crate::heap::live;

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

/// Classes whose objects are more than their properties, or have a guard after them; reli counts only the properties.
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
    "Post",
    "ReflectionClass",
    "SimpleXMLElement",
    "SplDoublyLinkedList",
    "SplFixedArray",
    "SplMinHeap",
    "SplObjectStorage",
    "SplPriorityQueue",
    "User",
    "WeakMap",
    "WeakReference",
];

/// Types of locations that reli sees completely.
const EQUAL: &[&str] = &[
    "DefaultPropertiesTableMemoryLocation",
    "DefaultStaticMembersTableMemoryLocation",
    "ObjectsStoreMemoryLocation",
    "StaticMembersTableMemoryLocation",
    "ZendClassConstantMemoryLocation",
    "ZendClassEntryMemoryLocation",
    "ZendPropertyInfoMemoryLocation",
];

/// Types that reli does not see completely, and why.
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

/// Types that depend on the environment variables, which differed; and objects, which are compared by class.
const ENVIRONMENT: &[&str] = &[
    "ZendObjectMemoryLocation",
    "ZendArrayMemoryLocation",
    "ZendArrayTableMemoryLocation",
    "ZendArrayTableOverheadMemoryLocation",
    "ZendStringMemoryLocation",
];

/// Classes of an extension that the machine's PHP may lack.
const LEFT_OUT: &[&str] = &["PDO", "PDOStatement"];

#[test]
fn objects_of_each_class_are_as_many_and_as_large_as_reli_sees() {
    for_each_reli(|program, heap, reli| {
        let (mut ours, theirs) = (classes(heap), summary(reli, "class_objects_summary"));
        // Reli cuts the names of anonymous classes before their place, and takes those of one base for one class.
        let is_anonymous = |name: &String| name.contains("@anonymous(");
        for name in ours.keys().filter(|name| is_anonymous(name)).cloned().collect::<Vec<_>>() {
            let (count, bytes) = ours.remove(&name).unwrap();
            let all = ours.entry(name.split('(').next().unwrap().to_owned()).or_default();
            *all = (all.0 + count, all.1 + bytes);
        }
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
            if program == "m5_mixed" && name == "CallFrameVariableTableMemoryLocation" {
                // The variables of the database are missing.
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

/// Walks the programs that reli walked, with the same release if available.
fn for_each_reli(check: impl Fn(&str, &Collected, &serde_json::Value)) {
    let Some((_, peer, root)) = live::phps().into_iter().find(|(name, ..)| name == "php") else { return };
    let programs = ["m1_objects", "m3_closures", "m4_generators", "m5_mixed"];
    for program in programs {
        let copied =
            live::copy(&peer, &root, &format!("mem/{program}"), &["-d", "opcache.enable_cli=0"], &[]);
        let seen = see(&copied.unwrap_or_else(|| panic!("{program}: not run")));
        check(program, &seen.heap, &reli(program));
    }
}

/// Links whose names are not the program's.
const FIXED: &[&str] = &[
    "arg_infos",
    "array_elements",
    "class_entry",
    "closure",
    "constants",
    "default_properties",
    "default_static_properties",
    "dynamic_function_definitions",
    "dynamic_properties",
    "filename",
    "func",
    "info",
    "key",
    "local_variables",
    "methods",
    "name",
    "object_handlers",
    "object_properties",
    "op_array",
    "possible_unused_area",
    "property_info",
    "referenced",
    "run_time_cache",
    "static_properties",
    "static_variables",
    "symbol_table",
    "this_ptr",
    "value",
    "variable_name_table",
];

/// The type of a node, a link, and the type of its target.
type Step = (String, String, String);

/// The steps of reli's tree, and of its references.
fn steps_of_reli(reli: &serde_json::Value) -> BTreeSet<Step> {
    let mut types = BTreeMap::new();
    let mut links = Vec::new();
    let mut open: Vec<_> = reli["context"].as_object().unwrap().values().collect();
    while let Some(node) = open.pop() {
        let Some(kind) = node["#type"].as_str() else { continue };
        types.insert(node["#node_id"].as_u64().unwrap(), kind);
        for (link, child) in
            node.as_object().unwrap().iter().filter(|(link, _)| FIXED.contains(&link.as_str()))
        {
            let id = child["#node_id"].as_u64().or_else(|| child["#reference_node_id"].as_u64());
            links.extend(id.map(|id| (kind, link, id)));
        }
        open.extend(node.as_object().unwrap().values().filter(|child| child.is_object()));
    }
    links.into_iter().map(|(kind, link, id)| (kind.to_owned(), link.clone(), types[&id].to_owned())).collect()
}

fn steps(heap: &Collected) -> BTreeSet<Step> {
    let kind = |node: NodeId| NodeType::NAMES[usize::from(heap.nodes[node.0 as usize].number())].to_owned();
    let links = heap.edges.iter().filter_map(|edge| Some((edge.parent?, heap.text(edge.link), edge.child)));
    links.map(|(parent, link, child)| (kind(parent), link, kind(child))).collect()
}

#[test]
fn what_leads_to_what_is_as_reli_has_it() {
    for_each_reli(|program, heap, reli| {
        let (ours, theirs) = (steps(heap), steps_of_reli(reli));
        let missing: Vec<_> = theirs.difference(&ours).collect();
        assert_eq!(missing, Vec::<&Step>::new(), "{program}");
        assert!(theirs.len() > 30, "{program}: {theirs:?}");
        let roots: Vec<_> = reli["context"].as_object().unwrap().keys().collect();
        let our_roots: BTreeSet<_> =
            heap.edges.iter().filter(|edge| edge.parent.is_none()).map(|edge| heap.text(edge.link)).collect();
        assert!(roots.iter().all(|root| our_roots.contains(*root)), "{program}: {our_roots:?}");
    });
}
