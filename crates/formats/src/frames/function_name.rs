//! PHP function names: one string for display, three for the file.

use memchr::memmem;

/// The parts of a function's name that a `FRAME_DEF` stores.
///
/// The decomposition is reli's, with its losses: a leading backslash, or a class without a name.
///
/// Source: reli 0.12, `BinaryTraceWriter` (splitting) and `BinaryTraceReader` (joining); the corpus file
/// `rbt/function_names.json` lists its results.
///
/// # Examples
///
/// ```
/// use borehole_formats::rbt::FunctionName;
///
/// let name = FunctionName::split(b"App\\Db::query");
/// assert_eq!((name.namespace, name.class, name.method), (&b"App"[..], &b"Db"[..], &b"query"[..]));
/// assert_eq!(name.join(), b"App\\Db::query");
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FunctionName<'a> {
    /// The part before the last backslash of the class, or of a function without a class.
    pub namespace: &'a [u8],
    /// The class.
    pub class: &'a [u8],
    /// The method or function.
    pub method: &'a [u8],
}

impl<'a> FunctionName<'a> {
    /// Splits `name` into its parts.
    #[must_use]
    pub fn split(name: &'a [u8]) -> Self {
        match memmem::rfind(name, b"::") {
            Some(at) if at > 0 => {
                let (namespace, class) = at_last_backslash(&name[..at]);
                Self { namespace, class, method: &name[at + 2..] }
            }
            found => {
                let (namespace, method) = at_last_backslash(found.map_or(name, |at| &name[at + 2..]));
                Self { namespace, class: b"", method }
            }
        }
    }

    /// Appends the name for display.
    pub fn join_into(&self, out: &mut Vec<u8>) {
        if !self.namespace.is_empty() {
            out.extend_from_slice(self.namespace);
            out.push(b'\\');
        }
        if !self.class.is_empty() {
            out.extend_from_slice(self.class);
            out.extend_from_slice(b"::");
        }
        out.extend_from_slice(self.method);
    }

    /// The name for display.
    #[must_use]
    pub fn join(&self) -> Vec<u8> {
        let mut name = Vec::new();
        self.join_into(&mut name);
        name
    }
}

fn at_last_backslash(name: &[u8]) -> (&[u8], &[u8]) {
    match memchr::memrchr(b'\\', name) {
        Some(at) => (&name[..at], &name[at + 1..]),
        None => (b"", name),
    }
}
