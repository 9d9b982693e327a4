//! Flame graphs, read back by an independent XML parser.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Read as _;

use borehole_formats::flamegraph::{Direction, ExportOptions, Exporter, NameStyle};
use borehole_model::Segment;
use borehole_testkit::Scratch;
use borehole_testkit::peers::{HEADLESS, Peer, peer};
use roxmltree::Document;

use crate::flat::{FlatFrame, FlatSample, play, rbt_samples};

fn draw(samples: &[FlatSample], options: ExportOptions) -> String {
    let mut svg = Vec::new();
    let mut exporter = Exporter::new(&mut svg, options);
    play(samples, &Segment::default(), &mut exporter).unwrap();
    drop(exporter);
    String::from_utf8(svg).unwrap()
}

/// The tooltips of the frames with their count: `name (12 samples, 80.00%)`.
fn frames(svg: &str) -> Vec<(String, u64)> {
    let options = roxmltree::ParsingOptions { allow_dtd: true, ..Default::default() };
    let document = Document::parse_with_options(svg, options).expect("well-formed XML");
    let titles =
        document.descendants().filter(|node| node.has_tag_name(("http://www.w3.org/2000/svg", "title")));
    titles.map(|title| tooltip(title.text().expect("a tooltip"))).collect()
}

fn tooltip(text: &str) -> (String, u64) {
    let (name, rest) = text.rsplit_once(" (").expect("a count");
    let count = rest.split(' ').next().unwrap().replace(',', "");
    (name.to_owned(), count.parse().unwrap())
}

fn sample(names_root_first: &str, count: u64) -> FlatSample {
    let frame = |name: &str| FlatFrame { function: name.into(), ..FlatFrame::default() };
    let frames_leaf_first = names_root_first.split(';').rev().map(frame).collect();
    FlatSample { frames_leaf_first, count, ..FlatSample::default() }
}

#[test]
fn frames_cover_the_samples() {
    let samples = [sample("main;a;b", 60), sample("main;a", 30), sample("main", 10), sample("main;c", 100)];
    let frames: BTreeMap<_, _> = frames(&draw(&samples, ExportOptions::default())).into_iter().collect();
    let expected = [("a", 90), ("all", 200), ("b", 60), ("c", 100), ("main", 200)];
    assert_eq!(frames, expected.map(|(name, count)| (name.to_owned(), count)).into());
}

#[test]
fn a_caller_is_one_box() {
    let samples =
        [sample("main;f1", 10), sample("main;f10;b", 20), sample("main;f1;a", 30), sample("main;f1 x", 5)];
    let mut frames = frames(&draw(&samples, ExportOptions::default()));
    frames.retain(|(name, _)| name.starts_with('f'));
    frames.sort();
    assert_eq!(frames, [("f1", 40), ("f1 x", 5), ("f10", 20)].map(|(name, count)| (name.to_owned(), count)));
}

#[test]
fn samples_of_real_files_are_all_there() {
    for name in ["native.rbt", "multi_segment.rbt", "pid_samples.rbt", "zero_depth.rbt", "unicode.rbt"] {
        let samples = rbt_samples(name);
        let total = samples.iter().map(|sample| sample.count).sum::<u64>();
        let frames = frames(&draw(&samples, ExportOptions::default()));
        assert!(frames.contains(&("all".to_owned(), total)), "{name}: {frames:?}");
        let roots: u64 =
            samples.iter().filter(|sample| sample.frames_leaf_first.is_empty()).map(|s| s.count).sum();
        let empty = frames.iter().find(|(name, _)| name == "[empty stack]").map_or(0, |(_, count)| *count);
        assert_eq!(empty, roots, "{name}");
    }
}

#[test]
fn narrow_boxes_do_not_change_others() {
    let samples: Vec<FlatSample> = (1..3000)
        .map(|number: u64| {
            sample(&format!("main;{};{};leaf{number}", number % 7, number % 400), 1 + 30_000 / number)
        })
        .collect();
    let folded = |sample: &FlatSample| {
        let names =
            sample.frames_leaf_first.iter().rev().map(|frame| String::from_utf8_lossy(&frame.function));
        format!("{} {}", names.collect::<Vec<_>>().join(";"), sample.count)
    };
    let lines: Vec<String> = samples.iter().map(folded).collect();
    let mut whole = Vec::new();
    let mut drawing = inferno::flamegraph::Options::default();
    inferno::flamegraph::from_lines(&mut drawing, lines.iter().map(String::as_str), &mut whole).unwrap();
    let expected = frames(&String::from_utf8(whole).unwrap());
    assert!((300..3000).contains(&expected.len()), "{}", expected.len());
    let drawn = frames(&draw(&samples, ExportOptions::default()));
    assert_eq!(drawn.len(), expected.len());
    let (drawn, expected): (BTreeSet<_>, BTreeSet<_>) =
        (drawn.into_iter().collect(), expected.into_iter().collect());
    assert_eq!(drawn.symmetric_difference(&expected).collect::<Vec<_>>(), Vec::<&(String, u64)>::new());
}

#[test]
fn names_that_xml_cannot_hold_do_not_break_it() {
    let mut odd = sample("main;class@anonymous\0/a.php:3$0;<a href=\"x\">&]]>\x1b[0m\u{ffff}", 3);
    odd.frames_leaf_first[0].file = Some(b"/bad\xff\xfe.php".to_vec());
    odd.frames_leaf_first[0].line = Some(7);
    let frames = frames(&draw(&[odd], ExportOptions::default()));
    let has = |name: &str| frames.iter().any(|(frame, count)| frame == name && *count == 3);
    assert!(has("class@anonymous\\x00/a.php:3$0"), "{frames:?}");
    assert!(has("<a href=\"x\">&]]>\\x1b[0m\u{fffd} /bad\u{fffd}\u{fffd}.php:7"), "{frames:?}");
}

#[test]
fn the_same_profile_is_the_same_picture() {
    let samples = rbt_samples("multi_segment.rbt");
    assert_eq!(draw(&samples, ExportOptions::default()), draw(&samples, ExportOptions::default()));
}

#[test]
fn options_are_obeyed() {
    let options = ExportOptions {
        title: "Nights & <days>".to_owned(),
        count_name: "ticks".to_owned(),
        direction: Direction::Icicles,
        names: NameStyle::Function,
    };
    let samples = rbt_samples("run_of_3.rbt");
    let svg = draw(&samples, options);
    let document = Document::parse_with_options(
        &svg,
        roxmltree::ParsingOptions { allow_dtd: true, ..Default::default() },
    )
    .unwrap();
    assert!(document.descendants().any(|node| node.text() == Some("Nights & <days>")));
    assert!(svg.contains(" ticks, "));
    assert!(frames(&svg).iter().all(|(name, _)| !name.contains(".php:")));
    assert_ne!(
        svg,
        draw(&samples, ExportOptions { direction: Direction::Icicles, ..ExportOptions::default() })
    );
}

#[test]
fn a_profile_without_samples_is_a_picture_that_says_so() {
    let svg = draw(&[], ExportOptions::default());
    assert_eq!(frames(&svg), []);
    assert!(svg.contains("No valid input"), "{svg}");
}

#[test]
fn more_samples_than_can_be_counted_are_an_error() {
    let samples = [sample("a", u64::MAX), sample("b", 1)];
    let mut exporter = Exporter::new(std::io::sink(), ExportOptions::default());
    let error = play(&samples, &Segment::default(), &mut exporter).unwrap_err();
    assert!(error.to_string().starts_with("too many samples for a flame graph"), "{error}");
}

/// Renders a page in a real browser and returns a PNG of `width` by `height` points.
fn screenshot(chromium: &Peer, page: &[u8], width: u32, height: u32) -> Vec<u8> {
    let scratch = Scratch::new();
    let page = scratch.write("page.svg", page);
    let picture = scratch.path("picture.png");
    let shot = [
        format!("--user-data-dir={}", scratch.path("profile").display()),
        format!("--window-size={width},{height}"),
        format!("--screenshot={}", picture.display()),
        format!("file://{}", page.display()),
    ];
    let output = chromium.run(&[&HEADLESS[..], &shot.each_ref().map(String::as_str)].concat());
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    std::fs::read(picture).unwrap()
}

/// The width and height of a PNG, and the share of its bytes that differ from those to their left or above, which remain
/// when its rows are decompressed but not added up.
fn picture(png: &[u8]) -> (u32, u32, f64) {
    let number = |at: usize| u32::from_be_bytes(png[at..at + 4].try_into().unwrap());
    let (width, height) = (number(16), number(20));
    let (mut at, mut compressed) = (8, Vec::new());
    while at < png.len() {
        let length = usize::try_from(number(at)).unwrap();
        if &png[at + 4..at + 8] == b"IDAT" {
            compressed.extend_from_slice(&png[at + 8..at + 8 + length]);
        }
        at += length + 12;
    }
    let mut rows = Vec::new();
    flate2::read::ZlibDecoder::new(&*compressed).read_to_end(&mut rows).unwrap();
    let changes = u32::try_from(rows.iter().filter(|&&byte| byte != 0).count()).unwrap();
    (width, height, f64::from(changes) / f64::from(u32::try_from(rows.len()).unwrap()))
}

#[test]
fn a_browser_shows_a_picture() {
    let Some(chromium) = peer("chromium") else { return };
    let svg = draw(&rbt_samples("multi_segment.rbt"), ExportOptions::default());
    let (width, height, changes) = picture(&screenshot(&chromium, svg.as_bytes(), 1200, 800));
    let empty = b"<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"1200\" height=\"800\"/>";
    let (.., blank) = picture(&screenshot(&chromium, empty, 1200, 800));
    assert_eq!((width, height), (1200, 800));
    assert!(changes > 10.0 * blank && changes > 0.01, "{changes}, and {blank} of a blank page");
}
