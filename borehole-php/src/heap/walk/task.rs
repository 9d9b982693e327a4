//! What is left to do: the walk is a list of these, so that nothing in a heap makes it recurse.

use borehole_heap::{NodeId, Strength, StringId};

/// How a node is referred to.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Link {
    /// `None`: as a root.
    pub(crate) parent: Option<NodeId>,
    pub(crate) name: StringId,
    pub(crate) strength: Strength,
}

impl Link {
    /// A reference that counts.
    #[inline]
    pub(crate) const fn strong(parent: NodeId, name: StringId) -> Self {
        Self { parent: Some(parent), name, strength: Strength::Strong }
    }

    /// A reference of the engine's own.
    pub(crate) const fn structural(parent: NodeId, name: StringId) -> Self {
        Self { parent: Some(parent), name, strength: Strength::Structural }
    }

    /// A reference that does not count.
    pub(crate) const fn weak(parent: NodeId, name: StringId) -> Self {
        Self { parent: Some(parent), name, strength: Strength::Weak }
    }

    /// One of the first.
    pub(crate) const fn root(name: StringId) -> Self {
        Self { parent: None, name, strength: Strength::Strong }
    }
}

/// What an address is known to lead to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A `zval`, and what it holds.
    Value,
    String,
    Array,
    Object,
    Reference,
    Resource,
    /// `zend_function`.
    Function,
    /// `zend_op_array`: of the function whose node is the parent.
    Code,
    /// Parts of a `zend_op_array` whose node is the parent.
    CodeVariables,
    CodeInner,
    CodeLiterals,
    /// `zend_class_entry`.
    Class,
    /// Parts of a `zend_class_entry` whose node is the parent.
    ClassStatics,
    ClassProperties,
    ClassDefaults,
    ClassStaticDefaults,
    ClassMethods,
    ClassConstants,
    ClassMutable,
    /// `zend_execute_data` of a generator that waits.
    Frame,
    /// A `HashTable` of `zend_attribute *`.
    Attributes,
}

/// What the buckets of a hash table hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Each {
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
    /// Nothing: the keys are what matters.
    Key,
    /// `zend_resource *`.
    Resource,
    /// `zend_ini_entry *`.
    Ini,
    /// `zend_attribute *`.
    Attribute,
    /// What refers to an object without holding it.
    Weak,
    /// A structure that says what is to be called.
    Callable,
}

/// A hash table in the middle of which the walk is.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Entries {
    /// What the entries are children of.
    pub(crate) node: NodeId,
    /// The address of the first bucket.
    pub(crate) buckets: u64,
    pub(crate) at: u32,
    pub(crate) used: u32,
    pub(crate) each: Each,
    /// Buckets that are a value and nothing else.
    pub(crate) is_packed: bool,
}

/// Values in a row, the names of which a class says.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Properties {
    pub(crate) node: NodeId,
    /// The number of the class.
    pub(crate) class: u32,
    /// The address of the first value.
    pub(crate) values: u64,
    pub(crate) at: u32,
    pub(crate) count: u32,
    /// Whether the names are those of static ones.
    pub(crate) is_static: bool,
    /// Whether only what takes memory is of interest: what new objects begin with is said by the class itself.
    pub(crate) is_default: bool,
}

/// Addresses in a row.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pointers {
    pub(crate) node: NodeId,
    pub(crate) start: u64,
    pub(crate) at: u32,
    pub(crate) count: u32,
    pub(crate) kind: Kind,
    /// Whether these are the engine's objects by handle: weak, and with unused places.
    pub(crate) is_store: bool,
}

/// A step of the walk.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Task {
    /// What is at an address.
    Visit { link: Link, kind: Kind, address: u64 },
    /// The rest of a hash table.
    Entries(Entries),
    /// The rest of an object's properties.
    Properties(Properties),
    /// The rest of a row of addresses.
    Pointers(Pointers),
    /// The rest of a row of values, called by their number.
    Values(Pointers),
    /// The rest of a chain of call frames.
    Frames { node: NodeId, next: u64, at: u32, most: u32 },
}
