//! Text from outside, made safe to display: a name must not pass for another.

use std::io;

/// Whether a character is invisible though it may have an effect: control characters above ASCII, line breaks, direction marks,
/// joiners, variation selectors, tags, fillers, and spaces other than the ASCII space.
///
/// Source: Unicode 16, `Default_Ignorable_Code_Point`, the categories Zs, Zl and Zp except U+0020, the annotation marks U+FFF9 to
/// U+FFFB, and the blank Braille pattern.
#[must_use]
pub const fn is_unseen(character: char) -> bool {
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

/// Appends a character to the text of a document, such as a page or a picture. Characters that documents must not
/// contain are replaced; invisible ones are escaped.
///
/// # Examples
///
/// ```
/// let mut text = String::new();
/// "a\u{0}f\u{202e}php.g".chars().for_each(|c| borehole_model::shown::push(c, &mut text));
/// assert_eq!(text, "a\u{fffd}f\\u{202e}php.g");
/// ```
pub fn push(character: char, text: &mut String) {
    match character {
        '\u{fffe}' | '\u{ffff}' => text.push(char::REPLACEMENT_CHARACTER),
        control if control.is_control() => text.push(char::REPLACEMENT_CHARACTER),
        unseen if is_unseen(unseen) => text.extend(unseen.escape_unicode()),
        seen => text.push(seen),
    }
}

/// Quotes a name so that a shell takes it as one word and a command does not take it as an option.
///
/// # Examples
///
/// ```
/// use borehole_model::shown::word;
///
/// assert_eq!(["a/b.rbt", "$(rm x)", "-o.rbt"].map(word), ["a/b.rbt", "'$(rm x)'", "./-o.rbt"]);
/// ```
#[must_use]
pub fn word(name: &str) -> String {
    let beginning = if name.starts_with('-') { "./" } else { "" };
    let is_plain = name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"./_-+=,:@".contains(&byte));
    if is_plain && !name.is_empty() {
        return format!("{beginning}{name}");
    }
    format!("'{beginning}{}'", name.replace('\'', "'\\''"))
}

/// The text of an I/O error in the style of Borehole's messages: lower case, without the number of the operating
/// system.
#[must_use]
pub fn cause(error: &io::Error) -> String {
    let text = error.to_string();
    if error.raw_os_error().is_none() {
        return text;
    }
    match error.kind() {
        io::ErrorKind::IsADirectory => return "expected a file, found a directory".to_owned(),
        // For example, an input that is read from more than one position.
        io::ErrorKind::NotSeekable => return "expected a file, found a pipe".to_owned(),
        _ => {}
    }
    let text = text.split(" (os error").next().unwrap_or(&text);
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| first.to_lowercase().chain(letters).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blanks_are_spelled_out_and_what_is_seen_is_not() {
        let blank = "\u{34f}\u{115f}\u{1160}\u{1680}\u{17b4}\u{180b}\u{2000}\u{200a}\u{205f}\u{2800}\u{3000}\u{3164}\u{ffa0}";
        let seen = "a b\u{e9}e\u{301}\u{115e}\u{1161}\u{167f}\u{1681}\u{2010}\u{2027}\u{2030}\u{3001}\u{3163}\u{4e00}\u{ac00}\u{1f600}";
        let text = |characters: &str| {
            let mut text = String::new();
            characters.chars().for_each(|character| push(character, &mut text));
            text
        };
        assert_eq!(text(blank), blank.escape_unicode().to_string());
        assert_eq!(text(seen), seen);
    }
}
