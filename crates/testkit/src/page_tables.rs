//! Tables in the documentation of formats.

/// The rows of the table of `page` whose header begins with `head`, each as its cells.
///
/// # Panics
/// If there is no such table.
pub fn rows(page: &'static str, head: &str) -> Vec<Vec<&'static str>> {
    let lines = page.lines().skip_while(|line| !line.starts_with(head)).skip(2);
    let rows: Vec<_> = lines.take_while(|line| line.starts_with('|')).map(cells).collect();
    assert!(!rows.is_empty(), "no table {head}");
    rows
}

fn cells(line: &'static str) -> Vec<&'static str> {
    line.trim_matches('|').split(" | ").map(|cell| cell.trim().trim_matches('`')).collect()
}
