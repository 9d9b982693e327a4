//! A diff as a flame graph: red for more time, blue for less.

use std::fmt::Write as _;

use borehole_analysis::diff::{DiffFrame, DiffMeasure, DiffNode, DiffView};
use borehole_text::{document, grouped, markup};

use crate::names::cut_end;

/// The width of the picture, of a row and of the narrowest character, in pixels.
const WIDTH: f64 = 1200.0;
const MARGIN: f64 = 10.0;
const ROW: f64 = 17.0;
const CHARACTER: f64 = 6.6;
const TOP: f64 = 62.0;
const BOTTOM: f64 = 26.0;

/// The narrowest box drawn, in pixels.
const NARROWEST: f64 = 0.3;

/// The most calls above each other that are drawn: browsers show pictures of at most 32,767 pixels.
const DEEPEST: usize = 1_800;

/// The longest name in a tooltip, in bytes.
const LONGEST_NAME: usize = 4_000;

/// A box of the picture.
struct Box {
    node: usize,
    depth: usize,
    left: f64,
    width: f64,
}

/// Draws the picture. The width of a box is the mean of before and after, so that vanished calls are visible too.
#[must_use]
pub fn diff_svg(view: &DiffView) -> String {
    let (boxes, too_deep) = boxes(&view.tree);
    let depth = boxes.iter().map(|found| found.depth + 1).max().unwrap_or(1);
    #[expect(clippy::cast_precision_loss, reason = "pixels")]
    let height = TOP + BOTTOM + depth as f64 * ROW;
    let mut svg = head(view, height, too_deep);
    for found in &boxes {
        draw(&mut svg, found, view, height);
    }
    if boxes.is_empty() {
        let _ = write!(svg, r#"<text x="{MARGIN}" y="{TOP}">no samples</text>"#);
    }
    svg.push_str("</svg>\n");
    svg
}

fn head(view: &DiffView, height: f64, too_deep: u64) -> String {
    let mut pruned = match view.pruned {
        0 => String::new(),
        count => format!("; {count} small call paths not drawn"),
    };
    if too_deep > 0 {
        let _ = write!(
            pruned,
            "; {} calls below the first {} not drawn",
            grouped(too_deep),
            grouped(DEEPEST as u64)
        );
    }
    format!(
        r##"<?xml version="1.0" encoding="UTF-8"?>
<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height}" viewBox="0 0 {WIDTH} {height}" font-family="ui-monospace,Menlo,Consolas,monospace" font-size="11">
<rect width="100%" height="100%" fill="#ffffff"/>
<text x="{MARGIN}" y="24" font-size="16" font-family="sans-serif">What changed</text>
<text x="{MARGIN}" y="44" fill="#555555" font-family="sans-serif">red: more, blue: less, grey: not significant ({}% confidence); box width: mean of both sides{pruned}</text>
"##,
        view.confidence * 100.0,
    )
}

/// The boxes that are wide enough, callers first, and the number of those that are too deep.
fn boxes(tree: &[DiffNode]) -> (Vec<Box>, u64) {
    let width_of = |node: &DiffNode| f64::midpoint(node.total_values[0], node.total_values[1]);
    let all: f64 = tree.iter().filter(|node| node.caller.is_none()).map(width_of).sum();
    let scale = if all > 0.0 { (WIDTH - 2.0 * MARGIN) / all } else { 0.0 };
    let mut depths = vec![0; tree.len()];
    for (place, node) in tree.iter().enumerate() {
        depths[place] = node.caller.map_or(0, |caller| depths[caller] + 1);
    }
    let mut order: Vec<usize> = (0..tree.len()).collect();
    order.sort_by(|&one, &other| {
        let key = |place: usize| (depths[place], tree[place].caller, &tree[place].frame);
        key(one).cmp(&key(other))
    });
    let (mut next, mut next_root) = (vec![0.0; tree.len()], MARGIN);
    let (mut boxes, mut too_deep) = (Vec::new(), 0);
    for place in order {
        let node = &tree[place];
        let width = width_of(node) * scale;
        let from = node.caller.map_or(&mut next_root, |caller| &mut next[caller]);
        let left = *from;
        *from += width;
        next[place] = left;
        if width >= NARROWEST && depths[place] < DEEPEST {
            boxes.push(Box { node: place, depth: depths[place], left, width });
        } else if width >= NARROWEST {
            too_deep += 1;
        }
    }
    (boxes, too_deep)
}

fn draw(svg: &mut String, found: &Box, view: &DiffView, height: f64) {
    let node = &view.tree[found.node];
    #[expect(clippy::cast_precision_loss, reason = "pixels")]
    let top = height - BOTTOM - (found.depth + 1) as f64 * ROW;
    let name = name(&node.frame);
    let _ = write!(
        svg,
        r#"<g><title>{}</title><rect x="{:.2}" y="{top}" width="{:.2}" height="{}" rx="1" fill="{}"/>"#,
        markup(&title(&name, node, view.measure)),
        found.left,
        (found.width - 0.2).max(0.1),
        ROW - 1.0,
        colour(node),
    );
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a number of characters")]
    let room = ((found.width - 6.0) / CHARACTER).max(0.0) as usize;
    if room >= 3 {
        let _ = write!(
            svg,
            r#"<text x="{:.2}" y="{}">{}</text>"#,
            found.left + 3.0,
            top + 12.0,
            markup(&cut(&name, room))
        );
    }
    svg.push_str("</g>\n");
}

fn name(frame: &DiffFrame) -> String {
    cut_end(&frame.function, LONGEST_NAME)
}

/// Cuts a name to the available room.
fn cut(name: &str, room: usize) -> String {
    if name.chars().count() <= room {
        return name.to_owned();
    }
    name.chars().take(room - 1).chain(['…']).collect()
}

fn title(name: &str, node: &DiffNode, measure: DiffMeasure) -> String {
    let file = node.frame.file.as_ref().map(|file| format!(" {}", document(file))).unwrap_or_default();
    let value = |value: f64| match measure {
        DiffMeasure::Share => format!("{:.3}%", value * 100.0),
        DiffMeasure::Seconds => format!("{value:.6} s"),
        DiffMeasure::Samples => format!("{value:.3} samples"),
    };
    let [before, after] = node.total_values.map(value);
    let change = value((node.total_values[1] - node.total_values[0]).abs());
    let sign = if node.total_values[1] < node.total_values[0] { '-' } else { '+' };
    let noise = if node.is_marked { "" } else { ", not significant" };
    format!("{name}{file}: {before} before, {after} after, {sign}{change}{noise}")
}

/// Red for more, blue for less; the larger the changed part, the stronger the colour.
fn colour(node: &DiffNode) -> String {
    let [before, after] = node.total_values;
    let part = (after - before) / (after + before).max(f64::MIN_POSITIVE);
    if !node.is_marked || part == 0.0 {
        return "#e4e4e7".to_owned();
    }
    // A change of half reaches the strongest colour.
    let strength = (part.abs() * 2.0).clamp(0.12, 1.0);
    let from_white = |full: f64| 255.0 - (255.0 - full) * strength;
    let [red, green, blue] =
        if part > 0.0 { [239.0, 98.0, 92.0] } else { [84.0, 140.0, 239.0] }.map(from_white);
    format!("rgb({red:.0},{green:.0},{blue:.0})")
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    fn node(caller: Option<usize>, function: &[u8], total: [f64; 2]) -> DiffNode {
        let frame = DiffFrame { function: function.to_vec(), ..DiffFrame::default() };
        DiffNode {
            caller,
            frame: Arc::new(frame),
            self_values: [0.0; 2],
            total_values: total,
            is_marked: true,
        }
    }

    #[test]
    fn boxes_stand_on_their_callers_and_hostile_names_are_text() {
        let tree = vec![
            node(None, b"<script>alert(1)</script>", [1.0, 1.0]),
            node(Some(0), b"b\x1b\"'&", [0.5, 0.0]),
            node(Some(0), b"a", [0.5, 1.0]),
        ];
        let svg = diff_svg(&DiffView { tree, confidence: 0.95, ..DiffView::default() });
        let document = roxmltree::Document::parse(&svg).unwrap();
        let rects: Vec<_> = document
            .descendants()
            .filter(|found| found.has_tag_name("g"))
            .map(|group| {
                let rect = group.children().find(|found| found.has_tag_name("rect")).unwrap();
                let number = |name| rect.attribute(name).unwrap().parse::<f64>().unwrap();
                (number("x"), number("width").round(), rect.attribute("fill").unwrap().to_owned())
            })
            .collect();
        assert_eq!(rects[0], (10.0, 1180.0, "#e4e4e7".to_owned()));
        assert_eq!((rects[1].0, rects[1].1, &*rects[1].2), (10.0, 885.0, "rgb(244,150,146)"));
        assert_eq!((rects[2].0, rects[2].1, &*rects[2].2), (895.0, 295.0, "rgb(84,140,239)"));
        assert!(!document.descendants().any(|found| found.has_tag_name("script")));
    }

    #[test]
    fn a_deep_recursion_is_drawn_to_a_limit_and_the_rest_is_said() {
        let name = vec![b'n'; 100_000];
        let tree = (0..40_000_usize).map(|depth| node(depth.checked_sub(1), &name[..1], [1.0, 1.0]));
        let mut tree: Vec<_> = tree.collect();
        tree[0] = node(None, &name, [1.0, 1.0]);
        let svg = diff_svg(&DiffView { tree, confidence: 0.95, ..DiffView::default() });
        assert_eq!(svg.matches("<rect ").count(), DEEPEST + 1);
        assert!(svg.contains("; 38,200 calls below the first 1,800 not drawn"), "{}", &svg[..1000]);
        assert!(svg.len() < 600_000, "{}", svg.len());
    }

    #[test]
    fn a_picture_without_samples_says_so() {
        assert!(diff_svg(&DiffView::default()).contains("no samples"));
    }
}
