//! The string numbers of the names that findings look for.

use crate::graph::{Graph, strings};
use crate::sink::StringId;

/// The number of a missing name: a graph without it has no reference or fact of that name.
const ABSENT: StringId = StringId(u32::MAX);

/// Declares the words.
macro_rules! words {
    ($($field:ident = $text:literal,)+) => {
        /// The numbers of the words in a graph.
        #[derive(Clone, Copy, Debug)]
        pub(super) struct KnownWords {
            $(pub(super) $field: StringId,)+
        }

        impl KnownWords {
            const NONE: Self = Self { $($field: ABSENT,)+ };

            fn take(&mut self, text: &[u8], number: StringId) {
                match text {
                    $($text => self.$field = number,)+
                    _ => {}
                }
            }
        }
    };
}

words! {
    object_properties = b"object_properties",
    dynamic_properties = b"dynamic_properties",
    object_handlers = b"object_handlers",
    closure = b"closure",
    this_ptr = b"this_ptr",
    func = b"func",
    op_array = b"op_array",
    array_elements = b"array_elements",
    possible_unused_area = b"possible_unused_area",
    key = b"key",
    value = b"value",
    referenced = b"referenced",
    symbol_table = b"symbol_table",
    static_variables = b"static_variables",
    methods = b"methods",
    count = b"#count",
    is_packed = b"is_packed",
    function_name = b"function_name",
    line_number = b"lineno",
}

/// The maximum length of a word.
const LONGEST: usize = 20;

impl KnownWords {
    /// Finds the words in one pass over all strings.
    pub(super) fn of(graph: &dyn Graph) -> Self {
        let mut words = Self::NONE;
        for string in strings(graph) {
            let text = graph.string(string);
            if text.len() <= LONGEST {
                words.take(text, string);
            }
        }
        words
    }
}
