//! Progress on long work, on a terminal only that can be drawn over.

use std::io::{self, Read};
use std::time::Duration;

use borehole::Source;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::cell::is_drawn_over;
use crate::messages;

/// Inputs smaller than this are read before anybody would look for a bar.
const LONG_BYTES: u64 = 32 << 20;

/// `source` with a bar on standard error that shows how much of it has been read.
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
    source.map(|reader| Box::new(Watched { reader, bar }))
}

/// Something that turns on standard error until it is dropped.
pub(crate) struct Turning(ProgressBar);

/// Says on a terminal what is being worked on, while there is nothing else to see.
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

/// Where progress is shown.
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

struct Watched {
    reader: Box<dyn Read>,
    bar: ProgressBar,
}

impl Read for Watched {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.reader.read(buffer)?;
        self.bar.inc(count as u64);
        Ok(count)
    }
}

impl Drop for Watched {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}
