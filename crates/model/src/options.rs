//! Options for reading an input.

use borehole_memory::OverBudget;
use borehole_text::named;

/// The options of all importers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReadOptions {
    /// The reaction to damage.
    pub on_damage: OnDamage,
    /// The resources that the input may use.
    pub limits: Limits,
    /// The kind of events to read as samples from a trace with several kinds, for sinks that keep no events.
    pub samples: SampleKind,
    /// The frames that keep where in a file their code is.
    pub code_places: CodePlaces,
}

impl ReadOptions {
    /// Continues after damage and reports what was lost.
    #[must_use]
    pub fn lenient() -> Self {
        Self { on_damage: OnDamage::ReadOn, ..Self::default() }
    }

    /// Whether damage is skipped.
    #[must_use]
    pub const fn is_lenient(&self) -> bool {
        matches!(self.on_damage, OnDamage::ReadOn)
    }
}

/// The frames that keep where their code is in a file with a build ID, if the input says so for those that have a name too.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum CodePlaces {
    /// Those without a name. Others are equal if their functions and lines are.
    #[default]
    Unnamed,
    /// All. Frames of one line differ by their instructions and builds.
    All,
}

/// The reaction to a damaged input.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum OnDamage {
    /// Stop with an error that states the position. A cut-off end is not damage: it ends the data, with a warning.
    #[default]
    Fail,
    /// Skip what cannot be read, report it in a warning, and continue.
    ReadOn,
}

/// The kind of samples to read from a trace with several kinds, whose numbers must not be added up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum SampleKind {
    /// Code that threads executed, at regular times.
    #[default]
    Cpu,
    /// Stacks of threads as they left the CPU.
    OffCpu,
    /// Stacks of memory allocations, with their bytes.
    Allocation,
    /// Stacks of tasks that were idle for long.
    TaskDump,
    /// All kinds, distinguished by the label `source`.
    All,
}

impl SampleKind {
    /// All kinds.
    pub const ALL: &'static [Self] = &[Self::Cpu, Self::OffCpu, Self::Allocation, Self::TaskDump, Self::All];

    /// The name in options and in the label `source`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Cpu => "cpu",
            Self::OffCpu => "off-cpu",
            Self::Allocation => "alloc",
            Self::TaskDump => "task-dump",
            Self::All => "all",
        }
    }

    /// Whether this kind includes samples of the kind `other`.
    #[must_use]
    pub fn includes(self, other: Self) -> bool {
        self == Self::All || self == other
    }
}

named!(SampleKind, "kind of sample");

/// The resources that an input may use before it is rejected.
///
/// Each default is far above the needs of real profiles and far below what overloads a machine. An input that exceeds
/// one ends with an error whose [`is_limit`](borehole_text::Error::is_limit) is true.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// The longest payload of one `rbt` event, in bytes. The specification names 16 MiB.
    pub payload_bytes: usize,
    /// The longest frame of a `trc` stream, in bytes. Writers make far shorter ones; the specification allows several
    /// GiB.
    pub frame_bytes: usize,
    /// The longest line of a text format, in bytes.
    pub line_bytes: usize,
    /// The memory that a reader may hold, in bytes: the definitions of one segment or batch, or a document of a format that is
    /// read whole (`pprof`, `otlp`, `speedscope`, `gecko`), with what is made of it. Allocated memory counts, not the bytes of
    /// the file. An input that takes more ends with an error whose [`is_memory`](borehole_text::Error::is_memory) is true, in
    /// lenient reading too.
    ///
    /// Strings, frames and stacks in [`Tables`](crate::Tables), which several inputs share, and what sinks hold are not among
    /// it: only a budget of the program bounds those, which needs `borehole_memory::CountingAllocator`.
    pub memory_bytes: usize,
}

impl Limits {
    /// Whether a reader may hold `bytes`, and the program everything that it holds.
    ///
    /// # Errors
    /// When either exceeds its budget.
    pub fn check(&self, bytes: usize) -> Result<(), OverBudget> {
        let budget = self.memory_bytes;
        if bytes > budget { Err(OverBudget { budget }) } else { borehole_memory::check() }
    }
}

/// 4 GiB; on machines of 32 bits, all that there is.
const MEMORY_BYTES: usize = match 4_usize.checked_mul(1 << 30) {
    Some(bytes) => bytes,
    None => usize::MAX,
};

impl Default for Limits {
    fn default() -> Self {
        Self {
            payload_bytes: 16 << 20,
            frame_bytes: 64 << 20,
            line_bytes: 64 << 20,
            memory_bytes: MEMORY_BYTES,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_of_samples_are_read_back_by_their_names() {
        for &kind in SampleKind::ALL {
            assert_eq!(kind.to_string().parse(), Ok(kind));
        }
        assert_eq!("OFF-CPU".parse(), Ok(SampleKind::OffCpu));
        assert!("heap".parse::<SampleKind>().is_err());
    }
}
