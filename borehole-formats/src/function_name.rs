//! PHP function names: one string for people, three for the file.

use memchr::memmem;

/// A function's name in the parts that a `FRAME_DEF` stores.
///
/// The decomposition is reli's, and loses what reli's loses: a leading backslash, or a class without a name.
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
    /// What stands before the last backslash of the class, or of a function without class.
    pub namespace: &'a [u8],
    /// The class.
    pub class: &'a [u8],
    /// The method or function.
    pub method: &'a [u8],
}

impl<'a> FunctionName<'a> {
    /// The parts of `name`.
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

    /// Appends the name as a person reads it.
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

    /// The name as a person reads it.
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
