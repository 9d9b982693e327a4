//! Functions: PHP's internal ones, and the parts of user functions.

use borehole_heap::{HeapSink, LocationType, NodeId, NodeType, Region, Value};

use super::task::Pointers;
use super::{Damage, Kind, Link, Shape, Task, Walker};
use crate::layout::fixed;
use crate::remote::{moved, u64_at};

/// `zend_function.type`.
const INTERNAL: u8 = 1;
/// `zend_function.num_args` and `arg_info`.
const ARGUMENT_COUNT: usize = 32;
const ARGUMENTS: usize = 40;
/// `zend_live_range` and `zend_try_catch_element`.
const LIVE_RANGE_SIZE: u64 = 12;
const TRY_SIZE: u64 = 16;

impl<S: HeapSink> Walker<'_, S> {
    /// Visits the function at `address`.
    pub(super) fn function(&mut self, link: Link, address: u64) {
        let spot = self.spot(address);
        if self.again(&spot, link) {
            return;
        }
        let Some([function_type]) = self.view.array(address) else {
            let node = self.node_at(NodeType::INTERNAL_FUNCTION_DEFINITION, link, &spot);
            return self.damage(node, Damage::Missing);
        };
        let is_internal = function_type == INTERNAL;
        let node_type = if is_internal {
            NodeType::INTERNAL_FUNCTION_DEFINITION
        } else {
            NodeType::USER_FUNCTION_DEFINITION
        };
        let node = self.node_at(node_type, link, &spot);
        self.flag(node, self.words.is_internal, is_internal);
        let mark = self.work.len();
        if !is_internal {
            self.later(Link::strong(node, self.words.op_array), Kind::Code, address);
        }
        let name = self.view.pointer(address, fixed::FUNCTION_NAME);
        self.later(Link::strong(node, self.words.name), Kind::String, name);
        self.in_order(mark);
    }

    /// Visits the `zend_op_array` at `address`, whose node is the parent.
    pub(super) fn code(&mut self, link: Link, address: u64) {
        let node = self.node(NodeType::OP_ARRAY, link);
        let layout = self.layout;
        let spot = self.spot(address);
        // The code of a closure is part of its object.
        let is_apart =
            spot.block.is_none_or(|block| block.region != Region::HEAP || block.address == address);
        if is_apart {
            self.locate(node, &spot, Shape::new(LocationType::OP_ARRAY_HEADER, layout.function_size as u64));
        }
        self.body(node, address);
        self.facts_of_code(node, address);
        let mark = self.work.len();
        self.cache(node, address);
        self.arguments(node, address);
        let view = self.view;
        let part = |name| Link::strong(node, name);
        self.later(
            part(self.words.filename),
            Kind::String,
            view.pointer(address, self.php.layout.function_file),
        );
        let template = view.pointer(address, layout.function_statics);
        let own = self.mapped(view.pointer(address, layout.function_statics_map));
        let statics = if own == 0 { template } else { own };
        self.later(part(self.words.static_variables), Kind::Array, statics);
        self.later(part(self.words.variable_name_table), Kind::CodeVariables, address);
        self.later(part(self.words.dynamic_function_definitions), Kind::CodeInner, address);
        self.later(part(self.words.doc_comment), Kind::String, view.pointer(address, layout.function_doc));
        let attributes = view.pointer(address, layout.function_attributes);
        self.later(part(self.words.attributes), Kind::Attributes, attributes);
        self.later(part(self.words.literals), Kind::CodeLiterals, address);
        if template != statics {
            self.later(part(self.words.static_variables_template), Kind::Array, template);
        }
        self.in_order(mark);
    }

    /// Visits the instructions, and the smaller tables that belong to them. Functions derived from one another share them.
    fn body(&mut self, node: NodeId, address: u64) {
        let (layout, stacks) = (self.layout, self.php.layout);
        let view = self.view;
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
        let ranges_size = count(layout.function_live_range_count) * LIVE_RANGE_SIZE;
        self.table_of_code(node, ranges, LocationType::LIVE_RANGES, ranges_size);
        let tries = view.pointer(address, layout.function_tries);
        let tries_size = count(layout.function_try_count) * TRY_SIZE;
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
        let room = self.blocks.find(address).map_or(u64::MAX, |block| block.end() - address);
        if size > room {
            self.damage(node, Damage::Torn);
        }
        self.locate_once(node, address, Shape::new(location_type, size.min(room)));
    }

    fn facts_of_code(&mut self, node: NodeId, address: u64) {
        let title = self.title(address);
        self.sink.attribute(node, self.words.function_name, Value::Text(&title));
        let file = self.view.pointer(address, self.php.layout.function_file);
        if file != 0 {
            let file = self.text_bytes(file);
            self.sink.attribute(node, self.words.file, Value::Text(&file));
        }
        let lines = self.php.layout.function_line_start;
        let [first, last] = [lines, lines + 4].map(|offset| self.view.number(address, offset));
        let [first, last] = [first, last].map(|line| Value::Integer(i64::from(line)));
        self.sink.attribute(node, self.words.line_start, first);
        self.sink.attribute(node, self.words.line_end, last);
    }

    fn cache(&mut self, node: NodeId, address: u64) {
        let cache = self.mapped(self.view.pointer(address, self.layout.function_cache));
        let size = u64::from(self.view.number(address, self.layout.function_cache_size));
        if cache == 0 || size == 0 || self.view.rest(cache).is_empty() {
            return;
        }
        let spot = self.spot(cache);
        let room = spot.block.map_or(u64::MAX, |block| block.end() - cache);
        let shape = Shape::new(LocationType::RUNTIME_CACHE, size.min(room));
        let link = Link::strong(node, self.words.run_time_cache);
        self.once(link, NodeType::RUNTIME_CACHE, &spot, shape);
    }

    fn arguments(&mut self, node: NodeId, address: u64) {
        let (view, layout) = (self.view, self.layout);
        let first = view.pointer(address, ARGUMENTS);
        if first == 0 {
            return;
        }
        let flags = view.number(address, fixed::FUNCTION_FLAGS);
        let size = layout.argument_size as u64;
        let before = u64::from(flags & layout.function_returns_type != 0);
        let named = view
            .number(address, ARGUMENT_COUNT)
            .saturating_add(u32::from(flags & layout.function_variadic != 0));
        let spot = self.spot(first.wrapping_sub(before * size));
        let shape = Shape::new(LocationType::ARG_INFOS, (before + u64::from(named)) * size);
        let link = Link::strong(node, self.words.arg_infos);
        let Some(arguments) = self.once(link, NodeType::ARG_INFOS, &spot, shape) else { return };
        let fitting = self.fitting(first, named, size);
        if fitting < named {
            self.damage_of_row(arguments, first);
        }
        for at in 0..u64::from(fitting) {
            let Some(name) = view.u64(first.wrapping_add(at * size)) else {
                return self.damage(arguments, Damage::Missing);
            };
            if name != 0 {
                self.named_by(name, |walker, text| {
                    let argument = walker.node(NodeType::ARG_INFO, Link::strong(arguments, text));
                    Link::strong(argument, walker.words.name)
                });
            }
        }
    }

    /// Visits the names of the variables of the `zend_op_array` at `address`.
    pub(super) fn code_variables(&mut self, link: Link, address: u64) {
        let names = self.view.pointer(address, self.layout.function_variables);
        let count = self.view.number(address, self.layout.function_variable_count);
        let (kind, node_type) = (Kind::String, NodeType::LOCAL_VARIABLE_NAME_TABLE);
        self.addresses(link, kind, node_type, LocationType::LOCAL_VARIABLE_NAME_TABLE, names, count);
    }

    /// Visits the functions that the `zend_op_array` at `address` makes closures of.
    pub(super) fn code_inner(&mut self, link: Link, address: u64) {
        let start = self.view.pointer(address, self.layout.function_inner);
        let count = self.view.number(address, self.layout.function_inner_count);
        let (kind, node_type) = (Kind::Function, NodeType::DYNAMIC_FUNC_DEFS);
        self.addresses(link, kind, node_type, LocationType::DYNAMIC_FUNC_DEFS_TABLE, start, count);
    }

    /// Visits a table of `count` addresses at `start`, each of which leads to a value of this `kind`.
    fn addresses(
        &mut self,
        link: Link,
        kind: Kind,
        node_type: NodeType,
        location_type: LocationType,
        start: u64,
        count: u32,
    ) {
        if start == 0 || count == 0 {
            return;
        }
        let fitting = self.fitting(start, count, 8);
        let spot = self.spot(start);
        let shape = Shape::new(location_type, u64::from(fitting) * 8);
        let Some(node) = self.once(link, node_type, &spot, shape) else { return };
        if fitting < count {
            self.damage_of_row(node, start);
        }
        let row = Pointers { node, start, at: 0, count: fitting, kind, is_store: false };
        self.work.push(Task::Pointers(row));
    }

    /// Visits the literals of the `zend_op_array` at `address` that are more than a number or a name.
    pub(super) fn code_literals(&mut self, link: Link, address: u64) {
        let start = self.view.pointer(address, self.layout.function_literals);
        let count = self.view.number(address, self.layout.function_literal_count);
        let literals = self.view.bytes(start, u64::from(self.fitting(start, count, 16)) * 16);
        let mark = self.work.len();
        let mut node = None;
        for (at, literal) in (0_u64..).zip(literals.chunks_exact(16)) {
            let is_complex = (fixed::KIND_ARRAY..self.layout.kind_pointer).contains(&literal[8]);
            let word = u64_at(literal, 0).unwrap_or_default();
            if !is_complex || self.seen.node(&self.spot(word)).is_some() {
                continue;
            }
            let node = *node.get_or_insert_with(|| self.node(NodeType::LITERALS, link));
            let name = self.number(i64::try_from(at).unwrap_or(i64::MAX));
            self.later(Link::strong(node, name), Kind::Value, start.wrapping_add(at * 16));
        }
        self.in_order(mark);
    }

    /// The name of the function at `address`: with its class, and for a closure with its place.
    pub(super) fn title(&mut self, address: u64) -> Vec<u8> {
        let view = self.view;
        let name = view.pointer(address, fixed::FUNCTION_NAME);
        if name == 0 {
            return b"<main>".to_vec();
        }
        let name = self.text_bytes(name);
        let is_user = view.array(address) != Some([INTERNAL]);
        if is_user && name.ends_with(b"{closure}") {
            let file = self.text_bytes(view.pointer(address, self.php.layout.function_file));
            let lines = self.php.layout.function_line_start;
            let [first, last] = [lines, lines + 4].map(|offset| view.number(address, offset));
            let lines = format!(":{first}-{last})");
            return [b"{closure}(", &*file, lines.as_bytes()].concat();
        }
        let class = view.pointer(address, fixed::FUNCTION_SCOPE);
        if class == 0 {
            return name;
        }
        let class = self.text_bytes(view.pointer(moved(class, 0), fixed::CLASS_NAME));
        [&*class, b"::", &*name].concat()
    }

    /// Continues with addresses, until one leads to further work.
    pub(super) fn pointers(&mut self, mut row: Pointers) {
        while row.at < row.count {
            let Some(address) = self.view.u64(row.start.wrapping_add(u64::from(row.at) * 8)) else {
                return self.damage(row.node, Damage::Missing);
            };
            row.at += 1;
            let is_used = address != 0 && !(row.is_store && address & 1 == 1);
            if !is_used {
                continue;
            }
            let name = self.number(i64::from(row.at - 1));
            let link = if row.is_store { Link::weak(row.node, name) } else { Link::strong(row.node, name) };
            if self.seen.node(&self.spot(address)).is_none() {
                self.work.push(Task::Pointers(row));
                return self.visit(link, row.kind, address);
            }
            self.visit(link, row.kind, address);
        }
    }
}
