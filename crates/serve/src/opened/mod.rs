//! Inputs that have been read, so that any number of questions can be asked of them.

mod heap;
mod profile;
mod wanted;

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use borehole::ProfileSink as _;
use borehole::heap::compare::{HeapComparison, compare};
use borehole::heap::retention::Follow;
use borehole::heap::{Graph, HeapFile, OpenOptions};
use borehole::model::Tables;
use borehole_analysis::diff::{DiffQuery, DiffSink, DiffView};

pub(crate) use heap::OpenedHeap;
pub(crate) use profile::{OpenedProfile, by_function};
use wanted::{WantedGraph, while_wanted};

use crate::catalogue::{CataloguedInput, InputKind};
use crate::refusal::{Refusal, RefusalKind};

/// An input in memory, or a comparison of inputs.
pub(crate) enum Opened {
    /// A profile, or a trace with what its Tokio programs did.
    Profile(Box<OpenedProfile>),
    /// A heap.
    Heap(OpenedHeap),
    /// The changes between two sets of profiles.
    Diff(Box<DiffView>),
    /// The changes between heaps.
    HeapDiff(Box<HeapComparison>),
}

impl Opened {
    /// Reads an input. It ends early, with an error, once `is_unwanted` is set.
    pub(crate) fn read(
        input: &CataloguedInput,
        value: Option<&str>,
        is_unwanted: &AtomicBool,
    ) -> Result<Self, Refusal> {
        let calling = |refusal: Refusal| refusal.calling(&input.file, &input.entry.name);
        match input.entry.kind {
            InputKind::Heap | InputKind::Database => {
                OpenedHeap::open(&input.file, &input.entry.name).map(Self::Heap).map_err(calling)
            }
            InputKind::Profile | InputKind::Tokio => {
                let opened = OpenedProfile::read(&input.file, value, is_unwanted).map_err(calling)?;
                Ok(Self::Profile(Box::new(opened)))
            }
            InputKind::Unreadable => {
                let why = input.entry.error.as_deref().unwrap_or("unknown format");
                Err(Refusal::new(RefusalKind::Unreadable, why))
            }
        }
    }

    /// Compares two sets of profiles, by their files.
    pub(crate) fn compare(
        sides: [&[&Path]; 2],
        value: Option<&str>,
        is_unwanted: &AtomicBool,
    ) -> Result<Self, Refusal> {
        let inputs = sides.map(<[_]>::len);
        let query = DiffQuery { value: value.map(str::to_owned), inputs, ..DiffQuery::default() };
        let (mut tables, mut sink) = (Tables::default(), DiffSink::new(query));
        for files in sides {
            for file in files {
                let name = file.file_name().unwrap_or_default().to_string_lossy();
                profile::read_into(file, &mut tables, &mut sink, is_unwanted)
                    .map_err(|refusal| refusal.calling(file, &name))?;
            }
            sink.begin_after();
        }
        sink.finish(&tables).map_err(|error| Refusal::new(RefusalKind::Internal, error.to_string()))?;
        Ok(Self::Diff(Box::new(sink.into_view())))
    }

    /// Compares heaps, the oldest first. It ends early, with an error, once `is_unwanted` is set.
    pub(crate) fn compare_heaps<'i>(
        inputs: impl Iterator<Item = &'i CataloguedInput>,
        is_unwanted: &AtomicBool,
    ) -> Result<Self, Refusal> {
        let files = inputs.map(|input| {
            let file = HeapFile::open(&input.file);
            let file = file.map_err(|error| Refusal::from(error).calling(&input.file, &input.entry.name))?;
            Ok(file.called(input.entry.name.clone()))
        });
        let files = files.collect::<Result<Vec<_>, Refusal>>()?;
        let options = OpenOptions { lenient: true, ..OpenOptions::default() };
        let opened = files.iter().map(|file| Ok(file.graph(&options)?));
        let opened = opened.collect::<Result<Vec<_>, Refusal>>()?;
        let is_wanted = || !is_unwanted.load(Ordering::Relaxed);
        let graphs: Vec<_> =
            opened.iter().map(|opened| WantedGraph { graph: &*opened.graph, is_wanted }).collect();
        let graphs: Vec<&dyn Graph> = graphs.iter().map(|graph| -> &dyn Graph { graph }).collect();
        let compared = while_wanted(|| compare(&graphs, Follow::default()));
        compared.map(|compared| Self::HeapDiff(Box::new(compared))).ok_or_else(cancelled)
    }

    /// The profile, or why there is none.
    pub(crate) fn profile(&self) -> Result<&OpenedProfile, Refusal> {
        match self {
            Self::Profile(profile) => Ok(profile),
            Self::Heap(_) | Self::Diff(_) | Self::HeapDiff(_) => {
                Err(Refusal::invalid("this view is of profiles, and the input is a heap")
                    .with_help("ask a heap for its classes, findings or nodes"))
            }
        }
    }

    /// The heap, or why there is none.
    pub(crate) fn heap(&self) -> Result<&OpenedHeap, Refusal> {
        match self {
            Self::Heap(heap) => Ok(heap),
            Self::Profile(_) | Self::Diff(_) | Self::HeapDiff(_) => {
                Err(Refusal::invalid("this view is of heaps, and the input is a profile")
                    .with_help("ask a profile for its top functions, callers or timeline"))
            }
        }
    }
}

fn cancelled() -> Refusal {
    Refusal::new(RefusalKind::Busy, "cancelled: nobody waited for the answer")
}
