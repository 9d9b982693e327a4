//! Claims on the explorer: how soon its first screen is there, and how soon it answers a key.

use std::fs::File;
use std::hint::black_box;
use std::io::BufReader;
use std::path::Path;

use anyhow::{Result, ensure};
use borehole_analysis::{
    Calls, HeatMap, HeatMapSink, Profile, ProfileBuilder, Query, Selection, Tree, Weight,
};
use borehole_formats::{ReadOptions, rbt};
use borehole_model::{Context, Frame, FrameId, ProfileSink as _, Sample, Segment, Tables, Tee};
use borehole_testkit::fuzzing::Random;
use borehole_tui::{App, Decoder, Host, Settings, Stacks};

use super::claims::{Traces, name};
use super::measure::thread_seconds;
use super::{Claim, Goal, Side, Unit};

/// A terminal that people use.
const SIZE: (u16, u16) = (120, 40);

/// A key of each sort: along lists, between views, through the tree, and one that counts everything anew.
const KEYS: [&str; 14] = ["j", "\r", "S", "\t", "j", ">", "L", "<", "l", "T", "M", "B", "P", "u"];

const SAMPLES: usize = 1_000_000;
const STACKS: usize = 100_000;
const DEPTH: usize = 30;

pub(crate) fn claims(traces: &Traces) -> Result<Vec<Claim>> {
    let first = |path: &Path, goal| {
        let what = format!("the explorer's first screen of {}, CPU time", name(path));
        Claim::new(what, Unit::Seconds, Goal::Value(goal), first_screen(path))
    };
    let shape = format!("{SAMPLES} samples over {STACKS} stacks, {DEPTH} deep");
    let tree = format!("the call tree of {shape}, CPU time");
    let key = format!("the slowest of {} keys in the explorer, {shape}, CPU time", KEYS.len());
    Ok(vec![
        first(&traces.timed, 0.150),
        first(&traces.hundred_million, 6.0).once(),
        first(&traces.restless, 6.0).once(),
        Claim::new(tree, Unit::Seconds, Goal::Value(0.100), call_tree()?),
        Claim::new(key, Unit::Seconds, Goal::Value(0.016), slowest_key()?),
    ])
}

/// Reads a trace and draws it.
fn first_screen(path: &Path) -> Side {
    let path = path.to_owned();
    Box::new(move || {
        let begin = thread_seconds()?;
        let (profile, heat) = read(&path)?;
        let mut app = App::new(profile, heat, Settings::default());
        ensure!(app.as_text(SIZE.0, SIZE.1).len() == 40, "expected 40 lines");
        Ok(thread_seconds()? - begin)
    })
}

fn read(path: &Path) -> Result<(Profile, HeatMap)> {
    let mut tables = Tables::default();
    let mut sink = Tee::new(ProfileBuilder::default(), HeatMapSink::default());
    rbt::import(BufReader::new(File::open(path)?), &ReadOptions::default(), &mut tables, &mut sink)?;
    sink.finish(&tables)?;
    let (builder, heat) = sink.into_parts();
    Ok((builder.into_profile(tables), heat.into_view()))
}

fn call_tree() -> Result<Side> {
    let profile = wide()?;
    Ok(Box::new(move || {
        let begin = thread_seconds()?;
        let calls = Calls::new(&profile, &Query::default(), &Selection::default(), Weight::Samples);
        let tree = Tree::from_roots(&calls);
        ensure!(calls.total() == SAMPLES as u64 && !tree.roots().is_empty(), "expected all samples");
        black_box(&tree);
        Ok(thread_seconds()? - begin)
    }))
}

fn slowest_key() -> Result<Side> {
    let mut app = App::new(wide()?, HeatMap::default(), Settings::default());
    app.as_text(SIZE.0, SIZE.1);
    Ok(Box::new(move || {
        let mut slowest: f64 = 0.0;
        for key in KEYS {
            let begin = thread_seconds()?;
            for input in Decoder::default().push(key.as_bytes()) {
                app.handle(&input, &mut Nothing);
            }
            black_box(app.as_text(SIZE.0, SIZE.1));
            slowest = slowest.max(thread_seconds()? - begin);
        }
        Ok(slowest)
    }))
}

/// A host that has nothing.
struct Nothing;

impl Host for Nothing {
    fn source(&mut self, _path: &[u8]) -> Option<std::sync::Arc<[String]>> {
        None
    }

    fn copy(&mut self, _text: &str) {}

    fn export(&mut self, _name: &str, _stacks: &Stacks) -> std::result::Result<(), String> {
        Ok(())
    }
}

/// A profile of a program with very many paths, a millisecond between samples.
fn wide() -> Result<Profile> {
    let (mut tables, mut builder) = (Tables::default(), ProfileBuilder::default());
    let mut random = Random::new(7);
    let mut stacks = Vec::with_capacity(STACKS);
    for _ in 0..STACKS {
        let mut stack = None;
        for depth in 0..DEPTH {
            // Paths part slowly at first, as those of programs do.
            let choices = if depth < 10 { 2 } else { 4 };
            let frame = frame(&mut tables, depth, random.below(choices))?;
            stack = Some(tables.intern_stack(stack, frame)?);
        }
        stacks.push(stack);
    }
    let segment = Segment { period_ns: Some(1_000_000), has_times: true, ..Segment::default() };
    let at = Context { tables: &tables, segment: &segment };
    builder.segment(at)?;
    for number in 0..SAMPLES {
        let time_ns = i64::try_from(number)? * 1_000_000;
        let stack = stacks[random.below(STACKS)];
        let _ =
            builder.sample(at, &Sample { stack, count: 1, time_ns: Some(time_ns), ..Sample::default() })?;
    }
    builder.finish(&tables)?;
    Ok(builder.into_profile(tables))
}

fn frame(tables: &mut Tables, depth: usize, choice: usize) -> Result<FrameId> {
    let function = tables.intern_string(format!("App\\Layer{depth}\\Class{choice}::run").as_bytes())?;
    let file = Some(tables.intern_string(format!("/app/Layer{depth}/Class{choice}.php").as_bytes())?);
    Ok(tables.intern_frame(&Frame { file, line: Some(12), ..Frame::named(function) })?)
}
