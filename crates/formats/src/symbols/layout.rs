//! The field numbers of symbols.
//!
//! Source: google/pprof, `proto/profile.proto`; open-telemetry/opentelemetry-proto 1.10.0,
//! `profiles/v1development/profiles.proto`, which has these messages without their ids.

/// The numbering of mappings, locations and functions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SymbolKeys {
    /// By position in their table. The first entry stands for an absent one.
    Indexes,
    /// By an id above 0 in field 1. The numbers of all other fields are one higher than in this module.
    Ids,
}

impl SymbolKeys {
    /// The number in the message of a field of this module; for 0, that of the id.
    pub(crate) const fn field(self, number: u32) -> u32 {
        match self {
            Self::Indexes => number,
            Self::Ids => number + 1,
        }
    }

    /// The number in this module of a field in the message; 0 for the id.
    pub(crate) const fn number(self, field: u32) -> u32 {
        match self {
            Self::Indexes => field,
            Self::Ids => field.saturating_sub(1),
        }
    }
}

/// The id of a mapping, location or function.
pub(crate) const ID: u32 = 0;

/// Fields of `ValueType`; both are string indexes.
pub(crate) mod value_type {
    pub(crate) const TYPE: u32 = 1;
    pub(crate) const UNIT: u32 = 2;
}

/// Fields of `Mapping`.
pub(crate) mod mapping {
    pub(crate) const MEMORY_START: u32 = 1;
    pub(crate) const MEMORY_LIMIT: u32 = 2;
    pub(crate) const FILE_OFFSET: u32 = 3;
    pub(crate) const FILENAME: u32 = 4;
}

/// Fields of `Location`.
pub(crate) mod location {
    pub(crate) const MAPPING: u32 = 1;
    pub(crate) const ADDRESS: u32 = 2;
    /// Innermost inlined function first; the last one is the function that contains the code.
    pub(crate) const LINES: u32 = 3;
}

/// Fields of `Line`.
pub(crate) mod line {
    pub(crate) const FUNCTION: u32 = 1;
    /// 1-based, 0 if unknown.
    pub(crate) const LINE: u32 = 2;
    /// 1-based, 0 if unknown.
    pub(crate) const COLUMN: u32 = 3;
}

/// Fields of `Function`; all are string indexes.
pub(crate) mod function {
    pub(crate) const NAME: u32 = 1;
    pub(crate) const SYSTEM_NAME: u32 = 2;
    pub(crate) const FILENAME: u32 = 3;
}
