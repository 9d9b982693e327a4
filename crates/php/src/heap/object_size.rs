//! The size of objects, without the rest of their blocks, which has remains of what was freed there.

use crate::heap::allocator;
use crate::heap::layout::HeapLayout;
use crate::heap::view::DumpView;
use crate::layout::fixed;
use crate::remote;

/// `zend_object` without its properties.
pub(crate) const HEADER_BYTES: u64 = 40;
/// The maximum number of properties of a class; with more, it is damaged.
pub(crate) const MOST_PROPERTIES: u32 = 1 << 16;

/// The facts about a class that the size of its objects depends on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ObjectShape {
    /// The number of values after the header: the properties, and the guard of a class with magic methods.
    values: u32,
    /// Whether the class has a constructor of its own for objects with more than properties.
    has_more: bool,
    /// The size of an object, if it is fixed and known; 0 if not.
    fixed_bytes: u64,
}

impl ObjectShape {
    /// The shape of objects of the class at `class`.
    pub(crate) fn of(view: DumpView<'_>, layout: &HeapLayout, class: u64) -> Self {
        let has_guard = view.number(class, fixed::CLASS_FLAGS) >> layout.class_guards_bit & 1;
        let properties = view.number(class, layout.class_property_count).min(MOST_PROPERTIES);
        let has_more = view.pointer(class, layout.class_create) != 0;
        let name = if has_more { view.pointer(class, fixed::CLASS_NAME) } else { 0 };
        // No class extends these.
        let fixed_bytes = match remote::string(view.dump, name).as_deref() {
            Ok(b"Closure") => layout.closure_size,
            Ok(b"Generator") => layout.generator_size,
            Ok(b"Fiber") => layout.fiber_size,
            _ => 0,
        };
        Self { values: properties + has_guard, has_more, fixed_bytes }
    }

    /// The size of an object, from the start of its structure: as far as it is certain.
    ///
    /// Most structures end with their `zend_object`, which begins `before` bytes after their start. If a structure begins with
    /// it, the rest is unknown; but a block is never more than one size larger than what was asked for. `block_bytes` is 0 if
    /// there is no block.
    pub(crate) fn bytes(&self, before: u64, block_bytes: u64) -> u64 {
        let least = before + HEADER_BYTES + u64::from(self.values) * fixed::VALUE_SIZE;
        match (self.has_more && before == 0, self.fixed_bytes) {
            (false, _) => least,
            (true, 0) => least.max(allocator::least_request(block_bytes)),
            (true, known) => least.max(known),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn objects_end_with_their_values_or_their_structure() {
        let shape = |values, has_more, fixed_bytes| ObjectShape { values, has_more, fixed_bytes };
        assert_eq!(shape(21, false, 0).bytes(0, 384), 376);
        assert_eq!(shape(0, true, 0).bytes(104, 160), 144, "the structure ends with the object");
        assert_eq!(shape(0, true, 336).bytes(0, 384), 336);
        assert_eq!(shape(0, true, 0).bytes(0, 96), 88, "81 to 96 bytes, in whole words");
        assert_eq!(shape(0, true, 0).bytes(0, 40), 40, "only properties");
        assert_eq!(shape(2, true, 0).bytes(0, 0), 72, "without a block");
    }
}
