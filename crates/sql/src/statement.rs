//! Parses statements as far as needed to replace names by numbers.

use crate::dialect::SqlDialect;
use crate::queries::Parameters;

impl SqlDialect {
    /// Replaces the parameter names in `statement` by placeholders, and returns the numbers in order. Quoted text and
    /// comments are unchanged.
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
                // Without the type, the server might choose another width.
                Self::Postgresql => bound += &format!("CAST(${} AS BIGINT)", numbers.len()),
                Self::Sqlite | Self::Mysql | Self::Mariadb => bound.push('?'),
            }
        }
        (bound, numbers)
    }

    /// Whether `statement` contains a parameter, such as `:run`.
    #[must_use]
    pub fn uses(self, statement: &str, name: &str) -> bool {
        self.pieces(statement).any(|piece| piece == name)
    }

    /// Whether `statement` is blank or contains only comments.
    pub(crate) fn is_nothing(self, statement: &str) -> bool {
        // MySQL executes a comment that begins with an exclamation mark.
        let is_comment = |piece: &str| {
            let begins = piece.starts_with("--") || piece.starts_with("/*") && !piece.starts_with("/*!");
            begins || self.is_mysql() && piece.starts_with('#')
        };
        self.pieces(statement).all(|piece| piece.trim().is_empty() || piece == ";" || is_comment(piece))
    }

    /// Splits a statement into words, names with their colon, quoted texts, comments and single characters.
    fn pieces(self, statement: &str) -> impl Iterator<Item = &str> {
        let mut rest = statement;
        std::iter::from_fn(move || {
            let (piece, behind) =
                rest.split_at_checked(self.piece(rest)).filter(|(piece, _)| !piece.is_empty())?;
            rest = behind;
            Some(piece)
        })
    }

    /// The length of the first piece.
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

    /// Whether two dashes begin a comment: in MySQL only before a blank.
    fn is_comment(self, text: &str) -> bool {
        !self.is_mysql() || !text[2..].starts_with(|sign: char| !sign.is_whitespace() && !sign.is_control())
    }

    /// The length of a comment. In PostgreSQL, comments nest.
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

/// The length of the word at the start of `text`.
fn word(text: &str) -> usize {
    text.find(|sign: char| !sign.is_alphanumeric() && sign != '_').unwrap_or(text.len())
}

/// The position after the next `end` at `from` or later; the end of the text if there is none.
fn behind(text: &str, from: usize, end: &str) -> usize {
    text[from..].find(end).map_or(text.len(), |at| from + at + end.len())
}

/// The length of a quoted text whose opening quote is at `begin`. Two quotes in a row are treated as the end of one
/// text and the start of another, which gives the same result.
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

/// The length of a text between two equal tags, such as `$$` or `$tag$`; that of the dollar sign if there is no tag.
fn dollars(text: &str) -> usize {
    let tag = 1 + word(&text[1..]);
    let is_number = text[1..].starts_with(|sign: char| sign.is_ascii_digit());
    if is_number || !text[tag..].starts_with('$') { tag } else { behind(text, tag + 1, &text[..=tag]) }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: [SqlDialect; 4] =
        [SqlDialect::Sqlite, SqlDialect::Postgresql, SqlDialect::Mysql, SqlDialect::Mariadb];
    const NUMBERS: Parameters = Parameters { run: Some(1), other: Some(2), node: None };

    #[test]
    fn parameters_are_replaced_by_placeholders() {
        let statement = "SELECT :run,a.b WHERE x=:node AND y>:other+:run";
        let numbers = vec![Some(1), None, Some(2), Some(1)];
        for dialect in ALL {
            let expected = match dialect {
                SqlDialect::Postgresql => {
                    "SELECT CAST($1 AS BIGINT),a.b WHERE x=CAST($2 AS BIGINT) AND y>CAST($3 AS BIGINT)+CAST($4 AS BIGINT)"
                }
                _ => "SELECT ?,a.b WHERE x=? AND y>?+?",
            };
            assert_eq!(dialect.bind(statement, NUMBERS), (expected.to_owned(), numbers.clone()));
        }
    }

    #[test]
    fn text_that_looks_like_a_parameter_stays() {
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
            (SqlDialect::Sqlite, "[a :run]"),
            (SqlDialect::Postgresql, "E'\\' :run'"),
            (SqlDialect::Postgresql, "$$ :run $$ $a$ $b$ :run $a$"),
            (SqlDialect::Postgresql, "/* /* */ :run */"),
            (SqlDialect::Mysql, "'\\' :run'"),
            (SqlDialect::Mariadb, "# :run"),
        ];
        let all = ALL.into_iter().flat_map(|dialect| everywhere.map(|statement| (dialect, statement)));
        for (dialect, statement) in all.chain(of_one) {
            assert_eq!(dialect.bind(statement, NUMBERS), (statement.to_owned(), vec![]), "{dialect:?}");
        }
        let is_used = [
            (SqlDialect::Sqlite, "'\\' || :run"),
            (SqlDialect::Sqlite, "/* /* */ :run"),
            (SqlDialect::Postgresql, "$1 :run $2"),
            (SqlDialect::Postgresql, "name'\\' :run"),
            (SqlDialect::Mysql, "5--:run"),
            (SqlDialect::Mysql, "-- a\n:run"),
        ];
        for (dialect, statement) in is_used {
            assert!(dialect.uses(statement, ":run"), "{dialect:?}: {statement}");
        }
    }

    #[test]
    fn empty_statements_are_recognized() {
        for nothing in ["", " \n\t", ";", "-- only this", "/* and */ ; -- that"] {
            assert!(ALL.iter().all(|dialect| dialect.is_nothing(nothing)), "{nothing}");
        }
        for statement in ["SELECT 1", "-", "/*! SELECT 1 */", "''"] {
            assert!(!ALL.iter().any(|dialect| dialect.is_nothing(statement)), "{statement}");
        }
        assert!(SqlDialect::Mysql.is_nothing("# only this") && !SqlDialect::Sqlite.is_nothing("# a"));
    }
}
