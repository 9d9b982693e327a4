//! Heaps of programs that have exceeded their memory limit.

use borehole_php::Failure;
use borehole_process::Dump;

/// Where a program has exceeded its memory limit, as its `error_get_last()` says it.
///
/// PHP leaves all calls then, and executes what the program has registered for its end. From there the heap can be copied,
/// and the calls are found by this ([`borehole_php::Php::failed_call`]): it goes with the dump.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemoryLimitError {
    /// The file.
    pub file: Vec<u8>,
    /// The line, counted from 1.
    pub line: u32,
    /// The longest chain of calls that is taken for one.
    pub max_depth: usize,
}

const FILE: &str = "memory_limit_error_file";
const LINE: &str = "memory_limit_error_line";
const MAX_DEPTH: &str = "memory_limit_error_max_depth";

impl MemoryLimitError {
    /// How deep calls are if nobody says more.
    pub const DEFAULT_MAX_DEPTH: usize = 512;

    /// What a dump says of it.
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

    /// What is to be looked for.
    #[must_use]
    pub fn failure(&self) -> Failure<'_> {
        Failure { file: &self.file, line: self.line, max_depth: self.max_depth }
    }
}
