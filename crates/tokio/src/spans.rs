//! Records the spans of `tracing`.

use std::cell::RefCell;
use std::sync::Mutex;

use borehole_recorder::trc::dial9::{event, field};
use borehole_recorder::trc::{FieldKind, FieldType, Schema, TraceEvent, ValueDef};
use borehole_recorder::{Handle, now_ns};
use hashbrown::HashMap;
use tracing::callsite::Identifier;
use tracing::span::{Attributes, Id, Record};
use tracing::{Metadata, Subscriber};
use tracing_subscriber::Layer;
use tracing_subscriber::layer::Context;
use tracing_subscriber::registry::LookupSpan;

use crate::lane::lock;
use crate::span_fields::SpanFields;
use crate::thread::current_task;

/// A span is closed. Source: `dial9-utils` 0.5.7.
#[derive(TraceEvent, Clone, Debug, PartialEq, Eq)]
#[traceevent(wire_slot)]
#[non_exhaustive]
pub struct SpanCloseEvent {
    /// The time.
    #[traceevent(timestamp)]
    pub timestamp_ns: u64,
    /// The span.
    pub span_id: u64,
}

/// A layer for `tracing_subscriber` that records when spans are entered, left and closed, with their fields.
///
/// Each place in the source has event types of its own, as `dial9-utils` 0.5.7 writes them. No lock is shared by threads,
/// except at the first span of a place on each thread.
///
/// # Examples
///
/// ```
/// use borehole_recorder::Recorder;
/// use borehole_tokio::SpanLayer;
/// use tracing_subscriber::layer::SubscriberExt as _;
///
/// # let folder = borehole_testkit::Scratch::new();
/// # let folder = folder.folder();
/// let recorder = Recorder::builder(folder).start()?;
/// let subscriber = tracing_subscriber::registry().with(SpanLayer::new(recorder.handle()));
/// tracing::subscriber::with_default(subscriber, || {
///     let _span = tracing::info_span!("checkout", route = "/cart").entered();
/// });
/// assert_eq!(recorder.finish()?.events, 3);
/// # Ok::<(), std::io::Error>(())
/// ```
pub struct SpanLayer {
    handle: Handle,
}

/// The event types of a place in the source.
struct SpanSchemas {
    name: &'static str,
    enter: Schema,
    exit: Schema,
    fields: usize,
}

/// The part of a span that is kept while it lives.
struct OpenSpan {
    schemas: &'static SpanSchemas,
    parent: Option<u64>,
    fields: SpanFields,
}

/// The event types that any thread has made. They are never freed: there are only as many as places in the source.
static SCHEMAS: Mutex<Vec<(Identifier, &'static SpanSchemas)>> = Mutex::new(Vec::new());

thread_local! {
    /// The event types that this thread has used, which it finds again without a lock.
    static OWN_SCHEMAS: RefCell<HashMap<Identifier, &'static SpanSchemas>> = RefCell::default();
}

/// The maximum number of fields of a span. Source: `tracing-core` 0.1.36, `field::ValueSet`.
const MOST_FIELDS: usize = 32;

/// The number of fields up to which the values of a span need no memory of their own while they are recorded.
const FEW_FIELDS: usize = 6;

impl SpanLayer {
    /// Creates a layer that records through `handle`.
    #[must_use]
    pub fn new(handle: Handle) -> Self {
        Self { handle }
    }

    fn enter(&self, id: &Id, span: &OpenSpan) {
        let count = span.schemas.fields.min(MOST_FIELDS);
        let mut few = [ValueDef::Absent; 4 + FEW_FIELDS];
        let mut many = Vec::new();
        let values = if count <= FEW_FIELDS {
            &mut few[..4 + count]
        } else {
            many.resize(4 + count, ValueDef::Absent);
            &mut many[..]
        };
        values[0] = optional(Some(current_task()).filter(|task| *task > 0));
        values[1] = ValueDef::Unsigned(id.into_u64());
        values[2] = optional(span.parent);
        values[3] = ValueDef::Text(span.schemas.name);
        for (index, value) in values[4..].iter_mut().enumerate() {
            *value = span.fields.value(index).map_or(ValueDef::Absent, ValueDef::Text);
        }
        self.handle.record_values(&span.schemas.enter, now_ns(), values);
    }

    fn exit(&self, id: &Id, span: &OpenSpan) {
        let task = optional(Some(current_task()).filter(|task| *task > 0));
        let values = [task, ValueDef::Unsigned(id.into_u64()), ValueDef::Text(span.schemas.name)];
        self.handle.record_values(&span.schemas.exit, now_ns(), &values);
    }
}

fn optional(value: Option<u64>) -> ValueDef<'static> {
    value.map_or(ValueDef::Absent, ValueDef::Unsigned)
}

impl SpanSchemas {
    fn of(metadata: &'static Metadata<'static>) -> Option<&'static Self> {
        let key = metadata.callsite();
        let make = || {
            let mut all = lock(&SCHEMAS);
            if let Some(known) = all.iter().find(|known| known.0 == key) {
                return Some(known.1);
            }
            let made: &'static Self = Box::leak(Box::new(Self::new(metadata)?));
            all.push((key.clone(), made));
            Some(made)
        };
        OWN_SCHEMAS
            .try_with(|own| {
                if let Some(known) = own.borrow().get(&key) {
                    return Some(*known);
                }
                let made = make()?;
                own.borrow_mut().insert(key.clone(), made);
                Some(made)
            })
            .ok()
            .flatten()
    }

    /// `None` if a name is too long for the format.
    fn new(metadata: &'static Metadata<'static>) -> Option<Self> {
        let (file, line) = (metadata.file().unwrap_or("unknown"), metadata.line().unwrap_or(0));
        let place = format!("{}::{}:{file}:{line}", metadata.target(), metadata.name());
        let (number, name) =
            (FieldType::required(FieldKind::Varint), FieldType::required(FieldKind::PooledString));
        let (maybe_number, text) =
            (FieldType::optional(FieldKind::Varint), FieldType::optional(FieldKind::PooledString));
        let head = [(field::SPAN_TASK, maybe_number), (field::SPAN, number)];
        let given = metadata.fields().iter().take(MOST_FIELDS).map(|field| (field.name(), text));
        let enter =
            head.into_iter().chain([("parent_span_id", maybe_number), (field::SPAN_NAME, name)]).chain(given);
        let exit = head.into_iter().chain([(field::SPAN_NAME, name)]);
        Some(Self {
            name: metadata.name(),
            enter: Schema::new(&format!("{}{place}", event::SPAN_ENTER_PREFIX), enter).ok()?,
            exit: Schema::new(&format!("{}{place}", event::SPAN_EXIT_PREFIX), exit).ok()?,
            fields: metadata.fields().len(),
        })
    }
}

impl<S: Subscriber + for<'a> LookupSpan<'a>> Layer<S> for SpanLayer {
    fn on_new_span(&self, attributes: &Attributes<'_>, id: &Id, context: Context<'_, S>) {
        let (Some(span), Some(schemas)) = (context.span(id), SpanSchemas::of(attributes.metadata())) else {
            return;
        };
        let mut fields = SpanFields::default();
        attributes.record(&mut fields);
        // Only a parent that the program names: the span entered on this thread may be that of another task.
        let parent = attributes.parent().map(Id::into_u64);
        span.extensions_mut().insert(OpenSpan { schemas, parent, fields });
    }

    fn on_record(&self, id: &Id, values: &Record<'_>, context: Context<'_, S>) {
        if let Some(span) = context.span(id)
            && let Some(open) = span.extensions_mut().get_mut::<OpenSpan>()
        {
            values.record(&mut open.fields);
        }
    }

    fn on_enter(&self, id: &Id, context: Context<'_, S>) {
        if let Some(span) = context.span(id)
            && let Some(open) = span.extensions().get::<OpenSpan>()
        {
            self.enter(id, open);
        }
    }

    fn on_exit(&self, id: &Id, context: Context<'_, S>) {
        if let Some(span) = context.span(id)
            && let Some(open) = span.extensions().get::<OpenSpan>()
        {
            self.exit(id, open);
        }
    }

    fn on_close(&self, id: Id, _context: Context<'_, S>) {
        self.handle.record_now(|timestamp_ns| SpanCloseEvent { timestamp_ns, span_id: id.into_u64() });
    }
}
