//! Golden screens of each view, on a small and on a large terminal.

use borehole_testkit::{assert_golden, project_file};
use borehole_tui::Settings;

use crate::session::{Session, changes, shop};

/// The keys that lead to each view.
const VIEWS: [(&str, &str); 17] = [
    ("first", ""),
    ("panes", "/query\r\r\x1b"),
    ("flame", "S"),
    ("flame-focus", "/query\r\r\x1bS"),
    ("callees", ">\tL"),
    ("callers-focus", "/query\r\r\x1b<\tL"),
    ("inverted", "<"),
    ("timeline", "Tllll\rllllll\r"),
    ("heat-map", "Mll\rll"),
    ("groups", "Bll"),
    ("groups-selected", "Bll\r"),
    ("help", "?"),
    ("source", "/query\r\x1bv"),
    ("by-total", "t"),
    ("classes", "b b b"),
    ("match", "mCart\r"),
    ("time-weight", "wt"),
];

#[test]
fn every_view_looks_as_it_did() {
    for (name, keys) in VIEWS {
        for size in [(80, 24), (120, 40)] {
            let mut session = Session::of(shop(true), size);
            session.press(keys);
            let path = format!("crates/tui/tests/golden/{name}-{}x{}.txt", size.0, size.1);
            assert_golden(project_file(&path), session.text().as_bytes());
        }
    }
}

#[test]
fn no_line_is_wider_than_the_terminal_whatever_its_size() {
    for (name, keys) in VIEWS {
        for size in [(20, 6), (21, 7), (40, 10), (79, 23), (300, 90)] {
            let mut session = Session::of(shop(true), size);
            let lines = session.press(keys).lines();
            let widest = lines.iter().map(|line| borehole_text::width(line)).max().unwrap();
            assert!(
                widest <= usize::from(size.0) && lines.len() == usize::from(size.1),
                "{name} at {size:?}"
            );
        }
    }
    for size in [(0, 0), (1, 1), (19, 5), (80, 1), (1, 80)] {
        let mut session = Session::of(shop(true), size);
        assert_eq!(session.press("S\t>T?").lines().len(), usize::from(size.1));
    }
}

/// The keys that lead to each kind of view, including the view of changes.
const KINDS: [&str; 11] =
    ["", "/query\r\r\x1b", "S", "/query\r\r\x1bS", ">\tL", "<\tL", "T", "M", "B", "D", "?"];

/// A shop, compared with its former state.
fn compared(size: (u16, u16)) -> Session {
    Session::with(shop(true), Settings { diff: Some(changes()), ..Settings::default() }, size)
}

#[test]
fn every_view_is_drawn_at_every_small_size_beside_sources_and_without_an_overview() {
    let sizes = || (0..=30).flat_map(|columns| (0..=8).map(move |lines| (columns, lines)));
    for kind in KINDS {
        for beside in ["", "v", "o", "vo", "F", "vF"] {
            let mut session = compared((100, 30));
            session.press(&format!("{beside}{kind}"));
            for size in sizes() {
                session.size = size;
                assert_eq!(session.lines().len(), usize::from(size.1), "{kind} {beside} at {size:?}");
                if size.0 % 10 == 0 {
                    session.press(
                        "\x1b[B\x1b[C\x1b[6~\x1b[F\x1b[A\x1b[D\x1b[5~\x1b[H\x1b[<0;19;4M\x1b[<65;19;4M",
                    );
                }
            }
        }
    }
}

#[test]
fn every_view_is_drawn_on_the_widest_and_the_highest_terminal() {
    for kind in KINDS {
        let mut session = compared((100, 30));
        session.press(kind);
        for size in [(u16::MAX, 7), (21_846, 7), (20, u16::MAX)] {
            session.size = size;
            assert_eq!(session.lines().len(), usize::from(size.1), "{kind} at {size:?}");
        }
    }
}
