//! Tables with borders.
//!
//! Source: Symfony Console, the default style of its table, in which reli prints.

use crate::cell::{pad, width};

/// Columns that borders and padding of a row of `cells` take beside the cells themselves.
pub(crate) const fn border_columns(cells: usize) -> usize {
    3 * cells + 1
}

/// The lines of a table. Every row has as many cells as there are headers.
pub(crate) fn lines<const N: usize>(headers: [&str; N], rows: &[[String; N]]) -> Vec<String> {
    let widths = widths(headers, rows);
    let rule = widths.iter().map(|&width| "-".repeat(width + 2)).collect::<Vec<_>>();
    let rule = format!("+{}+", rule.join("+"));
    let mut lines = vec![rule.clone(), line(&headers, &widths), rule.clone()];
    lines.extend(rows.iter().map(|row| line(row, &widths)));
    lines.push(rule);
    lines
}

/// The width of each column.
pub(crate) fn widths<const N: usize>(headers: [&str; N], rows: &[[String; N]]) -> [usize; N] {
    std::array::from_fn(|column| {
        let cells = rows.iter().map(|row| width(&row[column]));
        cells.max().unwrap_or(0).max(width(headers[column]))
    })
}

fn line<T: AsRef<str>>(cells: &[T], widths: &[usize]) -> String {
    let padded: Vec<_> = cells.iter().zip(widths).map(|(cell, &width)| pad(cell.as_ref(), width)).collect();
    format!("| {} |", padded.join(" | "))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows<const R: usize>(rows: [[&str; 3]; R]) -> [[String; 3]; R] {
        rows.map(|row| row.map(str::to_owned))
    }

    /// Printed by Symfony Console 5.4.53 for the same cells.
    #[test]
    fn borders_are_those_of_symfony() {
        let cells = rows([
            ["1554", " 22.5%", "CMacros::extract /a/b.php:3"],
            ["3", "100.0%", "<main> x"],
            ["1", "  0.1%", "日本語 é"],
        ]);
        assert_eq!(
            lines(["count", "pct", "frame"], &cells).join("\n"),
            "\
+-------+--------+-----------------------------+
| count | pct    | frame                       |
+-------+--------+-----------------------------+
| 1554  |  22.5% | CMacros::extract /a/b.php:3 |
| 3     | 100.0% | <main> x                    |
| 1     |   0.1% | 日本語 é                    |
+-------+--------+-----------------------------+"
        );
        assert_eq!(
            lines(["count", "pct", "frame"], &rows([["123456", " 22.5%", ""]])).join("\n"),
            "\
+--------+--------+-------+
| count  | pct    | frame |
+--------+--------+-------+
| 123456 |  22.5% |       |
+--------+--------+-------+"
        );
    }

    #[test]
    fn a_line_is_its_cells_and_its_borders() {
        let cells = rows([["1", "2", "3"]]);
        let cells_alone: usize = widths(["a", "bb", "ccc"], &cells).iter().sum();
        assert_eq!(lines(["a", "bb", "ccc"], &cells)[0].len(), cells_alone + border_columns(3));
    }
}
