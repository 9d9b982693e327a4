//! The answer to a question: a table that says what it covers, where to go next, and how it reads as text.

use borehole_text::{TextColumn, TextTable, grouped};
use schemars::JsonSchema;
use serde::{Serialize, Serializer};

/// An answer as plain data.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub(crate) struct ViewTable {
    /// The subject of the table.
    pub(crate) title: String,
    /// The unit of amounts; empty if there are none.
    pub(crate) unit: String,
    /// The sum that shares are shares of.
    pub(crate) total: i64,
    /// The names of the columns.
    pub(crate) columns: Vec<String>,
    /// The rows, each with a value for each column.
    pub(crate) rows: Vec<Vec<ViewCell>>,
    /// The number of rows there are, shown or not.
    pub(crate) all_rows: usize,
    /// The share that the shown rows cover, and how much they leave out.
    pub(crate) coverage: String,
    /// Remarks on the input, such as damage.
    pub(crate) notes: Vec<String>,
    /// Questions that may follow.
    pub(crate) next: Vec<String>,
}

/// A value of a table.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(untagged)]
pub(crate) enum ViewCell {
    /// A whole number.
    Number(i64),
    /// A share, in percent.
    Percent(#[serde(serialize_with = "thousandths")] f64),
    /// A text, which may come from the input.
    Text(String),
}

/// Writes a share with three digits after the point: more say nothing, and take space.
fn thousandths<S: Serializer>(percent: &f64, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_f64((percent * 1000.0).round() / 1000.0)
}

impl From<&str> for ViewCell {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl From<String> for ViewCell {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

impl From<i64> for ViewCell {
    fn from(number: i64) -> Self {
        Self::Number(number)
    }
}

impl ViewCell {
    fn text(&self) -> String {
        match self {
            Self::Number(number) if *number < 0 => format!("-{}", grouped(number.unsigned_abs())),
            Self::Number(number) => grouped(number.unsigned_abs()),
            Self::Percent(percent) => borehole_text::percent(*percent),
            Self::Text(text) => text.clone(),
        }
    }
}

/// About how many characters a token of an assistant's model has in tables of names and numbers. Names split into more tokens
/// than prose does, so this is on the safe side.
const CHARS_PER_TOKEN: usize = 3;

impl ViewTable {
    /// The table as text of at most about `tokens` tokens. Rows at the end are left out to fit, and the text says how many.
    pub(crate) fn text(&self, tokens: usize) -> String {
        self.text_of(self.fitting(tokens, |shown| self.text_of(shown).len()))
    }

    /// The table with as many rows as have at most about `tokens` tokens in JSON, and a note on those that are left out.
    pub(crate) fn shortened(&self, tokens: usize) -> Self {
        let of = |shown: usize| {
            let mut table = Self { rows: self.rows[..shown].to_vec(), ..self.without_rows() };
            table.notes.extend(self.left_out(shown));
            table
        };
        let json = |shown| serde_json::to_string(&of(shown)).map_or(0, |json| json.len());
        of(self.fitting(tokens, json))
    }

    /// The number of rows with which the table is of at most about `tokens` tokens, if `size` is how many characters so many rows
    /// are.
    fn fitting(&self, tokens: usize, size: impl Fn(usize) -> usize) -> usize {
        let budget = tokens.saturating_mul(CHARS_PER_TOKEN);
        let mut shown = self.rows.len();
        while shown > 0 {
            let chars = size(shown);
            if chars <= budget {
                break;
            }
            // The part of the rows that would fit if all were of one length. A table without rows is as short as it can be.
            shown = (shown * budget / chars).min(shown - 1);
        }
        shown
    }

    fn without_rows(&self) -> Self {
        Self {
            title: self.title.clone(),
            unit: self.unit.clone(),
            total: self.total,
            columns: self.columns.clone(),
            rows: Vec::new(),
            all_rows: self.all_rows,
            coverage: self.coverage.clone(),
            notes: self.notes.clone(),
            next: self.next.clone(),
        }
    }

    /// A remark on the rows that are left out if only so many are shown.
    fn left_out(&self, shown: usize) -> Option<String> {
        let left = self.rows.len() - shown;
        (left > 0)
            .then(|| format!("{} of these rows are left out to keep the answer short.", grouped(left as u64)))
    }

    fn text_of(&self, shown: usize) -> String {
        let columns = self.columns.iter().enumerate().map(|(place, name)| {
            let is_name = self.rows.iter().any(|row| matches!(row.get(place), Some(ViewCell::Text(_))));
            if is_name { TextColumn::name(name) } else { TextColumn::number(name) }
        });
        let mut table = TextTable::new(columns);
        for row in self.rows.iter().take(shown) {
            table.row(row.iter().map(ViewCell::text));
        }
        let mut lines = vec![self.title.clone()];
        if shown > 0 {
            lines.extend(table.lines());
        }
        if !self.coverage.is_empty() {
            lines.push(self.coverage.clone());
        }
        lines.extend(self.left_out(shown));
        lines.extend(self.notes.iter().map(|note| format!("Note: {note}")));
        lines.extend(self.next.iter().map(|next| format!("Next: {next}")));
        lines.join("\n") + "\n"
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_keeps_to_its_budget_and_says_what_it_leaves_out() {
        let rows = (0..1000).map(|row| vec![ViewCell::Number(row), "name".repeat(10).into()]).collect();
        let table = ViewTable {
            title: "Rows".to_owned(),
            columns: vec!["n".to_owned(), "name".to_owned()],
            rows,
            coverage: "shown 92 %".to_owned(),
            ..ViewTable::default()
        };
        let text = table.text(1000);
        assert!(text.len() <= 3000, "{}", text.len());
        assert!(text.lines().count() > 20);
        let rest = text.lines().last().unwrap();
        assert!(rest.ends_with("of these rows are left out to keep the answer short."), "{rest}");
        assert!(table.text(0).starts_with("Rows\nshown 92 %\n1,000 of these rows"));
        assert!(!table.text(100_000).contains("left out"));
        let short = table.shortened(1000);
        assert!(serde_json::to_string(&short).unwrap().len() <= 3000 && short.rows.len() > 20);
        assert_eq!(short.all_rows, table.all_rows);
        let left =
            format!("{} of these rows are left out to keep the answer short.", 1000 - short.rows.len());
        assert_eq!(short.notes, [left]);
        assert_eq!(table.shortened(100_000), table);
    }
}
