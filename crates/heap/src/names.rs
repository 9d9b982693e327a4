//! The vocabulary of the graph: types of nodes, locations, regions and references.

use borehole_text::named;

/// Declares a type whose values are indexes in a table of names.
macro_rules! names {
    ($(#[$doc:meta])* $type:ident: $($constant:ident = $name:literal,)+) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $type(u16);

        impl $type {
            /// The names that this version knows, in the order of their constants. A graph from a file may have more
            /// names, whose numbers follow.
            pub const NAMES: &'static [&'static str] = &[$($name),+];

            names!(@constants $type 0_u16; $($constant = $name,)+);

            /// The type with this number among the names of a graph.
            #[must_use]
            pub const fn new(number: u16) -> Self {
                Self(number)
            }

            /// Its number among the names of a graph.
            #[must_use]
            pub const fn number(self) -> u16 {
                self.0
            }
        }
    };
    (@constants $type:ident $number:expr; $constant:ident = $name:literal, $($rest:tt)*) => {
        #[doc = concat!("`", $name, "`.")]
        pub const $constant: Self = Self($number);
        names!(@constants $type $number + 1; $($rest)*);
    };
    (@constants $type:ident $number:expr;) => {};
}

names! {
    /// The type of a node.
    NodeType:
    ARG_INFO = "ArgInfoContext",
    ARG_INFOS = "ArgInfosContext",
    ARRAY_ELEMENT = "ArrayElementContext",
    ARRAY_ELEMENTS = "ArrayElementsContext",
    ARRAY_HEADER = "ArrayHeaderContext",
    ARRAY_POSSIBLE_OVERHEAD = "ArrayPossibleOverheadContext",
    CALL_FRAME = "CallFrameContext",
    CALL_FRAME_VARIABLE_TABLE = "CallFrameVariableTableContext",
    CALL_FRAMES = "CallFramesContext",
    CLASS_CONSTANT = "ClassConstantContext",
    CLASS_CONSTANT_INFO = "ClassConstantInfoContext",
    CLASS_CONSTANTS = "ClassConstantsContext",
    CLASS_DEFINITION = "ClassDefinitionContext",
    CLASS_ENTRY = "ClassEntryContext",
    CLASS_STATIC_PROPERTIES = "ClassStaticPropertiesContext",
    CLOSURE = "ClosureContext",
    DEFAULT_PROPERTIES_TABLE = "DefaultPropertiesTableContext",
    DEFAULT_STATIC_PROPERTIES = "DefaultStaticPropertiesContext",
    DEFINED_CLASSES = "DefinedClassesContext",
    DEFINED_FUNCTIONS = "DefinedFunctionsContext",
    DYNAMIC_FUNC_DEFS = "DynamicFuncDefsContext",
    GLOBAL_CONSTANT = "GlobalConstantContext",
    GLOBAL_CONSTANTS = "GlobalConstantsContext",
    GLOBAL_VARIABLES = "GlobalVariablesContext",
    INCLUDED_FILES = "IncludedFilesContext",
    INTERNAL_FUNCTION_DEFINITION = "InternalFunctionDefinitionContext",
    LOCAL_VARIABLE_NAME_TABLE = "LocalVariableNameTableContext",
    OBJECT = "ObjectContext",
    OBJECT_HANDLERS = "ObjectHandlersContext",
    OBJECT_PROPERTIES = "ObjectPropertiesContext",
    OBJECTS_STORE = "ObjectsStoreContext",
    OP_ARRAY = "OpArrayContext",
    PHP_REFERENCE = "PhpReferenceContext",
    PROPERTIES_INFO = "PropertiesInfoContext",
    PROPERTY_INFO = "PropertyInfoContext",
    RESOURCE = "ResourceContext",
    RUNTIME_CACHE = "RuntimeCacheContext",
    SCALAR_VALUE = "ScalarValueContext",
    STRING = "StringContext",
    USER_FUNCTION_DEFINITION = "UserFunctionDefinitionContext",
    GLOBAL_CALLBACKS = "GlobalCallbacksContext",
    REGULAR_LIST = "RegularListContext",
    PERSISTENT_LIST = "PersistentListContext",
    CONSTANT_EXPRESSION = "ConstantExpressionContext",
    LITERALS = "LiteralsContext",
    PROPERTY_HOOKS = "PropertyHooksContext",
    INI_DIRECTIVES = "IniDirectivesContext",
    INI_DIRECTIVE = "IniDirectiveContext",
    VM_STACK = "VmStackContext",
    ATTRIBUTES = "AttributesContext",
    ATTRIBUTE = "AttributeContext",
    CALLBACK_STACK = "CallbackStackContext",
    GENERATOR = "GeneratorContext",
    FIBER = "FiberContext",
    WEAK_MAP = "WeakMapContext",
    WEAK_REFERENCE = "WeakReferenceContext",
    INTERNAL_DATA = "InternalDataContext",
    VM_STACK_ARENA = "VmStackArenaContext",
    COMPILER_ARENA = "CompilerArenaContext",
    MEMORY_MANAGER = "MemoryManagerContext",
    MODULES = "ModulesContext",
    GARBAGE = "GarbageContext",
    UNATTRIBUTED = "UnattributedContext",
    UNATTRIBUTED_BIN = "UnattributedBinContext",
    UNATTRIBUTED_BLOCK = "UnattributedBlockContext",
    WEAK_REFERENCES = "WeakReferencesContext",
    CLASS_MUTABLE_DATA = "ClassMutableDataContext",
    SHUTDOWN_FUNCTIONS = "ShutdownFunctionsContext",
    AUTOLOADERS = "AutoloadersContext",
    OUTPUT_BUFFERS = "OutputBuffersContext",
    OUTPUT_BUFFER = "OutputBufferContext",
    CALLABLE = "CallableContext",
    HELD_ELSEWHERE = "HeldElsewhereContext",
}

names! {
    /// The type of a range of memory, by its content.
    LocationType:
    CALL_FRAME_HEADER = "CallFrameHeaderMemoryLocation",
    CALL_FRAME_VARIABLE_TABLE = "CallFrameVariableTableMemoryLocation",
    DEFAULT_PROPERTIES_TABLE = "DefaultPropertiesTableMemoryLocation",
    DEFAULT_STATIC_MEMBERS_TABLE = "DefaultStaticMembersTableMemoryLocation",
    DYNAMIC_FUNC_DEFS_TABLE = "DynamicFuncDefsTableMemoryLocation",
    LOCAL_VARIABLE_NAME_TABLE = "LocalVariableNameTableMemoryLocation",
    OBJECTS_STORE = "ObjectsStoreMemoryLocation",
    RUNTIME_CACHE = "RuntimeCacheMemoryLocation",
    STATIC_MEMBERS_TABLE = "StaticMembersTableMemoryLocation",
    ARG_INFOS = "ZendArgInfosMemoryLocation",
    ARRAY = "ZendArrayMemoryLocation",
    ARRAY_TABLE = "ZendArrayTableMemoryLocation",
    ARRAY_TABLE_OVERHEAD = "ZendArrayTableOverheadMemoryLocation",
    CLASS_CONSTANT = "ZendClassConstantMemoryLocation",
    CLASS_ENTRY = "ZendClassEntryMemoryLocation",
    CONSTANT = "ZendConstantMemoryLocation",
    OBJECT = "ZendObjectMemoryLocation",
    OP_ARRAY_BODY = "ZendOpArrayBodyMemoryLocation",
    OP_ARRAY_HEADER = "ZendOpArrayHeaderMemoryLocation",
    PROPERTY_INFO = "ZendPropertyInfoMemoryLocation",
    REFERENCE = "ZendReferenceMemoryLocation",
    RESOURCE = "ZendResourceMemoryLocation",
    STRING = "ZendStringMemoryLocation",
    OBJECT_HANDLERS = "ZendObjectHandlersMemoryLocation",
    CONSTANT_EXPRESSION = "ZendAstMemoryLocation",
    LITERALS = "ZendLiteralsMemoryLocation",
    OP_ARRAY_REFCOUNT = "ZendOpArrayRefcountMemoryLocation",
    LIVE_RANGES = "ZendLiveRangesMemoryLocation",
    TRY_CATCH_TABLE = "ZendTryCatchTableMemoryLocation",
    INTERFACES_TABLE = "ClassInterfacesTableMemoryLocation",
    TRAIT_NAMES = "ClassTraitNamesMemoryLocation",
    PROPERTIES_INFO_TABLE = "PropertiesInfoTableMemoryLocation",
    MUTABLE_DATA = "ClassMutableDataMemoryLocation",
    PROPERTY_HOOKS = "PropertyHooksTableMemoryLocation",
    INI_ENTRY = "ZendIniEntryMemoryLocation",
    VM_STACK_HEADER = "VmStackArenaHeaderMemoryLocation",
    VM_STACK_UNUSED = "UnusedVmStackMemoryLocation",
    CALLBACK_STACK = "ZendStackMemoryLocation",
    ATTRIBUTE = "ZendAttributeMemoryLocation",
    INTERNAL_DATA = "InternalDataMemoryLocation",
    ARENA = "ZendArenaMemoryLocation",
    HUGE_LIST = "ZendMmHugeListMemoryLocation",
    UNATTRIBUTED = "UnattributedMemoryLocation",
}

names! {
    /// The region of PHP's memory that a range is in.
    Region:
    HEAP = "zend_mm_heap",
    HUGE = "zend_mm_huge",
    VM_STACK = "vm_stack",
    COMPILER_ARENA = "compiler_arena",
}

crate::serialized::serialized_by_name!(Strength);

/// Whether a reference keeps its target alive.
///
/// # Examples
///
/// ```
/// use borehole_heap::Strength;
///
/// assert_eq!(("weak".parse(), Strength::Strong.to_string()), (Ok(Strength::Weak), "strong".to_owned()));
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Strength {
    /// It counts in the target's reference count.
    #[default]
    Strong,
    /// It does not: in the tables of objects and resources, weak references, keys of weak maps, and symbol tables of running
    /// code.
    Weak,
    /// It belongs to the engine: an object's class or handlers.
    Structural,
}

impl Strength {
    /// All of them.
    pub const ALL: &'static [Self] = &[Self::Strong, Self::Weak, Self::Structural];

    /// The name in databases.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Strong => "strong",
            Self::Weak => "weak",
            Self::Structural => "structural",
        }
    }
}

named!(Strength, "strength");
