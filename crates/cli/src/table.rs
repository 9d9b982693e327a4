//! Tables as aligned text and as comma-separated values.

use anyhow::ensure;
use borehole_text::{KeptEnd, TextColumn, TextTable, WIDEST_INNER, crop, printable};

use crate::cell::{is_wide, sized};
use crate::values::cut_by;

/// Escapes a value for a cell, and cuts it if it is too wide and the user does not want it whole.
pub(crate) fn cell(text: &str) -> String {
    let text = printable(text.as_bytes());
    if is_wide() { text } else { crop(&text, WIDEST_INNER, KeptEnd::Left) }
}

/// The rows of an answer under the names of their columns.
pub(crate) fn aligned(columns: &[String], rows: &[Vec<String>]) -> String {
    let column = |(column, name): (usize, &String)| {
        TextColumn::detected(&cell(name), rows.iter().map(|row| &*row[column]))
    };
    let mut table = sized(TextTable::new(columns.iter().enumerate().map(column)));
    rows.iter().for_each(|row| table.row(row));
    table.to_string()
}

/// A table under its title, below an empty line, that shows some rows `of` all; nothing if there are none.
pub(crate) fn titled(title: &str, table: &TextTable, shown: usize, of: usize) -> String {
    titled_by(title, table, [shown, of], Some("--limit"))
}

/// Like [`titled`], for a command whose option for the number of rows is called `option`; `None` if it has none.
pub(crate) fn titled_by(
    title: &str,
    table: &TextTable,
    [shown, of]: [usize; 2],
    option: Option<&str>,
) -> String {
    if table.is_empty() {
        return String::new();
    }
    let cut = cut_by(shown as u64, of as u64, option).map(|cut| format!("  ({cut})\n"));
    format!("\n{title}\n{table}{}", cut.unwrap_or_default())
}

/// Refuses columns with the same name, because a JSON object would keep only one of them.
pub(crate) fn differ(columns: &[impl AsRef<str>]) -> anyhow::Result<()> {
    let name_of = |column: usize| columns[column].as_ref();
    let twice = (0..columns.len()).find(|&column| (0..column).any(|other| name_of(other) == name_of(column)));
    let name = twice.map(name_of).unwrap_or_default();
    ensure!(
        twice.is_none(),
        "expected distinct column names for --json, found two called {name}; rename one with AS"
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
        let rows = [row(["計測", "1"]), row(["a\nb", ""]), row(["n", "1204"])];
        let expected = "name       n\n計測       1\na\\x0ab\nn       1204\n";
        assert_eq!(aligned(&row(["name", "n"]), &rows), expected);
        assert_eq!(aligned(&row(["name", "n"]), &[]), "name  n\n");
        let long = [row([&"x".repeat(90), "n"])];
        assert!(aligned(&row(["name", "n"]), &long).ends_with(&format!("{}…  n\n", "x".repeat(79))));
    }

    #[test]
    fn columns_of_one_name_are_refused() {
        assert!(differ(&["a", "b", "A"]).is_ok() && differ(&[""; 0]).is_ok());
        let error = differ(&["a", "b", "b"]).unwrap_err().to_string();
        assert!(error.contains("found two called b; rename"), "{error}");
    }

    #[test]
    fn what_separates_values_is_quoted() {
        assert_eq!(csv_line(["a", "b,c", "d\"e", "f\ng", ""]), "a,\"b,c\",\"d\"\"e\",\"f\ng\",\r\n");
    }
}
