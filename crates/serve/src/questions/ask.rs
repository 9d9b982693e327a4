//! The words of questions, which are those of the command's options.

use borehole::model::LaneId;
use borehole_analysis::{Pattern, Query, SampleSelection, TimeRange};
use borehole_text::document;
use schemars::JsonSchema;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value};

use crate::opened::by_function;
use crate::refusal::Refusal;

/// Everything that can be said in a question. Each view says which of it applies.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Ask {
    /// Value type to add up, such as cpu or alloc_space/bytes; `samples` counts samples
    pub(crate) value: Option<String>,
    /// Only samples of these threads, by number
    pub(crate) thread: Vec<String>,
    /// Only samples of these processes, by number
    pub(crate) process: Vec<String>,
    /// Only samples of these interpreters, by number
    pub(crate) interpreter: Vec<String>,
    /// Only samples with all of these labels, each as KEY=VALUE
    pub(crate) label: Vec<String>,
    /// Only samples from here on, in nanoseconds since the first sample
    pub(crate) from: Option<i64>,
    /// Only samples before this, in nanoseconds since the first sample
    pub(crate) to: Option<i64>,
    /// Only samples below these calls, each the name of a function, the root first
    pub(crate) under: Vec<String>,
    /// Only samples with a frame that matches this regular expression
    #[serde(rename = "match")]
    pub(crate) matching: Option<String>,
    /// Without samples with a frame that matches
    pub(crate) exclude: Option<String>,
    /// Only samples with a frame that matches, and their stacks from that frame on
    pub(crate) focus: Option<String>,
    /// Drop frames that match before counting
    pub(crate) hide: Option<String>,
    /// The number of rows
    pub(crate) limit: Option<usize>,
    /// The order of functions: `self` or `total`
    pub(crate) sort: Option<TopOrder>,
    /// The function that the question is about: its handle such as f12, its name, or a regular expression
    pub(crate) function: Option<String>,
    /// The number of levels
    pub(crate) depth: Option<usize>,
    /// The property by which samples are grouped: `thread`, `process`, or the key of a label
    pub(crate) by: Option<String>,
    /// The inputs of the side before
    pub(crate) before: Vec<String>,
    /// The inputs of the side after
    pub(crate) after: Vec<String>,
    /// A source file, as it is named in the profile
    pub(crate) file: Option<String>,
    /// The number of columns of a picture
    pub(crate) columns: Option<usize>,
    /// A node of a heap: its handle such as n7
    #[serde(deserialize_with = "handle")]
    #[schemars(with = "Option<String>")]
    pub(crate) node: Option<String>,
    /// An address in a heap, hexadecimal with 0x or decimal
    pub(crate) address: Option<String>,
    /// A class of a heap
    pub(crate) class: Option<String>,
    /// A text to search for
    pub(crate) text: Option<String>,
}

/// The order of functions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum TopOrder {
    /// By what they do themselves.
    #[default]
    #[serde(rename = "self")]
    Own,
    /// By what they and their callees do.
    Total,
}

/// The words that may be said several times, and those that are numbers.
const LISTS: [&str; 7] = ["thread", "process", "interpreter", "label", "under", "before", "after"];
const NUMBERS: [&str; 5] = ["from", "to", "limit", "depth", "columns"];

/// The handle of a node, or its number alone.
fn handle<'d, D: Deserializer<'d>>(from: D) -> Result<Option<String>, D::Error> {
    match Option::<Value>::deserialize(from)? {
        None => Ok(None),
        Some(Value::String(text)) => Ok(Some(text)),
        Some(Value::Number(number)) => Ok(Some(number.to_string())),
        Some(_) => Err(D::Error::custom("node: expected a handle such as n7")),
    }
}

impl Ask {
    /// The question in the query of an address, without what is not part of it.
    pub(crate) fn parse(query: Option<&str>) -> Result<Self, Refusal> {
        Self::of_pairs(Self::words(query))
    }

    /// The pairs of word and value in the query of an address, without the token of the server.
    pub(crate) fn words(query: Option<&str>) -> impl Iterator<Item = (String, String)> {
        let pairs = url::form_urlencoded::parse(query.unwrap_or_default().as_bytes());
        pairs.into_owned().filter(|(key, _)| key != "token")
    }

    /// The question in pairs of word and value. A list may be given as one value with commas, labels and calls
    /// aside.
    pub(crate) fn of_pairs(pairs: impl IntoIterator<Item = (String, String)>) -> Result<Self, Refusal> {
        let mut object = Map::new();
        for (key, text) in pairs.into_iter().filter(|(_, text)| !text.is_empty()) {
            if LISTS.contains(&&*key) {
                let parts: Vec<Value> = match &*key {
                    "label" | "under" => vec![text.into()],
                    _ => text.split(',').map(Value::from).collect(),
                };
                let list = object.entry(key).or_insert_with(|| Value::Array(Vec::new()));
                list.as_array_mut().into_iter().for_each(|list| list.extend(parts.clone()));
            } else if NUMBERS.contains(&&*key) {
                let number: i64 = text.parse().map_err(|_| {
                    Refusal::invalid(format!(
                        "{key}: expected a whole number, found {}",
                        document(text.as_bytes())
                    ))
                })?;
                object.insert(key, number.into());
            } else {
                object.insert(key, text.into());
            }
        }
        Self::of_json(Value::Object(object))
    }

    /// The question as JSON.
    pub(crate) fn of_json(value: Value) -> Result<Self, Refusal> {
        serde_json::from_value(value).map_err(|error| {
            Refusal::invalid(document(error.to_string().as_bytes()))
                .with_help("/api/v1/openapi.json describes the parameters of each view")
        })
    }

    /// The samples that it is about.
    pub(crate) fn selection(&self) -> Result<SampleSelection, Refusal> {
        let lane = |text: &String| {
            LaneId::parse(text).ok_or_else(|| {
                Refusal::invalid(format!(
                    "expected a number of a thread or process, found {}",
                    document(text.as_bytes())
                ))
            })
        };
        let threads =
            self.thread.iter().map(|text| Ok(lane(text)?.to_u64())).collect::<Result<_, Refusal>>()?;
        let processes =
            self.process.iter().map(|text| Ok(lane(text)?.to_process())).collect::<Result<_, Refusal>>()?;
        let interpreters = self.interpreter.iter().map(|text| {
            text.parse().map_err(|_| {
                let found = document(text.as_bytes());
                Refusal::invalid(format!("interpreter: expected a whole number, found {found}"))
            })
        });
        let interpreters = interpreters.collect::<Result<_, Refusal>>()?;
        let labels = self.label.iter().map(|text| {
            let (key, value) = text.split_once('=').ok_or_else(|| {
                Refusal::invalid(format!("label: expected KEY=VALUE, found {}", document(text.as_bytes())))
            })?;
            Ok((key.as_bytes().to_vec(), value.as_bytes().to_vec()))
        });
        let labels = labels.collect::<Result<_, Refusal>>()?;
        let time = (self.from.is_some() || self.to.is_some()).then(|| TimeRange {
            start_ns: self.from.unwrap_or(i64::MIN),
            end_ns: self.to.unwrap_or(i64::MAX),
        });
        if time.is_some_and(|time| time.start_ns >= time.end_ns) {
            return Err(Refusal::invalid("to: expected a time after from"));
        }
        Ok(SampleSelection { time, threads, processes, interpreters, labels, ..SampleSelection::default() })
    }

    /// The shape of stacks.
    pub(crate) fn query(&self) -> Result<Query, Refusal> {
        let pattern = |text: &Option<String>| text.as_deref().map(pattern).transpose();
        Ok(Query {
            keep: pattern(&self.matching)?,
            exclude: pattern(&self.exclude)?,
            focus: pattern(&self.focus)?,
            hide: pattern(&self.hide)?,
            ..by_function()
        })
    }

    /// Whether stacks keep their shape.
    pub(crate) fn is_unshaped(&self) -> bool {
        [&self.matching, &self.exclude, &self.focus, &self.hide].into_iter().all(Option::is_none)
    }
}

/// A regular expression.
pub(crate) fn pattern(text: &str) -> Result<Pattern, Refusal> {
    Pattern::new(text).map_err(|error| Refusal::invalid(document(error.to_string().as_bytes())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_say_the_same_as_json() {
        let asked =
            Ask::parse(Some("thread=7,8&thread=9&label=a%3Db,c&limit=5&sort=total&match=x&token=t")).unwrap();
        let json = serde_json::json!({
            "thread": ["7", "8", "9"], "label": ["a=b,c"], "limit": 5, "sort": "total", "match": "x",
        });
        assert_eq!(asked, Ask::of_json(json).unwrap());
        let selection = asked.selection().unwrap();
        assert_eq!((selection.threads, selection.labels.len()), (vec![7, 8, 9], 1));
    }

    #[test]
    fn wrong_words_are_refused_and_named() {
        for (query, named) in
            [("colour=red", "colour"), ("limit=ten", "limit"), ("limit=-1", "-1"), ("sort=name", "name")]
        {
            let refusal = Ask::parse(Some(query)).unwrap_err();
            assert!(refusal.message.contains(named), "{query}: {}", refusal.message);
        }
        let asked = |query| Ask::parse(Some(query)).unwrap();
        assert!(asked("from=5&to=5").selection().is_err());
        assert!(asked("label=x").selection().is_err());
        assert!(asked("thread=x").selection().is_err());
        assert!(asked("focus=(").query().is_err());
    }
}
