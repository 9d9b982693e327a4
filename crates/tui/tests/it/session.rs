//! A profile in the explorer, and key presses.

use std::sync::Arc;

use borehole_analysis::diff::{Amount, DiffFrame, DiffRow, DiffView, ValueChange};
use borehole_analysis::{HeatMap, HeatMapSink, Profile, ProfileBuilder};
use borehole_model::{
    Context, Frame, Label, LabelValue, ProfileSink as _, Sample, Segment, Tables, Tee, ValueType,
};
use borehole_tui::{
    App, Clipboard, Colours, Explorer as _, Host, InputDecoder, Settings, TerminalInput, WeightedStack,
};

/// A shop whose samples are mostly in its database.
const STACKS: [(&str, u64); 7] = [
    ("main index.php 7;Kernel::handle Kernel.php 40;Cart::show Cart.php 12;Db::query Db.php 88", 50),
    ("main index.php 7;Kernel::handle Kernel.php 40;Cart::show Cart.php 14;Tax::of Tax.php 5", 20),
    ("main index.php 7;Kernel::handle Kernel.php 40;Home::show Home.php 9;Db::query Db.php 88", 12),
    (
        "main index.php 7;Kernel::handle Kernel.php 40;Home::show Home.php 9;View::render View.php 3;View::render View.php 3;Tpl::echo Tpl.php 1",
        10,
    ),
    ("main index.php 7;Kernel::boot Kernel.php 11;require Loader.php 2", 5),
    ("main index.php 7;Kernel::boot Kernel.php 11", 2),
    ("日本語::関数 名前.php 1;evil\u{1b}[2J\u{202e}<b>& x.php 1", 1),
];

/// Interns a stack that is written as above.
fn intern(tables: &mut Tables, stack: &str) -> Option<borehole_model::StackId> {
    let mut found = None;
    for frame in stack.split(';') {
        let mut parts = frame.split(' ');
        let mut string = || tables.intern_string(parts.next().unwrap().as_bytes()).unwrap();
        let (function, file) = (string(), Some(string()));
        let line = parts.next().map(|line| line.parse().unwrap());
        let frame = tables.intern_frame(&Frame { file, line, ..Frame::named(function) }).unwrap();
        found = Some(tables.intern_stack(found, frame).unwrap());
    }
    found
}

/// The shop's profile: ten rounds of a second, by two threads, with or without times.
pub(crate) fn shop(has_times: bool) -> (Profile, HeatMap) {
    shop_with(&[], has_times)
}

/// The shop's profile with further stacks, of a thread of their own, before its own.
pub(crate) fn shop_with(further: &[(&str, u64)], has_times: bool) -> (Profile, HeatMap) {
    let mut tables = Tables::default();
    let mut builder = Tee::new(ProfileBuilder::default(), HeatMapSink::default());
    let segment = Segment { period_ns: Some(10_000_000), has_times, process: Some(7), ..Segment::default() };
    let further = further.iter().map(|&(stack, count)| (-1, stack, count));
    let all = further.chain((0..).zip(STACKS).map(|(number, (stack, count))| (number, stack, count)));
    let stacks: Vec<_> =
        all.map(|(number, stack, count)| (number, intern(&mut tables, stack), count)).collect();
    let [key, cart, home] = [&b"url"[..], b"/cart", b"/"].map(|text| tables.intern_string(text).unwrap());
    let label = |value| [Label { key, value: LabelValue::Text(value) }];
    let labels = [cart, home].map(|value| tables.intern_labels(&label(value)).unwrap());
    builder.segment(Context { tables: &tables, segment: &segment }).unwrap();
    for round in 0..10_i64 {
        for &(number, stack, count) in &stacks {
            let thread = Some(match number {
                ..0 => 9,
                0..2 => 11,
                2.. => 12,
            });
            let time_ns = has_times.then_some(round * 1_000_000_000 + number.max(0) * 100_000_000);
            let labels = Some(labels[usize::from(number > 1)]);
            let count = if round < 5 || number != 1 { count } else { 3 * count };
            let sample = Sample { stack, count, thread, time_ns, labels, ..Sample::default() };
            let _ = builder.sample(Context { tables: &tables, segment: &segment }, &sample).unwrap();
        }
    }
    builder.finish(&tables).unwrap();
    let (builder, heat) = builder.into_parts();
    (builder.into_profile(tables), heat.into_view())
}

/// A profile of two processes with equal thread numbers: 30 samples and 10 of the first, 20 of the other.
pub(crate) fn pool() -> (Profile, HeatMap) {
    let mut tables = Tables::default();
    let mut builder = Tee::new(ProfileBuilder::default(), HeatMapSink::default());
    let stack = intern(&mut tables, "main x.php 1");
    let processes = [(10, &[(1, 30), (2, 10)][..]), (20, &[(1, 20)][..])];
    for (index, (process, threads)) in (0..).zip(processes) {
        let segment = Segment { index, process: Some(process), ..Segment::default() };
        let at = Context { tables: &tables, segment: &segment };
        builder.segment(at).unwrap();
        for &(thread, count) in threads {
            let sample = Sample { stack, count, thread: Some(thread), ..Sample::default() };
            let _ = builder.sample(at, &sample).unwrap();
        }
    }
    builder.finish(&tables).unwrap();
    let (builder, heat) = builder.into_parts();
    (builder.into_profile(tables), heat.into_view())
}

/// A profile of stacks whose names are their depths.
pub(crate) fn deep(depth: usize) -> (Profile, HeatMap) {
    let mut tables = Tables::default();
    let mut builder = Tee::new(ProfileBuilder::default(), HeatMapSink::default());
    let segment = Segment::default();
    let names: Vec<String> = (0..depth).map(|level| format!("f{} x.php 1", level % 3)).collect();
    let stack = if names.is_empty() { None } else { intern(&mut tables, &names.join(";")) };
    let at = Context { tables: &tables, segment: &segment };
    builder.segment(at).unwrap();
    let _ = builder.sample(at, &Sample { stack, count: 1, ..Sample::default() }).unwrap();
    builder.finish(&tables).unwrap();
    let (builder, heat) = builder.into_parts();
    (builder.into_profile(tables), heat.into_view())
}

/// Changes in the shop: its database takes more time, its templates less, and one function is no longer called.
pub(crate) fn changes() -> DiffView {
    let row = |function: &str, before: f64, after: f64, is_marked: bool| {
        let amount = |value| Amount { samples: 1, value };
        let change =
            ValueChange { before: amount(before), after: amount(after), is_marked, ..ValueChange::default() };
        let frame = DiffFrame { function: function.as_bytes().to_vec(), file: None, line: None };
        DiffRow { frame: Arc::new(frame), self_change: change, total_change: change }
    };
    let functions = vec![
        row("Db::query", 0.25, 0.5, true),
        row("Tpl::echo", 0.125, 0.0625, false),
        row("Mail::send", 0.5, 0.0, true),
    ];
    DiffView { functions, ..DiffView::default() }
}

/// The requests of the explorer.
#[derive(Debug, Default)]
pub(crate) struct Asked {
    pub(crate) copied: Vec<String>,
    pub(crate) exported: Vec<(String, Vec<WeightedStack>)>,
    pub(crate) read: Vec<String>,
}

impl Clipboard for Asked {
    fn copy(&mut self, text: &str) {
        self.copied.push(text.to_owned());
    }
}

impl Host for Asked {
    fn source(&mut self, path: &[u8]) -> Option<Arc<[String]>> {
        self.read.push(String::from_utf8(path.to_vec()).unwrap());
        path.ends_with(b"Db.php").then(|| (1..=100).map(|line| format!("\tline {line}\x1b[0m")).collect())
    }

    fn export(
        &mut self,
        name: &str,
        stacks: &[WeightedStack],
        _values: Option<&ValueType>,
    ) -> Result<String, String> {
        self.exported.push((name.to_owned(), stacks.to_owned()));
        match name {
            _ if name.starts_with('/') => Err("cannot write there".to_owned()),
            _ if name.ends_with(".rbt") => Ok("rbt cannot hold everything".to_owned()),
            _ => Ok(String::new()),
        }
    }
}

/// An explorer and its requests.
pub(crate) struct Session {
    pub(crate) app: App,
    pub(crate) asked: Asked,
    pub(crate) size: (u16, u16),
}

impl Session {
    pub(crate) fn of(profile: (Profile, HeatMap), size: (u16, u16)) -> Self {
        let settings =
            Settings { title: "shop.rbt".to_owned(), colours: Colours::None, ..Settings::default() };
        Self::with(profile, settings, size)
    }

    pub(crate) fn with(profile: (Profile, HeatMap), settings: Settings, size: (u16, u16)) -> Self {
        let mut session =
            Self { app: App::new(profile.0, profile.1, settings), asked: Asked::default(), size };
        session.text();
        session
    }

    /// Presses keys one after the other, each processed before the next.
    pub(crate) fn press(&mut self, keys: &str) -> &mut Self {
        for input in inputs(keys) {
            self.app.handle(&input, &mut self.asked);
            self.text();
        }
        self
    }

    pub(crate) fn lines(&mut self) -> Vec<String> {
        self.app.as_text(self.size.0, self.size.1)
    }

    pub(crate) fn text(&mut self) -> String {
        self.lines().join("\n") + "\n"
    }

    /// The text of the status line.
    pub(crate) fn status(&mut self) -> String {
        let lines = self.lines();
        lines[lines.len() - 2].clone()
    }
}

/// The actions for bytes of a terminal. An escape that begins no sequence is a key.
pub(crate) fn inputs(keys: &str) -> Vec<TerminalInput> {
    let mut decoder = InputDecoder::default();
    let mut inputs = Vec::new();
    for (place, byte) in keys.bytes().enumerate() {
        inputs.extend(decoder.push(&[byte]));
        if byte == 0x1b && keys.as_bytes().get(place + 1) != Some(&b'[') {
            inputs.extend(decoder.settle());
        }
    }
    inputs
}
