//! SQL functions over stacks and labels. `docs/lake.md` lists them from here.

mod evaluate;

use datafusion::arrow::array::Array as _;
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::DataType;
use datafusion::common::{Result, exec_err, plan_err};
use datafusion::logical_expr::{
    ColumnarValue, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};

use crate::labels;
use crate::tables::names_item;

/// The name of the function that returns a label, which identifies filters on labels.
pub(crate) const LABEL: &str = "label";

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum SqlFunction {
    Leaf,
    Root,
    Depth,
    Folded,
    FramesOf,
    Contains,
    Collapse,
    Label,
}

impl SqlFunction {
    const ALL: [Self; 8] = [
        Self::Leaf,
        Self::Root,
        Self::Depth,
        Self::Folded,
        Self::FramesOf,
        Self::Contains,
        Self::Collapse,
        Self::Label,
    ];

    /// Its name: the part of its usage before the arguments.
    fn name(self) -> &'static str {
        let (usage, _) = self.description();
        usage.split_once('(').map_or(usage, |(name, _)| name)
    }

    /// Its usage, and what it returns.
    const fn description(self) -> (&'static str, &'static str) {
        match self {
            Self::Leaf => ("leaf(stack)", "the leaf: the function that was executing"),
            Self::Root => ("root(stack)", "the root: the outermost function"),
            Self::Depth => ("depth(stack)", "the number of frames"),
            Self::Folded => ("folded(stack)", "the functions from root to leaf, joined by `;`"),
            Self::FramesOf => {
                ("frames_of(stack)", "the distinct functions of the stack, as a list; for adding up totals")
            }
            Self::Contains => (
                "contains_function(stack, pattern)",
                "whether the name of any function matches the regular expression",
            ),
            Self::Collapse => (
                "collapse_package(stack)",
                "the stack with neighbouring frames of one package as one frame; a package is the name up to the last `\\`, `::` or `.`",
            ),
            Self::Label => {
                ("label(labels, key)", "the value of a label, as `labels[key]`; absent if there is none")
            }
        }
    }

    fn return_type(self) -> DataType {
        match self {
            Self::Leaf | Self::Root | Self::Folded | Self::Label => DataType::Utf8View,
            Self::Depth => DataType::Int64,
            Self::Contains => DataType::Boolean,
            Self::FramesOf | Self::Collapse => DataType::List(names_item()),
        }
    }
}

pub(crate) fn all() -> Vec<ScalarUDF> {
    let signature = Signature::user_defined(Volatility::Immutable);
    let callable = |function| Callable { function, signature: signature.clone() };
    SqlFunction::ALL.map(|function| ScalarUDF::new_from_impl(callable(function))).into()
}

/// The usage of all functions, and what they return.
pub(crate) fn descriptions() -> impl Iterator<Item = (&'static str, &'static str)> {
    SqlFunction::ALL.into_iter().map(SqlFunction::description)
}

/// The engine's handle to a function.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Callable {
    function: SqlFunction,
    signature: Signature,
}

impl ScalarUDFImpl for Callable {
    fn name(&self) -> &'static str {
        self.function.name()
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, arguments: &[DataType]) -> Result<Vec<DataType>> {
        let (usage, _) = self.function.description();
        if arguments.len() != usage.split(',').count() {
            let plural = if arguments.len() == 1 { "" } else { "s" };
            return plan_err!("expected {usage}, found {} argument{plural}", arguments.len());
        }
        let first = match self.function {
            SqlFunction::Label if is_map(&arguments[0]) => labels::data_type(),
            SqlFunction::Label => {
                return plan_err!("expected {usage} with a column of labels, found {}", arguments[0]);
            }
            _ if is_list(&arguments[0]) => DataType::List(names_item()),
            _ => {
                return plan_err!(
                    "expected {usage} with the column `stack` of `stacks`, found {}",
                    arguments[0]
                );
            }
        };
        Ok([first, DataType::Utf8View].into_iter().take(arguments.len()).collect())
    }

    fn return_type(&self, _arguments: &[DataType]) -> Result<DataType> {
        Ok(self.function.return_type())
    }

    fn invoke_with_args(&self, call: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let Some(first) = call.args.first() else { return exec_err!("expected an argument, found none") };
        let is_constant = call.args.iter().all(|argument| matches!(argument, ColumnarValue::Scalar(_)));
        let first = first.to_array(if is_constant { 1 } else { call.number_rows })?;
        let first = match self.function {
            SqlFunction::Label => cast(&first, &labels::data_type())?,
            _ => cast(&first, &DataType::List(names_item()))?,
        };
        let second = call.args.get(1).map(|argument| argument.to_array(first.len())).transpose()?;
        let second = second.map(|second| cast(&second, &DataType::Utf8View)).transpose()?;
        let values = evaluate::evaluate(self.function, &first, second.as_ref())?;
        if is_constant {
            return Ok(ColumnarValue::Scalar(datafusion::common::ScalarValue::try_from_array(&values, 0)?));
        }
        Ok(ColumnarValue::Array(values))
    }
}

const fn is_map(data_type: &DataType) -> bool {
    matches!(data_type, DataType::Map(..) | DataType::Null)
}

fn is_list(data_type: &DataType) -> bool {
    matches!(
        data_type,
        DataType::List(_)
            | DataType::LargeList(_)
            | DataType::ListView(_)
            | DataType::FixedSizeList(..)
            | DataType::Null
    )
}
