//! Call frames: the variables, temporaries and arguments of running calls.

use borehole_heap::{AttributeValue, HeapSink, LocationType, NodeId, NodeType};

use super::place::{Activity, FramePosition};
use super::seen::BlockSpot;
use super::{Damage, Extent, HeapReader, HeapWalker, NodeLink, VisitKind, WalkTask};
use crate::layout::fixed;
use crate::remote::{moved, u32_at, u64_at};

/// `zend_function.num_args`.
const ARGUMENT_COUNT: usize = 32;

/// The maximum number of frames of a chain; more would take gigabytes.
pub(super) const MOST_FRAMES: u32 = 1 << 24;

#[derive(Clone, Copy, Debug)]
pub(super) struct CallFrame {
    /// The address of the function, or 0.
    pub(super) function: u64,
    is_user: bool,
    given: u32,
    pub(super) variables: u32,
    pub(super) temporaries: u32,
    /// The number of parameters that the function declares.
    named: u32,
    /// The current place in its function.
    pub(super) place: FramePosition,
    /// Whether its values may be gone: an exception is leaving it, or the program has left it.
    is_doubtful: bool,
    /// The address of its first variable.
    first: u64,
    /// The number of values that fit into the memory from there on.
    pub(super) room: u32,
}

impl CallFrame {
    /// The number of values before the arguments beyond the declared parameters.
    const fn behind(&self) -> u32 {
        self.variables.saturating_add(self.temporaries)
    }

    /// The number of its values: variables, temporaries, and arguments.
    const fn slots(&self) -> u32 {
        if self.is_user {
            self.behind().saturating_add(self.given.saturating_sub(self.named))
        } else {
            self.given
        }
    }

    pub(super) fn address_of(&self, place: u32) -> u64 {
        self.first.wrapping_add(u64::from(place) * fixed::VALUE_SIZE)
    }
}

impl<S: HeapSink> HeapWalker<'_, S> {
    pub(crate) fn chain(&mut self, parent: NodeId, first: u64) {
        let node = self.part(parent, "call_frames", NodeType::CALL_FRAMES);
        self.pending.tasks.push(WalkTask::Frames { node, next: first, at: 0, most: MOST_FRAMES });
    }

    pub(super) fn frames(&mut self, node: NodeId, next: u64, at: u32, most: u32) {
        if next == 0 || at >= most || self.graph.seen.node(&self.heap.spot(next)).is_some() {
            return;
        }
        let mark = self.pending.tasks.len();
        let name = self.graph.number(i64::from(at));
        let previous = self.frame(NodeLink::strong(node, name), next, Activity::Calls);
        self.pending.tasks.insert(mark, WalkTask::Frames { node, next: previous, at: at + 1, most });
    }

    /// Visits the frame at `address`, and returns the address of its caller's frame.
    pub(super) fn frame(&mut self, link: NodeLink, address: u64, activity: Activity) -> u64 {
        let spot = self.heap.spot(address);
        if self.graph.again(&spot, link) {
            return 0;
        }
        let node = self.graph.node_at(NodeType::CALL_FRAME, link, &spot);
        let Some(header) = self.heap.view.array::<80>(address) else {
            self.missing(node, address);
            return 0;
        };
        let frame = self.heap.read_frame(&header, &spot, activity);
        let size = self.heap.layout.frame_size as u64;
        // A generator's frame is a block itself.
        let own = spot.block.filter(|block| block.address == address);
        let values = u64::from(self.heap.fitting_slots(&frame)) * fixed::VALUE_SIZE;
        let overhead = own.map_or(0, |block| block.bytes.saturating_sub(size + values));
        self.graph.locate_within(node, &spot, Extent::new(LocationType::CALL_FRAME_HEADER, size), overhead);
        self.facts_of_frame(node, &frame);
        if frame.is_user {
            // Functions belong to the tables that list them; the code of a file belongs to the frame while it runs.
            let link = NodeLink::structural(node, self.words.func);
            self.pending.put_off.push((link, VisitKind::Function, frame.function));
        }
        let mark = self.pending.tasks.len();
        self.objects_of_call(node, frame.function, &header, frame.is_doubtful);
        self.variables(node, &frame, &spot, self.heap.symbols_of(&header));
        self.tables_of_frame(node, &frame, &header);
        if let Some(position) = frame.place.position {
            let call = u64_at(&header, fixed::FRAME_PREPARED).unwrap_or_default();
            self.prepared_calls(node, frame.function, position, call);
        }
        if frame.is_user && self.heap.view.pointer(frame.function, fixed::FUNCTION_NAME) == 0 {
            // Code outside of functions is in no table of functions.
            self.later(NodeLink::structural(node, self.words.function), VisitKind::Function, frame.function);
        }
        self.in_order(mark);
        u64_at(&header, self.heap.php.layout.frame_previous).unwrap_or_default()
    }

    fn facts_of_frame(&mut self, node: NodeId, frame: &CallFrame) {
        self.name_function(node, frame.function);
        let line = AttributeValue::Integer(frame.place.line.map_or(-1, i64::from));
        self.graph.sink.attribute(node, self.words.lineno, line);
        if frame.is_user {
            let file = self.heap.view.pointer(frame.function, self.heap.php.layout.function_file);
            let file = self.text_bytes(file);
            self.graph.sink.attribute(node, self.words.file, AttributeValue::Text(&file));
        }
    }

    /// Visits the closure and the `$this` of a call; `$this` may be gone if the call is doubtful.
    pub(super) fn objects_of_call(
        &mut self,
        node: NodeId,
        function: u64,
        header: &[u8; 80],
        is_doubtful: bool,
    ) {
        if let Some(closure) = self.heap.closure_of(function) {
            self.later(NodeLink::strong(node, self.words.closure), VisitKind::Object, closure);
        }
        if header[fixed::FRAME_CALL] == fixed::KIND_OBJECT {
            let this = u64_at(header, fixed::FRAME_THIS).unwrap_or_default();
            if !is_doubtful || self.heap.is_listed_object(this) {
                self.later(NodeLink::strong(node, self.words.this), VisitKind::Object, this);
            }
        }
    }

    /// Visits the symbol table of code outside of functions, and named arguments beyond the declared parameters.
    fn tables_of_frame(&mut self, node: NodeId, frame: &CallFrame, header: &[u8; 80]) {
        if let Some(symbols) = self.heap.symbols_of(header) {
            // The symbol table of global variables is not a block.
            let is_sure = !frame.is_doubtful || symbols == self.heap.globals_address();
            if is_sure || self.heap.is_counted_at(symbols, fixed::KIND_ARRAY) {
                self.later(NodeLink::strong(node, self.words.symbol_table), VisitKind::Array, symbols);
            }
        }
        self.named_arguments(node, header);
    }

    /// Visits named arguments beyond the declared parameters. Their presence is uncertain, in a call that is being prepared as
    /// in one that is being left: they are visited only if an array is there.
    pub(super) fn named_arguments(&mut self, node: NodeId, header: &[u8; 80]) {
        let info = u32_at(header, fixed::FRAME_CALL).unwrap_or_default();
        if info & self.heap.layout.call_has_named_params != 0 {
            let named = u64_at(header, self.heap.layout.frame_named_params).unwrap_or_default();
            if self.heap.is_counted_at(named, fixed::KIND_ARRAY) {
                self.later(NodeLink::strong(node, self.words.extra_named_params), VisitKind::Array, named);
            }
        }
    }

    /// Visits the values of a frame; `symbols` is the address of its symbol table.
    fn variables(&mut self, frame_node: NodeId, frame: &CallFrame, spot: &BlockSpot, symbols: Option<u64>) {
        let slots = frame.slots();
        if slots == 0 || frame.function == 0 {
            return;
        }
        let fitting = self.heap.fitting_slots(frame);
        let frame = &CallFrame { room: fitting, ..*frame };
        let link = NodeLink::strong(frame_node, self.words.local_variables);
        let node = self.graph.node(NodeType::CALL_FRAME_VARIABLE_TABLE, link);
        let table = BlockSpot { address: frame.first, block: spot.block };
        let extent =
            Extent::new(LocationType::CALL_FRAME_VARIABLE_TABLE, u64::from(fitting) * fixed::VALUE_SIZE);
        self.graph.locate_within(node, &table, extent, 0);
        if fitting < slots {
            match spot.block {
                Some(_) => self.damage(node, Damage::Torn),
                None => self.missing(node, frame.first),
            }
        }
        self.graph.limits.meet_bytes(fitting as usize * 16);
        let first = self.pending.tasks.len();
        if frame.is_user {
            self.named_variables(node, frame, symbols);
            self.live_temporaries(node, frame);
            self.pending_of_finally(node, frame);
            let behind = frame.behind();
            self.arguments_from(node, frame, "$extra_args", behind, slots - behind);
        } else {
            self.arguments_from(node, frame, "$args_to_internal_function", 0, slots);
        }
        let count = self.pending.tasks.len() - first;
        self.count_attribute(node, count as u64);
    }

    /// Schedules a visit of the value in a place of a frame, if there is one.
    pub(super) fn place(
        &mut self,
        node: NodeId,
        frame: &CallFrame,
        place: u32,
        name: impl FnOnce(&mut Self) -> borehole_heap::StringId,
    ) {
        let address = frame.address_of(place);
        let is_defined = self.heap.view.array::<16>(address).is_some_and(|value| value[8] != 0);
        let is_there = is_defined && (!frame.is_doubtful || self.heap.is_sent(address));
        if place < frame.room && is_there {
            let name = name(self);
            self.later(NodeLink::strong(node, name), VisitKind::Value, address);
        }
    }

    fn named_variables(&mut self, node: NodeId, frame: &CallFrame, symbols: Option<u64>) {
        let names = self.heap.view.pointer(frame.function, self.heap.layout.function_variables);
        for place in 0..frame.variables.min(frame.room) {
            if symbols.is_some_and(|symbols| !self.lent.holds(symbols, frame.address_of(place))) {
                continue;
            }
            let name = self.heap.view.u64(names.wrapping_add(u64::from(place) * 8)).unwrap_or_default();
            self.place(node, frame, place, |walker| walker.text_at(name));
        }
    }

    fn arguments_from(&mut self, node: NodeId, frame: &CallFrame, name: &str, first: u32, count: u32) {
        for at in 0..count.min(frame.room.saturating_sub(first)) {
            self.place(node, frame, first + at, |walker| walker.graph.name(&format!("{name}[{at}]")));
        }
    }
}

impl HeapReader<'_> {
    fn read_frame(&self, header: &[u8; 80], spot: &BlockSpot, activity: Activity) -> CallFrame {
        let function = u64_at(header, fixed::FRAME_FUNCTION).unwrap_or_default();
        let number = |offset| self.view.number(function, offset);
        let is_there = function != 0 && function != self.php.pass_function;
        let is_user =
            is_there && self.view.array(function).is_some_and(|[kind]| kind != fixed::FUNCTION_INTERNAL);
        let count = |offset| if is_user { number(offset) } else { 0 };
        let first = moved(spot.address, self.layout.frame_size);
        let room = spot.block.map_or(u64::MAX, |block| block.end().saturating_sub(first)) / fixed::VALUE_SIZE;
        let op = u64_at(header, fixed::FRAME_OP).unwrap_or_default();
        let place = if is_user {
            self.place_of(spot.address, function, op, activity)
        } else {
            FramePosition::default()
        };
        CallFrame {
            function: if is_there { function } else { 0 },
            is_user,
            given: u32_at(header, fixed::FRAME_GIVEN).unwrap_or_default(),
            variables: count(self.layout.function_variable_count),
            temporaries: count(self.layout.function_temporary_count),
            named: count(ARGUMENT_COUNT),
            place,
            is_doubtful: place.is_raising || self.failed.is_some(),
            first,
            room: u32::try_from(room).unwrap_or(u32::MAX),
        }
    }

    /// The number of a frame's values that are in its memory.
    fn fitting_slots(&self, frame: &CallFrame) -> u32 {
        match frame.function {
            0 => 0,
            _ => self.fitting(frame.first, frame.slots().min(frame.room), fixed::VALUE_SIZE),
        }
    }
}
