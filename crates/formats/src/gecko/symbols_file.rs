//! The file of symbols that samply writes beside a profile: the functions of addresses that have no names in the profile.
//!
//! Source: samply 0.13.1, `samply/src/shared/symbol_precog.rs`; `samply-symbols/src/shared.rs` for the order of frames.

use std::io::BufRead;
use std::marker::PhantomData;

use hashbrown::HashMap;
use serde::Deserialize;

use super::NAME;
use super::read::Lib;
use crate::documents::json::{self, JsonMemory};
use crate::{Error, Limits};

/// The bytes of most values: addresses with the row of their symbol.
const VALUE_BYTES: usize = 16;

/// The most functions that are inlined into each other at one address. Further ones are left out.
const MOST_INLINED: usize = 256;

/// The names that the file of symbols of a profile may have.
///
/// samply replaces the last extension of `profile.json` and of `profile.json.gz`.
pub(super) fn file_names(profile: &str) -> Vec<String> {
    let mut names = Vec::new();
    let mut stem = profile;
    for extension in [".gz", ".json"] {
        if let Some(shorter) = stem.strip_suffix(extension) {
            names.push(format!("{shorter}.syms.json"));
            stem = shorter;
        }
    }
    names
}

/// A file of symbols.
#[derive(Debug, Default, Deserialize)]
pub(super) struct SymbolsFile {
    #[serde(skip)]
    pub(super) name: String,
    string_table: Vec<String>,
    data: Vec<LibrarySymbols>,
    /// The place in `data` of each library, by its name and identity.
    #[serde(skip)]
    libraries: HashMap<(String, String), usize>,
}

/// The symbols of a library.
#[derive(Debug, Deserialize)]
struct LibrarySymbols {
    debug_name: String,
    debug_id: String,
    symbol_table: Vec<AddressSymbol>,
    /// Addresses in the library, with the place of their symbol.
    known_addresses: Vec<(u32, usize)>,
}

/// A symbol.
#[derive(Debug, Deserialize)]
struct AddressSymbol {
    /// Where it begins in the library.
    rva: u32,
    /// The place of its name among the strings.
    symbol: usize,
    /// The functions at the address, the innermost first.
    #[serde(default)]
    frames: Option<Vec<SymbolFrame>>,
}

/// A function at an address, by the places of its texts among the strings.
#[derive(Debug, Deserialize)]
struct SymbolFrame {
    #[serde(default)]
    function: Option<usize>,
    #[serde(default)]
    file: Option<usize>,
    #[serde(default)]
    line: Option<u32>,
}

/// A function at an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct FunctionAt<'a> {
    pub(super) name: &'a str,
    pub(super) file: Option<&'a str>,
    pub(super) line: Option<i64>,
}

/// The functions at an address.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct FunctionsAt<'a> {
    /// Those that are inlined stand after their caller.
    pub(super) functions: Vec<FunctionAt<'a>>,
    /// The distance from the start of the symbol.
    pub(super) offset: i64,
}

impl SymbolsFile {
    /// Reads a file of symbols.
    ///
    /// # Errors
    /// If it is none, or takes more memory than allowed.
    pub(super) fn read(input: impl BufRead, limits: Limits) -> Result<Self, Error> {
        let memory = JsonMemory::of_texts(limits, VALUE_BYTES);
        let mut file = json::parse(NAME, input, &memory, PhantomData::<Self>)?;
        for (place, library) in file.data.iter_mut().enumerate() {
            library.known_addresses.sort_unstable();
            file.libraries.insert((library.debug_name.clone(), identity(&library.debug_id)), place);
        }
        Ok(file)
    }

    /// The functions at an address in a library; `None` if they are not known.
    pub(super) fn find(&self, library: &Lib, address: i64) -> Option<FunctionsAt<'_>> {
        let key = (library.debug_name.clone()?, identity(library.breakpad_id.as_deref()?));
        let library = self.data.get(*self.libraries.get(&key)?)?;
        let address = u32::try_from(address).ok()?;
        let row = library.known_addresses.binary_search_by_key(&address, |&(address, _)| address).ok()?;
        let symbol = library.symbol_table.get(library.known_addresses[row].1)?;
        let whole = FunctionAt { name: self.string(symbol.symbol)?, file: None, line: None };
        let mut functions: Vec<_> = symbol
            .frames
            .iter()
            .flatten()
            .rev()
            .take(MOST_INLINED)
            .map(|frame| self.function(frame, whole))
            .collect();
        if functions.is_empty() {
            functions.push(whole);
        }
        Some(FunctionsAt { functions, offset: i64::from(address) - i64::from(symbol.rva) })
    }

    /// A function without a name has that of the symbol.
    fn function<'a>(&'a self, frame: &SymbolFrame, symbol: FunctionAt<'a>) -> FunctionAt<'a> {
        FunctionAt {
            name: frame.function.and_then(|place| self.string(place)).unwrap_or(symbol.name),
            file: frame.file.and_then(|place| self.string(place)),
            line: frame.line.filter(|&line| line > 0).map(i64::from),
        }
    }

    fn string(&self, place: usize) -> Option<&str> {
        self.string_table.get(place).map(String::as_str)
    }
}

/// The identity of a library in one form: the profile has 33 or more digits, and the file of symbols groups of digits, without the
/// last one if that is 0.
fn identity(id: &str) -> String {
    let mut digits: String =
        id.chars().filter(|&digit| digit != '-').map(|digit| digit.to_ascii_lowercase()).collect();
    if digits.len() == 32 {
        digits.push('0');
    }
    digits
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_has_the_name_of_the_profile() {
        assert_eq!(file_names("a.json"), ["a.syms.json"]);
        assert_eq!(file_names("a.json.gz"), ["a.json.syms.json", "a.syms.json"]);
        assert_eq!(file_names("a.profile"), [""; 0]);
    }

    #[test]
    fn functions_are_found_by_library_and_address() {
        let text = br#"{"string_table":["outer","inner","/a.rs"],"data":[{"debug_name":"work",
            "debug_id":"dfb8e43a-f242-3d73-a453-aeb6a777ef75","code_id":"",
            "symbol_table":[{"rva":64,"size":32,"symbol":0,"frames":[{"function":1,"file":2,"line":7},{"function":null,"file":2,"line":9}]},
            {"rva":128,"symbol":1}],"known_addresses":[[130,1],[70,0],[140,9]]}]}"#;
        let file = SymbolsFile::read(&text[..], Limits::default()).unwrap();
        let lib = |id: &str| Lib {
            debug_name: Some("work".to_owned()),
            breakpad_id: Some(id.to_owned()),
            ..Lib::default()
        };
        let known = lib("DFB8E43AF2423D73A453AEB6A777EF750");
        let found = file.find(&known, 70).unwrap();
        let at = |name, line| FunctionAt { name, file: Some("/a.rs"), line: Some(line) };
        assert_eq!(found, FunctionsAt { functions: vec![at("outer", 9), at("inner", 7)], offset: 6 });
        let found = file.find(&known, 130).unwrap();
        assert_eq!(found.functions, [FunctionAt { name: "inner", file: None, line: None }]);
        assert!(file.find(&known, 71).is_none() && file.find(&known, 140).is_none());
        assert!(file.find(&known, -1).is_none());
        assert!(file.find(&lib("DFB8E43AF2423D73A453AEB6A777EF751"), 70).is_none());
    }
}
