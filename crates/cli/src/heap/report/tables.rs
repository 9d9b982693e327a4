//! The tables at the end of a report.

use borehole::heap::Total;
use borehole::heap::findings::Report;
use borehole_analysis::amount::grouped;

use crate::cell::{Anchor, bytes, crop, pad, printable, width};
use crate::values::cut;

/// A column before the last, which takes what is left.
struct Column {
    title: &'static str,
    /// Numbers stand at the right.
    is_number: bool,
}

const fn number(title: &'static str) -> Column {
    Column { title, is_number: true }
}

const fn word(title: &'static str) -> Column {
    Column { title, is_number: false }
}

pub(super) fn text(report: &Report, columns: usize, limit: usize) -> String {
    let used = report.used_bytes;
    let named = |total: &Total| {
        let name = String::from_utf8_lossy(&total.name).into_owned();
        let name = name.strip_suffix("MemoryLocation").unwrap_or(&name).to_owned();
        [bytes(total.memory_usage), percent(total.memory_usage, used), grouped(total.count), name]
    };
    let four = [number("memory"), number("of heap"), number("count"), word("type")];
    let mut text = table("Type breakdown", &four, report.types.iter().map(named), columns, limit);
    let four = [number("memory"), number("of heap"), number("count"), word("class")];
    text += &table("Top classes", &four, report.classes.iter().map(named), columns, limit);
    let arrays = report.arrays.iter().map(|array| {
        let path = format!("{} (#{})", array.place.path, array.place.node.0);
        [bytes(array.retained_bytes), bytes(array.table_bytes), grouped(array.elements), path]
    });
    let four = [number("retained"), number("table"), number("elements"), word("path")];
    text += &table("Top arrays", &four, arrays, columns, limit);
    let strings = report.strings.iter().map(|string| {
        let path = format!("{} (#{})", string.place.path, string.place.node.0);
        [bytes(string.size_bytes), crop(&printable(string.preview.as_bytes()), PREVIEW, Anchor::Left), path]
    });
    let three = [number("size"), word("begins"), word("path")];
    text += &table("Top strings", &three, strings, columns, limit);
    let roots = report.roots.iter().map(|root| {
        let share = format!("{:.1}%", root.percentage_of_heap);
        [bytes(root.exclusive_bytes), bytes(root.shared_bytes), share, root.name.clone()]
    });
    let four = [number("alone"), number("shared"), number("of heap"), word("root")];
    text + &table("Root blame allocation", &four, roots, columns, limit)
}

/// Columns of a preview.
const PREVIEW: usize = 24;

fn percent(part: u64, whole: u64) -> String {
    #[expect(clippy::cast_precision_loss, reason = "one digit after the point is shown")]
    let share = if whole == 0 { 0.0 } else { part as f64 / whole as f64 * 100.0 };
    format!("{share:.1}%")
}

fn table<const N: usize>(
    title: &str,
    heads: &[Column; N],
    rows: impl Iterator<Item = [String; N]>,
    columns: usize,
    limit: usize,
) -> String {
    let all: Vec<[String; N]> = rows.collect();
    if all.is_empty() {
        return String::new();
    }
    let shown: Vec<[String; N]> =
        all.iter().take(limit).map(|row| row.each_ref().map(|cell| printable(cell.as_bytes()))).collect();
    let widths: [usize; N] = std::array::from_fn(|column| {
        let cells = shown.iter().map(|row| width(&row[column]));
        cells.max().unwrap_or(0).max(heads[column].title.len())
    });
    let mut text = format!("\n{title}\n");
    text += &line(heads, &heads.each_ref().map(|head| head.title.to_owned()), &widths, columns);
    for row in &shown {
        text += &line(heads, row, &widths, columns);
    }
    if let Some(cut) = cut(shown.len(), all.len()) {
        text += &format!("  {cut}\n");
    }
    text
}

/// Cells beside each other; the last is cut at its beginning, for a path's end says what it leads to.
fn line<const N: usize>(
    heads: &[Column; N],
    cells: &[String; N],
    widths: &[usize; N],
    columns: usize,
) -> String {
    let mut text = " ".to_owned();
    for (column, cell) in cells.iter().enumerate() {
        text.push(' ');
        let spaces = " ".repeat(widths[column].saturating_sub(width(cell)));
        if column + 1 == N {
            text += &crop(cell, columns.saturating_sub(width(&text)).max(1), Anchor::Right);
        } else if heads[column].is_number {
            text += &format!("{spaces}{cell} ");
        } else {
            text += &pad(cell, widths[column] + 1);
        }
    }
    format!("{}\n", text.trim_end())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_fit_their_columns_and_say_what_they_leave_out() {
        let heads = [number("memory"), word("path")];
        let rows = [["1 B", "<main>:12::$all->items['long']"], ["20 B", "$x"], ["3", "y"]];
        let text = table("T", &heads, rows.into_iter().map(|row| row.map(str::to_owned)), 30, 2);
        let expected = "\nT\n  memory  path\n     1 B  …$all->items['long']\n    20 B  $x\n  2 of 3 shown; --limit 0 for all\n";
        assert_eq!(text, expected);
        assert_eq!(percent(1, 0), "0.0%");
    }
}
