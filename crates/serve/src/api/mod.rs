//! The resources of the server.

mod answer;
mod events;
pub(crate) mod given;
pub(crate) mod openapi;

use std::sync::Arc;

use axum::Router;
use axum::extract::{DefaultBodyLimit, Path, RawQuery, State};
use axum::http::HeaderMap;
use axum::middleware::from_fn_with_state;
use axum::response::Response;
use axum::routing::{delete, get};
use borehole_text::markup;
use serde_json::json;
use tower_http::compression::CompressionLayer;

pub(crate) use answer::Answer;

use crate::assistant::{Assistant, ToolSet};
use crate::desk::Desk;
use crate::guard::{Guard, guarded};
use crate::lakes::{LakeAsk, LakeView};
use crate::limits::ConnectionLimits;
use crate::pages::{
    PageForm, PagePart, chart_of, outline_of, page_of, page_of_diff, page_of_lake, page_of_lake_diff,
};
use crate::questions::{Ask, View};
use crate::refusal::Refusal;

/// All resources, behind the guard.
pub(crate) fn router(desk: Arc<Desk>, guard: Guard, tools: ToolSet) -> Router {
    let assistant = Assistant::new(desk.clone(), tools).over_http();
    Router::new()
        .route("/", get(explorer))
        .route(SCRIPT, get(script))
        .route(STYLE, get(style))
        .route("/inputs/{id}", get(html))
        .route("/api/v1/inputs", get(inputs).post(given::upload))
        .route("/api/v1/recordings", get(given::recordings).post(given::record))
        .route("/api/v1/recordings/{id}", delete(given::stop))
        .route("/api/v1/inputs/{id}/page", get(page))
        .route("/api/v1/inputs/{id}/outline", get(outline))
        .route("/api/v1/inputs/{id}/lanes", get(lanes))
        .route("/api/v1/inputs/{id}/{view}", get(view))
        .route("/api/v1/lakes", get(lakes))
        .route("/api/v1/lakes/page", get(lake_page))
        .route("/api/v1/lakes/comparison", get(lake_comparison))
        .route("/api/v1/lakes/{view}", get(lake))
        .route("/api/v1/diff", get(diff))
        .route("/api/v1/changes", get(changes))
        .route("/api/v1/openapi.json", get(description))
        .route("/api/v1/events", get(events::stream))
        .fallback(async || Answer::refused(&Refusal::missing("no such resource")))
        .layer(DefaultBodyLimit::max(ConnectionLimits::BODY_BYTES))
        .with_state(desk)
        .route_service("/mcp", assistant)
        .layer(from_fn_with_state(Arc::new(guard), guarded))
        .layer(CompressionLayer::new())
}

/// The addresses of the explorer's script and style.
const SCRIPT: &str = "/explorer.js";
const STYLE: &str = "/explorer.css";

/// The explorer. For browsers without scripts it is a list of the inputs, each a page of its own.
async fn explorer(State(desk): State<Arc<Desk>>) -> Result<Answer, Answer> {
    let listing = desk.listing().await?;
    let rows = listing.entries().into_iter().map(|entry| {
        format!(
            "<tr><td><a href=\"/inputs/{}\">{}</a></td><td>{}</td></tr>\n",
            entry.id,
            markup(&entry.path),
            markup(&entry.format)
        )
    });
    let table = format!("<h1>Inputs</h1>\n<table>\n{}</table>\n", rows.collect::<String>());
    Ok(Answer::html(borehole_web::explorer_html(SCRIPT, STYLE, &table)))
}

async fn script(headers: HeaderMap) -> Response {
    let script = borehole_web::EXPLORER_SCRIPT.as_bytes().to_vec();
    Answer::of("text/javascript; charset=utf-8", script).unless_known(&headers)
}

async fn style(headers: HeaderMap) -> Response {
    Answer::of("text/css; charset=utf-8", borehole_web::EXPLORER_STYLE.as_bytes().to_vec())
        .unless_known(&headers)
}

async fn inputs(State(desk): State<Arc<Desk>>, headers: HeaderMap) -> Result<Response, Answer> {
    let listing = desk.listing().await?;
    let listed = json!({
        "inputs": listing.entries(),
        "left_out": listing.left_out,
        "may": { "upload": desk.uploads().is_ok(), "record": desk.recordings().is_ok() },
    });
    Ok(Answer::json(listed.to_string()).unless_known(&headers))
}

/// The one-file page of an input.
async fn html(State(desk): State<Arc<Desk>>, Path(id): Path<String>) -> Result<Answer, Answer> {
    let opened = desk.open(&id, None).await?;
    let html = page_of(&desk, opened, PagePart::default(), PageForm::Html).await?;
    // The page has a stricter policy of its own, which allows only its own script.
    Ok(Answer::html(html).with_policy("frame-ancestors 'none'"))
}

async fn page(
    State(desk): State<Arc<Desk>>,
    Path(id): Path<String>,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
) -> Result<Response, Answer> {
    let asked = Ask::parse(query.as_deref())?;
    let opened = desk.open(&id, asked.value.as_deref()).await?;
    let page = page_of(&desk, opened, PagePart::of(&asked)?, PageForm::Json).await?;
    Ok(Answer::json(page).unless_known(&headers))
}

async fn outline(
    State(desk): State<Arc<Desk>>,
    Path(id): Path<String>,
    headers: HeaderMap,
) -> Result<Response, Answer> {
    let outline = outline_of(desk.open(&id, None).await?).await?;
    Ok(Answer::json(outline).unless_known(&headers))
}

async fn lanes(
    State(desk): State<Arc<Desk>>,
    Path(id): Path<String>,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
) -> Result<Response, Answer> {
    let asked = Ask::parse(query.as_deref())?;
    let (_, opened) = desk.open(&id, asked.value.as_deref()).await?;
    let chart = chart_of(&desk, opened, asked.selection()?, asked.columns).await?;
    Ok(Answer::json(chart).unless_known(&headers))
}

async fn diff(
    State(desk): State<Arc<Desk>>,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
) -> Result<Response, Answer> {
    let asked = Ask::parse(query.as_deref())?;
    let found = desk.compare([&asked.before, &asked.after], asked.value.as_deref()).await?;
    Ok(Answer::json(page_of_diff(&desk, found).await?).unless_known(&headers))
}

async fn view(
    State(desk): State<Arc<Desk>>,
    Path((id, view)): Path<(String, String)>,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
) -> Result<Response, Answer> {
    let view = View::named(&view)?;
    let table = desk.answer(view, &id, Ask::parse(query.as_deref())?).await?;
    Ok(Answer::json(json!(table).to_string()).unless_known(&headers))
}

async fn changes(
    State(desk): State<Arc<Desk>>,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
) -> Result<Response, Answer> {
    let table = desk.changes(Ask::parse(query.as_deref())?).await?;
    Ok(Answer::json(json!(table).to_string()).unless_known(&headers))
}

/// The lakes.
async fn lakes(State(desk): State<Arc<Desk>>) -> Answer {
    let names = desk.lakes().map(|lakes| lakes.names().to_vec()).unwrap_or_default();
    Answer::json(json!({ "lakes": names }).to_string())
}

/// A question about a lake.
async fn lake(
    State(desk): State<Arc<Desk>>,
    Path(view): Path<String>,
    RawQuery(query): RawQuery,
) -> Result<Answer, Answer> {
    let lakes = desk.lakes()?;
    let view = LakeView::ALL.into_iter().find(|known| known.command() == view);
    let view = view.ok_or_else(|| Refusal::missing("no such question about a lake"))?;
    let ask: LakeAsk = given::asked(query.as_deref(), &["limit"])?;
    Ok(Answer::json(json!(lakes.answer(view, &ask).await?).to_string()))
}

async fn lake_page(State(desk): State<Arc<Desk>>, RawQuery(query): RawQuery) -> Result<Answer, Answer> {
    let ask: LakeAsk = given::asked(query.as_deref(), &[])?;
    Ok(Answer::json(page_of_lake(&desk, &ask).await?))
}

async fn lake_comparison(State(desk): State<Arc<Desk>>, RawQuery(query): RawQuery) -> Result<Answer, Answer> {
    let ask: LakeAsk = given::asked(query.as_deref(), &[])?;
    Ok(Answer::json(page_of_lake_diff(&desk, &ask).await?))
}

async fn description(headers: HeaderMap) -> Response {
    Answer::json(openapi::document().to_string()).unless_known(&headers)
}
