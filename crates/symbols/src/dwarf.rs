//! Lines and inlined functions from DWARF.

use std::sync::Arc;

use addr2line::Context;
use addr2line::gimli::{AbbreviationsCacheStrategy, Dwarf, Error, RunTimeEndian, SectionId, UnitRef};
use object::Endianness;

use crate::elf_image::{Allowance, ElfImage};
use crate::fault::{Fault, Unresolved};
use crate::module::SymbolFrame;
use crate::names::Names;
use crate::section_reader::{SectionReader, WorkBudget};

/// The deepest nesting of entries. addr2line calls itself for each function that is inlined into another, and a file of a few
/// kilobytes could overflow the stack. Compilers stay below a hundred.
const MAX_NESTING: isize = 384;

/// The functions at one address.
const MAX_FRAMES: usize = 512;

/// The debug information of a module.
pub(crate) struct DebugInfo {
    context: Context<SectionReader>,
    budget: Arc<WorkBudget>,
    /// Whether parts of it are in files of their own.
    pub(crate) is_split: bool,
}

impl std::fmt::Debug for DebugInfo {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("DebugInfo").field("budget", &self.budget).finish_non_exhaustive()
    }
}

impl DebugInfo {
    /// Whether `image` has debug information.
    pub(crate) fn is_in(image: &ElfImage) -> bool {
        image.section(b".debug_info").is_some() || image.section(b".zdebug_info").is_some()
    }

    /// Reads the debug information of `image`, which may refer to that of `supplement`.
    pub(crate) fn read(
        image: &ElfImage,
        supplement: Option<&ElfImage>,
        allowance: &mut Allowance,
    ) -> Result<Self, Fault> {
        let images = [Some(image), supplement].into_iter().flatten();
        let bytes = images.map(|image| debug_bytes(image, allowance)).sum::<Result<u64, Fault>>()?;
        let budget = Arc::new(WorkBudget::new(bytes));
        let mut dwarf = load(image, &budget, allowance)?;
        if let Some(supplement) = supplement {
            dwarf.set_sup(load(supplement, &budget, allowance)?);
        }
        dwarf.populate_abbreviations_cache(AbbreviationsCacheStrategy::Duplicates);
        let survey = UnitSurvey::of(&dwarf);
        if survey.deepest > MAX_NESTING {
            return Err(Fault::damaged(format!(
                "debug information is nested deeper than {MAX_NESTING} levels"
            )));
        }
        let context = Context::from_dwarf(dwarf).map_err(|error| Self::fault(&budget, &error))?;
        Ok(Self { context, budget, is_split: survey.is_split })
    }

    fn fault(budget: &WorkBudget, error: &Error) -> Fault {
        if budget.is_exhausted() {
            return Fault::new(Unresolved::TooLarge, "debug information refers to itself too often");
        }
        Fault::damaged(format!("invalid debug information: {error}"))
    }

    /// Appends the functions at a stated address, innermost first. Returns whether there are any.
    ///
    /// # Errors
    /// If the debug information of the address is damaged.
    pub(crate) fn find(
        &self,
        address: u64,
        names: &mut Names,
        frames: &mut Vec<SymbolFrame>,
    ) -> Result<bool, Fault> {
        // addr2line adds 1 to the address.
        if address == u64::MAX {
            return Ok(false);
        }
        let start = frames.len();
        self.frames(address, names, frames).map_err(|error| {
            frames.truncate(start);
            Self::fault(&self.budget, &error)
        })?;
        if let Some((_, inlined)) = frames[start..].split_last_mut() {
            inlined.iter_mut().for_each(|frame| frame.is_inlined = true);
        }
        Ok(frames.len() > start)
    }

    fn frames(&self, address: u64, names: &mut Names, into: &mut Vec<SymbolFrame>) -> Result<(), Error> {
        let mut found = self.context.find_frames(address).skip_all_loads()?;
        let limit = into.len() + MAX_FRAMES;
        while let Some(frame) = found.next()?
            && into.len() < limit
        {
            let mut row = SymbolFrame::default();
            if let Some(function) = &frame.function {
                let text = names.function(function.raw_name()?.as_bytes());
                (row.function, row.system_name) = (Some(text.function), text.system_name);
            }
            if let Some(location) = frame.location {
                row.file = location.file.map(|file| names.file(file));
                row.line = location.line;
                row.column = location.column.filter(|&column| column > 0);
            }
            into.push(row);
        }
        Ok(())
    }
}

/// The bytes of the sections that will be read. Nothing is taken from the allowance.
fn debug_bytes(image: &ElfImage, allowance: &Allowance) -> Result<u64, Fault> {
    let sizes = image.sections.iter().filter(|section| section.name.starts_with(b".debug_"));
    let bytes = sizes.map(|section| section.size).fold(0, u64::saturating_add);
    let mut rest = *allowance;
    rest.take(bytes.min(image.source.length())).map(|()| bytes.min(image.source.length()))
}

fn load(
    image: &ElfImage,
    budget: &Arc<WorkBudget>,
    allowance: &mut Allowance,
) -> Result<Dwarf<SectionReader>, Fault> {
    let endian = match image.endian {
        Endianness::Little => RunTimeEndian::Little,
        Endianness::Big => RunTimeEndian::Big,
    };
    Dwarf::load(|id: SectionId| {
        let content = match is_needed(id).then(|| place(image, id)).flatten() {
            Some(section) => image.content(section, allowance)?,
            None => Vec::new(),
        };
        Ok(SectionReader::new(content, endian, budget))
    })
}

fn place(image: &ElfImage, id: SectionId) -> Option<&crate::elf_image::SectionPlace> {
    let name = id.name();
    let packed = || format!(".z{}", name.trim_start_matches('.'));
    image.section(name.as_bytes()).or_else(|| image.section(packed().as_bytes()))
}

/// Whether lines and functions need a section. Others, of types and variables, are large.
fn is_needed(id: SectionId) -> bool {
    matches!(
        id,
        SectionId::DebugAbbrev
            | SectionId::DebugAddr
            | SectionId::DebugAranges
            | SectionId::DebugInfo
            | SectionId::DebugLine
            | SectionId::DebugLineStr
            | SectionId::DebugRanges
            | SectionId::DebugRngLists
            | SectionId::DebugStr
            | SectionId::DebugStrOffsets
    )
}

/// The shape of the entries of all units.
#[derive(Debug, Default)]
struct UnitSurvey {
    deepest: isize,
    is_split: bool,
}

impl UnitSurvey {
    /// Looks at all units. A damaged unit is looked at up to the damage, beyond which nobody reads it.
    fn of(dwarf: &Dwarf<SectionReader>) -> Self {
        let mut survey = Self::default();
        let mut units = dwarf.units();
        while let Ok(Some(header)) = units.next() {
            let Ok(unit) = dwarf.unit(header) else { continue };
            survey.is_split |= unit.dwo_id.is_some();
            survey.deepest = deepest(UnitRef::new(dwarf, &unit)).unwrap_or(0).max(survey.deepest);
        }
        survey
    }
}

/// The deepest nesting of entries in a unit, or one that is too deep.
fn deepest(unit: UnitRef<'_, SectionReader>) -> Result<isize, Error> {
    let mut entries = unit.entries_raw(None)?;
    // A unit may end more entries than it begins.
    let (mut lowest, mut deepest) = (0, 0);
    while !entries.is_empty() && deepest <= MAX_NESTING {
        lowest = entries.next_depth().min(lowest);
        deepest = deepest.max(entries.next_depth() - lowest);
        if let Some(abbreviation) = entries.read_abbreviation()? {
            entries.skip_attributes(abbreviation.attributes())?;
        }
    }
    Ok(deepest)
}
