//! The walk: from the roots over everything that a heap holds, each thing once, into a sink.
//!
//! A list of [`Task`]s says what is left to do, so that neither a list of a million objects nor a cycle is more than a loop.
//! A node is given out when it is come to first, before what it leads to; where it is come to again, there is an edge.
//!
//! Nothing that is read is trusted. A length counts as far as the block that it is about; memory that is not there, or
//! contradicts itself, is marked on the node (`#damage`) and counted, and the walk goes on with the next. What is kept for the
//! walk, and what it gives out, is bounded by the memory that there is: see [`limits`].

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

/// What became of a walk.
#[derive(Clone, Debug)]
pub(crate) struct Walked {
    /// What the blocks add up to that something was found to lead to.
    pub(crate) reached_bytes: u64,
    /// How often memory was not there.
    pub(crate) missing: u64,
    /// How often memory contradicted itself.
    pub(crate) torn: u64,
    /// Whether it was given up, because memory led to more than it can hold.
    pub(crate) is_stopped: bool,
}

/// Calls in place of those that are being executed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Chain {
    /// The innermost frame.
    pub(crate) innermost: u64,
    /// How many there are with it.
    pub(crate) depth: u32,
    /// The line that it is at, which it need not know any more.
    pub(crate) line: u32,
}

/// How a heap is walked.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct WalkOptions {
    /// The calls, where they are not those that are being executed.
    pub(crate) chain: Option<Chain>,
    /// Whether what strings say that are not the program's own is left out.
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
    // Before the rest is listed: what is only listed was not led to.
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
    /// Memory that is looked through when all that is known has been walked.
    pub(crate) scans: Vec<Scan>,
    /// What is gone to only if nothing else that is known leads there.
    pub(crate) put_off: Vec<(Link, Kind, u64)>,
    /// What weak references lead to: gone to at last, so that whatever else leads there is how it is reached.
    weak: Vec<(Link, Kind, u64)>,
    /// Addresses of which it is not known what is there.
    pub(crate) unknown: Vec<(Link, u64)>,
    seen: Seen,
    stacks: Stacks,
    /// The places of the table of objects, and how many have been used.
    pub(crate) store: Option<(u64, u32)>,
    /// The last is the next.
    work: Vec<Task>,
    classes: ClassNames,
    handlers: Handlers,
    /// The nodes of the table of global variables: its unused part and its elements.
    globals: Option<[NodeId; 2]>,
    /// The calls, where they are not those that are being executed.
    other_chain: Option<Chain>,
    /// By what the contents of strings are replaced, where they are.
    redaction: Option<RandomState>,
    limits: Limits,
    missing: u64,
    torn: u64,
}

/// What is said of memory beside where it is.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shape {
    pub(crate) location_type: LocationType,
    pub(crate) size: u64,
    pub(crate) class: Option<StringId>,
    pub(crate) string: Option<StringId>,
    /// The reference count and the flags, of what has them.
    pub(crate) counted: Option<(u32, u32)>,
}

impl Shape {
    pub(crate) const fn new(location_type: LocationType, size: u64) -> Self {
        Self { location_type, size, class: None, string: None, counted: None }
    }
}

/// What is wrong with memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Damage {
    /// It is not there.
    Missing,
    /// It contradicts itself.
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

    /// Does what is to be done, and what follows from it.
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

    /// Goes to what is at `address`, which is not 0.
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

    /// Puts what was added since `mark` into the order in which it was added.
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

    /// Adds a node that stands for what is at `spot`.
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

    /// Adds an edge to the node that there is for `spot`; `false` if there is none.
    #[inline]
    fn again(&mut self, spot: &Spot, link: Link) -> bool {
        let Some(node) = self.seen.node(spot) else { return false };
        self.limits.meet(1);
        self.edge(link, node, false);
        true
    }

    /// Adds a location of `node`. What a block has beyond it is its overhead, if it begins the block.
    fn locate(&mut self, node: NodeId, spot: &Spot, shape: Shape) {
        let own = spot.block.filter(|block| block.address == spot.address);
        let overhead = own.map_or(0, |block| block.bytes.saturating_sub(shape.size));
        self.locate_within(node, spot, shape, overhead);
    }

    /// As [`Self::locate`], with the overhead known.
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

    /// Adds a location at `address`, unless that is null or something else is there already.
    fn locate_once(&mut self, node: NodeId, address: u64, shape: Shape) {
        let spot = self.spot(address);
        if address != 0 && shape.size != 0 && self.seen.node(&spot).is_none() {
            self.seen.insert(&spot, node);
            self.locate(node, &spot, shape);
        }
    }

    /// Marks `node`.
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

    /// The number of `number` as a string in the sink.
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

    /// How many bytes what begins at `address` can have: those of its block, or of all that is there if PHP's memory is not
    /// its own allocator's. `None` if nothing begins there.
    pub(crate) fn room(&self, address: u64) -> Option<u64> {
        if self.blocks.allocator().is_some() {
            return Some(self.blocks.at(address)?.bytes);
        }
        Some(self.view.rest(address).len() as u64).filter(|&room| room > 0)
    }

    /// How many of `count` things of `size` bytes in a row can be at `address`: PHP has no limit of its own, and damaged memory
    /// names any number.
    pub(crate) fn fitting(&self, address: u64, count: u32, size: u64) -> u32 {
        let wanted = u64::from(count) * size;
        let room = match self.blocks.find(address) {
            Some(block) if block.bytes < CHUNK_BYTES => wanted.min(block.end() - address),
            // A huge block may be said to have more bytes than there are.
            Some(block) => self.view.length(address, wanted.min(block.end() - address)),
            None => self.view.length(address, wanted),
        };
        u32::try_from(room / size.max(1)).map_or(count, |fitting| fitting.min(count))
    }

    /// Marks `node`, whose row at `address` is said to be longer than what is there.
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
