//! Stacks as lines of JSON, in the shape of reli's template `json_lines`.
//!
//! Source: reli 0.12, `CallTrace` and `CallFrame` as PHP's `json_encode` writes them. Of an instruction only the line and
//! the name are written, which reli hides among its operands.

use std::io::{self, BufWriter, Write};
use std::ops::ControlFlow;

use borehole::capture::LiveSink;
use borehole::model::{Context, FrameId, ProfileSink, Sample, Tables};
use serde_json::{Value, json};

/// Writes one line per sample.
pub(super) struct ReliJsonLines<W: Write> {
    output: BufWriter<W>,
}

impl<W: Write> ReliJsonLines<W> {
    pub(super) fn new(output: W) -> Self {
        Self { output: BufWriter::new(output) }
    }
}

impl<W: Write> ProfileSink for ReliJsonLines<W> {
    fn sample(&mut self, at: Context<'_>, sample: &Sample<'_>) -> io::Result<ControlFlow<()>> {
        let frames = at.tables.frames_leaf_first(sample.stack).map(|id| frame(id, at.tables));
        let line = json!({ "call_frames": frames.collect::<Value>() });
        for _ in 0..sample.count {
            writeln!(self.output, "{line}")?;
        }
        Ok(ControlFlow::Continue(()))
    }

    fn finish(&mut self, _tables: &Tables) -> io::Result<()> {
        self.output.flush()
    }
}

impl<W: Write> LiveSink for ReliJsonLines<W> {
    fn flush(&mut self) -> io::Result<()> {
        self.output.flush()
    }
}

fn frame(id: FrameId, tables: &Tables) -> Value {
    let frame = tables.frame(id);
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let (class, function) = match frame.parts {
        None => (String::new(), text(tables.string(frame.function))),
        Some(parts) => {
            let namespace = text(tables.string(parts.namespace));
            let prefix = if namespace.is_empty() { namespace } else { namespace + "\\" };
            let (class, method) = (text(tables.string(parts.class)), text(tables.string(parts.method)));
            if class.is_empty() { (class, prefix + &method) } else { (prefix + &class, method) }
        }
    };
    let opline = frame.line.filter(|line| *line >= 0).map(
        |line| json!({ "lineno": line, "opcode": frame.opcode.map(|opcode| text(tables.string(opcode))) }),
    );
    json!({
        "class_name": class,
        "function_name": function,
        "file_name": frame.file.map_or_else(String::new, |file| text(tables.string(file))),
        "opline": opline,
    })
}
