//! Text from outside, made safe for where it is written: a name must not pass for another, and nothing must obey it.

/// Formats `bytes` as one line of text that a terminal only displays. Control characters, invisible characters, characters that
/// change the order of the text around them, and invalid UTF-8 are escaped: `\x1b`, `\u{202e}`.
///
/// # Examples
///
/// ```
/// use borehole_text::printable;
///
/// assert_eq!(printable(b"a\x1b[2J\xff"), r"a\x1b[2J\xff");
/// assert_eq!(printable("f\u{202e}php.g".as_bytes()), r"f\u{202e}php.g");
/// ```
#[must_use]
pub fn printable(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        for character in chunk.valid().chars() {
            match character {
                '\0'..' ' | '\x7f' => text.push_str(&format!("\\x{:02x}", u32::from(character))),
                unseen if is_unseen(unseen) => text.extend(unseen.escape_unicode()),
                seen => text.push(seen),
            }
        }
        for byte in chunk.invalid() {
            text.push_str(&format!("\\x{byte:02x}"));
        }
    }
    text
}

/// Like [`printable`], for text of several lines: tabs and line breaks (`\n` and `\r\n`) stay.
#[must_use]
pub fn printable_lines(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len());
    for line in bytes.split_inclusive(|&byte| byte == b'\n') {
        let breaks =
            [&b"\r\n"[..], b"\n"].into_iter().find(|&ending| line.ends_with(ending)).unwrap_or_default();
        let mut cells = line[..line.len() - breaks.len()].split(|&byte| byte == b'\t');
        text.extend(cells.next().map(printable));
        text.extend(cells.flat_map(|cell| ["\t".to_owned(), printable(cell)]));
        text.extend(breaks.iter().map(|&byte| char::from(byte)));
    }
    text
}

/// Whether a character is invisible though it may have an effect: control characters above ASCII, line breaks, direction marks,
/// joiners, variation selectors, tags, fillers, and spaces other than the ASCII space.
///
/// Source: Unicode 16, `Default_Ignorable_Code_Point`, the categories Zs, Zl and Zp except U+0020, the annotation marks U+FFF9 to
/// U+FFFB, and the blank Braille pattern.
const fn is_unseen(character: char) -> bool {
    matches!(
        character,
        '\u{80}'..='\u{a0}'
            | '\u{ad}'
            | '\u{34f}'
            | '\u{61c}'
            | '\u{115f}'..='\u{1160}'
            | '\u{1680}'
            | '\u{17b4}'..='\u{17b5}'
            | '\u{180b}'..='\u{180f}'
            | '\u{2000}'..='\u{200f}'
            | '\u{2028}'..='\u{202f}'
            | '\u{205f}'..='\u{206f}'
            | '\u{2800}'
            | '\u{3000}'
            | '\u{3164}'
            | '\u{fe00}'..='\u{fe0f}'
            | '\u{feff}'
            | '\u{ffa0}'
            | '\u{fff0}'..='\u{fffb}'
            | '\u{1bca0}'..='\u{1bca3}'
            | '\u{1d173}'..='\u{1d17a}'
            | '\u{e0000}'..='\u{e0fff}'
    )
}

/// Formats `bytes` as one line of text of a document, such as a page or a picture. Tabs and line breaks become spaces, invalid
/// characters are replaced, and invisible ones are escaped. Markup is not: see [`markup`].
///
/// # Examples
///
/// ```
/// assert_eq!(borehole_text::document(b"a\x1b[2J\nb\xff\0"), "a\u{fffd}[2J b\u{fffd}\u{fffd}");
/// ```
#[must_use]
pub fn document(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len());
    for character in String::from_utf8_lossy(bytes).chars() {
        match character {
            '\t' | '\n' | '\r' => text.push(' '),
            other => push_document(other, &mut text),
        }
    }
    text
}

/// Appends a character to the text of a document, as [`document`] does, except that line breaks are invalid.
///
/// # Examples
///
/// ```
/// let mut text = String::new();
/// "a\u{0}f\u{202e}php.g".chars().for_each(|c| borehole_text::push_document(c, &mut text));
/// assert_eq!(text, "a\u{fffd}f\\u{202e}php.g");
/// ```
pub fn push_document(character: char, text: &mut String) {
    match character {
        '\u{fffe}' | '\u{ffff}' => text.push(char::REPLACEMENT_CHARACTER),
        control if control.is_control() => text.push(char::REPLACEMENT_CHARACTER),
        unseen if is_unseen(unseen) => text.extend(unseen.escape_unicode()),
        seen => text.push(seen),
    }
}

/// Makes `text` from `start` on fit into a line of a file, and returns the number of characters replaced. Tabs and line breaks
/// become spaces, and other control characters are escaped: `\x1b`, `\u{9b}`. All else stays, even if it is not UTF-8.
///
/// # Examples
///
/// ```
/// let mut text = b"kept\n; a\x1b[2J\nb\xff".to_vec();
/// assert_eq!(borehole_text::make_line(&mut text, 5), 2);
/// assert_eq!(text, b"kept\n; a\\x1b[2J b\xff");
/// ```
pub fn make_line(text: &mut Vec<u8>, start: usize) -> u64 {
    replace_controls(text, start, &[])
}

/// Like [`make_line`], but tabs and line breaks stay.
pub fn make_lines(text: &mut Vec<u8>, start: usize) -> u64 {
    replace_controls(text, start, &['\t', '\n'])
}

fn replace_controls(text: &mut Vec<u8>, start: usize, kept: &[char]) -> u64 {
    let replaced_at = |text: &[u8]| control_at(text).filter(|control| !kept.contains(control));
    if (start..text.len()).all(|at| replaced_at(&text[at..]).is_none()) {
        return 0;
    }
    let old = text.split_off(start);
    let (mut rest, mut replaced) = (&*old, 0);
    while let Some((&byte, after)) = rest.split_first() {
        let Some(control) = replaced_at(rest) else {
            text.push(byte);
            rest = after;
            continue;
        };
        match control {
            '\t' | '\n' | '\r' => text.push(b' '),
            ascii if ascii.is_ascii() => text.extend(format!("\\x{:02x}", u32::from(ascii)).bytes()),
            other => text.extend(other.escape_unicode().map(|part| part as u8)),
        }
        rest = &rest[control.len_utf8()..];
        replaced += 1;
    }
    replaced
}

/// The control character at the start of `text`.
fn control_at(text: &[u8]) -> Option<char> {
    match *text {
        [byte @ (..b' ' | 0x7f), ..] => Some(byte.into()),
        [0xc2, byte @ 0x80..=0x9f, ..] => Some(byte.into()),
        _ => None,
    }
}

/// Escapes text for HTML and XML, between tags and in attributes.
///
/// # Examples
///
/// ```
/// assert_eq!(borehole_text::markup("<a b='c' d=\"e\">&"), "&lt;a b=&#39;c&#39; d=&quot;e&quot;&gt;&amp;");
/// ```
#[must_use]
pub fn markup(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            other => escaped.push(other),
        }
    }
    escaped
}

/// Quotes a name so that a shell takes it as one word and a command does not take it as an option. If bytes of the name that are
/// not UTF-8 have been replaced by U+FFFD, it cannot be told, and the result is `FILE`; [`shell_bytes`] can quote the bytes.
///
/// # Examples
///
/// ```
/// use borehole_text::shell_word;
///
/// assert_eq!(["a/b.rbt", "$(rm x)", "-o.rbt"].map(shell_word), ["a/b.rbt", "'$(rm x)'", "./-o.rbt"]);
/// assert_eq!(["a\nb", "a\u{fffd}b"].map(shell_word), ["$'a\\012b'", "FILE"]);
/// ```
#[must_use]
pub fn shell_word(name: &str) -> String {
    if name.contains(char::REPLACEMENT_CHARACTER) {
        return "FILE".to_owned();
    }
    shell_bytes(name.as_bytes())
}

/// Quotes the bytes of a name as [`shell_word`] does. Bytes that a terminal cannot show are written as octal numbers, in the
/// quotes of POSIX.1-2024 that bash, zsh and ksh have had for long.
///
/// # Examples
///
/// ```
/// use borehole_text::shell_bytes;
///
/// assert_eq!(shell_bytes(b"it's"), r"'it'\''s'");
/// assert_eq!(shell_bytes(b"it's \xff.rbt"), r"$'it\'s \377.rbt'");
/// ```
#[must_use]
pub fn shell_bytes(name: &[u8]) -> String {
    let beginning = if name.starts_with(b"-") { "./" } else { "" };
    let visible = str::from_utf8(name).ok().filter(|text| printable(name) == *text);
    let Some(text) = visible else {
        let octal = |byte: &u8| match byte {
            b'\'' | b'\\' => format!("\\{}", char::from(*byte)),
            b' '..=b'~' => char::from(*byte).to_string(),
            _ => format!("\\{byte:03o}"),
        };
        return format!("$'{beginning}{}'", name.iter().map(octal).collect::<String>());
    };
    let is_plain = name.iter().all(|byte| byte.is_ascii_alphanumeric() || b"./_-+=,:@".contains(byte));
    if is_plain && !name.is_empty() {
        return format!("{beginning}{text}");
    }
    format!("'{beginning}{}'", text.replace('\'', "'\\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blanks_are_escaped_and_visible_characters_are_not() {
        let blank = "\u{34f}\u{115f}\u{1160}\u{1680}\u{17b4}\u{180b}\u{2000}\u{200a}\u{205f}\u{2800}\u{3000}\u{3164}\u{ffa0}";
        let seen = "a b\u{e9}e\u{301}\u{115e}\u{1161}\u{167f}\u{1681}\u{2010}\u{2027}\u{2030}\u{3001}\u{3163}\u{4e00}\u{ac00}\u{1f600}";
        for text in [document, printable] {
            assert_eq!(text(blank.as_bytes()), blank.escape_unicode().to_string());
            assert_eq!(text(seen.as_bytes()), seen);
        }
    }

    #[test]
    fn a_terminal_obeys_nothing() {
        assert_eq!(printable(b"App\\Db::query"), "App\\Db::query");
        assert_eq!(printable(b"\x1b[2Jx\ny\t\0\x7f"), r"\x1b[2Jx\x0ay\x09\x00\x7f");
        assert_eq!(printable(b"caf\xe9 \xff"), r"caf\xe9 \xff");
        assert_eq!(printable("\u{e9} \u{9b}2J".as_bytes()), "\u{e9} \\u{9b}2J");
        assert_eq!(printable("\u{202e}gpj\u{2066}\u{200b}".as_bytes()), r"\u{202e}gpj\u{2066}\u{200b}");
    }
}
