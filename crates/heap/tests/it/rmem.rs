//! `.rmem` files: ours, read by a reader that follows only the specification; and others, written by such a writer.

use std::collections::BTreeMap;

use borehole_heap::{
    Edge, Graph, GraphBuilder, HeapSink as _, LocationType, MemoryLocation, NodeId, NodeType, Strength, rmem,
};
use proptest::prelude::*;

use crate::graphs::{graph, plain, small};

pub(crate) fn written(graph: &impl Graph) -> Vec<u8> {
    let mut file = Vec::new();
    rmem::write(graph, &mut file).unwrap();
    file
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap())
}

fn u64_at(bytes: &[u8], at: usize) -> usize {
    usize::try_from(u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap())).unwrap()
}

/// The sections with their counts, as reli's reader finds them.
fn sections(file: &[u8]) -> BTreeMap<String, (&[u8], usize)> {
    assert_eq!(&file[..4], b"RMEM");
    assert_eq!((u32_at(file, 4), u32_at(file, 8)), (1, 1));
    let toc = u64_at(file, 16);
    let entry = |number: usize| {
        let at = toc + number * 40;
        let name =
            String::from_utf8(file[at..at + 16].iter().copied().filter(|&byte| byte != 0).collect()).unwrap();
        let (offset, length) = (u64_at(file, at + 16), u64_at(file, at + 24));
        (name, (&file[offset..offset + length], u64_at(file, at + 32)))
    };
    let count = u32_at(file, 12) as usize;
    assert_eq!(toc + count * 40, file.len());
    (0..count).map(entry).collect()
}

fn dictionary(section: &[u8]) -> Vec<&[u8]> {
    let mut at = 4;
    let mut strings = Vec::new();
    for _ in 0..u32_at(section, 0) {
        let length = u32_at(section, at) as usize;
        strings.push(&section[at + 4..at + 4 + length]);
        at += 4 + length;
    }
    assert_eq!(at, section.len());
    strings
}

#[test]
fn written_files_match_the_container_format() {
    let file = written(&small());
    let sections = sections(&file);
    let strings = dictionary(sections["string_dict"].0);
    let text = |id: u32| std::str::from_utf8(strings[id as usize]).unwrap();
    assert_eq!(sections["string_dict"].1, strings.len());
    let (nodes, count) = sections["nodes"];
    assert_eq!((nodes.len(), count), (6 * 16, 6));
    let types: Vec<&str> = nodes.chunks(16).map(|row| text(u32_at(row, 8))).collect();
    let expected = ["CallFrames", "Object", "String", "ScalarValue", "ArrayHeader", "ArrayElements"]
        .map(|name| format!("{name}Context"));
    assert_eq!(types, expected);
    let edges = sections["edges"].0.chunks(16);
    let edges: Vec<_> =
        edges.map(|row| (u32_at(row, 0), u32_at(row, 4), text(u32_at(row, 8)), row[12], row[13])).collect();
    let none = u32::MAX;
    assert_eq!(edges[0], (none, 0, "call_frames", 1, 0));
    assert_eq!(edges[1], (0, 1, "order", 1, 0));
    assert_eq!(edges.last(), Some(&(5, 1, "0", 0, 0)));
    let object = &sections["locations"].0[..48];
    assert_eq!(
        (u32_at(object, 0), text(u32_at(object, 4)), text(u32_at(object, 8))),
        (1, "ZendObjectMemoryLocation", "Shop\\Order")
    );
    assert_eq!((u64_at(object, 12), u64_at(object, 20), u32_at(object, 28)), (0x7000, 40, none));
    assert_eq!((u32_at(object, 32), u32_at(object, 36), u32_at(object, 44)), (2, 8, 8));
    assert_eq!(text(u32_at(object, 40)), "zend_mm_heap");
    let attribute = sections["attributes"].0;
    assert_eq!(
        (u32_at(attribute, 0), text(u32_at(attribute, 4)), text(u32_at(attribute, 8))),
        (3, "value", "-7")
    );
    let summary = sections["summary"].0;
    assert_eq!(
        (u32_at(summary, 0), text(u32_at(summary, 4)), text(u32_at(summary, 8))),
        (2, "php_version", "v82")
    );
    assert_eq!(&sections["runs"].0[8..], b"2026-04-30T10:20:30Z");
}

/// A file as reli writes it, built from the specification only.
#[derive(Default)]
struct Foreign {
    strings: Vec<String>,
    nodes: Vec<u8>,
    edges: Vec<u8>,
    locations: Vec<u8>,
    attributes: Vec<u8>,
}

fn words(out: &mut Vec<u8>, words: &[u32]) {
    words.iter().for_each(|word| out.extend(word.to_le_bytes()));
}

impl Foreign {
    fn string(&mut self, string: &str) -> u32 {
        let found = self.strings.iter().position(|known| known == string);
        let place = found.unwrap_or_else(|| {
            self.strings.push(string.to_owned());
            self.strings.len() - 1
        });
        u32::try_from(place).unwrap()
    }

    fn node(&mut self, number: u32, node_type: &str, parent: u32, link: &str) {
        let (node_type, link) = (self.string(node_type), self.string(link));
        words(&mut self.nodes, &[number, 0, node_type, u32::MAX]);
        words(&mut self.edges, &[parent, number, link, 1]);
    }

    fn location(&mut self, node: u32, location_type: &str, address: u64, value: &str) {
        let (location_type, value) = (self.string(location_type), self.string(value));
        words(&mut self.locations, &[node, location_type, u32::MAX]);
        self.locations.extend(address.to_le_bytes());
        self.locations.extend(24_u64.to_le_bytes());
        let region = self.string("a_new_region");
        words(&mut self.locations, &[value, 3, 22, region, 5]);
    }

    fn file(mut self) -> Vec<u8> {
        let (key, value) = (self.string("php_version"), self.string("v85"));
        let (count, count_value) = (self.string("#count"), self.string("12"));
        words(&mut self.attributes, &[0, count, count_value]);
        let mut strings = u32::try_from(self.strings.len()).unwrap().to_le_bytes().to_vec();
        for string in &self.strings {
            strings.extend(u32::try_from(string.len()).unwrap().to_le_bytes());
            strings.extend(string.as_bytes());
        }
        let mut summary = Vec::new();
        words(&mut summary, &[1, key, value]);
        let mut runs = Vec::new();
        words(&mut runs, &[1, 4]);
        runs.extend(b"when");
        let count = |bytes: &[u8], width: usize| bytes.len() / width;
        let contents = [
            ("string_dict", strings, self.strings.len()),
            ("nodes", self.nodes.clone(), count(&self.nodes, 16)),
            ("edges", self.edges.clone(), count(&self.edges, 16)),
            ("locations", self.locations.clone(), count(&self.locations, 48)),
            ("attributes", self.attributes.clone(), count(&self.attributes, 12)),
            ("summary", summary, 1),
            ("runs", runs, 1),
            ("tree_csr_rowptr", vec![1, 2, 3], 77),
        ];
        assembled(&contents)
    }
}

fn assembled(contents: &[(&str, Vec<u8>, usize)]) -> Vec<u8> {
    let mut file = vec![0; 64];
    let mut toc = Vec::new();
    for (name, bytes, count) in contents {
        let mut padded = [0; 16];
        padded[..name.len()].copy_from_slice(name.as_bytes());
        toc.extend(padded);
        for number in [file.len(), bytes.len(), *count] {
            toc.extend((number as u64).to_le_bytes());
        }
        file.extend(bytes);
    }
    let toc_at = file.len() as u64;
    file.extend(toc);
    let mut header = b"RMEM".to_vec();
    words(&mut header, &[1, 1, u32::try_from(contents.len()).unwrap()]);
    header.extend(toc_at.to_le_bytes());
    file[..header.len()].copy_from_slice(&header);
    file
}

/// Depth first, like reli's: the edges are not sorted by parent.
fn foreign() -> Foreign {
    let mut foreign = Foreign::default();
    foreign.node(0, "CallFramesContext", u32::MAX, "call_frames");
    foreign.node(1, "NewerContext", 0, "0");
    foreign.node(2, "StringContext", 1, "deep");
    foreign.location(2, "ZendStringMemoryLocation", 0x7000, "text");
    foreign.node(3, "StringContext", 0, "1");
    foreign.location(3, "ZendStringMemoryLocation", 0x7000, "text");
    foreign.node(4, "GlobalVariablesContext", u32::MAX, "global_variables");
    foreign
}

#[test]
fn files_with_newer_names_are_read() {
    let file = foreign().file();
    let view = rmem::MappedGraph::open(&file).unwrap();
    view.check().unwrap();
    let links = |parent: Option<u32>| -> Vec<(u32, String)> {
        let children = view.children(parent.map(NodeId)).map(|row| view.child(row).unwrap());
        children
            .map(|child| (child.node.0, String::from_utf8_lossy(view.string(child.link)).into_owned()))
            .collect()
    };
    assert_eq!(links(None), [(0, "call_frames".to_owned()), (4, "global_variables".to_owned())]);
    assert_eq!(links(Some(0)), [(1, "0".to_owned()), (3, "1".to_owned())]);
    assert_eq!(links(Some(1)), [(2, "deep".to_owned())]);
    assert_eq!(view.node_type_name(NodeId(1)), b"NewerContext");
    assert_eq!(view.node_type_name(NodeId(2)), b"StringContext");
    assert_eq!(view.node_type(NodeId(2)), borehole_heap::NodeType::STRING);
    let location = view.location(view.locations(NodeId(3)).start);
    assert_eq!(
        (location.address, location.size, location.refcount, location.type_info),
        (0x7000, 24, Some(3), Some(22))
    );
    assert_eq!(view.region_name(location.region.unwrap()), b"a_new_region");
    assert_eq!(view.string(location.string.unwrap()), b"text");
    // reli leaves it to readers to find nodes that share memory.
    assert_eq!(view.canonical(NodeId(3)), Some(NodeId(2)));
    assert_eq!(view.canonical(NodeId(0)), None);
    let count = view.attribute(view.attributes(NodeId(0)).start);
    assert_eq!((view.string(count.value), count.kind), (&b"12"[..], borehole_heap::ValueKind::Integer));
    assert_eq!((view.summary().len(), view.created()), (1, "when"));
}

#[test]
fn files_of_reli_survive_a_round_trip() {
    let file = foreign().file();
    let view = rmem::MappedGraph::open(&file).unwrap();
    let again = written(&view);
    let ours = rmem::MappedGraph::open(&again).unwrap();
    ours.check().unwrap();
    assert_eq!(plain(&ours), plain(&view));
}

/// Cases that take quadratic time if each one is searched in the whole list.
#[test]
fn nodes_that_share_the_memory_of_the_first_are_found_however_many_they_are() {
    const COUNT: u32 = 1_000_000;
    let mut builder = GraphBuilder::new();
    let link = builder.string(b"shared");
    for _ in 0..COUNT {
        let child = builder.node(NodeType::STRING);
        builder.edge(Edge { parent: None, child, link, is_tree: true, strength: Strength::Strong });
        builder.location(child, &MemoryLocation::new(LocationType::STRING, 0x7000, 24));
    }
    let mut file = written(&builder.finish().unwrap());
    let view = rmem::MappedGraph::open(&file).unwrap();
    view.check().unwrap();
    assert!((0..COUNT).all(|node| view.canonical(NodeId(node)) == Some(NodeId(0))));
    let (zero, count) = sections(&file)["bh_zero_group"];
    assert_eq!(count, COUNT as usize);
    let last = zero.as_ptr_range().end as usize - file.as_ptr() as usize - 4;
    file[last..last + 4].fill(0);
    let error = rmem::MappedGraph::open(&file).and_then(|view| view.check()).unwrap_err().to_string();
    assert!(error.starts_with("expected sorted nodes in section bh_zero_group"), "{error}");
}

#[test]
fn errors_have_positions() {
    let good = foreign().file();
    let error = |damage: &dyn Fn(&mut Vec<u8>)| {
        let mut file = good.clone();
        damage(&mut file);
        rmem::MappedGraph::open(&file).and_then(|view| view.check()).unwrap_err().to_string()
    };
    assert_eq!(error(&|file| file[0] = b'r'), "expected RMEM, found \"rMEM\" (rmem, at byte 0x0)");
    assert_eq!(error(&|file| file[4] = 2), "unsupported version: expected 1, found 2 (rmem, at byte 0x4)");
    assert!(error(&|file| file[8] = 0).contains("byte order"));
    assert!(error(&|file| file.truncate(60)).contains("truncated"));
    assert!(error(&|file| file.truncate(file.len() - 1)).contains("truncated: 1 bytes missing"));
    assert!(error(&|file| file[23] = 9).contains("table of contents"));
    let edge = |row: usize| {
        let file = foreign().file();
        let toc = u64_at(&file, 16);
        u64_at(&file, toc + 2 * 40 + 16) + row * 16
    };
    let child = edge(3);
    let found = error(&|file| file[child + 4] = 2);
    assert_eq!(found, format!("duplicate tree edge to node 2 (rmem, at byte {child:#x})"));
    assert!(
        error(&|file| file[child + 4] = 99)
            .contains("invalid node number in section edges: expected less than 5, found 99")
    );
    assert!(
        error(&|file| file[child + 8] = 99)
            .contains("invalid string number in section edges: expected less than")
    );
    assert!(error(&|file| file[child + 12] = 7).contains("invalid flags: expected"));
    assert!(
        error(&|file| file.splice(u64_at(&good, 16)..u64_at(&good, 16) + 3, *b"xxx").for_each(drop))
            .contains("missing section string_dict")
    );
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn any_graph_comes_back(graph in graph()) {
        let file = written(&graph);
        let view = rmem::MappedGraph::open(&file).unwrap();
        view.check().unwrap();
        prop_assert_eq!(plain(&view), plain(&graph));
        let copy = view.to_graph().unwrap();
        prop_assert_eq!(&copy, &graph);
        prop_assert_eq!(written(&copy), file);
    }
}
