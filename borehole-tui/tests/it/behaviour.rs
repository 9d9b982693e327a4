//! What keys do.

use borehole_analysis::{Pattern, Query, Weight};
use borehole_tui::{Keymap, Settings};

use crate::session::{Session, deep, shop};

const SIZE: (u16, u16) = (100, 30);

fn session() -> Session {
    Session::of(shop(true), SIZE)
}

#[test]
fn the_focus_is_chosen_and_taken_back() {
    let mut session = session();
    assert!(session.status().starts_with("Db::query Db.php:88  self 620 51.7%"), "{}", session.status());
    session.press("\r");
    assert!(session.text().contains("● total 51.7% self 51.7%  Db::query Db.php:88"), "{}", session.text());
    session.press("h\r");
    assert!(
        session.text().contains("Cart::show Cart.php:12\n  callees")
            || session.text().contains("● total 41.7%"),
        "{}",
        session.text()
    );
    session.press("u");
    assert!(session.text().contains("● total 51.7%"), "{}", session.text());
    session.press("u");
    assert!(session.text().contains("entry points"), "{}", session.text());
    assert_eq!(session.press("u").status(), "nothing to undo");
}

#[test]
fn samples_are_matched_by_a_pattern_and_rows_filtered_by_a_text() {
    let mut session = session();
    session.press("mHome|Tpl\r");
    assert!(session.lines()[0].contains("220 of 1,200 samples · match Home|Tpl"), "{}", session.lines()[0]);
    session.press("/TAX\r");
    assert!(session.text().contains("by self · 0 rows"), "{}", session.text());
    session.press("\x1b\x1b");
    assert!(session.lines()[0].contains(" 1,200 samples"), "{}", session.lines()[0]);
    session.press("m(\r");
    assert_eq!(session.status(), "invalid pattern '(': unclosed group");
    session.press("/x\x7fdb\x1b");
    assert!(session.text().contains("· 13 rows"), "{}", session.text());
}

#[test]
fn lines_and_weights_change_what_is_counted() {
    let mut session = session();
    session.press("t");
    assert!(
        session.text().contains("Cart::show Cart.php:12")
            && session.text().contains("Cart::show Cart.php:14")
    );
    session.press("n");
    assert!(
        session.text().contains("75.0% Cart::show\n") || session.text().contains("75.0% Cart::show "),
        "{}",
        session.text()
    );
    session.press("w");
    assert!(session.lines()[0].contains("12.0 s time"), "{}", session.lines()[0]);
    session.press("w");
    assert!(session.lines()[0].contains("1,200 samples"), "{}", session.lines()[0]);
    session.press("ns/View\r\r>\tLr");
    assert_eq!(session.text().matches("View::render").count(), 4, "{}", session.text());
}

#[test]
fn a_stretch_of_time_selects_what_the_other_views_show() {
    let mut session = session();
    // From the start to the middle: the first half is lighter.
    session.press("Tg\r");
    assert!(session.status().starts_with("selection begun"), "{}", session.status());
    session.press("\x1b");
    session.press("\r");
    for _ in 0..22 {
        session.press("l");
    }
    session.press("\r");
    let header = session.lines()[0].clone();
    assert!(header.contains(" of 1,200 samples · 0.0 us to "), "{header}");
    session.press("P");
    assert_ne!(session.status(), "");
    session.press("\x1b");
    assert!(session.lines()[0].contains(" 1,200 samples"), "{}", session.lines()[0]);
}

#[test]
fn threads_and_labels_select_as_well() {
    let mut session = session();
    session.press("B\r");
    assert!(session.lines()[0].contains("900 of 1,200 samples · thread 11"), "{}", session.lines()[0]);
    session.press("lljj\r");
    session.press("\x1b");
    assert!(session.lines()[0].contains(" 1,200 samples"), "{}", session.lines()[0]);
    session.press("gB\r");
    assert!(session.text().contains("url=/cart"), "{}", session.text());
}

#[test]
fn profiles_without_times_say_so() {
    let mut session = Session::of(shop(false), SIZE);
    for view in ["T", "M"] {
        session.press(view);
        assert!(session.text().contains("the profile does not say when"), "{}", session.text());
        session.press("\rl\r\x1b");
    }
}

#[test]
fn profiles_of_nothing_one_sample_and_the_deepest_stacks_are_shown() {
    let keys = "\rS\tjjkklhG>LHlhj<LjhTB\r?q?P\tj\r\tk\ruuGgnnrcxbbbbyv/x\r\x1b";
    for depth in [0, 1, 20_000] {
        let mut session = Session::of(deep(depth), SIZE);
        session.press(keys);
        assert_eq!(session.lines().len(), 30, "{depth}");
    }
}

#[test]
fn names_that_a_terminal_would_obey_are_spelled_out() {
    let mut session = session();
    for keys in ["jjjjj", "\r", "S", ">", "<", "v", "y"] {
        let text = session.press(keys).text();
        assert!(!text.contains('\x1b') && !text.contains('\u{202e}'), "{text}");
    }
    assert!(session.text().contains(r"evil\x1b[2J\u{202e}<b>&"), "{}", session.text());
    assert_eq!(session.asked.copied, ["evil\u{1b}[2J\u{202e}<b>& x.php:1"]);
}

#[test]
fn the_view_is_exported_with_its_focus() {
    let mut session = session();
    session.press("/query\r\r\x1be\x15db.folded\r");
    assert_eq!(session.status(), "wrote db.folded");
    let (name, stacks) = &session.asked.exported[0];
    assert_eq!((name.as_str(), stacks.weight), ("db.folded", Weight::Samples));
    let paths: Vec<_> = stacks.rows.iter().map(|(path, weight)| (path.len(), *weight)).collect();
    assert_eq!(paths, [(1, 500), (1, 120)]);
    session.press("<e\x15/x.svg\r");
    assert_eq!(session.status(), "cannot write there");
    assert_eq!(session.asked.exported[1].1.rows[0].0.len(), 4);
}

#[test]
fn sources_stand_beside_the_frame_and_are_read_once() {
    let mut session = session();
    session.press("v");
    assert!(session.text().contains(">   88     line 88\\x1b[0m"), "{}", session.text());
    session.press("jk");
    assert_eq!(session.asked.read, ["Db.php", "Tax.php", "Db.php"]);
}

#[test]
fn a_keymap_and_a_query_are_taken_from_the_settings() {
    let keymap = Keymap::from_json(r#"{"quit": ["Z"], "flame": ["1"]}"#).unwrap();
    let query = Query { hide: Some(Pattern::new("^Kernel").unwrap()), ..Query::default() };
    let settings = Settings { keymap, query, ..Settings::default() };
    let mut session = Session::with(shop(true), settings, SIZE);
    session.press("q1");
    assert!(!session.app.is_done() && session.text().contains("flame graph"), "{}", session.text());
    assert!(!session.text().contains("Kernel"), "{}", session.text());
    assert!(session.press("Z").app.is_done());
}

#[test]
fn a_mouse_selects_enters_and_scrolls() {
    let mut session = session();
    session.press("\x1b[<0;5;5M");
    assert!(session.status().starts_with("Tax::of"), "{}", session.status());
    session.press("\x1b[<0;5;5M");
    assert!(session.text().contains("●"), "{}", session.text());
    session.press("\x1b[<65;5;5M");
    assert!(!session.status().starts_with("Tax::of"), "{}", session.status());
    session.press("\x1b[<0;99;1M\x1b[<0;60;40M");
}

#[test]
fn a_file_that_grew_keeps_the_focus() {
    let mut session = session();
    session.press("/query\r\r\x1b");
    let (profile, heat) = shop(false);
    session.app.replace(profile, heat);
    assert!(session.text().contains("● total 51.7%"), "{}", session.text());
    let (profile, heat) = deep(0);
    session.app.replace(profile, heat);
    assert!(!session.text().contains("●"), "{}", session.text());
}
