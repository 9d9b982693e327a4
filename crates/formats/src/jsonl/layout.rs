//! The conventions of writer and reader beside the keys.

use crate::function_name::FunctionName;

/// The version of the lines, stated in the first of them. It changes if current readers would misread the new lines; a
/// new key or a new type of line does not change it.
pub const SCHEMA_VERSION: u64 = 1;

/// The parts of a PHP function's name: namespace, class, method.
pub(super) type Parts<'a> = [&'a [u8]; 3];

/// The default name parts of a frame whose line states none: in a segment of `format`, for a frame that is native or
/// not.
///
/// Only `rbt` files have PHP names in parts, nearly always those of [`FunctionName::split`]; so lines of either format
/// need no keys for the parts.
pub(super) fn parts_unsaid<'a>(format: &str, native: bool, function: &'a [u8]) -> Option<Parts<'a>> {
    (format == "rbt" && !native).then(|| {
        let FunctionName { namespace, class, method } = FunctionName::split(function);
        [namespace, class, method]
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_php_frames_of_rbt_have_parts_unsaid() {
        assert_eq!(parts_unsaid("rbt", false, b"A::b"), Some([b"".as_slice(), b"A", b"b"]));
        assert_eq!(parts_unsaid("rbt", true, b"A::b"), None);
        assert_eq!(parts_unsaid("folded", false, b"A::b"), None);
    }
}
