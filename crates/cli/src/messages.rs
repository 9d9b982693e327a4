//! Messages on standard error: errors, hints, warnings and notes.

use std::borrow::Cow;
use std::io::{self, Write as _};
use std::sync::{Mutex, PoisonError};

use borehole::memory::OverBudget;
use borehole::{Error, Losses, Recovery, Warning, capture, heap};
use borehole_text::{counted, crop_middle, printable, width, without_passwords};

use crate::exit::Exit;
use crate::hints;
use crate::interrupt;
use crate::refusal;
use crate::stdout::{data, stdout_error};

/// The maximum number of warnings that are printed; the rest is counted.
const SHOWN: usize = 20;

/// Prints the error of a command and a hint, and returns the exit code.
pub(crate) fn failure(error: &anyhow::Error) -> Exit {
    let known = || error.chain().filter_map(|cause| cause.downcast_ref::<Error>());
    if known().any(Error::is_closed_pipe) {
        return Exit::Done;
    }
    if interrupt::requested() && is_of_input(error) {
        say("interrupted: nothing was written");
        return Exit::Interrupted;
    }
    say(&format!("error: {}{}", described(error), hints::ending(error)));
    let hint = error.chain().find_map(hints::of);
    let hint = hint.or_else(|| lacks_memory(error).then(|| MORE_MEMORY.to_owned()));
    let hint = hint.or_else(|| {
        let mut of_capture = error.chain().filter_map(|cause| cause.downcast_ref::<capture::Error>());
        let refused = of_capture.find(|error| error.is_other_program())?;
        let is_php = matches!(refused, capture::Error::Php(_));
        Some(if is_php { refusal::WHAT_IS_PHP } else { refusal::WHAT_IS_SAMPLED }.to_owned())
    });
    #[cfg(feature = "lake")]
    let hint = hint.or_else(|| {
        let of_lake = error.chain().filter_map(|cause| cause.downcast_ref::<borehole_query::Error>());
        of_lake.filter_map(borehole_query::Error::hint).next().map(str::to_owned)
    });
    if let Some(hint) = hint {
        say(&format!("hint: {hint}"));
    }
    Exit::Failed
}

/// The text of an error, behind those of its contexts.
pub(crate) fn described(error: &anyhow::Error) -> String {
    let mut texts = Vec::new();
    for cause in error.chain() {
        texts.push(cause.to_string());
        // These say their causes themselves.
        if cause.is::<Error>() || cause.is::<heap::Error>() || cause.is::<borehole::formats::Error>() {
            break;
        }
    }
    texts.join(": ")
}

/// The failure of a system that has no more threads.
pub(crate) const NO_THREAD: &str = "cannot start a thread";

/// The hint after an error about a budget that is used up.
pub(crate) const MORE_MEMORY: &str = "allow more with --max-memory";

/// Whether the budget of memory is the cause, wherever it is said.
fn lacks_memory(error: &anyhow::Error) -> bool {
    error.chain().any(|cause| {
        let known = cause.downcast_ref::<Error>().is_some_and(Error::is_memory);
        let of_heap = || cause.downcast_ref::<heap::Error>().is_some_and(heap::Error::is_memory);
        let of_capture = || cause.downcast_ref::<capture::Error>().is_some_and(capture::Error::is_memory);
        known || of_heap() || of_capture() || is_over_budget(cause)
    })
}

fn is_over_budget(cause: &(dyn std::error::Error + 'static)) -> bool {
    cause.is::<OverBudget>() || cause.downcast_ref::<io::Error>().and_then(OverBudget::of).is_some()
}

/// Whether an input could not be read. An interrupt can cause such an error, because it ends the reading of pipes; it cannot
/// cause errors of writing, or others.
fn is_of_input(error: &anyhow::Error) -> bool {
    error.chain().any(|cause| {
        let known = cause.downcast_ref::<Error>();
        known.is_some_and(|error| !matches!(error, Error::Write { .. }) && !error.is_memory())
    })
}

/// Prints the notes and warnings about the input called `name`.
pub(crate) fn warnings(name: &str, recovery: &Recovery) {
    for note in recovery.notes.iter().take(SHOWN) {
        say(&format!("note: {name}: {}", text(note)));
    }
    more("note", name, recovery.notes.len().saturating_sub(SHOWN) as u64);
    for warning in recovery.warnings.iter().take(SHOWN) {
        say(&format!("warning: {name}: {}", text(warning)));
    }
    let unsaid = recovery.warnings.len().saturating_sub(SHOWN) as u64 + recovery.more_warnings;
    more("warning", name, unsaid);
    if recovery.lost_bytes > 0 && recovery.warnings.len() > 1 {
        say(&format!("warning: {name}: {} lost in total", counted(recovery.lost_bytes, "byte")));
    }
}

fn more(what: &str, name: &str, count: u64) {
    if count > 0 {
        say(&format!(
            "{what}: {name}: {count} more; borehole info --json lists the first {}",
            Recovery::MAX_WARNINGS
        ));
    }
}

/// A warning with its losses and position. It may quote the file, so it must be escaped for a terminal.
pub(crate) fn text(warning: &Warning) -> String {
    let mut text = warning.message.clone();
    let lost = (warning.lost_bytes > 0).then(|| format!("{} lost", counted(warning.lost_bytes, "byte")));
    let saved =
        warning.saved_samples.map(|samples| format!("{} recovered after it", counted(samples, "sample")));
    let outcome: Vec<_> = [lost, saved].into_iter().flatten().collect();
    if !outcome.is_empty() {
        text += &format!("; {}", outcome.join(", "));
    }
    if let Some(offset) = warning.offset {
        text += &format!(" (at byte {offset:#x})");
    }
    text
}

/// Prints that the user interrupted the command, if so, and how many samples were written.
pub(crate) fn interrupted(samples: u64) {
    if interrupt::requested() {
        say(&format!("interrupted: {} read and written", counted(samples, "sample")));
    }
}

/// Prints what the output format could not hold.
pub(crate) fn losses(losses: &Losses, format: &str) {
    if !losses.is_empty() {
        say(&format!("note: {format} cannot hold everything: {losses}"));
    }
}

/// Prints a line to standard output.
pub(crate) fn out(line: &str) -> Result<(), Error> {
    let mut out = data();
    writeln!(out, "{line}").and_then(|()| out.flush()).map_err(stdout_error)
}

/// Prints an escaped line to standard output.
#[cfg(feature = "lake")]
pub(crate) fn show(line: &str) -> Result<(), Error> {
    out(&printable(line.as_bytes()))
}

/// Messages that are held back; `None` while messages are printed at once.
static HELD: Mutex<Option<Vec<String>>> = Mutex::new(None);

/// Prints a line to standard error; errors are ignored. The text is escaped, because names of files and quotes from them
/// could otherwise control the terminal or add lines. Passwords in addresses are left out.
pub(crate) fn say(line: &str) {
    match &mut *HELD.lock().unwrap_or_else(PoisonError::into_inner) {
        Some(held) if held.len() < SHOWN => held.push(line.to_owned()),
        Some(_) => {}
        None => {
            let line = printable(without_passwords(line).as_bytes());
            let _ = writeln!(io::stderr(), "{}", on_a_screen(&line));
        }
    }
}

/// The most columns of a message: about a screen of 80 columns and 20 lines.
const SCREEN: usize = 1600;

/// The most columns of a word in a message that would not fit otherwise.
const WORD: usize = 200;

/// A message cut in its middle if it takes more than a screen. Its longest words, which are names, are cut first.
fn on_a_screen(line: &str) -> Cow<'_, str> {
    if width(line) <= SCREEN {
        return line.into();
    }
    let words: Vec<_> = line.split(' ').map(|word| crop_middle(word, WORD)).collect();
    crop_middle(&words.join(" "), SCREEN).into()
}

/// Holds messages back from here on, because something else uses the terminal. Drops those held back before.
pub(crate) fn hold() {
    *HELD.lock().unwrap_or_else(PoisonError::into_inner) = Some(Vec::new());
}

/// Whether messages are held back.
pub(crate) fn are_held() -> bool {
    HELD.lock().unwrap_or_else(PoisonError::into_inner).is_some()
}

/// Prints the messages that were held back.
pub(crate) fn release() {
    let held = HELD.lock().unwrap_or_else(PoisonError::into_inner).take();
    held.into_iter().flatten().for_each(|line| say(&line));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_takes_a_screen_at_most() {
        let short = format!("error: {}: no such file", "x".repeat(SCREEN - 30));
        assert_eq!(on_a_screen(&short), short);
        let long = format!("error: {}: no such file", "x".repeat(1 << 20));
        let shown = on_a_screen(&long);
        assert!(shown.starts_with("error: xxx") && shown.ends_with("xx: no such file"), "{shown}");
        assert_eq!(width(&shown), "error: ".len() + WORD + " no such file".len());
        let many = on_a_screen(&format!("error: {}", "name ".repeat(1 << 18))).into_owned();
        assert_eq!((width(&many), many.matches('…').count()), (SCREEN, 1));
    }

    #[test]
    fn only_what_could_not_be_read_may_come_of_an_interrupt() {
        let name = || "a.rbt".to_owned();
        let full = || io::Error::from(io::ErrorKind::StorageFull);
        let read = Error::Open { name: name(), source: full() };
        assert!(is_of_input(&anyhow::Error::new(read).context("while comparing")));
        assert!(!is_of_input(&Error::Write { name: name(), source: full() }.into()));
        assert!(!is_of_input(&anyhow::anyhow!("a sampling thread panicked")));
    }
}
