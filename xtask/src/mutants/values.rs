//! Values that a function may return instead of its own.

use syn::{GenericArgument, PathArguments, ReturnType, Type};

/// The integer types, whose values are numbers.
const INTEGERS: &[&str] =
    &["u8", "u16", "u32", "u64", "u128", "usize", "i8", "i16", "i32", "i64", "i128", "isize"];

/// Simple values of the type that a function returns; the compiler decides which of them fit.
pub(super) fn of(output: &ReturnType) -> Vec<String> {
    match output {
        ReturnType::Default => vec!["()".to_owned()],
        ReturnType::Type(_, kind) => of_type(kind),
    }
}

fn of_type(kind: &Type) -> Vec<String> {
    let fixed = |values: &[&str]| values.iter().map(|&value| value.to_owned()).collect();
    match kind {
        Type::Tuple(tuple) if tuple.elems.is_empty() => fixed(&["()"]),
        Type::Never(_) | Type::ImplTrait(_) | Type::Macro(_) => Vec::new(),
        Type::Path(path) => {
            let Some(last) = path.path.segments.last() else { return Vec::new() };
            match last.ident.to_string().as_str() {
                "bool" => fixed(&["true", "false"]),
                "String" => fixed(&["String::new()"]),
                "Vec" => fixed(&["Vec::new()"]),
                "Option" => fixed(&["None"]),
                "Result" => match first_argument(&last.arguments) {
                    Some(value) => of_type(value).into_iter().map(|value| format!("Ok({value})")).collect(),
                    None => fixed(&["Ok(())"]),
                },
                "Self" => Vec::new(),
                name if INTEGERS.contains(&name) => fixed(&["0", "1"]),
                _ => fixed(&["Default::default()"]),
            }
        }
        _ => fixed(&["Default::default()"]),
    }
}

fn first_argument(arguments: &PathArguments) -> Option<&Type> {
    let PathArguments::AngleBracketed(arguments) = arguments else { return None };
    match arguments.args.first()? {
        GenericArgument::Type(kind) => Some(kind),
        _ => None,
    }
}
