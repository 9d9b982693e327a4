//! The names of the values of enums, as users type and see them.

use std::{error, fmt};

/// The error of a name that stands for no value.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct UnknownName {
    /// The name.
    pub name: String,
    /// The kind of value that it should stand for, such as `format`.
    pub kind: &'static str,
    /// The names that stand for one.
    pub known: Vec<&'static str>,
}

impl UnknownName {
    /// The error of `name`.
    pub fn new(name: &str, kind: &'static str, known: impl IntoIterator<Item = &'static str>) -> Self {
        Self { name: name.to_owned(), kind, known: known.into_iter().collect() }
    }
}

impl fmt::Display for UnknownName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, kind, known } = self;
        write!(f, "unknown {kind}: expected one of {}, found {}", known.join(", "), name.escape_debug())
    }
}

impl error::Error for UnknownName {}

/// Makes an enum with the constant `ALL` and the method `name` display the name, and be parsed from it, in any case.
///
/// # Examples
///
/// ```
/// #[derive(Clone, Copy, Debug, PartialEq)]
/// enum Order {
///     Up,
///     Down,
/// }
///
/// impl Order {
///     const ALL: &'static [Self] = &[Self::Up, Self::Down];
///
///     const fn name(self) -> &'static str {
///         match self {
///             Self::Up => "up",
///             Self::Down => "down",
///         }
///     }
/// }
///
/// borehole_text::named!(Order, "order");
///
/// assert_eq!("Down".parse(), Ok(Order::Down));
/// assert_eq!(Order::Up.to_string(), "up");
/// let error = "left".parse::<Order>().unwrap_err();
/// assert_eq!(error.to_string(), "unknown order: expected one of up, down, found left");
/// ```
#[macro_export]
macro_rules! named {
    ($named:ty, $kind:literal) => {
        impl ::std::fmt::Display for $named {
            fn fmt(&self, f: &mut ::std::fmt::Formatter<'_>) -> ::std::fmt::Result {
                f.pad(self.name())
            }
        }

        /// Parses the name, in any case.
        impl ::std::str::FromStr for $named {
            type Err = $crate::UnknownName;

            fn from_str(name: &str) -> ::std::result::Result<Self, $crate::UnknownName> {
                let found = Self::ALL.iter().copied().find(|known| known.name().eq_ignore_ascii_case(name));
                let known = Self::ALL.iter().map(|known| known.name());
                found.ok_or_else(|| $crate::UnknownName::new(name, $kind, known))
            }
        }
    };
}
