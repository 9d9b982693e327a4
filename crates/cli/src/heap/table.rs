//! Tables of answers.

use std::io::{BufWriter, Write};

use borehole::heap::sql::{AnswerSink, QueryAnswer, SqlValue};
use serde_json::{Map, Value as Json};

use crate::stdout::{StdoutData, data, stdout_error};
use crate::table::{aligned, cell, csv_line, differ};

/// How an answer is printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    /// Aligned columns under their names.
    Text,
    /// An object a line.
    Json,
    /// Comma-separated values.
    Csv,
}

/// Prints an answer: row by row as it comes, unless columns are to be aligned, which takes all of it.
pub(super) struct Printer<W: Write> {
    form: Form,
    out: W,
    columns: Vec<String>,
    /// The rows to align.
    cells: Vec<Vec<String>>,
}

impl Printer<BufWriter<StdoutData>> {
    /// Prints on standard output.
    pub(super) fn new(form: Form) -> Self {
        Self::to(form, BufWriter::new(data()))
    }
}

impl<W: Write> Printer<W> {
    fn to(form: Form, out: W) -> Self {
        Self { form, out, columns: Vec::new(), cells: Vec::new() }
    }

    fn print(&mut self, text: &str) -> anyhow::Result<()> {
        Ok(self.out.write_all(text.as_bytes()).map_err(stdout_error)?)
    }

    /// Prints what is left.
    pub(super) fn finish(mut self) -> anyhow::Result<()> {
        if self.form == Form::Text {
            let text = aligned(&self.columns, &self.cells);
            self.print(&text)?;
        }
        Ok(self.out.flush().map_err(stdout_error)?)
    }
}

impl<W: Write> AnswerSink for Printer<W> {
    type Error = anyhow::Error;

    fn columns(&mut self, names: &[String]) -> anyhow::Result<()> {
        names.clone_into(&mut self.columns);
        match self.form {
            Form::Text => Ok(()),
            Form::Json => differ(names),
            Form::Csv => self.print(&csv_line(names)),
        }
    }

    fn row(&mut self, row: Vec<SqlValue>) -> anyhow::Result<()> {
        match self.form {
            Form::Text => {
                self.cells.push(cells(&row));
                Ok(())
            }
            Form::Json => {
                let line = format!("{}\n", object(&self.columns, &row));
                self.print(&line)
            }
            Form::Csv => self.print(&csv_line(row.iter().map(plain))),
        }
    }
}

/// Aligned columns under their names.
pub(super) fn text(answer: &QueryAnswer) -> String {
    let rows: Vec<_> = answer.rows.iter().map(|row| cells(row)).collect();
    aligned(&answer.columns, &rows)
}

fn cells(row: &[SqlValue]) -> Vec<String> {
    row.iter().map(|value| cell(&plain(value))).collect()
}

/// A value as text; nothing for what is absent.
fn plain(value: &SqlValue) -> String {
    match value {
        SqlValue::Null => String::new(),
        SqlValue::Integer(number) => number.to_string(),
        SqlValue::Real(number) => number.to_string(),
        SqlValue::Text(text) => text.clone(),
    }
}

/// An object a row. The columns have different names.
pub(super) fn objects(answer: &QueryAnswer) -> Vec<Json> {
    answer.rows.iter().map(|row| object(&answer.columns, row)).collect()
}

fn object(columns: &[String], row: &[SqlValue]) -> Json {
    let members = columns.iter().cloned().zip(row.iter().map(json_value));
    Json::Object(members.collect::<Map<String, Json>>())
}

fn json_value(value: &SqlValue) -> Json {
    match value {
        SqlValue::Null => Json::Null,
        SqlValue::Integer(number) => (*number).into(),
        SqlValue::Real(number) => (*number).into(),
        SqlValue::Text(text) => text.as_str().into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The text that is printed after the first row, and at the end.
    fn printed(form: Form) -> [String; 2] {
        let mut out = Vec::new();
        let mut printer = Printer::to(form, &mut out);
        printer.columns(&["a".to_owned(), "b".to_owned()]).unwrap();
        printer.row(vec![SqlValue::Integer(1), SqlValue::Text("x,y".to_owned())]).unwrap();
        let first = String::from_utf8(printer.out.clone()).unwrap();
        printer.row(vec![SqlValue::Null, SqlValue::Real(0.5)]).unwrap();
        printer.finish().unwrap();
        [first, String::from_utf8(out).unwrap()]
    }

    #[test]
    fn rows_are_printed_as_they_come_unless_they_are_aligned() {
        let json = ["{\"a\":1,\"b\":\"x,y\"}\n", "{\"a\":null,\"b\":0.5}\n"];
        assert_eq!(printed(Form::Json), [json[0].to_owned(), json.concat()]);
        let csv = ["a,b\r\n1,\"x,y\"\r\n", ",0.5\r\n"];
        assert_eq!(printed(Form::Csv), [csv[0].to_owned(), csv.concat()]);
        assert_eq!(printed(Form::Text), [String::new(), "a  b\n1  x,y\n   0.5\n".to_owned()]);
    }
}
