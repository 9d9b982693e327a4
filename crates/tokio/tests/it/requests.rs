//! Requests of an axum server.

use std::convert::Infallible;
use std::fs::{self, File};
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::http::{Request, StatusCode};
use axum::routing::get;
use borehole_recorder::Recorder;
use borehole_recorder::trc::{Reader, TypedEvents};
use borehole_tokio::{HttpRequestEvent, RequestLayer};
use tower_service::Service as _;

use super::scratch::Scratch;

async fn slow() -> StatusCode {
    tokio::time::sleep(Duration::from_millis(20)).await;
    StatusCode::CREATED
}

async fn answer(mut router: Router, path: &str) -> Result<StatusCode, Infallible> {
    let request = Request::builder().uri(path).body(Body::empty()).unwrap();
    router.call(request).await.map(|answer| answer.status())
}

#[test]
fn requests_have_the_pattern_of_their_route_and_their_time() {
    let folder = Scratch::new();
    let recorder = Recorder::builder(folder.folder()).start().unwrap();
    let layer = RequestLayer::new(recorder.handle());
    let router = Router::new().route("/carts/{id}", get(slow)).route_layer(layer);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    runtime.block_on(async {
        assert_eq!(answer(router.clone(), "/carts/7").await, Ok(StatusCode::CREATED));
        let given_up = tokio::time::timeout(Duration::from_millis(1), answer(router.clone(), "/carts/8"));
        assert!(given_up.await.is_err());
    });
    recorder.finish().unwrap();
    let mut found = Vec::new();
    for entry in fs::read_dir(folder.folder()).unwrap() {
        let mut reader = Reader::new(File::open(entry.unwrap().path()).unwrap());
        let mut typed = TypedEvents::default();
        while let Some(event) = reader.next_event().unwrap() {
            if let Some(request) = typed.read::<HttpRequestEvent<'_>>(&event).unwrap() {
                let took_ms = request.duration_ns / 1_000_000;
                found.push((
                    request.method.to_owned(),
                    request.route.to_owned(),
                    request.status,
                    took_ms >= 20,
                ));
            }
        }
    }
    let request = |status, is_long| ("GET".to_owned(), "/carts/{id}".to_owned(), status, is_long);
    assert_eq!(found[0], request(Some(201), true));
    assert_eq!((found.len(), found[1].2), (2, None), "{found:?}");
}
