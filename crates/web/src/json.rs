//! The data of a page as JSON inside a script tag.

use std::fmt::{Display, Write as _};
use std::io;

use borehole_text::document;
use serde::Serialize;
use serde_json::ser::{CharEscape, Formatter, Serializer};

/// A JSON object under construction. It contains nothing that could end a script tag.
pub(crate) struct Object(String);

impl Object {
    pub(crate) fn new() -> Self {
        Self("{".to_owned())
    }

    /// Adds a key whose value is JSON already.
    pub(crate) fn raw(&mut self, key: &str, value: &str) -> &mut Self {
        if self.0.len() > 1 {
            self.0.push(',');
        }
        let _ = write!(self.0, "\"{key}\":{value}");
        self
    }

    pub(crate) fn text(&mut self, key: &str, value: &str) -> &mut Self {
        self.raw(key, &text(value))
    }

    pub(crate) fn number(&mut self, key: &str, value: impl Display) -> &mut Self {
        self.raw(key, &value.to_string())
    }

    /// Adds a list of numbers.
    pub(crate) fn numbers<T: Display>(
        &mut self,
        key: &str,
        values: impl IntoIterator<Item = T>,
    ) -> &mut Self {
        let list = list(values);
        self.raw(key, &list)
    }

    /// Adds a list of texts.
    pub(crate) fn texts<'t>(&mut self, key: &str, values: impl IntoIterator<Item = &'t str>) -> &mut Self {
        let list = list(values.into_iter().map(text));
        self.raw(key, &list)
    }

    /// Adds the keys of samples for a page without any.
    pub(crate) fn without_samples(&mut self) -> &mut Self {
        self.raw("cells", r#"{"call":[],"situation":[],"slice":[],"values":[]}"#);
        self.raw("situations", "[]").raw("dimensions", "[]").raw("time", "null").raw("heat", "null")
    }

    pub(crate) fn end(&self) -> String {
        format!("{}}}", self.0)
    }
}

/// Formats a list of values that are JSON already.
pub(crate) fn list<T: Display>(values: impl IntoIterator<Item = T>) -> String {
    let mut list = "[".to_owned();
    for (place, value) in values.into_iter().enumerate() {
        let comma = if place > 0 { "," } else { "" };
        let _ = write!(list, "{comma}{value}");
    }
    list.push(']');
    list
}

pub(crate) fn text(value: &str) -> String {
    format!("\"{}\"", escaped(value))
}

/// The inside of a JSON text.
fn escaped(value: &str) -> String {
    let mut text = String::with_capacity(value.len());
    for c in value.chars() {
        match c {
            '"' | '\\' => text.extend(['\\', c]),
            // Characters that a browser could take for the end of the script, or for a comment in it.
            '<' | '>' | '&' | '\u{2028}' | '\u{2029}' | '\0'..='\x1f' => {
                let _ = write!(text, "\\u{:04x}", u32::from(c));
            }
            c => text.push(c),
        }
    }
    text
}

/// A view as JSON for a script tag: nothing in it could end the tag, and its texts are those of a [`document`].
pub(crate) fn in_script(view: &impl Serialize) -> String {
    let mut json = Vec::new();
    let written = view.serialize(&mut Serializer::with_formatter(&mut json, ScriptFormatter));
    debug_assert!(written.is_ok(), "views have only keys that are texts");
    String::from_utf8(json).unwrap_or_default()
}

/// Writes texts as a script tag needs them.
struct ScriptFormatter;

impl Formatter for ScriptFormatter {
    fn write_string_fragment<W: io::Write + ?Sized>(
        &mut self,
        writer: &mut W,
        fragment: &str,
    ) -> io::Result<()> {
        writer.write_all(escaped(&document(fragment.as_bytes())).as_bytes())
    }

    fn write_char_escape<W: io::Write + ?Sized>(
        &mut self,
        writer: &mut W,
        character: CharEscape,
    ) -> io::Result<()> {
        let character = match character {
            CharEscape::Quote => '"',
            CharEscape::ReverseSolidus => '\\',
            CharEscape::Solidus => '/',
            CharEscape::Tab | CharEscape::LineFeed | CharEscape::CarriageReturn => ' ',
            CharEscape::Backspace | CharEscape::FormFeed | CharEscape::AsciiControl(_) => {
                char::REPLACEMENT_CHARACTER
            }
        };
        writer.write_all(escaped(character.encode_utf8(&mut [0; 4])).as_bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_ends_the_script() {
        assert_eq!(text("</script><!--\"\\\n&"), r#""\u003c/script\u003e\u003c!--\"\\\u000a\u0026""#);
        let mut object = Object::new();
        object.number("a", 1).texts("b", ["x", "y"]).numbers("c", [1, 2]).text("d", "z");
        assert_eq!(object.end(), r#"{"a":1,"b":["x","y"],"c":[1,2],"d":"z"}"#);
    }

    #[test]
    fn texts_of_views_end_no_script_and_hide_nothing() {
        let view = [("</script><!--\"\\", "a\n\u{1b}[2J\u{202e}\u{2028}&")];
        let json = in_script(&view);
        assert_eq!(
            json,
            r#"[["\u003c/script\u003e\u003c!--\"\\","a \ufffd"#.replace("\\ufffd", "\u{fffd}")
                + r#"[2J\\u{202e}\\u{2028}\u0026"]]"#
        );
        let read: Vec<(String, String)> = serde_json::from_str(&json).unwrap();
        assert_eq!(read[0].0, view[0].0);
    }
}
