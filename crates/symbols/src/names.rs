//! Names of functions as people read them.

use std::collections::HashMap;
use std::fmt::{self, Write as _};
use std::sync::Arc;

use cpp_demangle::{DemangleOptions, ParseOptions, Symbol};

/// The maximum length of a name in bytes. Longer ones are cut; templates of C++ reach thousands of bytes.
pub(crate) const LONGEST_NAME: usize = 16 << 10;

/// The maximum nesting of a mangled name. Each level takes some hundred bytes of the stack.
const DEEPEST_NAME: u32 = 96;

/// The bytes of names to remember. When there are more, they are forgotten and demangled again.
const REMEMBERED_BYTES: usize = 64 << 20;

/// The mark of a name that was cut.
const CUT: &str = "…";

/// A function's name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FunctionText {
    pub(crate) function: Arc<str>,
    /// The mangled name, if it differs.
    pub(crate) system_name: Option<Arc<str>>,
}

/// Names and files that were met, each stored once.
#[derive(Debug, Default)]
pub(crate) struct Names {
    functions: HashMap<Box<[u8]>, FunctionText>,
    files: HashMap<Box<str>, Arc<str>>,
    bytes: usize,
}

impl Names {
    /// The name of a function with this name in the symbol table.
    pub(crate) fn function(&mut self, raw: &[u8]) -> FunctionText {
        if let Some(known) = self.functions.get(raw) {
            return known.clone();
        }
        let text = function_text(raw);
        let system_bytes = text.system_name.as_ref().map_or(0, |name| name.len());
        self.make_room(raw.len() + text.function.len() + system_bytes);
        self.functions.insert(raw.into(), text.clone());
        text
    }

    /// The path of a source file.
    pub(crate) fn file(&mut self, path: &str) -> Arc<str> {
        if let Some(known) = self.files.get(path) {
            return Arc::clone(known);
        }
        let text: Arc<str> = cut(path).into();
        self.make_room(path.len() + text.len());
        self.files.insert(path.into(), Arc::clone(&text));
        text
    }

    fn make_room(&mut self, bytes: usize) {
        self.bytes += bytes;
        if self.bytes > REMEMBERED_BYTES {
            (self.functions, self.files, self.bytes) = (HashMap::new(), HashMap::new(), bytes);
        }
    }
}

fn function_text(raw: &[u8]) -> FunctionText {
    let raw = String::from_utf8_lossy(&raw[..raw.len().min(LONGEST_NAME + 1)]);
    match demangled(&raw) {
        Some(function) if *function != *raw => {
            FunctionText { function: function.into(), system_name: Some(cut(&raw).into()) }
        }
        _ => FunctionText { function: cut(&raw).into(), system_name: None },
    }
}

/// The demangled name; `None` if it is not mangled or too long.
fn demangled(raw: &str) -> Option<String> {
    if raw.len() > LONGEST_NAME {
        return None;
    }
    let mut text = LimitedText::default();
    if let Ok(name) = rustc_demangle::try_demangle(raw) {
        return write!(text, "{name:#}").ok().map(|()| text.0);
    }
    if !raw.starts_with("_Z") && !raw.starts_with("___Z") {
        return None;
    }
    let limits = ParseOptions::default().recursion_limit(DEEPEST_NAME);
    let symbol = Symbol::new_with_options(raw, &limits).ok()?;
    let options = DemangleOptions::new().recursion_limit(DEEPEST_NAME);
    symbol.structured_demangle(&mut text, &options).ok().map(|()| text.0)
}

/// A text of at most [`LONGEST_NAME`] bytes: a short mangled name can stand for an exponentially long one.
#[derive(Default)]
struct LimitedText(String);

impl fmt::Write for LimitedText {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        if self.0.len() + text.len() > LONGEST_NAME {
            return Err(fmt::Error);
        }
        self.0.push_str(text);
        Ok(())
    }
}

/// The text, or as much of it as a name may have.
fn cut(text: &str) -> String {
    if text.len() <= LONGEST_NAME {
        return text.to_owned();
    }
    let end = (0..=LONGEST_NAME - CUT.len()).rev().find(|&end| text.is_char_boundary(end)).unwrap_or(0);
    format!("{}{CUT}", &text[..end])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(raw: &str) -> String {
        Names::default().function(raw.as_bytes()).function.to_string()
    }

    #[test]
    fn names_of_rust_and_cpp_are_readable_and_keep_their_symbol() {
        for (raw, expected) in [
            ("_ZN4core3fmt5Write9write_fmt17h0123456789abcdefE", "core::fmt::Write::write_fmt"),
            ("_RNvCskwGfYPst2Cb_3foo16example_function", "foo::example_function"),
            (
                "_ZNSt6vectorIiSaIiEE9push_backERKi",
                "std::vector<int, std::allocator<int> >::push_back(int const&)",
            ),
            ("_ZN3app4workEi.part.0", "app::work(int) [clone .part.0]"),
        ] {
            let text = Names::default().function(raw.as_bytes());
            assert_eq!((&*text.function, text.system_name.as_deref()), (expected, Some(raw)));
        }
    }

    #[test]
    fn other_names_stay_as_they_are() {
        for raw in ["main", "runtime.(*mcache).refill", "_Zzz", "", "__libc_start_main"] {
            let text = Names::default().function(raw.as_bytes());
            assert_eq!((&*text.function, text.system_name), (raw, None));
        }
        assert_eq!(&*Names::default().function(b"a\xffb").function, "a\u{fffd}b");
    }

    #[test]
    fn short_names_that_stand_for_endless_ones_stay_mangled() {
        // Each parameter is a pair of the type before it.
        let mut raw = "_Z1fI1aE".to_owned();
        for substitution in 0..30 {
            let digits = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ".as_bytes();
            let name = char::from(digits[substitution]);
            raw.push_str(&format!("1pIS{name}_S{name}_E"));
        }
        assert!(shown(&raw).len() <= LONGEST_NAME);
        let deep = format!("_Z1f{}i", "P".repeat(10_000));
        assert_eq!(shown(&deep), deep);
        let long = "x".repeat(LONGEST_NAME + 9);
        assert_eq!(shown(&long).len(), LONGEST_NAME);
    }

    #[test]
    fn names_are_forgotten_before_they_take_too_much() {
        let mut names = Names::default();
        for number in 0..2 * REMEMBERED_BYTES / (2 * LONGEST_NAME) {
            names.file(&format!("{number:0LONGEST_NAME$}"));
            assert!(names.bytes <= REMEMBERED_BYTES);
        }
        assert!(names.files.len() < 2 * REMEMBERED_BYTES / (2 * LONGEST_NAME));
    }
}
