//! Tables of answers.

use std::fmt::Write as _;

use borehole::heap::sql::{Answer, Value};
use serde_json::{Map, Value as Json};

use crate::table::{aligned, cell, csv_line};

/// Aligned columns under their names.
pub(super) fn text(answer: &Answer) -> String {
    let cells = |row: &Vec<Value>| row.iter().map(|value| cell(&plain(value))).collect();
    let rows: Vec<Vec<String>> = answer.rows.iter().map(cells).collect();
    aligned(&answer.columns, &rows)
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
pub(super) fn csv(answer: &Answer) -> String {
    let rows = answer.rows.iter().map(|row| csv_line(row.iter().map(plain)));
    csv_line(&answer.columns) + &rows.collect::<String>()
}
