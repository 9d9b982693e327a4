//! The page of a heap until its retained sizes are known.

use borehole_heap::MemoryTotal;
use borehole_heap::views::HeapOutline;
use borehole_text::{bytes, document, grouped};

use crate::json::{Object, list};
use crate::names::PageNames;
use crate::page::{PageTexts, cut_table};
use crate::report::write_names;

/// The number of classes drawn and listed.
const ROWS: usize = 2_000;

/// The part of type names that says nothing: all of them have it.
const ENDING: &[u8] = b"MemoryLocation";

/// The data of a page of a heap with shallow sizes in place of retained ones.
#[must_use]
pub fn heap_outline_json(outline: &HeapOutline, title: &str) -> String {
    let all = sum(&outline.types);
    // Classes are parts of the type of objects.
    let most = if outline.objects.is_some() { ROWS } else { 0 };
    let classes = &outline.classes[..outline.classes.len().min(most)];
    let texts = PageTexts {
        title: document(title.as_bytes()),
        about: "What the memory of a PHP process consists of".to_owned(),
        facts: facts(outline, all),
        notes: notes(outline, classes.len()),
    };
    let types = outline.types.iter().map(|total| total.name.strip_suffix(ENDING).unwrap_or(&total.name));
    let names: Vec<&[u8]> = types.chain(classes.iter().map(|class| &*class.name)).collect();
    let mut data = texts.object();
    data.text("kind", "heap").raw("is_outline", "true");
    data.number("all", all).number("distinct", outline.classes.len());
    write_names(&mut data, &PageNames::new(names.into_iter().map(|name| (name, None))));
    let place = |place: Option<usize>| place.and_then(|place| i64::try_from(place).ok()).unwrap_or(-1);
    let (kinds, rows) = (outline.types.len(), classes.len());
    let above = (0..kinds + rows).map(|block| place(outline.objects.filter(|_| block >= kinds)));
    let mut tree = Object::new();
    tree.numbers("caller", above).numbers("fn", 0..kinds + rows);
    data.raw("calls", &tree.end());
    // What is in a class is not counted again in the type of objects.
    let of_type = |(place, total): (usize, &MemoryTotal)| {
        let below = if outline.objects == Some(place) { sum(classes) } else { 0 };
        total.memory_usage.saturating_sub(below)
    };
    let own = outline.types.iter().enumerate().map(of_type);
    data.numbers("self", own.chain(classes.iter().map(|class| class.memory_usage)));
    data.numbers("counts", outline.types.iter().chain(classes).map(|total| total.count));
    let row = |(place, class): (usize, &MemoryTotal)| {
        list([(kinds + place) as u64, class.memory_usage, class.memory_usage, class.count])
    };
    data.raw("top", &list(classes.iter().enumerate().map(row)));
    data.without_samples().end()
}

fn sum(totals: &[MemoryTotal]) -> u64 {
    totals.iter().fold(0, |sum, total| sum.saturating_add(total.memory_usage))
}

fn facts(outline: &HeapOutline, all: u64) -> Vec<(String, String)> {
    let mut facts = vec![
        ("Memory of values".to_owned(), bytes(all)),
        ("Nodes".to_owned(), grouped(outline.counts.nodes as u64)),
        ("References".to_owned(), grouped(outline.counts.edges as u64)),
        ("Classes".to_owned(), grouped(outline.classes.len() as u64)),
        ("Objects".to_owned(), grouped(outline.classes.iter().map(|class| class.count).sum())),
    ];
    if !outline.created.is_empty() {
        facts.push(("Taken".to_owned(), document(outline.created.as_bytes())));
    }
    facts
}

fn notes(outline: &HeapOutline, rows: usize) -> Vec<String> {
    let mut notes = vec![
        "Width is shallow size: the memory of the values themselves. Retained sizes are being computed."
            .to_owned(),
    ];
    notes.extend(cut_table(rows, outline.classes.len(), "classes"));
    notes
}
