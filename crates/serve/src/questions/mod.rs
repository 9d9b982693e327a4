//! Questions about inputs, and their answers as plain data: the same for the API, assistants and the command line.

mod ask;
mod changes;
mod findings;
mod heap;
mod profile;
mod rmem;
mod sources;
mod table;

use std::sync::Arc;

use borehole_text::document;

pub(crate) use ask::Ask;
pub(crate) use changes::only;
pub(crate) use rmem::{RmemAsk, RmemQuestion};
pub(crate) use table::{ViewCell, ViewTable};

use crate::catalogue::Listing;
use crate::desk::Desk;
use crate::limits::AnswerLimits;
use crate::opened::Opened;
use crate::refusal::{Refusal, RefusalKind};

/// A view of an input: a question that can be asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum View {
    Overview,
    Findings,
    Top,
    Tree,
    Callers,
    Callees,
    Paths,
    Timeline,
    By,
    TokioFlags,
    Source,
    HeapClasses,
    HeapFindings,
    HeapAsk,
}

/// The words that choose samples.
const CHOICE: [&str; 11] =
    ["value", "thread", "process", "interpreter", "label", "from", "to", "match", "exclude", "focus", "hide"];

impl View {
    /// All views.
    pub(crate) const ALL: [Self; 14] = [
        Self::Overview,
        Self::Findings,
        Self::Top,
        Self::Tree,
        Self::Callers,
        Self::Callees,
        Self::Paths,
        Self::Timeline,
        Self::By,
        Self::TokioFlags,
        Self::Source,
        Self::HeapClasses,
        Self::HeapFindings,
        Self::HeapAsk,
    ];

    /// Its name in addresses, and on the command line.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Overview => "overview",
            Self::Findings => "findings",
            Self::Top => "top",
            Self::Tree => "tree",
            Self::Callers => "callers",
            Self::Callees => "callees",
            Self::Paths => "paths",
            Self::Timeline => "timeline",
            Self::By => "by",
            Self::TokioFlags => "tokio_flags",
            Self::Source => "source",
            Self::HeapClasses => "heap_classes",
            Self::HeapFindings => "heap_findings",
            Self::HeapAsk => "heap_ask",
        }
    }

    /// The view of this name.
    pub(crate) fn named(name: &str) -> Result<Self, Refusal> {
        Self::ALL.into_iter().find(|view| view.name() == name).ok_or_else(|| {
            let names: Vec<_> = Self::ALL.iter().map(|view| view.name()).collect();
            Refusal::missing(format!("no view {}", document(name.as_bytes())))
                .with_help(format!("the views are {}", names.join(", ")))
        })
    }

    /// A line on its content.
    pub(crate) const fn about(self) -> &'static str {
        match self {
            Self::Overview => "Show a profile or heap in a few lines: size, time, threads, what weighs most",
            Self::Findings => {
                "List what a profile lacks, and what is so in all samples; of a heap, what is wrong with it"
            }
            Self::Top => "List the functions that weigh most, by self or total",
            Self::Tree => "Show the call tree from the roots, the heaviest calls first",
            Self::Callers => "Show who calls a function, and with how much of its weight",
            Self::Callees => "Show what a function calls, and how much each call weighs",
            Self::Paths => "List the heaviest call paths, each from root to leaf",
            Self::Timeline => "Show how much was sampled in each stretch of time",
            Self::By => "Group samples by thread, process, interpreter or the key of a label",
            Self::TokioFlags => "List what is wrong with a Tokio program, the worst first",
            Self::Source => "Show the lines of a source file with the weight of each",
            Self::HeapClasses => "List the classes of a heap by the memory that they keep alive",
            Self::HeapFindings => "List what is wrong with a heap, the worst first",
            Self::HeapAsk => {
                "Show a node of a heap, what keeps it alive and what it holds; or search by class or text"
            }
        }
    }

    /// The words that apply to it.
    pub(crate) fn words(self) -> Vec<&'static str> {
        let (is_of_samples, own): (_, &[&str]) = match self {
            Self::Overview => (true, &[]),
            Self::Findings => (true, &["limit"]),
            Self::Top => (true, &["limit", "sort"]),
            Self::Tree => (true, &["limit", "depth"]),
            Self::Callers | Self::Callees => (true, &["function", "limit", "depth"]),
            Self::Paths => (true, &["limit"]),
            Self::Timeline => (true, &["columns"]),
            Self::By => (true, &["by", "limit"]),
            Self::Source => (true, &["file"]),
            Self::TokioFlags | Self::HeapClasses | Self::HeapFindings => (false, &["limit"]),
            Self::HeapAsk => (false, &["node", "class", "text", "address", "limit"]),
        };
        let choice = if is_of_samples { &CHOICE[..] } else { &[] };
        choice.iter().chain(own).copied().collect()
    }
}

/// A name from an input, as answers show it.
pub(crate) fn shown_name(text: &str) -> String {
    profile::name(text.as_bytes())
}

impl Desk {
    /// Answers a question about an input.
    pub(crate) async fn answer(
        self: &Arc<Self>,
        view: View,
        named: &str,
        ask: Ask,
    ) -> Result<ViewTable, Refusal> {
        let (input, opened) = self.open(named, ask.value.as_deref()).await?;
        let mut table = match &*opened {
            Opened::Heap(heap) => heap.ask(move |heap| of_heap(view, heap, &ask)).await??,
            _ => {
                let desk = self.clone();
                self.compute(move || of_profile(view, &opened, &ask, &desk)).await??
            }
        };
        table.title = format!("{}: {}", input.entry.path, table.title);
        Ok(table)
    }

    /// Answers a question in reli's words about a heap.
    pub(crate) async fn answer_rmem(
        self: &Arc<Self>,
        question: RmemQuestion,
        named: &str,
        ask: RmemAsk,
    ) -> Result<ViewTable, Refusal> {
        let (_, opened) = self.open(named, None).await?;
        opened.heap()?.ask(move |heap| question.answer(heap, &ask)).await?
    }

    /// Answers what changed between two sets of profiles, or between heaps.
    pub(crate) async fn changes(self: &Arc<Self>, ask: Ask) -> Result<ViewTable, Refusal> {
        let (_, opened) = self.compare([&ask.before, &ask.after], ask.value.as_deref()).await?;
        match &*opened {
            Opened::Diff(view) => Ok(changes::of_profiles(view, &ask)),
            Opened::HeapDiff(comparison) => Ok(changes::of_heaps(comparison, &ask)),
            Opened::Profile(_) | Opened::Heap(_) => {
                Err(Refusal::new(RefusalKind::Internal, "not a comparison"))
            }
        }
    }

    /// The list of inputs as a table, the newest first.
    pub(crate) async fn list(self: &Arc<Self>, ask: Ask) -> Result<ViewTable, Refusal> {
        let listing = self.listing().await?;
        self.compute(move || listed(&listing, &ask)).await?
    }
}

/// The words of the list.
pub(crate) const LIST_WORDS: [&str; 2] = ["match", "limit"];

fn listed(listing: &Listing, ask: &Ask) -> Result<ViewTable, Refusal> {
    let pattern = ask.matching.as_deref().map(ask::pattern).transpose()?;
    let mut entries = listing.entries();
    let is_matched = |text: &str| pattern.as_ref().is_none_or(|pattern| pattern.is_match(text.as_bytes()));
    entries.retain(|entry| is_matched(&entry.path) || entry.service.as_deref().is_some_and(is_matched));
    entries.sort_by(|one, other| other.modified.cmp(&one.modified).then_with(|| one.path.cmp(&other.path)));
    let shown = &entries[..entries.len().min(ask.limit.unwrap_or(AnswerLimits::INPUTS).max(1))];
    let columns = ["id", "kind", "format", "bytes", "modified", "service", "path"];
    let rows = shown.iter().map(|entry| {
        vec![
            ViewCell::from(&*entry.id),
            entry.kind.name().into(),
            entry.format.as_str().into(),
            i64::try_from(entry.bytes).unwrap_or(i64::MAX).into(),
            entry.modified.as_str().into(),
            entry.service.as_deref().unwrap_or_default().into(),
            entry.path.as_str().into(),
        ]
    });
    let mut notes = Vec::new();
    if listing.left_out > 0 {
        let left = borehole_text::grouped(listing.left_out as u64);
        notes.push(format!("{left} older files are not listed; serve a folder with fewer to see them"));
    }
    Ok(ViewTable {
        title: "Inputs, the newest first".to_owned(),
        columns: columns.map(str::to_owned).to_vec(),
        rows: rows.collect(),
        all_rows: entries.len(),
        coverage: format!("Shown {} of {} inputs.", shown.len(), entries.len()),
        notes,
        next: vec!["overview of one of them; match chooses by path or service".to_owned()],
        ..ViewTable::default()
    })
}

fn of_profile(view: View, opened: &Opened, ask: &Ask, desk: &Desk) -> Result<ViewTable, Refusal> {
    let question = || profile::ProfileQuestion::new(opened.profile()?, ask);
    match view {
        View::Overview => Ok(question()?.overview()),
        View::Findings => Ok(question()?.findings()),
        View::Top => Ok(question()?.top()),
        View::Tree => Ok(question()?.tree()),
        View::Callers => question()?.around(true),
        View::Callees => question()?.around(false),
        View::Paths => Ok(question()?.paths()),
        View::Timeline => question()?.timeline(),
        View::By => Ok(question()?.by()),
        View::TokioFlags => question()?.flags(),
        View::Source => sources::lines(opened.profile()?, ask, desk),
        View::HeapClasses | View::HeapFindings | View::HeapAsk => Err(opened
            .heap()
            .err()
            .unwrap_or_else(|| Refusal::new(RefusalKind::Internal, "a heap was taken for a profile"))),
    }
}

fn of_heap(view: View, heap: &borehole::heap::views::Heap<'_>, ask: &Ask) -> Result<ViewTable, Refusal> {
    match view {
        View::HeapClasses => Ok(heap::class_table(heap, ask)),
        View::Overview | View::Findings | View::HeapFindings => Ok(heap::findings(heap, ask)),
        View::HeapAsk => heap::node(heap, ask),
        _ => Err(Refusal::invalid("this view is of profiles, and the input is a heap")
            .with_help("ask a heap for heap_findings, heap_classes or heap_ask")),
    }
}
