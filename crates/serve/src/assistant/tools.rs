//! The tools: their names, what they ask for, and what their answers look like.

use std::sync::Arc;

use rmcp::model::{JsonObject, Tool, ToolAnnotations};
use serde_json::{Map, Value, json};

use crate::api::openapi::{schema, words, words_of};
use crate::lakes::{LakeAsk, LakeView};
use crate::limits::AnswerLimits;
use crate::questions::{LIST_WORDS, RmemAsk, RmemQuestion, View, ViewTable};
use crate::recordings::RecordingAsk;

/// A tool, by its answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AssistantTool {
    /// The inputs.
    Open,
    /// One view.
    View(View),
    /// Callers and callees of a function.
    Around,
    /// A comparison.
    Diff,
    /// A recording of a few seconds.
    Record,
    /// A question about a lake.
    Lake(LakeView),
    /// A question about a heap in reli's words: its place in the list of them.
    Rmem(usize),
}

/// The set of tools that an assistant gets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum ToolSet {
    /// Ours, for profiles and heaps.
    #[default]
    Borehole,
    /// Those of reli's `rmem:mcp`, for heaps.
    Reli,
}

impl ToolSet {
    /// The tools of the set.
    pub(super) fn tools(self, may_record: bool, has_lakes: bool) -> Vec<AssistantTool> {
        let mut tools = match self {
            Self::Borehole => {
                let is_alone = |view: &View| !matches!(view, View::Callers | View::Callees);
                let of_views = View::ALL.into_iter().filter(is_alone).map(AssistantTool::View);
                let first = [AssistantTool::Open, AssistantTool::Around, AssistantTool::Diff];
                first.into_iter().chain(of_views).collect::<Vec<_>>()
            }
            Self::Reli => (0..RmemQuestion::ALL.len()).map(AssistantTool::Rmem).collect(),
        };
        tools.extend(may_record.then_some(AssistantTool::Record));
        tools.extend(LakeView::ALL.into_iter().filter(|_| has_lakes).map(AssistantTool::Lake));
        tools
    }
}

impl AssistantTool {
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Open => "open",
            Self::View(view) => view.name(),
            Self::Around => "callers_callees",
            Self::Diff => "diff",
            Self::Record => "record",
            Self::Lake(view) => view.name(),
            Self::Rmem(place) => RmemQuestion::ALL[place].1,
        }
    }

    const fn about(self) -> &'static str {
        match self {
            Self::Open => "List the profiles and heaps that can be asked about, with their ids",
            Self::View(view) => view.about(),
            Self::Around => "Show who calls a function and what it calls, with the weight of each call",
            Self::Diff => {
                "Compare profiles, or heaps: what changed between those before and those after, and whether by more than noise"
            }
            Self::Record => {
                "Record what the processes that the user has named do, for some seconds, and show what weighs most"
            }
            Self::Lake(view) => view.about(),
            Self::Rmem(place) => RmemQuestion::ALL[place].2,
        }
    }

    fn words(self) -> Vec<&'static str> {
        match self {
            Self::Open => LIST_WORDS.to_vec(),
            Self::View(view) => view.words(),
            Self::Around => View::Callers.words(),
            Self::Diff => vec!["before", "after", "value", "limit"],
            Self::Record => vec!["seconds", "rate"],
            Self::Lake(view) => view.words(),
            Self::Rmem(place) => {
                let (.., needed, more) = RmemQuestion::ALL[place];
                [needed, more].concat()
            }
        }
    }

    /// The words without which there is no answer.
    const fn required(self) -> &'static [&'static str] {
        match self {
            Self::Open | Self::Record => &[],
            Self::View(View::Source) => &["input", "file"],
            Self::View(_) => &["input"],
            Self::Around => &["input", "function"],
            Self::Diff => &["before", "after"],
            Self::Lake(view) => view.required(),
            Self::Rmem(place) => RmemQuestion::ALL[place].3,
        }
    }

    /// The schema of its arguments.
    fn schema(self) -> JsonObject {
        let mut properties = match self {
            Self::Rmem(_) => words_of::<RmemAsk>(),
            Self::Record => words_of::<RecordingAsk>(),
            Self::Lake(_) => words_of::<LakeAsk>(),
            _ => words(),
        };
        let own = self.words();
        properties.retain(|word, _| own.contains(&word.as_str()));
        if !matches!(self, Self::Open | Self::Diff | Self::Record | Self::Lake(_)) {
            properties.insert("input".to_owned(), self.input());
        }
        let tokens =
            format!("About the most tokens that the answer may have (default {})", AnswerLimits::TOKENS);
        let tokens = json!({ "type": "integer", "minimum": 1, "description": tokens });
        properties.insert("tokens".to_owned(), tokens);
        let properties: Map<String, Value> = properties;
        object(json!({
            "type": "object",
            "properties": properties,
            "required": self.required(),
            "additionalProperties": false,
        }))
    }

    fn input(self) -> Value {
        let about = match self {
            Self::Rmem(_) => "The id or name of a heap; may be left out if there is only one",
            _ => "The id of an input; open lists them",
        };
        json!({ "type": "string", "description": about })
    }

    /// The names of the tables of its answer in structured content; without one, the answer is the table.
    const fn parts(self) -> &'static [&'static str] {
        match self {
            Self::Around => &["callers", "callees"],
            _ => &[],
        }
    }

    /// The schema of its structured content.
    fn answer_schema(self) -> JsonObject {
        let table = schema::<ViewTable>();
        let parts = self.parts();
        if parts.is_empty() {
            return object(table);
        }
        let properties: JsonObject = parts.iter().map(|&part| (part.to_owned(), table.clone())).collect();
        object(json!({ "type": "object", "properties": properties, "required": parts }))
    }

    /// The structured content of an answer. `tokens` is for all tables together.
    pub(super) fn structured(self, tables: &[ViewTable], tokens: usize) -> Value {
        let parts = self.parts();
        let each = tokens / tables.len().max(1);
        let mut tables = tables.iter().map(|table| json!(table.shortened(each)));
        if parts.is_empty() {
            return tables.next().unwrap_or_default();
        }
        parts.iter().map(|&part| part.to_owned()).zip(tables).collect::<JsonObject>().into()
    }

    /// Its description for clients.
    pub(super) fn tool(self) -> Tool {
        let reads = ToolAnnotations::new().read_only(self != Self::Record).open_world(false);
        Tool::new(self.name(), self.about(), Arc::new(self.schema()))
            .with_raw_output_schema(Arc::new(self.answer_schema()))
            .with_annotations(reads)
    }
}

fn object(value: Value) -> JsonObject {
    match value {
        Value::Object(object) => object,
        _ => JsonObject::default(),
    }
}
