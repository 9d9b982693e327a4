//! The fixed names of links and attributes.

use borehole_heap::{HeapSink, StringId};

/// Declares the words, and their numbers in the sink.
macro_rules! words {
    ($($field:ident = $text:literal,)+) => {
        /// The numbers of the words in the sink.
        #[derive(Clone, Copy, Debug)]
        pub(crate) struct Words {
            $(#[doc = concat!("`", $text, "`.")] pub(crate) $field: StringId,)+
        }

        impl Words {
            /// Adds the words to the sink.
            pub(crate) fn new(sink: &mut impl HeapSink) -> Self {
                Self { $($field: sink.string($text.as_bytes()),)+ }
            }
        }
    };
}

words! {
    // Attributes.
    count = "#count",
    is_internal = "#is_internal",
    is_packed = "is_packed",
    damage = "#damage",
    file = "file",
    line_start = "line_start",
    line_end = "line_end",
    lineno = "lineno",

    // Links, and attributes of the same name.
    array_elements = "array_elements",
    possible_unused_area = "possible_unused_area",
    key = "key",
    value = "value",
    referenced = "referenced",
    object_handlers = "object_handlers",
    object_properties = "object_properties",
    dynamic_properties = "dynamic_properties",
    name = "name",
    info = "info",

    // Call frames.
    func = "func",
    closure = "closure",
    function_name = "function_name",
    function = "function",
    this = "this",
    local_variables = "local_variables",
    symbol_table = "symbol_table",
    extra_named_params = "extra_named_params",

    // Functions.
    op_array = "op_array",
    run_time_cache = "run_time_cache",
    arg_infos = "arg_infos",
    filename = "filename",
    static_variables = "static_variables",
    static_variables_template = "static_variables_template",
    variable_name_table = "variable_name_table",
    dynamic_function_definitions = "dynamic_function_definitions",
    doc_comment = "doc_comment",
    attributes = "attributes",
    literals = "literals",

    // Classes.
    class_entry = "class_entry",
    static_properties = "static_properties",
    property_info = "property_info",
    default_properties = "default_properties",
    default_static_properties = "default_static_properties",
    methods = "methods",
    constants = "constants",
    enum_cases = "backed_enum_table",
    mutable_data = "mutable_data",
    hooks = "hooks",

    // Roots.
    call_frames = "call_frames",
    global_variables = "global_variables",
    function_table = "function_table",
    class_table = "class_table",
    global_constants = "global_constants",
    included_files = "included_files",
    interned_strings = "interned_strings",
    objects_store = "objects_store",
    global_callbacks = "global_callbacks",
    error_handler = "error_handler",
    exception_handler = "exception_handler",
    error_handlers = "error_handlers",
    exception_handlers = "exception_handlers",
    error_reporting_levels = "error_reporting_levels",
    exception = "exception",
    previous_exception = "previous_exception",
    regular_list = "regular_list",
    persistent_list = "persistent_list",
    ini_directives = "ini_directives",
    original_value = "original_value",
    weak_references = "weak_references",
    vm_stack = "vm_stack",
    shutdown_functions = "shutdown_functions",
    autoloaders = "autoloaders",
}
