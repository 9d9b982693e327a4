//! Questions about profiles.

use borehole_analysis::{By, Calls, LazyTree, PathStyle, SampleSelection, SortBy, TopRow};
use borehole_text::{document, duration, grouped, percent, percent_of, with_unit};

use super::ask::{Ask, TopOrder, pattern};
use super::table::{ViewCell, ViewTable};
use crate::limits::AnswerLimits;
use crate::opened::OpenedProfile;
use crate::refusal::Refusal;

/// A profile, and the part of it that a question is about.
pub(super) struct ProfileQuestion<'p> {
    pub(super) opened: &'p OpenedProfile,
    ask: &'p Ask,
    pub(super) selection: SampleSelection,
    pub(super) calls: Calls,
    unit: String,
}

/// A name from a profile: it may be anything, so it is cut, and shows as itself.
pub(super) fn name(bytes: &[u8]) -> String {
    let text = document(bytes);
    if text.chars().count() <= AnswerLimits::NAME_CHARS {
        return text;
    }
    text.chars().take(AnswerLimits::NAME_CHARS - 1).chain(['…']).collect()
}

impl<'p> ProfileQuestion<'p> {
    pub(super) fn new(opened: &'p OpenedProfile, ask: &'p Ask) -> Result<Self, Refusal> {
        let selection = ask.selection()?;
        let weight = opened.profile.default_weight();
        let calls = if ask.is_unshaped() {
            opened.calls(&selection, weight)
        } else {
            Calls::new(&opened.profile, &ask.query()?, &selection, weight)
        };
        let unit = opened.profile.value_type(weight).unit;
        Ok(Self { opened, ask, selection, calls, unit })
    }

    pub(super) fn limit(&self) -> usize {
        self.ask.limit.unwrap_or(AnswerLimits::ROWS).clamp(1, AnswerLimits::MOST_ROWS)
    }

    pub(super) fn table(&self, title: &str, columns: &[&str]) -> ViewTable {
        let kind = self.opened.profile.value_type(self.calls.weight()).kind;
        let lost = self.opened.recovery.lost_bytes;
        let mut notes = Vec::new();
        if lost > 0 {
            notes.push(format!(
                "{} bytes of the input could not be read; their contents are missing",
                grouped(lost)
            ));
        }
        if self.calls.total() == 0 {
            notes.push("no samples match the question".to_owned());
        }
        ViewTable {
            title: format!(
                "{title}, of {} {}",
                with_unit(self.calls.total(), &self.unit),
                name(kind.as_bytes())
            ),
            unit: self.unit.clone(),
            total: self.calls.total(),
            columns: columns.iter().map(|&column| column.to_owned()).collect(),
            notes,
            ..ViewTable::default()
        }
    }

    fn share(&self, part: i64) -> ViewCell {
        ViewCell::Percent(percent_of(part, self.calls.total()))
    }

    /// The text of a function.
    fn shown(&self, frame: usize) -> String {
        name(&self.calls.frame(frame).text(PathStyle::Full))
    }

    fn covered(&self, shown: i64, left: usize, what: &str) -> String {
        let share = percent(percent_of(shown, self.calls.total()));
        match left {
            0 => format!("Shown {share}: all {what}."),
            left => format!("Shown {share}, the rest in {} {what}.", grouped(left as u64)),
        }
    }

    /// The functions by self or total.
    pub(super) fn top(&self) -> ViewTable {
        let order = self.ask.sort.unwrap_or_default();
        let rows = self.calls.top(match order {
            TopOrder::Own => SortBy::SelfWeight,
            TopOrder::Total => SortBy::TotalWeight,
        });
        let mut table = self.table("Functions", &["id", "self", "self %", "total", "total %", "function"]);
        let shown = &rows[..rows.len().min(self.limit())];
        table.rows = shown.iter().map(|row| self.top_row(row)).collect();
        table.all_rows = rows.len();
        let own = shown.iter().fold(0_i64, |sum, row| sum.saturating_add(row.self_weight));
        table.coverage = self.covered(own, rows.len() - shown.len(), "functions");
        if let Some(first) = shown.first() {
            table.next.push(format!("callers of f{}, or paths", first.frame));
        }
        table
    }

    fn top_row(&self, row: &TopRow) -> Vec<ViewCell> {
        vec![
            format!("f{}", row.frame).into(),
            row.self_weight.into(),
            self.share(row.self_weight),
            row.total_weight.into(),
            self.share(row.total_weight),
            self.shown(row.frame).into(),
        ]
    }

    /// The function that is asked about.
    fn asked(&self) -> Result<usize, Refusal> {
        let text = self.ask.function.as_deref().ok_or_else(|| {
            Refusal::invalid("missing function").with_help("top lists functions and their ids")
        })?;
        if let Some(row) = text.strip_prefix('f').and_then(|number| number.parse().ok())
            && row < self.calls.frame_count()
        {
            return Ok(row);
        }
        let by_total = self.calls.top(SortBy::TotalWeight);
        // A name is not a pattern: those of PHP's namespaces are invalid ones.
        let exact = by_total.iter().find(|row| self.calls.frame(row.frame).function == text.as_bytes());
        if let Some(exact) = exact {
            return Ok(exact.frame);
        }
        let pattern = pattern(text)?;
        let found =
            by_total.iter().find(|row| pattern.is_match(&self.calls.frame(row.frame).text(PathStyle::Full)));
        found.map(|row| row.frame).ok_or_else(|| {
            Refusal::missing(format!("no function {}", name(text.as_bytes())))
                .with_help("top lists functions")
        })
    }

    /// The callers or callees of a function, level by level, heaviest first.
    pub(super) fn around(&self, is_callers: bool) -> Result<ViewTable, Refusal> {
        let function = self.asked()?;
        let (tree, what) = if is_callers {
            (LazyTree::above(&self.calls, function), "Callers")
        } else {
            (LazyTree::below(&self.calls, function), "Callees")
        };
        let title = format!("{what} of f{function} {}", self.shown(function));
        Ok(self.levels(&title, tree, self.ask.depth.unwrap_or(AnswerLimits::AROUND_LEVELS)))
    }

    /// The call tree from its roots.
    pub(super) fn tree(&self) -> ViewTable {
        let tree = LazyTree::from_roots(&self.calls);
        self.levels("Call tree", tree, self.ask.depth.unwrap_or(AnswerLimits::TREE_LEVELS))
    }

    /// The heaviest calls of a tree, in the order of the tree. A call is there only if its caller is.
    fn levels(&self, title: &str, mut tree: LazyTree, depth: usize) -> ViewTable {
        let limit = self.limit();
        let mut open: Vec<usize> = (0..tree.roots().len()).collect();
        let (mut kept, mut left) = (Vec::new(), 0_usize);
        while let Some(place) = (0..open.len()).max_by_key(|&place| tree.node(open[place]).total_weight) {
            if kept.len() == limit {
                left = open.len();
                break;
            }
            let node = open.swap_remove(place);
            kept.push(node);
            if tree.node(node).depth < depth {
                open.extend(tree.open(&self.calls, node));
            }
        }
        // In the order of the tree: after the caller, heavier ones first, which is the order in which they were taken.
        let mut table = self.table(title, &["id", "total", "total %", "self", "function"]);
        table.all_rows = kept.len() + left;
        let mut stack: Vec<usize> =
            kept.iter().rev().copied().filter(|&node| tree.node(node).parent.is_none()).collect();
        while let Some(node) = stack.pop() {
            let found = tree.node(node);
            let indented = format!("{}{}", "  ".repeat(found.depth), self.shown(found.frame));
            table.rows.push(vec![
                format!("f{}", found.frame).into(),
                found.total_weight.into(),
                self.share(found.total_weight),
                found.self_weight.into(),
                indented.into(),
            ]);
            stack.extend(kept.iter().rev().copied().filter(|&below| tree.node(below).parent == Some(node)));
        }
        table.coverage = match left {
            0 => "Nothing is left out down to this depth.".to_owned(),
            left => format!(
                "At least {} further calls are left out; limit and depth show more.",
                grouped(left as u64)
            ),
        };
        table
    }

    /// The heaviest call paths, each from root to leaf.
    pub(super) fn paths(&self) -> ViewTable {
        let mut paths: Vec<_> = self.calls.samples(&self.opened.profile, &self.selection).collect();
        paths.sort_by(|one, other| other.sum.cmp(&one.sum).then_with(|| one.path.cmp(&other.path)));
        let shown = &paths[..paths.len().min(self.limit().min(AnswerLimits::PATHS))];
        let counted: i64 = paths.iter().fold(0, |sum, path| sum.saturating_add(path.sum));
        let mut table = self.table("Call paths", &["samples", "%", "path"]);
        table.rows = shown
            .iter()
            .map(|path| {
                let names = path.path.iter().map(|&row| name(&self.calls.frame(row).function));
                let share = ViewCell::Percent(percent_of(path.sum, counted));
                vec![path.sum.into(), share, names.collect::<Vec<_>>().join(" → ").into()]
            })
            .collect();
        table.all_rows = paths.len();
        let sum: i64 = shown.iter().fold(0, |sum, path| sum.saturating_add(path.sum));
        let share = percent(percent_of(sum, counted));
        table.coverage =
            format!("Shown {share}, the rest in {} paths.", grouped((paths.len() - shown.len()) as u64));
        table
    }

    /// The samples over time, with the heaviest function of each stretch.
    pub(super) fn timeline(&self) -> Result<ViewTable, Refusal> {
        let timeline = self.opened.profile.timeline(&self.selection, self.calls.weight());
        let timeline = timeline.ok_or_else(|| {
            Refusal::missing("this profile has no timestamps, so there is no timeline")
                .with_help("record with --timestamps delta")
        })?;
        let columns = self.ask.columns.unwrap_or(AnswerLimits::STRETCHES).clamp(1, AnswerLimits::MOST_ROWS);
        let timeline = timeline.joined(columns);
        let mut table = self.table("Timeline", &["from ns", "to ns", "weight", "%", "threads"]);
        for slice in 0..timeline.span.slices {
            let range = timeline.span.range(slice..=slice);
            let weights = timeline.rows.iter().map(|row| row.slices.get(slice).copied().unwrap_or(0));
            let weight = weights.clone().fold(0_i64, i64::saturating_add);
            let threads = i64::try_from(weights.filter(|&weight| weight != 0).count()).unwrap_or(i64::MAX);
            table.rows.push(vec![
                range.start_ns.into(),
                range.end_ns.into(),
                weight.into(),
                self.share(weight),
                threads.into(),
            ]);
        }
        table.all_rows = table.rows.len();
        table.next.push("top with from and to shows what was done in a stretch".to_owned());
        Ok(table)
    }

    /// The samples by thread, process or label.
    pub(super) fn by(&self) -> ViewTable {
        let asked = self.ask.by.as_deref().unwrap_or("thread");
        let by = match asked {
            "thread" => By::Thread,
            "process" => By::Process,
            "interpreter" => By::Interpreter,
            key => By::Label(key.as_bytes().to_vec()),
        };
        let rows = self.calls.by(&self.opened.profile, &self.selection, &by);
        let mut table = self.table(&format!("By {}", name(asked.as_bytes())), &["weight", "%", "value"]);
        let shown = &rows[..rows.len().min(self.limit())];
        table.rows = shown
            .iter()
            .map(|row| {
                let value = row.value.text(name).unwrap_or_else(|| "(none)".to_owned());
                vec![row.weight.into(), self.share(row.weight), value.into()]
            })
            .collect();
        table.all_rows = rows.len();
        let sum = shown.iter().fold(0_i64, |sum, row| sum.saturating_add(row.weight));
        table.coverage = self.covered(sum, rows.len() - shown.len(), "values");
        let keys: Vec<String> = self.opened.profile.label_keys().iter().map(|key| name(key)).collect();
        if !keys.is_empty() {
            table.next.push(format!("by one of the labels {}", keys.join(", ")));
        }
        table
    }

    /// The profile in a few lines.
    pub(super) fn overview(&self) -> ViewTable {
        let summary = self.opened.profile.summary();
        let mut table = self.table("Overview", &["fact", "value"]);
        let mut add = |what: &str, much: String| table.rows.push(vec![what.into(), much.into()]);
        add("samples", grouped(summary.samples));
        if let Some(span_ns) = summary.span_ns {
            add("duration", duration(span_ns));
        }
        add("threads", grouped(summary.threads as u64));
        add("processes", grouped(summary.processes as u64));
        add("stacks", grouped(summary.stacks as u64));
        let kinds: Vec<String> =
            self.opened.value_types.iter().map(|kind| name(kind.to_string().as_bytes())).collect();
        add("value types", kinds.join(", "));
        for (what, sort) in [("most by itself", SortBy::SelfWeight), ("most in total", SortBy::TotalWeight)] {
            if let Some(row) = self.calls.top(sort).first() {
                let weight = if sort == SortBy::SelfWeight { row.self_weight } else { row.total_weight };
                let share = percent(percent_of(weight, self.calls.total()));
                add(what, format!("{share} f{} {}", row.frame, self.shown(row.frame)));
            }
        }
        let flags: usize = self.opened.programs.iter().map(|program| program.flags.len()).sum();
        if !self.opened.programs.is_empty() {
            add("red flags", grouped(flags as u64));
            table.next.push("tokio_flags shows the red flags".to_owned());
        }
        table.all_rows = table.rows.len();
        table.next.push("top shows the functions, timeline when they ran".to_owned());
        table
    }

    /// The red flags of Tokio programs.
    pub(super) fn flags(&self) -> Result<ViewTable, Refusal> {
        if self.opened.programs.is_empty() {
            return Err(
                Refusal::invalid("not a trace of a Tokio program").with_help("top shows its functions")
            );
        }
        let mut table = self.table("Red flags", &["severity", "check", "at ns", "evidence"]);
        let flags: Vec<_> = self.opened.programs.iter().flat_map(|program| &program.flags).collect();
        table.all_rows = flags.len();
        table.rows = flags
            .iter()
            .take(self.limit())
            .map(|flag| {
                let time = flag.time_ns.map_or_else(String::new, |time| time.to_string());
                vec![
                    flag.severity.name().into(),
                    flag.check.into(),
                    time.into(),
                    name(flag.evidence.as_bytes()).into(),
                ]
            })
            .collect();
        table.coverage = format!("Shown {} of {} flags.", table.rows.len(), flags.len());
        Ok(table)
    }
}
