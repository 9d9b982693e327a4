//! Files and the clipboard for the explorer.

use std::ffi::OsStr;
use std::io::Read as _;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;
use std::sync::Arc;

use anyhow::ensure;
use borehole::model::{Context, Frame, NativeFrame, Sample, Segment, Tables, ValueType};
use borehole::{Existing, Format, Output, ProfileSink as _, Target};
use borehole_analysis::FrameName;
use borehole_process::open_regular;
use borehole_tui::{Clipboard, Host, WeightedStack};

use super::terminal::Terminal;
use crate::outputs::{compression, is_gzip};

/// The largest file that is read as source code.
const LARGEST_SOURCE: u64 = 8 << 20;

/// Reads sources, writes exports and copies to the clipboard for the explorer.
pub(crate) struct ExplorerHost<'a> {
    terminal: &'a mut Terminal,
}

impl<'a> ExplorerHost<'a> {
    pub(crate) fn new(terminal: &'a mut Terminal) -> Self {
        Self { terminal }
    }
}

impl Clipboard for ExplorerHost<'_> {
    fn copy(&mut self, text: &str) {
        // Terminals ignore the sequence if they do not know it.
        let _ = self.terminal.send(&format!("\x1b]52;c;{}\x07", base64(text.as_bytes())));
    }
}

impl Host for ExplorerHost<'_> {
    fn source(&mut self, path: &[u8]) -> Option<Arc<[String]>> {
        let path = Path::new(OsStr::from_bytes(path));
        let mut bytes = Vec::new();
        open_regular(path).ok()?.take(LARGEST_SOURCE).read_to_end(&mut bytes).ok()?;
        Some(String::from_utf8_lossy(&bytes).lines().map(str::to_owned).collect())
    }

    fn export(
        &mut self,
        name: &str,
        stacks: &[WeightedStack],
        values: Option<&ValueType>,
    ) -> Result<String, String> {
        export(name, stacks, values).map_err(|error| crate::messages::described(&error))
    }
}

/// Writes stacks to a new file. Returns a note about what its format cannot hold; empty if it holds everything.
fn export(name: &str, stacks: &[WeightedStack], values: Option<&ValueType>) -> anyhow::Result<String> {
    let is_gzip = is_gzip(Some(Path::new(name)), false)?;
    let (format, _) = Format::from_path(name)
        .ok_or_else(|| anyhow::anyhow!("unknown format: expected a known file extension, found {name}"))?;
    ensure!(!Path::new(name).exists(), "{name}: file exists; choose another name");
    let mut output = Output::create(name, Existing::Keep, compression(format, is_gzip))?;
    let mut exporter = Target::new(format).exporter_to_file(&mut output)?;
    let period_ns = stacks.first().and_then(|stack| stack.period_ns);
    let mut segment = Segment {
        period_ns,
        value_types: values.cloned().into_iter().collect(),
        is_uncounted: values.is_some(),
        ..Segment::default()
    };
    let mut tables = Tables::default();
    exporter.segment(Context { tables: &tables, segment: &segment })?;
    for WeightedStack { frames, sum, period_ns } in stacks {
        if segment.period_ns != *period_ns {
            segment = Segment { index: segment.index + 1, period_ns: *period_ns, ..segment };
            exporter.segment(Context { tables: &tables, segment: &segment })?;
        }
        let mut stack = None;
        for name in frames {
            let frame = frame(&mut tables, name)?;
            stack = Some(tables.intern_stack(stack, frame)?);
        }
        let value = [*sum];
        let sample = match values {
            Some(_) => Sample { stack, count: 1, values: &value, ..Sample::default() },
            None => Sample { stack, count: u64::try_from(*sum).unwrap_or(0), ..Sample::default() },
        };
        if exporter.sample(Context { tables: &tables, segment: &segment }, &sample)?.is_break() {
            break;
        }
    }
    exporter.finish(&tables)?;
    let losses = exporter.losses();
    drop(exporter);
    output.complete()?;
    let told = format!("{} cannot hold everything: {losses}", format.name());
    Ok(if losses.is_empty() { String::new() } else { told })
}

fn frame(tables: &mut Tables, name: &FrameName) -> anyhow::Result<borehole::model::FrameId> {
    let function = tables.intern_string(&name.function)?;
    let mut string =
        |text: &Option<Vec<u8>>| text.as_ref().map(|text| tables.intern_string(text)).transpose();
    let frame = Frame {
        file: string(&name.file)?,
        line: name.line,
        opcode: string(&name.opcode)?,
        native: string(&name.module)?.map(|module| NativeFrame { module, offset: None, file_offset: None }),
        ..Frame::named(function)
    };
    Ok(tables.intern_frame(&frame)?)
}

/// Bytes in base 64, as terminals expect them (RFC 4648, section 4).
fn base64(bytes: &[u8]) -> String {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::new();
    for chunk in bytes.chunks(3) {
        let byte = |place: usize| u32::from(chunk.get(place).copied().unwrap_or(0));
        let bits = byte(0) << 16 | byte(1) << 8 | byte(2);
        for place in 0..4_u32 {
            let letter = (bits >> (18 - 6 * place) & 63) as usize;
            let is_there = place as usize <= chunk.len();
            text.push(if is_there { char::from(LETTERS[letter]) } else { '=' });
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_is_that_of_the_standard() {
        // Source: RFC 4648, section 10.
        let vectors = [("", ""), ("f", "Zg=="), ("fo", "Zm8="), ("foo", "Zm9v"), ("foobar", "Zm9vYmFy")];
        for (text, expected) in vectors {
            assert_eq!(base64(text.as_bytes()), expected);
        }
    }
}
