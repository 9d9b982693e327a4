//! Questions about heaps in reli's words, for assistants that were told of those.
//!
//! Source: reli 0.12, the tools of `rmem:mcp`: their names, arguments and defaults. The answers are tables of ours.

use std::collections::{BTreeMap, HashSet};

use borehole::heap::retention::Retention;
use borehole::heap::views::{
    Heap, Needle, NodeReference, NodeSearch, SearchTarget, classes, cycles, find, largest,
};
use borehole_heap::{NodeId, NodeType};
use borehole_text::{bytes, grouped, percent_of};
use schemars::JsonSchema;
use serde::Deserialize;

use super::heap::{address, name, number, table};
use super::table::{ViewCell, ViewTable};
use crate::limits::RmemLimits;
use crate::refusal::Refusal;

/// The arguments of reli's tools. Each tool says which of them apply.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct RmemAsk {
    /// Node ID
    pub(crate) node_id: Option<u64>,
    /// Max results
    pub(crate) limit: Option<usize>,
    /// Sort order: `retained` (default) or `link_name`
    pub(crate) sort: Option<String>,
    /// Include non-tree edges (default true)
    pub(crate) all_edges: Option<bool>,
    /// Fully-qualified class name
    pub(crate) class: Option<String>,
    /// Node type name, such as StringContext
    #[serde(rename = "type")]
    pub(crate) node_type: Option<String>,
    /// Text to search for; case is ignored
    pub(crate) pattern: Option<String>,
    /// Memory address, hexadecimal with 0x or decimal
    pub(crate) address: Option<String>,
    /// Name of a function or class
    pub(crate) name: Option<String>,
    /// Max nodes to scan (default 100000)
    pub(crate) max_nodes: Option<usize>,
    /// Max depth (default 50)
    pub(crate) max_depth: Option<usize>,
}

/// A tool of reli's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RmemQuestion {
    Hello,
    Roots,
    Children,
    Parents,
    Sandwich,
    NodeDetail,
    PathToRoot,
    ClassRanking,
    TypeRanking,
    TopRetained,
    Search,
    SccRanking,
    SccForNode,
    SubtreeStats,
    NodesByClass,
    NodesByType,
    FindByAddress,
    FindFunctionDef,
    FindClassDef,
}

/// A tool: its name, a line on it, the arguments without which there is no answer, and the others.
type RmemTool = (RmemQuestion, &'static str, &'static str, &'static [&'static str], &'static [&'static str]);

impl RmemQuestion {
    /// All tools.
    pub(crate) const ALL: [RmemTool; 19] = [
        (Self::Hello, "rmem_hello", "Show the heap in a few lines", &[], &[]),
        (Self::Roots, "rmem_roots", "List the roots by retained size", &[], &["limit"]),
        (
            Self::Children,
            "rmem_children",
            "List what a node refers to, by retained size",
            &["node_id"],
            &["limit", "sort", "all_edges"],
        ),
        (Self::Parents, "rmem_parents", "List the nodes that refer to a node", &["node_id"], &["limit"]),
        (
            Self::Sandwich,
            "rmem_sandwich",
            "Show a node between what refers to it and what it refers to",
            &["node_id"],
            &["limit"],
        ),
        (
            Self::NodeDetail,
            "rmem_node_detail",
            "Show the type, class, sizes, address, references and value of a node",
            &["node_id"],
            &[],
        ),
        (
            Self::PathToRoot,
            "rmem_path_to_root",
            "Show the references from a root to a node",
            &["node_id"],
            &[],
        ),
        (Self::ClassRanking, "rmem_class_ranking", "List the classes by shallow size", &[], &["limit"]),
        (Self::TypeRanking, "rmem_type_ranking", "List the types of nodes by shallow size", &[], &["limit"]),
        (
            Self::TopRetained,
            "rmem_top_retained",
            "List the nodes with the largest retained sizes",
            &[],
            &["limit"],
        ),
        (
            Self::Search,
            "rmem_search",
            "Find nodes by class, string, name or path, by retained size",
            &["pattern"],
            &["limit"],
        ),
        (Self::SccRanking, "rmem_scc_ranking", "List the reference cycles by size", &[], &["limit"]),
        (Self::SccForNode, "rmem_scc_for_node", "Show the reference cycle of a node", &["node_id"], &[]),
        (
            Self::SubtreeStats,
            "rmem_subtree_stats",
            "Add up what is below a node, by type and class",
            &["node_id"],
            &["max_nodes", "max_depth"],
        ),
        (Self::NodesByClass, "rmem_nodes_by_class", "List the instances of a class", &["class"], &["limit"]),
        (Self::NodesByType, "rmem_nodes_by_type", "List the nodes of a type", &["type"], &["limit"]),
        (Self::FindByAddress, "rmem_find_by_address", "Find the node at an address", &["address"], &[]),
        (
            Self::FindFunctionDef,
            "rmem_find_function_def",
            "Find the definition of a function",
            &["name"],
            &[],
        ),
        (Self::FindClassDef, "rmem_find_class_def", "Find the definition of a class", &["name"], &[]),
    ];

    /// Answers from a heap.
    pub(crate) fn answer(self, heap: &Heap<'_>, ask: &RmemAsk) -> Result<ViewTable, Refusal> {
        let question = RmemAnswer { heap, ask };
        match self {
            Self::Hello => Ok(question.hello()),
            Self::Roots => Ok(question.references("Roots", None)),
            Self::Children => Ok(question.references("Children", Some(question.node()?))),
            Self::Parents => Ok(question.parents(question.node()?)),
            Self::Sandwich => question.sandwich(),
            Self::NodeDetail => question.detail(),
            Self::PathToRoot => Ok(question.path(question.node()?)),
            Self::ClassRanking => Ok(question.classes()),
            Self::TypeRanking => Ok(question.types()),
            Self::TopRetained => Ok(question.top()),
            Self::Search => question.search(),
            Self::SccRanking => Ok(question.cycles()),
            Self::SccForNode => question.cycle(),
            Self::SubtreeStats => question.subtree(),
            Self::NodesByClass => question.found(&Needle::Class(question.said("class", &ask.class)?)),
            Self::NodesByType => question.of_type(),
            Self::FindByAddress => question.found(&Needle::Address(question.address()?)),
            Self::FindFunctionDef => question
                .definitions(&[NodeType::USER_FUNCTION_DEFINITION, NodeType::INTERNAL_FUNCTION_DEFINITION]),
            Self::FindClassDef => question.definitions(&[NodeType::CLASS_DEFINITION]),
        }
    }
}

/// The columns of nodes.
const NODES: [&str; 6] = ["relation", "node_id", "retained bytes", "shallow bytes", "link", "value"];

/// A heap, and the arguments of a question.
struct RmemAnswer<'a, 'g> {
    heap: &'a Heap<'g>,
    ask: &'a RmemAsk,
}

impl RmemAnswer<'_, '_> {
    fn limit(&self, usual: usize) -> usize {
        self.ask.limit.unwrap_or(usual).clamp(1, RmemLimits::MOST)
    }

    fn node(&self) -> Result<NodeId, Refusal> {
        let asked = self.ask.node_id.ok_or_else(|| Refusal::invalid("missing node_id"))?;
        let node = u32::try_from(asked).ok().map(NodeId);
        let node = node.filter(|node| (node.0 as usize) < self.heap.graph().counts().nodes);
        node.ok_or_else(|| {
            Refusal::missing(format!("no node {asked}")).with_help("rmem_top_retained lists nodes")
        })
    }

    fn said(&self, word: &str, text: &Option<String>) -> Result<Vec<u8>, Refusal> {
        let text = text.as_ref().filter(|text| !text.is_empty());
        text.map(|text| text.clone().into_bytes()).ok_or_else(|| Refusal::invalid(format!("missing {word}")))
    }

    fn address(&self) -> Result<u64, Refusal> {
        address(&String::from_utf8_lossy(&self.said("address", &self.ask.address)?))
    }

    fn row(&self, relation: &str, node: NodeId, link: &[u8]) -> Vec<ViewCell> {
        let brief = self.heap.brief(node);
        vec![
            relation.into(),
            number(u64::from(node.0)),
            number(brief.retained_bytes),
            number(brief.shallow_bytes),
            name(link).into(),
            name(&brief.text).into(),
        ]
    }

    /// A table of nodes, of which only the first are shown.
    fn nodes(&self, title: &str, relation: &str, shown: &[NodeId], all: usize) -> ViewTable {
        let mut table = table(self.heap, title, &NODES);
        table.rows = shown.iter().map(|&node| self.row(relation, node, &self.heap.name(node))).collect();
        covered(&mut table, all);
        table
    }

    fn hello(&self) -> ViewTable {
        let counts = self.heap.graph().counts();
        let mut table = table(self.heap, "Heap", &["fact", "value"]);
        let mut add = |fact: &str, value: String| table.rows.push(vec![fact.into(), value.into()]);
        add("nodes", grouped(counts.nodes as u64));
        add("reachable memory", bytes(self.heap.retention().total()));
        add("taken", name(self.heap.graph().created().as_bytes()));
        add("cycles", grouped(self.heap.retention().cycles().len() as u64));
        let all = table.rows.len();
        covered(&mut table, all);
        table.next.push("rmem_roots and rmem_top_retained show what keeps memory alive".to_owned());
        table
    }

    /// The references of a node, or the roots.
    fn references(&self, title: &str, node: Option<NodeId>) -> ViewTable {
        let is_shown = |found: &NodeReference| found.is_tree || self.ask.all_edges != Some(false);
        let mut found: Vec<NodeReference> = self.heap.references(node).filter(is_shown).collect();
        let retained = |found: &NodeReference| self.heap.retention().retained(found.to);
        match self.ask.sort.as_deref() {
            Some("link_name") => found.sort_by(|one, other| one.link.cmp(&other.link)),
            _ => found.sort_by_key(|found| std::cmp::Reverse(retained(found))),
        }
        let mut table = table(self.heap, title, &NODES);
        let shown = found.iter().take(self.limit(RmemLimits::ROWS));
        table.rows = shown.map(|found| self.row("child", found.to, &found.link)).collect();
        covered(&mut table, found.len());
        table
    }

    fn parents(&self, node: NodeId) -> ViewTable {
        let mut table = table(self.heap, "Parents", &NODES);
        let all: Vec<NodeReference> = self.heap.referrers(node).collect();
        table.rows = all
            .iter()
            .take(self.limit(RmemLimits::ROWS))
            .map(|found| match found.from {
                Some(from) => self.row("parent", from, &found.link),
                None => vec![
                    "root".into(),
                    "".into(),
                    number(self.heap.retention().total()),
                    number(0),
                    name(&found.link).into(),
                    "".into(),
                ],
            })
            .collect();
        covered(&mut table, all.len());
        table
    }

    fn sandwich(&self) -> Result<ViewTable, Refusal> {
        let node = self.node()?;
        let mut table = self.parents(node);
        let below = self.references("Children", Some(node));
        table.title = format!("Node {} between its parents and its children", node.0);
        table.rows.push(self.row("node", node, &self.heap.name(node)));
        table.rows.extend(below.rows);
        let all = table.all_rows + 1 + below.all_rows;
        covered(&mut table, all);
        Ok(table)
    }

    fn detail(&self) -> Result<ViewTable, Refusal> {
        let node = self.node()?;
        let view = self.heap.node(node).ok_or_else(|| Refusal::missing("no such node"))?;
        let mut table = table(self.heap, &format!("Node {}", node.0), &["fact", "value"]);
        let texts = [
            ("type", Some(name(&view.node_type))),
            ("class", view.class.as_deref().map(name)),
            ("value", view.value.as_deref().map(name)),
            ("address", view.address.map(|address| format!("{address:#x}"))),
            ("path", Some(name(&view.path))),
        ];
        let numbers = [
            ("refcount", view.refcount.map(u64::from)),
            ("count", view.count),
            ("shallow bytes", Some(view.shallow_bytes)),
            ("retained bytes", Some(view.retained_bytes)),
            ("cycle of nodes", self.cycle_of(node).map(|cycle| cycle.len() as u64)),
        ];
        let texts = texts.into_iter().filter_map(|(fact, text)| Some(vec![fact.into(), text?.into()]));
        let numbers = numbers.into_iter().filter_map(|(fact, count)| Some(vec![fact.into(), number(count?)]));
        table.rows = texts.chain(numbers).collect();
        let all = table.rows.len();
        covered(&mut table, all);
        Ok(table)
    }

    fn path(&self, node: NodeId) -> ViewTable {
        let way = self.heap.way(node);
        let mut table = table(self.heap, &format!("From a root to node {}", node.0), &NODES);
        table.rows = way.iter().map(|step| self.row("way", step.node, &step.link)).collect();
        covered(&mut table, way.len());
        table
    }

    fn classes(&self) -> ViewTable {
        let mut found = classes(self.heap);
        found.sort_by(|one, other| {
            other.shallow_bytes.cmp(&one.shallow_bytes).then_with(|| one.name.cmp(&other.name))
        });
        let all = found.into_iter().map(|class| (class.name, class.count, class.shallow_bytes)).collect();
        self.ranked("Classes", "class", all)
    }

    fn types(&self) -> ViewTable {
        let graph = self.heap.graph();
        let nodes = self.heap.retention().nodes();
        self.ranked("Types of nodes", "type", self.sums(nodes, |node| graph.node_type_name(node).to_vec()))
    }

    /// The number and the shallow bytes of nodes by a name of each, the most bytes first.
    fn sums(
        &self,
        nodes: impl Iterator<Item = NodeId>,
        name_of: impl Fn(NodeId) -> Vec<u8>,
    ) -> Vec<(Vec<u8>, u64, u64)> {
        let graph = self.heap.graph();
        let mut sums: BTreeMap<Vec<u8>, (u64, u64)> = BTreeMap::new();
        for node in nodes {
            let sum = sums.entry(name_of(node)).or_default();
            let shallow = self.heap.retention().shallow(&graph, node);
            *sum = (sum.0 + 1, sum.1.saturating_add(shallow));
        }
        let mut sums: Vec<_> = sums.into_iter().map(|(name, (count, bytes))| (name, count, bytes)).collect();
        sums.sort_by_key(|&(_, _, bytes)| std::cmp::Reverse(bytes));
        sums
    }

    fn ranked(&self, title: &str, what: &str, all: Vec<(Vec<u8>, u64, u64)>) -> ViewTable {
        let columns = ["count", "shallow bytes", "shallow %", "average bytes", what];
        let mut table = table(self.heap, title, &columns);
        let total = self.heap.retention().total();
        let shown = all.iter().take(self.limit(RmemLimits::RANKED));
        table.rows = shown
            .map(|(found, count, bytes)| {
                vec![
                    number(*count),
                    number(*bytes),
                    ViewCell::Percent(percent_of(*bytes, total)),
                    number(bytes / count.max(&1)),
                    name(found).into(),
                ]
            })
            .collect();
        covered(&mut table, all.len());
        table
    }

    fn top(&self) -> ViewTable {
        let found = largest(self.heap, self.limit(RmemLimits::RANKED));
        let all = self.heap.retention().nodes().count();
        self.nodes("The largest holders", "holder", &found, all)
    }

    fn search(&self) -> Result<ViewTable, Refusal> {
        let mut search = NodeSearch::new(SearchTarget::Text(self.said("pattern", &self.ask.pattern)?));
        while search.advance(self.heap, RmemLimits::WORK) {}
        let mut found = search.found().to_vec();
        found.sort_by_key(|&node| std::cmp::Reverse(self.heap.retention().retained(node)));
        let shown = &found[..found.len().min(self.limit(RmemLimits::ROWS))];
        Ok(self.nodes("Found nodes", "found", shown, found.len()))
    }

    fn cycles(&self) -> ViewTable {
        let columns = ["node_id", "nodes", "retained bytes", "shallow bytes", "entries", "classes"];
        let mut table = table(self.heap, "Reference cycles", &columns);
        let all = cycles(self.heap);
        let shown = all.iter().take(self.limit(RmemLimits::RANKED));
        table.rows = shown
            .map(|cycle| {
                let classes = cycle.classes.iter().take(RmemLimits::CLASSES);
                let classes = classes.map(|(class, count)| format!("{} × {}", name(class), grouped(*count)));
                vec![
                    number(u64::from(cycle.first.0)),
                    number(cycle.nodes),
                    number(cycle.retained_bytes),
                    number(cycle.shallow_bytes),
                    number(cycle.entries),
                    classes.collect::<Vec<_>>().join(", ").into(),
                ]
            })
            .collect();
        covered(&mut table, all.len());
        table
    }

    /// The nodes of the cycle that a node is in.
    fn cycle_of(&self, node: NodeId) -> Option<&[u32]> {
        let retention: &Retention = self.heap.retention();
        let mut cycles = retention.cycles().iter().map(|cycle| &*cycle.nodes);
        cycles.find(|nodes| nodes.binary_search(&node.0).is_ok())
    }

    fn cycle(&self) -> Result<ViewTable, Refusal> {
        let node = self.node()?;
        let Some(cycle) = self.cycle_of(node) else {
            return Err(Refusal::missing(format!("node {} is in no reference cycle", node.0)));
        };
        let mut table = table(self.heap, &format!("The reference cycle of node {}", node.0), &NODES);
        for &member in cycle.iter().take(self.limit(RmemLimits::ROWS)) {
            table.rows.push(self.row("member", NodeId(member), b""));
            let inside = self.heap.references(Some(NodeId(member)));
            let inside = inside.filter(|found| cycle.binary_search(&found.to.0).is_ok());
            table.rows.extend(inside.map(|found| self.row("refers to", found.to, &found.link)));
        }
        table.all_rows = table.rows.len();
        table.coverage = format!(
            "Shown {} of the {} nodes of the cycle, each with its references inside.",
            cycle.len().min(self.limit(RmemLimits::ROWS)),
            grouped(cycle.len() as u64)
        );
        Ok(table)
    }

    fn subtree(&self) -> Result<ViewTable, Refusal> {
        let top = self.node()?;
        let most = self.ask.max_nodes.unwrap_or(RmemLimits::SUBTREE_NODES).min(RmemLimits::SUBTREE_NODES);
        let deepest = self.ask.max_depth.unwrap_or(RmemLimits::SUBTREE_DEPTH);
        let (mut seen, mut open) = (HashSet::from([top]), vec![(top, 0)]);
        let mut is_whole = true;
        while let Some((node, depth)) = open.pop() {
            for found in self.heap.references(Some(node)).filter(|found| found.is_tree) {
                if depth >= deepest || seen.len() >= most {
                    is_whole = false;
                } else if seen.insert(found.to) {
                    open.push((found.to, depth + 1));
                }
            }
        }
        let mut nodes: Vec<NodeId> = seen.into_iter().collect();
        nodes.sort_unstable_by_key(|node| node.0);
        let graph = self.heap.graph();
        let of_types = self.sums(nodes.iter().copied(), |node| graph.node_type_name(node).to_vec());
        let objects = nodes.iter().copied().filter(|&node| self.heap.class(node).is_some());
        let of_classes = self.sums(objects, |node| {
            self.heap.class(node).map_or_else(Vec::new, |class| graph.string(class).to_vec())
        });
        let mut table = table(
            self.heap,
            &format!("Below node {}, which retains {}", top.0, bytes(self.heap.retention().retained(top))),
            &["kind", "count", "shallow bytes", "name"],
        );
        for (kind, sums) in [("type", of_types), ("class", of_classes)] {
            table.rows.extend(sums.iter().map(|(found, count, bytes)| {
                vec![kind.into(), number(*count), number(*bytes), name(found).into()]
            }));
        }
        let (all, scanned) = (table.rows.len(), grouped(nodes.len() as u64));
        covered(&mut table, all);
        let rest = if is_whole { "" } else { "; more are below the limits max_nodes and max_depth" };
        table.coverage = format!("Added up {scanned} nodes{rest}.");
        Ok(table)
    }

    fn found(&self, needle: &Needle) -> Result<ViewTable, Refusal> {
        let (found, count) = find(self.heap, needle, self.limit(RmemLimits::ROWS));
        Ok(self.nodes("Found nodes", "found", &found, usize::try_from(count).unwrap_or(usize::MAX)))
    }

    fn of_type(&self) -> Result<ViewTable, Refusal> {
        let wanted = self.said("type", &self.ask.node_type)?;
        let graph = self.heap.graph();
        let of_type = self.heap.retention().nodes().filter(|&node| graph.node_type_name(node) == wanted);
        let found: Vec<NodeId> = of_type.collect();
        let shown = &found[..found.len().min(self.limit(RmemLimits::ROWS))];
        Ok(self.nodes("Found nodes", "found", shown, found.len()))
    }

    /// The definitions with a name, which is that of a reference to them. Case is ignored, as PHP does.
    fn definitions(&self, types: &[NodeType]) -> Result<ViewTable, Refusal> {
        let wanted = self.said("name", &self.ask.name)?;
        let graph = self.heap.graph();
        let is_named = |node: NodeId| {
            self.heap.referrers(node).any(|found| found.link.eq_ignore_ascii_case(&wanted))
                || self
                    .heap
                    .attribute(node, b"function_name")
                    .is_some_and(|name| name.eq_ignore_ascii_case(&wanted))
        };
        let of_type = self.heap.retention().nodes().filter(|&node| types.contains(&graph.node_type(node)));
        let found: Vec<NodeId> = of_type.filter(|&node| is_named(node)).collect();
        Ok(self.nodes("Found definitions", "found", &found, found.len()))
    }
}

/// Says how many of `all` rows are shown.
fn covered(table: &mut ViewTable, all: usize) {
    table.all_rows = all;
    table.coverage = format!("Shown {} of {} rows.", table.rows.len(), grouped(all as u64));
}
