//! What is said on standard error.

use std::io::{self, Write as _};

use borehole::{Error, Losses, Recovery, Warning};

use crate::exit::Exit;

/// How many warnings are printed; the rest are counted.
const SHOWN: usize = 20;

/// Says what a command failed of, and what to try next.
pub(crate) fn failure(error: &anyhow::Error) -> Exit {
    let closed = error.chain().any(|cause| match cause.downcast_ref::<Error>() {
        Some(error) => error.is_closed_pipe(),
        None => {
            cause.downcast_ref::<io::Error>().is_some_and(|error| error.kind() == io::ErrorKind::BrokenPipe)
        }
    });
    if closed {
        return Exit::Done;
    }
    say(&format!("borehole: {error:#}"));
    if let Some(hint) = error.chain().find_map(|cause| cause.downcast_ref::<Error>()?.hint()) {
        say(&format!("hint: {hint}"));
    }
    Exit::Failed
}

/// Says what was odd or lost in the inputs.
pub(crate) fn warnings(recovery: &Recovery) {
    for warning in recovery.warnings.iter().take(SHOWN) {
        say(&format!("warning: {}", text(warning)));
    }
    let more = recovery.warnings.len().saturating_sub(SHOWN) as u64 + recovery.more_warnings;
    if more > 0 {
        say(&format!("warning: {more} more; borehole dump lists them"));
    }
    if recovery.lost_bytes > 0 {
        say(&format!("warning: {} bytes of the input could not be used", recovery.lost_bytes));
    }
}

/// A warning with its place.
pub(crate) fn text(warning: &Warning) -> String {
    let mut text = warning.message.clone();
    if warning.lost_bytes > 0 {
        text += &format!("; {} bytes lost", warning.lost_bytes);
    }
    if let Some(offset) = warning.offset {
        text += &format!(" (at byte {offset:#x})");
    }
    text
}

/// Says what the target format could not hold.
pub(crate) fn losses(losses: &Losses, format: &str) {
    if !losses.is_empty() {
        say(&format!("note: {format} cannot hold everything: {losses}"));
    }
}

/// A line on standard error. Where nobody listens, nothing is lost.
pub(crate) fn say(line: &str) {
    let _ = writeln!(io::stderr(), "{line}");
}
