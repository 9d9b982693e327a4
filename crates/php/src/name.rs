//! The names of functions in profiles.

use std::borrow::Cow;

use borehole_model::{NameParts, StringId, TableFull, Tables};

/// The name of code outside of functions.
const MAIN: &[u8] = b"<main>";

/// The name of every closure before PHP 8.4, after its namespace.
const CLOSURE: &[u8] = b"{closure}";

/// The name of a function as it is shown: of one line, and for a closure with the place where it begins.
///
/// PHP 8.4 names closures so (`{closure:App\Db::run():12}`, `{closure:/srv/app.php:12}`), with what is hidden in the name of
/// an anonymous class. Older releases call them all `{closure}`: the line follows in a class with a name (`{closure:12}`),
/// otherwise the file and the line.
pub(crate) fn shown<'n>(
    name: &'n [u8],
    class: Option<&[u8]>,
    file: Option<&[u8]>,
    line: u32,
) -> Cow<'n, [u8]> {
    let Some(namespace) = name.strip_suffix(CLOSURE) else { return without_hidden(name) };
    let is_enough = class.is_some_and(|class| !class.contains(&0));
    let file = file.filter(|_| !is_enough).map_or_else(Vec::new, |file| [file, b":"].concat());
    Cow::Owned([namespace, b"{closure:", &file, line.to_string().as_bytes(), b"}"].concat())
}

/// The name without what PHP hides in the names of anonymous classes: a NUL, and then `/srv/app.php:3$0`.
fn without_hidden(name: &[u8]) -> Cow<'_, [u8]> {
    let mut parts = name.split(|&byte| byte == 0);
    let first = parts.next().unwrap_or_default();
    if first.len() == name.len() {
        return Cow::Borrowed(name);
    }
    Cow::Owned(parts.fold(first.to_vec(), |seen, part| [&*seen, after_hidden(part)].concat()))
}

/// The text after the hidden part; empty if that is not complete.
fn after_hidden(part: &[u8]) -> &[u8] {
    let Some(dollar) = part.iter().rposition(|&byte| byte == b'$') else { return b"" };
    let number = &part[dollar + 1..];
    &number[number.iter().take_while(|byte| byte.is_ascii_hexdigit()).count()..]
}

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
        let class = without_hidden(class);
        let whole = [&*class, b"::", function].concat();
        let (namespace, class) = split_namespace(&class);
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
    #[test]
    fn closures_are_named_after_the_place_where_they_begin() {
        let shown = |name: &str, class: Option<&str>| {
            let class = class.map(str::as_bytes);
            String::from_utf8(shown(name.as_bytes(), class, Some(b"/srv/a.php"), 12).into_owned()).unwrap()
        };
        assert_eq!(shown("{closure}", None), "{closure:/srv/a.php:12}");
        assert_eq!(shown("App\\{closure}", None), "App\\{closure:/srv/a.php:12}");
        assert_eq!(shown("App\\{closure}", Some("App\\Db")), "App\\{closure:12}");
        assert_eq!(shown("{closure}", Some("class@anonymous\0/srv/a.php:3$0")), "{closure:/srv/a.php:12}");
        assert_eq!(shown("{closure:App\\f():3}", None), "{closure:App\\f():3}");
        assert_eq!(shown("run", Some("App\\Db")), "run");
        for (hidden, expected) in [
            ("{closure:class@anonymous\0/srv/$a.php:3$0::run():12}", "{closure:class@anonymous::run():12}"),
            ("a@anonymous\0/srv/a.php:3$1f::b", "a@anonymous::b"),
            ("a\0", "a"),
            ("a\0b", "a"),
        ] {
            assert_eq!(shown(hidden, None), expected);
        }
    }
}
