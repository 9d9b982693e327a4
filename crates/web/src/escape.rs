//! Bytes of a profile as safe text.

use borehole_model::shown;

/// Formats `bytes` as one line of text. Invalid characters are replaced and invisible ones spelled out, so that a name cannot
/// pretend to be another.
pub(crate) fn text(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len());
    for c in String::from_utf8_lossy(bytes).chars() {
        match c {
            '\t' | '\n' | '\r' => text.push(' '),
            c => shown::push(c, &mut text),
        }
    }
    text
}

/// Escapes text for markup, between tags and in attributes.
pub(crate) fn markup(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            c => escaped.push(c),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_left_that_a_browser_or_a_reader_would_obey() {
        assert_eq!(text(b"a\x1b[2J\nb\xff\0"), "a\u{fffd}[2J b\u{fffd}\u{fffd}");
        assert_eq!(text("x\u{202e}gpj.exe".as_bytes()), "x\\u{202e}gpj.exe");
        assert_eq!(
            markup("<img onerror='a' src=\"b\">&"),
            "&lt;img onerror=&#39;a&#39; src=&quot;b&quot;&gt;&amp;"
        );
    }
}
