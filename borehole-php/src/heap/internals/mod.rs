//! What objects of PHP's own classes hold beyond their properties.

use borehole_heap::HeapSink;

use crate::heap::layout::HeapLayout;
use crate::heap::walk::{ObjectView, Walker};

/// Tells `walker` what `object` holds.
pub(crate) fn visit<S: HeapSink>(object: &ObjectView, walker: &mut Walker<'_, S>) {
    let _ = (object, walker);
}

/// How large an object of the class of PHP's own called `class` is, if that is more than its properties say.
pub(crate) fn size(class: &[u8], layout: &HeapLayout) -> Option<u64> {
    let _ = (class, layout);
    None
}
