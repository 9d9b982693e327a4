//! Facts from the beginning of a file.

use std::io;
use std::ops::ControlFlow;
use std::path::Path;

use borehole::formats::detect::Format;
use borehole::heap::HeapFile;
use borehole::model::dial9::{self, metadata};
use borehole::model::{Context, Event, ProfileSink, Sample, Tables, Value};
use borehole::{Error, Input, InputOptions, ReadOptions, Source};
use borehole_text::document;

use super::InputKind;
use crate::limits::CatalogueLimits;
use crate::refusal::Refusal;

/// The facts about a file.
pub(super) struct InputHead {
    pub(super) kind: InputKind,
    pub(super) format: String,
    pub(super) host: Option<String>,
    pub(super) service: Option<String>,
    pub(super) process: Option<String>,
    pub(super) start_unix_s: Option<u64>,
    pub(super) error: Option<String>,
}

impl InputHead {
    fn of_kind(kind: InputKind, format: &str) -> Self {
        Self {
            kind,
            format: format.to_owned(),
            host: None,
            service: None,
            process: None,
            start_unix_s: None,
            error: None,
        }
    }
}

/// Looks at the beginning of a file that is listed as `name`. It never fails: a file that cannot be read says so.
pub(super) fn of(path: &Path, name: &str) -> InputHead {
    let options = InputOptions { read: ReadOptions::lenient(), ..InputOptions::default() };
    let opened = Source::path(path).and_then(|source| {
        let bytes = source.size_bytes().unwrap_or(0);
        Ok((Input::open(source, &options)?, bytes))
    });
    match opened {
        Ok((input, bytes)) => of_profile(input, bytes),
        Err(error) => of_heap(path, name, error),
    }
}

fn of_heap(path: &Path, name: &str, otherwise: Error) -> InputHead {
    match HeapFile::open(path) {
        Ok(heap) => {
            let kind = if heap.is_database() { InputKind::Database } else { InputKind::Heap };
            InputHead::of_kind(kind, heap.format().name())
        }
        Err(_) => InputHead {
            error: Some(document(Refusal::from(otherwise).calling(path, name).message.as_bytes())),
            ..InputHead::of_kind(InputKind::Unreadable, "")
        },
    }
}

fn of_profile(input: Input, bytes: u64) -> InputHead {
    let format = input.format();
    let kind = if format == Format::Trc { InputKind::Tokio } else { InputKind::Profile };
    let mut head = InputHead::of_kind(kind, format.name());
    // Documents are read as a whole, so that of a large one nothing is known before somebody wants to see it.
    if bytes <= CatalogueLimits::LOOKED_INTO_BYTES {
        let mut first = FirstFacts::default();
        let _ = input.read_into(&mut Tables::default(), &mut first);
        head.host = first.host;
        head.service = first.service;
        head.process = first.process;
        head.start_unix_s = first.start_unix_ns.and_then(|ns| u64::try_from(ns / 1_000_000_000).ok());
    }
    head
}

/// The facts before and at the first sample.
#[derive(Default)]
struct FirstFacts {
    host: Option<String>,
    service: Option<String>,
    process: Option<String>,
    start_unix_ns: Option<i64>,
    events: u32,
}

/// The keys of metadata under which profilers name the host, the service and the process.
///
/// Source: dial9 0.5.7 for its own; OpenTelemetry's semantic conventions for `host.name` and `service.name`.
const HOSTS: [&str; 3] = [metadata::HOST, "host.name", "hostname"];
const SERVICES: [&str; 3] = ["service", "service.name", "app"];
const PROCESSES: [&str; 3] = [metadata::PROCESS, "pid", "process.pid"];

impl FirstFacts {
    fn described(&mut self, key: &str, value: &str) {
        let place = match key {
            _ if HOSTS.contains(&key) => &mut self.host,
            _ if SERVICES.contains(&key) => &mut self.service,
            _ if PROCESSES.contains(&key) => &mut self.process,
            _ => return,
        };
        let text: String = document(value.as_bytes()).chars().take(CatalogueLimits::FACT_CHARS).collect();
        place.get_or_insert(text);
    }
}

impl ProfileSink for FirstFacts {
    fn segment(&mut self, at: Context<'_>) -> io::Result<()> {
        for &(key, value) in &at.segment.metadata {
            let text = |id| String::from_utf8_lossy(at.tables.string(id)).into_owned();
            self.described(&text(key), &text(value));
        }
        if let Some(process) = at.segment.process {
            self.process.get_or_insert(process.to_string());
        }
        self.start_unix_ns = self.start_unix_ns.or(at.segment.start_unix_ns);
        Ok(())
    }

    fn sample(&mut self, at: Context<'_>, sample: &Sample<'_>) -> io::Result<ControlFlow<()>> {
        if let Some(process) = at.process(sample) {
            self.process.get_or_insert(process.to_string());
        }
        let start = at.segment.start_unix_ns.zip(sample.time_ns);
        self.start_unix_ns = start.map(|(start, time)| start.saturating_add(time)).or(self.start_unix_ns);
        Ok(ControlFlow::Break(()))
    }

    fn keeps_events(&mut self) -> bool {
        true
    }

    fn event(&mut self, at: Context<'_>, event: &Event<'_>) -> io::Result<ControlFlow<()>> {
        self.events += 1;
        if at.tables.string(at.tables.shape(event.shape).name) == dial9::event::METADATA.as_bytes() {
            for value in event.values {
                let Value::Map(entries) = value else { continue };
                for (key, value) in entries {
                    if let (Value::Text(key), Value::Text(value)) = (key, value) {
                        self.described(key, value);
                    }
                }
            }
        }
        let is_enough = self.events >= CatalogueLimits::LOOKED_AT_EVENTS;
        Ok(if is_enough { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
    }
}
