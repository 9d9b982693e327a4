//! The fixed names of links and attributes.

use borehole_heap::{HeapSink, StringId};

/// Declares the words, and their numbers in the sink.
macro_rules! words {
    ($($field:ident $(= $text:literal)?,)+) => {
        #[derive(Clone, Copy, Debug)]
        pub(crate) struct FixedNames {
            $(pub(crate) $field: StringId,)+
        }

        impl FixedNames {
            pub(crate) fn new(sink: &mut impl HeapSink) -> Self {
                Self { $($field: sink.string(words!(@text $field $($text)?).as_bytes()),)+ }
            }
        }
    };
    (@text $field:ident $text:literal) => { $text };
    (@text $field:ident) => { stringify!($field) };
}

words! {
    // Attributes.
    count = "#count", is_internal = "#is_internal", is_packed, damage = "#damage", left_out = "#left_out", file,
    line_start, line_end, lineno,
    // Links, and attributes of the same name.
    array_elements, possible_unused_area, key, value, referenced, object_handlers, object_properties,
    dynamic_properties, name, info,
    // Call frames.
    func, closure, function_name, function, this, local_variables, symbol_table, extra_named_params,
    // Functions.
    op_array, run_time_cache, arg_infos, filename, static_variables, static_variables_template,
    variable_name_table, dynamic_function_definitions, doc_comment, attributes, literals,
    // Classes.
    class_entry, static_properties, property_info, default_properties, default_static_properties, methods,
    constants, enum_cases = "backed_enum_table", mutable_data, hooks, type_name,
    // Roots.
    call_frames, global_variables, function_table, class_table, global_constants, included_files,
    interned_strings, objects_store, global_callbacks, error_handler, exception_handler, error_handlers,
    exception_handlers, error_reporting_levels, exception, previous_exception, regular_list,
    persistent_list, ini_directives, original_value, weak_references, vm_stack, shutdown_functions,
    autoloaders,
}
