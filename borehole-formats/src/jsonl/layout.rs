//! What writer and reader of the lines agree on beside the keys.

use crate::function_name::FunctionName;

/// The version of the lines, in the first of them. It changes when a reader of today would misread the
/// lines of tomorrow; a new key or a new type of line does not change it.
pub const SCHEMA_VERSION: u64 = 1;

/// The parts of a PHP function's name: namespace, class, method.
pub(super) type Parts<'a> = [&'a [u8]; 3];

/// What a frame's name parts are where its line does not say: in a segment of `format`, for a frame that
/// is machine code or not.
///
/// PHP names come in parts in `rbt` files only, and there nearly always as [`FunctionName::split`] says; so lines of
/// either sort need no keys for the parts.
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
