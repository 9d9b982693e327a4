//! Exports a graph as a V8 heap snapshot, which Chrome's developer tools open.
//!
//! Source: V8 12, `src/profiler/heap-snapshot-generator.cc` (`HeapSnapshotJSONSerializer`).

use std::io::{self, Write};

use borehole_text::IntegerDigits;

use crate::graph::{Child, Graph, attributes, children, locations, nodes, parents, strings};
use crate::json::put_string;
use crate::names::{NodeType, Strength};
use crate::sink::{NodeId, StringId};

/// The names of the columns, and the types behind their numbers.
const META: &str = r#"{"node_fields":["type","name","id","self_size","edge_count","trace_node_id","detachedness"],"node_types":[["hidden","array","string","object","code","closure","regexp","number","native","synthetic","concatenated string","sliced string","symbol","bigint","object shape"],"string","number","number","number","number","number"],"edge_fields":["type","name_or_index","to_node"],"edge_types":[["context","element","property","internal","hidden","shortcut","weak"],"string_or_number","node"],"trace_function_info_fields":["function_id","name","script_name","script_id","line","column"],"trace_node_fields":["id","function_info_index","count","size","children"],"sample_fields":["timestamp_us","last_assigned_id"],"location_fields":["object_index","script_id","line","column"]}"#;

const FIELDS_OF_A_NODE: u64 = 7;

// Indexes in `node_types`.
const ARRAY: u64 = 1;
const STRING: u64 = 2;
const OBJECT: u64 = 3;
const CODE: u64 = 4;
const CLOSURE: u64 = 5;
const NUMBER: u64 = 7;
const NATIVE: u64 = 8;
const SYNTHETIC: u64 = 9;

// Indexes in `edge_types`.
const ELEMENT: u64 = 1;
const PROPERTY: u64 = 2;
const INTERNAL: u64 = 3;
const WEAK: u64 = 6;

/// The maximum length of a string in bytes; strings are names here, so longer ones are truncated.
const NAME_BYTES: usize = 1024;

/// Writes `graph` as a `.heapsnapshot`.
///
/// Node N of the graph gets the number 2N + 3; an added root precedes the nodes. The size of a node includes the
/// allocator's overhead.
///
#[doc = crate::doc_graph::graph_example!(
    r#"let mut file = Vec::new();
borehole_heap::heapsnapshot::write(&graph, &mut file)?;
assert!(file.starts_with(b"{\"snapshot\""));"#
)]
/// # Errors
/// The errors of writing `output`.
pub fn write(graph: &impl Graph, output: impl Write) -> io::Result<()> {
    let mut writer = SnapshotWriter { graph, out: io::BufWriter::with_capacity(1 << 16, output) };
    writer.document()
}

struct SnapshotWriter<'a, G, W: Write> {
    graph: &'a G,
    out: io::BufWriter<W>,
}

impl<G: Graph, W: Write> SnapshotWriter<'_, G, W> {
    fn document(&mut self) -> io::Result<()> {
        let count = self.graph.counts().nodes;
        let edges: u64 = parents(self.graph).map(|parent| self.edge_count(parent)).sum();
        write!(
            self.out,
            "{{\"snapshot\":{{\"meta\":{META},\"node_count\":{},\"edge_count\":{edges},\
             \"trace_function_count\":0}},\n\"nodes\":[",
            count as u64 + 1
        )?;
        self.root()?;
        for node in nodes(count) {
            self.node(node)?;
        }
        self.out.write_all(b"],\n\"edges\":[")?;
        let mut separator: &[u8] = b"";
        for child in parents(self.graph).flat_map(|parent| children(self.graph, parent)) {
            self.out.write_all(separator)?;
            self.edge(&child)?;
            separator = b",\n";
        }
        self.out.write_all(
            b"],\n\"trace_function_infos\":[],\n\"trace_tree\":[],\n\"samples\":[],\n\"locations\":[],\n",
        )?;
        self.strings()?;
        self.out.flush()
    }

    fn edge_count(&self, parent: Option<NodeId>) -> u64 {
        children(self.graph, parent).count() as u64
    }

    fn numbers(&mut self, numbers: &[u64]) -> io::Result<()> {
        for (place, &number) in numbers.iter().enumerate() {
            if place > 0 {
                self.out.write_all(b",")?;
            }
            self.out.write_all(IntegerDigits::of_unsigned(number).text())?;
        }
        Ok(())
    }

    /// The name of the root is the last string.
    fn root(&mut self) -> io::Result<()> {
        let name = self.graph.counts().strings as u64;
        let edges = self.edge_count(None);
        self.numbers(&[SYNTHETIC, name, 1, 0, edges, 0, 0])
    }

    fn node(&mut self, node: NodeId) -> io::Result<()> {
        let (node_type, name) = self.describe(node);
        let locations = locations(self.graph, node);
        let size = locations
            .map(|location| location.size.saturating_add(u64::from(location.bin_overhead)))
            .fold(0, u64::saturating_add);
        // Larger integers are inexact in JavaScript.
        let size = size.min((1 << 53) - 1);
        let edges = self.edge_count(Some(node));
        let number = u64::from(node.0) * 2 + 3;
        self.out.write_all(b",\n")?;
        self.numbers(&[node_type, name, number, size, edges, 0, 0])
    }

    /// The type, and the string of the name.
    fn describe(&self, node: NodeId) -> (u64, u64) {
        let found = self.graph.node_type(node);
        let own_name = self.graph.vocabulary().node_types.get(usize::from(found.number())).copied();
        let location = locations(self.graph, node).next();
        let class = location.and_then(|location| location.class);
        let text = location.and_then(|location| location.string);
        let value = attributes(self.graph, node).next().map(|attribute| attribute.value);
        let (node_type, name) = match found {
            NodeType::OBJECT => (OBJECT, class),
            NodeType::STRING => (STRING, text),
            NodeType::CLOSURE => (CLOSURE, None),
            NodeType::SCALAR_VALUE => (NUMBER, value),
            NodeType::ARRAY_HEADER | NodeType::ARRAY_ELEMENTS => (ARRAY, None),
            NodeType::OP_ARRAY | NodeType::USER_FUNCTION_DEFINITION | NodeType::CALL_FRAME => (CODE, value),
            _ => (NATIVE, None),
        };
        let count = self.graph.counts().strings;
        let known = |name: &StringId| (name.0 as usize) < count;
        let name = name.filter(known).or(own_name.filter(known));
        (node_type, name.map_or(count as u64, |name| u64::from(name.0)))
    }

    fn edge(&mut self, child: &Child) -> io::Result<()> {
        let link = self.graph.string(child.link);
        let index = std::str::from_utf8(link).ok().and_then(|text| text.parse::<u32>().ok());
        let index = index.filter(|&index| IntegerDigits::of(i64::from(index)).text() == link);
        let strings = self.graph.counts().strings as u64;
        let name = u64::from(child.link.0).min(strings);
        let (edge_type, name) = match (child.strength, index) {
            (Strength::Weak, _) => (WEAK, name),
            (Strength::Structural, _) => (INTERNAL, name),
            (Strength::Strong, Some(index)) => (ELEMENT, u64::from(index)),
            (Strength::Strong, None) => (PROPERTY, name),
        };
        self.numbers(&[edge_type, name, (u64::from(child.node.0) + 1) * FIELDS_OF_A_NODE])
    }

    fn strings(&mut self) -> io::Result<()> {
        self.out.write_all(b"\"strings\":[")?;
        for text in strings(self.graph).map(|string| self.graph.string(string)) {
            put_string(&mut self.out, text.get(..NAME_BYTES).unwrap_or(text))?;
            self.out.write_all(b",\n")?;
        }
        self.out.write_all(b"\"(root)\"]}\n")
    }
}
