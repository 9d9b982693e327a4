//! Database connections and their statements.
//!
//! The data of a driver is scanned like all unknown data.

use borehole_heap::{HeapSink, LocationType, NodeType, Strength};

use super::scan::Scan;
use crate::heap::walk::{ObjectView, Shape, Walker};
use crate::remote::moved;

/// The type of a `zval` that is an object.
const OBJECT: u8 = 8;

/// Visits a `PDO`: `pdo_dbh_object_t` begins with the address of its connection.
///
/// Source: `ext/pdo/php_pdo_driver.h` of PHP 7.0 to 8.5.
pub(super) fn connection<S: HeapSink>(object: &ObjectView, walker: &mut Walker<'_, S>) {
    let start = walker.view.u64(object.start).unwrap_or_default();
    let Some(bytes) = walker.room(start) else { return };
    let (kind, shape) = (NodeType::INTERNAL_DATA, Shape::new(LocationType::INTERNAL_DATA, bytes));
    if let Some(node) = walker.block(object.node, "connection", Strength::Strong, kind, start, shape) {
        walker.scans.push(Scan { node, start, bytes });
    }
}

/// Visits a `PDOStatement`: its connection is in it as a value, at an offset that depends on the release; it is the first
/// object.
pub(super) fn statement<S: HeapSink>(object: &ObjectView, walker: &mut Walker<'_, S>) {
    let words = walker.view.length(object.start, object.bytes) / 8;
    let places = (0..words).map(|word| object.start + word * 8);
    let is_object = |place: &u64| {
        let value = walker.view.u64(*place).unwrap_or_default();
        walker.view.array(moved(*place, 8)) == Some([OBJECT]) && walker.is_listed_object(value)
    };
    let handle = places.into_iter().find(is_object);
    if let Some(place) = handle {
        walker.holds(object.node, "database_object_handle", place);
    }
}
