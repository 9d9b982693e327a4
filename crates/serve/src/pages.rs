//! The pages of inputs: as data for the explorer, and as one HTML file each.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use borehole::heap::views::{BlockLimits, HeapPage};
use borehole_analysis::{ChartLimits, PageLimits, ProfilePage, SampleSelection};

use crate::catalogue::CataloguedInput;
use crate::desk::Desk;
use crate::lakes::{LakeAsk, LakeSelection};
use crate::limits::AnswerLimits;
use crate::opened::{Opened, OpenedProfile};
use crate::refusal::{Refusal, RefusalKind};

/// The form of a page.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum PageForm {
    Html,
    Json,
}

impl PageForm {
    /// The explorer gets several times as much as a file that is sent around.
    fn limits(self) -> PageLimits {
        match self {
            Self::Html => PageLimits::default(),
            Self::Json => PageLimits {
                calls: AnswerLimits::PAGE_CALLS,
                cells: AnswerLimits::PAGE_CELLS,
                ..PageLimits::default()
            },
        }
    }
}

/// The page of an input, of the samples in a selection.
pub(crate) async fn page_of(
    desk: &Desk,
    (input, opened): (CataloguedInput, Arc<Opened>),
    selection: SampleSelection,
    form: PageForm,
) -> Result<String, Refusal> {
    let title = input.entry.path;
    if let Opened::Heap(heap) = &*opened {
        let page = heap.ask(|heap| HeapPage::new(heap, BlockLimits::default())).await?;
        return Ok(match form {
            PageForm::Html => borehole_web::heap_html(&page, &title),
            PageForm::Json => borehole_web::heap_json(&page, &title),
        });
    }
    desk.compute(move || of_profile(&opened, &selection, &title, form)).await?
}

fn of_profile(
    opened: &Opened,
    selection: &SampleSelection,
    title: &str,
    form: PageForm,
) -> Result<String, Refusal> {
    let opened = opened.profile()?;
    // A trace is about its programs, unless somebody asks for some of its samples.
    if !opened.programs.is_empty() && *selection == SampleSelection::default() {
        return Ok(match form {
            PageForm::Html => borehole_web::tokio_html(&opened.programs, title),
            PageForm::Json => borehole_web::tokio_json(&opened.programs, title),
        });
    }
    let page = ProfilePage::selected(&opened.profile, selection, form.limits());
    let page = page.map_err(|error| Refusal::new(RefusalKind::TooLarge, error.to_string()))?;
    Ok(match form {
        PageForm::Html => {
            let has_times = opened.lanes.count() > 0;
            let chart = || opened.lanes.chart(&opened.profile, selection, borehole_web::PAGE_CHART);
            borehole_web::report_html(&page, &opened.heat, has_times.then(chart).as_ref(), title)
        }
        PageForm::Json => borehole_web::report_json(&page, &opened.heat, title, &opened.value_types),
    })
}

/// The flame chart of an input, at the resolution of `columns`.
pub(crate) async fn chart_of(
    desk: &Desk,
    opened: Arc<Opened>,
    selection: SampleSelection,
    columns: Option<usize>,
) -> Result<String, Refusal> {
    desk.compute(move || {
        let opened = opened.profile()?;
        if opened.lanes.count() == 0 {
            return Err(Refusal::missing("this profile has no timestamps, so there is no order of time")
                .with_help("record with --timestamps delta"));
        }
        let limits = ChartLimits::default();
        let columns = columns.unwrap_or(limits.columns).clamp(1, AnswerLimits::COLUMNS);
        let chart = opened.lanes.chart(&opened.profile, &selection, ChartLimits { columns, ..limits });
        Ok(borehole_web::chart_json(&chart))
    })
    .await?
}

/// The page of a selection of a lake.
pub(crate) async fn page_of_lake(desk: &Desk, ask: &LakeAsk) -> Result<String, Refusal> {
    let LakeSelection { file, title } = desk.lakes()?.selection(ask).await?;
    desk.compute(move || {
        let opened = OpenedProfile::read(file.path(), None, &AtomicBool::new(false))?;
        let opened = Opened::Profile(Box::new(opened));
        of_profile(&opened, &SampleSelection::default(), &title, PageForm::Json)
    })
    .await?
}

/// The page of a comparison of two selections of a lake.
pub(crate) async fn page_of_lake_diff(desk: &Desk, ask: &LakeAsk) -> Result<String, Refusal> {
    let [before, after] = desk.lakes()?.sides(ask).await?;
    desk.compute(move || {
        let sides: [&[&Path]; 2] = [&[before.file.path()], &[after.file.path()]];
        match Opened::compare(sides, None, &AtomicBool::new(false))? {
            Opened::Diff(view) => Ok(borehole_web::diff_json(&view, &before.title, &after.title)),
            _ => Err(Refusal::new(RefusalKind::Internal, "not a comparison")),
        }
    })
    .await?
}

/// The page of a comparison.
pub(crate) async fn page_of_diff(
    desk: &Desk,
    (sides, opened): ([Vec<CataloguedInput>; 2], Arc<Opened>),
) -> Result<String, Refusal> {
    let [before, after] = sides.map(|side| match &side[..] {
        [first, _, ..] => format!("{} and {} others", first.entry.path, side.len() - 1),
        _ => side.into_iter().map(|input| input.entry.path).collect(),
    });
    desk.compute(move || match &*opened {
        Opened::Diff(view) => Ok(borehole_web::diff_json(view, &before, &after)),
        Opened::HeapDiff(_) => Err(Refusal::invalid("heaps are compared in a table, not in a picture")
            .with_help("/api/v1/changes lists what changed")),
        _ => Err(Refusal::new(RefusalKind::Internal, "not a comparison")),
    })
    .await?
}
