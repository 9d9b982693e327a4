//! Classes: their declarations and static properties; constants.

use borehole_heap::{HeapSink, LocationType, NodeId, NodeType};

use super::arrays::ArrayBucket;
use super::task::{EntryKind, Pointers, PropertyRow, ValueTable};
use super::{Extent, HeapWalker, NodeLink, VisitKind, WalkTask};
use crate::layout::fixed;
use crate::remote::{moved, u64_at};

/// `zend_property_info.name` and `doc_comment`.
const PROPERTY_NAME: usize = 8;
const PROPERTY_DOC: usize = 16;
/// `zend_class_constant.doc_comment`.
const CONSTANT_DOC: usize = 16;
/// `zend_constant.name`.
const CONSTANT_NAME: usize = 16;
/// The number of hooks of a property: one for reading, one for writing.
const HOOKS: u32 = 2;
/// `zend_class_mutable_data.backed_enum_table`.
const MUTABLE_ENUM_TABLE: u64 = 24;
/// The maximum number of properties, interfaces or traits of a class.
const MOST: u32 = 1 << 16;

impl<S: HeapSink> HeapWalker<'_, S> {
    pub(super) fn class(&mut self, link: NodeLink, address: u64) {
        let Some((node, _)) = self.graph.enter(NodeType::CLASS_DEFINITION, link, address) else { return };
        let Some([class_type]) = self.heap.view.array(address) else {
            return self.missing(node, address);
        };
        let is_internal = class_type == fixed::CLASS_INTERNAL;
        self.flag(node, self.words.is_internal, is_internal);
        self.class_entry(node, address, is_internal);
        let (layout, words) = (self.heap.layout, self.words);
        let pointer = |offset| self.heap.view.pointer(address, offset);
        let of_user = |offset| if is_internal { 0 } else { pointer(offset) };
        let parts = [
            (words.name, VisitKind::String, pointer(fixed::CLASS_NAME)),
            (words.filename, VisitKind::String, of_user(layout.class_file)),
            (words.static_properties, VisitKind::ClassValues(ValueTable::Statics), address),
            (words.property_info, VisitKind::ClassTable(EntryKind::PropertyInfo), address),
            (words.default_properties, VisitKind::ClassValues(ValueTable::Defaults), address),
            (words.default_static_properties, VisitKind::ClassValues(ValueTable::StaticDefaults), address),
            (words.methods, VisitKind::ClassTable(EntryKind::Function), address),
            (words.constants, VisitKind::ClassTable(EntryKind::ClassConstant), address),
            (words.mutable_data, VisitKind::ClassMutable, address),
            (words.attributes, VisitKind::Attributes, pointer(layout.class_attributes)),
            (words.enum_cases, VisitKind::Array, pointer(layout.class_enum_table)),
            (words.doc_comment, VisitKind::String, of_user(layout.class_doc)),
        ];
        self.parts_later(node, &parts);
    }

    fn class_entry(&mut self, class: NodeId, address: u64, is_internal: bool) {
        let (view, layout) = (self.heap.view, self.heap.layout);
        let node =
            self.graph.node(NodeType::CLASS_ENTRY, NodeLink::structural(class, self.words.class_entry));
        let spot = self.heap.spot(address);
        let extent = Extent::new(LocationType::CLASS_ENTRY, layout.class_size as u64);
        self.graph.locate_within(node, &spot, extent, 0);
        let count = |offset| u64::from(view.number(address, offset).min(MOST));
        let interfaces = count(layout.class_interface_count) * 8;
        let start = view.pointer(address, layout.class_interfaces);
        self.table_of_code(node, start, LocationType::INTERFACES_TABLE, interfaces);
        let properties = count(layout.class_property_count) * 8;
        let start = view.pointer(address, layout.class_property_table);
        self.table_of_code(node, start, LocationType::PROPERTIES_INFO_TABLE, properties);
        let traits = count(layout.class_interface_count + 4) * 16;
        let start = view.pointer(address, layout.class_trait_names);
        self.table_of_code(node, start, LocationType::TRAIT_NAMES, traits);
        if !is_internal {
            self.trait_names(node, start, traits);
            self.definition_place(node, address, layout.class_file);
        }
    }

    /// Visits the names of the traits that a class uses, each as written and in lower case.
    fn trait_names(&mut self, node: NodeId, start: u64, bytes: u64) {
        let names = self.heap.view.bytes(start, if start == 0 { 0 } else { bytes });
        for (name, word) in (0..).zip(names.chunks_exact(8)) {
            let address = u64_at(word, 0).unwrap_or_default();
            if address != 0 {
                let link = self.graph.name(&format!("trait_names[{name}]"));
                self.string(NodeLink::strong(node, link), address);
            }
        }
    }

    pub(super) fn class_values_of(&mut self, link: NodeLink, address: u64, table: ValueTable) {
        let (heap, first) = (self.heap, self.heap.layout.class_property_defaults);
        let statics = heap.view.pointer(address, first + 16);
        let values = match table {
            ValueTable::Defaults => heap.view.pointer(address, first),
            ValueTable::StaticDefaults => heap.view.pointer(address, first + 8),
            ValueTable::Statics if heap.layout.class_statics_indirect == 1 => {
                heap.view.u64(statics).unwrap_or_default()
            }
            ValueTable::Statics => heap.mapped(statics),
        };
        self.class_values(link, address, values, table);
    }

    fn class_values(&mut self, link: NodeLink, class: u64, values: u64, table: ValueTable) {
        let (is_static, is_default) = (table != ValueTable::Defaults, table != ValueTable::Statics);
        let offset = self.heap.layout.class_property_count + if is_static { 4 } else { 0 };
        let count = self.heap.view.number(class, offset).min(MOST);
        if values == 0 || count == 0 {
            return;
        }
        let (node_type, location_type) = match table {
            ValueTable::Statics => (NodeType::CLASS_STATIC_PROPERTIES, LocationType::STATIC_MEMBERS_TABLE),
            ValueTable::Defaults => {
                (NodeType::DEFAULT_PROPERTIES_TABLE, LocationType::DEFAULT_PROPERTIES_TABLE)
            }
            ValueTable::StaticDefaults => {
                (NodeType::DEFAULT_STATIC_PROPERTIES, LocationType::DEFAULT_STATIC_MEMBERS_TABLE)
            }
        };
        let extent = Extent::new(location_type, u64::from(count) * fixed::VALUE_SIZE);
        let Some(node) = self.graph.once(link, node_type, values, extent) else { return };
        let class = self.class_number(class);
        if !is_default {
            let present = self.heap.present(values, count);
            self.count_attribute(node, present);
        }
        let row = PropertyRow { node, class, values, at: 0, count, is_static, is_default };
        self.pending.tasks.push(WalkTask::Properties(row));
    }

    /// Visits a table of methods, property declarations or constants of the class at `address`. Its header is part of the class.
    pub(super) fn class_table(&mut self, link: NodeLink, address: u64, each: EntryKind) {
        let (node_type, number) = match each {
            EntryKind::Function => (NodeType::DEFINED_FUNCTIONS, 0),
            EntryKind::PropertyInfo => (NodeType::PROPERTIES_INFO, 1),
            _ => (NodeType::CLASS_CONSTANTS, 2),
        };
        let node = self.graph.node(node_type, link);
        let offset = self.heap.layout.class_property_defaults + 24 + number * fixed::TABLE_SIZE;
        self.engine_table(node, moved(address, offset), each);
    }

    /// Visits the declaration of a property with the plain name `key`.
    pub(super) fn property_info(&mut self, link: NodeLink, address: u64, key: u64) {
        let (view, layout, words) = (self.heap.view, self.heap.layout, self.words);
        let extent = Extent::new(LocationType::PROPERTY_INFO, layout.property_size as u64);
        let Some(node) = self.graph.once(link, NodeType::PROPERTY_INFO, address, extent) else { return };
        let name = view.pointer(address, PROPERTY_NAME);
        let parts = [
            (words.name, VisitKind::String, name),
            (words.key, VisitKind::String, if key == name { 0 } else { key }),
            (words.doc_comment, VisitKind::String, view.pointer(address, PROPERTY_DOC)),
            (words.attributes, VisitKind::Attributes, view.pointer(address, layout.property_attributes)),
        ];
        self.parts_later(node, &parts);
        if layout.property_type != 0 {
            self.type_names(node, address.saturating_add(layout.property_type as u64));
        }
        let hooks = view.pointer(address, layout.property_hooks);
        if hooks != 0 {
            self.hooks(node, hooks);
        }
    }

    fn hooks(&mut self, property: NodeId, start: u64) {
        let extent = Extent::new(LocationType::PROPERTY_HOOKS, u64::from(HOOKS) * 8);
        let link = NodeLink::strong(property, self.words.hooks);
        if let Some(node) = self.graph.once(link, NodeType::PROPERTY_HOOKS, start, extent) {
            let row = Pointers::new(node, start, HOOKS, VisitKind::Function);
            self.pending.tasks.push(WalkTask::Pointers(row));
        }
    }

    /// Visits the per-process data of the class at `address`, which opcache shares between processes.
    pub(super) fn class_mutable(&mut self, link: NodeLink, address: u64) {
        let data = self.heap.mapped(self.heap.view.pointer(address, self.heap.layout.class_mutable));
        if data == 0 || self.heap.view.room(data) == 0 {
            return;
        }
        let size = self.heap.layout.class_mutable_size.min(self.heap.room_in_block(data));
        let extent = Extent::new(LocationType::MUTABLE_DATA, size);
        let Some(node) = self.graph.once(link, NodeType::CLASS_MUTABLE_DATA, data, extent) else { return };
        let [defaults, constants] =
            [0, 8].map(|offset| self.heap.view.u64(data + offset).unwrap_or_default());
        if constants != 0 {
            let link = NodeLink::strong(node, self.words.constants);
            let extent = Extent::new(LocationType::ARRAY, fixed::TABLE_SIZE as u64);
            if let Some(node) = self.graph.once(link, NodeType::CLASS_CONSTANTS, constants, extent) {
                self.engine_table(node, constants, EntryKind::ClassConstant);
            }
        }
        if size > MUTABLE_ENUM_TABLE {
            let cases = self.heap.view.u64(data + MUTABLE_ENUM_TABLE).unwrap_or_default();
            self.later(NodeLink::strong(node, self.words.enum_cases), VisitKind::Array, cases);
        }
        let link = NodeLink::strong(node, self.words.default_properties);
        self.class_values(link, address, defaults, ValueTable::Defaults);
    }

    pub(super) fn class_constant(&mut self, link: NodeLink, bucket: ArrayBucket) {
        let node = self.graph.node(NodeType::CLASS_CONSTANT, link);
        if bucket.key != 0 {
            self.string(NodeLink::strong(node, self.words.name), bucket.key);
        }
        if self.heap.layout.class_constant_size == 0 {
            return self.value(NodeLink::strong(node, self.words.value), bucket.value);
        }
        let address = bucket.value.word;
        let (view, layout, words) = (self.heap.view, self.heap.layout, self.words);
        let extent = Extent::new(LocationType::CLASS_CONSTANT, layout.class_constant_size as u64);
        let info = NodeLink::structural(node, words.info);
        self.graph.once(info, NodeType::CLASS_CONSTANT_INFO, address, extent);
        let parts = [
            (words.value, VisitKind::Value, address),
            (words.doc_comment, VisitKind::String, view.pointer(address, CONSTANT_DOC)),
            (
                words.attributes,
                VisitKind::Attributes,
                view.pointer(address, layout.class_constant_attributes),
            ),
        ];
        self.parts_later(node, &parts);
        if layout.constant_type != 0 {
            self.type_names(node, address.saturating_add(layout.constant_type as u64));
        }
    }

    pub(super) fn constant(&mut self, link: NodeLink, address: u64) {
        let (view, layout, words) = (self.heap.view, self.heap.layout, self.words);
        let extent = Extent::new(LocationType::CONSTANT, layout.constant_size as u64);
        let Some(node) = self.graph.once(link, NodeType::GLOBAL_CONSTANT, address, extent) else { return };
        let parts = [
            (words.name, VisitKind::String, view.pointer(address, CONSTANT_NAME)),
            (words.value, VisitKind::Value, address),
            (words.filename, VisitKind::String, view.pointer(address, layout.constant_file)),
        ];
        self.parts_later(node, &parts);
    }
}
