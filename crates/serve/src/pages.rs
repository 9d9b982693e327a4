//! The pages of inputs: as data for the explorer, and as one HTML file each.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use borehole_analysis::{CallPattern, ChartLimits, PageLimits, ProfilePage, SampleSelection};

use crate::catalogue::CataloguedInput;
use crate::desk::Desk;
use crate::lakes::{LakeAsk, LakeSelection};
use crate::limits::AnswerLimits;
use crate::opened::{Opened, OpenedProfile};
use crate::questions::{Ask, shown_name};
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

/// The part of a profile that a page is about.
#[derive(Default)]
pub(crate) struct PagePart {
    selection: SampleSelection,
    /// The calls at whose end it is, by the names that a page gives them.
    under: Vec<String>,
}

impl PagePart {
    /// The part that a question is about.
    pub(crate) fn of(ask: &Ask) -> Result<Self, Refusal> {
        Ok(Self { selection: ask.selection()?, under: ask.under.clone() })
    }

    fn is_everything(&self) -> bool {
        self.selection == SampleSelection::default() && self.under.is_empty()
    }
}

/// The page of a part of an input.
pub(crate) async fn page_of(
    desk: &Desk,
    (input, opened): (CataloguedInput, Arc<Opened>),
    part: PagePart,
    form: PageForm,
) -> Result<String, Refusal> {
    let title = input.entry.path;
    if let Opened::Heap(heap) = &*opened {
        let page = heap.page().await?;
        return Ok(match form {
            PageForm::Html => borehole_web::heap_html(&page, &title),
            PageForm::Json => borehole_web::heap_json(&page, &title),
        });
    }
    let title = match &part.under[..] {
        [] => title,
        under => format!("{title}: below {}", shown_name(&under.join(" → "))),
    };
    desk.compute(move || of_profile(&opened, &part, &title, form)).await?
}

fn of_profile(opened: &Opened, part: &PagePart, title: &str, form: PageForm) -> Result<String, Refusal> {
    let opened = opened.profile()?;
    // A trace is about its programs, unless somebody asks for some of its samples.
    if !opened.programs.is_empty() && part.is_everything() {
        return Ok(match form {
            PageForm::Html => borehole_web::tokio_html(&opened.programs, title),
            PageForm::Json => borehole_web::tokio_json(&opened.programs, title),
        });
    }
    let PagePart { selection, under } = part;
    let is_called = |level: usize, name: &[u8]| borehole_web::is_shown_as(name, &under[level]);
    let path = CallPattern { levels: under.len(), is_called: &is_called };
    let page = ProfilePage::below(&opened.profile, selection, path, form.limits());
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

/// The heap as far as it is known soon, in the form of its page.
pub(crate) async fn outline_of((input, opened): (CataloguedInput, Arc<Opened>)) -> Result<String, Refusal> {
    let outline = opened.heap()?.outline().await?;
    Ok(borehole_web::heap_outline_json(&outline, &input.entry.path))
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
        of_profile(&opened, &PagePart::default(), &title, PageForm::Json)
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
