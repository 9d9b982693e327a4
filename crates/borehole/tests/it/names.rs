//! One facade is enough: every type that its signatures mention has a name in it.

/// Formats, errors, warnings and options.
#[allow(unused_imports, reason = "the names are all that is tested")]
mod of_profiles {
    pub(super) use borehole::formats::detect::{Foreign, detect};
    pub(super) use borehole::formats::registry::{
        Codec, Destination, Detect, Document, EventSupport, Exporting, Import, ImportDocument,
        ImportEnveloped, ImportPlain, MakeSpool, PlainInput, Spool,
    };
    pub(super) use borehole::formats::{Error, ErrorKind, Position, UnknownName};
    pub(super) use borehole::memory::OverBudget;
    pub(super) use borehole::model::{
        Addresses, Annotation, Column, Context, Event, FieldKind, FieldShape, Frame, FrameId, FrameText,
        FramesLeafFirst, Label, LabelValue, LabelsId, Lane, LaneId, LaneName, Lasting, Measure, Mode,
        NameParts, NativeFrame, NativeModule, OneClock, RowIndex, Sample, Sampled, Segment, Shape, ShapeId,
        StackColumn, StackId, Status, StringId, TableFull, Tables, Thread, ThreadNames, UnknownValueType,
        Value, ValueType, Weigher,
    };
    pub(super) use borehole::{
        AddressSymbols, Advice, Archive, ArchiveMember, BorrowedInput, CancelToken, Compression, Existing,
        Export, Facts, FilledAddresses, FilledLine, FilledProfile, Format, Input, InputOptions, Limits,
        Losses, OnDamage, Outcome, Output, OwnFormat, Profile, ProfileSink, Progress, ReadError, ReadOptions,
        Recovery, Redact, RedactKey, SampleKind, Samples, SortByTime, Source, StatedMapping, Target,
        Unpacked, Warning, WarningKind, WriteOptions,
    };
}

#[cfg(feature = "heap")]
#[allow(unused_imports, reason = "the names are all that is tested")]
mod of_heaps {
    pub(super) use borehole::heap::{
        Analysis, AnalyzeOptions, AttributeValue, CapturedHeap, Child, Dump, DumpRecovery, Edge, Error,
        FailedCall, FatalError, Graph, GraphCounts, HeapFile, HeapFormat, HeapGraph, HeapInfo, HeapSink,
        Identity, IsPhp, LocationType, MemoryLocation, MemoryTotal, NodeAttribute, NodeId, NodeType,
        OpenOptions, Opened, Parents, PhpRelease, References, Region, Strength, ThreadModel, Totals,
        TotalsScope, TreeParents, ValueKind, Vocabulary,
    };
}

#[test]
fn the_errors_of_readers_are_named_by_the_facade() {
    let error = of_profiles::Error::malformed("rbt", of_profiles::Position::Line(3), "odd");
    let whole = borehole::Error::Read { name: "a.rbt".to_owned(), source: error };
    assert_eq!(
        (whole.kind(), whole.position()),
        (of_profiles::ErrorKind::Malformed, borehole::Position::Line(3))
    );
}
