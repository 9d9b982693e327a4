//! Classes: their declarations and static properties; constants.

use borehole_heap::{HeapSink, LocationType, NodeId, NodeType, Value};

use super::arrays::Bucket;
use super::task::{Each, Pointers, Properties};
use super::values::VALUE_SIZE;
use super::{Damage, Kind, Link, Shape, Task, Walker};
use crate::layout::fixed;
use crate::remote::{moved, u64_at};

/// `zend_class_entry.type`.
const INTERNAL: u8 = 1;
/// `zend_property_info.name` and `doc_comment`.
const PROPERTY_NAME: usize = 8;
const PROPERTY_DOC: usize = 16;
/// `zend_class_constant.doc_comment`.
const CONSTANT_DOC: usize = 16;
/// `zend_constant.name`.
const CONSTANT_NAME: usize = 16;
/// The number of hooks of a property: one for reading, one for writing.
const HOOKS: u32 = 2;
/// `zend_class_mutable_data`.
const MUTABLE_SIZE: u64 = 32;
/// The maximum number of properties, interfaces or traits of a class.
const MOST: u32 = 1 << 16;

impl<S: HeapSink> Walker<'_, S> {
    /// Visits the class at `address`.
    pub(super) fn class(&mut self, link: Link, address: u64) {
        let spot = self.spot(address);
        if self.again(&spot, link) {
            return;
        }
        let node = self.node_at(NodeType::CLASS_DEFINITION, link, &spot);
        let Some([class_type]) = self.view.array(address) else { return self.damage(node, Damage::Missing) };
        let is_internal = class_type == INTERNAL;
        self.flag(node, self.words.is_internal, is_internal);
        self.class_entry(node, address, is_internal);
        let (view, layout, words) = (self.view, self.layout, self.words);
        let mark = self.work.len();
        let part = |name| Link::strong(node, name);
        self.later(part(words.name), Kind::String, view.pointer(address, fixed::CLASS_NAME));
        if !is_internal {
            self.later(part(words.filename), Kind::String, view.pointer(address, layout.class_file));
        }
        self.later(part(words.static_properties), Kind::ClassStatics, address);
        self.later(part(words.property_info), Kind::ClassProperties, address);
        self.later(part(words.default_properties), Kind::ClassDefaults, address);
        self.later(part(words.default_static_properties), Kind::ClassStaticDefaults, address);
        self.later(part(words.methods), Kind::ClassMethods, address);
        self.later(part(words.constants), Kind::ClassConstants, address);
        self.later(part(words.mutable_data), Kind::ClassMutable, address);
        self.later(part(words.attributes), Kind::Attributes, view.pointer(address, layout.class_attributes));
        self.later(part(words.enum_cases), Kind::Array, view.pointer(address, layout.class_enum_table));
        if !is_internal {
            self.later(part(words.doc_comment), Kind::String, view.pointer(address, layout.class_doc));
        }
        self.in_order(mark);
    }

    /// Adds the node of a `zend_class_entry`, with its tables of addresses.
    fn class_entry(&mut self, class: NodeId, address: u64, is_internal: bool) {
        let (view, layout) = (self.view, self.layout);
        let node = self.node(NodeType::CLASS_ENTRY, Link::structural(class, self.words.class_entry));
        let spot = self.spot(address);
        self.locate_within(node, &spot, Shape::new(LocationType::CLASS_ENTRY, layout.class_size as u64), 0);
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
            self.place_of_class(node, address);
        }
    }

    /// Visits the names of the traits that a class uses, each as written and in lower case.
    fn trait_names(&mut self, node: NodeId, start: u64, bytes: u64) {
        let names = self.view.bytes(start, if start == 0 { 0 } else { bytes });
        for (name, word) in (0..).zip(names.chunks_exact(8)) {
            let address = u64_at(word, 0).unwrap_or_default();
            if address != 0 {
                let link = self.sink.string(format!("trait_names[{name}]").as_bytes());
                self.string(Link::strong(node, link), address);
            }
        }
    }

    fn place_of_class(&mut self, node: NodeId, address: u64) {
        let (view, layout) = (self.view, self.layout);
        let file = view.pointer(address, layout.class_file);
        if file != 0 {
            let file = self.text_bytes(file);
            self.sink.attribute(node, self.words.file, Value::Text(&file));
        }
        let lines = [layout.class_file + 8, layout.class_file + 12].map(|at| view.number(address, at));
        for (key, line) in [self.words.line_start, self.words.line_end].into_iter().zip(lines) {
            self.sink.attribute(node, key, Value::Integer(i64::from(line)));
        }
    }

    /// Visits the values of the static properties of the class at `address`.
    pub(super) fn class_statics(&mut self, link: Link, address: u64) {
        let pointer = self.view.pointer(address, self.layout.class_property_defaults + 16);
        let values = match self.layout.class_statics_indirect {
            true => self.view.u64(pointer).unwrap_or_default(),
            false => self.mapped(pointer),
        };
        let shape = LocationType::STATIC_MEMBERS_TABLE;
        self.class_values(link, address, values, NodeType::CLASS_STATIC_PROPERTIES, shape, true, false);
    }

    /// Visits the default property values of the class at `address`.
    pub(super) fn class_defaults(&mut self, link: Link, address: u64) {
        let values = self.view.pointer(address, self.layout.class_property_defaults);
        let shape = LocationType::DEFAULT_PROPERTIES_TABLE;
        self.class_values(link, address, values, NodeType::DEFAULT_PROPERTIES_TABLE, shape, false, true);
    }

    /// Visits the default values of the static properties of the class at `address`.
    pub(super) fn class_static_defaults(&mut self, link: Link, address: u64) {
        let values = self.view.pointer(address, self.layout.class_property_defaults + 8);
        let shape = LocationType::DEFAULT_STATIC_MEMBERS_TABLE;
        self.class_values(link, address, values, NodeType::DEFAULT_STATIC_PROPERTIES, shape, true, true);
    }

    #[expect(clippy::too_many_arguments, reason = "three kinds of the same table")]
    fn class_values(
        &mut self,
        link: Link,
        class: u64,
        values: u64,
        node_type: NodeType,
        location_type: LocationType,
        is_static: bool,
        is_default: bool,
    ) {
        let offset = self.layout.class_property_count + if is_static { 4 } else { 0 };
        let count = self.view.number(class, offset).min(MOST);
        if values == 0 || count == 0 {
            return;
        }
        let spot = self.spot(values);
        let shape = Shape::new(location_type, u64::from(count) * VALUE_SIZE);
        let Some(node) = self.once(link, node_type, &spot, shape) else { return };
        let class = self.class_number(class);
        if !is_default {
            let present = self.present(values, count);
            self.count_attribute(node, present);
        }
        let row = Properties { node, class, values, at: 0, count, is_static, is_default };
        self.work.push(Task::Properties(row));
    }

    /// Visits the property declarations of the class at `address`.
    pub(super) fn class_properties(&mut self, link: Link, address: u64) {
        let node = self.node(NodeType::PROPERTIES_INFO, link);
        let table = moved(address, self.layout.class_functions + fixed::TABLE_SIZE);
        self.engine_table(node, table, Each::PropertyInfo);
    }

    /// Visits the declaration of a property with the plain name `key`.
    pub(super) fn property_info(&mut self, link: Link, address: u64, key: u64) {
        let spot = self.spot(address);
        let (view, layout) = (self.view, self.layout);
        let shape = Shape::new(LocationType::PROPERTY_INFO, layout.property_size as u64);
        let Some(node) = self.once(link, NodeType::PROPERTY_INFO, &spot, shape) else { return };
        let mark = self.work.len();
        let part = |name| Link::strong(node, name);
        let name = view.pointer(address, PROPERTY_NAME);
        self.later(part(self.words.name), Kind::String, name);
        if key != name {
            self.later(part(self.words.key), Kind::String, key);
        }
        self.later(part(self.words.doc_comment), Kind::String, view.pointer(address, PROPERTY_DOC));
        let attributes = view.pointer(address, layout.property_attributes);
        self.later(part(self.words.attributes), Kind::Attributes, attributes);
        self.in_order(mark);
        let hooks = view.pointer(address, layout.property_hooks);
        if hooks != 0 {
            self.hooks(node, hooks);
        }
    }

    fn hooks(&mut self, property: NodeId, address: u64) {
        let spot = self.spot(address);
        let shape = Shape::new(LocationType::PROPERTY_HOOKS, u64::from(HOOKS) * 8);
        let link = Link::strong(property, self.words.hooks);
        if let Some(node) = self.once(link, NodeType::PROPERTY_HOOKS, &spot, shape) {
            let (start, kind) = (address, Kind::Function);
            self.work.push(Task::Pointers(Pointers {
                node,
                start,
                at: 0,
                count: HOOKS,
                kind,
                is_store: false,
            }));
        }
    }

    /// Visits the methods of the class at `address`.
    pub(super) fn class_methods(&mut self, link: Link, address: u64) {
        let node = self.node(NodeType::DEFINED_FUNCTIONS, link);
        // The header is part of the class.
        self.engine_table(node, moved(address, self.layout.class_functions), Each::Function);
    }

    /// Visits the constants of the class at `address`.
    pub(super) fn class_constants(&mut self, link: Link, address: u64) {
        let node = self.node(NodeType::CLASS_CONSTANTS, link);
        let table = moved(address, self.layout.class_functions + 2 * fixed::TABLE_SIZE);
        self.engine_table(node, table, Each::ClassConstant);
    }

    /// Visits the per-process data of the class at `address`, which opcache shares between processes.
    pub(super) fn class_mutable(&mut self, link: Link, address: u64) {
        let data = self.mapped(self.view.pointer(address, self.layout.class_mutable));
        if data == 0 || self.view.rest(data).is_empty() {
            return;
        }
        let spot = self.spot(data);
        let size = spot.block.map_or(MUTABLE_SIZE, |block| MUTABLE_SIZE.min(block.end() - data));
        let shape = Shape::new(LocationType::MUTABLE_DATA, size);
        let Some(node) = self.once(link, NodeType::CLASS_MUTABLE_DATA, &spot, shape) else { return };
        let [defaults, constants] = [0, 8].map(|offset| self.view.u64(data + offset).unwrap_or_default());
        if constants != 0 {
            let link = Link::strong(node, self.words.constants);
            let table = self.spot(constants);
            let shape = Shape::new(LocationType::ARRAY, fixed::TABLE_SIZE as u64);
            if let Some(node) = self.once(link, NodeType::CLASS_CONSTANTS, &table, shape) {
                self.engine_table(node, constants, Each::ClassConstant);
            }
        }
        let link = Link::strong(node, self.words.default_properties);
        let shape = LocationType::DEFAULT_PROPERTIES_TABLE;
        self.class_values(link, address, defaults, NodeType::DEFAULT_PROPERTIES_TABLE, shape, false, true);
    }

    pub(super) fn class_constant(&mut self, link: Link, bucket: Bucket) {
        let node = self.node(NodeType::CLASS_CONSTANT, link);
        if bucket.key != 0 {
            self.string(Link::strong(node, self.words.name), bucket.key);
        }
        if self.layout.class_constant_size == 0 {
            return self.value(Link::strong(node, self.words.value), bucket.value);
        }
        let address = bucket.value.word;
        let (view, layout) = (self.view, self.layout);
        let spot = self.spot(address);
        let shape = Shape::new(LocationType::CLASS_CONSTANT, layout.class_constant_size as u64);
        let info = Link::structural(node, self.words.info);
        self.once(info, NodeType::CLASS_CONSTANT_INFO, &spot, shape);
        let mark = self.work.len();
        self.later(Link::strong(node, self.words.value), Kind::Value, address);
        self.later(
            Link::strong(node, self.words.doc_comment),
            Kind::String,
            view.pointer(address, CONSTANT_DOC),
        );
        let attributes = view.pointer(address, layout.class_constant_attributes);
        self.later(Link::strong(node, self.words.attributes), Kind::Attributes, attributes);
        self.in_order(mark);
    }

    /// Visits the global constant at `address`.
    pub(super) fn constant(&mut self, link: Link, address: u64) {
        let spot = self.spot(address);
        let (view, layout) = (self.view, self.layout);
        let shape = Shape::new(LocationType::CONSTANT, layout.constant_size as u64);
        let Some(node) = self.once(link, NodeType::GLOBAL_CONSTANT, &spot, shape) else { return };
        let mark = self.work.len();
        self.later(Link::strong(node, self.words.name), Kind::String, view.pointer(address, CONSTANT_NAME));
        self.later(Link::strong(node, self.words.value), Kind::Value, address);
        self.later(
            Link::strong(node, self.words.filename),
            Kind::String,
            view.pointer(address, layout.constant_file),
        );
        self.in_order(mark);
    }
}
