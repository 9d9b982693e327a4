//! Call frames: the variables, temporaries and arguments of what is being executed.

use borehole_heap::{HeapSink, LocationType, NodeId, NodeType, Value};

use super::prepared::FRAME_CALL;
use super::seen::Spot;
use super::{Damage, Kind, Link, Shape, Task, Walker};
use crate::layout::fixed;
use crate::remote::{moved, u32_at, u64_at};

/// `zend_execute_data.This`: its flags, and the number of arguments that were given.
const CALL_INFO: usize = 40;
const GIVEN: usize = 44;
/// `zend_function.type`.
const INTERNAL: u8 = 1;
/// `zend_function.num_args`.
const ARGUMENT_COUNT: usize = 32;
/// The type of a `zval` that is an object.
const OBJECT: u8 = 8;
const VALUE_SIZE: u64 = 16;

/// No chain has more frames: it would take gigabytes.
pub(super) const MOST_FRAMES: u32 = 1 << 24;

/// `zend_live_range`: a temporary's place with its kind in the lowest bits, and the instructions between which it lives.
const RANGE_SIZE: usize = 12;
const RANGE_KIND: u32 = 7;
/// `ZEND_LIVE_SILENCE` and `ZEND_LIVE_ROPE`: what is no value.
const RANGE_NO_VALUES: [u32; 2] = [2, 3];

/// What a frame says of itself.
#[derive(Clone, Copy, Debug)]
struct Frame {
    /// The function, or 0.
    function: u64,
    is_user: bool,
    call_info: u32,
    given: u32,
    variables: u32,
    temporaries: u32,
    /// How many arguments the function names.
    named: u32,
    /// The number of the instruction that it is at.
    position: Option<u64>,
    /// The address of its first variable.
    first: u64,
    /// How many values fit behind it.
    room: u32,
}

impl Frame {
    /// How many values stand before the arguments that the function does not name.
    const fn behind(&self) -> u32 {
        self.variables.saturating_add(self.temporaries)
    }
}

impl<S: HeapSink> Walker<'_, S> {
    /// The chain of frames from `first` on, as a part of `parent`.
    pub(crate) fn chain(&mut self, parent: NodeId, first: u64) {
        let node = self.part(parent, "call_frames", NodeType::CALL_FRAMES);
        self.work.push(Task::Frames { node, next: first, at: 0, most: MOST_FRAMES });
    }

    /// Goes on with a chain of frames.
    pub(super) fn frames(&mut self, node: NodeId, next: u64, at: u32, most: u32) {
        if next == 0 || at >= most || self.seen.node(&self.spot(next)).is_some() {
            return;
        }
        let mark = self.work.len();
        let name = self.number(i64::from(at));
        let previous = self.frame(Link::strong(node, name), next);
        self.work.insert(mark, Task::Frames { node, next: previous, at: at + 1, most });
    }

    /// The frame at `address`, and the one before it.
    pub(crate) fn frame(&mut self, link: Link, address: u64) -> u64 {
        let spot = self.spot(address);
        if self.again(&spot, link) {
            return 0;
        }
        let node = self.node_at(NodeType::CALL_FRAME, link, &spot);
        let Some(header) = self.view.array::<80>(address) else {
            self.damage(node, Damage::Missing);
            return 0;
        };
        let frame = self.read_frame(&header, &spot);
        let size = self.layout.frame_size as u64;
        self.locate_within(node, &spot, Shape::new(LocationType::CALL_FRAME_HEADER, size), 0);
        self.facts_of_frame(node, &frame, &header);
        if frame.is_user {
            // Functions are the tables' that list them; the code of a file, while it is executed, is the frame's.
            let link = Link::structural(node, self.words.func);
            self.put_off.push((link, Kind::Function, frame.function));
        }
        let mark = self.work.len();
        if let Some(closure) = self.closure_of(frame.function) {
            self.later(Link::strong(node, self.words.closure), Kind::Object, closure);
        }
        if header[CALL_INFO] == OBJECT {
            let this = u64_at(&header, fixed::FRAME_THIS).unwrap_or_default();
            self.later(Link::strong(node, self.words.this), Kind::Object, this);
        }
        self.variables(node, &frame, &spot);
        self.tables_of_frame(node, &frame, &header);
        if let Some(position) = frame.position.filter(|_| frame.is_user) {
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

    fn read_frame(&self, header: &[u8; 80], spot: &Spot) -> Frame {
        let function = u64_at(header, fixed::FRAME_FUNCTION).unwrap_or_default();
        let number = |offset| self.view.number(function, offset);
        let is_there = function != 0 && function != self.php.pass_function;
        let is_user = is_there && self.view.array(function).is_some_and(|[kind]| kind != INTERNAL);
        let count = |offset| if is_user { number(offset) } else { 0 };
        let first = moved(spot.address, self.layout.frame_size);
        let room = spot.block.map_or(u64::MAX, |block| block.end().saturating_sub(first)) / VALUE_SIZE;
        let op = u64_at(header, fixed::FRAME_OP).unwrap_or_default();
        let ops = self.view.pointer(function, self.php.layout.function_ops);
        let position = op.checked_sub(ops).map(|distance| distance / fixed::OP_SIZE as u64);
        Frame {
            function: if is_there { function } else { 0 },
            is_user,
            call_info: u32_at(header, CALL_INFO).unwrap_or_default(),
            given: u32_at(header, GIVEN).unwrap_or_default(),
            variables: count(self.layout.function_variable_count),
            temporaries: count(self.layout.function_temporary_count),
            named: count(ARGUMENT_COUNT),
            position: position.filter(|_| is_user && op != 0),
            first,
            room: u32::try_from(room).unwrap_or(u32::MAX),
        }
    }

    fn facts_of_frame(&mut self, node: NodeId, frame: &Frame, header: &[u8; 80]) {
        let title = match frame.function {
            0 => b"<unknown>".to_vec(),
            function => self.title(function),
        };
        self.sink.attribute(node, self.words.function_name, Value::Text(&title));
        let op = u64_at(header, fixed::FRAME_OP).unwrap_or_default();
        let line = self.view.u32(moved(op, fixed::OP_LINE)).filter(|_| frame.is_user && op != 0);
        let line = Value::Integer(line.map_or(-1, i64::from));
        self.sink.attribute(node, self.words.lineno, line);
        if frame.is_user {
            let file = self.view.pointer(frame.function, self.php.layout.function_file);
            let file = self.text_bytes(file);
            self.sink.attribute(node, self.words.file, Value::Text(&file));
        }
    }

    /// The symbol table of code outside of functions, and arguments by names that the function does not have.
    fn tables_of_frame(&mut self, node: NodeId, frame: &Frame, header: &[u8; 80]) {
        let layout = self.layout;
        let has_symbols = match layout.call_has_symbols {
            0 => frame.is_user,
            flag => frame.call_info & flag != 0,
        };
        if has_symbols {
            let symbols = u64_at(header, layout.frame_symbols).unwrap_or_default();
            self.later(Link::strong(node, self.words.symbol_table), Kind::Array, symbols);
        }
        if frame.call_info & layout.call_has_named_params != 0 {
            let named = u64_at(header, layout.frame_named_params).unwrap_or_default();
            self.later(Link::strong(node, self.words.extra_named_params), Kind::Array, named);
        }
    }

    /// All that a frame has values for.
    fn variables(&mut self, frame_node: NodeId, frame: &Frame, spot: &Spot) {
        let slots = match frame.is_user {
            true => frame.behind().saturating_add(frame.given.saturating_sub(frame.named)),
            false => frame.given,
        };
        if slots == 0 || frame.function == 0 {
            return;
        }
        let fitting = self.fitting(frame.first, slots.min(frame.room), VALUE_SIZE);
        let frame = &Frame { room: fitting, ..*frame };
        let link = Link::strong(frame_node, self.words.local_variables);
        let node = self.node(NodeType::CALL_FRAME_VARIABLE_TABLE, link);
        let table = Spot { address: frame.first, block: spot.block };
        let shape = Shape::new(LocationType::CALL_FRAME_VARIABLE_TABLE, u64::from(fitting) * VALUE_SIZE);
        self.locate_within(node, &table, shape, 0);
        if fitting < slots {
            self.damage(node, if spot.block.is_some() { Damage::Torn } else { Damage::Missing });
        }
        let first = self.work.len();
        if frame.is_user {
            self.named_variables(node, frame);
            self.live_temporaries(node, frame);
            let behind = frame.behind();
            self.arguments_from(node, frame, "$extra_args", behind, slots - behind);
        } else {
            self.arguments_from(node, frame, "$args_to_internal_function", 0, slots);
        }
        let count = self.work.len() - first;
        self.count_attribute(node, count as u64);
    }

    /// Goes to the value in a place of a frame later, if there is one.
    fn place(
        &mut self,
        node: NodeId,
        frame: &Frame,
        place: u32,
        name: impl FnOnce(&mut Self) -> borehole_heap::StringId,
    ) {
        let address = frame.first.wrapping_add(u64::from(place) * VALUE_SIZE);
        let is_defined = self.view.array::<16>(address).is_some_and(|value| value[8] != 0);
        if place < frame.room && is_defined {
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

    /// The temporaries that hold something at the instruction that the frame is at.
    fn live_temporaries(&mut self, node: NodeId, frame: &Frame) {
        let Some(position) = frame.position else { return };
        let ranges = self.view.pointer(frame.function, self.layout.function_live_ranges);
        let count = self.view.number(frame.function, self.layout.function_live_range_count);
        let bytes =
            self.view.bytes(ranges, if ranges == 0 { 0 } else { u64::from(count) * RANGE_SIZE as u64 });
        let before = u32::try_from(self.layout.frame_size / 16).expect("a few values");
        for range in bytes.chunks_exact(RANGE_SIZE) {
            let [place, start, end] = [0, 4, 8].map(|offset| u32_at(range, offset).unwrap_or_default());
            let is_live = (u64::from(start)..u64::from(end)).contains(&position);
            if !is_live || RANGE_NO_VALUES.contains(&(place & RANGE_KIND)) {
                continue;
            }
            let Some(place) = (place / 16).checked_sub(before) else { continue };
            let temporary = place.wrapping_sub(frame.variables);
            if temporary < frame.temporaries {
                self.place(node, frame, place, |walker| {
                    walker.sink.string(format!("$_T[{temporary}]").as_bytes())
                });
            }
        }
    }
}
