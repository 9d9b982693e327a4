//! The description of the API, made from the types of questions and answers.

use serde_json::{Map, Value, json};

use crate::catalogue::InputEntry;
use crate::lakes::{LakeAsk, LakeView};
use crate::questions::{Ask, View, ViewTable};
use crate::recordings::{RecordingAsk, RecordingEntry};

/// The schema of what can be said in a question, by word.
pub(crate) fn words() -> Map<String, Value> {
    let mut words = words_of::<Ask>();
    // The only word with a type of its own.
    let about = words["sort"]["description"].clone();
    let sort = json!({ "type": "string", "enum": ["self", "total"], "description": about });
    words.insert("sort".to_owned(), sort);
    words
}

/// The schema of each field of a question.
pub(crate) fn words_of<T: schemars::JsonSchema>() -> Map<String, Value> {
    let schema = schemars::schema_for!(T).to_value();
    let mut words = schema["properties"].as_object().cloned().unwrap_or_default();
    for word in words.values_mut().filter_map(Value::as_object_mut) {
        word.remove("default");
        // A word that is not said is absent, never null.
        if let Some(kind) = word.get("type").and_then(|kind| kind.get(0)).cloned() {
            word.insert("type".to_owned(), kind);
        }
    }
    words
}

fn parameters(names: &[&str]) -> Vec<Value> {
    parameters_of(&words(), names)
}

fn parameters_of(words: &Map<String, Value>, names: &[&str]) -> Vec<Value> {
    let parameter = |name: &&str| {
        let mut schema = words.get(*name).cloned().unwrap_or_default();
        let about = schema.as_object_mut().and_then(|schema| schema.remove("description"));
        json!({ "name": name, "in": "query", "description": about, "schema": schema })
    };
    names.iter().map(parameter).collect()
}

fn operation(about: &str, parameters: Vec<Value>, content: &str, schema: Value) -> Value {
    json!({ "get": {
        "summary": about,
        "parameters": parameters,
        "responses": {
            "200": { "description": about, "content": { content: { "schema": schema } } },
            "default": { "$ref": "#/components/responses/Refused" },
        },
    } })
}

/// The whole description.
pub(crate) fn document() -> Value {
    json!({
        "openapi": "3.1.0",
        "info": { "title": "Borehole", "version": env!("CARGO_PKG_VERSION") },
        "paths": paths(),
        "components": {
            "schemas": { "ViewTable": schema::<ViewTable>(), "InputEntry": schema::<InputEntry>() },
            "responses": { "Refused": refused() },
        },
    })
}

/// The resources.
fn paths() -> Map<String, Value> {
    const JSON: &str = "application/json";
    let id = json!({ "name": "id", "in": "path", "required": true, "schema": { "type": "string" } });
    let (table, any) = (json!({ "$ref": "#/components/schemas/ViewTable" }), json!({ "type": "object" }));
    let inputs = json!({ "type": "object", "properties": {
        "inputs": { "type": "array", "items": { "$ref": "#/components/schemas/InputEntry" } },
        "may": { "type": "object", "properties": {
            "upload": { "type": "boolean", "description": "Whether files may be given" },
            "record": { "type": "boolean", "description": "Whether recordings may be started" },
        } },
        "left_out": { "type": "integer", "description": "The number of older files that are too many to be listed" },
    } });
    let page = parameters(&["value", "thread", "process", "interpreter", "label", "from", "to", "under"]);
    let of_lanes = operation(
        "Get what each thread did in the order of time",
        [
            vec![id.clone()],
            parameters(&["value", "thread", "process", "interpreter", "from", "to", "columns"]),
        ]
        .concat(),
        JSON,
        any.clone(),
    );
    let sides = parameters(&["before", "after", "value"]);
    let limited = parameters(&["before", "after", "value", "limit"]);
    let of_page =
        operation("Get what the explorer shows", [vec![id.clone()], page].concat(), JSON, any.clone());
    let of_outline = operation(
        "Get what is known of a heap soon: shallow sizes in place of retained ones",
        vec![id.clone()],
        JSON,
        any.clone(),
    );
    let of_diff = operation("Compare two sets of profiles, as the explorer shows it", sides, JSON, any);
    let of_changes = operation("List the functions that changed", limited, JSON, table.clone());
    let of_inputs = operation("List the inputs", Vec::new(), JSON, inputs);
    let text = json!({ "type": "string" });
    let of_events = operation("Tell of changes as they happen", Vec::new(), "text/event-stream", text);
    let mut paths: Map<String, Value> = Map::new();
    for view in View::ALL {
        let parameters = [vec![id.clone()], parameters(&view.words())].concat();
        let path = format!("/api/v1/inputs/{{id}}/{}", view.name());
        paths.insert(path, operation(view.about(), parameters, JSON, table.clone()));
    }
    for (path, operation) in [
        ("/api/v1/inputs", of_inputs),
        ("/api/v1/inputs/{id}/page", of_page),
        ("/api/v1/inputs/{id}/outline", of_outline),
        ("/api/v1/inputs/{id}/lanes", of_lanes),
        ("/api/v1/diff", of_diff),
        ("/api/v1/changes", of_changes),
        ("/api/v1/events", of_events),
    ] {
        paths.insert(path.to_owned(), operation);
    }
    given(&mut paths);
    lakes(&mut paths, &table);
    paths
}

/// An operation that changes something, with an answer of a named object.
fn order(about: &str, parameters: &[Value], name: &str, answer: Value) -> Value {
    let schema = json!({ "type": "object", "properties": { name: answer } });
    json!({
        "summary": about,
        "parameters": parameters,
        "responses": {
            "default": { "$ref": "#/components/responses/Refused" },
            "2XX": { "description": about, "content": { "application/json": { "schema": schema } } },
        },
    })
}

/// The resources of what clients give: files, and orders to record.
fn given(paths: &mut Map<String, Value>) {
    let entry = json!({ "$ref": "#/components/schemas/InputEntry" });
    let recording = schema::<RecordingEntry>();
    let all = json!({ "type": "array", "items": recording });
    let name = json!({ "name": "name", "in": "query", "description": "The name of the file", "schema": { "type": "string" } });
    let id = json!({ "name": "id", "in": "path", "required": true, "schema": { "type": "integer" } });
    let mut upload = order("Give a file, where it is allowed", &[name], "input", entry);
    let bytes = json!({ "application/octet-stream": { "schema": { "type": "string", "format": "binary" } } });
    upload["requestBody"] = json!({ "required": true, "content": bytes });
    if let Some(inputs) = paths.get_mut("/api/v1/inputs") {
        inputs["post"] = upload;
    }
    let words = parameters_of(&words_of::<RecordingAsk>(), &["seconds", "rate"]);
    let recordings = json!({
        "get": order("List the recordings", &[], "recordings", all),
        "post": order("Start a recording, where it is allowed", &words, "recording", recording.clone()),
    });
    paths.insert("/api/v1/recordings".to_owned(), recordings);
    let stop = json!({ "delete": order("Stop a recording", &[id], "recording", recording) });
    paths.insert("/api/v1/recordings/{id}".to_owned(), stop);
}

/// The resources of lakes.
fn lakes(paths: &mut Map<String, Value>, table: &Value) {
    let names = json!({ "type": "array", "items": { "type": "string" } });
    let list = json!({ "get": order("List the lakes", &[], "lakes", names) });
    paths.insert("/api/v1/lakes".to_owned(), list);
    let words = words_of::<LakeAsk>();
    for (path, about, own) in [
        ("page", "Get the flame graph of a selection of a lake, as the explorer shows it", vec![]),
        ("comparison", "Compare two selections of a lake, as the explorer shows it", vec!["before", "after"]),
    ] {
        let names = [vec!["lake", "since", "until"], LakeView::CHOICE.to_vec(), own].concat();
        let any = json!({ "type": "object" });
        let operation = operation(about, parameters_of(&words, &names), "application/json", any);
        paths.insert(format!("/api/v1/lakes/{path}"), operation);
    }
    for view in LakeView::ALL {
        let parameters = parameters_of(&words, &view.words());
        let operation = operation(view.about(), parameters, "application/json", table.clone());
        paths.insert(format!("/api/v1/lakes/{}", view.command()), operation);
    }
}

/// The answer to a question that is refused.
fn refused() -> Value {
    let text = json!({ "type": "string" });
    let error = json!({
        "type": "object",
        "required": ["kind", "message"],
        "properties": { "kind": text, "message": text, "help": text },
    });
    json!({
        "description": "Why there is no answer",
        "content": { "application/json": { "schema": { "type": "object", "properties": { "error": error } } } },
    })
}

/// The schema of a type, with all that it needs inside.
pub(crate) fn schema<T: schemars::JsonSchema>() -> Value {
    let settings = schemars::generate::SchemaSettings::draft2020_12().with(|settings| {
        settings.inline_subschemas = true;
        settings.meta_schema = None;
    });
    settings.into_generator().into_root_schema_for::<T>().to_value()
}
