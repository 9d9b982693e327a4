//! Zstandard frames, read by the [`Envelope`](crate::envelope::Envelope) and written here.

use std::io::{self, Write};

use zstd::stream::write::Encoder;
use zstd::zstd_safe::zstd_sys::ZSTD_ErrorCode;
use zstd::zstd_safe::{DCtx, DParameter, InBuffer, OutBuffer};

use crate::member::{Fault, State, Step};

/// The first bytes of a frame.
///
/// Source: RFC 8878, section 3.1.1.
pub const FRAME_MAGIC: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];

/// The binary logarithm of the largest window that a frame may ask for, in bytes: 128 MiB, what the program `zstd`
/// takes too unless it is told otherwise. Only what a frame fills of it is ever touched.
pub const WINDOW_LOG_MAX: u32 = 27;

/// So many bytes of a compressed input hold the first one that comes out of it: the header of a frame, and a whole
/// block with its own.
///
/// Source: RFC 8878, sections 3.1.1.1 and 3.1.1.2.4.
pub const FIRST_BLOCK_BYTES: usize = 18 + 3 + (128 << 10);

/// Whether a frame begins here that decoders pass over.
///
/// Source: RFC 8878, section 3.1.2.
pub(crate) fn is_skippable(bytes: &[u8]) -> bool {
    matches!(bytes, [0x50..=0x5f, 0x2a, 0x4d, 0x18, ..])
}

/// The fewest bytes that tell how long the header of a frame is.
const FRAME_BEGINNING_BYTES: usize = 5;

/// The bytes in front of a block.
const BLOCK_HEADER_BYTES: usize = 3;

/// Decompresses one frame.
///
/// A step that fails forgets what it has written. So no step gets more than one block or one header, and none
/// while something of the block before may be left to write: all that stands before the damage comes out.
pub(crate) struct FrameDecoder {
    decoder: DCtx<'static>,
    /// How many bytes the decoder is to be given next.
    wanted: usize,
    /// Whether the output was full, so that there may be more.
    was_full: bool,
}

impl FrameDecoder {
    pub(crate) fn new() -> io::Result<Self> {
        let out_of_memory = || io::Error::from(io::ErrorKind::OutOfMemory);
        let mut decoder = DCtx::try_create().ok_or_else(out_of_memory)?;
        decoder.set_parameter(DParameter::WindowLogMax(WINDOW_LOG_MAX)).map_err(|_| out_of_memory())?;
        Ok(Self { decoder, wanted: FRAME_BEGINNING_BYTES, was_full: false })
    }

    pub(crate) fn step(&mut self, input: &[u8], output: &mut [u8]) -> Step {
        if self.was_full {
            let step = self.decode(&[], output);
            if step.produced > 0 || step.state != State::Inside {
                return step;
            }
        }
        self.decode(&input[..input.len().min(self.wanted)], output)
    }

    fn decode(&mut self, input: &[u8], output: &mut [u8]) -> Step {
        let room = output.len();
        let (mut input, mut output) = (InBuffer::around(input), OutBuffer::around(output));
        let outcome = self.decoder.decompress_stream(&mut output, &mut input);
        let (consumed, produced) = (input.pos(), output.pos());
        self.was_full = produced == room;
        let state = match outcome {
            Ok(0) => State::Ended,
            Ok(hint) => {
                // The hint counts the header of the next block in.
                self.wanted = if hint > BLOCK_HEADER_BYTES { hint - BLOCK_HEADER_BYTES } else { hint };
                State::Inside
            }
            Err(code) => State::Failed(fault(code)),
        };
        Step { consumed, produced, state }
    }
}

/// What an error means: its number, negated.
fn fault(code: usize) -> Fault {
    let too_large = ZSTD_ErrorCode::ZSTD_error_frameParameter_windowTooLarge as usize;
    if code == too_large.wrapping_neg() {
        Fault::WindowTooLarge { max_bytes: 1 << WINDOW_LOG_MAX }
    } else {
        Fault::Invalid
    }
}

/// Writes a frame at the default level, with a checksum: equal bytes give equal bytes.
///
/// A frame that was not completed has no end, so nobody takes it for whole.
///
/// # Examples
///
/// ```
/// use std::io::{Read as _, Write as _};
/// use borehole_formats::envelope::Envelope;
/// use borehole_formats::zstd::{FRAME_MAGIC, ZstdWriter};
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
    /// A frame that is written to `stream`.
    ///
    /// # Errors
    /// When there is no memory for the encoder.
    pub fn new(stream: W) -> io::Result<Self> {
        let mut encoder = Encoder::new(stream, zstd::DEFAULT_COMPRESSION_LEVEL)?;
        encoder.include_checksum(true)?;
        Ok(Self { encoder })
    }

    /// Ends the frame and gives the stream back.
    ///
    /// # Errors
    /// When the rest cannot be written.
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
