//! Tables of text: columns under their titles, as wide as their contents, fitted to a width.

use std::borrow::Cow;
use std::fmt;

use crate::escape::printable;
use crate::fit::{KeptEnd, crop, width};

/// Spaces between columns.
const GAP: &str = "  ";

/// The most columns that a cell takes if others follow it: one long name must not pad every row.
pub const WIDEST_INNER: usize = 80;

/// The most columns that the last cell of a row takes.
pub const WIDEST_LAST: usize = 256;

/// The side of a column that its cells are aligned to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CellSide {
    Left,
    Right,
}

/// A column of a [`TextTable`].
#[derive(Clone, Debug)]
pub struct TextColumn {
    title: String,
    side: CellSide,
    least_width: usize,
    /// The end that stays when the table is fitted; `None` for a column that is never cut.
    kept_end: Option<KeptEnd>,
}

impl TextColumn {
    /// A column of numbers.
    #[must_use]
    pub fn number(title: &str) -> Self {
        Self { side: CellSide::Right, ..Self::name(title) }
    }

    /// A column of names.
    #[must_use]
    pub fn name(title: &str) -> Self {
        let title = crop(&printable(title.as_bytes()), WIDEST_INNER, KeptEnd::Left);
        Self { title, side: CellSide::Left, least_width: 0, kept_end: None }
    }

    /// A column of numbers if all of `cells` are: digits after an optional sign, with anything behind them such as a unit. Cells
    /// that are empty or `-` do not count.
    #[must_use]
    pub fn detected<'c>(title: &str, cells: impl IntoIterator<Item = &'c str>) -> Self {
        let is_number = |cell: &str| {
            matches!(cell, "" | "-")
                || cell.trim_start_matches(['+', '-', ' ']).starts_with(|c: char| c.is_ascii_digit())
        };
        if cells.into_iter().all(is_number) { Self::number(title) } else { Self::name(title) }
    }

    /// Makes this the column that is cut to fit the table, and says which end of its cells stays.
    #[must_use]
    pub fn flexible(self, kept_end: KeptEnd) -> Self {
        Self { kept_end: Some(kept_end), ..self }
    }

    /// Makes the column at least `columns` wide, so that it stays where it is when its contents change.
    #[must_use]
    pub fn at_least(self, columns: usize) -> Self {
        Self { least_width: columns, ..self }
    }
}

/// Rows of cells. Its text is its lines, each with a line break.
///
/// # Examples
///
/// ```
/// use borehole_text::{KeptEnd, TextColumn, TextTable};
///
/// let columns = [TextColumn::number("count"), TextColumn::name("function").flexible(KeptEnd::Right)];
/// let mut table = TextTable::new(columns).fit(16, 8);
/// table.row(["1,204", "main"]);
/// table.row(["7", "App\\Db::query\x1b"]);
/// assert_eq!(table.to_string(), "count  function\n1,204  main\n    7  …uery\\x1b\n");
/// ```
#[derive(Clone, Debug)]
pub struct TextTable {
    columns: Vec<TextColumn>,
    /// Row by row.
    cells: Vec<String>,
    /// Titles of neighbouring columns, with how many there are.
    groups: Vec<(&'static str, usize)>,
    fit: Option<TableFit>,
    is_bordered: bool,
    is_whole: bool,
}

#[derive(Clone, Copy, Debug)]
struct TableFit {
    columns: usize,
    least: usize,
}

impl TextTable {
    /// A table without rows. A table whose titles are all empty has no header.
    #[must_use]
    pub fn new(columns: impl IntoIterator<Item = TextColumn>) -> Self {
        let columns = columns.into_iter().collect();
        Self {
            columns,
            cells: Vec::new(),
            groups: Vec::new(),
            fit: None,
            is_bordered: false,
            is_whole: false,
        }
    }

    /// A table of `rows`. The last column has names and is flexible; the others have names unless only numbers are
    /// [detected](TextColumn::detected) in them.
    #[must_use]
    pub fn of<const N: usize>(titles: [&str; N], rows: &[[String; N]], kept_end: KeptEnd) -> Self {
        let column = |(column, title): (usize, &str)| match column + 1 == N {
            true => TextColumn::name(title).flexible(kept_end),
            false => TextColumn::detected(title, rows.iter().map(|row| &*row[column])),
        };
        let mut table = Self::new(titles.into_iter().enumerate().map(column));
        rows.iter().for_each(|row| table.row(row));
        table
    }

    /// A table of keys and their values.
    #[must_use]
    pub fn facts() -> Self {
        Self::new([TextColumn::name(""), TextColumn::name("")])
    }

    /// Adds a row: a cell for each column. Cells are made [`printable`].
    pub fn row(&mut self, cells: impl IntoIterator<Item = impl AsRef<str>>) {
        self.cells.extend(cells.into_iter().map(|cell| printable(cell.as_ref().as_bytes())));
        debug_assert!(self.cells.len().is_multiple_of(self.stride()), "each row has a cell for each column");
    }

    /// The number of cells in a row; at least 1, because an answer of a database may have no columns.
    fn stride(&self) -> usize {
        self.columns.len().max(1)
    }

    /// Whether there are no rows.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.cells.is_empty()
    }

    /// Cuts the flexible column so that lines take at most `columns`; 0 cuts nothing. Nothing is cut either if fewer than `least`
    /// columns would remain of it: a terminal breaks such lines.
    #[must_use]
    pub fn fit(self, columns: usize, least: usize) -> Self {
        Self { fit: (columns > 0).then_some(TableFit { columns, least }), ..self }
    }

    /// Cuts nothing if `is_whole`, however wide a cell is. Without this, a cell takes at most [`WIDEST_INNER`] columns, and the
    /// last of a row at most [`WIDEST_LAST`].
    #[must_use]
    pub fn whole(self, is_whole: bool) -> Self {
        Self { is_whole, ..self }
    }

    /// Puts titles above the titles of neighbouring columns, from the first column on, each with its number of columns.
    #[must_use]
    pub fn grouped(self, groups: impl Into<Vec<(&'static str, usize)>>) -> Self {
        Self { groups: groups.into(), ..self }
    }

    /// Draws borders and aligns everything to the left.
    ///
    /// Source: Symfony Console, the default style of its table, which reli prints.
    #[must_use]
    pub fn bordered(mut self) -> Self {
        self.is_bordered = true;
        for column in &mut self.columns {
            column.side = CellSide::Left;
        }
        self
    }

    /// The lines, without line breaks and without spaces at their ends.
    #[must_use]
    pub fn lines(&self) -> Vec<String> {
        let cells = self.fitted();
        let widths: Vec<_> = (0..self.columns.len()).map(|column| self.widest(column, &cells)).collect();
        let rule = widths.iter().map(|&width| "-".repeat(width + 2)).collect::<Vec<_>>().join("+");
        let rule = self.is_bordered.then(|| format!("+{rule}+"));
        let titles: Vec<_> = self.columns.iter().map(|column| Cow::Borrowed(&*column.title)).collect();
        let mut lines = Vec::with_capacity(cells.len() / self.stride() + 4);
        lines.extend(rule.clone());
        lines.extend((!self.groups.is_empty()).then(|| self.group_line(&widths)));
        lines.extend(titles.iter().any(|title| !title.is_empty()).then(|| self.line(&titles, &widths)));
        lines.extend(rule.clone());
        lines.extend(cells.chunks(self.stride()).map(|row| self.line(row, &widths)));
        lines.extend(rule);
        lines
    }

    /// The cells, cut: none is wider than the widest that is allowed, and the flexible column fits.
    fn fitted<'s>(&'s self) -> Vec<Cow<'s, str>> {
        if self.is_whole {
            return self.cells.iter().map(|cell| Cow::Borrowed(&**cell)).collect();
        }
        let limited = |(at, cell): (usize, &'s String)| self.limited(at % self.stride(), cell);
        let mut cells: Vec<_> = self.cells.iter().enumerate().map(limited).collect();
        let flexible = self.columns.iter().enumerate().find_map(|(at, column)| Some((at, column.kept_end?)));
        let (Some(fit), Some((flexible, kept_end))) = (self.fit, flexible) else { return cells };
        let others = (0..self.columns.len()).filter(|&column| column != flexible);
        let others: usize = others.map(|column| self.widest(column, &cells)).sum();
        let between = match self.is_bordered {
            true => 3 * self.columns.len() + 1,
            false => GAP.len() * (self.columns.len() - 1),
        };
        let room = fit.columns.saturating_sub(others + between).max(1);
        if room >= fit.least {
            for cell in cells.iter_mut().skip(flexible).step_by(self.stride()) {
                *cell = crop(cell, room, kept_end).into();
            }
        }
        cells
    }

    /// A cell of a column, no wider than allowed.
    fn limited<'c>(&self, column: usize, cell: &'c str) -> Cow<'c, str> {
        let most = if column + 1 == self.columns.len() { WIDEST_LAST } else { WIDEST_INNER };
        // A character takes at least a byte, and at most two columns.
        if cell.len() <= most / 2 || width(cell) <= most {
            return Cow::Borrowed(cell);
        }
        let kept_end = self.columns.get(column).and_then(|column| column.kept_end);
        crop(cell, most, kept_end.unwrap_or(KeptEnd::Left)).into()
    }

    fn widest(&self, column: usize, cells: &[Cow<'_, str>]) -> usize {
        let TextColumn { title, least_width, .. } = &self.columns[column];
        let cells = cells.iter().skip(column).step_by(self.stride()).map(|cell| width(cell));
        cells.max().unwrap_or(0).max(width(title)).max(*least_width)
    }

    fn line(&self, cells: &[Cow<'_, str>], widths: &[usize]) -> String {
        let aligned = self.columns.iter().zip(cells).zip(widths).map(|((column, cell), &columns)| {
            let spaces = " ".repeat(columns.saturating_sub(width(cell)));
            match column.side {
                CellSide::Left => format!("{cell}{spaces}"),
                CellSide::Right => format!("{spaces}{cell}"),
            }
        });
        let aligned: Vec<_> = aligned.collect();
        match self.is_bordered {
            true => format!("| {} |", aligned.join(" | ")),
            false => aligned.join(GAP).trim_end().to_owned(),
        }
    }

    fn group_line(&self, widths: &[usize]) -> String {
        let mut rest = widths;
        let titles = self.groups.iter().map(|&(title, count)| {
            let (columns, others) = rest.split_at(count.min(rest.len()));
            rest = others;
            let width = columns.iter().sum::<usize>() + GAP.len() * columns.len().saturating_sub(1);
            format!("{:-^width$}", format!(" {title} "))
        });
        titles.collect::<Vec<_>>().join(GAP)
    }
}

impl fmt::Display for TextTable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.lines().iter().try_for_each(|line| writeln!(f, "{line}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn profile(columns: [TextColumn; 3], rows: &[[&str; 3]]) -> TextTable {
        let mut table = TextTable::new(columns);
        rows.iter().for_each(|row| table.row(row));
        table
    }

    fn columns() -> [TextColumn; 3] {
        [
            TextColumn::number("count"),
            TextColumn::number("pct"),
            TextColumn::name("frame").flexible(KeptEnd::Left),
        ]
    }

    /// Printed by Symfony Console 5.4.53 for the same cells.
    #[test]
    fn borders_are_those_of_symfony() {
        let rows = [
            ["1554", " 22.5%", "CMacros::extract /a/b.php:3"],
            ["3", "100.0%", "<main> x"],
            ["1", "  0.1%", "日本語 é"],
        ];
        assert_eq!(
            profile(columns(), &rows).bordered().to_string(),
            "\
+-------+--------+-----------------------------+
| count | pct    | frame                       |
+-------+--------+-----------------------------+
| 1554  |  22.5% | CMacros::extract /a/b.php:3 |
| 3     | 100.0% | <main> x                    |
| 1     |   0.1% | 日本語 é                    |
+-------+--------+-----------------------------+
"
        );
        assert_eq!(
            profile(columns(), &[["123456", " 22.5%", ""]]).bordered().to_string(),
            "\
+--------+--------+-------+
| count  | pct    | frame |
+--------+--------+-------+
| 123456 |  22.5% |       |
+--------+--------+-------+
"
        );
    }

    #[test]
    fn numbers_stand_at_the_right_and_names_at_the_left() {
        let rows = [["1,554", "22.5%", "計測"], ["3", "100.0%", "a\nb"], ["", "1.0%", ""]];
        let expected = "count     pct  frame\n1,554   22.5%  計測\n    3  100.0%  a\\x0ab\n         1.0%\n";
        assert_eq!(profile(columns(), &rows).to_string(), expected);
        assert_eq!(TextTable::new(columns()).to_string(), "count  pct  frame\n");
        assert_eq!(TextTable::new([]).to_string(), "");
    }

    #[test]
    fn one_column_is_cut_to_fit() {
        let rows = [["1", "2%", "日本語です"], ["1", "2%", "short"]];
        let table = |columns, least| profile(self::columns(), &rows).fit(columns, least).to_string();
        assert_eq!(table(18, 1), "count  pct  frame\n    1   2%  日本…\n    1   2%  short\n");
        assert_eq!(table(18, 7), table(0, 1), "less than is worth reading");
        assert_eq!(table(5, 1), "count  pct  frame\n    1   2%  …\n    1   2%  …\n");
        let bordered = profile(columns(), &rows).fit(24, 1).bordered();
        assert!(bordered.lines().iter().all(|line| width(line) <= 24), "{bordered}");
    }

    #[test]
    fn one_long_name_does_not_pad_every_row() {
        let long = "x".repeat(100_000);
        let columns = || [TextColumn::name("frame"), TextColumn::name("file")];
        let table = |rows: &[[&str; 2]]| {
            let mut table = TextTable::new(columns());
            rows.iter().for_each(|row| table.row(row));
            table
        };
        let shown = table(&[[&long, "a"], ["b", &long]]);
        let widths: Vec<_> = shown.lines().iter().map(|line| width(line)).collect();
        let gap = GAP.len();
        let rows = [WIDEST_INNER + gap + 4, WIDEST_INNER + gap + 1, WIDEST_INNER + gap + WIDEST_LAST];
        assert_eq!(widths, rows);
        let whole = shown.whole(true).lines();
        assert!(whole[1].starts_with(&long) && whole[2].ends_with(&long));
    }

    #[test]
    fn neighbouring_columns_have_a_title_together() {
        let mut columns = columns();
        columns[1] = TextColumn::number("pct").at_least(6);
        let table = profile(columns, &[["1", "2%", "x"]]).grouped([("self", 2)]);
        assert_eq!(table.to_string(), "--- self ----\ncount     pct  frame\n    1      2%  x\n");
    }

    #[test]
    fn a_column_of_numbers_is_detected() {
        let is_number =
            |cells: &[&str]| TextColumn::detected("", cells.iter().copied()).side == CellSide::Right;
        assert!(is_number(&["-1.5 ms", "+3", "1,204", "", "-"]) && is_number(&[]));
        assert!(!is_number(&["1", "main"]) && !is_number(&["--limit"]));
    }

    #[test]
    fn facts_have_no_titles() {
        let mut facts = TextTable::facts();
        facts.row(["samples", "12"]);
        facts.row(["pid", "7"]);
        assert_eq!(facts.to_string(), "samples  12\npid      7\n");
    }
}
