//! The lines of a trace.

use memchr::{memchr, memchr_iter, memmem, memrchr};

use super::{NATIVE, VM};
use crate::frames::location::{decimal, split_function};
use crate::lines::text::excerpt;

/// The content of a line, or of the part between two tabs of a one-line trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Item<'a> {
    Blank,
    /// The text after the depth.
    Frame(&'a [u8]),
    /// The text after the `#`.
    Comment(&'a [u8]),
}

/// Distinguishes frames and comments; `None` for a line of one word, which is neither.
pub(super) fn item(line: &[u8]) -> Option<Item<'_>> {
    let text = line.trim_ascii_start();
    match text.first() {
        None => return Some(Item::Blank),
        Some(b'#') => return Some(Item::Comment(&text[1..])),
        Some(_) => {}
    }
    // The depth is not checked: reli's reader does not check it either, and a missing one changes nothing.
    let (_depth, rest) = split_at_separator(text)?;
    let rest = rest.trim_ascii_end();
    (!rest.is_empty()).then_some(Item::Frame(rest))
}

fn split_at_separator(text: &[u8]) -> Option<(&[u8], &[u8])> {
    let at = text.iter().position(|byte| matches!(byte, b' ' | b'\t'))?;
    Some((&text[..at], &text[at + 1..]))
}

/// The parts of a frame's line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TraceFrame<'a> {
    pub(super) function: &'a [u8],
    /// The file; empty if the line has none.
    pub(super) file: &'a [u8],
    pub(super) line: i64,
    pub(super) opcode: Option<&'a [u8]>,
    /// Whether the line number had a fraction, which is cut off as in reli.
    pub(super) is_rounded: bool,
}

/// Parses the text after the depth: `FUNCTION FILE:LINE`, optionally with `:OPCODE` after it.
pub(super) fn frame(text: &[u8]) -> Result<TraceFrame<'_>, String> {
    let (place, line, opcode) = split_numbers(text).ok_or_else(|| bad_frame(text))?;
    let LineNumber { line, is_rounded } = line_number(line).ok_or_else(|| bad_line_number(line))?;
    let (function, file) = split_place(place).ok_or_else(|| bad_frame(text))?;
    Ok(TraceFrame { function, file, line, opcode, is_rounded })
}

type SplitFrame<'a> = (&'a [u8], &'a [u8], Option<&'a [u8]>);

fn split_numbers(text: &[u8]) -> Option<SplitFrame<'_>> {
    let (place, last) = split_at_last_colon(text)?;
    if is_opcode(last)
        && let Some((place, line)) = split_at_last_colon(place)
        && line_number(line).is_some()
    {
        return Some((place, line, Some(last)));
    }
    Some((place, last, None))
}

fn split_at_last_colon(text: &[u8]) -> Option<(&[u8], &[u8])> {
    let at = memrchr(b':', text)?;
    Some((&text[..at], &text[at + 1..]))
}

/// Whether a word can be the name of an opcode: `ZEND_DO_FCALL`.
pub(super) fn is_opcode(word: &[u8]) -> bool {
    let is_part = |byte: &u8| byte.is_ascii_uppercase() || byte.is_ascii_digit() || *byte == b'_';
    word.first().is_some_and(u8::is_ascii_uppercase) && word.iter().all(is_part)
}

struct LineNumber {
    line: i64,
    is_rounded: bool,
}

fn line_number(text: &[u8]) -> Option<LineNumber> {
    let (whole, fraction) = match memchr(b'.', text) {
        Some(point) => (&text[..point], &text[point + 1..]),
        None => (text, &[][..]),
    };
    let line = decimal(whole)?;
    fraction
        .iter()
        .all(u8::is_ascii_digit)
        .then_some(LineNumber { line, is_rounded: whole.len() < text.len() })
}

fn split_place(place: &[u8]) -> Option<(&[u8], &[u8])> {
    let text = place.trim_ascii_start();
    // Two spaces after the depth and a path: the name between them is empty.
    let is_nameless = place.len() == text.len() + 1 && place.starts_with(b" ");
    if is_nameless && text.starts_with(b"/") {
        return Some((b"", text));
    }
    let (function, file) = match split_function(text) {
        Some(split) => split,
        None if is_nameless => return Some((b"", text)),
        None => split_at_tab(text)?,
    };
    Some((function, file.trim_ascii_start()))
}

fn split_at_tab(text: &[u8]) -> Option<(&[u8], &[u8])> {
    let tab = memchr(b'\t', text)?;
    Some((&text[..tab], &text[tab + 1..]))
}

/// The opcode in the frame before the leaf: `<VM>::ZEND_DO_FCALL <VM>:-1`.
pub(super) fn vm_opcode<'a>(function: &'a [u8], file: &[u8]) -> Option<&'a [u8]> {
    if file != VM {
        return None;
    }
    function.strip_prefix(VM)?.strip_prefix(b"::").filter(|opcode| is_opcode(opcode))
}

/// The parts of a native frame's text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct NativeText<'a> {
    pub(super) module: &'a [u8],
    pub(super) symbol: &'a [u8],
    pub(super) offset: Option<i64>,
}

/// Parses a native frame; `None` for another frame.
pub(super) fn native<'a>(function: &'a [u8], file: &[u8]) -> Option<NativeText<'a>> {
    if file != NATIVE {
        return None;
    }
    let colons = memmem::find(function, b"::")?;
    let (module, name) = (&function[..colons], &function[colons + 2..]);
    let (symbol, offset) = match memmem::rfind(name, b"+0x") {
        None => (name, None),
        Some(plus) => {
            let digits = std::str::from_utf8(&name[plus + 3..]).ok()?;
            (&name[..plus], Some(u64::from_str_radix(digits, 16).ok()?.cast_signed()))
        }
    };
    Some(NativeText { module, symbol, offset })
}

/// The content of a comment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Comment<'a> {
    Process(i64),
    Label(&'a [u8], &'a [u8]),
    /// Nothing that a sample holds.
    Remark,
}

/// Parses the text after the `#`: ` KEY = VALUE`, or phpspy's ` mem SIZE PEAK`.
pub(super) fn comment(text: &[u8]) -> Comment<'_> {
    let text = text.strip_suffix(b"\r").unwrap_or(text);
    let text = text.strip_prefix(b" ").unwrap_or(text);
    let (key, value) = if let Some(at) = memmem::find(text, b" = ") {
        (&text[..at], &text[at + 3..])
    } else if let Some(key) = text.strip_suffix(b" =") {
        (key, &b""[..])
    } else if let Some(sizes) = text.strip_prefix(b"mem ") {
        (&text[..3], sizes.trim_ascii_end())
    } else {
        return Comment::Remark;
    };
    match decimal(value) {
        Some(process) if key == b"pid" => Comment::Process(process),
        _ => Comment::Label(key, value),
    }
}

/// Splits a one-line trace: at the tabs before `# ` and before the next depth, and at the last one. `None` for a line of a
/// block.
pub(super) fn one_line(line: &[u8]) -> Option<OneLine<'_>> {
    memchr(b'\t', line)?;
    let text = line.trim_ascii_start();
    let text = text.strip_suffix(b"\r").unwrap_or(text);
    let pieces = OneLine { rest: text, depth: 0 };
    let is_trace = text.starts_with(b"0 ") && (text.ends_with(b"\t") || pieces.clone().count() > 1);
    is_trace.then_some(pieces)
}

/// The pieces of a one-line trace.
#[derive(Clone, Debug)]
pub(super) struct OneLine<'a> {
    rest: &'a [u8],
    /// The depth of the next frame.
    depth: u64,
}

impl<'a> Iterator for OneLine<'a> {
    type Item = &'a [u8];

    fn next(&mut self) -> Option<&'a [u8]> {
        if self.rest.is_empty() {
            return None;
        }
        self.depth += u64::from(self.rest[0] != b'#');
        let text = self.rest;
        let end = memchr_iter(b'\t', text).find(|&tab| self.begins_piece(&text[tab + 1..]));
        let end = end.unwrap_or(text.len());
        self.rest = text.get(end + 1..).unwrap_or_default();
        Some(&text[..end])
    }
}

impl OneLine<'_> {
    fn begins_piece(&self, text: &[u8]) -> bool {
        text.is_empty() || text[0] == b'#' || begins_with_depth(text, self.depth)
    }
}

fn begins_with_depth(text: &[u8], depth: u64) -> bool {
    let digits = text.iter().take_while(|byte| byte.is_ascii_digit()).count();
    text[digits..].starts_with(b" ")
        && decimal(&text[..digits]).is_some_and(|number| u64::try_from(number) == Ok(depth))
}

#[cold]
fn bad_frame(text: &[u8]) -> String {
    format!("expected DEPTH FUNCTION FILE:LINE, found {:?} after the depth", excerpt(text))
}

#[cold]
pub(super) fn bad_item(line: &[u8]) -> String {
    format!("expected DEPTH FUNCTION FILE:LINE, found {:?}", excerpt(line.trim_ascii()))
}

#[cold]
fn bad_line_number(text: &[u8]) -> String {
    format!("expected a line number, found {:?}", excerpt(text))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(line: &str) -> (String, String, i64, Option<String>) {
        let Some(Item::Frame(text)) = item(line.as_bytes()) else { panic!("{line:?} is not a frame") };
        let frame = frame(text).unwrap();
        let owned = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
        (owned(frame.function), owned(frame.file), frame.line, frame.opcode.map(owned))
    }

    fn frame_of(function: &str, file: &str, line: i64) -> (String, String, i64, Option<String>) {
        (function.to_owned(), file.to_owned(), line, None)
    }

    fn message(line: &str) -> String {
        match item(line.as_bytes()) {
            None => bad_item(line.as_bytes()),
            Some(Item::Frame(text)) => frame(text).unwrap_err(),
            Some(other) => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_frame_begins_with_its_own_depth() {
        let texts = ["3 f", "3  f", "3", "3f", "4 f", " f", "x f", "33 f"];
        let own = texts.into_iter().filter(|text| begins_with_depth(text.as_bytes(), 3));
        assert_eq!(own.collect::<Vec<_>>(), ["3 f", "3  f"]);
        assert!(begins_with_depth(b"0 f", 0) && !begins_with_depth(b" f", 0));
    }

    #[test]
    fn a_frame_is_depth_function_file_and_line() {
        assert_eq!(read("0 App\\Db::query /app/Db.php:42"), frame_of("App\\Db::query", "/app/Db.php", 42));
        assert_eq!(read("0 usleep <internal>:-1"), frame_of("usleep", "<internal>", -1));
    }

    #[test]
    fn spaces_belong_to_the_path() {
        assert_eq!(read("0 <main> Command line code:1"), frame_of("<main>", "Command line code", 1));
        assert_eq!(read("0 f /my dir/f.php:3"), frame_of("f", "/my dir/f.php", 3));
    }

    #[test]
    fn the_depth_may_be_any_word() {
        assert_eq!(read("x c /c.php:3"), frame_of("c", "/c.php", 3));
    }

    #[test]
    fn white_space_around_a_frame_does_not_count() {
        assert_eq!(read("   0 f /f.php:3   "), frame_of("f", "/f.php", 3));
        assert_eq!(read("0 f /f.php:3\r"), frame_of("f", "/f.php", 3));
    }

    #[test]
    fn several_spaces_separate_like_one() {
        assert_eq!(read("0  f  f.php:3"), frame_of("f", "f.php", 3));
    }

    #[test]
    fn tabs_separate_where_there_are_no_spaces() {
        assert_eq!(read("0\tf\t/f.php:3"), frame_of("f", "/f.php", 3));
        assert_eq!(read("1 tab\tname /f.php:4"), frame_of("tab\tname", "/f.php", 4));
    }

    #[test]
    fn an_empty_name_or_file_is_read_back() {
        assert_eq!(read("0  /my dir/f.php:3"), frame_of("", "/my dir/f.php", 3));
        assert_eq!(read("0  <internal>:-1"), frame_of("", "<internal>", -1));
        assert_eq!(read("0 _start :0"), frame_of("_start", "", 0));
    }

    #[test]
    fn windows_paths_hold_a_colon() {
        assert_eq!(read("0 f C:\\dir\\f.php:3"), frame_of("f", "C:\\dir\\f.php", 3));
    }

    #[test]
    fn an_opcode_may_follow_the_line() {
        let expected = ("f".to_owned(), "/f.php".to_owned(), 3, Some("ZEND_DO_FCALL".to_owned()));
        assert_eq!(read("1 f /f.php:3:ZEND_DO_FCALL"), expected);
    }

    #[test]
    fn a_fraction_of_a_line_number_is_dropped() {
        let frame = frame(b"f /f.php:1.5").unwrap();
        assert_eq!((frame.line, frame.is_rounded), (1, true));
    }

    #[test]
    fn errors_state_what_was_expected() {
        assert_eq!(message("0"), "expected DEPTH FUNCTION FILE:LINE, found \"0\"");
        assert_eq!(message("0 "), "expected DEPTH FUNCTION FILE:LINE, found \"0\"");
        let nowhere = "expected DEPTH FUNCTION FILE:LINE, found \"f nofile\" after the depth";
        assert_eq!(message("0 f nofile"), nowhere);
        let nameless = "expected DEPTH FUNCTION FILE:LINE, found \"/file.php:1\" after the depth";
        assert_eq!(message("RELIABLE /file.php:1"), nameless);
        assert_eq!(message("0 f /f.php:abc"), "expected a line number, found \"abc\"");
        assert_eq!(message("0 f /f.php:"), "expected a line number, found \"\"");
        assert_eq!(message("0 f /f.php:ABC"), "expected a line number, found \"ABC\"");
        assert_eq!(
            message("0 f /f.php:9223372036854775808"),
            "expected a line number, found \"9223372036854775808\""
        );
    }

    #[test]
    fn comments_hold_labels() {
        let label = |key: &'static str, value: &'static str| Comment::Label(key.as_bytes(), value.as_bytes());
        assert_eq!(comment(b" uri = /a = b"), label("uri", "/a = b"));
        assert_eq!(comment(b" varpeek i@/a.php:3 = 1000\r"), label("varpeek i@/a.php:3", "1000"));
        assert_eq!(comment(b" qstring = "), label("qstring", ""));
        assert_eq!(comment(b" qstring ="), label("qstring", ""));
        assert_eq!(comment(b" global::$x = (string) \"y \" "), label("global::$x", "(string) \"y \" "));
        assert_eq!(comment(b" mem 123 456"), label("mem", "123 456"));
    }

    #[test]
    fn a_process_is_not_a_label() {
        assert_eq!(comment(b" pid = 4711"), Comment::Process(4711));
        assert_eq!(comment(b" pid = many"), Comment::Label(b"pid", b"many"));
    }

    #[test]
    fn other_comments_are_remarks() {
        for text in ["", " only a comment", "x", " a=b"] {
            assert_eq!(comment(text.as_bytes()), Comment::Remark, "{text:?}");
        }
    }

    #[test]
    fn native_frames_hold_module_symbol_and_offset() {
        let read = |function: &'static str| native(function.as_bytes(), NATIVE);
        for (text, module, symbol, offset) in [
            ("libphp.so::zend_execute+0x42", "libphp.so", "zend_execute", Some(0x42)),
            ("lib.so::std::f+0x1(int)+0xff", "lib.so", "std::f+0x1(int)", Some(0xff)),
            ("::_start+0xffffffffffffffff", "", "_start", Some(-1)),
            ("m::f", "m", "f", None),
        ] {
            let (module, symbol) = (module.as_bytes(), symbol.as_bytes());
            assert_eq!(read(text), Some(NativeText { module, symbol, offset }), "{text}");
        }
        for other in ["f", "m::f+0x", "m::f+0xg", "m+0x1", "m::f+0x1ffffffffffffffff"] {
            assert_eq!(read(other), None, "{other}");
        }
        assert_eq!(native(b"m::f+0x1", b"/native"), None);
    }

    #[test]
    fn the_virtual_machine_names_an_opcode() {
        assert_eq!(vm_opcode(b"<VM>::ZEND_ADD", VM), Some(&b"ZEND_ADD"[..]));
        assert_eq!(vm_opcode(b"<VM>::ZEND_ADD", b"/vm.php"), None);
        assert_eq!(vm_opcode(b"<VM>::", VM), None);
        assert_eq!(vm_opcode(b"ZEND_ADD", VM), None);
    }

    #[test]
    fn a_one_line_trace_is_split_at_its_tabs() {
        let line = b"0 a\tb /a.php:1\t# x = 1\t2\t1 m /m.php:2\t# pid = 7\t\r";
        let pieces: Vec<_> = one_line(line).unwrap().collect();
        assert_eq!(pieces, [&b"0 a\tb /a.php:1"[..], b"# x = 1\t2", b"1 m /m.php:2", b"# pid = 7"]);
        assert_eq!(one_line(b"0 f /f.php:3\t").unwrap().count(), 1);
        assert_eq!(one_line(b"0 f /f.php:3\t1 g /g.php:4").unwrap().count(), 2);
    }

    #[test]
    fn a_line_of_a_block_is_no_trace_of_its_own() {
        for line in
            ["0 f /f.php:3", "0\tf\t/f.php:3", "1 tab\t2 /f.php:3", "# a = b\t", "0 tab\tname /f.php:3"]
        {
            assert!(one_line(line.as_bytes()).is_none(), "{line:?}");
        }
    }
}
