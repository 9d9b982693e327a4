//! An answer of the server.

use axum::body::Body;
use axum::http::StatusCode;
use axum::http::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, ETAG, HeaderMap, HeaderValue, IF_NONE_MATCH,
};
use axum::response::{IntoResponse, Response};
use serde_json::json;
use sha2::{Digest as _, Sha256};

use crate::refusal::{Refusal, RefusalKind};

/// A response: its status, type and content.
pub(crate) struct Answer {
    status: StatusCode,
    content_type: &'static str,
    body: Vec<u8>,
    policy: Option<&'static str>,
}

impl Answer {
    pub(crate) fn json(body: String) -> Self {
        Self::of("application/json", body.into_bytes())
    }

    pub(crate) fn html(body: String) -> Self {
        Self::of("text/html; charset=utf-8", body.into_bytes())
    }

    pub(crate) fn of(content_type: &'static str, body: Vec<u8>) -> Self {
        Self { status: StatusCode::OK, content_type, body, policy: None }
    }

    /// Why there is no answer.
    pub(crate) fn refused(refusal: &Refusal) -> Self {
        let status = match refusal.kind {
            RefusalKind::Invalid => StatusCode::BAD_REQUEST,
            RefusalKind::Missing => StatusCode::NOT_FOUND,
            RefusalKind::Unreadable => StatusCode::UNPROCESSABLE_ENTITY,
            RefusalKind::Forbidden => StatusCode::FORBIDDEN,
            RefusalKind::TooLarge => StatusCode::PAYLOAD_TOO_LARGE,
            RefusalKind::Busy => StatusCode::SERVICE_UNAVAILABLE,
            RefusalKind::Internal => StatusCode::INTERNAL_SERVER_ERROR,
        };
        Self { status, ..Self::json(json!({ "error": refusal }).to_string()) }
    }

    /// Replaces the status.
    pub(crate) fn with_status(self, status: StatusCode) -> Self {
        Self { status, ..self }
    }

    /// Replaces the policy on what a page may load.
    pub(crate) fn with_policy(self, policy: &'static str) -> Self {
        Self { policy: Some(policy), ..self }
    }

    /// The answer, or only that it is the one that the client has already.
    pub(crate) fn unless_known(self, headers: &HeaderMap) -> Response {
        let digest = Sha256::digest(&self.body);
        let tag: String = digest.iter().take(12).map(|byte| format!("{byte:02x}")).collect();
        let tag = format!("\"{tag}\"");
        let known = headers.get(IF_NONE_MATCH).and_then(|known| known.to_str().ok()).unwrap_or_default();
        let is_known = known.split(',').any(|known| known.trim().trim_start_matches("W/") == tag);
        let mut response =
            if is_known { StatusCode::NOT_MODIFIED.into_response() } else { self.into_response() };
        if let Ok(tag) = HeaderValue::from_str(&tag) {
            response.headers_mut().insert(ETAG, tag);
        }
        response
    }
}

impl From<Refusal> for Answer {
    fn from(refusal: Refusal) -> Self {
        Self::refused(&refusal)
    }
}

impl IntoResponse for Answer {
    fn into_response(self) -> Response {
        let mut response = Response::new(Body::from(self.body));
        *response.status_mut() = self.status;
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(self.content_type));
        // Answers may be kept, but must be asked for again before they are used.
        headers.insert(CACHE_CONTROL, HeaderValue::from_static("private, no-cache"));
        if let Some(policy) = self.policy {
            headers.insert(CONTENT_SECURITY_POLICY, HeaderValue::from_static(policy));
        }
        response
    }
}
