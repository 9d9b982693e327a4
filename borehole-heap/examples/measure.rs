//! Measures.
use borehole_heap::*;
use std::io::Write;
use std::time::Instant;
fn rss(what: &str) -> String {
    let s = std::fs::read_to_string("/proc/self/status").unwrap();
    s.lines().find(|l| l.starts_with(what)).unwrap().to_owned()
}
fn cpu() -> String {
    let s = std::fs::read_to_string("/proc/self/stat").unwrap();
    let f: Vec<&str> = s.rsplit(')').next().unwrap().split_whitespace().collect();
    format!("cpu user {}0 ms sys {}0 ms", f[11], f[12])
}
fn main() {
    let n: u32 = std::env::args().nth(1).map_or(1_000_000, |a| a.parse().unwrap());
    let path = std::env::args().nth(2).unwrap_or("/tmp/graph-measure.rmem".into());
    let t = Instant::now();
    let mut b = Builder::new();
    let s = |b: &mut Builder, x: &str| b.string(x.as_bytes());
    let words: Vec<StringId> = [
        "id",
        "name",
        "tags",
        "prev",
        "w",
        "object_properties",
        "array_elements",
        "possible_unused_area",
        "value",
        "#count",
        "0",
        "1",
        "Item",
        "key",
    ]
    .iter()
    .map(|w| s(&mut b, w))
    .collect();
    let root = b.node(NodeType::GLOBAL_VARIABLES);
    b.edge(Edge { parent: None, child: root, link: words[0], is_tree: true, strength: Strength::Strong });
    let mut addr = 0x7f00_0000_0000_u64;
    let mut prev = root;
    let mut text = String::new();
    for i in 0..n {
        let add = |b: &mut Builder, p: NodeId, t: NodeType, l: StringId| {
            let c = b.node(t);
            b.edge(Edge { parent: Some(p), child: c, link: l, is_tree: true, strength: Strength::Strong });
            c
        };
        let loc = |b: &mut Builder,
                   node: NodeId,
                   t: LocationType,
                   a: u64,
                   size: u64,
                   class: Option<StringId>,
                   string: Option<StringId>| {
            b.location(
                node,
                &Location {
                    location_type: t,
                    address: a,
                    size,
                    bin_overhead: 0,
                    class,
                    string,
                    refcount: Some(1),
                    type_info: Some(8),
                    region: Some(Region::HEAP),
                },
            )
        };
        text.clear();
        std::fmt::Write::write_fmt(&mut text, format_args!("{i}")).unwrap();
        let key = b.string(text.as_bytes());
        let el = add(&mut b, root, NodeType::ARRAY_ELEMENT, key);
        let ob = add(&mut b, el, NodeType::OBJECT, words[8]);
        loc(&mut b, ob, LocationType::OBJECT, addr, 96, Some(words[12]), None);
        let props = add(&mut b, ob, NodeType::OBJECT_PROPERTIES, words[5]);
        b.attribute(props, words[9], Value::Integer(5));
        let id = add(&mut b, props, NodeType::SCALAR_VALUE, words[0]);
        b.attribute(id, words[8], Value::Integer(i64::from(i)));
        let name = add(&mut b, props, NodeType::STRING, words[1]);
        text.insert_str(0, "item-name-");
        let st = b.string(text.as_bytes());
        loc(&mut b, name, LocationType::STRING, addr + 96, 40, None, Some(st));
        let tags = add(&mut b, props, NodeType::ARRAY_HEADER, words[2]);
        loc(&mut b, tags, LocationType::ARRAY, addr + 136, 56, None, None);
        let els = add(&mut b, tags, NodeType::ARRAY_ELEMENTS, words[6]);
        loc(&mut b, els, LocationType::ARRAY_TABLE, addr + 192, 32, None, None);
        b.attribute(els, words[9], Value::Integer(2));
        let e0 = add(&mut b, els, NodeType::ARRAY_ELEMENT, words[10]);
        let sc = add(&mut b, e0, NodeType::SCALAR_VALUE, words[8]);
        b.attribute(sc, words[8], Value::Integer(i64::from(i)));
        let e1 = add(&mut b, els, NodeType::ARRAY_ELEMENT, words[11]);
        let _s1 = add(&mut b, e1, NodeType::STRING, words[8]);
        let over = add(&mut b, tags, NodeType::ARRAY_POSSIBLE_OVERHEAD, words[7]);
        loc(&mut b, over, LocationType::ARRAY_TABLE_OVERHEAD, addr + 224, 96, None, None);
        let w = add(&mut b, props, NodeType::SCALAR_VALUE, words[4]);
        b.attribute(w, words[8], Value::Float(0.5));
        for _ in 0..3 {
            b.edge(Edge {
                parent: Some(props),
                child: prev,
                link: words[3],
                is_tree: false,
                strength: Strength::Strong,
            });
        }
        prev = ob;
        addr += 320;
    }
    println!("sink    {:?} {} {}", t.elapsed(), rss("VmRSS"), cpu());
    let t1 = Instant::now();
    let g = b.finish().unwrap();
    println!("finish  {:?} {} {} {}", t1.elapsed(), rss("VmRSS"), rss("VmHWM"), cpu());
    let c = g.counts();
    println!("{c:?} bytes {} per node {:.1}", g.memory_bytes(), g.memory_bytes() as f64 / c.nodes as f64);
    let t = Instant::now();
    rmem::write(&g, std::io::sink()).unwrap();
    println!("encode  {:?}", t.elapsed());
    let t = Instant::now();
    let mut f = std::fs::File::create(&path).unwrap();
    rmem::write(&g, &mut f).unwrap();
    f.flush().unwrap();
    println!("write   {:?} {} bytes {}", t.elapsed(), std::fs::metadata(&path).unwrap().len(), rss("VmHWM"));
    let t = Instant::now();
    json::write(&g, json::Layout::Compact, std::io::sink()).unwrap();
    println!("json    {:?}", t.elapsed());
    let t = Instant::now();
    heapsnapshot::write(&g, std::io::sink()).unwrap();
    println!("heapsnapshot {:?}", t.elapsed());
    let t = Instant::now();
    hprof::write(&g, std::io::sink()).unwrap();
    println!("hprof   {:?} {}", t.elapsed(), rss("VmHWM"));
    let t = Instant::now();
    let _ = info(&g);
    println!("info    {:?}", t.elapsed());
    drop(g);
    let bytes = std::fs::read(&path).unwrap();
    let t = Instant::now();
    let v = rmem::View::open(&bytes).unwrap();
    println!("open    {:?}", t.elapsed());
    let t = Instant::now();
    v.check().unwrap();
    println!("check   {:?}", t.elapsed());
    let t = Instant::now();
    let p = TreeParents::of(&v);
    println!("parents {:?} depth {}", t.elapsed(), p.path(NodeId(c.nodes as u32 - 1)).len());
    std::fs::remove_file(&path).unwrap();
}
