//! A kept screen of each view, on a small and on a large terminal.

use borehole_testkit::{assert_golden, project_file};

use crate::session::{Session, shop};

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
            let path = format!("borehole-tui/tests/golden/{name}-{}x{}.txt", size.0, size.1);
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
            let widest = lines.iter().map(|line| borehole_tui::width(line)).max().unwrap();
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
