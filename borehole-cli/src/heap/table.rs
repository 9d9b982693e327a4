//! Tables of answers.

use std::fmt::Write as _;

use borehole::heap::sql::{Answer, Value};
use serde_json::{Map, Value as Json};

use crate::cell::{Anchor, crop, pad, printable, width};

/// The widest a cell may be.
const WIDEST: usize = 80;

/// Aligned columns under their names.
pub(super) fn text(answer: &Answer) -> String {
    let cells: Vec<Vec<String>> = answer.rows.iter().map(|row| row.iter().map(cell).collect()).collect();
    let widths: Vec<usize> = answer
        .columns
        .iter()
        .enumerate()
        .map(|(column, name)| cells.iter().map(|row| width(&row[column])).max().unwrap_or(0).max(width(name)))
        .collect();
    let mut text = line(&answer.columns, &widths);
    for row in &cells {
        text += &line(row, &widths);
    }
    text
}

fn line(cells: &[String], widths: &[usize]) -> String {
    let padded: Vec<_> = cells.iter().zip(widths).map(|(cell, &width)| pad(cell, width)).collect();
    format!("{}\n", padded.join("  ").trim_end())
}

fn cell(value: &Value) -> String {
    crop(&printable(plain(value).as_bytes()), WIDEST, Anchor::Left)
}

/// A value as text; nothing for what is absent.
fn plain(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::Integer(number) => number.to_string(),
        Value::Real(number) => number.to_string(),
        Value::Text(text) => text.clone(),
    }
}

/// An object a line.
pub(super) fn json(answer: &Answer) -> String {
    objects(answer).iter().fold(String::new(), |mut text, object| {
        let _ = writeln!(text, "{object}");
        text
    })
}

/// An object a row.
pub(super) fn objects(answer: &Answer) -> Vec<Json> {
    let object = |row: &Vec<Value>| {
        let members = answer.columns.iter().cloned().zip(row.iter().map(json_value));
        Json::Object(members.collect::<Map<String, Json>>())
    };
    answer.rows.iter().map(object).collect()
}

fn json_value(value: &Value) -> Json {
    match value {
        Value::Null => Json::Null,
        Value::Integer(number) => (*number).into(),
        Value::Real(number) => (*number).into(),
        Value::Text(text) => text.as_str().into(),
    }
}

/// Comma-separated values.
///
/// Source: RFC 4180.
pub(super) fn csv(answer: &Answer) -> String {
    let mut text = csv_line(answer.columns.iter().map(String::as_str));
    for row in &answer.rows {
        let cells: Vec<String> = row.iter().map(plain).collect();
        text += &csv_line(cells.iter().map(String::as_str));
    }
    text
}

fn csv_line<'c>(cells: impl Iterator<Item = &'c str>) -> String {
    let quoted = |cell: &str| match cell.contains([',', '"', '\n', '\r']) {
        true => format!("\"{}\"", cell.replace('"', "\"\"")),
        false => cell.to_owned(),
    };
    format!("{}\r\n", cells.map(quoted).collect::<Vec<_>>().join(","))
}
