//! The path of a node, as a PHP engineer would write it: `<main>:28::$users->items[0]`.

use crate::graph::{Graph, TreeParents, attribute, child, locations};
use crate::names::NodeType;
use crate::sink::{NodeId, StringId};

/// The number of steps written at each end of a path; those between are counted.
pub const STEPS: usize = 24;

/// The kind of an array's elements, which follows from the place of the array.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ElementKind {
    Keys,
    DynamicProperties,
    GlobalVariables,
    StaticVariables,
}

/// The path to `node` from its root, along tree references.
///
/// A call frame is written as its function and line, and its variables follow after `::`. The middle of a long path is
/// left out. A step that has no syntax in PHP is written as a dot and the name of the reference, and so is a frame
/// below a generator or a fiber. Names are as stored: they may contain any bytes.
#[doc = crate::doc_graph::graph_example!(
    r#"use borehole_heap::{TreeParents, path::path};

let parents = TreeParents::of(&graph);
assert_eq!(path(&graph, &parents, string), b"<cache>.text");"#
)]
#[must_use]
pub fn path(graph: &impl Graph, parents: &TreeParents, node: NodeId) -> Vec<u8> {
    let nodes = parents.path(node);
    let steps = nodes.iter().map(|&node| (node, parents.link(node).unwrap_or(StringId(u32::MAX))));
    of_steps(graph, steps)
}

/// The path to `node` if it is at most this deep; otherwise its last steps after `...`, because following all of a long
/// chain for each of its nodes would take too long.
#[doc = crate::doc_graph::graph_example!(
    r#"use borehole_heap::{TreeParents, path::near};

let parents = TreeParents::of(&graph);
assert_eq!(near(&graph, &parents, string, 10), b"<cache>.text");"#
)]
#[must_use]
pub fn near(graph: &impl Graph, parents: &TreeParents, node: NodeId, deepest: usize) -> Vec<u8> {
    near_with(graph, parents, node, deepest, |_| false)
}

/// Like [`near`], with `[]` for the keys of the elements that `is_any` chooses.
pub(crate) fn near_with(
    graph: &impl Graph,
    parents: &TreeParents,
    node: NodeId,
    deepest: usize,
    is_any: impl Fn(NodeId) -> bool,
) -> Vec<u8> {
    near_by(StepWriter::new(graph), parents, node, deepest, is_any)
}

/// Like [`near_with`], without the lines of calls, which change whenever the code does.
pub(crate) fn names(
    graph: &impl Graph,
    parents: &TreeParents,
    node: NodeId,
    deepest: usize,
    is_any: impl Fn(NodeId) -> bool,
) -> Vec<u8> {
    near_by(StepWriter { has_lines: false, ..StepWriter::new(graph) }, parents, node, deepest, is_any)
}

fn near_by<G: Graph>(
    writer: StepWriter<'_, G>,
    parents: &TreeParents,
    node: NodeId,
    deepest: usize,
    is_any: impl Fn(NodeId) -> bool,
) -> Vec<u8> {
    let graph = writer.graph;
    let upwards = std::iter::successors(Some(node), |&node| parents.parent(node));
    let mut steps: Vec<NodeId> = upwards.take(deepest.saturating_add(1)).collect();
    let is_cut = steps.len() > deepest;
    if is_cut {
        steps.truncate(STEPS);
    }
    let link = |node| match is_any(node) {
        true => ANY_KEY,
        false => parents.link(node).map_or(&[][..], |link| graph.string(link)),
    };
    let steps = steps.into_iter().rev().map(|node| (node, link(node)));
    let path = StepPaths::by(writer, steps).whole();
    if is_cut { [&b"..."[..], &path].concat() } else { path }
}

/// Stands for the key of any element; a key of that name is written like it.
const ANY_KEY: &[u8] = b"\0[]";

/// The text that one step adds to a path: the reference with this name, from a node of the type `above`. Empty if PHP
/// shows nothing of it.
pub(crate) fn step(graph: &impl Graph, above: NodeType, node: NodeId, link: StringId) -> Vec<u8> {
    let mut writer = StepWriter { above: Some(above), ..StepWriter::new(graph) };
    writer.step(node, graph.string(link))
}

/// The path of these steps from a root: each node, and the name of the reference to it.
#[doc = crate::doc_graph::graph_example!(
    r#"use borehole_heap::path::of_steps;

assert_eq!(of_steps(&graph, [(object, root), (string, text)].into_iter()), b"<cache>.text");"#
)]
#[must_use]
pub fn of_steps(graph: &impl Graph, steps: impl Iterator<Item = (NodeId, StringId)>) -> Vec<u8> {
    StepPaths::new(graph, steps.map(|(node, link)| (node, graph.string(link)))).whole()
}

/// The paths to all steps along a chain. Common parts are computed once, because a chain may be as long as a list.
#[doc = crate::doc_graph::graph_example!(
    r#"use borehole_heap::path::StepPaths;

let steps = [(object, &b"cache"[..]), (string, b"text")];
let paths = StepPaths::new(&graph, steps.into_iter());
assert!(paths.whole().starts_with(&paths.path(0)));"#
)]
#[derive(Clone, Debug, Default)]
pub struct StepPaths {
    /// The name of the root.
    branch: Vec<u8>,
    /// The texts of the steps that PHP shows.
    parts: Vec<Vec<u8>>,
    /// The number of parts up to each step.
    ends: Vec<usize>,
}

impl StepPaths {
    /// Creates the paths for these steps from a root: each node, and the name of the reference to it.
    #[must_use]
    pub fn new<'s>(graph: &impl Graph, steps: impl Iterator<Item = (NodeId, &'s [u8])>) -> Self {
        Self::by(StepWriter::new(graph), steps)
    }

    fn by<'s, G: Graph>(
        mut writer: StepWriter<'_, G>,
        steps: impl Iterator<Item = (NodeId, &'s [u8])>,
    ) -> Self {
        let mut paths = Self::default();
        for (node, link) in steps {
            if writer.above.is_none() {
                paths.branch = link.to_vec();
            }
            let part = writer.step(node, link);
            if !part.is_empty() {
                paths.parts.push(part);
            }
            paths.ends.push(paths.parts.len());
        }
        paths
    }

    /// The path up to the step with this index; the middle of a long one is left out.
    #[must_use]
    pub fn path(&self, step: usize) -> Vec<u8> {
        self.joined(self.ends.get(step).copied().unwrap_or(0))
    }

    /// The path of all steps.
    #[must_use]
    pub fn whole(&self) -> Vec<u8> {
        self.joined(self.parts.len())
    }

    fn joined(&self, end: usize) -> Vec<u8> {
        let parts = &self.parts[..end];
        let Some(last) = parts.last() else { return [b"<", &*self.branch, b">"].concat() };
        let mut path = match parts.len().checked_sub(2 * STEPS) {
            None | Some(0) => parts.concat(),
            Some(more) => {
                let left_out = format!("...({more} more)...").into_bytes();
                [parts[..STEPS].concat(), left_out, parts[end - STEPS..].concat()].concat()
            }
        };
        if last == b"::" {
            path.extend_from_slice(b"$GLOBALS");
        }
        path
    }
}

struct StepWriter<'g, G> {
    graph: &'g G,
    above: Option<NodeType>,
    elements: ElementKind,
    in_class: bool,
    /// Whether the calls are those of a generator or a fiber, which is referred to by something.
    is_suspended: bool,
    /// Whether calls are written with their lines.
    has_lines: bool,
}

impl<'g, G: Graph> StepWriter<'g, G> {
    const fn new(graph: &'g G) -> Self {
        let elements = ElementKind::Keys;
        Self { graph, above: None, elements, in_class: false, is_suspended: false, has_lines: true }
    }

    /// The text of a step.
    fn step(&mut self, node: NodeId, link: &[u8]) -> Vec<u8> {
        let part = match self.above {
            None => self.root(link),
            Some(above) => self.below(above, node, link),
        };
        self.above = Some(self.graph.node_type(node));
        part
    }

    fn root(&mut self, link: &[u8]) -> Vec<u8> {
        match link {
            b"call_frames" | b"function_table" | b"class_table" | b"global_constants" => Vec::new(),
            b"global_variables" => {
                self.elements = ElementKind::GlobalVariables;
                Vec::new()
            }
            _ => [b"<", link, b">"].concat(),
        }
    }

    fn below(&mut self, above: NodeType, node: NodeId, link: &[u8]) -> Vec<u8> {
        match (above, link) {
            (NodeType::CALL_FRAMES, _) => self.frame(node, link),
            (_, b"call_frames") => {
                self.is_suspended = true;
                b".call_frames".to_vec()
            }
            (NodeType::CALL_FRAME_VARIABLE_TABLE, _) => [&b"::"[..], &variable(link)].concat(),
            (NodeType::CALL_FRAME, b"this") => b"::$this".to_vec(),
            (NodeType::CALL_FRAME, b"symbol_table") => self.expect(ElementKind::GlobalVariables, b"::"),
            (NodeType::GLOBAL_VARIABLES, _) if link != b"array_elements" => variable(link),
            (NodeType::ARRAY_ELEMENTS, _) => self.element(link),
            (NodeType::OBJECT, b"dynamic_properties") => self.expect(ElementKind::DynamicProperties, b""),
            (NodeType::OBJECT_PROPERTIES, _) => [b"->", link].concat(),
            (NodeType::CLASS_STATIC_PROPERTIES, _) => [&b"::"[..], &variable(link)].concat(),
            (NodeType::CLASS_CONSTANTS, _) => [b"::", link].concat(),
            (NodeType::DEFINED_CLASSES, _) => self.name_of(node).unwrap_or(link).to_vec(),
            (NodeType::CLASS_DEFINITION, b"methods") => {
                self.in_class = true;
                Vec::new()
            }
            (NodeType::DEFINED_FUNCTIONS, _) => self.function(node, link),
            (NodeType::OP_ARRAY, b"static_variables") => self.expect(ElementKind::StaticVariables, b""),
            (NodeType::GLOBAL_CONSTANTS, _) => link.to_vec(),
            _ if is_plumbing(above, link) => Vec::new(),
            _ => [b".", link].concat(),
        }
    }

    /// Notes that the next array has these elements, and returns `text`.
    fn expect(&mut self, elements: ElementKind, text: &[u8]) -> Vec<u8> {
        self.elements = elements;
        text.to_vec()
    }

    fn frame(&self, node: NodeId, link: &[u8]) -> Vec<u8> {
        let before: &[u8] = if self.is_suspended { b"." } else { b"" };
        let name = attribute(self.graph, node, b"function_name").unwrap_or(link);
        let line = attribute(self.graph, node, b"lineno").filter(|&line| self.has_lines && line != b"-1");
        match line {
            Some(line) => [before, name, b":", line].concat(),
            None => [before, name].concat(),
        }
    }

    fn element(&mut self, key: &[u8]) -> Vec<u8> {
        match std::mem::replace(&mut self.elements, ElementKind::Keys) {
            ElementKind::Keys if key == ANY_KEY => b"[]".to_vec(),
            ElementKind::Keys if is_integer(key) => [b"[", key, b"]"].concat(),
            ElementKind::Keys => [b"['", key, b"']"].concat(),
            ElementKind::DynamicProperties => [b"->", key].concat(),
            ElementKind::GlobalVariables => variable(key),
            ElementKind::StaticVariables => [&b"::"[..], &variable(key)].concat(),
        }
    }

    fn function(&mut self, node: NodeId, link: &[u8]) -> Vec<u8> {
        let before: &[u8] = if std::mem::take(&mut self.in_class) { b"::" } else { b"" };
        let name = self.name_of(node).unwrap_or(link);
        [before, name, b"()"].concat()
    }

    /// The name of a class or a function as written in the source; names in tables are lower case.
    fn name_of(&self, node: NodeId) -> Option<&[u8]> {
        let name = child(self.graph, node, b"name")?;
        let text = locations(self.graph, name).find_map(|location| location.string)?;
        Some(self.graph.string(text))
    }
}

/// References that are an implementation detail of the engine, and invisible in the language.
fn is_plumbing(above: NodeType, link: &[u8]) -> bool {
    match above {
        NodeType::CALL_FRAME => link == b"local_variables",
        NodeType::ARRAY_HEADER | NodeType::GLOBAL_VARIABLES => link == b"array_elements",
        NodeType::ARRAY_ELEMENT | NodeType::CLASS_CONSTANT | NodeType::GLOBAL_CONSTANT => link == b"value",
        NodeType::OBJECT => matches!(link, b"object_properties" | b"closure"),
        NodeType::PHP_REFERENCE => link == b"referenced",
        NodeType::CLASS_DEFINITION => matches!(link, b"static_properties" | b"constants"),
        NodeType::USER_FUNCTION_DEFINITION => link == b"op_array",
        _ => false,
    }
}

fn variable(name: &[u8]) -> Vec<u8> {
    if name.starts_with(b"$") { name.to_vec() } else { [b"$", name].concat() }
}

/// Whether PHP would treat a key as an integer.
pub(crate) fn is_integer(key: &[u8]) -> bool {
    let text = std::str::from_utf8(key).unwrap_or_default();
    text.parse::<i64>().is_ok_and(|number| number.to_string() == text)
}
