//! Changes as they happen: server-sent events.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::sync::Arc;

use axum::extract::State;
use axum::response::Sse;
use axum::response::sse::{Event, KeepAlive};
use futures::Stream;
use futures::stream::unfold;
use serde_json::json;
use tokio::time::sleep;

use crate::catalogue::{Listing, Version};
use crate::desk::Desk;
use crate::limits::CatalogueLimits;
use crate::refusal::Refusal;

/// A client that listens: the inputs that it knows, and the events that it is still to get.
struct Listener {
    desk: Arc<Desk>,
    known: Option<Arc<Listing>>,
    told: Vec<Event>,
}

impl Listener {
    /// Looks at the folders, and notes what is new to this listener.
    async fn look(&mut self) -> Result<(), Refusal> {
        let now = self.desk.listing().await?;
        let Some(before) = self.known.replace(now.clone()) else { return Ok(()) };
        if Arc::ptr_eq(&before, &now) {
            return Ok(());
        }
        let known: BTreeMap<&str, Version> =
            before.inputs().map(|input| (&*input.entry.id, input.version)).collect();
        for input in now.inputs() {
            if known.get(&*input.entry.id).is_some_and(|known| *known != input.version) {
                let data = json!({ "id": input.entry.id }).to_string();
                self.told.push(Event::default().event("input").data(data));
            }
        }
        if now.inputs().map(|input| &input.entry.id).ne(before.inputs().map(|input| &input.entry.id)) {
            self.told.push(Event::default().event("inputs").data("{}"));
        }
        Ok(())
    }
}

/// Tells what changes while somebody listens.
pub(super) async fn stream(
    State(desk): State<Arc<Desk>>,
) -> Sse<impl Stream<Item = Result<Event, Infallible>>> {
    let listener = Listener { desk, known: None, told: Vec::new() };
    let events = unfold(listener, |mut listener| async move {
        loop {
            if let Some(event) = listener.told.pop() {
                return Some((Ok(event), listener));
            }
            if listener.known.is_some() {
                sleep(CatalogueLimits::WATCHED).await;
            }
            listener.look().await.ok()?;
        }
    });
    Sse::new(events).keep_alive(KeepAlive::default())
}
