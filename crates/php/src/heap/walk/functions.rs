//! Functions: PHP's internal ones, and the parts of user functions.

use borehole_heap::{AttributeValue, HeapSink, LocationType, NodeId, NodeType, Region};

use super::class_names::readable;
use super::task::Pointers;
use super::{Damage, Extent, HeapWalker, NodeLink, VisitKind, WalkTask};
use crate::layout::fixed;
use crate::remote::u64_at;

/// `zend_function.num_args` and `arg_info`.
const ARGUMENT_COUNT: usize = 32;
const ARGUMENTS: usize = 40;
/// `zend_arg_info.type`.
const ARGUMENT_TYPE: u64 = 8;
/// `zend_live_range` and `zend_try_catch_element`.
const LIVE_RANGE_SIZE: u64 = 12;
const TRY_SIZE: u64 = 16;

impl<S: HeapSink> HeapWalker<'_, S> {
    pub(super) fn function(&mut self, link: NodeLink, address: u64) {
        let function_type = self.heap.view.array(address);
        let is_internal =
            function_type.is_none_or(|[function_type]| function_type == fixed::FUNCTION_INTERNAL);
        let node_type = if is_internal {
            NodeType::INTERNAL_FUNCTION_DEFINITION
        } else {
            NodeType::USER_FUNCTION_DEFINITION
        };
        let Some((node, _)) = self.graph.enter(node_type, link, address) else { return };
        if function_type.is_none() {
            return self.missing(node, address);
        }
        self.flag(node, self.words.is_internal, is_internal);
        let name = self.heap.view.pointer(address, fixed::FUNCTION_NAME);
        let parts = [
            (self.words.op_array, VisitKind::Code, if is_internal { 0 } else { address }),
            (self.words.name, VisitKind::String, name),
        ];
        self.parts_later(node, &parts);
    }

    /// Visits the `zend_op_array` at `address`, whose node is the parent.
    pub(super) fn code(&mut self, link: NodeLink, address: u64) {
        let node = self.graph.node(NodeType::OP_ARRAY, link);
        let layout = self.heap.layout;
        let spot = self.heap.spot(address);
        // The code of a closure is part of its object.
        let is_apart =
            spot.block.is_none_or(|block| block.region != Region::HEAP || block.address == address);
        if is_apart {
            let extent = Extent::new(LocationType::OP_ARRAY_HEADER, layout.function_size as u64);
            self.graph.locate(node, &spot, extent);
            self.body(node, address);
        } else if self.graph.limits.may_grow(self.pending.closure_code.len()) {
            self.pending.closure_code.push((node, address));
        }
        self.name_function(node, address);
        self.definition_place(node, address, self.heap.php.layout.function_file);
        self.cache(node, address);
        self.arguments(node, address);
        let (heap, words) = (self.heap, self.words);
        let pointer = |offset| heap.view.pointer(address, offset);
        let template = pointer(layout.function_statics);
        let own = heap.mapped(pointer(layout.function_statics_map));
        let statics = if own == 0 { template } else { own };
        let parts = [
            (words.filename, VisitKind::String, pointer(heap.php.layout.function_file)),
            (words.static_variables, VisitKind::Array, statics),
            (words.variable_name_table, VisitKind::CodeVariables, address),
            (words.dynamic_function_definitions, VisitKind::CodeInner, address),
            (words.doc_comment, VisitKind::String, pointer(layout.function_doc)),
            (words.attributes, VisitKind::Attributes, pointer(layout.function_attributes)),
            (words.literals, VisitKind::CodeLiterals, address),
            (
                words.static_variables_template,
                VisitKind::Array,
                if template == statics { 0 } else { template },
            ),
        ];
        self.parts_later(node, &parts);
    }

    /// Adds the bodies of closures whose definition was not found. A closure shares its body with its definition, which holds it.
    pub(crate) fn closure_bodies(&mut self) {
        for (node, address) in std::mem::take(&mut self.pending.closure_code) {
            self.body(node, address);
        }
    }

    /// Visits the instructions, and the smaller tables that belong to them. Functions derived from one another share them.
    pub(super) fn body(&mut self, node: NodeId, address: u64) {
        let (layout, stacks) = (self.heap.layout, self.heap.php.layout);
        let view = self.heap.view;
        let count = |offset| u64::from(view.number(address, offset));
        let ops = view.pointer(address, stacks.function_ops);
        let ops_size = count(stacks.function_op_count) * fixed::OP_SIZE as u64;
        let literals = view.pointer(address, layout.function_literals);
        let literals_size = count(layout.function_literal_count) * 16;
        // Since 7.3 the literals follow the instructions.
        let is_one = literals == ops.wrapping_add(ops_size.next_multiple_of(16));
        let body = if is_one { literals.wrapping_sub(ops).wrapping_add(literals_size) } else { ops_size };
        self.table_of_code(node, ops, LocationType::OP_ARRAY_BODY, body);
        if !is_one {
            self.table_of_code(node, literals, LocationType::LITERALS, literals_size);
        }
        let shared = view.pointer(address, layout.function_refcount);
        self.table_of_code(node, shared, LocationType::OP_ARRAY_REFCOUNT, 4);
        let ranges = view.pointer(address, layout.function_live_ranges);
        let ranges_size = count(layout.function_live_ranges.saturating_sub(8)) * LIVE_RANGE_SIZE;
        self.table_of_code(node, ranges, LocationType::LIVE_RANGES, ranges_size);
        let tries = view.pointer(address, layout.function_tries);
        let tries_size = count(layout.function_tries - 12) * TRY_SIZE;
        self.table_of_code(node, tries, LocationType::TRY_CATCH_TABLE, tries_size);
    }

    /// Adds a table that belongs to a function, as far as its block has it.
    pub(super) fn table_of_code(
        &mut self,
        node: NodeId,
        address: u64,
        location_type: LocationType,
        size: u64,
    ) {
        let room = self.heap.room_in_block(address);
        if size > room {
            self.damage(node, Damage::Torn);
        }
        self.graph.locate_once(node, address, Extent::new(location_type, size.min(room)));
    }

    /// Adds the file and the lines of the definition at `address`: they follow the file's name, which is at an offset.
    pub(super) fn definition_place(&mut self, node: NodeId, address: u64, offset: usize) {
        let file = self.heap.view.pointer(address, offset);
        if file != 0 {
            let file = self.text_bytes(file);
            self.graph.sink.attribute(node, self.words.file, AttributeValue::Text(&file));
        }
        for (key, offset) in [(self.words.line_start, offset + 8), (self.words.line_end, offset + 12)] {
            let line = self.heap.view.number(address, offset);
            self.graph.sink.attribute(node, key, AttributeValue::Integer(i64::from(line)));
        }
    }

    fn cache(&mut self, node: NodeId, address: u64) {
        let cache = self.heap.mapped(self.heap.view.pointer(address, self.heap.layout.function_cache));
        let size = u64::from(self.heap.view.number(address, self.heap.layout.function_cache_size));
        if cache == 0 || size == 0 || self.heap.view.room(cache) == 0 {
            return;
        }
        let extent = Extent::new(LocationType::RUNTIME_CACHE, size.min(self.heap.room_in_block(cache)));
        let link = NodeLink::strong(node, self.words.run_time_cache);
        self.graph.once(link, NodeType::RUNTIME_CACHE, cache, extent);
    }

    fn arguments(&mut self, node: NodeId, address: u64) {
        let (view, layout) = (self.heap.view, self.heap.layout);
        let first = view.pointer(address, ARGUMENTS);
        if first == 0 {
            return;
        }
        let flags = view.number(address, fixed::FUNCTION_FLAGS);
        let size = layout.argument_size as u64;
        let before = u64::from(flags >> layout.function_returns_type_bit & 1);
        let named =
            view.number(address, ARGUMENT_COUNT).saturating_add(flags >> layout.function_variadic_bit & 1);
        let start = first.wrapping_sub(before * size);
        let extent = Extent::new(LocationType::ARG_INFOS, (before + u64::from(named)) * size);
        let link = NodeLink::strong(node, self.words.arg_infos);
        let Some(arguments) = self.graph.once(link, NodeType::ARG_INFOS, start, extent) else { return };
        let fitting = self.heap.fitting(first, named, size);
        if fitting < named {
            self.damage_of_row(arguments, first);
        }
        self.argument_types(arguments, start, before + u64::from(fitting));
        for at in 0..u64::from(fitting) {
            let Some(name) = view.u64(first.wrapping_add(at * size)) else {
                return self.missing(arguments, first);
            };
            if name != 0 {
                self.named_by(name, |walker, text| {
                    let argument = walker.graph.node(NodeType::ARG_INFO, NodeLink::strong(arguments, text));
                    NodeLink::strong(argument, walker.words.name)
                });
            }
        }
    }

    fn argument_types(&mut self, node: NodeId, start: u64, count: u64) {
        let layout = self.heap.layout;
        if layout.property_type != 0 {
            for at in 0..count {
                let argument = start.saturating_add(at * layout.argument_size as u64);
                self.type_names(node, argument.saturating_add(ARGUMENT_TYPE));
            }
        }
    }

    pub(super) fn code_variables(&mut self, link: NodeLink, address: u64) {
        let names = self.heap.view.pointer(address, self.heap.layout.function_variables);
        let count = self.heap.view.number(address, self.heap.layout.function_variable_count);
        let (kind, node_type) = (VisitKind::String, NodeType::LOCAL_VARIABLE_NAME_TABLE);
        self.addresses(link, kind, node_type, LocationType::LOCAL_VARIABLE_NAME_TABLE, names, count);
    }

    /// Visits the functions that the `zend_op_array` at `address` makes closures of.
    pub(super) fn code_inner(&mut self, link: NodeLink, address: u64) {
        let start = self.heap.view.pointer(address, self.heap.layout.function_inner);
        let count = self.heap.view.number(address, self.heap.layout.function_inner.saturating_sub(12));
        let (kind, node_type) = (VisitKind::Function, NodeType::DYNAMIC_FUNC_DEFS);
        self.addresses(link, kind, node_type, LocationType::DYNAMIC_FUNC_DEFS_TABLE, start, count);
    }

    /// Visits a table of `count` addresses at `start`, each of which leads to a value of this `kind`.
    fn addresses(
        &mut self,
        link: NodeLink,
        kind: VisitKind,
        node_type: NodeType,
        location_type: LocationType,
        start: u64,
        count: u32,
    ) {
        if start == 0 || count == 0 {
            return;
        }
        let fitting = self.heap.fitting(start, count, 8);
        let extent = Extent::new(location_type, u64::from(fitting) * 8);
        let Some(node) = self.graph.once(link, node_type, start, extent) else { return };
        if fitting < count {
            self.damage_of_row(node, start);
        }
        let row = Pointers::new(node, start, fitting, kind);
        self.pending.tasks.push(WalkTask::Pointers(row));
    }

    /// Visits the literals of the `zend_op_array` at `address` that are more than a number or an interned string. opcache
    /// interns none of the strings of a script that it does not cache, or that it has laid out in the memory of the process.
    pub(super) fn code_literals(&mut self, link: NodeLink, address: u64) {
        let start = self.heap.view.pointer(address, self.heap.layout.function_literals);
        let count = self.heap.view.number(address, self.heap.layout.function_literal_count);
        let literals = self.heap.view.bytes(start, u64::from(self.heap.fitting(start, count, 16)) * 16);
        let mark = self.pending.tasks.len();
        let mut node = None;
        for (at, literal) in (0_u64..).zip(literals.chunks_exact(16)) {
            let is_complex = (fixed::KIND_ARRAY..self.heap.layout.kind_pointer).contains(&literal[8]);
            let word = u64_at(literal, 0).unwrap_or_default();
            let is_own_string = literal[8] == fixed::KIND_STRING && self.is_own(word, literal[9]);
            if !is_complex && !is_own_string {
                continue;
            }
            let node = *node.get_or_insert_with(|| self.graph.node(NodeType::LITERALS, link));
            let name = self.graph.number(i64::try_from(at).unwrap_or(i64::MAX));
            self.later(NodeLink::strong(node, name), VisitKind::Value, start.wrapping_add(at * 16));
        }
        self.in_order(mark);
    }

    /// Whether code has the string at `address` for itself, by the flags of the literal: its references are counted, or it is
    /// part of the memory of the script.
    fn is_own(&self, address: u64, flags: u8) -> bool {
        flags != 0 || self.heap.spot(address).block.is_some_and(|block| block.address != address)
    }

    pub(super) fn name_function(&mut self, node: NodeId, address: u64) {
        let title = self.title(address);
        self.graph.sink.attribute(node, self.words.function_name, AttributeValue::Text(&title));
    }

    /// The name of the function at `address`: with its class, and for a closure with its place.
    fn title(&mut self, address: u64) -> Vec<u8> {
        if address == 0 {
            return b"<unknown>".to_vec();
        }
        let view = self.heap.view;
        let name = view.pointer(address, fixed::FUNCTION_NAME);
        if name == 0 {
            return b"<main>".to_vec();
        }
        let name = self.text_bytes(name);
        let is_user = view.array(address) != Some([fixed::FUNCTION_INTERNAL]);
        if is_user && name.ends_with(b"{closure}") {
            let place = self.heap.php.layout.function_file;
            let file = self.text_bytes(view.pointer(address, place));
            let [first, last] = [place + 8, place + 12].map(|offset| view.number(address, offset));
            let lines = format!(":{first}-{last})");
            return [b"{closure}(", &*file, lines.as_bytes()].concat();
        }
        let class = view.pointer(address, fixed::FUNCTION_SCOPE);
        if class == 0 {
            return name;
        }
        let class = readable(&self.text_bytes(view.pointer(class, fixed::CLASS_NAME)));
        [&*class, b"::", &*name].concat()
    }

    pub(super) fn pointers(&mut self, mut row: Pointers) {
        while row.at < row.count {
            let Some(address) = self.heap.view.u64(row.start.wrapping_add(u64::from(row.at) * 8)) else {
                return self.missing(row.node, row.start);
            };
            row.at += 1;
            let is_used = address != 0 && !(row.is_store && address & 1 == 1);
            if !is_used {
                continue;
            }
            let name = self.graph.number(i64::from(row.at - 1));
            let link =
                if row.is_store { NodeLink::weak(row.node, name) } else { NodeLink::strong(row.node, name) };
            if self.graph.seen.node(&self.heap.spot(address)).is_none() {
                self.pending.tasks.push(WalkTask::Pointers(row));
                return self.visit(link, row.kind, address);
            }
            self.visit(link, row.kind, address);
        }
    }
}
