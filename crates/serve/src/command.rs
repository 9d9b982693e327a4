//! The ways to ask without a server: one question, or an assistant on standard input and output.

use std::io;
use std::sync::Arc;

use serde_json::json;
use tokio::runtime::{Builder, Runtime};

use crate::api;
use crate::assistant::Assistant;
use crate::desk::Desk;
use crate::lakes::LakeView;
use crate::questions::{Ask, View};
use crate::refusal::Refusal;
use crate::server::ServeOptions;

/// An answer, for people and for programs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QueryAnswer {
    /// A table of all rows that were asked for.
    pub text: String,
    /// That table as JSON, as the API has it.
    pub json: String,
}

fn runtime() -> io::Result<Runtime> {
    Builder::new_multi_thread().enable_all().build()
}

/// Answers an assistant on standard input and output until it ends.
///
/// # Errors
/// If the other side does not speak the protocol.
pub fn assist(options: &ServeOptions) -> io::Result<()> {
    let desk = Arc::new(Desk::new(options)?);
    let runtime = runtime()?;
    let ended = runtime.block_on(Assistant::new(desk.clone(), options.tools).over_stdio());
    desk.end();
    runtime.shutdown_background();
    ended
}

/// Asks one question about the inputs: `view` is a view of the API, `inputs` for the list, or `changes` for a comparison. If there
/// is only one input, the question is about it, unless a word `input` names it.
///
/// # Errors
/// If the question is not understood, or an input cannot be read.
pub fn query(
    options: &ServeOptions,
    view: &str,
    words: Vec<(String, String)>,
) -> Result<QueryAnswer, Refusal> {
    let internal = |error: io::Error| Refusal::new(crate::refusal::RefusalKind::Internal, error.to_string());
    let desk = Arc::new(Desk::new(options).map_err(internal)?);
    let lake = LakeView::ALL.into_iter().find(|known| known.name() == view);
    if let (Some(view), Ok(lakes)) = (lake, desk.lakes()) {
        let runtime = runtime().map_err(internal)?;
        let table = runtime.block_on(lakes.answer(view, &api::given::asked_of(words, &["limit"])?))?;
        return Ok(QueryAnswer { text: table.text(usize::MAX), json: json!(table).to_string() });
    }
    let (inputs, words): (Vec<_>, Vec<_>) = words.into_iter().partition(|(word, _)| word == "input");
    let runtime = runtime().map_err(internal)?;
    let table = runtime.block_on(async {
        let ask = Ask::of_pairs(words)?;
        match view {
            "inputs" => desk.list(ask).await,
            "changes" => desk.changes(ask).await,
            _ => {
                let view = View::named(view)?;
                let named = match inputs.into_iter().next_back() {
                    Some((_, named)) => named,
                    None => only(&desk).await?,
                };
                desk.answer(view, &named, ask).await
            }
        }
    })?;
    runtime.shutdown_background();
    Ok(QueryAnswer { text: table.text(usize::MAX), json: json!(table).to_string() })
}

/// The id of the only input.
async fn only(desk: &Arc<Desk>) -> Result<String, Refusal> {
    match &desk.listing().await?.entries()[..] {
        [only] => Ok(only.id.clone()),
        [] => Err(Refusal::missing("no inputs")),
        several => Err(Refusal::invalid(format!("expected one input, found {}", several.len()))
            .with_help("add input=ID; the view inputs lists them")),
    }
}
