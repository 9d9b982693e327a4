//! `FUNCTION FILE:LINE`, the frames of text profiles of PHP.
//!
//! Names and paths may hold spaces and are not quoted. The rules, in this order:
//!
//! 1. The line is the text after the last colon.
//! 2. If the rest ends with ` <internal>`, ` [native]` or ` <VM>`, that is the file.
//! 3. Otherwise the file begins after the first space that is followed by `/`: an absolute path.
//! 4. Otherwise the file begins after the first space (`<main> Command line code`).
//!
//! In 3 and 4 a space does not count while the name before it is unfinished. PHP puts paths into two kinds of names,
//! and both mark their end: a closure (`{closure:/a b/c.php:12}`) with a line and a brace, an anonymous class
//! (`class@anonymous`, a NUL byte, `/a b/c.php:3$0`) with a line, a dollar sign and a hexadecimal number.
//!
//! Source: names as PHP 7.4 to 8.6 makes them, seen in `corpus/phpspy`.

use memchr::{memchr, memchr_iter, memmem};

/// Placeholders for an absent file.
const PSEUDO_FILES: [&[u8]; 3] = [b" <internal>", b" [native]", b" <VM>"];

/// Splits `FUNCTION FILE` by the rules of the module; `None` if there is no space.
pub(crate) fn split_function(text: &[u8]) -> Option<(&[u8], &[u8])> {
    let cut = pseudo_file(text).or_else(|| absolute_path(text)).or_else(|| first_space(text))?;
    Some((&text[..cut], &text[cut + 1..]))
}

fn pseudo_file(text: &[u8]) -> Option<usize> {
    PSEUDO_FILES.iter().find(|file| text.ends_with(file)).map(|file| text.len() - file.len())
}

fn absolute_path(text: &[u8]) -> Option<usize> {
    memmem::find_iter(text, b" /").find(|&cut| is_finished(&text[..cut]))
}

fn first_space(text: &[u8]) -> Option<usize> {
    memchr_iter(b' ', text).find(|&cut| is_finished(&text[..cut])).or_else(|| memchr(b' ', text))
}

/// Whether a path within the name is complete.
fn is_finished(name: &[u8]) -> bool {
    closure_is_finished(name) && anonymous_class_is_finished(name)
}

fn closure_is_finished(name: &[u8]) -> bool {
    if memmem::find(name, b"{closure:").is_none() {
        return true;
    }
    name.strip_suffix(b"}").is_some_and(ends_with_line)
}

fn anonymous_class_is_finished(name: &[u8]) -> bool {
    let Some(nul) = memchr(0, name) else { return true };
    let path = &name[nul + 1..];
    memchr_iter(b'$', path).any(|at| ends_with_line(&path[..at]) && is_class_key(&path[at + 1..]))
}

/// Whether the text ends with a colon and digits.
fn ends_with_line(text: &[u8]) -> bool {
    let digits = text.iter().rev().take_while(|byte| byte.is_ascii_digit()).count();
    digits > 0 && text[..text.len() - digits].ends_with(b":")
}

/// Whether the text is what follows the dollar sign of an anonymous class: a number, and optionally a method.
fn is_class_key(text: &[u8]) -> bool {
    let digits = text.iter().take_while(|byte| byte.is_ascii_hexdigit()).count();
    let rest = &text[digits..];
    rest.is_empty() || rest.starts_with(b"::")
}

/// The parts of a frame's text; `None` for an unknown file or line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FrameLocation<'a> {
    pub(crate) function: &'a [u8],
    pub(crate) file: Option<&'a [u8]>,
    pub(crate) line: Option<i64>,
}

/// Parses `FUNCTION FILE:LINE` in exactly the form that our writers use, in which the line -1 is unknown; `None` for any other
/// text. Joining the parts restores the text byte for byte.
pub(crate) fn parse(text: &[u8]) -> Option<FrameLocation<'_>> {
    let colon = memchr::memrchr(b':', text)?;
    let line = canonical_decimal(&text[colon + 1..])?;
    let place = &text[..colon];
    let (function, file) = split_function(place)?;
    // rbspy writes `name - file:line`, with spaces in the name as well: not our form.
    let is_dashed =
        function.ends_with(b" -") || (!file.starts_with(b"/") && memmem::find(place, b" - ").is_some());
    (!is_dashed).then_some(FrameLocation { function, file: Some(file), line: (line != -1).then_some(line) })
}

/// A number in our form: no plus sign, no leading zeros, no negative zero.
fn canonical_decimal(text: &[u8]) -> Option<i64> {
    let digits = text.strip_prefix(b"-").unwrap_or(text);
    let is_canonical = digits.first().is_some_and(|&first| first != b'+' && (first != b'0' || text == b"0"));
    if is_canonical { decimal(text) } else { None }
}

/// A decimal number with an optional sign.
pub(crate) fn decimal(text: &[u8]) -> Option<i64> {
    std::str::from_utf8(text).ok()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn split(text: &str) -> (&str, &str) {
        let (function, file) = split_function(text.as_bytes()).expect("a space");
        (std::str::from_utf8(function).unwrap(), std::str::from_utf8(file).unwrap())
    }

    #[test]
    fn plain_name_and_path() {
        assert_eq!(split("App\\Db::query /app/Db.php"), ("App\\Db::query", "/app/Db.php"));
    }

    #[test]
    fn path_with_spaces() {
        assert_eq!(split("f /my dir/a b.php"), ("f", "/my dir/a b.php"));
    }

    #[test]
    fn code_from_the_command_line() {
        assert_eq!(split("<main> Command line code"), ("<main>", "Command line code"));
    }

    #[test]
    fn evaluated_code() {
        let file = "/b.php(3) : eval()'d code";
        assert_eq!(split("{closure} /b.php(3) : eval()'d code"), ("{closure}", file));
        let text = "{closure:/b.php(3) : eval()'d code:1} /b.php(3) : eval()'d code";
        assert_eq!(split(text), ("{closure:/b.php(3) : eval()'d code:1}", file));
    }

    #[test]
    fn closure_with_spaces_in_its_path() {
        let text = "N\\{closure:/path with /space/f.php:12} /path with /space/f.php";
        assert_eq!(split(text), ("N\\{closure:/path with /space/f.php:12}", "/path with /space/f.php"));
    }

    #[test]
    fn closure_in_code_from_the_command_line() {
        let text = "{closure:Command line code:1} Command line code";
        assert_eq!(split(text), ("{closure:Command line code:1}", "Command line code"));
    }

    #[test]
    fn closure_within_a_closure() {
        let text = "A::{closure:{closure:A::b c():5}:5} /a.php";
        assert_eq!(split(text), ("A::{closure:{closure:A::b c():5}:5}", "/a.php"));
    }

    #[test]
    fn closure_that_never_ends_is_cut_at_the_first_space() {
        assert_eq!(split("{closure:x y.php"), ("{closure:x", "y.php"));
    }

    #[test]
    fn anonymous_class_with_spaces_in_its_path() {
        let text = "class@anonymous\0/a $x /b.php:3$0::run /a $x /b.php";
        assert_eq!(split(text), ("class@anonymous\0/a $x /b.php:3$0::run", "/a $x /b.php"));
    }

    #[test]
    fn pseudo_files_take_all_before_them_as_the_name() {
        assert_eq!(split("usort <internal>"), ("usort", "<internal>"));
        assert_eq!(split("m::f(int, a /b)+0x1 [native]"), ("m::f(int, a /b)+0x1", "[native]"));
        assert_eq!(split("<VM>::ZEND_ADD <VM>"), ("<VM>::ZEND_ADD", "<VM>"));
    }

    #[test]
    fn names_of_other_languages_before_an_absolute_path() {
        assert_eq!(split("<T as A>::b /src/lib.rs"), ("<T as A>::b", "/src/lib.rs"));
    }

    #[test]
    fn windows_path() {
        assert_eq!(split("f C:\\my dir\\f.php"), ("f", "C:\\my dir\\f.php"));
    }

    #[test]
    fn no_space_is_no_location() {
        assert_eq!(split_function(b"function"), None);
    }

    #[test]
    fn whole_locations_are_exact() {
        let location =
            |function, file: &'static [u8], line| Some(FrameLocation { function, file: Some(file), line });
        assert_eq!(parse(b"f /a.php:3"), location(&b"f"[..], b"/a.php", Some(3)));
        assert_eq!(parse(b"strlen <internal>:-1"), location(b"strlen", b"<internal>", None));
        assert_eq!(parse(b"_start :0"), location(b"_start", b"", Some(0)));
        for other in
            ["f", "f /a.php", "f /a.php:", "f /a.php:03", "f /a.php:+3", "f /a.php:-0", "main (a.py:12)"]
        {
            assert_eq!(parse(other.as_bytes()), None, "{other}");
        }
    }

    #[test]
    fn the_dash_of_rbspy_is_no_part_of_a_path() {
        assert_eq!(parse(b"run - app.rb:3"), None);
        assert_eq!(parse(b"block in run - app.rb:3"), None);
        assert_eq!(parse(b"block in run - /app.rb:3"), None);
        assert!(parse(b"f /my - dir/f.php:3").is_some());
    }
}
