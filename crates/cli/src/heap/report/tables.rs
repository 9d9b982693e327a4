//! The tables at the end of a report.

use borehole::heap::MemoryTotal;
use borehole::heap::findings::{FindingPlace, HeapReport};
use borehole_text::{KeptEnd, TextTable, bytes, crop, grouped, percent, percent_of, printable};

use super::ReportOutput;
use crate::cell::sized;
use crate::table::titled_by;

pub(super) fn text(report: &HeapReport, columns: usize, output: &ReportOutput) -> String {
    let used = report.used_bytes;
    let named = |total: &MemoryTotal| {
        let name = String::from_utf8_lossy(&total.name).into_owned();
        let name = name.strip_suffix("MemoryLocation").unwrap_or(&name).to_owned();
        [bytes(total.memory_usage), percent(percent_of(total.memory_usage, used)), grouped(total.count), name]
    };
    let four = ["memory", "of heap", "count", "type"];
    let mut text = table("Type breakdown", four, report.types.iter().map(named), columns, output);
    let four = ["memory", "of heap", "count", "class"];
    text += &table("Top classes", four, report.classes.iter().map(named), columns, output);
    let arrays = report.arrays.iter().map(|array| {
        let elements = grouped(array.elements);
        [bytes(array.retained_bytes), bytes(array.table_bytes), elements, place(&array.place, array.count)]
    });
    let four = ["retained", "table", "elements", "path"];
    text += &table("Top arrays", four, arrays, columns, output);
    let strings = report.strings.iter().map(|string| {
        let preview = crop(&printable(string.preview.as_bytes()), PREVIEW, KeptEnd::Left);
        [bytes(string.shallow_bytes), preview, place(&string.place, string.count)]
    });
    let three = ["shallow", "begins", "path"];
    text += &table("Top strings", three, strings, columns, output);
    let roots = report.roots.iter().map(|root| {
        let share = percent(root.percentage_of_heap);
        [bytes(root.exclusive_bytes), bytes(root.shared_bytes), share, root.name.clone()]
    });
    let four = ["alone", "shared", "of heap", "root"];
    text + &table("Root blame allocation", four, roots, columns, output)
}

/// The place of a value, or of so many that are alike.
fn place(place: &FindingPlace, count: u64) -> String {
    let path = printable(place.path.as_bytes());
    if count > 1 { format!("{path} x {}", grouped(count)) } else { format!("{path} (#{})", place.node.0) }
}

/// Columns of a preview.
const PREVIEW: usize = 24;

/// The last column is cut at its beginning, for the end of a path says what it leads to.
fn table<const N: usize>(
    title: &str,
    heads: [&str; N],
    rows: impl Iterator<Item = [String; N]>,
    columns: usize,
    output: &ReportOutput,
) -> String {
    let mut rows: Vec<[String; N]> = rows.collect();
    let all = rows.len();
    rows.truncate(output.limit.count());
    let table = sized(TextTable::of(heads, &rows, KeptEnd::Right).fit(columns, 1));
    titled_by(title, &table, [rows.len(), all], output.options.limit)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::heap::report::ReportOptions;
    use crate::values::RowLimit;

    #[test]
    fn tables_fit_their_columns_and_say_what_they_leave_out() {
        let rows = [["1 B", "<main>:12::$all->items['long']"], ["20 B", "$x"], ["3", "y"]];
        let rows = || rows.into_iter().map(|row| row.map(str::to_owned));
        let output = ReportOutput { limit: RowLimit::new(2), ..ReportOutput::default() };
        let text = table("T", ["memory", "path"], rows(), 30, &output);
        let expected = "\nT\nmemory  path\n   1 B  …::$all->items['long']\n  20 B  $x\n  (2 of 3 shown; --limit 0 for all)\n";
        assert_eq!(text, expected);
        // Reli's command has no such option.
        let output =
            ReportOutput { options: ReportOptions { limit: None, json: "-f report-json" }, ..output };
        let text = table("T", ["memory", "path"], rows(), 30, &output);
        assert!(text.ends_with("\n  (2 of 3 shown)\n"), "{text}");
    }
}
