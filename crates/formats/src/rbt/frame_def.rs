//! A frame to be written, and its contents, stored for a fast comparison with the next frame.

use crate::frames::function_name::FunctionName;

/// A frame to be defined, with borrowed strings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FrameDef<'a> {
    /// A PHP frame.
    Php {
        /// Namespace, class and method.
        name: FunctionName<'a>,
        /// The file.
        file: &'a [u8],
        /// The line; -1 if unknown.
        line: i64,
        /// The opcode. Empty and `None` are the same frame, and the first one is written.
        opcode: Option<&'a [u8]>,
    },
    /// A native frame.
    Native {
        /// The symbol.
        symbol: &'a [u8],
        /// The executable or library.
        module: &'a [u8],
        /// Bytes from the start of the symbol.
        offset: i64,
    },
}

impl<'a> FrameDef<'a> {
    /// A PHP frame without opcode.
    #[must_use]
    pub fn php(function: &'a str, file: &'a str, line: i64) -> Self {
        let name = FunctionName::split(function.as_bytes());
        Self::Php { name, file: file.as_bytes(), line, opcode: None }
    }

    /// Namespace, class, method, file and opcode; or symbol and module. Absent ones are empty.
    pub(super) fn strings(&self) -> [&'a [u8]; 5] {
        match *self {
            Self::Php { name, file, opcode, .. } => {
                [name.namespace, name.class, name.method, file, opcode.unwrap_or_default()]
            }
            Self::Native { symbol, module, .. } => [symbol, module, b"", b"", b""],
        }
    }

    /// The strings that its definition refers to, in the order of their definition.
    pub(super) fn defined_strings(&self) -> impl Iterator<Item = &'a [u8]> + use<'a> {
        let count = match self {
            Self::Php { opcode: Some(_), .. } => 5,
            Self::Php { opcode: None, .. } => 4,
            Self::Native { .. } => 2,
        };
        self.strings().into_iter().take(count)
    }

    /// The line or offset, and whether the frame is native.
    pub(super) const fn number(&self) -> (i64, bool) {
        match *self {
            Self::Php { line, .. } => (line, false),
            Self::Native { offset, .. } => (offset, true),
        }
    }
}

/// The contents of a frame without its texts, which are stored elsewhere in one piece: comparing follows no ids and no
/// pointers.
#[derive(Clone, Copy)]
pub(super) struct FrameContent {
    lengths: [usize; 5],
    number: (i64, bool),
}

impl FrameContent {
    /// Stores `frame`, appending its strings to `texts`.
    pub(super) fn keep(frame: &FrameDef<'_>, texts: &mut Vec<u8>) -> Self {
        let strings = frame.strings();
        for text in strings {
            texts.extend_from_slice(text);
        }
        Self { lengths: strings.map(<[u8]>::len), number: frame.number() }
    }

    /// Whether this frame, whose texts are `texts`, equals `frame`. An empty opcode equals none, as in reli.
    #[inline(always)]
    pub(super) fn is(&self, texts: &[u8], frame: &FrameDef<'_>) -> bool {
        // Unrolled: a loop over the five would put them on the stack first.
        let [namespace, class, method, file, opcode] = frame.strings();
        let lengths = &self.lengths;
        let mut rest = texts;
        self.number == frame.number()
            && follows(&mut rest, lengths[0], namespace)
            && follows(&mut rest, lengths[1], class)
            && follows(&mut rest, lengths[2], method)
            && follows(&mut rest, lengths[3], file)
            && follows(&mut rest, lengths[4], opcode)
    }
}

/// Whether the first `length` bytes of `texts` are `wanted`; removes them.
#[inline(always)]
fn follows(texts: &mut &[u8], length: usize, wanted: &[u8]) -> bool {
    if length != wanted.len() {
        return false;
    }
    let Some((text, rest)) = texts.split_at_checked(length) else { return false };
    *texts = rest;
    is_same(text, wanted)
}

/// Whether two texts of one length are equal. Names and paths are short: a call of `memcmp` takes longer than comparing
/// both ends.
#[inline(always)]
fn is_same(one: &[u8], other: &[u8]) -> bool {
    match other.len() {
        0 => true,
        1..4 => one.iter().eq(other),
        4..8 => have_same_ends::<4>(one, other),
        8..16 => have_same_ends::<8>(one, other),
        16..=32 => have_same_ends::<16>(one, other),
        33..=64 => have_same_ends::<32>(one, other),
        65..=96 => have_same_ends::<32>(one, other) && one[32..64] == other[32..64],
        _ => one == other,
    }
}

/// Whether the first and the last `N` bytes are equal.
#[inline(always)]
fn have_same_ends<const N: usize>(one: &[u8], other: &[u8]) -> bool {
    one.first_chunk::<N>() == other.first_chunk() && one.last_chunk::<N>() == other.last_chunk()
}
