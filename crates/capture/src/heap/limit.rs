//! Heaps of programs that have exceeded their memory limit.

use borehole_php::FatalError;
use borehole_process::Dump;

/// The place where a program has exceeded its memory limit, as its `error_get_last()` states it.
///
/// At the error, PHP leaves all calls and executes the program's shutdown functions. They can copy the heap; this place
/// is stored in the dump and identifies the calls that failed ([`borehole_php::Php::failed_call`]).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemoryLimitError {
    /// The file.
    pub file: Vec<u8>,
    /// The line, counted from 1.
    pub line: u32,
    /// The maximum number of calls in the chain that is searched for.
    pub max_depth: usize,
}

const FILE: &str = "memory_limit_error_file";
const LINE: &str = "memory_limit_error_line";
const MAX_DEPTH: &str = "memory_limit_error_max_depth";

impl MemoryLimitError {
    /// The default maximum number of calls.
    pub const DEFAULT_MAX_DEPTH: usize = 512;

    /// Reads the place from the facts of a dump; `None` if they are absent or invalid.
    #[must_use]
    pub fn of(dump: &Dump) -> Option<Self> {
        let number = |name| std::str::from_utf8(dump.fact(name)?).ok();
        Some(Self {
            file: dump.fact(FILE)?.to_owned(),
            line: number(LINE)?.parse().ok()?,
            max_depth: number(MAX_DEPTH)?.parse().ok()?,
        })
    }

    pub(super) fn state(&self, dump: &mut Dump) {
        dump.set_fact(FILE, self.file.as_slice());
        dump.set_fact(LINE, self.line.to_string());
        dump.set_fact(MAX_DEPTH, self.max_depth.to_string());
    }

    /// The call to search for.
    #[must_use]
    pub fn failure(&self) -> FatalError<'_> {
        FatalError { file: &self.file, line: self.line, max_depth: self.max_depth }
    }
}
