//! A report as text: an overview, the findings, then the tables.

use std::borrow::Cow;

use borehole::heap::findings::{Fact, FindingKind, FindingSeverity, HeapFinding, HeapOverview, HeapReport};
use borehole_text::{bytes, crop_middle, pad, printable, width};

use super::{ReportOutput, tables};
use crate::cell::is_wide;

/// Findings that the overview and the tables show.
const SHOWN_ELSEWHERE: [FindingKind; 5] = [
    FindingKind::Overview,
    FindingKind::CallStack,
    FindingKind::TypeRanking,
    FindingKind::ClassRanking,
    FindingKind::RootBlame,
];

/// How many calls are shown.
const CALLS: usize = 10;

pub(super) fn text(report: &HeapReport, name: &str, columns: usize, output: &ReportOutput) -> String {
    let mut text = String::new();
    if let Some(contradiction) = &report.contradiction {
        let warning = format!("{contradiction}; nothing that rests on sizes is reported");
        text += &block("WARNING  ", &printable(warning.as_bytes()), columns);
        text += "\n";
    }
    text += &overview(&report.overview, name, columns, output.options.json);
    text += &findings(&report.findings, columns);
    text += &tables::text(report, columns, output);
    text + &additional(&report.findings, columns)
}

fn overview(overview: &HeapOverview, name: &str, columns: usize, json: &str) -> String {
    let mut text = format!("Overview of {}\n", printable(name.as_bytes()));
    let mut line = |what: &str, value: &str| {
        text += &block(&format!("  {what:<12}"), value, columns);
    };
    let version = version(&overview.php_version);
    let captured = [overview.captured_at.as_str(), &version].map(|part| printable(part.as_bytes()));
    line("captured", captured.join(", PHP ").trim_start_matches(", "));
    line("heap", &heap(overview));
    if let Some(limit) = overview.memory_limit {
        line("limit", &format!("{}; peak use {}", bytes(limit), bytes(overview.peak_bytes)));
    }
    let parts = [("VM stack", overview.vm_stack_bytes), ("compiler", overview.compiler_arena_bytes)];
    let parts = parts.map(|(part, size)| format!("{part} {}", bytes(size)));
    line("parts", &parts.join(", "));
    if overview.rss_bytes > 0 {
        line("process", &format!("{} resident", bytes(overview.rss_bytes)));
    }
    text + &call_stack(overview, columns, json)
}

/// A version as PHP writes it; summaries of heaps write `v82`, as reli does.
fn version(summary: &str) -> String {
    let digits = summary.strip_prefix('v').filter(|digits| digits.bytes().all(|byte| byte.is_ascii_digit()));
    match digits.and_then(|digits| digits.split_at_checked(1)) {
        Some((major, minor)) if !minor.is_empty() => format!("{major}.{minor}"),
        _ => summary.to_owned(),
    }
}

fn heap(overview: &HeapOverview) -> String {
    let used = bytes(overview.heap_usage);
    let mut text = match overview.heap_total {
        0 => format!("{used} in use"),
        total => format!("{used} in use of {}", bytes(total)),
    };
    if let Some(share) = overview.analyzed_percentage {
        text += &format!(", {share:.1}% accounted for");
    }
    text
}

fn call_stack(overview: &HeapOverview, columns: usize, json: &str) -> String {
    let calls = &overview.call_stack;
    let mut text = String::new();
    for (number, call) in calls.iter().take(CALLS).enumerate() {
        let label = if number == 0 { "calls" } else { "" };
        text +=
            &block(&format!("  {label:<12}"), &format!("#{number} {}", printable(call.as_bytes())), columns);
    }
    let more = calls.len().saturating_sub(CALLS) as u64 + overview.more_calls;
    if more > 0 {
        text += &format!("  {:<12}and {more} more; {json} lists the first hundred\n", "");
    }
    text
}

fn findings(findings: &[HeapFinding], columns: usize) -> String {
    let told: Vec<&HeapFinding> =
        findings.iter().filter(|finding| finding.severity != FindingSeverity::Info).collect();
    let counts =
        [FindingSeverity::High, FindingSeverity::Warning, FindingSeverity::Medium, FindingSeverity::Low].map(
            |severity| {
                let count = told.iter().filter(|finding| finding.severity == severity).count();
                (count > 0).then(|| format!("{count} {}", severity.name()))
            },
        );
    let counts: Vec<String> = counts.into_iter().flatten().collect();
    let counts = if counts.is_empty() { "nothing to act on".to_owned() } else { counts.join(", ") };
    let mut text = format!("\nFindings: {counts}\n");
    for finding in told {
        text += &one(finding, columns);
    }
    text
}

pub(in crate::heap) fn one(finding: &HeapFinding, columns: usize) -> String {
    let severity = finding.severity.name().to_uppercase();
    let mut text = format!("\n  [{severity}] {}", finding.kind.name());
    if finding.impact_bytes > 0 {
        text += &format!("  {}", bytes(finding.impact_bytes));
    }
    text += "\n";
    text += &block("    ", &printable(finding.summary.as_bytes()), columns);
    for detail in &finding.details {
        text += &block("      - ", &printable(detail.as_bytes()), columns);
    }
    if !finding.hypothesis.is_empty() {
        text += &block("    why   ", &printable(finding.hypothesis.as_bytes()), columns);
    }
    if let Some(place) = &finding.place {
        let place = format!("{} (#{})", printable(place.path.as_bytes()), place.node.0);
        text += &block("    at    ", &place, columns);
    }
    for (number, step) in chain(finding).iter().enumerate() {
        let label = if number == 0 { "    via   " } else { "          " };
        text += &block(label, &printable(step.as_bytes()), columns);
    }
    for (number, check) in finding.next_checks.iter().enumerate() {
        let label = if number == 0 { "    next  " } else { "          " };
        text += &block(label, &printable(check.as_bytes()), columns);
    }
    text
}

/// The chain that holds the place of a finding, the root first: each path with its retained size.
fn chain(finding: &HeapFinding) -> Vec<String> {
    let Some((_, Fact::Rows(steps))) = finding.facts.iter().find(|(name, _)| *name == "chain") else {
        return Vec::new();
    };
    let step = |step: &Vec<(&'static str, Fact)>| match step.as_slice() {
        [(_, Fact::Text(path)), _, (_, Fact::Number(retained))] => {
            Some(format!("{path} ({})", bytes(*retained)))
        }
        [(_, Fact::Text(path)), ..] => Some(path.clone()),
        _ => None,
    };
    steps.iter().filter_map(step).collect()
}

/// Findings for information only.
fn additional(findings: &[HeapFinding], columns: usize) -> String {
    let mut text = "\nAdditional information\n".to_owned();
    let told = findings.iter().filter(|finding| finding.severity == FindingSeverity::Info);
    for finding in told.filter(|finding| !SHOWN_ELSEWHERE.contains(&finding.kind)) {
        let line = format!("[{}] {}", finding.kind.name(), printable(finding.summary.as_bytes()));
        text += &block("  ", &line, columns);
    }
    text
}

/// The most lines of a block: one long name must not fill screens.
const BLOCK_LINES: usize = 12;

/// `text` wrapped at `columns` after `label`; further lines are indented by the label's width. A text that takes too many
/// lines is cut in its middle unless the user wants it whole.
fn block(label: &str, text: &str, columns: usize) -> String {
    let indent = width(label);
    let room = columns.saturating_sub(indent).max(1);
    let text = if is_wide() { text.into() } else { Cow::Owned(crop_middle(text, BLOCK_LINES * room)) };
    let lines = wrapped(&text, room);
    let mut block = String::new();
    for (number, line) in lines.iter().enumerate() {
        let start = if number == 0 { label.to_owned() } else { pad("", indent) };
        block += format!("{start}{line}").trim_end();
        block += "\n";
    }
    block
}

/// `text` in lines of at most `room` columns, broken between words where possible.
fn wrapped(text: &str, room: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split(' ') {
        let line = lines.last_mut().expect("there is one");
        if line.is_empty() || width(line) + 1 + width(word) <= room {
            if !line.is_empty() {
                line.push(' ');
            }
            line.push_str(word);
        } else {
            lines.push(word.to_owned());
        }
        while let Some(rest) = lines.last().and_then(|line| beyond(line, room)) {
            let line = lines.last_mut().expect("there is one");
            let rest = line.split_off(rest);
            lines.push(rest);
        }
    }
    lines
}

/// The place to break a line that is wider than `room`; `None` if it fits.
fn beyond(line: &str, room: usize) -> Option<usize> {
    let mut buffer = [0; 4];
    let mut columns = 0;
    for (place, character) in line.char_indices() {
        columns += width(character.encode_utf8(&mut buffer));
        if columns > room && place > 0 {
            return Some(place);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_written_as_php_writes_them() {
        let written = ["v82", "v810", "8.2.36", "v8", "v", "", "vé1"].map(version);
        assert_eq!(written, ["8.2", "8.10", "8.2.36", "v8", "v", "", "vé1"]);
    }

    #[test]
    fn lines_are_broken_between_words_and_words_where_they_must() {
        assert_eq!(wrapped("one two three", 7), ["one two", "three"]);
        assert_eq!(wrapped("a abcdefgh b", 4), ["a", "abcd", "efgh", "b"]);
        assert_eq!(wrapped("日本語", 4), ["日本", "語"]);
        assert_eq!(wrapped("日", 1), ["日"], "what does not fit at all stays whole");
        assert_eq!(block("ab  ", "one two", 8), "ab  one\n    two\n");
        assert_eq!(wrapped("", 5), [""]);
    }
}
