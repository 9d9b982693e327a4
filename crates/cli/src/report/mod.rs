//! `borehole report`: hot frames, callers, callees, last stacks, as text or JSON.
//!
//! The tables have the options and the shape of reli's `rbt:analyze`; additions (`--by`, `--json`, notes on what a table leaves
//! out, Tokio programs) are marked where they are made.

mod args;
mod flags;
mod json;
mod layout;
mod render;
mod summary;
mod tokio;

use std::io::Write;

use borehole_analysis::tokio::TokioSink;
use borehole_analysis::{By, ReportSink};
use borehole_model::{ProfileSink, Tee};

use crate::cell;
use crate::filter::check_value;
use crate::stdout::stdout_error;

pub(crate) use args::{ReportArgs, ReportDialect, TableArgs};
pub(crate) use json::{process_id, thread_id};

/// Reads a profile and reports on it: data to `out`, the summary line to `err`.
///
/// `profile` pushes all inputs into the sink and finishes it once; its result is passed on. If it fails, nothing is written.
///
/// # Errors
/// When a pattern is invalid, the profile cannot be read, or `out` cannot be written. Messages that `err` refuses are dropped.
pub(crate) fn run<T>(
    args: &ReportArgs,
    profile: impl FnOnce(&mut dyn ProfileSink) -> anyhow::Result<T>,
    out: &mut dyn Write,
    err: &mut dyn Write,
) -> anyhow::Result<T> {
    let query = args.query()?;
    let mut tokio = TokioSink::new(query.limit);
    if let Some(By::Label(key)) = &query.by {
        tokio = tokio.grouped_by(String::from_utf8_lossy(key));
    }
    let mut sink = Tee::new(ReportSink::new(query).weighing(args.weigher()), tokio);
    let outcome = profile(&mut sink)?;
    let (report, tokio) = sink.into_parts();
    if args.dialect == ReportDialect::Native {
        check_value(report.weigher())?;
    }
    let (view, tokio) = (report.into_view(), tokio.into_views());
    if args.json {
        json::write(view, &tokio, args, out).map_err(stdout_error)?;
    } else {
        let _ = err.write_all(summary::text(&view.summary, &tokio, args.dialect).as_bytes());
        let rendering = args.rendering(cell::terminal_width());
        render::render(&view, &tokio, &rendering, out).map_err(stdout_error)?;
    }
    out.flush().map_err(stdout_error)?;
    Ok(outcome)
}

#[cfg(test)]
mod tests;
