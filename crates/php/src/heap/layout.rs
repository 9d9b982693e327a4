//! The offsets of fields that only the walk of a heap needs. Sources and columns as in [`crate::layout`]; the end of
//! `zend_class_entry` in 7.1 is taken from 7.0 and 7.2, which are equal there.

use crate::layout::layouts;
use crate::release::PhpRelease;

layouts! {
    /// The layout of one release for the walk of a heap: byte offsets, sizes, and bits of flags. 0: not in this release.
    HeapLayout:
    // release                                7.0   7.1   7.2   7.3   7.4   8.0   8.1   8.2   8.3   8.4   8.5   8.6

    /// `zend_executor_globals.regular_list`, a `HashTable`; `persistent_list`, another, follows.
    executor_regular_list: usize =          [ 536,  544,  544,  560,  560,  560,  560,  560,  568,  584,  608,  656];
    /// `zend_executor_globals.user_error_handler`, a `zval`; `user_exception_handler`, another, and three `zend_stack`
    /// follow: reporting levels, error handlers, exception handlers.
    executor_error_handler: usize =         [ 656,  664,  664,  680,  680,  680,  680,  680,  688,  704,  728,  776];
    /// `zend_executor_globals.ini_directives`, `HashTable *`; `modified_ini_directives`, another, follows.
    executor_ini: usize =                   [ 792,  800,  800,  816,  816,  816,  816,  816,  816,  832,  856,  904];
    /// `zend_executor_globals.objects_store`.
    executor_objects: usize =               [ 816,  824,  824,  840,  840,  840,  840,  840,  840,  856,  880,  928];
    /// `zend_executor_globals.exception`, `zend_object *`; `prev_exception` follows.
    executor_exception: usize =             [ 840,  848,  848,  864,  864,  864,  864,  864,  864,  936,  960, 1008];
    /// `zend_executor_globals.active`, `bool`: whether a request is active.
    executor_active: usize =                [ 968,  976,  976,  992,  992,  992,  992,  992,  992, 1064, 1088, 1128];
    /// `zend_executor_globals.weakrefs`, a `HashTable`.
    executor_weak: usize =                  [   0,    0,    0,    0, 1552, 1552, 1560, 1568, 1560, 1648, 1672, 1712];

    /// `zend_compiler_globals.arena`, `zend_arena *`.
    compiler_arena: usize =                 [ 400,  416,  408,  408,  384,  328,  328,  328,  328,  360,  360,  360];
    /// `zend_compiler_globals.ast_arena`, `zend_arena *`.
    compiler_ast_arena: usize =             [2552, 2584,  504,  504,  480,  424,  424,  424,  424,  456,  456,  456];
    /// `zend_compiler_globals.interned_strings`, a `HashTable`.
    compiler_strings: usize =               [2464, 2496,  416,  416,  392,  336,  336,  336,  336,  368,  368,  368];
    /// `zend_compiler_globals.map_ptr_base`, `void *`: the base of map pointers that are offsets.
    compiler_map_base: usize =              [   0,    0,    0,    0,  528,  472,  480,  480,  480,  512,  512,  512];
    /// The number added to an odd map pointer to get its slot's offset from `map_ptr_base`: the base is biased since 8.0.
    map_bias: u64 =                         [   0,    0,    0,    0,    1,    0,    0,    0,    0,    0,    0,    0];
    /// Whether a map pointer that is not an offset points to the pointer, instead of being the pointer itself.
    map_indirect: u8 =                      [   0,    0,    0,    0,    1,    1,    1,    0,    0,    0,    0,    0];

    /// `zend_execute_data`, padded to whole `zval`s; its variables follow.
    frame_size: usize =                     [  96,   80,   80,   80,   80,   80,   80,   80,   80,   80,   80,   80];
    /// `zend_execute_data.extra_named_params`, `zend_array *`.
    frame_named_params: usize =             [   0,    0,    0,    0,    0,   72,   72,   72,   72,   72,   72,   72];
    /// `ZEND_CALL_HAS_SYMBOL_TABLE`, in all of `This.u1.type_info`; in 7.0, a pointer that is not null says so.
    call_has_symbols: u32 = [
        0, 0x1000_0000, 0x10_0000, 0x10_0000, 0x10_0000, 0x10_0000,
        0x10_0000, 0x10_0000, 0x10_0000, 0x10_0000, 0x10_0000, 0x10_0000,
    ];
    /// `ZEND_CALL_HAS_EXTRA_NAMED_PARAMS`.
    call_has_named_params: u32 = [
        0, 0, 0, 0, 0, 0x0800_0000, 0x0800_0000, 0x0800_0000, 0x0800_0000, 0x0800_0000, 0x0800_0000, 0x0800_0000,
    ];

    /// `zend_op_array`.
    function_size: usize =                  [ 208,  224,  224,  216,  224,  232,  240,  248,  240,  256,  256,  256];
    /// `zend_op_array.attributes`, `HashTable *`.
    function_attributes: usize =            [   0,    0,    0,    0,    0,   48,   48,   48,   48,   48,   48,   48];
    /// `zend_op_array.last_var`, `u32`.
    function_variable_count: usize =        [  72,   72,   72,   52,   52,   60,   60,   76,   72,   92,   92,   92];
    /// `zend_op_array.T`, the number of its temporaries, `u32`.
    function_temporary_count: usize =       [  76,   76,   76,   56,   56,   64,   64,   56,   64,   72,   72,   72];
    /// `zend_op_array.vars`, `zend_string **`.
    function_variables: usize =             [  80,   80,   80,   88,   96,  104,  104,  112,  104,  128,  128,  128];
    /// `zend_op_array.run_time_cache`, a map pointer.
    function_cache: usize =                 [ 168,  168,  168,   72,   72,   80,   80,   64,   56,   56,   56,   56];
    /// `zend_op_array.cache_size`, in bytes, `i32`.
    function_cache_size: usize =            [ 160,  160,  160,   48,   48,   56,   56,   72,   68,   88,   88,   88];
    /// `zend_op_array.refcount`, `u32 *`.
    function_refcount: usize =              [  48,   48,   48,   96,  104,  112,  112,  120,  112,  136,  136,  136];
    /// `zend_op_array.live_range`, `zend_live_range *`; 8 bytes before it: `last_live_range`, `u32`.
    function_live_ranges: usize =           [   0,   96,   96,  112,  120,  128,  128,  136,  128,  152,  152,  152];
    /// `zend_op_array.try_catch_array`, `zend_try_catch_element *`; 12 bytes before it: `last_try_catch`, `u32`.
    function_tries: usize =                 [ 104,  104,  104,  120,  128,  136,  136,  144,  136,  160,  160,  160];
    /// `zend_op_array.static_variables`, `HashTable *`: the initial values.
    function_statics: usize =               [ 112,  112,  112,   80,   88,   96,   96,  104,   96,  120,  120,  120];
    /// `zend_op_array.static_variables_ptr`, a map pointer to the values of this request.
    function_statics_map: usize =           [   0,    0,    0,    0,   80,   88,   88,   96,   88,  112,  112,  112];
    /// `zend_op_array.doc_comment`, `zend_string *`.
    function_doc: usize =                   [ 136,  136,  136,  144,  152,  160,  160,  168,  160,   64,   64,   64];
    /// `zend_op_array.literals`, `zval *`.
    function_literals: usize =              [ 152,  152,  152,  160,  168,  176,  176,  184,  176,  192,  192,  192];
    /// `zend_op_array.last_literal`, the number of literals, `u32`.
    function_literal_count: usize =         [ 148,  148,  148,  152,  160,  168,  168,  176,  168,  184,  184,  184];
    /// `zend_op_array.dynamic_func_defs`, `zend_op_array **`; 12 bytes before it: `num_dynamic_func_defs`, `u32`.
    function_inner: usize =                 [   0,    0,    0,    0,    0,    0,  184,  192,  184,  200,  200,  200];
    /// The bit of `ZEND_ACC_HAS_RETURN_TYPE`: an extra argument before the first is the return type.
    function_returns_type_bit: u8 =         [  30,   30,   30,   30,   13,   13,   13,   13,   13,   13,   13,   13];
    /// The bit of `ZEND_ACC_VARIADIC`: there is an extra argument after the last.
    function_variadic_bit: u8 =             [  24,   24,   24,   24,   14,   14,   14,   14,   14,   14,   14,   14];
    /// `zend_arg_info`, of a user function.
    argument_size: usize =                  [  24,   24,   24,   24,   24,   32,   32,   32,   32,   32,   32,   32];

    /// `zend_class_entry`.
    class_size: usize =                     [ 504,  504,  504,  448,  456,  464,  496,  504,  512,  520,  520,  528];
    /// `zend_class_entry.default_properties_count`, `i32`; `default_static_members_count` follows.
    class_property_count: usize =           [  32,   32,   32,   32,   32,   32,   32,   32,   32,   32,   32,   36];
    /// The bit of `ZEND_ACC_USE_GUARDS` in `zend_class_entry.ce_flags`: one more value follows the properties of objects.
    class_guards_bit: u8 =                  [  24,   24,   24,   24,   11,   11,   11,   11,   11,   11,   30,   30];
    /// `zend_class_entry.default_properties_table`, `zval *`; `default_static_members_table` and `static_members_table`, a
    /// map pointer, follow; then the `HashTable`s `function_table`, `properties_info` and `constants_table`.
    class_property_defaults: usize =        [  40,   40,   40,   40,   40,   40,   40,   40,   40,   40,   40,   48];
    /// Whether `static_members_table` points to the pointer, although it is not a map pointer.
    class_statics_indirect: u8 =            [   0,    0,    0,    1,    0,    0,    0,    0,    0,    0,    0,    0];
    /// `zend_class_entry.mutable_data`, a map pointer to the data that a class in opcache's memory has in each process.
    class_mutable: usize =                  [   0,    0,    0,    0,    0,    0,  232,  232,  232,  232,  232,  240];
    /// `zend_class_mutable_data`. With 32 bytes it ends with `backed_enum_table`, a `HashTable *`.
    class_mutable_size: u64 =               [   0,    0,    0,    0,    0,    0,   24,   32,   32,   32,   32,   32];
    /// `zend_class_entry.properties_info_table`, `zend_property_info **`.
    class_property_table: usize =           [   0,    0,    0,    0,  232,  232,  248,  248,  248,  248,  248,  256];
    /// `zend_class_entry.create_object`, the constructor of objects with more than properties.
    class_create: usize =                   [ 392,  392,  392,  344,  352,  352,  368,  376,  384,  384,  384,  392];
    /// `zend_class_entry.num_interfaces`, `u32`; `num_traits` follows.
    class_interface_count: usize =          [ 440,  440,  440,  384,  392,  392,  408,  416,  424,  424,  424,  432];
    /// `zend_class_entry.interfaces`, `zend_class_entry **`.
    class_interfaces: usize =               [ 448,  448,  448,  392,  400,  400,  416,  424,  432,  440,  440,  448];
    /// `zend_class_entry.trait_names`, `zend_class_name *`.
    class_trait_names: usize =              [   0,    0,    0,    0,  408,  408,  424,  432,  440,  448,  448,  456];
    /// `zend_class_entry.attributes`, `HashTable *`.
    class_attributes: usize =               [   0,    0,    0,    0,    0,  432,  448,  456,  464,  472,  472,  480];
    /// `zend_class_entry.backed_enum_table`, `HashTable *`.
    class_enum_table: usize =               [   0,    0,    0,    0,    0,    0,  464,  472,  480,  488,  488,  496];
    /// `zend_class_entry.info.user.filename`, `zend_string *`; `line_start` and `line_end` follow.
    class_file: usize =                     [ 480,  480,  480,  424,  432,  440,  472,  480,  488,  504,  504,  512];
    /// `zend_class_entry.doc_comment`, `zend_string *`.
    class_doc: usize =                      [ 496,  496,  496,  440,  448,  456,  488,  496,  504,  496,  496,  504];

    /// `zend_property_info`.
    property_size: usize =                  [  32,   32,   32,   32,   40,   56,   56,   56,   56,   72,   72,   72];
    /// `zend_property_info.attributes`, `HashTable *`.
    property_attributes: usize =            [   0,    0,    0,    0,    0,   24,   24,   24,   24,   24,   24,   24];
    /// `zend_property_info.hooks`, `zend_function **`.
    property_hooks: usize =                 [   0,    0,    0,    0,    0,    0,    0,    0,    0,   64,   64,   64];
    /// `zend_property_info.type`, and `zend_class_constant.type`, which came later; 0 if types are laid out in another way.
    property_type: usize =                  [   0,    0,    0,    0,    0,    0,    0,   40,   40,   40,   40,   40];
    constant_type: usize =                  [   0,    0,    0,    0,    0,    0,    0,    0,   40,   40,   40,   40];
    /// `ZEND_ACC_STATIC`.
    property_static: u32 =                  [   1,    1,    1,    1,   16,   16,   16,   16,   16,   16,   16,   16];

    /// `zend_class_constant`; 7.0 has values in its place.
    class_constant_size: usize =            [   0,   32,   32,   32,   32,   40,   40,   40,   56,   56,   56,   56];
    /// `zend_class_constant.attributes`, `HashTable *`.
    class_constant_attributes: usize =      [   0,    0,    0,    0,    0,   24,   24,   24,   24,   24,   24,   24];
    /// `zend_constant`.
    constant_size: usize =                  [  32,   32,   32,   24,   24,   24,   24,   24,   24,   24,   40,   40];
    /// `zend_constant.filename`, `zend_string *`; `attributes` follows.
    constant_file: usize =                  [   0,    0,    0,    0,    0,    0,    0,    0,    0,    0,   24,   24];

    /// `zend_reference`.
    reference_size: usize =                 [  24,   24,   24,   24,   32,   32,   32,   32,   32,   32,   32,   32];
    /// `zend_resource`.
    resource_size: usize =                  [  24,   24,   24,   24,   24,   24,   32,   32,   32,   32,   32,   32];
    /// `zend_resource.type`, `i32`.
    resource_type: usize =                  [  12,   12,   12,   12,   12,   12,   16,   16,   16,   16,   16,   16];
    /// `zend_closure`; private, and found in a process of each release.
    closure_size: u64 =                     [ 296,  312,  312,  304,  312,  320,  328,  336,  328,  344,  344,  336];
    /// `zend_generator`; 0 if unknown.
    generator_size: u64 =                   [ 344,    0,  352,    0,  296,    0,  272,  272,  272,  280,  280,  280];
    /// `zend_fiber`.
    fiber_size: u64 =                       [   0,    0,    0,    0,    0,    0,  296,  320,  328,  328,  328,  328];
    /// `zend_object_handlers`.
    handlers_size: usize =                  [ 224,  224,  224,  224,  232,  200,  200,  200,  200,  200,  208,  208];

    /// An element of a packed array.
    packed_element: usize =                 [  32,   32,   32,   32,   32,   32,   32,   16,   16,   16,   16,   16];
    /// `TABLE_INITIALIZED`, or 0: the value of this flag if there is no table.
    array_without_table: u32 =              [   0,    0,    0,    8,    8,    8,    8,    8,    8,    8,    8,    8];

    /// A type of `zval`: `IS_CONSTANT`, a string that names a constant.
    kind_constant: u8 =                     [  11,   11,   11,  255,  255,  255,  255,  255,  255,  255,  255,  255];
    /// A type of `zval`: `IS_CONSTANT_AST`.
    kind_expression: u8 =                   [  12,   12,   12,   11,   11,   11,   11,   11,   11,   11,   11,   11];
    /// A type of `zval`: `IS_PTR`.
    kind_pointer: u8 =                      [  17,   17,   17,   14,   14,   13,   13,   13,   13,   13,   13,   13];
    /// A type of `zval`: `IS_INDIRECT`.
    kind_indirect: u8 =                     [  15,   15,   15,   13,   13,   12,   12,   12,   12,   12,   12,   12];
    /// The bits of the type in `u.type_info` of a reference-counted value.
    header_kind: u32 =                      [0xff, 0xff, 0xff,   15,   15,   15,   15,   15,   15,   15,   15,   15];
    /// `IS_STR_INTERNED` there: a string that PHP keeps only once.
    header_interned: u32 =                  [0x200, 0x200, 0x200, 64,   64,   64,   64,   64,   64,   64,   64,   64];
}
