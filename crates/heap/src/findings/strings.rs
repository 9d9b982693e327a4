//! Findings about long strings, and strings with equal content.

use hashbrown::HashMap;

use crate::graph::Graph;
use crate::sink::{NodeId, StringId};

use super::amounts::{count, each, share, size};
use super::census::{Copies, Thing};
use super::context::Context;
use super::finding::{Confidence, Finding, Kind, Place};
use super::owner::Owner;
use super::{MOST, NOTEWORTHY, Sum, medium_from_mebibyte};

/// The minimum saving to report, in bytes: any program has some duplicate strings.
const SAVED: u64 = 64 << 10;
/// The maximum length of a preview in bytes.
const PREVIEW: usize = 60;

impl<G: Graph + ?Sized> Context<'_, '_, G> {
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

pub(super) fn find<G: Graph + ?Sized>(context: &Context<'_, '_, G>) -> Vec<Finding> {
    long(context).into_iter().chain(duplicates(context)).collect()
}

fn long<G: Graph + ?Sized>(context: &Context<'_, '_, G>) -> Vec<Finding> {
    let longest = context.census.longest_strings.sorted();
    let long = longest.into_iter().filter(|&(bytes, _)| bytes >= NOTEWORTHY).take(MOST);
    let finding = |(bytes, node)| {
        let place = context.place(node);
        let severity = context.weighed(medium_from_mebibyte(bytes));
        let preview = context.string_preview(node);
        Finding::new(Kind::LargeString, severity, format!("{} in {}", size(bytes), place.path))
            .fact("size_bytes", bytes)
            .fact("path", place.path.as_str())
            .fact("preview", preview)
            .fact("percentage_of_heap", share(bytes, context.used))
            .likely(Confidence::Medium, "a file, an answer or a log is held as a whole")
            .check("Read or write it piece by piece, or let go of it when it has been used")
            .impact(bytes)
            .at(Some(place))
    };
    long.map(finding).collect()
}

fn duplicates<G: Graph + ?Sized>(context: &Context<'_, '_, G>) -> Option<Finding> {
    let mut contents = Sum::default();
    let mut copies = Sum::default();
    let mut largest: Vec<(StringId, Copies)> = Vec::new();
    for (content, found) in context.census.repeated() {
        contents.add(found.saved());
        copies.count += u64::from(found.count);
        copies.bytes = copies.bytes.saturating_add(found.bytes);
        largest.push((content, found));
    }
    let saved = contents.bytes;
    if saved < SAVED {
        return None;
    }
    let severity = context.severity_of(saved);
    largest.sort_by_key(|&(content, found)| (std::cmp::Reverse(found.saved()), content));
    let owners = owners(context);
    let line = |&(content, found): &(StringId, Copies)| {
        let text = context.preview(content);
        format!("{} x {} B: {text:?}", count(found.count.into()), each(found.bytes, found.count.into()))
    };
    let held = |&(owner, sum, _): &(Owner, Sum, NodeId)| {
        format!("{}: {} copies, {} too much", context.label(owner), count(sum.count), size(sum.bytes))
    };
    let details = owners.iter().take(MOST).map(held).chain(largest.iter().take(MOST).map(line));
    let text = format!(
        "{} strings say what {} could: {} too much",
        count(copies.count),
        count(contents.count),
        size(saved)
    );
    let mut finding = Finding::new(Kind::DuplicateStrings, severity, text)
        .fact("strings", copies.count)
        .fact("contents", contents.count)
        .fact("bytes", copies.bytes)
        .fact("saved_bytes", saved)
        .fact("percentage_of_heap", share(saved, context.used))
        .details(details.collect())
        .likely(Confidence::High, "the same text is read or made again and again, and kept each time")
        .check("Keep each text once: $texts[$text] ??= $text gives the one that is there")
        .check("Share what was parsed, rather than parse it again")
        .impact(saved);
    if let Some(&(owner, _, node)) = owners.first() {
        let path = context.label(owner);
        finding = finding.fact("owner", path.as_str()).at(Some(Place { node, path }));
    }
    Some(finding)
}

/// The owners of repeated strings, with the excess bytes and one of the strings, the largest excess first.
fn owners<G: Graph + ?Sized>(context: &Context<'_, '_, G>) -> Vec<(Owner, Sum, NodeId)> {
    let mut owners: HashMap<Owner, (Sum, NodeId)> = HashMap::new();
    for (node, thing) in context.held() {
        let Thing::String(content) = thing else { continue };
        let copies = context.census.copies(content);
        if copies.count > 1 {
            let entry = owners.entry(context.owner(node)).or_insert((Sum::default(), node));
            entry.0.add(each(copies.saved(), copies.count.into()));
        }
    }
    let mut owners: Vec<_> = owners.into_iter().map(|(owner, (sum, node))| (owner, sum, node)).collect();
    owners.sort_by_key(|&(owner, sum, _)| (std::cmp::Reverse(sum.bytes), owner));
    owners
}
