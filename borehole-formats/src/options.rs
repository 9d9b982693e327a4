//! How an input is to be read.

/// What all importers are told.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReadOptions {
    /// What to do when the input is damaged.
    pub on_damage: OnDamage,
    /// How much the input may ask for.
    pub limits: Limits,
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
    /// and schemas together.
    pub definition_bytes: usize,
    /// The longest line of a text format, in bytes.
    pub line_bytes: usize,
    /// The largest document of a format that has to be in memory as a whole (`pprof`, `speedscope`), in
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
