//! Types of properties and arguments: the names of classes in them.
//!
//! Source: `zend_type` and `zend_type_list` in `Zend/zend_types.h` of PHP 8.2.

use borehole_heap::{HeapSink, NodeId};

use super::{HeapWalker, NodeLink, VisitKind};

/// `_ZEND_TYPE_NAME_BIT`: the type has the name of a class.
const NAME: u32 = 1 << 24;
/// `_ZEND_TYPE_LIST_BIT`: the type is a list of types.
const LIST: u32 = 1 << 22;
/// `zend_type`.
const TYPE_SIZE: u64 = 16;
/// `zend_type_list.types`.
const LIST_TYPES: u64 = 8;
/// The maximum number of types in one. PHP has no limit itself.
const MOST_TYPES: u32 = 256;

impl<S: HeapSink> HeapWalker<'_, S> {
    /// Visits the names of classes in the type at `address` that are not interned. opcache interns none of a script that it
    /// does not cache.
    pub(super) fn type_names(&mut self, node: NodeId, address: u64) {
        let mut open = vec![address];
        let mut left = MOST_TYPES;
        while let Some(address) = open.pop() {
            let target = self.heap.view.u64(address).unwrap_or_default();
            let mask = self.heap.view.number(address, 8);
            if mask & LIST != 0 {
                let count = self.heap.view.u32(target).unwrap_or_default().min(left);
                left -= count;
                let types = target.saturating_add(LIST_TYPES);
                open.extend((0..u64::from(count)).map(|at| types.saturating_add(at * TYPE_SIZE)));
            } else if mask & NAME != 0 && !self.is_interned(target) {
                self.later(NodeLink::strong(node, self.words.type_name), VisitKind::String, target);
            }
        }
    }

    fn is_interned(&self, string: u64) -> bool {
        self.heap.view.number(string, 4) & self.heap.layout.header_interned != 0
    }
}
