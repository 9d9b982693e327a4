//! The functions that symbol tables name, sorted by address.

use std::cmp::Ordering;

use object::Endianness;
use object::elf::{
    SHF_EXECINSTR, SHT_DYNSYM, SHT_SYMTAB, STB_GLOBAL, STB_WEAK, STT_FUNC, STT_GNU_IFUNC, STT_NOTYPE, Sym64,
};
use object::read::elf::Sym as _;

use crate::elf_image::{Allowance, ElfImage, SectionPlace, many, name_at};
use crate::fault::Fault;
use crate::names::LONGEST_NAME;

/// A named piece of code.
#[derive(Clone, Copy, Debug)]
struct CodeSymbol {
    address: u64,
    /// 0 if the file does not state it.
    size: u64,
    name: u32,
    /// The index of the table of names.
    names: u8,
    is_label: bool,
    /// 0 is global, 1 weak, 2 local.
    locality: u8,
}

impl CodeSymbol {
    fn end(&self) -> u64 {
        self.address.saturating_add(self.size)
    }
}

/// The functions of a file.
#[derive(Debug, Default)]
pub(crate) struct CodeSymbols {
    /// One for each address, sorted.
    symbols: Vec<CodeSymbol>,
    /// The highest end of a symbol up to each one.
    ends: Vec<u64>,
    /// The names, each followed by a zero.
    names: Vec<Vec<u8>>,
    /// The addresses of code, as start and end.
    code: Vec<(u64, u64)>,
}

/// A symbol at an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FoundSymbol<'a> {
    pub(crate) name: &'a [u8],
    /// Bytes from its start.
    pub(crate) offset: u64,
}

impl CodeSymbols {
    /// The symbols before an address to look at: real functions do not nest deeper.
    const MAX_BACK: usize = 64;

    /// Reads the symbol tables of `image` and adds them.
    pub(crate) fn add(&mut self, image: &ElfImage, allowance: &mut Allowance) -> Result<(), Fault> {
        let is_code = |section: &&SectionPlace| section.flags & SHF_EXECINSTR.0 != 0;
        let range = |section: &SectionPlace| (section.address, section.address.saturating_add(section.size));
        self.code.extend(image.sections.iter().filter(is_code).map(range));
        for kind in [SHT_SYMTAB.0, SHT_DYNSYM.0] {
            for table in image.sections.iter().filter(|section| section.kind == kind) {
                self.add_table(image, table, allowance)?;
            }
        }
        self.sort();
        Ok(())
    }

    fn add_table(
        &mut self,
        image: &ElfImage,
        table: &SectionPlace,
        allowance: &mut Allowance,
    ) -> Result<(), Fault> {
        let Some(names) = image.sections.get(table.link) else { return Ok(()) };
        // A file may have any number of tables; real ones have two, and a debug file two more.
        let Ok(names_index) = u8::try_from(self.names.len()) else { return Ok(()) };
        let rows = image.content(table, allowance)?;
        let endian = image.endian;
        let rows = many::<Sym64<Endianness>>(&rows)?;
        allowance.take((rows.len() * size_of::<CodeSymbol>()) as u64)?;
        self.names.push(image.content(names, allowance)?);
        for row in rows.iter().filter(|row| !row.is_undefined(endian)) {
            let kind = row.st_type();
            let is_function = kind == STT_FUNC || kind == STT_GNU_IFUNC;
            let is_label = kind == STT_NOTYPE && self.is_code(row.st_value(endian));
            if is_function || is_label {
                self.symbols.push(CodeSymbol {
                    address: row.st_value(endian),
                    size: row.st_size(endian),
                    name: row.st_name(endian),
                    names: names_index,
                    is_label,
                    locality: match row.st_bind() {
                        STB_GLOBAL => 0,
                        STB_WEAK => 1,
                        _ => 2,
                    },
                });
            }
        }
        Ok(())
    }

    fn is_code(&self, address: u64) -> bool {
        self.code.iter().any(|&(start, end)| (start..end).contains(&address))
    }

    /// Keeps the best symbol of each address.
    fn sort(&mut self) {
        let mut symbols = std::mem::take(&mut self.symbols);
        symbols.retain(|symbol| self.name(symbol).is_some_and(is_name));
        symbols.sort_by(|one, other| self.order(one, other));
        symbols.dedup_by_key(|symbol| symbol.address);
        symbols.shrink_to_fit();
        let highest = |end: &mut u64, symbol: &CodeSymbol| {
            *end = symbol.end().max(*end);
            Some(*end)
        };
        self.ends = symbols.iter().scan(0, highest).collect();
        self.symbols = symbols;
    }

    /// The order of symbols: by address, and the best one of several first. Functions come before labels, those with a size
    /// before others, visible ones before hidden ones, and names for people before those with underscores in front.
    fn order(&self, one: &CodeSymbol, other: &CodeSymbol) -> Ordering {
        let key = |symbol: &CodeSymbol| (symbol.address, symbol.is_label, symbol.size == 0, symbol.locality);
        let name = |symbol: &CodeSymbol| {
            let name = self.name(symbol).unwrap_or_default();
            (name.iter().take_while(|&&byte| byte == b'_').count(), name.len(), name)
        };
        key(one).cmp(&key(other)).then_with(|| name(one).cmp(&name(other)))
    }

    fn name(&self, symbol: &CodeSymbol) -> Option<&[u8]> {
        name_at(&self.names[usize::from(symbol.names)], symbol.name, LONGEST_NAME)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.symbols.is_empty()
    }

    /// The innermost symbol at `address`.
    pub(crate) fn find(&self, address: u64) -> Option<FoundSymbol<'_>> {
        let behind = self.symbols.partition_point(|symbol| symbol.address <= address);
        let before = (0..behind).rev().take(Self::MAX_BACK).take_while(|&at| self.ends[at] > address);
        let mut before = before.map(|at| &self.symbols[at]);
        let covering = before.find(|symbol| address < symbol.end());
        let symbol = covering
            .or_else(|| self.symbols[..behind].last().filter(|last| self.extends_to(last, address)))?;
        Some(FoundSymbol { name: self.name(symbol)?, offset: address - symbol.address })
    }

    /// Whether a symbol without a size may cover `address`: nothing between them is known to be something else.
    fn extends_to(&self, symbol: &CodeSymbol, address: u64) -> bool {
        let shares = |&(start, end): &(u64, u64)| {
            (start..end).contains(&symbol.address) && (start..end).contains(&address)
        };
        symbol.size == 0 && self.code.iter().any(shares)
    }
}

/// Whether a name is one that people gave. Marks of the assembler begin with a dollar sign on ARM.
fn is_name(name: &[u8]) -> bool {
    !name.is_empty() && !name.starts_with(b"$") && !name.starts_with(b".L")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Symbols as name, address and size, in code up to address 1000.
    fn symbols(rows: &[(&str, u64, u64)]) -> CodeSymbols {
        let mut symbols =
            CodeSymbols { code: vec![(0, 1000)], names: vec![Vec::new()], ..CodeSymbols::default() };
        for &(name, address, size) in rows {
            let start = u32::try_from(symbols.names[0].len()).unwrap();
            symbols.names[0].extend_from_slice(name.as_bytes());
            symbols.names[0].push(0);
            let is_label = size == 0;
            symbols.symbols.push(CodeSymbol { address, size, name: start, names: 0, is_label, locality: 0 });
        }
        symbols.sort();
        symbols
    }

    fn found(symbols: &CodeSymbols, address: u64) -> Option<(&str, u64)> {
        symbols.find(address).map(|found| (std::str::from_utf8(found.name).unwrap(), found.offset))
    }

    #[test]
    fn the_innermost_function_with_a_size_is_found_and_gaps_are_not_guessed() {
        let symbols =
            symbols(&[("outer", 100, 100), ("label", 110, 0), ("inner", 120, 10), ("next", 300, 5)]);
        for (address, expected) in [
            (99, None),
            (100, Some(("outer", 0))),
            (115, Some(("outer", 15))),
            (125, Some(("inner", 5))),
            (130, Some(("outer", 30))),
            (199, Some(("outer", 99))),
            (200, None),
            (304, Some(("next", 4))),
            (u64::MAX, None),
        ] {
            assert_eq!(found(&symbols, address), expected, "{address}");
        }
    }

    #[test]
    fn a_label_covers_the_code_behind_it_up_to_the_next_symbol() {
        let symbols = symbols(&[("start", 10, 0), ("$x", 12, 0), ("main", 50, 5)]);
        assert_eq!(found(&symbols, 49), Some(("start", 39)));
        assert_eq!(found(&symbols, 60), None, "main has a size");
        assert_eq!(found(&symbols, 5000), None, "there is no code");
    }

    #[test]
    fn of_several_names_that_for_people_is_taken() {
        let symbols =
            symbols(&[("__write", 10, 4), ("write", 10, 4), ("alias", 10, 0), ("longer_name", 10, 4)]);
        assert_eq!(found(&symbols, 11), Some(("write", 1)));
    }
}
