//! The effects of keys.

use borehole_analysis::{Pattern, Query};
use borehole_tui::{Keymap, Settings};

use crate::session::{Session, changes, deep, pool, shop, shop_with};

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
fn long_names_leave_room_for_facts() {
    let title = format!("/srv/{}shop.rbt", "release/".repeat(20));
    let settings = || Settings { title: title.clone(), ..Settings::default() };
    let mut session = Session::with(shop(true), settings(), SIZE);
    session.press("mHome|Tpl\r");
    let header = session.lines()[0].clone();
    assert!(
        header.starts_with(" …") && header.ends_with("/shop.rbt · 220 of 1,200 samples · match Home|Tpl"),
        "{header}"
    );
    assert_eq!(header.chars().count(), 100);
    let mut narrow = Session::with(shop(true), settings(), (40, 12));
    narrow.press("mHome|Tpl\r");
    let header = narrow.lines()[0].clone();
    assert!(header.starts_with(" …ase/shop.rbt · 220 of 1,200 samples ·"), "{header}");
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
fn a_time_selection_filters_other_views() {
    let mut session = session();
    // From the start to the middle: the first half is lighter.
    session.press("Tg\r");
    assert!(session.status().starts_with("selection started"), "{}", session.status());
    session.press("\x1b");
    session.press("\r");
    for _ in 0..22 {
        session.press("l");
    }
    session.press("\r");
    let header = session.lines()[0].clone();
    assert!(header.contains(" of 1,200 samples · 0.000 s to "), "{header}");
    session.press("P");
    assert_ne!(session.status(), "");
    session.press("\x1b");
    assert!(session.lines()[0].contains(" 1,200 samples"), "{}", session.lines()[0]);
}

/// The time under the cursor of a time view.
fn time_under_cursor(session: &mut Session) -> String {
    let text = session.text();
    text.split_once(" (Enter").unwrap().0.rsplit_once("at ").unwrap().1.to_owned()
}

#[test]
fn a_pending_time_selection_survives_resizing() {
    // The overview is hidden, the terminal is resized, another view is shown.
    for change in ["o", "resize", "M"] {
        let mut session = session();
        session.press(&format!("T{}", "l".repeat(20)));
        let from = time_under_cursor(&mut session);
        session.press("\r");
        match change {
            "resize" => session.size = (140, 40),
            keys => drop(session.press(keys).text()),
        }
        let to = time_under_cursor(&mut session);
        let seconds = |text: &str| text.trim_end_matches(" s").parse::<f64>().unwrap();
        // The time of its current column may be a little earlier.
        assert!((0.0..=1.0).contains(&(seconds(&from) - seconds(&to))), "{change}: {from} and {to}");
        session.press("l\r");
        let header = session.lines()[0].clone();
        assert!(header.contains(&format!(" · {from} to ")), "{change}: {from}, {header}");
    }
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
fn threads_of_one_number_are_selected_by_their_process() {
    let mut session = Session::of(pool(), SIZE);
    session.press("B\r");
    let header = session.lines()[0].clone();
    assert!(header.ends_with("30 of 60 samples · thread 1 of 10"), "{header}");
    assert!(session.text().contains("thread 1 of 20  20"), "{}", session.text());
    session.press("j\r");
    let header = session.lines()[0].clone();
    assert!(header.ends_with("20 of 60 samples · thread 1 of 20"), "{header}");
    // The process that was selected with the thread is deselected with it.
    session.press("\r");
    assert!(session.lines()[0].ends_with("· 60 samples"), "{}", session.lines()[0]);
    // A process that was selected explicitly stays.
    session.press("l\rh\r");
    assert!(
        session.lines()[0].ends_with("30 of 60 samples · thread 1 · process 10"),
        "{}",
        session.lines()[0]
    );
    session.press("\r");
    assert!(session.lines()[0].ends_with("40 of 60 samples · process 10"), "{}", session.lines()[0]);
    assert!(!session.text().contains("of 20"), "{}", session.text());
}

#[test]
fn profiles_without_times_say_so() {
    for size in [SIZE, (80, 24)] {
        let mut session = Session::of(shop(false), size);
        for view in ["T", "M"] {
            session.press(view);
            assert!(session.text().contains("this profile has no timestamps"), "{}", session.text());
            session.press("\rl\r\x1b");
        }
    }
}

#[test]
fn extreme_profiles_are_shown() {
    let keys = "\rS\tjjkklhG>LHlhj<LjhTB\r?q?P\tj\r\tk\ruuGgnnrcxbbbbyv/x\r\x1b";
    for depth in [0, 1, 20_000] {
        let mut session = Session::of(deep(depth), SIZE);
        session.press(keys);
        assert_eq!(session.lines().len(), 30, "{depth}");
    }
}

#[test]
fn control_characters_in_names_are_shown_escaped() {
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
    assert_eq!(session.status(), "wrote db.folded: 620 samples");
    let (name, stacks) = &session.asked.exported[0];
    let found: Vec<_> = stacks.iter().map(|stack| (stack.frames.len(), stack.sum, stack.period_ns)).collect();
    assert_eq!(
        (name.as_str(), &*found),
        ("db.folded", &[(1, 500, Some(10_000_000)), (1, 120, Some(10_000_000))][..])
    );
    session.press("<e\x15/x.svg\r");
    assert_eq!(session.status(), "cannot write there");
    assert_eq!(session.asked.exported[1].1[0].frames.len(), 4);
    session.press("e\x15db.rbt\r");
    assert_eq!(session.status(), "wrote db.rbt: 620 samples; rbt cannot hold everything");
}

#[test]
fn sources_are_shown_beside_the_frame_and_read_once() {
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

/// The bytes of a mouse press at a cell, counted from 1.
fn press_at(column: u16, line: u16) -> String {
    format!("\x1b[<0;{column};{line}M")
}

#[test]
fn a_second_click_selects_a_thread_and_a_first_one_does_not() {
    for keys in ["B", "\rB", "\rB\t\t"] {
        let mut session = session();
        session.press(keys);
        let second_row = press_at(60, 5);
        session.press(&second_row);
        assert!(!session.lines()[0].contains("thread"), "{keys}: {}", session.lines()[0]);
        session.press(&second_row);
        assert!(session.lines()[0].contains("300 of 1,200 samples · thread 12"), "{}", session.lines()[0]);
        // There is nothing to select below the last row.
        session.press(&press_at(60, 20).repeat(3));
        assert!(session.lines()[0].contains("thread 12"), "{}", session.lines()[0]);
    }
}

#[test]
fn clicks_select_a_stretch_of_time_and_none_beyond_the_end() {
    for (view, keys, [one, two]) in
        [("T", "", [60, 70]), ("T", "\r", [60, 70]), ("M", "", [41, 43]), ("M", "\r", [41, 43])]
    {
        let mut session = session();
        session.press(&format!("{keys}{view}"));
        session.press(&press_at(one, 5));
        assert!(!session.status().starts_with("selection started"), "{view}");
        session.press(&press_at(one, 5));
        assert!(session.status().starts_with("selection started"), "{view} {}", session.status());
        session.press(&press_at(two, 5)).press(&press_at(two, 5));
        assert!(session.lines()[0].contains(" s to "), "{view} {}", session.lines()[0]);
    }
    let mut session = session();
    session.press("M").press(&press_at(99, 5));
    assert_eq!(time_under_cursor(&mut session), "9.000 s");
}

#[test]
fn a_second_click_is_one_on_the_same_row_though_other_rows_are_of_the_same_function() {
    let mut session = session();
    session.press(">\tL/View\r").press(&press_at(60, 5)).press(&press_at(60, 4));
    assert!(session.status().starts_with("View::render"), "{}", session.text());
    assert!(session.text().contains("▸ call tree\n"), "{}", session.text());
    session.press(&press_at(60, 4));
    assert!(session.text().contains("callees · total 8.3% self 0.0% · View::render"), "{}", session.text());
}

#[test]
fn a_click_in_the_flame_graph_reaches_as_deep_as_the_screen() {
    let mut session = session();
    session.press("S");
    let lines = session.lines();
    let (line, column) = (lines.iter().enumerate().skip(2))
        .find_map(|(line, text)| Some((line, text.find("Db::query")?)))
        .expect("the leaf of the most stacks is drawn");
    let [column, line] =
        [lines[line][..column].chars().count(), line].map(|place| u16::try_from(place + 1).unwrap());
    session.press(&press_at(column, line));
    assert!(session.status().starts_with("Db::query"), "{}", session.text());
}

#[test]
fn a_file_that_grew_keeps_the_focus() {
    let mut session = session();
    session.press("/query\r\r\x1b");
    let (profile, heat) = shop(false);
    session.app.replace(profile, heat, None);
    assert!(session.text().contains("● total 51.7%"), "{}", session.text());
    let (profile, heat) = deep(0);
    session.app.replace(profile, heat, None);
    assert!(!session.text().contains("●"), "{}", session.text());
}

#[test]
fn samples_that_are_weighed_by_time_are_exported_as_samples() {
    let mut session = session();
    session.press("e\x15all.rbt\rw");
    assert!(session.lines()[0].contains("12.0 s time"), "{}", session.lines()[0]);
    session.press("e\x15time.rbt\r");
    let [(_, all), (_, by_time)] = &session.asked.exported[..] else { panic!("two exports") };
    assert_eq!(all, by_time);
    assert_eq!(all.iter().map(|stack| stack.sum).sum::<i64>(), 1_200);
}

/// An addition to the shop that is stored before everything else, and has more samples than most of it.
const FURTHER: [(&str, u64); 3] = [
    ("main index.php 7;Kernel::handle Kernel.php 40;Api::show Api.php 3;Db::query Db.php 88", 40),
    ("main index.php 7;Kernel::handle Kernel.php 40;Home::show Home.php 9;Db::query Db.php 88", 30),
    ("cron cron.php 1;Mail::send Mail.php 4", 45),
];

#[test]
fn views_of_time_and_threads_show_a_file_that_has_grown_before_a_key_is_pressed() {
    let mut session = session();
    session.press("T");
    assert!(session.text().contains("thread 12"), "{}", session.text());
    let (profile, heat) = shop_with(&FURTHER, true);
    session.app.replace(profile, heat, None);
    assert!(session.text().contains("thread 12"), "{}", session.text());
    session.press("B");
    assert!(session.text().contains("thread 9 of 7  1,150"), "{}", session.text());
    let (profile, heat) = shop(true);
    session.app.replace(profile, heat, None);
    assert!(!session.text().contains("thread 9"), "{}", session.text());
}

#[test]
fn the_cursor_stays_on_its_thread_when_others_are_added() {
    let mut session = session();
    session.press("Bj");
    let (profile, heat) = shop_with(&FURTHER, true);
    session.app.replace(profile, heat, None);
    session.press("\r");
    assert!(session.lines()[0].ends_with("300 of 2,350 samples · thread 12 of 7"), "{}", session.lines()[0]);
}

#[test]
fn timelines_follow_the_focus() {
    let mut session = session();
    let bars = |session: &mut Session| {
        let lines = session.lines();
        let bars = lines.iter().map(|line| line.chars().skip(37).collect::<String>());
        bars.skip(3).take(4).collect::<Vec<_>>()
    };
    session.press("T");
    let all = bars(&mut session);
    // Templates are rendered in one of the threads only.
    session.press("/Tpl\r");
    session.press("O\r");
    assert!(session.text().contains("self 8.3% · Tpl::echo"), "{}", session.text());
    let of_templates = bars(&mut session);
    assert_ne!(of_templates, all);
    session.press("u");
    assert_eq!(bars(&mut session), all);
}

#[test]
fn open_rows_and_cursors_survive_growth() {
    let mut session = session();
    session.press(">\tljlljl");
    let tree = |session: &mut Session| {
        let text = session.text();
        let names = text.lines().filter_map(|line| line.split_once("% ")?.1.split_once("% "));
        names
            .map(|(_, name)| name.trim_end().to_owned())
            .filter(|name| name.contains(['▾', '▸']))
            .collect::<Vec<_>>()
    };
    let (before, status) = (tree(&mut session), session.status());
    let (profile, heat) = shop_with(&FURTHER, true);
    session.app.replace(profile, heat, None);
    let after = tree(&mut session);
    let new = |name: &&String| before.contains(name);
    assert_eq!(after.iter().filter(new).count(), before.len(), "{before:#?} {after:#?}");
    assert!(after.len() > before.len(), "{before:#?} {after:#?}");
    let name = |status: &str| status.split("  self").next().map(str::to_owned);
    assert_eq!(name(&session.status()), name(&status));

    // The overview and the panes move their rows.
    session.press("PO");
    for keys in ["jjj", "Og\rhj"] {
        session.press(keys);
        let before = name(&session.status());
        let (profile, heat) = shop(true);
        session.app.replace(profile, heat, None);
        assert_eq!(name(&session.status()), before, "{keys}");
        let (profile, heat) = shop_with(&FURTHER, true);
        session.app.replace(profile, heat, None);
        assert_eq!(name(&session.status()), before, "{keys}");
    }
    session.press("uSjjj");
    let before = name(&session.status());
    assert!(before.as_ref().is_some_and(|name| name.starts_with("Db::query")), "{before:?}");
    let (profile, heat) = shop(true);
    session.app.replace(profile, heat, None);
    assert_eq!(name(&session.status()), before);
    // The views in between have other widths, or none.
    for view in ["T", "P", "B"] {
        session.press(view);
        let (profile, heat) = shop_with(&FURTHER, true);
        session.app.replace(profile, heat, None);
        session.press("S");
        assert_eq!(name(&session.status()), before, "{view}");
    }
    let (profile, heat) = deep(1);
    session.app.replace(profile, heat, None);
    assert!(session.status().starts_with("f0 x.php:1"), "{}", session.status());
}

/// The shop, compared with its former state.
fn compared() -> Session {
    Session::with(shop(true), Settings { diff: Some(changes()), ..Settings::default() }, SIZE)
}

#[test]
fn changes_are_filtered_and_name_unused_filters() {
    let mut session = compared();
    let title = |session: &mut Session| {
        let text = session.text();
        let line = text.lines().find(|line| line.contains("▸ changes") || line.contains("flame graph"));
        line.unwrap().trim_end().chars().skip(37).collect::<String>()
    };
    session.press("D");
    assert_eq!(title(&mut session), "▸ changes; * is significant");
    session.press("/MAIL\r");
    assert!(session.text().contains("* Mail::send") && !session.text().contains("Tpl::echo\n"));
    session.press("\x1bmCart\r");
    assert_eq!(title(&mut session), "▸ changes; * is significant, ignoring the match");
    session.press("m\x15\rT\rl\rD");
    assert_eq!(title(&mut session), "▸ changes; * is significant, ignoring the time");
    session.press("S");
    assert!(title(&mut session).starts_with("▸ flame graph, + red grew, - blue shrank, ignoring the time"));
}

#[test]
fn changes_are_updated_when_a_file_grows() {
    let mut session = compared();
    session.press("Dj");
    assert!(session.status().starts_with("Tpl::echo"), "{}", session.status());
    let mut after = changes();
    after.functions.remove(0);
    let (profile, heat) = shop(true);
    session.app.replace(profile, heat, Some(after));
    assert!(session.status().starts_with("Tpl::echo"), "{}", session.status());
    assert!(!session.text().contains("* Db::query"), "{}", session.text());
    // The colours of the flame graph come from it.
    assert!(!session.press("S").text().contains("+Db::query"), "{}", session.text());
}

#[test]
fn the_cursor_moves_when_the_pane_of_callers_closes() {
    for back in ["\x1b", "u"] {
        let mut session = session();
        session.press("\rh").press(back);
        assert!(session.text().contains("▸ entry points"), "{}", session.text());
        let first = session.status();
        assert_ne!(session.press("j").status(), first);
    }
    let mut session = session();
    session.press("\rh");
    let (profile, heat) = deep(1);
    session.app.replace(profile, heat, None);
    assert!(session.text().contains("▸ entry points"), "{}", session.text());
}

#[test]
fn every_key_moves_along_the_heat_map() {
    let mut session = session();
    session.press("M");
    for (keys, expected) in
        [("G", "9"), ("k", "8"), ("j", "9"), ("g", "0"), ("\x1b[6~", "9"), ("\x1b[5~", "0")]
    {
        let at = time_under_cursor(session.press(keys));
        assert_eq!(at.split('.').next(), Some(expected), "{keys:?}");
    }
}

#[test]
fn every_key_and_the_wheel_scroll_the_help() {
    let mut session = Session::of(shop(true), (60, 14));
    let top = session.press("?").text();
    let next = session.press("j").text();
    assert_ne!(next, top);
    assert_eq!(session.press("k").text(), top);
    assert_eq!(session.press("j\x1b[<65;5;5M\x1b[<64;5;5M").text(), next);
    let end = session.press("G").text();
    assert_eq!(session.press("\x1b[6~j").text(), end);
    assert_ne!(session.press("k").text(), end);
}

#[test]
fn unfolding_ignores_rows_that_are_open() {
    let mut session = Session::of(deep(18_000), SIZE);
    session.press(">\t");
    for _ in 0..3 {
        assert!(session.press("L").status().starts_with("unfolded the first"), "{}", session.status());
    }
    assert!(!session.press("L").status().starts_with("unfolded the first"), "{}", session.status());
}

#[test]
fn views_that_the_focus_does_not_narrow_say_so() {
    let mut session = session();
    assert!(session.press("B").text().contains("▸ by [thread]  process  url\n"), "{}", session.text());
    session.press("O\rB\t");
    assert!(session.text().contains("by [thread]  process  url, ignoring the focus\n"), "{}", session.text());
    session.press("M");
    assert!(session.text().contains("heat map, all samples: second by offset in it\n"));
    let (profile, mut heat) = shop(true);
    heat.column_ns *= 4;
    session.app.replace(profile, heat, None);
    assert!(session.text().contains("heat map, all samples: 4 seconds by offset in them\n"));
}

#[test]
fn a_long_name_makes_room_for_the_numbers_of_the_row_under_the_cursor() {
    let mut session = Session::of(shop(true), (50, 12));
    assert_eq!(session.status(), "Db::query Db.php…  self 620 51.7%, total 620 51.7%");
    session.press("A");
    assert_eq!(session.status(), "…:query Db.php:88  self 620 51.7%, total 620 51.7%");
}

#[test]
fn keys_without_a_character_type_nothing() {
    let mut session = session();
    session.press("/\x1b[D\x1b[A\x1b[5~db\x1b[C");
    assert_eq!(session.status(), "filter rows: db█");
}

#[test]
fn messages_are_escaped_for_terminals() {
    let mut session = session();
    session.app.say("cannot read evil\x1b[2J\u{202e}.rbt");
    assert_eq!(session.status(), r"cannot read evil\x1b[2J\u{202e}.rbt");
}
