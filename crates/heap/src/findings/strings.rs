//! Findings about long strings, and strings with equal content.

use crate::sink::{NodeId, StringId};

use super::amounts::{ByteSum, count, each, share, size};
use super::census::{Copies, Thing};
use super::finding::{Confidence, FindingKind, HeapFinding};
use super::limits::{MOST, NOTEWORTHY};
use super::owner::{Owner, OwnerSums};
use super::severity;
use super::survey::HeapSurvey;

/// The minimum saving to report, in bytes: any program has some duplicate strings.
const SAVED: u64 = 64 << 10;
/// The maximum length of a preview in bytes.
const PREVIEW: usize = 60;

impl HeapSurvey<'_> {
    /// The beginning of the string at `node`.
    pub(super) fn string_preview(&self, node: NodeId) -> String {
        match self.thing(node) {
            Thing::String(content) => self.preview(content),
            _ => String::new(),
        }
    }

    /// The beginning of a string.
    pub(super) fn preview(&self, content: StringId) -> String {
        let bytes = self.graph().string(content);
        let beginning = String::from_utf8_lossy(&bytes[..bytes.len().min(PREVIEW)]);
        let text = beginning.trim_end_matches('\u{fffd}');
        if bytes.len() > PREVIEW { format!("{text}...") } else { text.to_owned() }
    }
}

pub(super) fn find(survey: &HeapSurvey<'_>) -> Vec<HeapFinding> {
    long(survey).into_iter().chain(duplicates(survey)).collect()
}

fn long(survey: &HeapSurvey<'_>) -> Vec<HeapFinding> {
    let longest = survey.census.longest_strings.sorted();
    let long = longest.into_iter().filter(|&(bytes, _)| bytes >= NOTEWORTHY).take(MOST);
    let finding = |(bytes, node)| {
        let place = survey.place(node);
        let severity = severity::by_size(bytes);
        let preview = survey.string_preview(node);
        HeapFinding::new(FindingKind::LargeString, severity, format!("{} in {}", size(bytes), place.path))
            .fact("size_bytes", bytes)
            .fact("path", place.path.as_str())
            .fact("preview", preview)
            .fact("percentage_of_heap", share(bytes, survey.used))
            .likely(Confidence::Medium, "A whole file, response or log is in memory.")
            .check("Stream it in pieces, or drop it after use.")
            .impact(bytes)
            .at(Some(place))
    };
    long.map(finding).collect()
}

fn duplicates(survey: &HeapSurvey<'_>) -> Option<HeapFinding> {
    let mut contents = ByteSum::default();
    let mut copies = ByteSum::default();
    let mut largest: Vec<(StringId, Copies)> = Vec::new();
    for (content, found) in survey.census.repeated() {
        contents.add(found.saved());
        copies.count += u64::from(found.count);
        copies.bytes = copies.bytes.saturating_add(found.bytes);
        largest.push((content, found));
    }
    let saved = contents.bytes;
    if saved < SAVED {
        return None;
    }
    let severity = severity::by_share(saved, survey.used);
    largest.sort_by_key(|&(content, found)| (std::cmp::Reverse(found.saved()), content));
    let owners = excess_by_owner(survey).largest_first();
    let line = |&(content, found): &(StringId, Copies)| {
        let text = survey.preview(content);
        format!("{} x {} B: {text:?}", count(found.count.into()), each(found.bytes, found.count.into()))
    };
    let held = |&(owner, sum, _): &(Owner, ByteSum, NodeId)| {
        format!("{}: {} copies, {} wasted", survey.label(owner), count(sum.count), size(sum.bytes))
    };
    let details = owners.iter().take(MOST).map(held).chain(largest.iter().take(MOST).map(line));
    let text = format!(
        "{} strings have only {} distinct contents; the copies waste {}",
        count(copies.count),
        count(contents.count),
        size(saved)
    );
    let mut finding = HeapFinding::new(FindingKind::DuplicateStrings, severity, text)
        .fact("strings", copies.count)
        .fact("contents", contents.count)
        .fact("bytes", copies.bytes)
        .fact("saved_bytes", saved)
        .fact("percentage_of_heap", share(saved, survey.used))
        .details(details.collect())
        .likely(Confidence::High, "The same text is read or created repeatedly, and each copy is kept.")
        .check("Keep each text once: $texts[$text] ??= $text returns the existing copy.")
        .check("Share parsed data instead of parsing it again.")
        .impact(saved);
    if let Some(&(owner, _, node)) = owners.first() {
        let place = survey.owner_place(owner, node);
        finding = finding.fact("owner", place.path.as_str()).at(Some(place));
    }
    Some(finding)
}

/// The bytes of superfluous copies of strings, by owner.
fn excess_by_owner(survey: &HeapSurvey<'_>) -> OwnerSums {
    let mut owners = OwnerSums::default();
    for (node, thing) in survey.held() {
        let Thing::String(content) = thing else { continue };
        let copies = survey.census.copies(content);
        if copies.count > 1 {
            owners.add(survey.owner(node), node, each(copies.saved(), copies.count.into()));
        }
    }
    owners
}
