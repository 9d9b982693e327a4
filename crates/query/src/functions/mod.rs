//! SQL functions over stacks and labels. `docs/lake.md` lists them from here.

mod evaluate;

use std::sync::Arc;

use datafusion::arrow::array::Array as _;
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType, Field};
use datafusion::common::{Result, exec_err, plan_err};
use datafusion::logical_expr::{
    ColumnarValue, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};

/// The function that reads a label; its name identifies filters on labels.
pub(crate) const LABEL: &str = "label";

/// A function.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Function {
    Leaf,
    Root,
    Depth,
    Folded,
    FramesOf,
    Contains,
    Collapse,
    Label,
}

/// The name and the description of a function.
pub(crate) struct Description {
    pub(crate) usage: &'static str,
    pub(crate) about: &'static str,
}

impl Function {
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

    const fn name(self) -> &'static str {
        match self {
            Self::Leaf => "leaf",
            Self::Root => "root",
            Self::Depth => "depth",
            Self::Folded => "folded",
            Self::FramesOf => "frames_of",
            Self::Contains => "contains_function",
            Self::Collapse => "collapse_package",
            Self::Label => LABEL,
        }
    }

    const fn description(self) -> Description {
        let (usage, about) = match self {
            Self::Leaf => ("leaf(stack)", "the function that was executing"),
            Self::Root => ("root(stack)", "the function that everything else was called from"),
            Self::Depth => ("depth(stack)", "how many frames there are"),
            Self::Folded => {
                ("folded(stack)", "the functions from the root to the leaf with `;` between them")
            }
            Self::FramesOf => (
                "frames_of(stack)",
                "each function of the stack once, as a list: what totals are counted over",
            ),
            Self::Contains => (
                "contains_function(stack, pattern)",
                "whether the name of some function matches the regular expression",
            ),
            Self::Collapse => (
                "collapse_package(stack)",
                "the stack with neighbouring frames of one package (what stands before the last `\\`, `::` or `.` of the name) as one frame",
            ),
            Self::Label => ("label(labels, key)", "the value of a label; absent where there is none"),
        };
        Description { usage, about }
    }

    fn return_type(self) -> DataType {
        match self {
            Self::Leaf | Self::Root | Self::Folded | Self::Label => DataType::Utf8View,
            Self::Depth => DataType::Int64,
            Self::Contains => DataType::Boolean,
            Self::FramesOf | Self::Collapse => names_type(),
        }
    }

    const fn arguments(self) -> usize {
        match self {
            Self::Contains | Self::Label => 2,
            _ => 1,
        }
    }
}

/// The type of the names of a stack.
fn names_type() -> DataType {
    DataType::List(Arc::new(Field::new("item", DataType::Utf8View, true)))
}

/// All functions.
pub(crate) fn all() -> Vec<ScalarUDF> {
    Function::ALL.into_iter().map(|function| ScalarUDF::new_from_impl(Callable::new(function))).collect()
}

/// The descriptions of all functions.
pub(crate) fn descriptions() -> impl Iterator<Item = Description> {
    Function::ALL.into_iter().map(Function::description)
}

/// A function as the engine calls it.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Callable {
    function: Function,
    signature: Signature,
}

impl Callable {
    fn new(function: Function) -> Self {
        Self { function, signature: Signature::user_defined(Volatility::Immutable) }
    }
}

impl ScalarUDFImpl for Callable {
    fn name(&self) -> &'static str {
        self.function.name()
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, arguments: &[DataType]) -> Result<Vec<DataType>> {
        let Description { usage, .. } = self.function.description();
        if arguments.len() != self.function.arguments() {
            return plan_err!("expected {usage}, found {} arguments", arguments.len());
        }
        let first = match self.function {
            Function::Label => DataType::Utf8View,
            _ if is_list(&arguments[0]) => names_type(),
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
            Function::Label => cast(&first, &DataType::Utf8View)?,
            _ => cast(&first, &names_type())?,
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
