//! The offsets of the fields of PHP's structures: one table, with a row for each field and a column for each release.
//!
//! Source: the headers of the distributions' packages, compiled with debug information, for 7.0.4, 7.2.3, 7.4.33, 8.1.2, 8.2.32
//! to 8.2.36, 8.3.6, 8.4.24, 8.5.7 and 8.6.0RC3, and checked against a process of each; 7.1, 7.3 and 8.0 from the headers that
//! reli ships. All for x86-64. Fields that a walk of the stack does not need are left out.

use crate::release::PhpRelease;

/// Declares a layout from rows of offsets, with a column for each release.
macro_rules! layouts {
    (
        $(#[$about:meta])* $layout:ident:
        $($(#[$doc:meta])* $field:ident: $type:ty = [$($offset:expr),+ $(,)?];)+
    ) => {
        $(#[$about])*
        #[derive(Clone, Copy, Debug)]
        pub(crate) struct $layout {
            $($(#[$doc])* pub(crate) $field: $type,)+
        }

        impl $layout {
            pub(crate) fn of(release: PhpRelease) -> Self {
                $(
                    const _: [$type; PhpRelease::COUNT] = [$($offset),+];
                )+
                Self { $($field: [$($offset),+][release.column()],)+ }
            }
        }
    };
}

pub(crate) use layouts;

layouts! {
    /// The layout of one release: byte offsets, and bits of flags.
    Layout:
    // release                                7.0   7.1   7.2   7.3   7.4   8.0   8.1   8.2   8.3   8.4   8.5   8.6

    /// `zend_executor_globals`: its size in builds without threads. Patch releases only added fields at its end.
    executor_size: usize =                  [1544, 1576, 1592, 1592, 1664, 1696, 1752, 1776, 1792, 1960, 1984, 2200];
    /// `zend_executor_globals.function_table`, `HashTable *`; `class_table` and `zend_constants` follow.
    executor_function_table: usize =        [ 432,  432,  432,  432,  432,  432,  432,  432,  432,  432,  456,  456];
    /// `zend_executor_globals.vm_stack_top`, `zval *`; `vm_stack_end` and `vm_stack` follow.
    executor_stack_top: usize =             [ 456,  456,  456,  456,  456,  456,  456,  456,  456,  456,  480,  480];
    /// `zend_executor_globals.current_execute_data`, `zend_execute_data *`.
    executor_current: usize =               [ 480,  480,  480,  488,  488,  488,  488,  488,  488,  488,  512,  512];
    /// `zend_executor_globals.opline_before_exception`, `zend_op *`.
    executor_before_exception: usize =      [ 856,  864,  864,  880,  880,  880,  880,  880,  880,  952,  976, 1016];

    /// `zend_execute_data.prev_execute_data`, `zend_execute_data *`; `symbol_table`, `zend_array *`, follows.
    frame_previous: usize =                 [  56,   48,   48,   48,   48,   48,   48,   48,   48,   48,   48,   48];

    /// `ZEND_CALL_TOP`, in the second half of `zend_execute_data.This`: called by PHP itself, not by an instruction of the
    /// caller's frame. 0 if unknown.
    frame_top: u32 = [0, 0, 0, 0, 0x2_0000, 0x2_0000, 0x2_0000, 0x2_0000, 0x2_0000, 0x2_0000, 0x2_0000, 0x2_0000];

    /// `zend_op_array.last`, the number of its instructions, `u32`.
    function_op_count: usize =              [  60,   56,   56,   60,   60,   68,   68,   80,   76,   96,   96,   96];
    /// `zend_op_array.opcodes`, `zend_op *`.
    function_ops: usize =                   [  64,   64,   64,   64,   64,   72,   72,   88,   80,  104,  104,  104];
    /// `zend_op_array.filename`, `zend_string *`; `line_start` and `line_end`, `u32`, follow.
    function_file: usize =                  [ 120,  120,  120,  128,  136,  144,  144,  152,  144,  168,  168,  168];
    /// Flags of functions that may leave their address before the request ends: `ZEND_ACC_CLOSURE`, `ZEND_ACC_FAKE_CLOSURE`,
    /// `ZEND_ACC_CALL_VIA_TRAMPOLINE`.
    function_short_lived: u32 = [
        0x30_0000, 0x30_0040, 0x30_0040, 0x30_0040, 0x34_0000, 0xc4_0000,
        0xc4_0000, 0xc4_0000, 0xc4_0000, 0xc4_0000, 0xc4_0000, 0xc4_0000,
    ];

    /// The bit of `ZEND_ACC_CALL_VIA_TRAMPOLINE`: a function that PHP made up for one call.
    function_made_up_bit: u8 =              [  21,   21,   21,   21,   18,   18,   18,   18,   18,   18,   18,   18];

    /// `ZEND_FRAMELESS_ICALL_0`, followed by three opcodes with more arguments: calls of internal functions that get no frame.
    /// 255 if there are none.
    op_frameless: u8 =                      [ 255,  255,  255,  255,  255,  255,  255,  255,  255,  204,  204,  204];

    /// `zend_generator.execute_data`, `zend_execute_data *`; 16 bytes later: `value`, `key` and `retval`, each a `zval`.
    generator_frame: usize =                [  64,   64,   64,   64,   64,   64,   56,   56,   56,   56,   56,   56];
    /// `zend_generator.node.parent`, the `zend_generator *` that it delegates to; null in the running generator. Before it:
    /// `values`, a `zval`, the rest of an array in `yield from`.
    generator_delegate: usize =             [ 160,  160,  160,  160,  160,  160,  152,  152,  152,  152,  152,  152];

    /// `sapi_globals_struct.global_request_time`, `double`: seconds since 1970; 0 between requests and until first used.
    sapi_request_time: usize =              [ 440,  440,  440,  440,  440,  440,  440,  440,  440,  440,  440,  432];
}

/// Offsets that are equal in every release.
pub(crate) mod fixed {
    /// `zend_execute_data.opline`, `zend_op *`.
    pub(crate) const FRAME_OP: usize = 0;
    /// `zend_execute_data.call`: the innermost call being prepared; the calls around it are its predecessors.
    pub(crate) const FRAME_PREPARED: usize = 8;
    /// `zend_execute_data.return_value`, `zval *`; in a generator's frame, the generator.
    pub(crate) const FRAME_RESULT: usize = 16;
    /// `zend_execute_data.func`, `zend_function *`.
    pub(crate) const FRAME_FUNCTION: usize = 24;
    /// `zend_execute_data.This`, a `zval`, which starts with its value.
    pub(crate) const FRAME_THIS: usize = 32;
    /// `This.u1.type_info`: how it was called.
    pub(crate) const FRAME_CALL: usize = 40;
    /// `This.u2.num_args`: the number of arguments passed.
    pub(crate) const FRAME_GIVEN: usize = 44;
    /// The number of bytes read of a `zend_execute_data`.
    pub(crate) const FRAME_SIZE: usize = 64;

    /// `zend_function.type`.
    pub(crate) const FUNCTION_TYPE: usize = 0;
    /// `ZEND_INTERNAL_FUNCTION`, one of these types.
    pub(crate) const FUNCTION_INTERNAL: u8 = 1;
    pub(crate) const FUNCTION_FLAGS: usize = 4;
    /// `function_name`, `zend_string *`.
    pub(crate) const FUNCTION_NAME: usize = 8;
    /// `scope`, `zend_class_entry *`.
    pub(crate) const FUNCTION_SCOPE: usize = 16;
    /// The number of bytes read of a `zend_function`, in every release.
    pub(crate) const FUNCTION_SIZE: usize = 184;

    /// `zend_op`.
    pub(crate) const OP_SIZE: usize = 32;
    /// `op1` and `op2`: for a variable, its distance from its frame.
    pub(crate) const OP_FIRST: usize = 8;
    pub(crate) const OP_SECOND: usize = 12;
    /// `extended_value`: for a call without a frame, the number of its function.
    pub(crate) const OP_EXTENDED: usize = 20;
    pub(crate) const OP_LINE: usize = 24;
    pub(crate) const OP_CODE: usize = 28;
    pub(crate) const OP_SECOND_TYPE: usize = 30;

    /// `zend_compiler_globals.function_table`, `HashTable *`; `class_table` follows.
    pub(crate) const COMPILER_FUNCTION_TABLE: usize = 56;

    /// `ZEND_INTERNAL_CLASS`, a value of `zend_class_entry.type`.
    pub(crate) const CLASS_INTERNAL: u8 = 1;
    /// `zend_class_entry.name`, `zend_string *`.
    pub(crate) const CLASS_NAME: usize = 8;
    /// `zend_class_entry.parent`, `zend_class_entry *`, or the parent's name before the class is linked.
    pub(crate) const CLASS_PARENT: usize = 16;
    /// `zend_class_entry.ce_flags`, `u32`.
    pub(crate) const CLASS_FLAGS: usize = 28;

    /// `zend_string.len`; its bytes follow.
    pub(crate) const STRING_LENGTH: usize = 16;
    pub(crate) const STRING_BYTES: usize = 24;

    /// `HashTable.u.flags`, and `HASH_FLAG_PACKED`: the keys are 0, 1, 2, ….
    pub(crate) const TABLE_FLAGS: usize = 8;
    pub(crate) const TABLE_PACKED: u32 = 4;
    /// The flag for whether it has a table.
    pub(crate) const TABLE_INITIALIZED: u32 = 8;
    /// `HashTable.nTableMask`: the negative number of hashes before the buckets.
    pub(crate) const TABLE_MASK: usize = 12;
    /// `HashTable.arData`, `Bucket *`.
    pub(crate) const TABLE_BUCKETS: usize = 16;
    /// `HashTable.nNumUsed`, `u32`.
    pub(crate) const TABLE_USED: usize = 24;
    pub(crate) const TABLE_SIZE: usize = 56;
    /// `Bucket`: a `zval`, the hash, the key.
    pub(crate) const BUCKET_SIZE: usize = 32;
    /// `val.u1.v.type`: 0 (`IS_UNDEF`) in an unused bucket.
    pub(crate) const BUCKET_KIND: usize = 8;
    pub(crate) const BUCKET_HASH: usize = 16;
    pub(crate) const BUCKET_KEY: usize = 24;

    /// `zval`.
    pub(crate) const VALUE_SIZE: u64 = 16;
    /// The types of a `zval`.
    pub(crate) const KIND_STRING: u8 = 6;
    pub(crate) const KIND_ARRAY: u8 = 7;
    pub(crate) const KIND_OBJECT: u8 = 8;
    pub(crate) const KIND_RESOURCE: u8 = 9;
    pub(crate) const KIND_REFERENCE: u8 = 10;

    /// `zend_executor_globals.symbol_table`, a `HashTable`: the global variables.
    pub(crate) const EXECUTOR_VARIABLES: usize = 304;

    /// `zend_objects_store.top`, `u32`: the handle of the next object if no free one is reused; `size`, also `u32`, follows.
    pub(crate) const OBJECTS_TOP: usize = 8;

    /// `zend_module_entry`.
    pub(crate) const MODULE_SIZE: usize = 168;
    pub(crate) const MODULE_API: usize = 4;
    pub(crate) const MODULE_DEBUG: usize = 8;
    pub(crate) const MODULE_THREADS: usize = 9;
    pub(crate) const MODULE_NAME: usize = 32;
    pub(crate) const MODULE_VERSION: usize = 88;

    /// `zend_vm_stack` and `zend_arena`: the end of the used part, `end`, `prev`.
    pub(crate) const STACK_PAGE_END: usize = 8;
    pub(crate) const STACK_PAGE_PREVIOUS: usize = 16;
    /// `zend_vm_stack`, padded to whole values.
    pub(crate) const STACK_PAGE_HEADER: usize = 32;

    /// `sapi_globals_struct.request_info`: `request_method`.
    pub(crate) const SAPI_METHOD: usize = 8;
    pub(crate) const SAPI_QUERY: usize = 16;
    /// `path_translated`: the path of the script.
    pub(crate) const SAPI_SCRIPT: usize = 40;
    pub(crate) const SAPI_URI: usize = 48;
}
