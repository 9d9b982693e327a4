//! Values of answers as plain data.

use datafusion::arrow::array::{Array, AsArray as _};
use datafusion::arrow::datatypes::{
    DataType, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type, UInt8Type, UInt16Type,
    UInt32Type, UInt64Type,
};
use datafusion::arrow::util::display::{ArrayFormatter, FormatOptions};

/// A value of an answer.
#[derive(Clone, Debug, PartialEq)]
pub enum LakeValue {
    /// No value.
    Absent,
    /// True or false.
    Bool(bool),
    /// A whole number.
    Integer(i128),
    /// A number with a fraction.
    Real(f64),
    /// Text, times (ISO 8601, UTC) and ids (hexadecimal).
    Text(String),
    /// Values in order.
    List(Vec<LakeValue>),
    /// Values with names.
    Struct(Vec<(String, LakeValue)>),
}

impl LakeValue {
    /// Formats it as text: lists and structs as JSON, an absent value as the empty text.
    #[must_use]
    pub fn to_text(&self) -> String {
        match self {
            Self::Absent => String::new(),
            Self::Text(text) => text.clone(),
            Self::Integer(number) => number.to_string(),
            Self::Real(number) => number.to_string(),
            other => other.to_json().to_string(),
        }
    }

    /// Converts it to JSON. Whole numbers too large for JSON readers become text.
    pub(crate) fn to_json(&self) -> serde_json::Value {
        match self {
            Self::Absent => serde_json::Value::Null,
            Self::Bool(is) => (*is).into(),
            Self::Integer(number) => match (i64::try_from(*number), u64::try_from(*number)) {
                (Ok(number), _) => number.into(),
                (_, Ok(number)) => number.into(),
                _ => number.to_string().into(),
            },
            Self::Real(number) => (*number).into(),
            Self::Text(text) => text.as_str().into(),
            Self::List(values) => values.iter().map(Self::to_json).collect(),
            Self::Struct(members) => {
                let members = members.iter().map(|(name, value)| (name.clone(), value.to_json()));
                serde_json::Value::Object(members.collect())
            }
        }
    }
}

/// The value in a row of a column.
pub(crate) fn value_at(column: &dyn Array, row: usize) -> LakeValue {
    if column.is_null(row) {
        return LakeValue::Absent;
    }
    macro_rules! integer {
        ($type:ty) => {
            LakeValue::Integer(column.as_primitive::<$type>().value(row).into())
        };
    }
    match column.data_type() {
        // Columns of this type have no values to read.
        DataType::Null => LakeValue::Absent,
        DataType::Boolean => LakeValue::Bool(column.as_boolean().value(row)),
        DataType::Int8 => integer!(Int8Type),
        DataType::Int16 => integer!(Int16Type),
        DataType::Int32 => integer!(Int32Type),
        DataType::Int64 => integer!(Int64Type),
        DataType::UInt8 => integer!(UInt8Type),
        DataType::UInt16 => integer!(UInt16Type),
        DataType::UInt32 => integer!(UInt32Type),
        DataType::UInt64 => integer!(UInt64Type),
        DataType::Float32 => LakeValue::Real(column.as_primitive::<Float32Type>().value(row).into()),
        DataType::Float64 => LakeValue::Real(column.as_primitive::<Float64Type>().value(row)),
        DataType::Utf8View => LakeValue::Text(column.as_string_view().value(row).to_owned()),
        DataType::Utf8 => LakeValue::Text(column.as_string::<i32>().value(row).to_owned()),
        DataType::List(_) => {
            let values = column.as_list::<i32>().value(row);
            LakeValue::List((0..values.len()).map(|row| value_at(&values, row)).collect())
        }
        DataType::Map(..) => {
            let entries = column.as_map().value(row);
            let (keys, values) = (entries.column(0), entries.column(1));
            let entry = |row| (value_at(keys, row).to_text(), value_at(values, row));
            LakeValue::Struct((0..entries.len()).map(entry).collect())
        }
        DataType::Struct(fields) => {
            let columns = column.as_struct().columns();
            let members = fields.iter().zip(columns);
            LakeValue::Struct(
                members.map(|(field, column)| (field.name().clone(), value_at(column, row))).collect(),
            )
        }
        _ => formatted(column, row),
    }
}

fn formatted(column: &dyn Array, row: usize) -> LakeValue {
    let options = FormatOptions::default();
    let text =
        ArrayFormatter::try_new(column, &options).and_then(|formatter| formatter.value(row).try_to_string());
    text.map_or(LakeValue::Absent, LakeValue::Text)
}
