//! The tables at the end of a report.

use borehole::heap::MemoryTotal;
use borehole::heap::findings::HeapReport;
use borehole_text::{KeptEnd, TextTable, bytes, crop, grouped, percent, percent_of, printable};

use crate::table::titled;

pub(super) fn text(report: &HeapReport, columns: usize, limit: usize) -> String {
    let used = report.used_bytes;
    let named = |total: &MemoryTotal| {
        let name = String::from_utf8_lossy(&total.name).into_owned();
        let name = name.strip_suffix("MemoryLocation").unwrap_or(&name).to_owned();
        [bytes(total.memory_usage), percent(percent_of(total.memory_usage, used)), grouped(total.count), name]
    };
    let four = ["memory", "of heap", "count", "type"];
    let mut text = table("Type breakdown", four, report.types.iter().map(named), columns, limit);
    let four = ["memory", "of heap", "count", "class"];
    text += &table("Top classes", four, report.classes.iter().map(named), columns, limit);
    let arrays = report.arrays.iter().map(|array| {
        let path = format!("{} (#{})", array.place.path, array.place.node.0);
        [bytes(array.retained_bytes), bytes(array.table_bytes), grouped(array.elements), path]
    });
    let four = ["retained", "table", "elements", "path"];
    text += &table("Top arrays", four, arrays, columns, limit);
    let strings = report.strings.iter().map(|string| {
        let path = format!("{} (#{})", string.place.path, string.place.node.0);
        [bytes(string.size_bytes), crop(&printable(string.preview.as_bytes()), PREVIEW, KeptEnd::Left), path]
    });
    let three = ["size", "begins", "path"];
    text += &table("Top strings", three, strings, columns, limit);
    let roots = report.roots.iter().map(|root| {
        let share = percent(root.percentage_of_heap);
        [bytes(root.exclusive_bytes), bytes(root.shared_bytes), share, root.name.clone()]
    });
    let four = ["alone", "shared", "of heap", "root"];
    text + &table("Root blame allocation", four, roots, columns, limit)
}

/// Columns of a preview.
const PREVIEW: usize = 24;

/// The last column is cut at its beginning, for the end of a path says what it leads to.
fn table<const N: usize>(
    title: &str,
    heads: [&str; N],
    rows: impl Iterator<Item = [String; N]>,
    columns: usize,
    limit: usize,
) -> String {
    let mut rows: Vec<[String; N]> = rows.collect();
    let all = rows.len();
    rows.truncate(limit);
    let table = TextTable::of(heads, &rows, KeptEnd::Right).fit(columns, 1);
    titled(title, &table, rows.len(), all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_fit_their_columns_and_say_what_they_leave_out() {
        let rows = [["1 B", "<main>:12::$all->items['long']"], ["20 B", "$x"], ["3", "y"]];
        let text = table("T", ["memory", "path"], rows.into_iter().map(|row| row.map(str::to_owned)), 30, 2);
        let expected = "\nT\nmemory  path\n   1 B  …::$all->items['long']\n  20 B  $x\n  (2 of 3 shown; --limit 0 for all)\n";
        assert_eq!(text, expected);
    }
}
