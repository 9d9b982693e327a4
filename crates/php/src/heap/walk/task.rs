//! The pending work of a walk, kept as a list so that no heap contents cause recursion.

use borehole_heap::{NodeId, Strength, StringId};

#[derive(Clone, Copy, Debug)]
pub(crate) struct NodeLink {
    /// `None`: the node is a root.
    pub(crate) parent: Option<NodeId>,
    pub(crate) name: StringId,
    pub(crate) strength: Strength,
}

impl NodeLink {
    /// A counted reference.
    #[inline]
    pub(crate) const fn strong(parent: NodeId, name: StringId) -> Self {
        Self { parent: Some(parent), name, strength: Strength::Strong }
    }

    /// A structural reference of the engine.
    pub(crate) const fn structural(parent: NodeId, name: StringId) -> Self {
        Self { parent: Some(parent), name, strength: Strength::Structural }
    }

    /// A weak reference, which is not counted.
    pub(crate) const fn weak(parent: NodeId, name: StringId) -> Self {
        Self { parent: Some(parent), name, strength: Strength::Weak }
    }

    /// A reference to a root.
    pub(crate) const fn root(name: StringId) -> Self {
        Self { parent: None, name, strength: Strength::Strong }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum VisitKind {
    /// A `zval` and its contents.
    Value,
    String,
    Array,
    Object,
    Reference,
    Resource,
    /// `zend_function`.
    Function,
    /// `zend_op_array`: that of the function whose node is the parent.
    Code,
    /// Parts of a `zend_op_array` whose node is the parent.
    CodeVariables,
    CodeInner,
    CodeLiterals,
    /// `zend_class_entry`.
    Class,
    /// Parts of a `zend_class_entry` whose node is the parent.
    ClassValues(ValueTable),
    ClassTable(EntryKind),
    ClassMutable,
    /// `zend_execute_data` of a waiting generator.
    Frame,
    /// A `HashTable` of `zend_attribute *`.
    Attributes,
}

/// A table of values of a class: of its static properties, or defaults.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ValueTable {
    Statics,
    Defaults,
    StaticDefaults,
}

/// The contents of the buckets of a hash table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum EntryKind {
    /// Values of an array.
    Element,
    /// `zend_function *`.
    Function,
    /// `zend_class_entry *`.
    Class,
    /// `zend_constant *`.
    Constant,
    /// `zend_class_constant *`, or a value in 7.0.
    ClassConstant,
    /// `zend_property_info *`.
    PropertyInfo,
    /// Nothing: only the keys matter.
    Key,
    /// `zend_resource *` that the table holds.
    Resource,
    /// `zend_resource *` that the table lists, but does not hold.
    ListedResource,
    /// `zend_ini_entry *`.
    Ini,
    /// `zend_attribute *`.
    Attribute,
    /// Weak references to an object.
    Weak,
    /// A structure with a callback.
    Callable,
}

/// A partly walked hash table.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Entries {
    /// The parent of the entries.
    pub(crate) node: NodeId,
    /// The address of the first bucket.
    pub(crate) buckets: u64,
    pub(crate) at: u32,
    pub(crate) used: u32,
    pub(crate) each: EntryKind,
    /// Whether its buckets are only values.
    pub(crate) is_packed: bool,
}

/// Consecutive values whose names are in a class.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PropertyRow {
    pub(crate) node: NodeId,
    /// The number of the class.
    pub(crate) class: u32,
    /// The address of the first value.
    pub(crate) values: u64,
    pub(crate) at: u32,
    pub(crate) count: u32,
    /// Whether the names are those of static properties.
    pub(crate) is_static: bool,
    /// Whether only values that take memory matter, because the class itself shows the default values.
    pub(crate) is_default: bool,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Pointers {
    pub(crate) node: NodeId,
    pub(crate) start: u64,
    pub(crate) at: u32,
    pub(crate) count: u32,
    pub(crate) kind: VisitKind,
    /// Whether these are the engine's objects by handle: weak references, with unused places.
    pub(crate) is_store: bool,
}

impl Pointers {
    pub(super) const fn new(node: NodeId, start: u64, count: u32, kind: VisitKind) -> Self {
        Self { node, start, at: 0, count, kind, is_store: false }
    }
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum WalkTask {
    /// A visit of an address.
    Visit { link: NodeLink, kind: VisitKind, address: u64 },
    /// The rest of a hash table.
    Entries(Entries),
    /// The rest of an object's properties.
    Properties(PropertyRow),
    /// The rest of a row of addresses.
    Pointers(Pointers),
    /// The rest of consecutive values, named by their number.
    Values(Pointers),
    /// The rest of a chain of call frames.
    Frames { node: NodeId, next: u64, at: u32, most: u32 },
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct PendingScan {
    pub(crate) node: NodeId,
    pub(crate) start: u64,
    pub(crate) bytes: u64,
}

/// The work that is left to do, in the order in which its lists are taken up.
#[derive(Debug, Default)]
pub(crate) struct PendingWork {
    /// A stack: the last task is the next one.
    pub(super) tasks: Vec<WalkTask>,
    /// Visits that happen only if nothing else known leads there.
    pub(crate) put_off: Vec<(NodeLink, VisitKind, u64)>,
    /// Addresses with unknown contents.
    pub(crate) unknown: Vec<(NodeLink, u64)>,
    /// The `zend_op_array`s of closures, with their nodes.
    pub(super) closure_code: Vec<(NodeId, u64)>,
    /// Memory to scan after everything known has been walked.
    pub(crate) scans: Vec<PendingScan>,
    /// Scans of what is known to be held, set aside until the garbage has been found.
    pub(crate) held_scans: Vec<PendingScan>,
    /// Addresses with unknown contents that are known to be held, set aside likewise.
    pub(crate) held_unknown: Vec<(NodeLink, u64)>,
    /// The targets of weak references. They are visited last, so that any other path to them comes first.
    pub(super) weak: Vec<(NodeLink, VisitKind, u64)>,
}
