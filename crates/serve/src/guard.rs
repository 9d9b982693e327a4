//! Who may ask: requests of other pages, of other names for this machine, and without the token are refused.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::header::{
    AUTHORIZATION, COOKIE, HOST, HeaderMap, HeaderName, HeaderValue, ORIGIN, SET_COOKIE,
};
use axum::http::{Method, Uri};
use axum::middleware::Next;
use axum::response::{IntoResponse as _, Response};
use uuid::Uuid;

use crate::api::Answer;
use crate::limits::ConnectionLimits;
use crate::refusal::{Refusal, RefusalKind};
use crate::server::ServeOptions;

/// The name of the cookie that holds the token.
const COOKIE_NAME: &str = "borehole_token";

/// The conditions under which a request is answered.
#[derive(Clone, Debug)]
pub(crate) struct Guard {
    /// The token, unless the server is for this machine only.
    pub(crate) token: Option<String>,
    /// Names of this machine that are accepted beside its addresses.
    pub(crate) hosts: Vec<String>,
    /// Whether connections are encrypted.
    pub(crate) is_encrypted: bool,
}

impl Guard {
    /// The guard of a server that listens on `address`. On anything but loopback there is a token.
    pub(crate) fn new(address: SocketAddr, options: &ServeOptions) -> Self {
        let is_open = address.ip().is_loopback() && !options.wants_token;
        let token = (!is_open).then(|| Uuid::new_v4().simple().to_string());
        Self { token, hosts: options.hosts.clone(), is_encrypted: options.tls.is_some() }
    }

    fn check(&self, request: &Request) -> Result<(), Refusal> {
        let headers = request.headers();
        let host = text(headers, &HOST).ok_or_else(|| forbidden("missing Host header"))?;
        if !self.knows(host) {
            return Err(forbidden("unknown host name: another site may have sent this request")
                .with_help("use the address that the server printed, or start it with --allow-host NAME"));
        }
        if let Some(origin) = text(headers, &ORIGIN)
            && origin != format!("http://{host}")
            && origin != format!("https://{host}")
        {
            return Err(forbidden("request of another site"));
        }
        if !is_of_here(request) {
            return Err(forbidden("request of another site"));
        }
        if request.uri().query().is_some_and(|query| query.len() > ConnectionLimits::QUERY_BYTES) {
            return Err(Refusal::new(RefusalKind::TooLarge, "too long a query"));
        }
        if let Some(token) = &self.token
            && !tokens(request).any(|given| is_equal(given, token))
        {
            return Err(forbidden("missing token")
                .with_help("open the address that the server printed, which contains the token"));
        }
        Ok(())
    }

    /// The cookie that shows a token.
    fn cookie(&self, token: &str) -> String {
        let secure = if self.is_encrypted { "; Secure" } else { "" };
        format!("{COOKIE_NAME}={token}; Path=/; HttpOnly; SameSite=Strict{secure}")
    }

    /// Whether `host` names this machine. An address does, because no other site can have it; a name could be anybody's that
    /// leads here.
    fn knows(&self, host: &str) -> bool {
        let name = host.parse::<axum::http::uri::Authority>().map(|authority| authority.host().to_owned());
        let Ok(name) = name else { return false };
        let bare = name.trim_start_matches('[').trim_end_matches(']');
        bare.parse::<IpAddr>().is_ok()
            || name.eq_ignore_ascii_case("localhost")
            || self.hosts.iter().any(|known| known.eq_ignore_ascii_case(&name))
    }
}

/// Whether a browser says that a request is of this site, or that the user follows a link to a page.
fn is_of_here(request: &Request) -> bool {
    let headers = request.headers();
    let of = |name| text(headers, &HeaderName::from_static(name));
    match of("sec-fetch-site") {
        None | Some("same-origin" | "none") => true,
        Some(_) => {
            let is_page =
                of("sec-fetch-mode") == Some("navigate") && of("sec-fetch-dest") == Some("document");
            is_page && request.method() == Method::GET && !request.uri().path().starts_with("/api/")
        }
    }
}

fn forbidden(message: &str) -> Refusal {
    Refusal::new(RefusalKind::Forbidden, message)
}

fn text<'h>(headers: &'h HeaderMap, name: &HeaderName) -> Option<&'h str> {
    headers.get(name).and_then(|value| value.to_str().ok())
}

/// The tokens that a request shows: in its address, as a cookie, or as a header.
fn tokens(request: &Request) -> impl Iterator<Item = &str> {
    let headers = request.headers();
    let cookies = text(headers, &COOKIE).into_iter().flat_map(|cookies| cookies.split("; "));
    let cookies = cookies.filter_map(|cookie| cookie.strip_prefix(COOKIE_NAME)?.strip_prefix('='));
    let bearer = text(headers, &AUTHORIZATION).and_then(|value| value.strip_prefix("Bearer "));
    in_address(request.uri()).into_iter().chain(cookies).chain(bearer)
}

fn in_address(uri: &Uri) -> Option<&str> {
    uri.query()?.split('&').find_map(|pair| pair.strip_prefix("token="))
}

/// Compares in the same time wherever the texts differ.
fn is_equal(given: &str, token: &str) -> bool {
    let different =
        given.bytes().zip(token.bytes()).fold(0, |different, (one, other)| different | (one ^ other));
    given.len() == token.len() && different == 0
}

/// The headers of every answer: nothing from elsewhere is loaded, and no other site may show or read it.
const HEADERS: [(&str, &str); 6] = [
    (
        "content-security-policy",
        "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; \
         base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    ),
    ("x-content-type-options", "nosniff"),
    ("x-frame-options", "DENY"),
    ("referrer-policy", "no-referrer"),
    ("cross-origin-resource-policy", "same-origin"),
    ("cross-origin-opener-policy", "same-origin"),
];

/// Refuses requests that may not be answered, and adds the headers that keep browsers safe.
pub(crate) async fn guarded(State(guard): State<Arc<Guard>>, request: Request<Body>, next: Next) -> Response {
    let shown = in_address(request.uri()).map(str::to_owned);
    let mut response = match guard.check(&request) {
        Ok(()) => next.run(request).await,
        Err(refusal) => Answer::refused(&refusal).into_response(),
    };
    let is_allowed = response.status() != axum::http::StatusCode::FORBIDDEN;
    let headers = response.headers_mut();
    for (name, value) in HEADERS {
        headers.entry(HeaderName::from_static(name)).or_insert(HeaderValue::from_static(value));
    }
    // The explorer asks on with the cookie, and takes the token out of the address.
    if let Some(token) = guard.token.as_ref().filter(|token| is_allowed && shown.as_ref() == Some(token))
        && let Ok(cookie) = HeaderValue::from_str(&guard.cookie(token))
    {
        headers.insert(SET_COOKIE, cookie);
    }
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_addresses_and_known_names_are_this_machine() {
        let guard = Guard { token: None, hosts: vec!["box.example".to_owned()], is_encrypted: false };
        for host in ["127.0.0.1:80", "[::1]:80", "localhost", "LOCALHOST:9", "10.0.0.7:1", "Box.Example:80"] {
            assert!(guard.knows(host), "{host}");
        }
        for host in ["evil.example", "127.0.0.1.evil.example:80", "localhost.evil.example", "", "a@b:c@d"] {
            assert!(!guard.knows(host), "{host}");
        }
    }

    #[test]
    fn tokens_are_equal_only_as_a_whole() {
        assert!(is_equal("abc", "abc"));
        for given in ["ab", "abcd", "abd", ""] {
            assert!(!is_equal(given, "abc"), "{given}");
        }
    }
}
