//! Call frames: the variables, temporaries and arguments of running calls.

use borehole_heap::{HeapSink, LocationType, NodeId, NodeType, Value};

use super::place::{Activity, Place};
use super::prepared::FRAME_CALL;
use super::seen::Spot;
use super::{Damage, Kind, Link, Shape, Task, Walker};
use crate::layout::fixed;
use crate::remote::{moved, u32_at, u64_at};

/// `zend_execute_data.This`: its flags, and the number of arguments passed.
const CALL_INFO: usize = 40;
const GIVEN: usize = 44;
/// `zend_function.type`.
const INTERNAL: u8 = 1;
/// `zend_function.num_args`.
const ARGUMENT_COUNT: usize = 32;
/// The type of a `zval` that is an object.
const OBJECT: u8 = 8;
const VALUE_SIZE: u64 = 16;

/// The maximum number of frames of a chain; more would take gigabytes.
pub(super) const MOST_FRAMES: u32 = 1 << 24;

/// The contents of a frame.
#[derive(Clone, Copy, Debug)]
pub(super) struct Frame {
    /// The address of the function, or 0.
    pub(super) function: u64,
    is_user: bool,
    call_info: u32,
    given: u32,
    pub(super) variables: u32,
    pub(super) temporaries: u32,
    /// The number of parameters that the function declares.
    named: u32,
    /// The current place in its function.
    pub(super) place: Place,
    /// Whether its values may be gone: an exception is leaving it, or the program has left it.
    is_doubtful: bool,
    /// The address of its first variable.
    first: u64,
    /// The number of values that fit into the memory from there on.
    pub(super) room: u32,
}

impl Frame {
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

    /// The address of the value in a place.
    pub(super) fn address_of(&self, place: u32) -> u64 {
        self.first.wrapping_add(u64::from(place) * VALUE_SIZE)
    }
}

impl<S: HeapSink> Walker<'_, S> {
    /// Visits the chain of frames from `first` on, as part of `parent`.
    pub(crate) fn chain(&mut self, parent: NodeId, first: u64) {
        let node = self.part(parent, "call_frames", NodeType::CALL_FRAMES);
        self.work.push(Task::Frames { node, next: first, at: 0, most: MOST_FRAMES });
    }

    /// Continues with a chain of frames.
    pub(super) fn frames(&mut self, node: NodeId, next: u64, at: u32, most: u32) {
        if next == 0 || at >= most || self.seen.node(&self.spot(next)).is_some() {
            return;
        }
        let mark = self.work.len();
        let name = self.number(i64::from(at));
        let previous = self.frame(Link::strong(node, name), next, Activity::Calls);
        self.work.insert(mark, Task::Frames { node, next: previous, at: at + 1, most });
    }

    /// Visits the frame at `address`, and returns the address of its caller's frame.
    pub(super) fn frame(&mut self, link: Link, address: u64, activity: Activity) -> u64 {
        let spot = self.spot(address);
        if self.again(&spot, link) {
            return 0;
        }
        let node = self.node_at(NodeType::CALL_FRAME, link, &spot);
        let Some(header) = self.view.array::<80>(address) else {
            self.damage(node, Damage::Missing);
            return 0;
        };
        let frame = self.read_frame(&header, &spot, activity);
        let size = self.layout.frame_size as u64;
        // A generator's frame is a block itself.
        let own = spot.block.filter(|block| block.address == address);
        let values = u64::from(self.fitting_slots(&frame)) * VALUE_SIZE;
        let overhead = own.map_or(0, |block| block.bytes.saturating_sub(size + values));
        self.locate_within(node, &spot, Shape::new(LocationType::CALL_FRAME_HEADER, size), overhead);
        self.facts_of_frame(node, &frame);
        if frame.is_user {
            // Functions belong to the tables that list them; the code of a file belongs to the frame while it runs.
            let link = Link::structural(node, self.words.func);
            self.put_off.push((link, Kind::Function, frame.function));
        }
        let mark = self.work.len();
        if let Some(closure) = self.closure_of(frame.function) {
            self.later(Link::strong(node, self.words.closure), Kind::Object, closure);
        }
        if header[CALL_INFO] == OBJECT {
            let this = u64_at(&header, fixed::FRAME_THIS).unwrap_or_default();
            if !frame.is_doubtful || self.is_listed_object(this) {
                self.later(Link::strong(node, self.words.this), Kind::Object, this);
            }
        }
        self.variables(node, &frame, &spot);
        self.tables_of_frame(node, &frame, &header);
        if let Some(position) = frame.place.position {
            let call = u64_at(&header, FRAME_CALL).unwrap_or_default();
            self.prepared_calls(node, frame.function, position, call);
        }
        if frame.is_user && self.view.pointer(frame.function, fixed::FUNCTION_NAME) == 0 {
            // Code outside of functions is in no table of functions.
            self.later(Link::structural(node, self.words.function), Kind::Function, frame.function);
        }
        self.in_order(mark);
        u64_at(&header, self.php.layout.frame_previous).unwrap_or_default()
    }

    fn read_frame(&self, header: &[u8; 80], spot: &Spot, activity: Activity) -> Frame {
        let function = u64_at(header, fixed::FRAME_FUNCTION).unwrap_or_default();
        let number = |offset| self.view.number(function, offset);
        let is_there = function != 0 && function != self.php.pass_function;
        let is_user = is_there && self.view.array(function).is_some_and(|[kind]| kind != INTERNAL);
        let count = |offset| if is_user { number(offset) } else { 0 };
        let first = moved(spot.address, self.layout.frame_size);
        let room = spot.block.map_or(u64::MAX, |block| block.end().saturating_sub(first)) / VALUE_SIZE;
        let op = u64_at(header, fixed::FRAME_OP).unwrap_or_default();
        let place =
            if is_user { self.place_of(spot.address, function, op, activity) } else { Place::default() };
        Frame {
            function: if is_there { function } else { 0 },
            is_user,
            call_info: u32_at(header, CALL_INFO).unwrap_or_default(),
            given: u32_at(header, GIVEN).unwrap_or_default(),
            variables: count(self.layout.function_variable_count),
            temporaries: count(self.layout.function_temporary_count),
            named: count(ARGUMENT_COUNT),
            place,
            is_doubtful: place.is_raising || self.other_chain.is_some(),
            first,
            room: u32::try_from(room).unwrap_or(u32::MAX),
        }
    }

    fn facts_of_frame(&mut self, node: NodeId, frame: &Frame) {
        let title = match frame.function {
            0 => b"<unknown>".to_vec(),
            function => self.title(function),
        };
        self.sink.attribute(node, self.words.function_name, Value::Text(&title));
        let line = Value::Integer(frame.place.line.map_or(-1, i64::from));
        self.sink.attribute(node, self.words.lineno, line);
        if frame.is_user {
            let file = self.view.pointer(frame.function, self.php.layout.function_file);
            let file = self.text_bytes(file);
            self.sink.attribute(node, self.words.file, Value::Text(&file));
        }
    }

    /// Visits the symbol table of code outside of functions, and named arguments beyond the declared parameters.
    fn tables_of_frame(&mut self, node: NodeId, frame: &Frame, header: &[u8; 80]) {
        let layout = self.layout;
        let has_symbols = match layout.call_has_symbols {
            0 => frame.is_user,
            flag => frame.call_info & flag != 0,
        };
        if has_symbols {
            let symbols = u64_at(header, layout.frame_symbols).unwrap_or_default();
            // The symbol table of global variables is not a block.
            let is_sure = !frame.is_doubtful || symbols == self.globals_address();
            if is_sure || self.is_counted_at(symbols, fixed::KIND_ARRAY) {
                self.later(Link::strong(node, self.words.symbol_table), Kind::Array, symbols);
            }
        }
        self.named_arguments(node, header);
    }

    /// Visits named arguments beyond the declared parameters. Their presence is uncertain, in a call that is being prepared as
    /// in one that is being left: they are visited only if an array is there.
    pub(super) fn named_arguments(&mut self, node: NodeId, header: &[u8; 80]) {
        let info = u32_at(header, CALL_INFO).unwrap_or_default();
        if info & self.layout.call_has_named_params != 0 {
            let named = u64_at(header, self.layout.frame_named_params).unwrap_or_default();
            if self.is_counted_at(named, fixed::KIND_ARRAY) {
                self.later(Link::strong(node, self.words.extra_named_params), Kind::Array, named);
            }
        }
    }

    /// The number of a frame's values that are in its memory.
    fn fitting_slots(&self, frame: &Frame) -> u32 {
        match frame.function {
            0 => 0,
            _ => self.fitting(frame.first, frame.slots().min(frame.room), VALUE_SIZE),
        }
    }

    /// Visits all values of a frame.
    fn variables(&mut self, frame_node: NodeId, frame: &Frame, spot: &Spot) {
        let slots = frame.slots();
        if slots == 0 || frame.function == 0 {
            return;
        }
        let fitting = self.fitting_slots(frame);
        let frame = &Frame { room: fitting, ..*frame };
        let link = Link::strong(frame_node, self.words.local_variables);
        let node = self.node(NodeType::CALL_FRAME_VARIABLE_TABLE, link);
        let table = Spot { address: frame.first, block: spot.block };
        let shape = Shape::new(LocationType::CALL_FRAME_VARIABLE_TABLE, u64::from(fitting) * VALUE_SIZE);
        self.locate_within(node, &table, shape, 0);
        if fitting < slots {
            self.damage(node, if spot.block.is_some() { Damage::Torn } else { Damage::Missing });
        }
        self.look_through(fitting as usize * 16);
        let first = self.work.len();
        if frame.is_user {
            self.named_variables(node, frame);
            self.live_temporaries(node, frame);
            self.pending_of_finally(node, frame);
            let behind = frame.behind();
            self.arguments_from(node, frame, "$extra_args", behind, slots - behind);
        } else {
            self.arguments_from(node, frame, "$args_to_internal_function", 0, slots);
        }
        let count = self.work.len() - first;
        self.count_attribute(node, count as u64);
    }

    /// Schedules a visit of the value in a place of a frame, if there is one.
    pub(super) fn place(
        &mut self,
        node: NodeId,
        frame: &Frame,
        place: u32,
        name: impl FnOnce(&mut Self) -> borehole_heap::StringId,
    ) {
        let address = frame.address_of(place);
        let is_defined = self.view.array::<16>(address).is_some_and(|value| value[8] != 0);
        let is_there = is_defined && (!frame.is_doubtful || self.is_sent(address));
        if place < frame.room && is_there {
            let name = name(self);
            self.later(Link::strong(node, name), Kind::Value, address);
        }
    }

    fn named_variables(&mut self, node: NodeId, frame: &Frame) {
        let names = self.view.pointer(frame.function, self.layout.function_variables);
        for place in 0..frame.variables.min(frame.room) {
            let name = self.view.u64(names.wrapping_add(u64::from(place) * 8)).unwrap_or_default();
            self.place(node, frame, place, |walker| walker.text_at(name));
        }
    }

    fn arguments_from(&mut self, node: NodeId, frame: &Frame, name: &str, first: u32, count: u32) {
        for at in 0..count.min(frame.room.saturating_sub(first)) {
            self.place(node, frame, first + at, |walker| {
                walker.sink.string(format!("{name}[{at}]").as_bytes())
            });
        }
    }
}
