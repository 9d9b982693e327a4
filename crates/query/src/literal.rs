//! SQL literals.

/// A text as an SQL literal.
pub(crate) fn text(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}

/// A time as an SQL literal.
pub(crate) fn time(time_us: i64) -> String {
    format!("arrow_cast({time_us}, 'Timestamp(Microsecond, Some(\"{}\"))')", crate::tables::UTC)
}
