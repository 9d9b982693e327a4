//! The explorer of Tokio traces as its users see it, without a terminal.

use borehole_analysis::tokio::{
    PageCounts, PageFlag, PageGrid, PageLane, PagePolls, PageSpans, PageTask, Severity, TokioPage,
};
use borehole_testkit::{assert_golden, project_file};
use borehole_text::width;
use borehole_tui::{Clipboard, Colours, Explorer as _, TokioApp, TokioKeymap, TokioSettings};

use crate::session::inputs;

const MS: i64 = 1_000_000;

/// The number of columns of the grid, of 10 ms each.
const COLUMNS: usize = 100;

/// The first worker does short polls, and a long one from 500 ms on; the other one is parked, and hangs in a poll from 900 ms on.
fn lanes() -> Vec<PageLane> {
    let column_ns = 10 * MS.unsigned_abs();
    let busy = |share: &dyn Fn(usize) -> u64| (0..COLUMNS).map(|at| column_ns * share(at) / 10).collect();
    let longest = |column, poll| (0..COLUMNS).map(|at| if at == column { poll } else { -1 }).collect();
    let first = PageLane {
        worker: 0,
        busy_ns: busy(&|at| if (50..62).contains(&at) { 10 } else { at as u64 % 5 }),
        longest: longest(50, 0),
        ..PageLane::default()
    };
    let other = PageLane {
        worker: 1,
        busy_ns: busy(&|at| if at >= 90 { 10 } else { 0 }),
        parked_ns: (0..COLUMNS).map(|at| if at < 90 { column_ns } else { 0 }).collect(),
        longest: longest(90, 1),
        ..PageLane::default()
    };
    vec![first, other]
}

fn polls() -> PagePolls {
    PagePolls {
        lane: vec![0, 1],
        start_ns: vec![500 * MS, 900 * MS],
        duration_ns: vec![120_000_000, 100_000_000],
        task: vec![7, 9],
        place: vec![0, 1],
        woken_ns: vec![497 * MS, -1],
        waker: vec![3, 0],
        open: vec![1],
    }
}

fn flag(severity: Severity, check: &'static str, evidence: &str, at: Option<(i64, u64)>) -> PageFlag {
    let (time_ns, worker) = at.unzip();
    PageFlag { severity, check, evidence: evidence.to_owned(), time_ns, worker, task: None }
}

/// A second of two workers.
fn second() -> TokioPage {
    let task = |task, place, ended_ns| PageTask {
        task,
        place,
        spawned_ns: Some(100 * MS),
        ended_ns,
        polls: 12,
        busy_ns: 130_000_000,
        longest_ns: 120_000_000,
    };
    let counts = PageCounts {
        polls: (4711, 2),
        spans: (2, 2),
        tasks: (2, 2),
        workers: (2, 2),
        ..PageCounts::default()
    };
    TokioPage {
        end_ns: 1000 * MS,
        grid: PageGrid { first_ns: 0, column_ns: 10 * MS.unsigned_abs(), columns: COLUMNS },
        lanes: lanes(),
        polls: polls(),
        queue: (0..COLUMNS).map(|at| if at == 55 { 8 } else { 1 }).collect(),
        spans: PageSpans {
            name: vec![0, 0],
            start_ns: vec![495 * MS, 10 * MS],
            duration_ns: vec![130_000_000, 2_000_000],
            fields: vec![1, -1],
        },
        tasks: vec![task(9, 1, None), task(7, 0, Some(800 * MS))],
        flags: vec![
            flag(Severity::Critical, "stuck-worker", "a poll does not end", Some((900 * MS, 1))),
            flag(Severity::Warning, "long-poll", "a poll took 120 ms; evil\u{1b}[2J", Some((500 * MS, 0))),
            flag(Severity::Info, "poll-coverage", "some polls are not recorded", None),
        ],
        places: ["src/handlers.rs:93:9", "src/jobs.rs:7:1"].map(str::to_owned).to_vec(),
        texts: ["request", "route=/carts/{id} status=200"].map(str::to_owned).to_vec(),
        counts,
        ..TokioPage::default()
    }
}

struct Copied(Vec<String>);

impl Clipboard for Copied {
    fn copy(&mut self, text: &str) {
        self.0.push(text.to_owned());
    }
}

/// An explorer after these key presses.
struct Session {
    app: TokioApp,
    copied: Copied,
    size: (u16, u16),
}

impl Session {
    fn of(pages: Vec<TokioPage>, size: (u16, u16)) -> Self {
        let settings = TokioSettings {
            title: "shop.trc".to_owned(),
            colours: Colours::None,
            has_samples: true,
            keymap: TokioKeymap::default(),
        };
        let mut session = Self { app: TokioApp::new(pages, settings), copied: Copied(Vec::new()), size };
        session.lines();
        session
    }

    fn new() -> Self {
        Self::of(vec![second()], (80, 24))
    }

    fn press(&mut self, keys: &str) -> &mut Self {
        for input in inputs(keys) {
            self.app.handle(&input, &mut self.copied);
            self.lines();
        }
        self
    }

    fn lines(&mut self) -> Vec<String> {
        self.app.as_text(self.size.0, self.size.1)
    }

    fn text(&mut self) -> String {
        self.lines().join("\n") + "\n"
    }

    fn status(&mut self) -> String {
        let lines = self.lines();
        lines[lines.len() - 2].clone()
    }
}

/// The keys that lead to each view.
const VIEWS: [(&str, &str); 8] = [
    ("trace", ""),
    ("flag", "n"),
    ("next-flag", "nn"),
    ("polls", "p"),
    ("poll", "p\r"),
    ("tasks", "t"),
    ("spans", "s"),
    ("help", "?"),
];

#[test]
fn each_view_is_as_it_was_drawn() {
    for (name, keys) in VIEWS {
        let text = Session::new().press(keys).text();
        assert!(text.lines().all(|line| width(line) <= 80), "{name}");
        assert_golden(
            project_file(&format!("crates/tui/tests/golden/tokio-{name}-80x24.txt")),
            text.as_bytes(),
        );
    }
}

#[test]
fn a_row_leads_to_its_moment_and_back() {
    let mut session = Session::new();
    let whole = session.text();
    let at_flag = session.press("f\r").text();
    assert!(at_flag.contains("▸ 50.0 ms from +0.875000 s to +0.925000 s"), "{at_flag}");
    assert_eq!(
        session.status(),
        "worker 1: poll of 100 ms, not ended at +0.900000 s, task 9 of src/jobs.rs:7:1"
    );
    // The way back keeps the cursor.
    assert_eq!(session.press("u").text().lines().nth(1), whole.lines().nth(1));
    assert_eq!(session.press("u").status(), "nothing to go back to");
    let row_without = session.press("fG\r").status();
    assert_eq!(row_without, "the row has no moment");
}

#[test]
fn zooming_keeps_the_cursor_and_the_bounds_of_the_trace() {
    let mut session = Session::new();
    session.press("lllll");
    let before = session.status();
    for keys in ["+", "+", "+", "-", "-", "-", "-", "0"] {
        let text = session.press(keys).text();
        assert!(!text.contains("from -"), "{text}");
        assert!(session.status().starts_with(&before[..before.find(':').unwrap()]));
    }
    let end = session.press("++++G").text();
    assert!(end.contains("to +1.000000 s"), "{end}");
    let start = session.press("g").text();
    assert!(start.contains("from +0.000000 s"), "{start}");
    for _ in 0..64 {
        session.press("+");
    }
    assert!(session.text().contains("100 ns from"), "{}", session.text());
}

#[test]
fn rows_are_filtered_and_copied() {
    let mut session = Session::new();
    let text = session.press("f/long\r").text();
    assert!(text.contains("flags · 1 of 3") && text.contains("/long"), "{text}");
    session.press("y");
    assert_eq!(session.copied.0.len(), 1);
    assert!(
        session.copied.0[0].contains("long-poll: a poll took 120 ms; evil\\x1b[2J"),
        "{:?}",
        session.copied.0
    );
    assert!(session.press("\u{1b}").text().contains("flags · 3"));
}

#[test]
fn several_programs_are_shown_one_at_a_time() {
    let other = TokioPage { end_ns: 5 * MS, ..second() };
    let mut session = Session::of(vec![second(), other], (80, 24));
    assert!(session.text().contains("program 1 of 2"));
    assert!(session.press("]").text().contains("5.00 ms from +0.000000 s"));
    assert!(session.press("]").text().contains("program 1 of 2"));
    assert_eq!(Session::new().press("]").status(), "the trace has one program");
}

#[test]
fn samples_are_asked_for_once() {
    let mut session = Session::new();
    assert!(!session.app.asks_for_samples());
    session.press("v");
    assert!(session.app.asks_for_samples() && session.app.wants_samples());
    assert!(!session.app.wants_samples());
}

#[test]
fn a_trace_that_grows_keeps_what_is_shown() {
    let mut session = Session::new();
    session.press("p\r");
    let before = session.text();
    session.app.replace(vec![TokioPage { end_ns: 1200 * MS, ..second() }]);
    assert_eq!(session.text().lines().nth(1), before.lines().nth(1));
    let mut whole = Session::new();
    whole.app.replace(vec![TokioPage { end_ns: 1200 * MS, ..second() }]);
    assert!(whole.text().contains("to +1.200000 s"));
}

#[test]
fn no_trace_and_no_size_break_it() {
    for size in [(80, 24), (20, 6), (21, 7), (300, 100), (10, 3)] {
        for pages in [vec![], vec![TokioPage::default()], vec![second()]] {
            let mut session = Session::of(pages, size);
            for keys in [
                "j", "k", "l", "h", "+", "-", "0", "\t", "\r", "n", "N", "f", "p", "t", "s", "]", "y", "G",
                "g", "u",
            ] {
                session.press(keys);
            }
            assert!(session.lines().iter().all(|line| width(line) <= usize::from(size.0)));
        }
    }
}
