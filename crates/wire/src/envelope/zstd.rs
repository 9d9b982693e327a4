//! Zstandard frames, read by the [`Envelope`](crate::envelope::Envelope) and written here.

use std::io::{self, Write};

use zstd::stream::write::Encoder;
use zstd::zstd_safe::zstd_sys::ZSTD_ErrorCode;
use zstd::zstd_safe::{DCtx, DParameter, InBuffer, OutBuffer, ResetDirective};

use super::step::{InflateStep, MemberFault, MemberState};

/// The first bytes of a frame.
///
/// Source: RFC 8878, section 3.1.1.
pub const FRAME_MAGIC: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];

/// The binary logarithm of the largest window of a frame, in bytes: 128 MiB, the default limit of the program `zstd`.
/// Only the part of it that a frame fills is ever touched.
pub const WINDOW_LOG_MAX: u32 = 27;

/// The number of bytes of a compressed input that always hold its first decompressed byte: the header of a frame, and a
/// whole block with its own header.
///
/// Source: RFC 8878, sections 3.1.1.1 and 3.1.1.2.4.
pub const FIRST_BLOCK_BYTES: usize = 18 + 3 + (128 << 10);

/// Whether a frame that decoders skip begins here.
///
/// Source: RFC 8878, section 3.1.2.
#[must_use]
pub fn is_skippable(bytes: &[u8]) -> bool {
    matches!(bytes, [0x50..=0x5f, 0x2a, 0x4d, 0x18, ..])
}

/// Whether the header of a frame, without its magic number, and that of its first block are possible, as far as they are
/// present: the reserved bit is zero, no dictionary is needed, the window is not too large, and the block is of a known
/// kind and size.
///
/// Source: RFC 8878, sections 3.1.1.1 and 3.1.1.2.
pub(crate) fn is_possible_frame(header: &[u8]) -> bool {
    let Some((&descriptor, rest)) = header.split_first() else { return true };
    let is_single = descriptor & 0x20 != 0;
    let window = rest.first().filter(|_| !is_single);
    let dictionary_bytes = [0, 1, 2, 4][usize::from(descriptor & 3)];
    let size_bytes = [usize::from(is_single), 2, 4, 8][usize::from(descriptor >> 6)];
    let dictionary = rest.iter().skip(usize::from(!is_single)).take(dictionary_bytes);
    let block = rest.get(usize::from(!is_single) + dictionary_bytes + size_bytes..).unwrap_or_default();
    descriptor & 0x08 == 0
        && window.is_none_or(|window| u32::from(window >> 3) + 10 <= WINDOW_LOG_MAX)
        && dictionary.into_iter().all(|&byte| byte == 0)
        && block.first_chunk().is_none_or(|&[low, middle, high]| {
            let size = u32::from_le_bytes([low, middle, high, 0]) >> 3;
            low >> 1 & 3 != 3 && size <= 128 << 10
        })
}

/// The number of bytes that determine the length of a frame's header.
const FRAME_BEGINNING_BYTES: usize = 5;

/// The length of a block's header.
const BLOCK_HEADER_BYTES: usize = 3;

/// Decompresses one frame.
///
/// A step that fails loses its output. So no step gets more than one block or header, and none is given while output of
/// the block before may be pending: everything before the damage is returned.
pub(crate) struct FrameDecoder {
    decoder: DCtx<'static>,
    /// The number of bytes to pass to the decoder next.
    wanted: usize,
    /// Whether the output was full, so that more may be pending.
    was_full: bool,
}

impl FrameDecoder {
    pub(crate) fn new() -> io::Result<Self> {
        let out_of_memory = || io::Error::from(io::ErrorKind::OutOfMemory);
        let mut decoder = DCtx::try_create().ok_or_else(out_of_memory)?;
        decoder.set_parameter(DParameter::WindowLogMax(WINDOW_LOG_MAX)).map_err(|_| out_of_memory())?;
        Ok(Self { decoder, wanted: FRAME_BEGINNING_BYTES, was_full: false })
    }

    /// Begins another frame, wherever the last one ended.
    pub(crate) fn restart(&mut self) -> io::Result<()> {
        self.decoder.reset(ResetDirective::SessionOnly).map_err(|_| io::ErrorKind::OutOfMemory)?;
        (self.wanted, self.was_full) = (FRAME_BEGINNING_BYTES, false);
        Ok(())
    }

    pub(crate) fn step(&mut self, input: &[u8], output: &mut [u8]) -> InflateStep {
        if self.was_full {
            let step = self.decode(&[], output);
            if step.produced > 0 || step.state != MemberState::Inside {
                return step;
            }
        }
        self.decode(&input[..input.len().min(self.wanted)], output)
    }

    fn decode(&mut self, input: &[u8], output: &mut [u8]) -> InflateStep {
        let room = output.len();
        let (mut input, mut output) = (InBuffer::around(input), OutBuffer::around(output));
        let outcome = self.decoder.decompress_stream(&mut output, &mut input);
        let (consumed, produced) = (input.pos(), output.pos());
        self.was_full = produced == room;
        let state = match outcome {
            Ok(0) => MemberState::Ended,
            Ok(hint) => {
                // The hint includes the header of the next block.
                self.wanted = if hint > BLOCK_HEADER_BYTES { hint - BLOCK_HEADER_BYTES } else { hint };
                MemberState::Inside
            }
            Err(code) => MemberState::Failed(fault(code)),
        };
        InflateStep { consumed, produced, state }
    }
}

/// The fault behind an error code, which is its number, negated.
fn fault(code: usize) -> MemberFault {
    let too_large = ZSTD_ErrorCode::ZSTD_error_frameParameter_windowTooLarge as usize;
    if code == too_large.wrapping_neg() {
        MemberFault::WindowTooLarge { max_bytes: 1 << WINDOW_LOG_MAX }
    } else {
        MemberFault::Invalid
    }
}

/// Writes a frame at the default level, with a checksum: equal bytes give equal bytes.
///
/// An uncompleted frame has no end, so readers detect that it is cut off.
///
/// # Examples
///
/// ```
/// use std::io::{Read as _, Write as _};
/// use borehole_wire::envelope::Envelope;
/// use borehole_wire::zstd::{FRAME_MAGIC, ZstdWriter};
///
/// let mut writer = ZstdWriter::new(Vec::new())?;
/// writer.write_all(b"a;b 1\n")?;
/// let frame = writer.complete()?;
/// assert!(frame.starts_with(&FRAME_MAGIC));
///
/// let mut text = String::new();
/// Envelope::new(&frame[..]).read_to_string(&mut text)?;
/// assert_eq!(text, "a;b 1\n");
/// # Ok::<(), std::io::Error>(())
/// ```
pub struct ZstdWriter<W: Write> {
    encoder: Encoder<'static, W>,
}

impl<W: Write> ZstdWriter<W> {
    /// Creates a writer of one frame to `stream`.
    ///
    /// # Errors
    /// If there is no memory for the encoder.
    pub fn new(stream: W) -> io::Result<Self> {
        let mut encoder = Encoder::new(stream, zstd::DEFAULT_COMPRESSION_LEVEL)?;
        encoder.include_checksum(true)?;
        Ok(Self { encoder })
    }

    /// The stream.
    pub fn stream(&self) -> &W {
        self.encoder.get_ref()
    }

    /// Ends the frame and returns the stream.
    ///
    /// # Errors
    /// If the rest cannot be written.
    pub fn complete(self) -> io::Result<W> {
        self.encoder.finish()
    }
}

impl<W: Write> Write for ZstdWriter<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.encoder.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.encoder.flush()
    }
}
