//! `borehole symbolize`.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::path::PathBuf;

use borehole::{
    AddressSymbols, Compression, Error, Existing, FilledAddresses, FilledLine, Format, Output, StatedMapping,
};
use borehole_symbols::{
    BuildId, CodeAddress, Module, ModuleReport, SymbolDetail, SymbolFrame, SymbolSettings, Symbolizer,
};
use borehole_text::{counted, grouped, percent, percent_of};
use clap::Args;

use crate::exit::Exit;
use crate::inputs::ReadArgs;
use crate::interrupt;
use crate::messages;
use crate::outputs;
use crate::stdout::{STDOUT, data};

/// The arguments of `borehole symbolize`.
#[derive(Args, Clone, Debug)]
pub(crate) struct SymbolizeArgs {
    /// Profile with addresses: pprof, binary OTLP, rbt, perf.data or perf-script; `-` is standard input
    #[arg(value_name = "INPUT", default_value = "-")]
    pub(crate) input: PathBuf,

    /// File to write: OTLP for OTLP, pprof for all others; `-`, or none, is standard output
    #[arg(short, long, value_name = "OUTPUT")]
    pub(crate) output: Option<PathBuf>,

    /// Replace the output if it exists
    #[arg(long, requires = "output")]
    pub(crate) force: bool,

    /// Format of the input, instead of detecting it
    #[arg(long, value_name = "FORMAT")]
    pub(crate) from: Option<Format>,

    #[command(flatten)]
    pub(crate) symbols: SymbolArgs,
}

/// Where the symbols of native code are.
#[derive(Args, Clone, Debug)]
pub(crate) struct SymbolArgs {
    /// Folder to look for programs and libraries in that are not at their path; files must have the stated build ID
    #[arg(long, value_name = "FOLDER")]
    pub(crate) binaries: Vec<PathBuf>,

    /// Folder with separate debug files [default: /usr/lib/debug]
    #[arg(long, value_name = "FOLDER")]
    pub(crate) debug_files: Vec<PathBuf>,

    /// Folder that is the root of all paths in the profile, such as that of a container
    #[arg(long, value_name = "FOLDER")]
    pub(crate) root: Option<PathBuf>,

    /// Believe files by their path alone where the profile states no build ID
    #[arg(long)]
    pub(crate) trust_paths: bool,

    /// Look for function names only, which takes less time: no files, lines and inlined functions
    #[arg(long)]
    pub(crate) functions_only: bool,
}

/// The modules that messages list; the others are counted.
const SHOWN: usize = 20;

pub(crate) fn run(args: &SymbolizeArgs) -> anyhow::Result<Exit> {
    interrupt::heed();
    let output = outputs::file(args.output.as_deref());
    if let Some(path) = output {
        Output::check(path, Existing::replacing(args.force))?;
    }
    let input = ReadArgs { from: args.from, ..ReadArgs::default() }.open(&args.input)?;
    let format = if input.format() == Format::Otlp { Format::Otlp } else { Format::Pprof };
    // Readers of pprof expect gzip.
    let is_gzip = format == Format::Pprof || outputs::is_gzip(output, false)?;
    let name = input.name().to_owned();
    let is_text = input.format() == Format::PerfScript;
    if output.is_none() {
        outputs::refuse_terminal(format, is_gzip)?;
    }
    let mut symbols = LocalSymbols::new(&args.symbols);
    let filled = input.fill_symbols(&mut symbols)?;
    if interrupt::requested() {
        messages::say("interrupted: nothing was written");
        return Ok(Exit::Interrupted);
    }
    let compression = if is_gzip { Compression::Gzip } else { Compression::None };
    let mut output = match output {
        Some(path) => Output::create(path, Existing::replacing(args.force), compression)?,
        None => Output::direct(STDOUT, data(), compression)?,
    };
    interrupt::unfinished(output.unfinished());
    let written = output.write_all(&filled.document);
    written.map_err(|source| Error::Write { name: output.name().to_owned(), source })?;
    output.complete()?;
    let read = filled.converted.unwrap_or_default();
    messages::warnings(&name, &read.recovery);
    messages::losses(&read.losses, format.name());
    symbols.tell(&filled.addresses);
    let FilledAddresses { filled, unmapped, not_found, .. } = filled.addresses;
    if is_text && filled + unmapped + not_found == 0 {
        messages::say(NO_MAPPINGS);
    }
    Ok(Exit::after(&read.recovery))
}

/// The symbols of files on this machine.
pub(crate) struct LocalSymbols {
    symbolizer: Symbolizer,
    root: Option<PathBuf>,
    trusts_paths: bool,
    /// The addresses of each mapping that has no file, or no build ID.
    unknown: BTreeMap<(String, &'static str), u64>,
    frames: Vec<SymbolFrame>,
}

/// The note about a text of perf in which no address belongs to a file.
const NO_MAPPINGS: &str =
    "note: the text does not say which files its addresses are in: `perf script --show-mmap-events` does";

const NO_FILE: &str = "the mapping is no file";
const NO_BUILD_ID: &str = "the profile states no build ID; --trust-paths believes the file at this path";
const BAD_BUILD_ID: &str = "the profile states an invalid build ID";

impl LocalSymbols {
    pub(crate) fn new(args: &SymbolArgs) -> Self {
        let mut settings = SymbolSettings::default();
        if args.functions_only {
            settings.detail = SymbolDetail::Functions;
        }
        if !args.debug_files.is_empty() {
            settings.debug_folders.clone_from(&args.debug_files);
        }
        settings.module_folders.clone_from(&args.binaries);
        let symbolizer = Symbolizer::new(settings);
        let (root, trusts_paths) = (args.root.clone(), args.trust_paths);
        Self { symbolizer, root, trusts_paths, unknown: BTreeMap::new(), frames: Vec::new() }
    }

    /// The module of a mapping, or why it has none.
    fn module(&self, path: &[u8], build_id: Option<&[u8]>) -> Result<Module, &'static str> {
        if !path.starts_with(b"/") {
            return Err(NO_FILE);
        }
        let build_id = match build_id {
            Some(text) => Some(BuildId::parse_hex(text).ok_or(BAD_BUILD_ID)?),
            None if self.trusts_paths => None,
            None => return Err(NO_BUILD_ID),
        };
        Ok(Module { root: self.root.clone(), build_id, ..Module::new(path) })
    }

    /// Says what was filled and what was not.
    fn tell(&self, filled: &FilledAddresses) {
        messages::say(&summary(filled));
        self.tell_missing();
    }

    /// Says what was not found, and why.
    pub(crate) fn tell_missing(&self) {
        let mut lines: Vec<(u64, String)> =
            self.unknown.iter().map(|((path, why), &count)| (count, missing(path, count, why))).collect();
        lines.extend(
            self.symbolizer.reports().filter_map(|report| Some((report.unresolved, unresolved(&report)?))),
        );
        lines.sort_by(|one, other| other.cmp(one));
        lines.iter().take(SHOWN).for_each(|(_, line)| messages::say(line));
        if let Some(more) = lines.len().checked_sub(SHOWN).filter(|&more| more > 0) {
            messages::say(&format!("note: {} more without all functions", counted(more as u64, "file")));
        }
    }
}

impl AddressSymbols for LocalSymbols {
    fn find(&mut self, mapping: &StatedMapping<'_>, file_offset: u64, lines: &mut Vec<FilledLine>) -> bool {
        self.functions(mapping.path, mapping.build_id, file_offset, lines)
    }
}

impl LocalSymbols {
    /// Appends the functions of the code at an offset in the file at `path`, innermost first. Returns whether there are any.
    pub(crate) fn functions(
        &mut self,
        path: &[u8],
        build_id: Option<&[u8]>,
        file_offset: u64,
        lines: &mut Vec<FilledLine>,
    ) -> bool {
        if interrupt::requested() {
            return false;
        }
        let module = match self.module(path, build_id) {
            Ok(module) => module,
            Err(why) => {
                let path = String::from_utf8_lossy(path).into_owned();
                *self.unknown.entry((path, why)).or_default() += 1;
                return false;
            }
        };
        let id = self.symbolizer.module(module);
        let found = self.symbolizer.resolve(id, CodeAddress::FileOffset(file_offset), &mut self.frames);
        lines.extend(self.frames.drain(..).map(line));
        found.is_ok()
    }
}

fn line(frame: SymbolFrame) -> FilledLine {
    FilledLine {
        function: frame.function.unwrap_or_default(),
        system_name: frame.system_name,
        file: frame.file,
        line: frame.line.unwrap_or(0),
        column: frame.column.unwrap_or(0),
    }
}

/// "Found the functions of 1,204 of 1,250 addresses (96.3%)"
fn summary(filled: &FilledAddresses) -> String {
    let asked = filled.filled + filled.unmapped + filled.not_found;
    let mut text = match asked {
        0 => "No address lacks a function".to_owned(),
        _ => {
            let share = percent(percent_of(filled.filled, asked));
            format!("Found the functions of {} of {} ({share})", grouped(filled.filled), addresses(asked))
        }
    };
    if filled.had_functions > 0 {
        text += &format!("; {} had theirs before", grouped(filled.had_functions));
    }
    if filled.unmapped > 0 {
        text += &format!("; {} in no mapping of the profile", grouped(filled.unmapped));
    }
    text
}

fn addresses(count: u64) -> String {
    format!("{} address{}", grouped(count), if count == 1 { "" } else { "es" })
}

fn missing(path: &str, count: u64, why: &str) -> String {
    let path = if path.is_empty() { "memory without a name" } else { path };
    format!("note: {path}: {} without a function: {why}", addresses(count))
}

/// The note about a module of which something was not found; `None` if all was.
fn unresolved(report: &ModuleReport<'_>) -> Option<String> {
    let path = String::from_utf8_lossy(&report.module.path);
    match (report.fault, report.complaint) {
        (Some((reason, text)), _) => Some(missing(&path, report.unresolved, &format!("{reason} ({text})"))),
        (None, Some(complaint)) => Some(format!("note: {path}: some lines are missing: {complaint}")),
        (None, None) if report.unresolved > 0 => {
            Some(missing(&path, report.unresolved, "no symbol covers it"))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_summary_counts_what_was_and_was_not_found() {
        let mut filled = FilledAddresses::default();
        assert_eq!(summary(&filled), "No address lacks a function");
        (filled.filled, filled.not_found, filled.unmapped, filled.had_functions) = (1200, 40, 10, 7);
        assert_eq!(
            summary(&filled),
            "Found the functions of 1,200 of 1,250 addresses (96.0%); 7 had theirs before; 10 in no mapping of the profile"
        );
    }
}
