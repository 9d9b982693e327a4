//! What writer and reader of the lines agree on beside the keys.

/// The version of the lines, in the first of them. It changes when a reader of today would misread the
/// lines of tomorrow; a new key or a new type of line does not change it.
pub const SCHEMA_VERSION: u64 = 1;

/// The format's short name, for errors.
pub(super) const NAME: &str = "jsonl";

/// The name of an unnamed flag of a thread's state: this and the number of the bit.
pub(super) const BIT_PREFIX: &str = "bit";

/// The parts of a PHP function's name: namespace, class, method.
pub(super) type Parts<'a> = [&'a [u8]; 3];

/// What a frame's name parts are where its line does not say: in a segment of `format`, for a frame that
/// is machine code or not.
///
/// PHP names come in parts in `rbt` files only, and there nearly always as [`split_name`] says; so lines of
/// either sort need no keys for the parts.
pub(super) fn parts_unsaid<'a>(format: &str, native: bool, function: &'a [u8]) -> Option<Parts<'a>> {
    (format == "rbt" && !native).then(|| split_name(function))
}

/// A full name in its parts: cut at the last `::`, an empty class part being no class, then what stands
/// before the method at the last backslash.
///
/// Source: reli 0.12, how its trace writer takes function names apart.
pub(super) fn split_name(function: &[u8]) -> Parts<'_> {
    match memchr::memmem::rfind(function, b"::") {
        Some(at) if at > 0 => {
            let (namespace, class) = split_namespace(&function[..at]);
            [namespace, class, &function[at + 2..]]
        }
        found => {
            let (namespace, method) = split_namespace(found.map_or(function, |at| &function[at + 2..]));
            [namespace, b"", method]
        }
    }
}

fn split_namespace(name: &[u8]) -> (&[u8], &[u8]) {
    match memchr::memrchr(b'\\', name) {
        Some(at) => (&name[..at], &name[at + 1..]),
        None => (b"", name),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_cut_at_the_last_colons_then_at_the_last_backslash() {
        let cases: [(&str, [&str; 3]); 9] = [
            ("App\\Db\\Pool::query", ["App\\Db", "Pool", "query"]),
            ("App\\run", ["App", "", "run"]),
            ("<main>", ["", "", "<main>"]),
            ("Db::query", ["", "Db", "query"]),
            ("::b", ["", "", "b"]),
            ("::N\\b", ["N", "", "b"]),
            ("A\\::b", ["A", "", "b"]),
            ("A::{closure:N\\B::c():12}", ["A::{closure:N", "B", "c():12}"]),
            ("", ["", "", ""]),
        ];
        for (name, parts) in cases {
            let found = split_name(name.as_bytes()).map(|part| String::from_utf8_lossy(part).into_owned());
            assert_eq!(found, parts, "{name}");
        }
    }

    #[test]
    fn only_php_frames_of_rbt_have_parts_unsaid() {
        assert_eq!(parts_unsaid("rbt", false, b"A::b"), Some([b"".as_slice(), b"A", b"b"]));
        assert_eq!(parts_unsaid("rbt", true, b"A::b"), None);
        assert_eq!(parts_unsaid("folded", false, b"A::b"), None);
    }
}
