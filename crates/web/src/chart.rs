//! A flame chart as data: what each lane did over time.

use borehole_analysis::{ChartBox, ChartLane, ChartLimits, FlameChart};

use crate::json::{Object, list};
use crate::names::{PageNames, cut_end};
use crate::report::write_names;

/// The limit for the name of a lane, in bytes.
const LANE_BYTES: usize = 80;

/// The limits of the chart in a page that holds its data: some hundred kilobytes at most. A page cannot ask for more.
pub const PAGE_CHART: ChartLimits = ChartLimits { columns: 600, lanes: 24, depth: 64, boxes: 10_000 };

/// A flame chart as JSON. Times are in nanoseconds since the first sample; those of boxes count from the start of the chart.
#[must_use]
pub fn chart_json(chart: &FlameChart) -> String {
    let FlameChart { start_ns, end_ns, lanes, frames, grain_ns, other_lanes, left_out } = chart;
    let names = PageNames::new(frames.iter().map(|frame| (&frame.name[..], frame.file.as_deref())));
    let mut data = Object::new();
    data.number("start_ns", start_ns).number("end_ns", end_ns).number("grain_ns", grain_ns);
    data.number("other_lanes", other_lanes).number("left_out", left_out);
    write_names(&mut data, &names);
    data.raw("lanes", &list(lanes.iter().map(|lane| lane_object(lane, *start_ns))));
    data.end()
}

fn lane_object(lane: &ChartLane, start_ns: i64) -> String {
    let name = lane.thread.text(|text| cut_end(text, LANE_BYTES)).unwrap_or_else(|| "samples".to_owned());
    let mut object = Object::new();
    object
        .text("name", &name)
        .raw("process", &lane.process.map_or("null".to_owned(), |process| process.to_string()));
    let mut column = |key: &str, value: &dyn Fn(&ChartBox) -> i64| {
        object.numbers(key, lane.boxes.iter().map(value));
    };
    let index = |value: usize| i64::try_from(value).unwrap_or(i64::MAX);
    column("depth", &|of| index(of.depth));
    column("start", &|of| of.start_ns.saturating_sub(start_ns));
    column("end", &|of| of.end_ns.saturating_sub(start_ns));
    column("fn", &|of| index(of.frame));
    object.end()
}
