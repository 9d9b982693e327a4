//! `borehole diff`: what grew and what shrank between two sets of profiles.

mod args;
mod json;
mod text;
mod threshold;

use borehole::ProfileSink as _;
use borehole::Recovery;
use borehole::model::Tables;
use borehole_analysis::ReshapeSink;
use borehole_analysis::diff::{DiffSink, DiffView};

use crate::cell;
use crate::exit::Exit;
use crate::filter::{say_if_all_left_out, say_none_chosen};
use crate::inputs::Inputs;
use crate::interrupt;
use crate::messages;
use crate::stdout::{STDOUT, put};

pub(crate) use args::DiffArgs;

pub(crate) fn run(args: &DiffArgs) -> anyhow::Result<Exit> {
    interrupt::heed();
    let sides = args.sides()?;
    let query = args.query(&sides)?;
    let picture = args.picture()?;
    let (view, recovery) = read(args, &sides, DiffSink::new(query))?;
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
        picture.write(&view, &sides)?;
    }
    let text = if args.json {
        json::text(&view, args, &sides)
    } else {
        text::text(&view, args, &sides, cell::terminal_width())
    };
    put(&text, args.json)?;
    let whole = if args.stacks.focus.is_some() { "everything in focus" } else { "the whole" };
    if let Some(crossed) = args.fail_over.and_then(|most| threshold::crossed(&view, most, whole)) {
        messages::say(&crossed);
        return Ok(Exit::Crossed);
    }
    Ok(Exit::after(&recovery))
}

/// Reads both sides over the same tables.
fn read(args: &DiffArgs, sides: &[Inputs; 2], mut sink: DiffSink) -> anyhow::Result<(DiffView, Recovery)> {
    let mut tables = Tables::default();
    let mut recovery = Recovery::default();
    let Some(shape) = args.shape()? else {
        for side in sides {
            recovery.merge(side.read_onto(&mut tables, &args.filter, &mut sink, STDOUT)?);
            sink.begin_after();
        }
        sink.finish(&tables)?;
        return Ok((sink.into_view(), recovery));
    };
    let mut shaped = ReshapeSink::new(sink, shape);
    for side in sides {
        recovery.merge(side.read_onto(&mut tables, &args.filter, &mut shaped, STDOUT)?);
        shaped.sink_mut().begin_after();
    }
    shaped.finish(&tables)?;
    say_if_all_left_out(&shaped);
    Ok((shaped.into_parts().0.into_view(), recovery))
}
