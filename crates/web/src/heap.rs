//! The page of a heap.

use std::collections::HashMap;

use borehole_analysis::leading;
use borehole_heap::views::{ClassView, DominatorBlock, DominatorBlocks, HeapPage};
use borehole_text::{bytes, document, grouped, markup, percent, percent_of};

use crate::json::{Object, list};
use crate::names::PageNames;
use crate::page::{PageTexts, cut_table, table_section};
use crate::report::write_names;

/// The number of classes in the page for each sort column, and the number shown without scripts.
const ROWS: usize = 2_000;
const WRITTEN_ROWS: usize = 100;

/// One HTML file that shows what keeps memory alive in a heap: blocks to zoom into, and a table of classes. Its size is
/// bounded, however large the heap is.
///
/// `title` may be any text.
#[must_use]
pub fn heap_html(page: &HeapPage, title: &str) -> String {
    let (classes, rows, names) = tabled(page);
    let texts = texts(page, classes.len(), title);
    texts.html(&table(&classes, page.total_bytes), &data(&texts, page, (&classes, &rows), &names))
}

/// The data of such a page as JSON, for an application that gets them from a server.
#[must_use]
pub fn heap_json(page: &HeapPage, title: &str) -> String {
    let (classes, rows, names) = tabled(page);
    data(&texts(page, classes.len(), title), page, (&classes, &rows), &names)
}

fn texts(page: &HeapPage, rows: usize, title: &str) -> PageTexts {
    PageTexts {
        title: document(title.as_bytes()),
        about: "What keeps the memory of a PHP process alive".to_owned(),
        facts: facts(page),
        notes: notes(page, rows),
    }
}

/// The classes of the table, the name of each, and all names.
fn tabled(page: &HeapPage) -> (Vec<&ClassView>, Vec<usize>, PageNames) {
    let classes: Vec<&ClassView> = leading(
        page.classes.iter().collect(),
        ROWS,
        &[&|class| class.retained_bytes, &|class| class.shallow_bytes, &|class| class.count],
    );
    // A class has the same name in the table as in the blocks.
    let mut all: Vec<&[u8]> = page.blocks.names.iter().map(Vec::as_slice).collect();
    let mut places: HashMap<&[u8], usize> = (0..).zip(&all).map(|(place, &name)| (name, place)).collect();
    let rows = classes.iter().map(|class| {
        *places.entry(&class.name).or_insert_with(|| {
            all.push(&class.name);
            all.len() - 1
        })
    });
    let rows: Vec<usize> = rows.collect();
    let names = PageNames::new(all.into_iter().map(|name| (name, None)));
    (classes, rows, names)
}

fn facts(page: &HeapPage) -> Vec<(String, String)> {
    let mut facts = vec![
        ("Reachable memory".to_owned(), bytes(page.total_bytes)),
        ("Nodes".to_owned(), grouped(page.counts.nodes as u64)),
        ("References".to_owned(), grouped(page.counts.edges as u64)),
        ("Classes".to_owned(), grouped(page.classes.len() as u64)),
        ("Objects".to_owned(), grouped(page.classes.iter().map(|class| class.count).sum())),
    ];
    if !page.created.is_empty() {
        facts.push(("Taken".to_owned(), document(page.created.as_bytes())));
    }
    facts
}

fn notes(page: &HeapPage, rows: usize) -> Vec<String> {
    let others = page.blocks.blocks.iter().filter(|block| block.name.is_none());
    let (count, bytes_of) = others.fold((0, 0_u64), |(count, sum), block| {
        (count + block.count, sum.saturating_add(block.retained_bytes))
    });
    let mut notes = vec![
        "Width is retained size. Similar siblings are grouped. Memory that several blocks share is under the nearest block that \
         holds all of them."
            .to_owned(),
    ];
    if count > 0 {
        notes.push(format!(
            "{} small blocks, which retain {}, are grouped as others.",
            grouped(count),
            bytes(bytes_of)
        ));
    }
    notes.extend(cut_table(rows, page.classes.len(), "classes"));
    notes
}

fn table(classes: &[&ClassView], all: u64) -> String {
    let share = |count: u64| percent(percent_of(count, all));
    let rows = classes.iter().take(WRITTEN_ROWS).map(|class| {
        format!(
            "<tr><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td></tr>\n",
            bytes(class.retained_bytes),
            share(class.retained_bytes),
            bytes(class.shallow_bytes),
            grouped(class.count),
            markup(&crate::names::cut_end(&class.name, 200)),
        )
    });
    table_section("Classes", &["Retained", "%", "Shallow", "Objects"], "Class", rows)
}

fn data(
    texts: &PageTexts,
    page: &HeapPage,
    (classes, rows): (&[&ClassView], &[usize]),
    names: &PageNames,
) -> String {
    let blocks = &page.blocks;
    let mut data = texts.object();
    data.text("kind", "heap").number("all", page.total_bytes).number("distinct", page.classes.len());
    write_names(&mut data, names);
    let place = |place: Option<usize>| place.and_then(|place| i64::try_from(place).ok()).unwrap_or(-1);
    let mut tree = Object::new();
    tree.numbers("caller", blocks.blocks.iter().map(|block| place(block.above)));
    tree.numbers("fn", blocks.blocks.iter().map(|block| place(block.name)));
    data.raw("calls", &tree.end());
    data.numbers("self", self_bytes(blocks)).numbers("counts", blocks.blocks.iter().map(|block| block.count));
    let row = |(class, &place): (&&ClassView, &usize)| {
        list([place as u64, class.retained_bytes, class.shallow_bytes, class.count])
    };
    data.raw("top", &list(classes.iter().zip(rows).map(row)));
    data.without_samples().end()
}

/// The part of each block that is in no block below it.
fn self_bytes(blocks: &DominatorBlocks) -> Vec<u64> {
    let mut bytes: Vec<u64> = blocks.blocks.iter().map(|block| block.retained_bytes).collect();
    for DominatorBlock { above, retained_bytes, .. } in &blocks.blocks {
        if let Some(above) = above.and_then(|above| bytes.get_mut(above)) {
            *above = above.saturating_sub(*retained_bytes);
        }
    }
    bytes
}
