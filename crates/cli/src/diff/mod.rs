//! `borehole diff`: what grew and what shrank between two sets of profiles.

mod args;
mod json;
mod text;
mod threshold;
mod trace;

use std::ffi::OsString;

use borehole::ProfileSink as _;
use borehole::Recovery;
use borehole::model::{Tables, Tee};
use borehole_analysis::ReshapeSink;
use borehole_analysis::diff::{DiffSink, DiffView, Per};
use borehole_analysis::tokio::{TokioChange, TokioSink, TokioView, compared};

use crate::cell;
use crate::exit::Exit;
use crate::filter::{say_if_all_left_out, say_none_chosen};
use crate::inputs::Inputs;
use crate::interrupt;
use crate::messages;
use crate::page;
use crate::stdout::{STDOUT, put};
use crate::values::RowLimit;

pub(crate) use args::DiffArgs;
use threshold::FailOver;

pub(crate) use threshold::CrossedLimit;
// For diffs within a lake.
#[cfg(feature = "lake")]
pub(crate) use {
    args::{Picture, parse_confidence, parse_part},
    json::object,
    text::text,
    threshold::crossed,
};

/// The facts that a diff shows beside its view.
pub(crate) struct ShownDiff<'a> {
    pub(crate) per: &'a Per,
    /// Rows of each table.
    pub(crate) limit: RowLimit,
    pub(crate) is_focused: bool,
    /// The names of the inputs of each side.
    pub(crate) names: [Vec<OsString>; 2],
    /// The inputs that noise is measured between.
    pub(crate) inputs: &'static str,
}

pub(crate) fn run(args: &DiffArgs) -> anyhow::Result<Exit> {
    interrupt::heed();
    let sides = args.sides()?;
    let query = args.query(&sides)?;
    let picture = args.picture()?;
    let (view, tokio, recovery) = read(args, &sides, DiffSink::new(query))?;
    if interrupt::requested() {
        messages::say("interrupted: nothing was compared or written");
        return Ok(Exit::Interrupted);
    }
    let found = [&view.before, &view.after].map(|side| (side.summary.samples, side.summary.matched));
    if found.iter().all(|&(_, matched)| matched == 0) && found.iter().any(|&(samples, _)| samples > 0) {
        let samples = found.iter().map(|(samples, _)| samples).sum();
        say_none_chosen(&[(samples, "sample")]);
    }
    if let Some(picture) = picture {
        let [before, after] = [&sides[0], &sides[1]].map(page::name_of);
        picture.write(&view, &before, &after)?;
    }
    let whole = if args.stacks.focus.is_some() { "everything in focus" } else { "the whole" };
    let functions = args.fail_over.iter().find_map(|limit| match *limit {
        FailOver::Function(most) => threshold::crossed(&view, most, whole),
        FailOver::Figure(..) => None,
    });
    let crossed = functions.or_else(|| trace::crossed(&tokio, &args.fail_over));
    let shown = args.shown(&sides);
    let text = if args.json {
        format!("{}\n", json::object(&view, &tokio, &shown, crossed.as_ref())?)
    } else {
        text::text(&view, &tokio, &shown, cell::terminal_width())
    };
    put(&text, args.json)?;
    if let Some(crossed) = crossed {
        messages::say(&crossed.message);
        return Ok(Exit::Crossed);
    }
    Ok(Exit::after(&recovery))
}

/// Reads both sides over the same tables.
fn read(
    args: &DiffArgs,
    sides: &[Inputs; 2],
    mut sink: DiffSink,
) -> anyhow::Result<(DiffView, Vec<TokioChange>, Recovery)> {
    let mut tables = Tables::default();
    let (mut recovery, mut views) = (Recovery::default(), Vec::new());
    let Some(shape) = args.shape()? else {
        for side in sides {
            let mut both = Tee::new(&mut sink, TokioSink::new(None));
            recovery.merge(side.read_onto(&mut tables, &args.filter, &mut both, STDOUT)?);
            views.push(finished(both.into_parts().1, &tables)?);
            sink.begin_after();
        }
        sink.finish(&tables)?;
        return Ok((sink.into_view(), changes(&views), recovery));
    };
    let mut shaped = ReshapeSink::new(sink, shape);
    for side in sides {
        let mut both = Tee::new(&mut shaped, TokioSink::new(None));
        recovery.merge(side.read_onto(&mut tables, &args.filter, &mut both, STDOUT)?);
        views.push(finished(both.into_parts().1, &tables)?);
        shaped.sink_mut().begin_after();
    }
    shaped.finish(&tables)?;
    say_if_all_left_out(&shaped);
    Ok((shaped.into_parts().0.into_view(), changes(&views), recovery))
}

/// The view of the Tokio program on one side; the first one if there are several.
fn finished(mut tokio: TokioSink, tables: &Tables) -> anyhow::Result<Option<TokioView>> {
    tokio.finish(tables)?;
    let views = tokio.into_views();
    if views.len() > 1 {
        messages::say("note: a side has several programs; only the first of each side is compared");
    }
    Ok(views.into_iter().next())
}

/// The changes between the programs of both sides; none if a side has no program.
fn changes(views: &[Option<TokioView>]) -> Vec<TokioChange> {
    match views {
        [Some(before), Some(after)] => compared(before, after),
        _ => Vec::new(),
    }
}
