//! Files that clients give to the server, and their orders to record.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::{Path, RawQuery, State};
use axum::http::StatusCode;
use borehole_text::document;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::Answer;
use crate::desk::Desk;
use crate::questions::Ask;
use crate::recordings::RecordingAsk;
use crate::refusal::Refusal;

/// The words of an upload.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct UploadAsk {
    #[serde(default)]
    name: String,
}

/// The words that may be said several times.
const LISTS: [&str; 4] = ["label", "by", "before", "after"];

/// The words of a query, of which those that are `numbers` are.
pub(super) fn asked<T: serde::de::DeserializeOwned>(
    query: Option<&str>,
    numbers: &[&str],
) -> Result<T, Refusal> {
    asked_of(Ask::words(query), numbers)
}

/// Like [`asked`], of pairs of word and value.
pub(crate) fn asked_of<T: serde::de::DeserializeOwned>(
    said: impl IntoIterator<Item = (String, String)>,
    numbers: &[&str],
) -> Result<T, Refusal> {
    let mut words: Map<String, Value> = Map::new();
    for (word, text) in said {
        if LISTS.contains(&&*word) {
            let list = words.entry(word).or_insert_with(|| Value::Array(Vec::new()));
            list.as_array_mut().into_iter().for_each(|list| list.push(text.clone().into()));
        } else {
            let number = text.parse::<u64>().ok().filter(|_| numbers.contains(&&*word));
            words.insert(word, number.map_or_else(|| Value::from(text), Value::from));
        }
    }
    serde_json::from_value(Value::Object(words))
        .map_err(|error| Refusal::invalid(document(error.to_string().as_bytes())))
}

/// Takes a file, and says how its input is called.
pub(super) async fn upload(
    State(desk): State<Arc<Desk>>,
    RawQuery(query): RawQuery,
    body: Body,
) -> Result<Answer, Answer> {
    let files = desk.uploads()?;
    let UploadAsk { name } = asked(query.as_deref(), &[])?;
    let name = files.upload(&name, body).await?;
    desk.catalogue.expect_change();
    let input = desk.input(&name).await?;
    Ok(Answer::json(json!({ "input": input.entry }).to_string()).with_status(StatusCode::CREATED))
}

/// The recordings.
pub(super) async fn recordings(State(desk): State<Arc<Desk>>) -> Result<Answer, Answer> {
    let (recordings, _) = desk.recordings()?;
    Ok(Answer::json(json!({ "recordings": recordings.entries() }).to_string()))
}

/// Starts a recording.
pub(super) async fn record(
    State(desk): State<Arc<Desk>>,
    RawQuery(query): RawQuery,
) -> Result<Answer, Answer> {
    let (recordings, files) = desk.recordings()?;
    let ask: RecordingAsk = asked(query.as_deref(), &["seconds", "rate"])?;
    let started = recordings.start(&ask, files)?;
    Ok(Answer::json(json!({ "recording": started }).to_string()).with_status(StatusCode::CREATED))
}

/// Stops a recording.
pub(super) async fn stop(State(desk): State<Arc<Desk>>, Path(id): Path<String>) -> Result<Answer, Answer> {
    let (recordings, _) = desk.recordings()?;
    let id = id.parse().map_err(|_| Refusal::invalid("expected the number of a recording"))?;
    Ok(Answer::json(json!({ "recording": recordings.stop(id)? }).to_string()))
}
