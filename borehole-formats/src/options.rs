//! How an input is to be read.

/// What all importers are told.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReadOptions {
    /// What to do when the input is damaged.
    pub on_damage: OnDamage,
    /// How much the input may ask for.
    pub limits: Limits,
    /// Which events of a trace that holds more than samples are its samples, for sinks that keep no events.
    pub samples: SampleKind,
}

impl ReadOptions {
    /// Reads on after damage, and says what was lost.
    #[must_use]
    pub fn lenient() -> Self {
        Self { on_damage: OnDamage::ReadOn, ..Self::default() }
    }

    /// Whether damage is read over.
    #[must_use]
    pub const fn is_lenient(&self) -> bool {
        matches!(self.on_damage, OnDamage::ReadOn)
    }
}

/// What to do when an input is damaged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnDamage {
    /// Stop with an error that says where. A cut-off end is not damage: it ends the data, with a warning.
    #[default]
    Fail,
    /// Skip what cannot be read, say so in a warning, and go on.
    ReadOn,
}

/// Which observations of stacks a profile is made of, where a trace holds several kinds: numbers of different
/// kinds mean nothing when they are added up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum SampleKind {
    /// What threads executed, at regular times.
    #[default]
    Cpu,
    /// Where threads were when they left the CPU.
    OffCpu,
    /// Where memory was allocated, with its bytes.
    Allocation,
    /// Where tasks waited that were idle for long.
    TaskDump,
    /// All of them; the label `source` tells which is which.
    All,
}

impl SampleKind {
    /// All kinds.
    pub const ALL: [Self; 5] = [Self::Cpu, Self::OffCpu, Self::Allocation, Self::TaskDump, Self::All];

    /// Its name, in options and in the label `source`.
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

    /// Whether samples of the kind `other` belong to it.
    #[must_use]
    pub fn includes(self, other: Self) -> bool {
        self == Self::All || self == other
    }
}

/// How much of a machine an input may use before it is refused.
///
/// Each default is far above what real profiles need and far below what hurts a machine; an input that
/// meets one ends with an error whose [`is_limit`](crate::Error::is_limit) is true.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// The longest payload of one `rbt` event, in bytes. The specification names 16 MiB.
    pub payload_bytes: usize,
    /// The longest frame of a `trc` stream, in bytes. What writers make is far shorter; the specification
    /// allows several GiB.
    pub frame_bytes: usize,
    /// How many bytes the definitions of one `rbt` segment or `trc` batch may take: strings, frames, stacks
    /// and schemas together, and a segment's metadata.
    pub definition_bytes: usize,
    /// The longest line of a text format, in bytes.
    pub line_bytes: usize,
    /// The largest document of a format that has to be in memory as a whole (`pprof`, `otlp`, `speedscope`, `gecko`), in
    /// bytes after decompression.
    pub document_bytes: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            payload_bytes: 16 << 20,
            frame_bytes: 64 << 20,
            definition_bytes: 1 << 30,
            line_bytes: 64 << 20,
            document_bytes: 4 << 30,
        }
    }
}
