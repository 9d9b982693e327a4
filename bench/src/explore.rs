//! Claims on the explorer: how soon there is what its first screen shows, and how soon it turns to another focus.

use std::fs::File;
use std::hint::black_box;
use std::io::BufReader;
use std::path::Path;

use anyhow::{Result, ensure};
use borehole_analysis::{
    Calls, HeatMap, HeatMapSink, LazyTree, Profile, ProfileBuilder, Query, SampleSelection, SortBy, Weight,
};
use borehole_formats::{ReadOptions, rbt};
use borehole_model::{Context, Frame, FrameId, ProfileSink as _, Sample, Segment, Tables, Tee};
use borehole_testkit::fuzzing::Random;

use super::inputs::{Traces, name};
use super::measure::thread_seconds;
use super::{Claim, ClaimUnit, Goal, Side};

const SAMPLES: usize = 1_000_000;
const STACKS: usize = 100_000;
const DEPTH: usize = 30;

pub(crate) fn claims(traces: &Traces) -> Result<Vec<Claim>> {
    let first = |path: &Path, goal| {
        let what = format!("what the explorer's first screen is made of, of {}, CPU time", name(path));
        Claim::new(what, ClaimUnit::Seconds, Goal::Value(goal), first_screen(path))
    };
    let shape = format!("{SAMPLES} samples over {STACKS} stacks, {DEPTH} deep");
    let tree = format!("the call tree of {shape}, CPU time");
    let key = format!("a focus in the explorer, {shape}, CPU time");
    Ok(vec![
        first(&traces.timed, 0.150),
        first(&traces.hundred_million, 6.0).once(),
        first(&traces.restless, 6.0).once(),
        Claim::new(tree, ClaimUnit::Seconds, Goal::Value(0.100), call_tree()?),
        Claim::new(key, ClaimUnit::Seconds, Goal::Value(0.016), focus()?),
    ])
}

/// Reads a trace and counts what is drawn of it.
fn first_screen(path: &Path) -> Side {
    let path = path.to_owned();
    Box::new(move || {
        let begin = thread_seconds()?;
        let (profile, heat) = read(&path)?;
        let calls = Calls::new(&profile, &Query::default(), &SampleSelection::default(), Weight::Samples);
        black_box((
            calls.top(SortBy::SelfWeight),
            LazyTree::from_roots(&calls),
            LazyTree::from_leaves(&calls),
            heat,
        ));
        ensure!(calls.total() > 0, "expected samples");
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
        let calls = Calls::new(&profile, &Query::default(), &SampleSelection::default(), Weight::Samples);
        let tree = LazyTree::from_roots(&calls);
        ensure!(calls.total() == i64::try_from(SAMPLES)? && !tree.roots().is_empty(), "expected all samples");
        black_box(&tree);
        Ok(thread_seconds()? - begin)
    }))
}

/// The counts that the explorer makes when a row becomes its focus.
fn focus() -> Result<Side> {
    let profile = wide()?;
    let calls = Calls::new(&profile, &Query::default(), &SampleSelection::default(), Weight::Samples);
    let frame = calls.top(SortBy::TotalWeight).last().map_or(0, |row| row.frame);
    Ok(Box::new(move || {
        let begin = thread_seconds()?;
        for mut tree in [LazyTree::above(&calls, frame), LazyTree::below(&calls, frame)] {
            black_box(tree.open(&calls, 0));
        }
        Ok(thread_seconds()? - begin)
    }))
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
