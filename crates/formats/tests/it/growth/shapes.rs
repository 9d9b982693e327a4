//! Profiles that are large in one dimension.

use std::borrow::Cow;
use std::io;

use borehole_model::{
    Context, Event, FieldKind, FieldShape, Frame, FrameId, Label, LabelValue, ProfileSink, Sample, Segment,
    Shape, StackId, Status, Tables, Thread, Value, ValueType, Warning, dial9,
};

/// Passes a profile of a size to a sink.
pub(super) type MakeProfile = fn(usize, &mut Feed<'_>) -> io::Result<()>;

/// The dimensions that a file can make large.
pub(super) const SHAPES: &[(&str, MakeProfile)] = &[
    ("samples", |n, feed| (0..n).try_for_each(|number| feed.sample(&["main", "leaf"], number, &[]))),
    ("functions", |n, feed| {
        (0..n).try_for_each(|number| feed.sample(&["main", &format!("function {number}")], number, &[]))
    }),
    ("stacks", |n, feed| {
        (0..n).try_for_each(|number| {
            let names = [number / 100, number % 100, number / 7 % 10].map(|part| format!("f{part}"));
            feed.sample(&names.each_ref().map(String::as_str), number, &[])
        })
    }),
    ("depth of a stack", |n, feed| {
        let names: Vec<_> = (0..n).map(|depth| format!("level {depth}")).collect();
        feed.sample(&names.iter().map(String::as_str).collect::<Vec<_>>(), 0, &[])
    }),
    ("depth of a recursion", |n, feed| feed.sample(&vec!["again"; n], 0, &[])),
    ("length of a name", |n, feed| feed.sample(&["main", &"long ".repeat(n)], 0, &[])),
    ("callers of a function", |n, feed| {
        (0..n).try_for_each(|number| feed.sample(&[&format!("caller {number}"), "leaf"], number, &[]))
    }),
    ("value types", |n, feed| {
        feed.segment.value_types = (0..n).map(value_type).collect();
        feed.begin()?;
        let values: Vec<_> = (0_i64..).take(n).collect();
        feed.sample(&["main"], 0, &values)
    }),
    ("value types of segments", |n, feed| {
        (0..n).try_for_each(|number| {
            feed.segment.value_types = vec![value_type(number)];
            feed.next_segment()?;
            feed.sample(&["main"], number, &[5])
        })
    }),
    ("labels of a sample", |n, feed| {
        let labels: Vec<_> = (0..n).map(|number| (format!("key {number}"), "value".to_owned())).collect();
        feed.labelled(&labels, 0)
    }),
    ("keys of labels", |n, feed| {
        (0..n).try_for_each(|number| feed.labelled(&[(format!("key {number}"), "value".to_owned())], number))
    }),
    ("values of a label", |n, feed| {
        (0..n).try_for_each(|number| feed.labelled(&[("url".to_owned(), format!("/page/{number}"))], number))
    }),
    ("threads", |n, feed| {
        (0..n)
            .try_for_each(|number| feed.of_thread(1, number as u64 + 1, &format!("thread {number}"), number))
    }),
    ("threads of one name", |n, feed| {
        (0..n).try_for_each(|number| feed.of_thread(1, number as u64 + 1, "worker", number))
    }),
    ("turns of two threads", |n, feed| {
        (0..n).try_for_each(|number| feed.of_thread(1, number as u64 % 2 + 1, "worker", number))
    }),
    ("processes", |n, feed| {
        (0..n).try_for_each(|number| {
            let process = i64::try_from(number).unwrap() + 1;
            feed.of_thread(process, 1, &format!("main {number}"), number)
        })
    }),
    ("interpreters", |n, feed| {
        (0..n).try_for_each(|number| {
            let sample = Sample { interpreter: Some(number as u64), thread: Some(1), ..Sample::default() };
            feed.pass(&["main"], number, sample)
        })
    }),
    ("states", |n, feed| {
        (0..n).try_for_each(|number| {
            let status = Some(Status(u8::try_from(number % 4).unwrap()));
            feed.pass(&["main"], number, Sample { status, thread: Some(1), ..Sample::default() })
        })
    }),
    ("segments", |n, feed| {
        (0..n).try_for_each(|number| {
            feed.next_segment()?;
            feed.sample(&["main"], number, &[])
        })
    }),
    ("empty segments", |n, feed| (0..n).try_for_each(|_| feed.next_segment())),
    ("periods", |n, feed| {
        (0..n).try_for_each(|number| {
            feed.segment.period_ns = Some(1_000 * (number as u64 + 1));
            feed.next_segment()?;
            feed.sample(&["main"], number, &[])
        })
    }),
    ("starts of segments", |n, feed| {
        (0_i64..).take(n).try_for_each(|number| {
            feed.segment.start_unix_ns = Some(1_700_000_000_000_000_000 + number * 1_000_000_000);
            feed.next_segment()?;
            feed.sample(&["main"], 0, &[])
        })
    }),
    ("metadata", |n, feed| {
        (0..n).try_for_each(|number| feed.add_metadata(&format!("key {number}"), "value"))?;
        feed.begin()?;
        feed.sample(&["main"], 0, &[])
    }),
    ("metadata of segments", |n, feed| {
        (0..n).try_for_each(|number| {
            feed.segment.metadata.clear();
            feed.add_metadata("host", &format!("host {number}"))?;
            feed.next_segment()?;
            feed.sample(&["main"], number, &[])
        })
    }),
    ("late metadata", |n, feed| {
        feed.sample(&["main"], 0, &[])?;
        (0..n).try_for_each(|number| feed.late_metadata("key", &format!("value {number}")))
    }),
    ("sources", |n, feed| {
        (0..n).try_for_each(|number| {
            feed.sink.source(&format!("input {number}"))?;
            feed.of_thread(1, 1, &format!("main {number}"), number)
        })
    }),
    ("warnings", |n, feed| {
        feed.sample(&["main"], 0, &[])?;
        (0..n).try_for_each(|number| feed.sink.warning(&Warning::new(format!("odd {number}")).losing(1)))
    }),
    ("events", |n, feed| {
        (0..n).try_for_each(|number| feed.event("Poll", &[("worker_id", Value::Unsigned(0))], number))
    }),
    ("types of events", |n, feed| {
        (0..n).try_for_each(|number| {
            feed.event(&format!("Type{number}"), &[("value", Value::Unsigned(1))], number)
        })
    }),
    ("fields of an event", |n, feed| {
        let names: Vec<_> = (0..n.min(60_000)).map(|number| format!("field{number}")).collect();
        let fields: Vec<_> = names.iter().map(|name| (name.as_str(), Value::Unsigned(7))).collect();
        feed.event("Wide", &fields, 0)
    }),
    ("entries of a map", |n, feed| {
        let text = |text: String| Value::Text(Cow::Owned(text));
        let entries =
            (0..n).map(|number| (text(format!("key {number}")), text("value".to_owned()))).collect();
        feed.event("Map", &[("map", Value::Map(entries))], 0)
    }),
    ("workers", |n, feed| {
        (0..n).try_for_each(|number| {
            let worker = || Value::Unsigned(number as u64);
            feed.event(dial9::event::POLL_START, &[(dial9::field::WORKER, worker())], number)?;
            feed.event(dial9::event::POLL_END, &[(dial9::field::WORKER, worker())], number)
        })
    }),
    ("open polls", |n, feed| {
        (0..n).try_for_each(|number| {
            let worker = Value::Unsigned(number as u64);
            feed.event(dial9::event::POLL_START, &[(dial9::field::WORKER, worker)], number)
        })
    }),
    ("open spans", |n, feed| {
        (0..n).try_for_each(|number| {
            let fields = [
                (dial9::field::WORKER, Value::Unsigned(0)),
                (dial9::field::SPAN, Value::Unsigned(number as u64 + 1)),
            ];
            feed.event("SpanEnter:query", &fields, number)
        })
    }),
    ("kinds of spans", |n, feed| {
        (0..n).try_for_each(|number| {
            let fields = [
                (dial9::field::WORKER, Value::Unsigned(0)),
                (dial9::field::SPAN, Value::Unsigned(number as u64 + 1)),
            ];
            feed.event(&format!("SpanEnter:query{number}"), &fields, 2 * number)?;
            feed.event(&format!("SpanExit:query{number}"), &fields, 2 * number + 1)
        })
    }),
    ("tasks", |n, feed| {
        (0..n).try_for_each(|number| {
            let task = Value::Unsigned(number as u64);
            feed.event(dial9::event::TASK_SPAWN, &[(dial9::field::TASK, task)], number)
        })
    }),
    ("events with one stack", |n, feed| {
        let stack: Vec<_> = (0..n as u64).map(|address| (0x1000 + 16 * address).to_le_bytes()).collect();
        (0..8).try_for_each(|number| {
            let stack = Value::Stack(borehole_model::Addresses(&stack));
            feed.event("CpuSampleEvent", &[("tid", Value::Unsigned(1)), ("callchain", stack)], number)
        })
    }),
];

fn value_type(number: usize) -> ValueType {
    ValueType::new(format!("kind{number}"), "count")
}

/// A sink and the tables that it reads.
pub(super) struct Feed<'a> {
    pub(super) tables: &'a mut Tables,
    pub(super) sink: &'a mut dyn ProfileSink,
    segment: Segment,
    has_begun: bool,
}

impl<'a> Feed<'a> {
    pub(super) fn new(tables: &'a mut Tables, sink: &'a mut dyn ProfileSink) -> Self {
        let segment = Segment {
            format: "growth",
            has_times: true,
            is_ordered: true,
            period_ns: Some(10_000_000),
            ..Segment::default()
        };
        Self { tables, sink, segment, has_begun: false }
    }

    fn begin(&mut self) -> io::Result<()> {
        self.has_begun = true;
        self.sink.segment(Context { tables: self.tables, segment: &self.segment })
    }

    fn next_segment(&mut self) -> io::Result<()> {
        self.segment.index += u64::from(self.has_begun);
        self.begin()
    }

    /// A sample of functions, the root first, as the `number`-th.
    fn sample(&mut self, names: &[&str], number: usize, values: &[i64]) -> io::Result<()> {
        self.pass(names, number, Sample { values, ..Sample::default() })
    }

    fn pass(&mut self, names: &[&str], number: usize, sample: Sample<'_>) -> io::Result<()> {
        if !self.has_begun {
            self.begin()?;
        }
        let stack = self.stack(names)?;
        let time_ns = Some(i64::try_from(number).unwrap() * 10_000_000);
        let at = Context { tables: self.tables, segment: &self.segment };
        let _ = self.sink.sample(at, &Sample { stack, time_ns, count: 1, ..sample })?;
        Ok(())
    }

    fn stack(&mut self, names: &[&str]) -> io::Result<Option<StackId>> {
        let mut stack = None;
        for name in names {
            let frame = self.frame(name)?;
            stack = Some(self.tables.intern_stack(stack, frame)?);
        }
        Ok(stack)
    }

    fn frame(&mut self, name: &str) -> io::Result<FrameId> {
        let function = self.tables.intern_string(name.as_bytes())?;
        let file = Some(self.tables.intern_string(b"/app/main.php")?);
        Ok(self.tables.intern_frame(&Frame { file, line: Some(7), ..Frame::named(function) })?)
    }

    fn labelled(&mut self, labels: &[(String, String)], number: usize) -> io::Result<()> {
        let mut set = Vec::new();
        for (key, value) in labels {
            let key = self.tables.intern_string(key.as_bytes())?;
            let value = LabelValue::Text(self.tables.intern_string(value.as_bytes())?);
            set.push(Label { key, value });
        }
        let labels = Some(self.tables.intern_labels(&set)?);
        self.pass(&["main"], number, Sample { labels, ..Sample::default() })
    }

    fn of_thread(&mut self, process: i64, number: u64, name: &str, at: usize) -> io::Result<()> {
        let thread = Thread { process: Some(process), number };
        let name = self.tables.intern_string(name.as_bytes())?;
        if !self.has_begun {
            self.begin()?;
        }
        self.sink.thread(Context { tables: self.tables, segment: &self.segment }, thread, name)?;
        let sample = Sample { process: Some(process), thread: Some(number), ..Sample::default() };
        self.pass(&["main", "leaf"], at, sample)
    }

    fn add_metadata(&mut self, key: &str, value: &str) -> io::Result<()> {
        let pair = (self.tables.intern_string(key.as_bytes())?, self.tables.intern_string(value.as_bytes())?);
        self.segment.metadata.push(pair);
        Ok(())
    }

    fn late_metadata(&mut self, key: &str, value: &str) -> io::Result<()> {
        let (key, value) =
            (self.tables.intern_string(key.as_bytes())?, self.tables.intern_string(value.as_bytes())?);
        self.sink.metadata(Context { tables: self.tables, segment: &self.segment }, key, value)
    }

    fn event(&mut self, name: &str, fields: &[(&str, Value<'_>)], number: usize) -> io::Result<()> {
        if !self.has_begun {
            self.begin()?;
        }
        let name = self.tables.intern_string(name.as_bytes())?;
        let mut shape = Shape { name, fields: Vec::new(), annotations: Vec::new() };
        let mut values = Vec::new();
        for (name, value) in fields {
            let name = self.tables.intern_string(name.as_bytes())?;
            shape.fields.push(FieldShape { name, kind: kind(value), optional: false });
            values.push(value.clone());
        }
        let shape = self.tables.intern_shape(&shape)?;
        let at = Context { tables: self.tables, segment: &self.segment };
        let event = Event { shape, type_id: None, time_ns: Some(number as u64 * 1000), values: &values };
        let _ = self.sink.event(at, &event)?;
        Ok(())
    }
}

const fn kind(value: &Value<'_>) -> FieldKind {
    match value {
        Value::Unsigned(_) => FieldKind::Unsigned64,
        Value::Stack(_) => FieldKind::Stack,
        Value::Map(_) => FieldKind::Map,
        _ => FieldKind::Undeclared,
    }
}
