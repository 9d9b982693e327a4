//! Unevaluated constant expressions, and attributes.

use borehole_heap::{HeapSink, LocationType, NodeId, NodeType};
use hashbrown::HashSet;

use super::task::EntryKind;
use super::{Damage, Extent, HeapReader, HeapWalker, NodeLink, VisitKind};
use crate::remote::u32_at;

/// `zend_ast_ref`: the header of a counted value.
const HEADER: u64 = 8;
/// `zend_ast.child`, and `zend_ast_zval.val`.
const FIRST_CHILD: u64 = 8;
/// `zend_ast_zval`.
const VALUE_SIZE: u64 = 24;
/// `zend_ast_list.children` and `child`.
const LIST_COUNT: u64 = 8;
const LIST_CHILD: u64 = 16;

/// `ZEND_AST_ZVAL` and `ZEND_AST_CONSTANT`: a value.
const VALUES: [u16; 2] = [64, 65];
/// `ZEND_AST_SPECIAL_SHIFT`: neither a list nor a node with a number of children.
const IS_SPECIAL: u16 = 1 << 6;
/// `ZEND_AST_IS_LIST_SHIFT`.
const IS_LIST: u16 = 1 << 7;
/// `ZEND_AST_NUM_CHILDREN_SHIFT`.
const CHILDREN_SHIFT: u16 = 8;

/// `zend_attribute`, up to its arguments.
const ATTRIBUTE_SIZE: u64 = 32;

/// The remaining children of a part: consecutive addresses, which are not copied.
struct Children {
    next: u64,
    left: u32,
}

impl<S: HeapSink> HeapWalker<'_, S> {
    pub(super) fn expression(&mut self, link: NodeLink, address: u64) {
        let Some((node, spot)) = self.graph.enter(NodeType::CONSTANT_EXPRESSION, link, address) else {
            return;
        };
        let header = self.heap.view.array::<8>(address);
        let Some(counted) = header.and_then(|header| u32_at(&header, 0).zip(u32_at(&header, 4))) else {
            return self.missing(node, address);
        };
        // Since 7.3 it is in one block with the header.
        let is_apart = self.heap.layout.header_kind == 0xff;
        let own = spot.block.filter(|block| block.address == address);
        let size = if is_apart { 16 } else { own.map_or(HEADER, |block| block.bytes) };
        let extent = Extent::new(LocationType::CONSTANT_EXPRESSION, size);
        self.graph.locate(node, &spot, Extent { counted: Some(counted), ..extent });
        let root = address.wrapping_add(HEADER);
        let root = if is_apart { self.heap.view.pointer(address, 8) } else { root };
        // In a script of opcache, the parts follow each other.
        let has_parts = is_apart || (own.is_none() && spot.block.is_some());
        self.parts_of_expression(node, root, has_parts);
    }

    /// Visits the values in the tree at `root`, each part of which may have its own memory.
    fn parts_of_expression(&mut self, node: NodeId, root: u64, has_parts: bool) {
        let mark = self.pending.tasks.len();
        let (mut known, mut open, mut values) = (HashSet::new(), Vec::new(), 0);
        let mut is_torn = false;
        let mut next = Some(root);
        while let Some(part) = next.filter(|_| !self.is_given_up()) {
            if part != 0 {
                // Each part belongs to one expression, and only once.
                if part.is_multiple_of(8) && known.insert(part) {
                    open.extend(self.part_of_expression(node, part, has_parts, &mut values));
                } else {
                    is_torn = true;
                }
            }
            next = self.next_child(node, &mut open);
        }
        if is_torn {
            self.damage(node, Damage::Torn);
        }
        self.in_order(mark);
    }

    /// The children of a part; `None` if it has none. A value is scheduled for a visit under the number `values`.
    fn part_of_expression(
        &mut self,
        node: NodeId,
        part: u64,
        has_parts: bool,
        values: &mut i64,
    ) -> Option<Children> {
        let Some(kind) = self.heap.view.array(part).map(u16::from_le_bytes) else {
            self.missing(node, part);
            return None;
        };
        let is_value = VALUES.contains(&kind);
        let (first, count) = match kind {
            _ if is_value => (VALUE_SIZE, 0),
            kind if kind & IS_SPECIAL != 0 => (FIRST_CHILD, 0),
            kind if kind & IS_LIST != 0 => {
                (LIST_CHILD, self.heap.view.u32(part.wrapping_add(LIST_COUNT)).unwrap_or_default())
            }
            kind => (FIRST_CHILD, u32::from(kind >> CHILDREN_SHIFT)),
        };
        let next = part.wrapping_add(first);
        let left = self.heap.fitting(next, count, 8);
        if has_parts {
            let size = (first + u64::from(left) * 8).min(self.heap.room_in_block(part));
            self.graph.locate_once(node, part, Extent::new(LocationType::CONSTANT_EXPRESSION, size));
        }
        if is_value {
            let name = self.graph.number(*values);
            *values += 1;
            self.later(NodeLink::strong(node, name), VisitKind::Value, part.wrapping_add(FIRST_CHILD));
            return None;
        }
        if left < count {
            self.damage_of_row(node, next);
        }
        Some(Children { next, left })
    }

    /// The next child of the innermost part that has children left.
    fn next_child(&mut self, node: NodeId, open: &mut Vec<Children>) -> Option<u64> {
        loop {
            let children = open.last_mut()?;
            if children.left == 0 {
                open.pop();
                continue;
            }
            let child = self.heap.view.u64(children.next);
            children.next = children.next.wrapping_add(8);
            children.left -= 1;
            self.graph.limits.meet(1);
            match child {
                Some(child) => return Some(child),
                None => self.missing(node, children.next),
            }
        }
    }

    pub(super) fn attributes(&mut self, link: NodeLink, address: u64) {
        let Some((node, _)) = self.graph.enter(NodeType::ATTRIBUTES, link, address) else { return };
        self.header_at(node, address);
        self.engine_table(node, address, EntryKind::Attribute);
    }

    pub(super) fn attribute(&mut self, link: NodeLink, address: u64) {
        let Some((node, spot)) = self.graph.enter(NodeType::ATTRIBUTE, link, address) else { return };
        // In a script of opcache, other things follow.
        let own = spot.block.filter(|block| block.address == address);
        let size = own.map_or(ATTRIBUTE_SIZE.min(self.heap.room_in_block(address)), |block| block.bytes);
        self.graph.locate(node, &spot, Extent::new(LocationType::ATTRIBUTE, size));
        let name = self.heap.view.pointer(address, 0) | self.heap.view.u64(address).unwrap_or_default();
        self.later(NodeLink::strong(node, self.words.name), VisitKind::String, name);
    }
}

impl HeapReader<'_> {
    /// The target of a map pointer: data of the current request. 0 between requests: PHP resets the slots of functions and
    /// classes that outlive a request at the start of the next one.
    ///
    /// Source: `zend_activate` and `init_executor` of PHP 7.4 to 8.5.
    pub(super) fn mapped(&self, pointer: u64) -> u64 {
        let base = self.layout.compiler_map_base;
        if pointer == 0 || base == 0 {
            return pointer;
        }
        if !self.is_active {
            return 0;
        }
        if pointer & 1 == 0 {
            let is_pointer = self.layout.map_indirect == 1;
            return if is_pointer { self.view.u64(pointer).unwrap_or_default() } else { pointer };
        }
        let base = self.executor.compiler.map_or(0, |compiler| self.view.pointer(compiler, base));
        let slot = base.wrapping_add(pointer).wrapping_sub(self.layout.map_bias);
        self.view.u64(slot).unwrap_or_default()
    }
}
