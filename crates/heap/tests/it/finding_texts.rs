//! All that findings say, with each number of it.

use std::fmt::Write as _;

use borehole_heap::findings::{Fact, HeapFinding, HeapReport};
use borehole_testkit::assert_golden;

use crate::findings::{
    of_counters, rings, roomy_tables, rows_alike, shared_and_large_values, small_holders, strings_alike,
    users_with_profiles, with_garbage,
};

/// A line for each part of a finding.
fn told(finding: &HeapFinding) -> String {
    let HeapFinding { kind, severity, confidence, summary, hypothesis, impact_bytes, subject, .. } = finding;
    let mut out = format!("{} {}: {summary}\n", severity.name(), kind.name());
    for (name, fact) in &finding.facts {
        fact_lines(name, fact, 2, &mut out);
    }
    for detail in &finding.details {
        let _ = writeln!(out, "  detail: {detail}");
    }
    let _ = writeln!(out, "  {} certain: {hypothesis}", confidence.name());
    for check in &finding.next_checks {
        let _ = writeln!(out, "  check: {check}");
    }
    let place = finding.place.as_ref().map_or("nowhere", |place| place.path.as_str());
    let _ = writeln!(out, "  {impact_bytes} bytes at {place}, about {subject:?}");
    out
}

fn fact_lines(name: &str, fact: &Fact, indent: usize, out: &mut String) {
    match fact {
        Fact::Rows(rows) => {
            for row in rows {
                let _ = writeln!(out, "{:indent$}{name}:", "");
                row.iter().for_each(|(name, fact)| fact_lines(name, fact, indent + 2, out));
            }
        }
        Fact::Number(number) => _ = writeln!(out, "{:indent$}{name}: {number}", ""),
        Fact::Share(share) => _ = writeln!(out, "{:indent$}{name}: {share:.6}", ""),
        other => _ = writeln!(out, "{:indent$}{name}: {other:?}", ""),
    }
}

#[test]
fn every_part_of_a_finding_is_as_it_was_read_over() {
    let chunk = 2_u64 << 20;
    let scenes: [(&str, HeapReport); 12] = [
        ("rows alike", rows_alike().report()),
        ("tables with room", roomy_tables().report()),
        ("users with profiles", users_with_profiles().report()),
        ("rings", rings().report()),
        ("shared and large values", shared_and_large_values().report()),
        ("small holders", small_holders().report()),
        ("strings alike", strings_alike().report()),
        ("garbage", with_garbage().0.report()),
        ("near the limit", of_counters(&[("memory_get_peak_usage", 90 << 20), ("memory_limit", 100 << 20)])),
        (
            "not all found",
            of_counters(&[("memory_get_usage", 10 << 20), ("heap_memory_analyzed_percentage", 80)]),
        ),
        ("cached chunks", of_counters(&[("chunks_count", 2), ("cached_chunks_count", 8)])),
        (
            "pinned chunks",
            of_counters(&[
                ("chunks_count", 8),
                ("chunks_mostly_empty_count", 3),
                ("last_chunks_delete_count", 3),
                ("chunks_total_free_bytes", 7 * chunk),
                ("memory_get_usage", chunk),
            ]),
        ),
    ];
    let mut text = String::new();
    for (name, report) in scenes {
        let _ = writeln!(text, "# {name}\n");
        for finding in &report.findings {
            text.push_str(&told(finding));
        }
        text.push('\n');
    }
    assert_golden("tests/golden/findings.txt", text.as_bytes());
}
