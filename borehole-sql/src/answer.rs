//! What a query answers.

/// A table of values.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Answer {
    /// The names of the columns.
    pub columns: Vec<String>,
    /// The rows, each as long as there are columns.
    pub rows: Vec<Vec<Value>>,
}

/// A value of an answer.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// Nothing.
    Null,
    /// A whole number.
    Integer(i64),
    /// A number with a fraction.
    Real(f64),
    /// Text, as the database has it: see [`text`](crate::text).
    Text(String),
}
