//! The facts about the format, and how its files are detected.

use crate::detect::prefix::{is_text, lines};
use crate::registry::{Detect, Facts};

/// The facts about `perf-script`.
pub(crate) const FACTS: Facts = Facts {
    name: "perf-script",
    aliases: &["perf-text", "linux-perf"],
    extensions: &["perf", "perf.txt", "perfscript"],
    description: "the text of perf script, of Linux: a header and its call chain per sample",
    page: "formats/perf-script.md",
    is_binary: false,
    is_stream: true,
    may_be_empty: false,
    read_as: None,
    detect: Detect::Content(is_perf_script),
};

/// The lines that detection looks at: comments, and records that are not samples, may come first.
const MOST_LINES: usize = 200;

/// Detects a header of a sample with an address in the next line, or a header with a time and an address behind the event.
fn is_perf_script(prefix: &[u8]) -> bool {
    let mut is_below_header = false;
    is_text(prefix)
        && lines(prefix).take(MOST_LINES).any(|line| {
            let is_sample = (is_below_header && is_address_line(line)) || is_sample_line(line);
            is_below_header = is_header(line);
            is_sample
        })
}

/// Detects a name, a process or thread, and a colon at the end.
fn is_header(line: &[u8]) -> bool {
    line.trim_ascii_end().ends_with(b":") && words(line).skip(1).any(is_thread)
}

/// Detects a name, a process or thread, a time, an event, and an address at the end.
fn is_sample_line(line: &[u8]) -> bool {
    let mut rest = words(line).skip(1);
    rest.any(is_thread) && rest.by_ref().take(2).any(is_time) && ends_with_address(line)
}

fn ends_with_address(line: &[u8]) -> bool {
    memchr::memmem::rfind(line, b": ").is_some_and(|at| is_address(line[at + 2..].trim_ascii()))
}

/// Detects white space, a hexadecimal address, and a symbol or a module in parentheses.
fn is_address_line(line: &[u8]) -> bool {
    line.first().is_some_and(u8::is_ascii_whitespace) && is_address(line.trim_ascii())
}

fn is_address(text: &[u8]) -> bool {
    let digits = text.iter().take_while(|byte| byte.is_ascii_hexdigit()).count();
    digits >= 1 && text.get(digits) == Some(&b' ') && text.ends_with(b")")
}

fn words(line: &[u8]) -> impl Iterator<Item = &[u8]> {
    line.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty())
}

fn is_thread(word: &[u8]) -> bool {
    word.iter().all(|byte| byte.is_ascii_digit() || *byte == b'/')
}

fn is_time(word: &[u8]) -> bool {
    word.strip_suffix(b":").is_some_and(|time| {
        time.contains(&b'.') && time.iter().all(|byte| byte.is_ascii_digit() || *byte == b'.')
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_with_addresses_are_detected_and_logs_are_not() {
        let stack = b"php 4711/4712 [001] 1234.567890:     250000 cpu-clock:pppH: \n\t    55d0c0a0 f+0x12 (/usr/bin/php)\n\n";
        assert!(is_perf_script(stack));
        let alone = b"            perf  4711 [000]  1.000001:          1 cycles:  ffffffff81 f+0x8 ([kernel.kallsyms])\n";
        assert!(is_perf_script(alone));
        assert!(is_perf_script(&[b"# captured on: today\n#\n", &stack[..]].concat()));
        for other in [
            &b"main;run;query 12\n"[..],
            b"0 query /app/db.php:12\n1 <main> /app/index.php:3\n\n",
            b"app 12 [000] started:\n  at 7 (main)\n",
            b"a:\n\tb (c)\n",
        ] {
            assert!(!is_perf_script(other), "{}", other.escape_ascii());
        }
    }
}
