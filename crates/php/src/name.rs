//! The names of functions in profiles.

use borehole_model::{NameParts, StringId, TableFull, Tables};

/// The name of code outside of functions.
const MAIN: &[u8] = b"<main>";

/// The name of a function, whole and in parts.
#[derive(Clone, Copy, Debug)]
pub(crate) struct InternedName {
    pub(crate) whole: StringId,
    pub(crate) parts: NameParts,
}

impl InternedName {
    /// The name of the function `function` (`None`: code of a file or of `eval`) in the class `class`.
    pub(crate) fn intern(
        tables: &mut Tables,
        class: Option<&[u8]>,
        function: Option<&[u8]>,
    ) -> Result<Self, TableFull> {
        let function = function.unwrap_or(MAIN);
        let Some(class) = class else {
            let (namespace, method) = split_namespace(function);
            let parts = [namespace, b"", method];
            return Self::of(tables, function, parts);
        };
        // In an anonymous class, a NUL, the file and a number follow the readable part.
        let class = class.split(|&byte| byte == 0).next().unwrap_or_default();
        let whole = [class, b"::", function].concat();
        let (namespace, class) = split_namespace(class);
        Self::of(tables, &whole, [namespace, class, function])
    }

    fn of(tables: &mut Tables, whole: &[u8], parts: [&[u8]; 3]) -> Result<Self, TableFull> {
        let whole = tables.intern_string(whole)?;
        let [namespace, class, method] = parts;
        let parts = NameParts {
            namespace: tables.intern_string(namespace)?,
            class: tables.intern_string(class)?,
            method: tables.intern_string(method)?,
        };
        Ok(Self { whole, parts })
    }
}

/// Splits at the last backslash before any brace of the name: `{closure:App\f():3}` has no namespace.
fn split_namespace(name: &[u8]) -> (&[u8], &[u8]) {
    let plain = name.iter().position(|&byte| byte == b'{').unwrap_or(name.len());
    match name[..plain].iter().rposition(|&byte| byte == b'\\') {
        Some(at) => (&name[..at], &name[at + 1..]),
        None => (b"", name),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_put_together_are_the_whole_name() {
        type Case = (Option<&'static [u8]>, Option<&'static [u8]>, [&'static str; 4]);
        let cases: [Case; 8] = [
            (None, None, ["<main>", "", "", "<main>"]),
            (None, Some(b"strlen"), ["strlen", "", "", "strlen"]),
            (None, Some(b"App\\Db\\run"), ["App\\Db\\run", "App\\Db", "", "run"]),
            (None, Some(b"App\\{closure}"), ["App\\{closure}", "App", "", "{closure}"]),
            (None, Some(b"{closure:App\\f():3}"), ["{closure:App\\f():3}", "", "", "{closure:App\\f():3}"]),
            (Some(b"Db"), Some(b"run"), ["Db::run", "", "Db", "run"]),
            (
                Some(b"App\\Db"),
                Some(b"{closure:App\\Db::f():3}"),
                ["App\\Db::{closure:App\\Db::f():3}", "App", "Db", "{closure:App\\Db::f():3}"],
            ),
            (
                Some(b"App\\Base@anonymous\0/srv/app/x\\y.php:3$0"),
                Some(b"run"),
                ["App\\Base@anonymous::run", "App", "Base@anonymous", "run"],
            ),
        ];
        let mut tables = Tables::default();
        for (class, function, expected) in cases {
            let InternedName { whole, parts } = InternedName::intern(&mut tables, class, function).unwrap();
            let found = [whole, parts.namespace, parts.class, parts.method];
            let found = found.map(|id| String::from_utf8_lossy(tables.string(id)).into_owned());
            assert_eq!(found, expected);
        }
    }
}
