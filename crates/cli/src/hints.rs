//! The way out of an error, as the command line to type next.

use borehole::{Advice, Error, heap};
use borehole_text::shell_word;

use crate::messages::MORE_MEMORY;

/// The name of the standard input, as an input.
const STDIN: &str = "standard input";

/// The hint after an error about an answer that did not come in time.
const MORE_TIME: &str = "--timeout sets how long to wait";

/// The hint after the text of `cause`; `None` if it has none, or if [`ending`] says it.
pub(crate) fn of(cause: &(dyn std::error::Error + 'static)) -> Option<String> {
    if let Some(error) = cause.downcast_ref::<Error>() {
        return hint(&error.advice()?, error.name());
    }
    let Some(error) = cause.downcast_ref::<heap::Error>() else {
        return hint(&Advice::of(cause)?, "");
    };
    match error.advice()? {
        Advice::ReadOn => {
            Some("use --lenient to analyze what is left; lost memory is counted as missing".to_owned())
        }
        advice => hint(&advice, error.name()),
    }
}

/// The end of an error's own line: how to replace a file that exists.
pub(crate) fn ending(error: &anyhow::Error) -> &'static str {
    match error.chain().find_map(Advice::of) {
        Some(Advice::Replace { is_unfinished: false }) => "; use --force to replace it",
        Some(Advice::Replace { is_unfinished: true }) => {
            "; recover it with borehole recover, or use --force to replace it"
        }
        _ => "",
    }
}

fn hint(advice: &Advice, name: &str) -> Option<String> {
    Some(match advice {
        Advice::Replace { .. } => return None,
        Advice::ReadOn => recover(name),
        Advice::NameFormat => "name the format with --from; borehole formats lists them".to_owned(),
        Advice::OtherFormat => "borehole formats lists what can be read and written".to_owned(),
        Advice::Decompress(program) => {
            format!(
                "unpack it first if it is compressed with {program}; only gzip and zstd are unpacked automatically"
            )
        }
        Advice::Heap { is_readable: true, .. } => {
            // Heaps cannot be read from pipes.
            let file = if name == STDIN { "FILE".to_owned() } else { shell_word(name) };
            format!("the file holds a heap; use borehole heap info {file}")
        }
        Advice::Profile => format!("the file holds a profile; use borehole info {}", shell_word(name)),
        Advice::OtherRun => format!("list the runs with borehole heap runs {}", shell_word(name)),
        Advice::Import => {
            let name = shell_word(name);
            format!("the file holds a heap; convert it with borehole heap export {name} -o heaps.sqlite3")
        }
        Advice::Salvage => {
            format!("print what is left as SQL with sqlite3 {} .recover", shell_word(name))
        }
        Advice::TryAgain { was_waited_for } => {
            let list = format!("borehole heap runs {} lists the stored ones", shell_word(name));
            let wait = if *was_waited_for { format!("; {MORE_TIME}") } else { String::new() };
            format!("incomplete runs are not stored ({list}); try again when the server is back{wait}")
        }
        Advice::MoreTime => MORE_TIME.to_owned(),
        Advice::MoreMemory => MORE_MEMORY.to_owned(),
        advice => advice.to_string(),
    })
}

/// The command that recovers the rest of a damaged input.
fn recover(name: &str) -> String {
    if name == STDIN {
        return "borehole recover -o recovered.rbt < FILE".to_owned();
    }
    let extension =
        name.rsplit('/').next().unwrap_or(name).split_once('.').map_or("rbt", |(_, extension)| extension);
    format!("borehole recover {} -o {}", shell_word(name), shell_word(&format!("recovered.{extension}")))
}

#[cfg(test)]
mod tests {
    use borehole::formats::{self, Position};

    use super::*;

    #[test]
    fn hints_can_be_pasted_into_a_shell() {
        for (name, advice) in [
            ("trace.rbt", "borehole recover trace.rbt -o recovered.rbt"),
            ("a/b.rbt.gz", "borehole recover a/b.rbt.gz -o recovered.rbt.gz"),
            ("Bob's trace", "borehole recover 'Bob'\\''s trace' -o recovered.rbt"),
            ("$(rm x).rbt", "borehole recover '$(rm x).rbt' -o recovered.rbt"),
            ("a.rbt;rm x", "borehole recover 'a.rbt;rm x' -o 'recovered.rbt;rm x'"),
            ("-o.rbt", "borehole recover ./-o.rbt -o recovered.rbt"),
            ("standard input", "borehole recover -o recovered.rbt < FILE"),
        ] {
            let source = formats::Error::malformed("rbt", Position::Byte(0), "damage");
            let damaged = Error::Read { name: name.to_owned(), source };
            assert_eq!(of(&damaged).as_deref(), Some(advice), "{name}");
        }
    }
}
