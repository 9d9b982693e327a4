//! `borehole heap ask`: questions about a heap, for people and programs.

use std::path::PathBuf;
use std::str::FromStr;

use anyhow::{anyhow, ensure};
use borehole::heap::NodeId;
use borehole::heap::path::StepPaths;
use borehole::heap::retention::{Follow, freed_without};
use borehole::heap::sql::{QueryAnswer, SqlValue};
use borehole::heap::views::{self, CycleView, Heap, Needle, NodeReference, NodeView, PathStep};
use borehole_text::printable;
use clap::{Args, Command, Subcommand};

use super::file::HeapInputArgs;
use super::{password, table};
use crate::exit::Exit;
use crate::messages::say;
use crate::stdout::put;
use crate::values::{RowLimit, address, cut};

/// `borehole heap ask`.
#[derive(Args, Clone, Debug)]
pub(crate) struct AskArgs {
    /// A graph, a database or the address of one, a dump or a core file
    #[arg(value_name = "FILE")]
    input: PathBuf,

    #[command(subcommand)]
    question: Question,

    #[command(flatten)]
    answers: Answers,

    #[command(flatten)]
    memory: HeapInputArgs,
}

/// The form of answers.
#[derive(Args, Clone, Debug)]
struct Answers {
    /// Print one JSON object: the rows, how many are shown and how many there are
    #[arg(long, global = true)]
    json: bool,

    /// Rows to show; 0 for all
    #[arg(long, global = true, visible_alias = "top", value_name = "COUNT", default_value_t = RowLimit::new(20))]
    limit: RowLimit,

    /// Treat weak references as if they kept their targets alive
    #[arg(long, global = true)]
    weak: bool,

    /// Do not follow the engine's internal references, such as from a call to its function
    #[arg(long, global = true)]
    no_structural: bool,
}

/// A question. A node is `#17`, `17`, or an address in its memory such as `0x7f0000c01000`.
#[derive(Subcommand, Clone, Debug)]
enum Question {
    /// Classes by the retained size of their objects
    TopClasses,
    /// Nodes by retained size
    TopRetained,
    /// Roots by retained size
    Roots,
    /// Details of nodes
    Node {
        #[arg(required = true, value_name = "NODE")]
        nodes: Vec<NodeHandle>,
    },
    /// The path from a root to a node
    PathToRoot {
        #[arg(value_name = "NODE")]
        node: NodeHandle,
        /// The path with the fewest references, instead of the path of the walk
        #[arg(long)]
        shortest: bool,
    },
    /// References to a node
    Referrers {
        #[arg(value_name = "NODE")]
        node: NodeHandle,
    },
    /// References from a node
    References {
        #[arg(value_name = "NODE")]
        node: NodeHandle,
    },
    /// Memory that would be freed if all these nodes were gone
    Retained {
        #[arg(required = true, value_name = "NODE")]
        nodes: Vec<NodeHandle>,
    },
    /// The dominators of a node, the nearest first, and the nodes that it dominates
    Dominators {
        #[arg(value_name = "NODE")]
        node: NodeHandle,
    },
    /// Cycles of nodes by retained size
    Cycles,
    /// Nodes by address, class, content or name
    #[command(override_usage = "borehole heap ask <FILE> find --class|--content|--name|--address <WHAT>")]
    Find(FindArgs),
    /// An unknown question.
    #[command(external_subcommand)]
    Unknown(Vec<String>),
}

#[derive(Args, Clone, Debug)]
#[group(required = true, multiple = false)]
struct FindArgs {
    /// Nodes whose memory contains this address
    #[arg(long, value_name = "ADDRESS", value_parser = address)]
    address: Option<u64>,
    /// Objects of this class
    #[arg(long, value_name = "CLASS")]
    class: Option<String>,
    /// Strings and numbers that contain this
    #[arg(long, value_name = "TEXT")]
    content: Option<String>,
    /// Targets of variables, properties or keys with this name
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
}

/// The rows of an answer that are shown, and the number of all rows.
struct AnswerRows {
    answer: QueryAnswer,
    of: u64,
}

impl AskArgs {
    pub(super) fn run(&self) -> anyhow::Result<Exit> {
        if let Question::Unknown(words) = &self.question {
            return Err(unknown(words));
        }
        let file = password::open(&self.input, self.memory.waits)?;
        let opened = self.memory.graph_with_warning(&file)?;
        let follow = Follow { weak: self.answers.weak, structural: !self.answers.no_structural };
        let heap = Heap::new(&*opened.graph, follow);
        let rows = self.question.answer(&heap, self.answers.limit.count())?;
        let text = if self.answers.json { rows.json(file.name()) } else { table::text(&rows.answer) };
        put(&text, self.answers.json)?;
        if let Some(cut) = cut(rows.answer.rows.len() as u64, rows.of) {
            let is_way = matches!(self.question, Question::PathToRoot { .. });
            let which = if is_way { "; these are the first and the last" } else { "" };
            say(&format!("{cut}{which}"));
        }
        Ok(Exit::after(&opened.recovery))
    }
}

impl Question {
    fn answer(&self, heap: &Heap<'_>, limit: usize) -> anyhow::Result<AnswerRows> {
        Ok(match self {
            Self::TopClasses => top_classes(heap, limit),
            Self::TopRetained => top_retained(heap, limit),
            Self::Roots => {
                let roots: Vec<NodeId> = heap.references(None).map(|root| root.to).collect();
                nodes(heap, by_retained(heap, roots), limit)
            }
            Self::Node { nodes: asked } => nodes(heap, find_nodes(heap, asked)?, limit),
            Self::PathToRoot { node, shortest } => {
                let node = node.find(heap)?;
                steps(heap, &if *shortest { heap.shortest_way(node) } else { heap.way(node) }, limit)
            }
            Self::Referrers { node } => {
                references(heap, heap.referrers(node.find(heap)?), limit, |found| found.from)
            }
            Self::References { node } => {
                references(heap, heap.references(Some(node.find(heap)?)), limit, |found| Some(found.to))
            }
            Self::Retained { nodes } => retained(heap, nodes)?,
            Self::Dominators { node } => dominators(heap, node.find(heap)?, limit),
            Self::Cycles => cycles(heap, limit),
            Self::Find(find) => find.answer(heap, limit)?,
            Self::Unknown(words) => return Err(unknown(words)),
        })
    }
}

/// The error for an unknown question, which names the known ones.
fn unknown(words: &[String]) -> anyhow::Error {
    let command = Question::augment_subcommands(Command::new("ask"));
    let known: Vec<&str> = command.get_subcommands().map(Command::get_name).collect();
    anyhow!("unknown question: expected one of {}, found {}", known.join(", "), words[0])
}

impl FindArgs {
    fn answer(&self, heap: &Heap<'_>, limit: usize) -> anyhow::Result<AnswerRows> {
        let bytes = |text: &String| text.clone().into_bytes();
        let needle = match (self.address, &self.class, &self.content, &self.name) {
            (Some(address), ..) => Needle::Address(address),
            (_, Some(class), ..) => Needle::Class(bytes(class)),
            (_, _, Some(content), _) => Needle::Content(bytes(content)),
            (.., name) => Needle::Name(name.as_ref().map(bytes).unwrap_or_default()),
        };
        let (found, of) = views::find(heap, &needle, limit);
        Ok(AnswerRows { of, ..nodes(heap, found, limit) })
    }
}

/// A node, by its number or by an address.
#[derive(Clone, Copy, Debug)]
enum NodeHandle {
    Node(NodeId),
    /// An address in its memory.
    Address(u64),
}

impl FromStr for NodeHandle {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text.starts_with("0x") {
            return address(text).map(Self::Address);
        }
        let node = text.parse().map(Self::Node);
        node.map_err(|_| format!("expected #NUMBER or 0xADDRESS, found {text}"))
    }
}

impl NodeHandle {
    fn find(self, heap: &Heap<'_>) -> anyhow::Result<NodeId> {
        match self {
            Self::Node(node) => {
                let count = heap.graph().counts().nodes;
                ensure!((node.0 as usize) < count, "unknown node: expected below #{count}, found {node}");
                Ok(node)
            }
            Self::Address(address) => {
                let found = views::find(heap, &Needle::Address(address), 1).0;
                found.first().copied().ok_or_else(|| anyhow!("no node has 0x{address:x} in its memory"))
            }
        }
    }
}

fn find_nodes(heap: &Heap<'_>, asked: &[NodeHandle]) -> anyhow::Result<Vec<NodeId>> {
    asked.iter().map(|node| node.find(heap)).collect()
}

fn top_classes(heap: &Heap<'_>, limit: usize) -> AnswerRows {
    let classes = views::classes(heap);
    let row = |class: &views::ClassView| {
        let largest = class.largest;
        vec![
            size(class.retained_bytes),
            size(class.shallow_bytes),
            size(class.count),
            text(&class.name),
            handle(largest),
            text(&heap.path(largest)),
        ]
    };
    let columns = ["retained", "shallow", "objects", "class", "largest", "path"];
    rows(&columns, classes.iter().take(limit).map(row), classes.len())
}

fn by_retained(heap: &Heap<'_>, mut found: Vec<NodeId>) -> Vec<NodeId> {
    found.sort_by_key(|&node| (std::cmp::Reverse(heap.retention().retained(node)), node));
    found
}

fn top_retained(heap: &Heap<'_>, limit: usize) -> AnswerRows {
    nodes(heap, by_retained(heap, heap.retention().nodes().collect()), limit)
}

fn nodes(heap: &Heap<'_>, found: Vec<NodeId>, limit: usize) -> AnswerRows {
    let of = found.len();
    let views = found.into_iter().take(limit).filter_map(|node| heap.node(node));
    rows(&NODE_COLUMNS, views.map(|view| node_row(&view)), of)
}

const NODE_COLUMNS: [&str; 9] =
    ["node", "retained", "shallow", "type", "class", "count", "refcount", "path", "value"];

fn node_row(view: &NodeView) -> Vec<SqlValue> {
    vec![
        handle(view.node),
        size(view.retained_bytes),
        size(view.shallow_bytes),
        text(&view.node_type),
        view.class.as_deref().map_or(SqlValue::Null, text),
        view.count.map_or(SqlValue::Null, size),
        view.refcount.map_or(SqlValue::Null, |count| size(u64::from(count))),
        text(&view.path),
        view.value.as_deref().map_or(SqlValue::Null, text),
    ]
}

/// The steps of a path; if there are more than the limit, the first and the last.
fn steps(heap: &Heap<'_>, way: &[PathStep], limit: usize) -> AnswerRows {
    let paths = StepPaths::new(&heap.graph(), way.iter().map(|step| (step.node, &*step.link)));
    let row = |place: usize| {
        let step = &way[place];
        vec![
            handle(step.node),
            text(&step.link),
            SqlValue::Text(step.strength.name().to_owned()),
            text(heap.graph().node_type_name(step.node)),
            size(heap.retention().retained(step.node)),
            text(&paths.path(place)),
        ]
    };
    let shown = limit.min(way.len());
    let last = shown / 2;
    let places = (0..shown - last).chain(way.len() - last..way.len());
    rows(&["node", "link", "strength", "type", "retained", "path"], places.map(row), way.len())
}

fn references(
    heap: &Heap<'_>,
    found: impl Iterator<Item = NodeReference>,
    limit: usize,
    other: impl Fn(&NodeReference) -> Option<NodeId>,
) -> AnswerRows {
    let found: Vec<NodeReference> = found.collect();
    let row = |reference: &NodeReference| {
        let view = other(reference).and_then(|node| heap.node(node));
        let mut row = vec![text(&reference.link), SqlValue::Text(reference.strength.name().to_owned())];
        let root = || (0..NODE_COLUMNS.len()).map(|_| SqlValue::Null).collect();
        row.extend(view.as_ref().map_or_else(root, node_row));
        row
    };
    let columns: Vec<&str> = ["link", "strength"].into_iter().chain(NODE_COLUMNS).collect();
    rows(&columns, found.iter().take(limit).map(row), found.len())
}

fn retained(heap: &Heap<'_>, asked: &[NodeHandle]) -> anyhow::Result<AnswerRows> {
    let found = find_nodes(heap, asked)?;
    let freed = freed_without(&heap.graph(), heap.follow(), &found);
    let mut answer: Vec<Vec<SqlValue>> = found
        .iter()
        .filter_map(|&node| heap.node(node))
        .map(|view| vec![handle(view.node), size(view.retained_bytes), SqlValue::Null, text(&view.path)])
        .collect();
    answer.push(vec![SqlValue::Text("all".to_owned()), size(freed.bytes), size(freed.nodes), SqlValue::Null]);
    let of = answer.len();
    Ok(rows(&["node", "retained", "nodes", "path"], answer.into_iter(), of))
}

fn dominators(heap: &Heap<'_>, node: NodeId, limit: usize) -> AnswerRows {
    let retention = heap.retention();
    let above: Vec<NodeId> =
        std::iter::successors(retention.dominator(node), |&above| retention.dominator(above)).collect();
    let below = heap.dominated().dominated(retention, Some(node));
    let of = above.len() + 1 + below.len();
    let relation = |what: &str, node| {
        let mut row = vec![SqlValue::Text(what.to_owned())];
        row.extend(heap.node(node).as_ref().map(node_row).unwrap_or_default());
        row
    };
    let all = above.into_iter().map(|node| ("dominator", node)).chain([("itself", node)]);
    let all = all.chain(below.map(|node| ("dominated", node))).take(limit);
    let columns: Vec<&str> = ["relation"].into_iter().chain(NODE_COLUMNS).collect();
    rows(&columns, all.map(|(what, node)| relation(what, node)), of)
}

fn cycles(heap: &Heap<'_>, limit: usize) -> AnswerRows {
    let cycles = views::cycles(heap);
    let row = |cycle: &CycleView| {
        let classes =
            cycle.classes.iter().take(5).map(|(name, count)| format!("{count} {}", printable(name)));
        vec![
            handle(cycle.first),
            size(cycle.retained_bytes),
            size(cycle.shallow_bytes),
            size(cycle.nodes),
            size(cycle.entries),
            SqlValue::Text(classes.collect::<Vec<_>>().join(", ")),
            text(&heap.path(cycle.first)),
        ]
    };
    let columns = ["first", "retained", "shallow", "nodes", "entries", "classes", "path"];
    rows(&columns, cycles.iter().take(limit).map(row), cycles.len())
}

fn rows(columns: &[&str], rows: impl Iterator<Item = Vec<SqlValue>>, of: usize) -> AnswerRows {
    let columns = columns.iter().map(|&name| name.to_owned()).collect();
    AnswerRows { answer: QueryAnswer { columns, rows: rows.collect() }, of: of as u64 }
}

fn size(number: u64) -> SqlValue {
    SqlValue::Integer(i64::try_from(number).unwrap_or(i64::MAX))
}

fn handle(node: NodeId) -> SqlValue {
    SqlValue::Text(node.to_string())
}

fn text(bytes: &[u8]) -> SqlValue {
    SqlValue::Text(String::from_utf8_lossy(bytes).into_owned())
}

impl AnswerRows {
    /// One object, so that a program sees how many rows are missing.
    fn json(&self, name: &str) -> String {
        let object = serde_json::json!({
            "schema_version": 1,
            "heap": name,
            "rows": table::objects(&self.named()),
            "shown": self.answer.rows.len(),
            "of": self.of,
        });
        format!("{object}\n")
    }

    /// The answer with the names of the other JSON of heaps: units in the names, and nodes as numbers.
    fn named(&self) -> QueryAnswer {
        let columns: Vec<String> = self.answer.columns.iter().map(|column| json_name(column)).collect();
        let row = |row: &Vec<SqlValue>| {
            let cells = row.iter().zip(&columns);
            cells
                .map(|(cell, name)| if name.ends_with("node_id") { number(cell) } else { cell.clone() })
                .collect()
        };
        let rows = self.answer.rows.iter().map(row).collect();
        QueryAnswer { columns, rows }
    }
}

fn json_name(column: &str) -> String {
    match column {
        "node" => "node_id".to_owned(),
        "largest" | "first" => format!("{column}_node_id"),
        "retained" | "shallow" => format!("{column}_bytes"),
        _ => column.to_owned(),
    }
}

/// The number of a node; null for a row about several nodes.
fn number(handle: &SqlValue) -> SqlValue {
    let node = match handle {
        SqlValue::Text(handle) => handle.parse::<NodeId>().ok(),
        _ => None,
    };
    node.map_or(SqlValue::Null, |node| size(u64::from(node.0)))
}
