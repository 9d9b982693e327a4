//! Progress bars on terminals.

use std::io::{self, Read};
use std::time::Duration;

use borehole::Source;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::cell::is_drawn_over;
use crate::messages;

/// Inputs smaller than this are read too quickly to need a bar.
const LONG_BYTES: u64 = 32 << 20;

/// Adds a bar on standard error that shows how much of `source` has been read.
pub(crate) fn shown(source: Source) -> Source {
    let size = source.size_bytes();
    if messages::are_held() || !is_drawn_over(&io::stderr()) || size.is_some_and(|size| size < LONG_BYTES) {
        return source;
    }
    let bar = match size {
        Some(size) => {
            ProgressBar::new(size).with_style(style("{bar:30} {bytes}/{total_bytes} {bytes_per_sec} {eta}"))
        }
        None => ProgressBar::no_length().with_style(style("{spinner} {bytes} {bytes_per_sec}")),
    };
    bar.set_draw_target(target());
    bar.enable_steady_tick(Duration::from_millis(500));
    source.map(|reader| Box::new(ProgressReader { reader, bar }))
}

/// A spinner on standard error until it is dropped.
pub(crate) struct Turning(ProgressBar);

/// Shows a spinner with a message on a terminal.
pub(crate) fn turning(on: &'static str) -> Turning {
    let bar = ProgressBar::no_length().with_style(style("{spinner} {msg}")).with_message(on);
    bar.set_draw_target(target());
    bar.enable_steady_tick(Duration::from_millis(500));
    Turning(bar)
}

impl Drop for Turning {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}

/// Standard error if it is a terminal, otherwise nothing.
fn target() -> ProgressDrawTarget {
    if is_drawn_over(&io::stderr()) {
        ProgressDrawTarget::stderr_with_hz(5)
    } else {
        ProgressDrawTarget::hidden()
    }
}

fn style(template: &str) -> ProgressStyle {
    ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar())
}

struct ProgressReader {
    reader: Box<dyn Read + Send>,
    bar: ProgressBar,
}

impl Read for ProgressReader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.reader.read(buffer)?;
        self.bar.inc(count as u64);
        Ok(count)
    }
}

impl Drop for ProgressReader {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}
