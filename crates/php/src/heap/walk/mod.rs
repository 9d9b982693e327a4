//! The walk: visits everything in a heap once, from the roots on, and writes it to a sink.
//!
//! A [`HeapWalker`] consists of what it reads ([`HeapReader`], which never changes), what it writes ([`GraphWriter`]) and what is
//! left to do ([`PendingWork`]). Each file has the methods for one kind of structure: [`internals`] for the data of PHP's own
//! classes, [`remainder`] for what no root leads to.
//!
//! The pending work is a list of [`WalkTask`]s, so neither a list of a million objects nor a cycle causes recursion. A node is
//! written at its first visit, before what it leads to; each further visit adds an edge.
//!
//! Nothing read is trusted. Lengths are limited to their block. Missing or inconsistent memory is marked on the node
//! (`#damage`) and counted, and the walk continues with the next node. The memory use and the output of the walk are limited by
//! the size of the memory: see [`limits`].

mod arrays;
mod callables;
mod class_names;
mod classes;
mod frames;
mod functions;
mod graph;
mod internals;
mod limits;
mod objects;
mod place;
mod prepared;
mod reader;
mod remainder;
mod resources;
mod roots;
mod seen;
mod stacks;
mod symbols;
mod syntax;
mod task;
mod temporaries;
mod trial;
mod type_names;
mod values;
mod words;

#[cfg(test)]
mod tests;

use std::hash::RandomState;

use borehole_heap::{AttributeValue, HeapSink, NodeId, StringId};
use borehole_process::Dump;
use hashbrown::HashSet;

use crate::attach::Php;
use crate::executor::Executor;
use crate::heap::blocks::HeapBlocks;
use crate::heap::layout::HeapLayout;
use crate::heap::view::DumpView;
use crate::layout::fixed;
use crate::remote::moved;

use self::class_names::ClassNames;
use self::graph::GraphWriter;
use self::objects::Handlers;
use self::place::Activity;
use self::resources::ResourceReferences;
use self::symbols::LentVariables;
use self::task::{PendingWork, WalkTask};
use self::words::FixedNames;

pub(crate) use self::graph::Extent;
pub(crate) use self::objects::ObjectView;
pub(crate) use self::reader::HeapReader;
pub(crate) use self::task::{NodeLink, PendingScan, VisitKind};

#[derive(Clone, Debug, Default)]
pub(crate) struct Walked {
    /// The total size of the reached blocks, in bytes.
    pub(crate) reached_bytes: u64,
    /// The number of times that memory was missing.
    pub(crate) missing: u64,
    /// The number of times that memory was inconsistent.
    pub(crate) torn: u64,
    /// The number of times that required memory was in shared memory that was left out of the dump.
    pub(crate) left_out: u64,
    /// Whether it was given up, because memory led to more than it can hold.
    pub(crate) is_stopped: bool,
    /// The contradiction in the sizes of what was found; `None` if they fit.
    pub(crate) contradiction: Option<String>,
}

/// Calls to walk instead of the running ones.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FailedChain {
    /// The address of the innermost frame.
    pub(crate) innermost: u64,
    /// The number of frames, including the innermost one.
    pub(crate) depth: u32,
    /// The line of the innermost frame, which may no longer be in its memory.
    pub(crate) line: u32,
}

#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct HeapWalkOptions {
    /// The calls, if they are not the running ones.
    pub(crate) chain: Option<FailedChain>,
    /// Whether to redact strings that are not part of the program.
    pub(crate) redact: bool,
}

pub(crate) fn walk<S: HeapSink>(
    dump: &Dump,
    php: &Php,
    executor: &Executor,
    blocks: &mut HeapBlocks,
    options: &HeapWalkOptions,
    sink: &mut S,
) -> Walked {
    let view = DumpView::new(dump);
    let layout = HeapLayout::of(php.identity.release);
    roots::claim(view, php, executor, blocks);
    stacks::claim(view, blocks);
    let store = moved(executor.globals, layout.executor_objects);
    let objects = view.u64(store).zip(view.u32(moved(store, fixed::OBJECTS_TOP)));
    let is_active = view.array(moved(executor.globals, layout.executor_active)) != Some([0]);
    let heap = HeapReader {
        view,
        php,
        layout: &layout,
        executor,
        blocks,
        objects,
        failed: options.chain,
        is_active,
    };
    let mut walker = HeapWalker::new(heap, options, sink);
    walker.roots();
    walker.graph.account.summary(dump, php, walker.graph.sink);
    // Before the rest is listed: blocks that are only listed were not reached.
    let reached_bytes = walker.graph.account.reached_bytes();
    walker.unattributed();
    let contradiction = walker.graph.account.contradiction(dump);
    Walked { reached_bytes, is_stopped: walker.is_given_up(), contradiction, ..walker.walked }
}

/// Walks one heap: reads it, writes its graph, and keeps what is left to do and what it has learned on the way.
pub(crate) struct HeapWalker<'d, S> {
    pub(crate) heap: HeapReader<'d>,
    pub(crate) graph: GraphWriter<'d, S>,
    pub(crate) pending: PendingWork,
    pub(crate) words: FixedNames,
    classes: ClassNames,
    handlers: Handlers,
    resources: ResourceReferences,
    lent: LentVariables,
    /// The addresses of the values that are garbage.
    garbage: HashSet<u64>,
    /// The nodes of the table of global variables: its unused part and its elements; `None` until it is visited.
    globals: Option<[NodeId; 2]>,
    /// The hasher for redacted strings; `None`: strings are not redacted.
    redaction: Option<RandomState>,
    /// The damage met so far.
    walked: Walked,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Damage {
    /// The memory is missing.
    Missing,
    /// The memory is inconsistent.
    Torn,
    /// The memory is in shared memory that was left out of the dump.
    LeftOut,
}

impl<'d, S: HeapSink> HeapWalker<'d, S> {
    fn new(heap: HeapReader<'d>, options: &HeapWalkOptions, sink: &'d mut S) -> Self {
        Self {
            heap,
            words: FixedNames::new(sink),
            graph: GraphWriter::new(heap.view, heap.blocks, sink),
            pending: PendingWork::default(),
            classes: ClassNames::default(),
            handlers: Handlers::default(),
            resources: ResourceReferences::default(),
            lent: LentVariables::default(),
            garbage: HashSet::new(),
            globals: None,
            redaction: options.redact.then(RandomState::new),
            walked: Walked::default(),
        }
    }

    /// Runs all pending tasks, and those that they add.
    pub(crate) fn run(&mut self) {
        while let Some(task) = self.pending.tasks.pop() {
            if self.is_given_up() {
                self.pending.tasks.clear();
                return;
            }
            match task {
                WalkTask::Visit { link, kind, address } => self.visit(link, kind, address),
                WalkTask::Entries(entries) => self.entries(entries),
                WalkTask::Properties(properties) => self.properties(properties),
                WalkTask::Pointers(pointers) => self.pointers(pointers),
                WalkTask::Values(values) => self.values(values),
                WalkTask::Frames { node, next, at, most } => self.frames(node, next, at, most),
            }
        }
    }

    /// Visits what is at `address`, which is not 0.
    fn visit(&mut self, link: NodeLink, kind: VisitKind, address: u64) {
        match kind {
            VisitKind::Value => self.value_at(link, address),
            VisitKind::String => self.string(link, address),
            VisitKind::Array => self.array(link, address),
            VisitKind::Object => self.object(link, address),
            VisitKind::Reference => self.reference(link, address),
            VisitKind::Resource => self.resource(link, address),
            VisitKind::Function => self.function(link, address),
            VisitKind::Code => self.code(link, address),
            VisitKind::CodeVariables => self.code_variables(link, address),
            VisitKind::CodeInner => self.code_inner(link, address),
            VisitKind::CodeLiterals => self.code_literals(link, address),
            VisitKind::Class => self.class(link, address),
            VisitKind::ClassValues(table) => self.class_values_of(link, address, table),
            VisitKind::ClassTable(each) => self.class_table(link, address, each),
            VisitKind::ClassMutable => self.class_mutable(link, address),
            VisitKind::Attributes => self.attributes(link, address),
            VisitKind::Frame => {
                self.frame(link, address, Activity::Waits);
            }
        }
    }

    /// Puts the tasks added since `mark` into the order of their addition.
    fn in_order(&mut self, mark: usize) {
        self.pending.tasks[mark..].reverse();
    }

    #[cold]
    fn damage(&mut self, node: NodeId, damage: Damage) {
        let (count, key, value) = match damage {
            Damage::Missing => (&mut self.walked.missing, self.words.damage, "missing"),
            Damage::Torn => (&mut self.walked.torn, self.words.damage, "torn"),
            Damage::LeftOut => (&mut self.walked.left_out, self.words.left_out, "shared memory"),
        };
        *count += 1;
        self.graph.limits.meet(1);
        self.graph.sink.attribute(node, key, AttributeValue::Text(value.as_bytes()));
    }

    /// Marks `node`, because memory at `address` is missing. It is not damage if it was left out on purpose.
    #[cold]
    fn missing(&mut self, node: NodeId, address: u64) {
        self.damage(node, self.heap.absence(address));
    }

    pub(crate) fn count_attribute(&mut self, node: NodeId, count: u64) {
        let value = AttributeValue::Integer(i64::try_from(count).unwrap_or(i64::MAX));
        self.graph.sink.attribute(node, self.words.count, value);
    }

    fn flag(&mut self, node: NodeId, key: StringId, is_set: bool) {
        self.graph.sink.attribute(node, key, AttributeValue::Bool(is_set));
    }

    /// Marks `node` as damaged, because its row at `address` is longer than its memory.
    #[cold]
    fn damage_of_row(&mut self, node: NodeId, address: u64) {
        match self.heap.blocks.find(address) {
            Some(_) => self.damage(node, Damage::Torn),
            None => self.missing(node, address),
        }
    }
}
