//! Inputs that have been read, so that any number of questions can be asked of them.

mod heap;
mod profile;

use std::path::Path;
use std::sync::atomic::AtomicBool;

use borehole::ProfileSink as _;
use borehole::heap::compare::{HeapComparison, compare};
use borehole::heap::retention::Follow;
use borehole::heap::{Graph, HeapFile, OpenOptions};
use borehole::model::Tables;
use borehole_analysis::diff::{DiffQuery, DiffSink, DiffView};

pub(crate) use heap::OpenedHeap;
pub(crate) use profile::{OpenedProfile, by_function};

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
        match input.entry.kind {
            InputKind::Heap | InputKind::Database => {
                OpenedHeap::open(&input.file, &input.entry.name).map(Self::Heap)
            }
            InputKind::Profile | InputKind::Tokio => {
                let opened = OpenedProfile::read(&input.file, value, is_unwanted)?;
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
                profile::read_into(file, &mut tables, &mut sink, is_unwanted)?;
            }
            sink.begin_after();
        }
        sink.finish(&tables).map_err(|error| Refusal::new(RefusalKind::Internal, error.to_string()))?;
        Ok(Self::Diff(Box::new(sink.into_view())))
    }

    /// Compares heaps, the oldest first.
    pub(crate) fn compare_heaps<'i>(
        inputs: impl Iterator<Item = &'i CataloguedInput>,
    ) -> Result<Self, Refusal> {
        let files = inputs.map(|input| Ok(HeapFile::open(&input.file)?.called(input.entry.name.clone())));
        let files = files.collect::<Result<Vec<_>, Refusal>>()?;
        let options = OpenOptions { lenient: true, ..OpenOptions::default() };
        let opened = files.iter().map(|file| Ok(file.graph(&options)?));
        let opened = opened.collect::<Result<Vec<_>, Refusal>>()?;
        let graphs: Vec<&dyn Graph> = opened.iter().map(|opened| -> &dyn Graph { &*opened.graph }).collect();
        Ok(Self::HeapDiff(Box::new(compare(&graphs, Follow::default()))))
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
