//! Statements, as far as they have to be understood to put numbers in the place of names.

use crate::Parameters;
use crate::dialect::Dialect;

impl Dialect {
    /// `statement` with places for numbers in the place of their names, and the numbers in their order. What stands in quotes and
    /// comments stays as it is.
    pub(crate) fn bind(self, statement: &str, parameters: Parameters) -> (String, Vec<Option<i64>>) {
        let mut numbers = Vec::new();
        let mut bound = String::with_capacity(statement.len());
        for piece in self.pieces(statement) {
            let Some((_, number)) = parameters.all().into_iter().find(|(name, _)| *name == piece) else {
                bound += piece;
                continue;
            };
            numbers.push(number);
            match self {
                // The type is said, as the server would take one of another width where it fits as well.
                Self::Postgresql => bound += &format!("CAST(${} AS BIGINT)", numbers.len()),
                Self::Sqlite | Self::Mysql | Self::Mariadb => bound.push('?'),
            }
        }
        (bound, numbers)
    }

    /// Whether a name, such as `:run`, stands for a number in `statement`.
    #[must_use]
    pub fn uses(self, statement: &str, name: &str) -> bool {
        self.pieces(statement).any(|piece| piece == name)
    }

    /// Whether `statement` is none: blank, or nothing but comments.
    pub(crate) fn is_nothing(self, statement: &str) -> bool {
        // MySQL obeys a comment that begins with an exclamation mark.
        let is_comment = |piece: &str| {
            let begins = piece.starts_with("--") || piece.starts_with("/*") && !piece.starts_with("/*!");
            begins || self.is_mysql() && piece.starts_with('#')
        };
        self.pieces(statement).all(|piece| piece.trim().is_empty() || piece == ";" || is_comment(piece))
    }

    /// A statement in pieces: words, names with their colon, quoted texts, comments, and single signs.
    fn pieces(self, statement: &str) -> impl Iterator<Item = &str> {
        let mut rest = statement;
        std::iter::from_fn(move || {
            let (piece, behind) =
                rest.split_at_checked(self.piece(rest)).filter(|(piece, _)| !piece.is_empty())?;
            rest = behind;
            Some(piece)
        })
    }

    /// How long the first piece is.
    fn piece(self, text: &str) -> usize {
        let mut signs = text.chars();
        match (signs.next(), signs.next()) {
            (Some(quote @ ('\'' | '"')), _) => quoted(text, 0, quote, self.is_mysql()),
            (Some('`'), _) => quoted(text, 0, '`', false),
            (Some('['), _) if self == Self::Sqlite => quoted(text, 0, ']', false),
            (Some('e' | 'E'), Some('\'')) if self == Self::Postgresql => quoted(text, 1, '\'', true),
            (Some('$'), _) if self == Self::Postgresql => dollars(text),
            (Some('-'), Some('-')) if self.is_comment(text) => behind(text, 2, "\n"),
            (Some('#'), _) if self.is_mysql() => behind(text, 1, "\n"),
            (Some('/'), Some('*')) => self.comment(text),
            // A cast.
            (Some(':'), Some(':')) => 2,
            (Some(':'), _) => 1 + word(&text[1..]),
            (Some(sign), _) => word(text).max(sign.len_utf8()),
            (None, _) => 0,
        }
    }

    /// Whether two dashes begin a comment: in MySQL they do before a blank only.
    fn is_comment(self, text: &str) -> bool {
        !self.is_mysql() || !text[2..].starts_with(|sign: char| !sign.is_whitespace() && !sign.is_control())
    }

    /// How long a comment is. In PostgreSQL others may be in it.
    fn comment(self, text: &str) -> usize {
        if self != Self::Postgresql {
            return behind(text, 2, "*/");
        }
        let (mut depth, mut at) = (1, 2);
        while depth > 0 {
            let Some(next) = text[at..].find(['*', '/']) else { return text.len() };
            at += next;
            match text.get(at..at + 2) {
                Some("*/") => (depth, at) = (depth - 1, at + 2),
                Some("/*") => (depth, at) = (depth + 1, at + 2),
                _ => at += 1,
            }
        }
        at
    }
}

/// How long a word is that `text` begins with.
fn word(text: &str) -> usize {
    text.find(|sign: char| !sign.is_alphanumeric() && sign != '_').unwrap_or(text.len())
}

/// How far it is behind the next `end` that stands at `from` or later; all that is left if there is none.
fn behind(text: &str, from: usize, end: &str) -> usize {
    text[from..].find(end).map_or(text.len(), |at| from + at + end.len())
}

/// How long a text is whose first quote is at `begin`. Two quotes in a row look like the end of one text and the beginning of another,
/// which comes to the same.
fn quoted(text: &str, begin: usize, quote: char, has_escapes: bool) -> usize {
    let mut is_escaped = false;
    for (at, sign) in text.char_indices().skip(begin + 1) {
        if is_escaped {
            is_escaped = false;
        } else if sign == quote {
            return at + 1;
        } else {
            is_escaped = has_escapes && sign == '\\';
        }
    }
    text.len()
}

/// How long a text is that stands between two of the same tag, such as `$$` or `$tag$`; a dollar sign where there is no tag.
fn dollars(text: &str) -> usize {
    let tag = 1 + word(&text[1..]);
    let is_number = text[1..].starts_with(|sign: char| sign.is_ascii_digit());
    if is_number || !text[tag..].starts_with('$') { tag } else { behind(text, tag + 1, &text[..=tag]) }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: [Dialect; 4] = [Dialect::Sqlite, Dialect::Postgresql, Dialect::Mysql, Dialect::Mariadb];
    const NUMBERS: Parameters = Parameters { run: Some(1), other: Some(2), node: None };

    #[test]
    fn numbers_stand_in_the_place_of_their_names() {
        let statement = "SELECT :run,a.b WHERE x=:node AND y>:other+:run";
        let numbers = vec![Some(1), None, Some(2), Some(1)];
        for dialect in ALL {
            let expected = match dialect {
                Dialect::Postgresql => {
                    "SELECT CAST($1 AS BIGINT),a.b WHERE x=CAST($2 AS BIGINT) AND y>CAST($3 AS BIGINT)+CAST($4 AS BIGINT)"
                }
                _ => "SELECT ?,a.b WHERE x=? AND y>?+?",
            };
            assert_eq!(dialect.bind(statement, NUMBERS), (expected.to_owned(), numbers.clone()));
        }
    }

    #[test]
    fn what_only_looks_like_a_name_stays() {
        let everywhere = [
            "':run'",
            "'it''s :run'",
            "\":run\"",
            "/* :run */",
            "-- :run",
            "-- a\n",
            ":runs",
            "a::run",
            ": run",
            "",
            "é:",
            "'not closed :run",
            "/* not closed :run",
            "` :run`",
        ];
        let of_one = [
            (Dialect::Sqlite, "[a :run]"),
            (Dialect::Postgresql, "E'\\' :run'"),
            (Dialect::Postgresql, "$$ :run $$ $a$ $b$ :run $a$"),
            (Dialect::Postgresql, "/* /* */ :run */"),
            (Dialect::Mysql, "'\\' :run'"),
            (Dialect::Mariadb, "# :run"),
        ];
        let all = ALL.into_iter().flat_map(|dialect| everywhere.map(|statement| (dialect, statement)));
        for (dialect, statement) in all.chain(of_one) {
            assert_eq!(dialect.bind(statement, NUMBERS), (statement.to_owned(), vec![]), "{dialect:?}");
        }
        let is_used = [
            (Dialect::Sqlite, "'\\' || :run"),
            (Dialect::Sqlite, "/* /* */ :run"),
            (Dialect::Postgresql, "$1 :run $2"),
            (Dialect::Postgresql, "name'\\' :run"),
            (Dialect::Mysql, "5--:run"),
            (Dialect::Mysql, "-- a\n:run"),
        ];
        for (dialect, statement) in is_used {
            assert!(dialect.uses(statement, ":run"), "{dialect:?}: {statement}");
        }
    }

    #[test]
    fn nothing_is_told_from_a_statement() {
        for nothing in ["", " \n\t", ";", "-- only this", "/* and */ ; -- that"] {
            assert!(ALL.iter().all(|dialect| dialect.is_nothing(nothing)), "{nothing}");
        }
        for statement in ["SELECT 1", "-", "/*! SELECT 1 */", "''"] {
            assert!(!ALL.iter().any(|dialect| dialect.is_nothing(statement)), "{statement}");
        }
        assert!(Dialect::Mysql.is_nothing("# only this") && !Dialect::Sqlite.is_nothing("# a"));
    }
}
