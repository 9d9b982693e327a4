//! Records the requests that a service of `tower` answers.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use borehole_recorder::trc::TraceEvent;
use borehole_recorder::{Handle, TailLatency, now_ns};
use tower_layer::Layer;
use tower_service::Service;

use crate::thread::current_task;

/// A request was answered. Readers show it as a span.
///
/// Borehole's own; the roles are those of dial9 0.5.7 for spans that are one event.
#[derive(TraceEvent, Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct HttpRequestEvent<'a> {
    /// The time of the answer.
    #[traceevent(timestamp)]
    pub timestamp_ns: u64,
    /// `http request`.
    #[traceevent(pooled, role = "span.name")]
    pub span_name: &'a str,
    /// The time from the call of the service to the head of the answer.
    #[traceevent(unit = "ns", role = "span.duration")]
    pub duration_ns: u64,
    /// The task that answered.
    #[traceevent(role = "tokio.task_id")]
    pub task_id: Option<u64>,
    /// The method.
    #[traceevent(pooled)]
    pub method: &'a str,
    /// The pattern that the path matched, such as `/carts/{id}`. Without a router that names it, the path.
    #[traceevent(pooled)]
    pub route: &'a str,
    /// The status of the answer; absent if the service failed or the request was given up.
    pub status: Option<u16>,
}

/// A layer for `tower`, and so for axum, that records each request.
///
/// In axum, add it with `Router::route_layer`, and with the feature `axum` the events have the pattern of the route.
#[derive(Clone)]
pub struct RequestLayer {
    handle: Handle,
    latency: Option<Arc<TailLatency>>,
}

impl RequestLayer {
    /// Creates a layer that records through `handle`.
    #[must_use]
    pub fn new(handle: Handle) -> Self {
        Self { handle, latency: None }
    }

    /// Triggers a dump when more than one request in a hundred takes longer than `limit`.
    #[must_use]
    pub fn trigger_on_p99(mut self, limit: Duration) -> Self {
        self.latency = Some(Arc::new(TailLatency::new(self.handle.clone(), "requests", limit)));
        self
    }
}

impl<S> Layer<S> for RequestLayer {
    type Service = RecordedService<S>;

    fn layer(&self, inner: S) -> RecordedService<S> {
        RecordedService { inner, layer: self.clone() }
    }
}

/// A service whose requests are recorded.
#[derive(Clone)]
pub struct RecordedService<S> {
    inner: S,
    layer: RequestLayer,
}

/// The longest path that is kept: paths without a pattern are all different.
const MOST_LETTERS: usize = 256;

impl<S, B, R> Service<http::Request<B>> for RecordedService<S>
where
    S: Service<http::Request<B>, Response = http::Response<R>>,
{
    type Response = S::Response;
    type Error = S::Error;
    type Future = RecordedRequest<S::Future>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, request: http::Request<B>) -> Self::Future {
        let open = OpenRequest {
            layer: self.layer.clone(),
            start_ns: now_ns(),
            method: request.method().clone(),
            route: route(&request),
            status: None,
        };
        RecordedRequest { open, future: Box::pin(self.inner.call(request)) }
    }
}

fn route<B>(request: &http::Request<B>) -> String {
    #[cfg(feature = "axum")]
    if let Some(matched) = request.extensions().get::<axum::extract::MatchedPath>() {
        return matched.as_str().to_owned();
    }
    let path = request.uri().path();
    path.chars().take(MOST_LETTERS).collect()
}

/// A request that is not answered yet. Dropping it records it.
struct OpenRequest {
    layer: RequestLayer,
    start_ns: u64,
    method: http::Method,
    route: String,
    status: Option<u16>,
}

impl Drop for OpenRequest {
    fn drop(&mut self) {
        let timestamp_ns = now_ns();
        let duration_ns = timestamp_ns.saturating_sub(self.start_ns);
        self.layer.handle.record(&HttpRequestEvent {
            timestamp_ns,
            span_name: "http request",
            duration_ns,
            task_id: Some(current_task()).filter(|task| *task > 0),
            method: self.method.as_str(),
            route: &self.route,
            status: self.status,
        });
        if let Some(latency) = &self.layer.latency {
            latency.observe(Duration::from_nanos(duration_ns));
        }
    }
}

/// The future of a recorded request. A request whose future is dropped is recorded without a status.
pub struct RecordedRequest<F> {
    future: Pin<Box<F>>,
    open: OpenRequest,
}

impl<F, R, E> Future for RecordedRequest<F>
where
    F: Future<Output = Result<http::Response<R>, E>>,
{
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<F::Output> {
        let answer = std::task::ready!(self.future.as_mut().poll(context));
        self.open.status = answer.as_ref().ok().map(|answer| answer.status().as_u16());
        Poll::Ready(answer)
    }
}
