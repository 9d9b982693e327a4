//! Claims on the explorer of heaps: how soon it is there, and how soon it answers a key.

use std::fs;
use std::rc::Rc;

use anyhow::{Result, ensure};
use borehole_heap::Graph;
use borehole_heap::retention::Follow;
use borehole_heap::rmem::MappedGraph;
use borehole_heap::views::Heap as Asked;
use borehole_tui::{Clipboard, Explorer as _, HeapApp, HeapSettings, TerminalInput};

use super::heap::HeapSetting;
use super::measure::thread_seconds;
use super::{Bench, Claim, ClaimUnit, Goal, Side};

/// Every view, a node and its referrers, lists to their ends, trees, and back.
const KEYS: &str = "jjG\rG\rG\thGpu<lllLs\r>lljllLHtj\rG\rxbc>lGljlluuUUmP'c/i\r\x1bF?jG?";

pub(crate) fn claims(bench: &Bench) -> Result<Vec<Claim>> {
    let (Some(small), Some(large)) = (HeapSetting::new(bench, 100_000)?, HeapSetting::new(bench, 1_000_000)?)
    else {
        return Ok(Vec::new());
    };
    let (small, large) = (Rc::new(small), Rc::new(large));
    let name = |objects: &str, what: &str| format!("PHP heap, {objects} objects: {what}, CPU time");
    Ok(vec![
        Claim::new(name("100000", "explorer opened"), ClaimUnit::Seconds, Goal::Value(1.0), opened(&small)),
        Claim::new(name("1000000", "explorer opened"), ClaimUnit::Seconds, Goal::Value(12.0), opened(&large))
            .once(),
        Claim::new(
            name("1000000", "slowest key"),
            ClaimUnit::Seconds,
            Goal::Value(0.016),
            slowest_key(&large),
        )
        .once(),
    ])
}

/// From the bytes of the file to the first screen.
fn opened(heap: &Rc<HeapSetting>) -> Side {
    let heap = Rc::clone(heap);
    Box::new(move || {
        let bytes = fs::read(heap.graph()?)?;
        let begin = thread_seconds()?;
        let view = MappedGraph::open(&bytes)?;
        let mut app = explorer(&view);
        ensure!(app.as_text(80, 24)[1].contains("classes"), "expected classes on the first screen");
        Ok(thread_seconds()? - begin)
    })
}

fn explorer<'g>(graph: &'g (dyn Graph + 'g)) -> HeapApp<'g> {
    HeapApp::new(Asked::new(graph, Follow::default()), HeapSettings::default())
}

struct Nobody;

impl Clipboard for Nobody {
    fn copy(&mut self, _: &str) {}
}

/// The longest that any of the keys takes, its screen included.
fn slowest_key(heap: &Rc<HeapSetting>) -> Side {
    let heap = Rc::clone(heap);
    Box::new(move || {
        let bytes = fs::read(heap.graph()?)?;
        let view = MappedGraph::open(&bytes)?;
        let mut app = explorer(&view);
        let mut slowest = 0.0_f64;
        for key in KEYS.bytes() {
            let begin = thread_seconds()?;
            app.handle(&TerminalInput::Key(vec![key]), &mut Nobody);
            app.work();
            ensure!(app.as_text(120, 40).len() == 40, "expected a screen");
            slowest = slowest.max(thread_seconds()? - begin);
        }
        Ok(slowest)
    })
}
