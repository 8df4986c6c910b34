//! Web UI: files that are built into the program.
//!
//! The page routes on the client side, so it is served for every GET request for `text/html` on a
//! path that is not a route. Other requests for unknown paths get an error in JSON.

use axum::extract::State;
use axum::http::header::{
    ACCEPT, ACCEPT_ENCODING, CACHE_CONTROL, CONTENT_ENCODING, CONTENT_SECURITY_POLICY,
    CONTENT_TYPE, REFERRER_POLICY, VARY, X_CONTENT_TYPE_OPTIONS, X_FRAME_OPTIONS,
};
use axum::http::{HeaderMap, HeaderValue, Method, Uri};
use axum::response::{Html, IntoResponse, Response};
use noetl_web::File;

use super::fallback::unknown_path;
use crate::app::App;

/// Content security policy of the page: its own scripts, styles, and images, and requests to its
/// own origin.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; \
                      connect-src 'self'; base-uri 'none'; form-action 'self'; \
                      frame-ancestors 'none'";

/// First path segments that belong to the API. The page is never served for them.
const OWN: [&str; 5] = ["api", "assets", "health", "ingress", "metrics"];

/// Page of a program that was built without the web UI.
const WITHOUT: &str = "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\">\
    <title>NoETL</title><h1>NoETL runs, without its web UI</h1>\
    <p>This program was built without Node. To get the UI, install Node 20.19 or newer, run \
    <code>make web</code> in the sources, and build the program again with <code>make build</code>.</p>\
    <p>Everything can be asked without it: with the program itself, <code>noetl executions</code>, \
    and over HTTP; <a href=\"/api/docs\">what there is to ask</a>.</p></html>";

/// Serves the page at `/`.
pub(crate) async fn page(State(app): State<App>, headers: HeaderMap) -> Response {
    match app.options.site.page() {
        Some(page) => file(page, &headers),
        None => guarded(Html(WITHOUT).into_response()),
    }
}

/// Serves a file of the web UI.
pub(crate) async fn asset(State(app): State<App>, uri: Uri, headers: HeaderMap) -> Response {
    match app.options.site.file(uri.path().trim_start_matches('/')) {
        Some(found) => file(found, &headers),
        None => unknown_path(uri).await.into_response(),
    }
}

/// Serves the page for an unknown path if a browser navigates to it, and a 404 error otherwise.
pub(crate) async fn page_or_not_found(
    State(app): State<App>,
    method: Method,
    uri: Uri,
    headers: HeaderMap,
) -> Response {
    let first = uri.path().trim_start_matches('/').split('/').next().unwrap_or_default();
    let is_read = matches!(method, Method::GET | Method::HEAD);
    if is_read && !OWN.contains(&first) && is_shown(&headers) {
        return page(State(app), headers).await;
    }
    unknown_path(uri).await.into_response()
}

/// Returns `true` if the client accepts `text/html`.
fn is_shown(headers: &HeaderMap) -> bool {
    let accepts = headers.get(ACCEPT).and_then(|value| value.to_str().ok()).unwrap_or_default();
    accepts.split(',').any(|range| {
        range.split(';').next().is_some_and(|media| media.trim().eq_ignore_ascii_case("text/html"))
    })
}

/// Returns a file in the smallest encoding that the client accepts.
fn file(file: &'static File, headers: &HeaderMap) -> Response {
    let (encoding, bytes) = match (file.brotli, file.gzip) {
        (Some(packed), _) if reads(headers, "br") => (Some("br"), packed),
        (_, Some(packed)) if reads(headers, "gzip") => (Some("gzip"), packed),
        _ => (None, file.plain),
    };
    let mut response = bytes.into_response();
    let said = response.headers_mut();
    said.insert(CONTENT_TYPE, HeaderValue::from_static(file.media_type()));
    said.insert(VARY, HeaderValue::from_static("accept-encoding"));
    if let Some(encoding) = encoding {
        said.insert(CONTENT_ENCODING, HeaderValue::from_static(encoding));
    }
    // The name of an immutable file contains a hash of its content. The name of the page doesn't,
    // so the browser revalidates it every time and gets the files of a new version.
    let keep = match file.is_immutable() {
        true => "public, max-age=31536000, immutable",
        false => "no-cache",
    };
    said.insert(CACHE_CONTROL, HeaderValue::from_static(keep));
    guarded(response)
}

/// Adds headers that restrict the page to the features it needs.
fn guarded(mut response: Response) -> Response {
    let said = response.headers_mut();
    said.insert(CONTENT_SECURITY_POLICY, HeaderValue::from_static(POLICY));
    said.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    said.insert(X_FRAME_OPTIONS, HeaderValue::from_static("DENY"));
    said.insert(REFERRER_POLICY, HeaderValue::from_static("same-origin"));
    response
}

/// Returns `true` if the client accepts this encoding: it is listed, and not with weight 0.
fn reads(headers: &HeaderMap, encoding: &str) -> bool {
    let accepted = headers.get_all(ACCEPT_ENCODING).iter().filter_map(|value| value.to_str().ok());
    accepted.flat_map(|value| value.split(',')).any(|range| {
        let mut parts = range.split(';').map(str::trim);
        let is_named = parts.next().is_some_and(|name| name.eq_ignore_ascii_case(encoding));
        let is_nothing = |part: &str| {
            part.strip_prefix("q=").is_some_and(|weight| weight.parse::<f32>() == Ok(0.0))
        };
        is_named && !parts.any(is_nothing)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn accepting(text: &'static str) -> HeaderMap {
        HeaderMap::from_iter([
            (ACCEPT_ENCODING, HeaderValue::from_static(text)),
            (ACCEPT, HeaderValue::from_static(text)),
        ])
    }

    #[test]
    fn an_encoding_is_accepted_with_a_positive_weight() {
        for text in ["br", "gzip, deflate, br", "gzip;q=0.5, BR ;q=0.1", "br;q=1"] {
            assert!(reads(&accepting(text), "br"), "{text}");
        }
        for text in ["", "gzip", "br;q=0", "br; q=0.000", "brotli", "*"] {
            assert!(!reads(&accepting(text), "br"), "{text}");
        }
    }

    #[test]
    fn a_request_that_accepts_html_is_from_a_browser() {
        assert!(is_shown(&accepting("text/html,application/xhtml+xml;q=0.9,*/*;q=0.8")));
        for text in ["", "*/*", "application/json", "text/htmlish"] {
            assert!(!is_shown(&accepting(text)), "{text}");
        }
    }
}
