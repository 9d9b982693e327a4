//! The walk: visits everything in a heap once, from the roots on, and writes it to a sink.
//!
//! The pending work is a list of [`Task`]s, so neither a list of a million objects nor a cycle causes recursion. A node is
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
mod limits;
mod memory;
mod objects;
mod place;
mod prepared;
mod roots;
mod seen;
mod stacks;
mod syntax;
mod task;
mod temporaries;
mod values;
mod words;

#[cfg(test)]
mod tests;

use std::hash::RandomState;

use borehole_heap::{Edge, HeapSink, Location, LocationType, NodeId, NodeType, Region, StringId, Value};
use borehole_process::Dump;

use crate::attach::Php;
use crate::executor::Executor;
use crate::heap::accounting::Accounting;
use crate::heap::allocator::CHUNK_BYTES;
use crate::heap::blocks::{Block, Blocks};
use crate::heap::internals::scan::Scan;
use crate::heap::layout::HeapLayout;
use crate::remote::moved;

use self::class_names::ClassNames;
use self::limits::Limits;
use self::objects::Handlers;
use self::place::Activity;
use self::seen::{Seen, Spot};
use self::stacks::Stacks;
use self::words::Words;

pub(crate) use self::memory::View;
pub(crate) use self::objects::ObjectView;
use self::task::Task;
pub(crate) use self::task::{Kind, Link};

/// The result of a walk.
#[derive(Clone, Debug)]
pub(crate) struct Walked {
    /// The total size of the reached blocks, in bytes.
    pub(crate) reached_bytes: u64,
    /// The number of times that memory was missing.
    pub(crate) missing: u64,
    /// The number of times that memory was inconsistent.
    pub(crate) torn: u64,
    /// Whether it was given up, because memory led to more than it can hold.
    pub(crate) is_stopped: bool,
}

/// Calls to walk instead of the running ones.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Chain {
    /// The address of the innermost frame.
    pub(crate) innermost: u64,
    /// The number of frames, including the innermost one.
    pub(crate) depth: u32,
    /// The line of the innermost frame, which may no longer be in its memory.
    pub(crate) line: u32,
}

/// Options of a heap walk.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct WalkOptions {
    /// The calls, if they are not the running ones.
    pub(crate) chain: Option<Chain>,
    /// Whether to redact strings that are not part of the program.
    pub(crate) redact: bool,
}

/// Walks the heap of `executor`.
pub(crate) fn walk<S: HeapSink>(
    dump: &Dump,
    php: &Php,
    executor: &Executor,
    blocks: &mut Blocks,
    options: &WalkOptions,
    sink: &mut S,
) -> Walked {
    let view = View::new(dump);
    roots::claim(view, php, executor, blocks);
    stacks::claim(view, blocks);
    let mut walker = Walker::new(dump, php, executor, blocks, sink);
    walker.redaction = options.redact.then(RandomState::new);
    walker.other_chain = options.chain;
    walker.roots();
    walker.account.summary(dump, php, walker.sink);
    // Before the rest is listed: blocks that are only listed were not reached.
    let reached_bytes = walker.account.reached_bytes();
    walker.unattributed();
    let is_stopped = walker.is_given_up();
    let Walker { missing, torn, .. } = walker;
    Walked { reached_bytes, missing, torn, is_stopped }
}

/// The state of a walk.
pub(crate) struct Walker<'d, S> {
    pub(crate) view: View<'d>,
    pub(crate) php: &'d Php,
    pub(crate) layout: HeapLayout,
    pub(crate) executor: Executor,
    pub(crate) blocks: &'d Blocks,
    pub(crate) sink: &'d mut S,
    pub(crate) words: Words,
    pub(crate) account: Accounting<'d>,
    /// Memory to scan after everything known has been walked.
    pub(crate) scans: Vec<Scan>,
    /// Visits that happen only if nothing else known leads there.
    pub(crate) put_off: Vec<(Link, Kind, u64)>,
    /// The targets of weak references. They are visited last, so that any other path to them comes first.
    weak: Vec<(Link, Kind, u64)>,
    /// Addresses with unknown contents.
    pub(crate) unknown: Vec<(Link, u64)>,
    seen: Seen,
    stacks: Stacks,
    /// The address of the table of objects, and its number of used places.
    pub(crate) store: Option<(u64, u32)>,
    /// A stack: the last task is the next one.
    work: Vec<Task>,
    classes: ClassNames,
    handlers: Handlers,
    /// The nodes of the table of global variables: its unused part and its elements.
    globals: Option<[NodeId; 2]>,
    /// The calls, if they are not the running ones.
    other_chain: Option<Chain>,
    /// The hasher for redacted strings; `None`: strings are not redacted.
    redaction: Option<RandomState>,
    limits: Limits,
    missing: u64,
    torn: u64,
}

/// The description of a location besides its address.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shape {
    pub(crate) location_type: LocationType,
    pub(crate) size: u64,
    pub(crate) class: Option<StringId>,
    pub(crate) string: Option<StringId>,
    /// The reference count and the flags, if it has them.
    pub(crate) counted: Option<(u32, u32)>,
}

impl Shape {
    pub(crate) const fn new(location_type: LocationType, size: u64) -> Self {
        Self { location_type, size, class: None, string: None, counted: None }
    }
}

/// A kind of damaged memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Damage {
    /// The memory is missing.
    Missing,
    /// The memory is inconsistent.
    Torn,
}

impl<'d, S: HeapSink> Walker<'d, S> {
    fn new(dump: &'d Dump, php: &'d Php, executor: &Executor, blocks: &'d Blocks, sink: &'d mut S) -> Self {
        let words = Words::new(sink);
        let (view, layout) = (View::new(dump), HeapLayout::of(php.identity.release));
        let store = moved(executor.globals, layout.executor_objects);
        Self {
            view,
            php,
            layout,
            store: view.u64(store).zip(view.u32(moved(store, 8))),
            executor: *executor,
            blocks,
            sink,
            words,
            seen: Seen::new(blocks, dump.held_bytes()),
            stacks: Stacks::of(view, blocks),
            account: Accounting::new(blocks),
            scans: Vec::new(),
            put_off: Vec::new(),
            weak: Vec::new(),
            unknown: Vec::new(),
            work: Vec::new(),
            classes: ClassNames::default(),
            handlers: Handlers::default(),
            globals: None,
            other_chain: None,
            redaction: None,
            limits: Limits::of(dump.held_bytes()),
            missing: 0,
            torn: 0,
        }
    }

    /// Runs all pending tasks, and those that they add.
    pub(crate) fn run(&mut self) {
        while let Some(task) = self.work.pop() {
            if self.is_given_up() {
                self.work.clear();
                return;
            }
            match task {
                Task::Visit { link, kind, address } => self.visit(link, kind, address),
                Task::Entries(entries) => self.entries(entries),
                Task::Properties(properties) => self.properties(properties),
                Task::Pointers(pointers) => self.pointers(pointers),
                Task::Values(values) => self.values(values),
                Task::Frames { node, next, at, most } => self.frames(node, next, at, most),
            }
        }
    }

    /// Visits what is at `address`, which is not 0.
    fn visit(&mut self, link: Link, kind: Kind, address: u64) {
        match kind {
            Kind::Value => self.value_at(link, address),
            Kind::String => self.string(link, address),
            Kind::Array => self.array(link, address),
            Kind::Object => self.object(link, address),
            Kind::Reference => self.reference(link, address),
            Kind::Resource => self.resource(link, address),
            Kind::Function => self.function(link, address),
            Kind::Code => self.code(link, address),
            Kind::CodeVariables => self.code_variables(link, address),
            Kind::CodeInner => self.code_inner(link, address),
            Kind::CodeLiterals => self.code_literals(link, address),
            Kind::Class => self.class(link, address),
            Kind::ClassStatics => self.class_statics(link, address),
            Kind::ClassProperties => self.class_properties(link, address),
            Kind::ClassDefaults => self.class_defaults(link, address),
            Kind::ClassStaticDefaults => self.class_static_defaults(link, address),
            Kind::ClassMethods => self.class_methods(link, address),
            Kind::ClassConstants => self.class_constants(link, address),
            Kind::ClassMutable => self.class_mutable(link, address),
            Kind::Attributes => self.attributes(link, address),
            Kind::Frame => {
                self.frame(link, address, Activity::Waits);
            }
        }
    }

    /// Puts the tasks added since `mark` into the order of their addition.
    fn in_order(&mut self, mark: usize) {
        self.work[mark..].reverse();
    }

    #[inline]
    fn spot(&self, address: u64) -> Spot {
        Spot { address, block: self.blocks.find(address) }
    }

    /// Adds a node with its tree edge.
    #[inline]
    fn node(&mut self, node_type: NodeType, link: Link) -> NodeId {
        self.limits.nodes_left = self.limits.nodes_left.saturating_sub(1);
        let child = self.sink.node(node_type);
        self.edge(link, child, true);
        child
    }

    /// Adds a node for `spot`.
    #[inline]
    fn node_at(&mut self, node_type: NodeType, link: Link, spot: &Spot) -> NodeId {
        let node = self.node(node_type, link);
        self.seen.insert(spot, node);
        node
    }

    #[inline]
    fn edge(&mut self, link: Link, child: NodeId, is_tree: bool) {
        let Link { parent, name, strength } = link;
        self.sink.edge(Edge { parent, child, link: name, is_tree, strength });
    }

    /// Adds an edge to the existing node for `spot`; `false` if there is none.
    #[inline]
    fn again(&mut self, spot: &Spot, link: Link) -> bool {
        let Some(node) = self.seen.node(spot) else { return false };
        self.limits.meet(1);
        self.edge(link, node, false);
        true
    }

    /// Adds a location of `node`. If it begins the block, the rest of the block is its overhead.
    fn locate(&mut self, node: NodeId, spot: &Spot, shape: Shape) {
        let own = spot.block.filter(|block| block.address == spot.address);
        let overhead = own.map_or(0, |block| block.bytes.saturating_sub(shape.size));
        self.locate_within(node, spot, shape, overhead);
    }

    /// Like [`Self::locate`], with known overhead.
    #[inline]
    fn locate_within(&mut self, node: NodeId, spot: &Spot, shape: Shape, overhead: u64) {
        let Shape { location_type, size, class, string, counted } = shape;
        if let Some(block) = &spot.block {
            self.account.reach(block);
            if block.region == Region::VM_STACK {
                self.stacks.take(spot.address, size);
            }
        }
        let location = Location {
            location_type,
            address: spot.address,
            size,
            bin_overhead: u32::try_from(overhead).unwrap_or(u32::MAX),
            class,
            string,
            refcount: counted.map(|(count, _)| count),
            type_info: counted.map(|(_, flags)| flags),
            region: spot.block.map(|block| block.region),
        };
        self.account.locate(&location);
        self.sink.location(node, &location);
    }

    /// Adds a location at `address`, unless it is null or has a node already.
    fn locate_once(&mut self, node: NodeId, address: u64, shape: Shape) {
        let spot = self.spot(address);
        if address != 0 && shape.size != 0 && self.seen.node(&spot).is_none() {
            self.seen.insert(&spot, node);
            self.locate(node, &spot, shape);
        }
    }

    /// Marks `node` as damaged.
    #[cold]
    fn damage(&mut self, node: NodeId, damage: Damage) {
        let (count, value) = match damage {
            Damage::Missing => (&mut self.missing, "missing"),
            Damage::Torn => (&mut self.torn, "torn"),
        };
        *count += 1;
        self.limits.meet(1);
        self.sink.attribute(node, self.words.damage, Value::Text(value.as_bytes()));
    }

    /// The string `number` in the sink.
    #[inline]
    fn number(&mut self, number: i64) -> StringId {
        let mut digits = [0; 20];
        let mut at = digits.len();
        let mut rest = number.unsigned_abs();
        loop {
            at -= 1;
            digits[at] = b'0' + u8::try_from(rest % 10).expect("a digit");
            rest /= 10;
            if rest == 0 {
                break;
            }
        }
        if number < 0 {
            at -= 1;
            digits[at] = b'-';
        }
        self.sink.string(&digits[at..])
    }

    pub(crate) fn count_attribute(&mut self, node: NodeId, count: u64) {
        let value = Value::Integer(i64::try_from(count).unwrap_or(i64::MAX));
        self.sink.attribute(node, self.words.count, value);
    }

    fn flag(&mut self, node: NodeId, key: StringId, is_set: bool) {
        self.sink.attribute(node, key, Value::Bool(is_set));
    }

    /// The maximum size in bytes of what begins at `address`: the size of its block, or all memory from there on if PHP does
    /// not use its own allocator. `None` if nothing begins there.
    pub(crate) fn room(&self, address: u64) -> Option<u64> {
        if self.blocks.allocator().is_some() {
            return Some(self.blocks.at(address)?.bytes);
        }
        Some(self.view.rest(address).len() as u64).filter(|&room| room > 0)
    }

    /// The maximum number, up to `count`, of consecutive things of `size` bytes at `address`. PHP has no limit itself, and
    /// damaged memory may have any number.
    pub(crate) fn fitting(&self, address: u64, count: u32, size: u64) -> u32 {
        let wanted = u64::from(count) * size;
        let room = match self.blocks.find(address) {
            Some(block) if block.bytes < CHUNK_BYTES => wanted.min(block.end() - address),
            // A huge block may claim to be larger than its memory.
            Some(block) => self.view.length(address, wanted.min(block.end() - address)),
            None => self.view.length(address, wanted),
        };
        u32::try_from(room / size.max(1)).map_or(count, |fitting| fitting.min(count))
    }

    /// Marks `node` as damaged, because its row at `address` is longer than its memory.
    #[cold]
    fn damage_of_row(&mut self, node: NodeId, address: u64) {
        let is_block = self.blocks.find(address).is_some();
        self.damage(node, if is_block { Damage::Torn } else { Damage::Missing });
    }

    /// The block in use that begins at `address`.
    pub(crate) fn block_at(&self, address: u64) -> Option<Block> {
        self.blocks.at(address)
    }
}
