//! Tables of answers: for people, and as comma-separated values.

use anyhow::ensure;

use crate::cell::{Anchor, crop, pad, printable, width};

/// The widest a cell may be.
const WIDEST: usize = 80;

/// A value as it stands in a table: on one line, and cut if it is too wide.
pub(crate) fn cell(text: &str) -> String {
    crop(&printable(text.as_bytes()), WIDEST, Anchor::Left)
}

/// Rows of cells under the names of their columns, aligned.
pub(crate) fn aligned(columns: &[String], rows: &[Vec<String>]) -> String {
    let names: Vec<String> = columns.iter().map(|name| cell(name)).collect();
    let widest = |(column, name): (usize, &String)| {
        rows.iter().map(|row| width(&row[column])).max().unwrap_or(0).max(width(name))
    };
    let widths: Vec<usize> = names.iter().enumerate().map(widest).collect();
    let line = |cells: &[String]| {
        let padded: Vec<_> = cells.iter().zip(&widths).map(|(cell, &width)| pad(cell, width)).collect();
        format!("{}\n", padded.join("  ").trim_end())
    };
    line(&names) + &rows.iter().map(|row| line(row)).collect::<String>()
}

/// Refuses two columns of one name, of which an object of JSON would have one.
pub(crate) fn differ(columns: &[impl AsRef<str>]) -> anyhow::Result<()> {
    let name_of = |column: usize| columns[column].as_ref();
    let twice = (0..columns.len()).find(|&column| (0..column).any(|other| name_of(other) == name_of(column)));
    let name = twice.map(name_of).unwrap_or_default();
    ensure!(
        twice.is_none(),
        "expected columns of different names for --json, found two called {name}: AS gives them others"
    );
    Ok(())
}

/// A line of comma-separated values.
///
/// Source: RFC 4180.
pub(crate) fn csv_line(cells: impl IntoIterator<Item = impl AsRef<str>>) -> String {
    let quoted = |cell: &str| match cell.contains([',', '"', '\n', '\r']) {
        true => format!("\"{}\"", cell.replace('"', "\"\"")),
        false => cell.to_owned(),
    };
    let cells: Vec<String> = cells.into_iter().map(|cell| quoted(cell.as_ref())).collect();
    format!("{}\r\n", cells.join(","))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(cells: [&str; 2]) -> Vec<String> {
        cells.map(cell).into()
    }

    #[test]
    fn columns_are_as_wide_as_what_is_in_them() {
        let rows = [row(["計測", "1"]), row(["a\nb", ""]), row(["n", &"x".repeat(90)])];
        let expected = format!("name    n\n計測    1\na\\x0ab\nn       {}…\n", "x".repeat(79));
        assert_eq!(aligned(&row(["name", "n"]), &rows), expected);
        assert_eq!(aligned(&row(["name", "n"]), &[]), "name  n\n");
    }

    #[test]
    fn columns_of_one_name_are_refused() {
        assert!(differ(&["a", "b", "A"]).is_ok() && differ(&[""; 0]).is_ok());
        let error = differ(&["a", "b", "b"]).unwrap_err().to_string();
        assert!(error.contains("found two called b: AS"), "{error}");
    }

    #[test]
    fn what_separates_values_is_quoted() {
        assert_eq!(csv_line(["a", "b,c", "d\"e", "f\ng", ""]), "a,\"b,c\",\"d\"\"e\",\"f\ng\",\r\n");
    }
}
