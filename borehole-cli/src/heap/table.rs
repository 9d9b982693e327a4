//! Tables of answers.

use std::fmt::Write as _;

use anyhow::bail;
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
///
/// # Errors
/// When two columns have one name, of which an object would have one.
pub(super) fn json(answer: &Answer) -> anyhow::Result<String> {
    let columns = &answer.columns;
    if let Some((_, name)) = columns.iter().enumerate().find(|(at, name)| columns[..*at].contains(name)) {
        bail!(
            "expected columns of different names for --json, found two called {name}: AS gives them others"
        );
    }
    Ok(objects(answer).iter().fold(String::new(), |mut text, object| {
        let _ = writeln!(text, "{object}");
        text
    }))
}

/// An object a row. The columns have different names.
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
