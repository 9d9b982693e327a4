//! The heap explorer as its users see it, without a terminal.

use borehole_heap::retention::Follow;
use borehole_heap::views::Heap;
use borehole_heap::{
    AttributeValue, Edge, Graph, GraphBuilder, HeapGraph, HeapSink as _, LocationType, MemoryLocation,
    NodeId, NodeType, Region, Strength,
};
use borehole_testkit::{assert_golden, project_file};
use borehole_text::width;
use borehole_tui::{Clipboard, Colours, Explorer as _, HeapApp, HeapKeymap, HeapSettings};

use crate::session::inputs;

/// Builds a heap from PHP's terms.
struct Sketch {
    builder: GraphBuilder,
    address: u64,
}

impl Sketch {
    fn new() -> Self {
        Self { builder: GraphBuilder::new(), address: 0x7f00_0020_1000 }
    }

    fn node(&mut self, parent: Option<NodeId>, link: &[u8], node_type: NodeType) -> NodeId {
        let child = self.builder.node(node_type);
        self.edge(parent, child, link, true);
        child
    }

    fn edge(&mut self, parent: Option<NodeId>, child: NodeId, link: &[u8], is_tree: bool) {
        let link = self.builder.string(link);
        self.builder.edge(Edge { parent, child, link, is_tree, strength: Strength::Strong });
    }

    fn locate(&mut self, node: NodeId, location_type: LocationType, size: u64, name: &[u8]) {
        let name = Some(self.builder.string(name));
        let location = MemoryLocation {
            class: name.filter(|_| location_type == LocationType::OBJECT),
            string: name.filter(|_| location_type == LocationType::STRING),
            refcount: Some(1),
            type_info: Some(8),
            region: Some(Region::HEAP),
            ..MemoryLocation::new(location_type, self.address, size)
        };
        self.builder.location(node, &location);
        self.address += size;
    }

    fn object(&mut self, parent: NodeId, link: &[u8], class: &[u8]) -> (NodeId, NodeId) {
        let object = self.node(Some(parent), link, NodeType::OBJECT);
        self.locate(object, LocationType::OBJECT, 56, class);
        let properties = self.node(Some(object), b"object_properties", NodeType::OBJECT_PROPERTIES);
        (object, properties)
    }

    fn string(&mut self, parent: NodeId, link: &[u8], content: &[u8]) {
        let string = self.node(Some(parent), link, NodeType::STRING);
        self.locate(string, LocationType::STRING, 24 + content.len() as u64, content);
    }

    /// An array, and the node of its elements.
    fn array(&mut self, parent: NodeId, link: &[u8], count: i64) -> NodeId {
        let array = self.node(Some(parent), link, NodeType::ARRAY_HEADER);
        self.locate(array, LocationType::ARRAY, 56, b"");
        let elements = self.node(Some(array), b"array_elements", NodeType::ARRAY_ELEMENTS);
        self.locate(elements, LocationType::ARRAY_TABLE, 320, b"");
        let key = self.builder.string(b"#count");
        self.builder.attribute(elements, key, AttributeValue::Integer(count));
        elements
    }

    /// The variables of the running function.
    fn variables(&mut self) -> NodeId {
        let frames = self.node(None, b"call_frames", NodeType::CALL_FRAMES);
        let frame = self.node(Some(frames), b"0", NodeType::CALL_FRAME);
        for (key, value) in [("function_name", "<main>"), ("lineno", "28")] {
            let key = self.builder.string(key.as_bytes());
            self.builder.attribute(frame, key, AttributeValue::Text(value.as_bytes()));
        }
        self.node(Some(frame), b"local_variables", NodeType::CALL_FRAME_VARIABLE_TABLE)
    }
}

/// A shop: a list of orders, each with its customer, whom two share; and names with terminal escapes.
fn shop() -> HeapGraph {
    let mut shop = Sketch::new();
    let variables = shop.variables();
    let orders = shop.array(variables, b"orders", 12);
    let mut customer = None;
    for number in 0..12 {
        let element = shop.node(Some(orders), number.to_string().as_bytes(), NodeType::ARRAY_ELEMENT);
        let (_, properties) = shop.object(element, b"value", b"Shop\\Order");
        shop.string(properties, b"note", format!("note of order {number} ").repeat(number + 1).as_bytes());
        match customer {
            Some(found) if number == 1 => shop.edge(Some(properties), found, b"customer", false),
            _ => {
                let (found, properties) = shop.object(properties, b"customer", b"Shop\\Customer");
                shop.string(properties, b"name", b"Ada");
                customer = Some(found);
            }
        }
    }
    let (evil, properties) =
        shop.object(variables, b"evil\x1b[2J\xe2\x80\xae", b"Evil\x1b]0;x\x07\xe2\x80\xae<b>");
    shop.edge(Some(properties), evil, b"self", false);
    shop.string(properties, "日本語".as_bytes(), b"\xff\x00\x1b[31m");
    shop.builder.finish().unwrap()
}

/// A chain in which each one holds the next.
fn chain(length: usize) -> HeapGraph {
    let mut sketch = Sketch::new();
    let mut holder = sketch.variables();
    for number in 0..length {
        let next = sketch.node(Some(holder), b"next", NodeType::OBJECT);
        if number % 1000 == 0 {
            sketch.locate(next, LocationType::OBJECT, 40, b"Link");
        }
        holder = next;
    }
    sketch.builder.finish().unwrap()
}

/// A node with this many referrers and references.
fn hub(count: usize) -> HeapGraph {
    let mut sketch = Sketch::new();
    let variables = sketch.variables();
    let (hub, _) = sketch.object(variables, b"hub", b"Hub");
    let elements = sketch.array(variables, b"list", 0);
    for number in 0..count {
        let one = sketch.node(Some(elements), number.to_string().as_bytes(), NodeType::SCALAR_VALUE);
        sketch.edge(Some(one), hub, b"hub", false);
    }
    sketch.builder.finish().unwrap()
}

#[derive(Default)]
struct Copied(Vec<String>);

impl Clipboard for Copied {
    fn copy(&mut self, text: &str) {
        self.0.push(text.to_owned());
    }
}

/// An explorer after these key presses.
struct Session<'g> {
    app: HeapApp<'g>,
    copied: Copied,
    size: (u16, u16),
}

impl<'g> Session<'g> {
    fn of(graph: &'g HeapGraph, size: (u16, u16)) -> Self {
        let graph: &'g (dyn Graph + 'g) = graph;
        let settings =
            HeapSettings { title: "shop.rmem".to_owned(), colours: Colours::None, ..HeapSettings::default() };
        let app = HeapApp::new(Heap::new(graph, Follow::default()), settings);
        let mut session = Self { app, copied: Copied::default(), size };
        session.lines();
        session
    }

    fn press(&mut self, keys: &str) -> &mut Self {
        for input in inputs(keys) {
            self.app.handle(&input, &mut self.copied);
            while self.app.is_working() {
                self.app.work();
            }
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
const VIEWS: [(&str, &str); 13] = [
    ("classes", ""),
    ("objects", "\r"),
    ("types", "b"),
    ("roots", "t"),
    ("largest", "s"),
    ("cycles", "x"),
    ("held", ">ll"),
    ("held-all", ">L"),
    ("node", "\rj\r"),
    ("holders", "j\r<l"),
    ("way", "\rp"),
    ("found", "Fada\r"),
    ("help", "?"),
];

#[test]
fn every_view_looks_as_it_did() {
    let graph = shop();
    for (name, keys) in VIEWS {
        for size in [(80, 24), (120, 40)] {
            let mut session = Session::of(&graph, size);
            session.press(keys);
            let path = format!("crates/tui/tests/golden/heap-{name}-{}x{}.txt", size.0, size.1);
            assert_golden(project_file(&path), session.text().as_bytes());
        }
    }
}

#[test]
fn lines_fit_the_terminal_and_are_escaped() {
    let graph = shop();
    for (name, keys) in VIEWS {
        for size in
            [(20, 6), (21, 7), (40, 10), (79, 23), (300, 90), (0, 0), (1, 1), (19, 5), (80, 1), (1, 80)]
        {
            let mut session = Session::of(&graph, size);
            let lines = session.press(keys).lines();
            assert_eq!(lines.len(), usize::from(size.1));
            let is_fine = |line: &String| {
                width(line) <= usize::from(size.0) && !line.contains(['\x1b', '\u{202e}', '\x07', '\0'])
            };
            assert!(lines.iter().all(is_fine), "{name} at {size:?}: {lines:?}");
        }
    }
}

#[test]
fn every_view_is_drawn_at_every_small_size_and_on_the_widest_terminal() {
    let graph = shop();
    for (name, keys) in VIEWS {
        let mut session = Session::of(&graph, (100, 30));
        session.press(keys);
        let small = (0..=30).flat_map(|columns| (0..=8).map(move |lines| (columns, lines)));
        for size in small.chain([(u16::MAX, 7), (20, u16::MAX)]) {
            session.size = size;
            assert_eq!(session.lines().len(), usize::from(size.1), "{name} at {size:?}");
            if size.0 % 10 == 0 && size.1 < 30 {
                session.press("\x1b[B\x1b[C\x1b[6~\x1b[F\x1b[A\x1b[5~\x1b[H\x1b[<65;19;4M");
            }
        }
    }
}

#[test]
fn places_can_be_revisited_back_and_forward() {
    let graph = shop();
    let mut session = Session::of(&graph, (100, 30));
    session.press("\rjj\r");
    assert!(session.lines()[1].contains("Shop\\Order #"), "{}", session.text());
    let node = session.text();
    session.press("u");
    assert!(session.text().contains("objects of Shop\\Order · 12"), "{}", session.text());
    session.press("u");
    assert!(session.text().contains("classes · 3"), "{}", session.text());
    assert_eq!(session.press("u").status(), "nothing to go back to");
    assert_eq!(session.press("U\x1b[1;3C").text(), node);
    assert_eq!(session.press("U").status(), "nothing to go forward to");
}

#[test]
fn a_tree_that_is_gone_back_to_is_open_where_it_was() {
    let graph = shop();
    for keys in [">ljljj", "\r<lj"] {
        let mut session = Session::of(&graph, (100, 30));
        let tree = session.press(keys).text();
        let node = session.press("\r").text();
        assert_ne!(tree, node, "{keys}");
        assert_eq!(session.press("u").text(), tree, "{keys}");
        assert_eq!(session.press("U").text(), node, "{keys}");
        assert_eq!(session.press("c>u\x1b[1;3D").press("u").text(), tree, "{keys}");
    }
}

#[test]
fn unfolding_ignores_rows_that_are_open() {
    let graph = chain(2_500);
    let mut session = Session::of(&graph, (100, 30));
    session.press(">");
    for _ in 0..2 {
        assert!(session.press("L").status().starts_with("unfolded the first"), "{}", session.status());
    }
    assert!(!session.press("L").status().starts_with("unfolded the first"), "{}", session.status());
}

#[test]
fn every_key_and_the_wheel_scroll_the_help() {
    let graph = shop();
    let mut session = Session::of(&graph, (60, 14));
    let top = session.press("?").text();
    let next = session.press("j").text();
    assert_ne!(next, top);
    assert_eq!(session.press("k").text(), top);
    assert_eq!(session.press("j\x1b[<65;5;5M\x1b[<64;5;5M").text(), next);
}

#[test]
fn a_filter_holds_for_bookmarks_and_for_what_is_found_meanwhile() {
    let graph = shop();
    let mut session = Session::of(&graph, (100, 30));
    session.press("\rmjm'/order\r");
    assert!(session.text().contains("bookmarks · 2 of 2"), "{}", session.text());
    session.press("jm");
    assert!(session.text().contains("bookmarks · 1 of 1"), "{}", session.text());
    assert!(session.press("m").text().contains("bookmarks · 0 of 0"), "{}", session.text());

    let graph = chain(300_000);
    let mut session = Session::of(&graph, (100, 30));
    let mut handle = |app: &mut HeapApp<'_>, keys: &str| {
        inputs(keys).iter().for_each(|input| app.handle(input, &mut session.copied));
        app.work();
    };
    handle(&mut session.app, "Flink\r");
    handle(&mut session.app, "/link\r");
    assert!(session.app.is_working());
    assert!(session.press("j").text().contains("found · 300 of 300"), "{}", session.text());
}

#[test]
fn a_path_is_copied_as_it_is() {
    let graph = shop();
    let mut session = Session::of(&graph, (100, 30));
    session.press("\r\ry");
    assert_eq!(session.status(), "copied <main>:28::$orders[11]");
    session.press("F日本語\r\ry");
    assert_eq!(session.copied.0[0], "<main>:28::$orders[11]");
    assert_eq!(session.copied.0[1], "<main>:28::$evil\u{1b}[2J\u{202e}->日本語");
    assert!(session.status().ends_with(r"$evil\x1b[2J\u{202e}->日本語"), "{}", session.status());
}

#[test]
fn nodes_are_found_by_number_address_class_content_and_path() {
    let graph = shop();
    let mut session = Session::of(&graph, (100, 30));
    assert!(session.press("g#5\r").text().contains(" #5"), "{}", session.text());
    assert_eq!(
        session.press("a#99999\r").status().split(',').next(),
        Some("unknown node: expected below #89")
    );
    assert_eq!(session.press("gx\r").status(), "expected #node or 0xaddress");
    session.press("g0x7f0000201008\r");
    assert!(session.lines()[1].contains("array(12)"), "{}", session.text());
    session.press("F0x10\r");
    assert_eq!(session.status(), "no matches for 0x10");
    session.press("FSHOP\\cust\r");
    assert!(session.text().contains("found · 11"), "{}", session.text());
    session.press("F$orders[3]->note\r");
    assert!(
        session.text().contains("found · 1\n") && session.text().contains("note of order 3"),
        "{}",
        session.text()
    );
    session.press("cn");
    assert!(session.text().contains("found · 1\n"), "{}", session.text());
}

#[test]
fn rows_are_filtered_and_bookmarks_kept() {
    let graph = shop();
    let mut session = Session::of(&graph, (100, 30));
    session.press("/CUST\r");
    assert!(session.text().contains("classes · 1 of 3"), "{}", session.text());
    session.press("\r");
    assert!(session.text().contains("objects of Shop\\Customer · 11"), "{}", session.text());
    assert!(session.press("m").status().starts_with("bookmarked #"), "{}", session.status());
    session.press("jm'");
    assert!(session.text().contains("bookmarks · 2"), "{}", session.text());
    session.press("m");
    assert!(session.text().contains("bookmarks · 1"), "{}", session.text());
    assert_eq!(session.press("\r/").status(), "only lists can be filtered; F searches the whole heap");
}

#[test]
fn a_node_shows_its_block_its_referrers_and_its_fields() {
    let graph = shop();
    let mut session = Session::of(&graph, (100, 30));
    session.press("FShop\\Customer\r\r");
    let text = session.text();
    assert!(text.contains("0x7f00002") && text.contains("chunk 0x7f0000200000, page 1"), "{text}");
    assert!(text.contains("referred to by · 2") && text.contains("->customer"), "{text}");
    assert!(text.contains("->name = \"Ada\" (3)"), "{text}");
    session.press("hj\r");
    assert!(session.lines()[1].contains("Shop\\Order"), "{}", session.text());
    assert_eq!(session.press("r").status(), "in stored order");
}

#[test]
fn a_mouse_selects_enters_and_scrolls() {
    let graph = shop();
    let mut session = Session::of(&graph, (100, 30));
    session.press("\x1b[<0;5;5M\x1b[<0;5;5M");
    assert!(session.text().contains("objects of Shop\\Customer"), "{}", session.text());
    session.press("\x1b[<65;5;5M\x1b[<0;5;4M\x1b[<0;5;4M\x1b[<0;99;1M");
    assert!(session.lines()[1].contains("Shop\\Customer"), "{}", session.text());
}

#[test]
fn empty_heaps_long_chains_and_hubs_are_walked() {
    let keys = "\r\rcbtsxj\r>LlHj<Ll\rhplGPjkr\tj\r\rFlink\rG\ruuUmy'\r?q?/x\r\x1b";
    let empty = GraphBuilder::new().finish().unwrap();
    let mut one = Sketch::new();
    one.node(None, b"call_frames", NodeType::CALL_FRAMES);
    let one = one.builder.finish().unwrap();
    for graph in [empty, one, chain(300_000), hub(100_000)] {
        let mut session = Session::of(&graph, (100, 30));
        session.press(keys);
        assert_eq!(session.lines().len(), 30);
    }
}

#[test]
fn a_hub_shows_that_rows_are_omitted() {
    let graph = hub(30_000);
    let mut session = Session::of(&graph, (100, 30));
    session.press("\r\r");
    assert!(session.text().contains("referred to by · 30,001, as stored"), "{}", session.text());
    session.press("<");
    assert_eq!(
        session.press("G").text().matches("29,901 more; Enter shows them").count(),
        1,
        "{}",
        session.text()
    );
    session.press("\rG");
    assert!(session.text().contains("28,901 more"), "{}", session.text());
}

#[test]
fn keys_are_taken_from_the_settings() {
    let keymap = HeapKeymap::from_json(r#"{"quit": ["Z"], "largest": ["1"]}"#).unwrap();
    let graph = shop();
    let settings = HeapSettings { keymap, ..HeapSettings::default() };
    let graph: &dyn Graph = &graph;
    let app = HeapApp::new(Heap::new(graph, Follow::default()), settings);
    let mut session = Session { app, copied: Copied::default(), size: (80, 24) };
    session.press("q1");
    assert!(
        !session.app.is_done() && session.text().contains("largest by retained size"),
        "{}",
        session.text()
    );
    session.press("Z");
    assert!(session.app.is_done());
}

#[test]
fn the_end_of_long_input_is_visible() {
    let graph = shop();
    for columns in [40, 80] {
        let mut session = Session::of(&graph, (columns, 24));
        session.press("Fthis is a text that is longer than the line that there is for it");
        let shown = session.text();
        assert!(shown.contains("there is for it█"), "{shown}");
    }
}
