//! The web UI: files that were built into the program.
//!
//! The page finds out itself what an address below it means, so it answers every address that
//! nothing else has and that a browser asks for to show. What a program asks for and is not there
//! stays an error in JSON.

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

/// What the page may do: run and show what came with it, and ask where it came from.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; \
                      connect-src 'self'; base-uri 'none'; form-action 'self'; \
                      frame-ancestors 'none'";

/// First parts of paths that are the server's own; the page never answers for them.
const OWN: [&str; 5] = ["api", "assets", "health", "ingress", "metrics"];

/// What stands where the UI would be, in a program that was built without it.
const WITHOUT: &str = "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\">\
    <title>NoETL</title><h1>NoETL runs, without its web UI</h1>\
    <p>This program was built without Node. To get the UI, install Node 20.19 or newer, run \
    <code>make web</code> in the sources, and build the program again with <code>make build</code>.</p>\
    <p>Everything can be asked without it: with the program itself, <code>noetl executions</code>, \
    and over HTTP; <a href=\"/api/docs\">what there is to ask</a>.</p></html>";

/// The page, for whoever asks for nothing else.
pub(crate) async fn page(State(app): State<App>, headers: HeaderMap) -> Response {
    match app.options.site.page() {
        Some(page) => file(page, &headers),
        None => guarded(Html(WITHOUT).into_response()),
    }
}

/// A file that the page is made of.
pub(crate) async fn asset(State(app): State<App>, uri: Uri, headers: HeaderMap) -> Response {
    match app.options.site.file(uri.path().trim_start_matches('/')) {
        Some(found) => file(found, &headers),
        None => unknown_path(uri).await.into_response(),
    }
}

/// What is not a route: a place within the page when a browser asks for it, else nothing.
pub(crate) async fn elsewhere(
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

/// Whether the answer is to be shown to a person.
fn is_shown(headers: &HeaderMap) -> bool {
    let accepts = headers.get(ACCEPT).and_then(|value| value.to_str().ok()).unwrap_or_default();
    accepts.split(',').any(|range| {
        range.split(';').next().is_some_and(|media| media.trim().eq_ignore_ascii_case("text/html"))
    })
}

/// A file in the smallest form that the caller can read.
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
    // The name of an immutable file changes with what is in it. The page's own does not, so it is
    // asked for every time; a new program then brings its new files.
    let keep = match file.is_immutable() {
        true => "public, max-age=31536000, immutable",
        false => "no-cache",
    };
    said.insert(CACHE_CONTROL, HeaderValue::from_static(keep));
    guarded(response)
}

/// With what keeps a browser from doing more with it than the page needs.
fn guarded(mut response: Response) -> Response {
    let said = response.headers_mut();
    said.insert(CONTENT_SECURITY_POLICY, HeaderValue::from_static(POLICY));
    said.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    said.insert(X_FRAME_OPTIONS, HeaderValue::from_static("DENY"));
    said.insert(REFERRER_POLICY, HeaderValue::from_static("same-origin"));
    response
}

/// Whether the caller reads this encoding: it is named, and not with a weight of nothing.
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
    fn an_encoding_is_read_by_who_names_it_with_some_weight() {
        for text in ["br", "gzip, deflate, br", "gzip;q=0.5, BR ;q=0.1", "br;q=1"] {
            assert!(reads(&accepting(text), "br"), "{text}");
        }
        for text in ["", "gzip", "br;q=0", "br; q=0.000", "brotli", "*"] {
            assert!(!reads(&accepting(text), "br"), "{text}");
        }
    }

    #[test]
    fn a_person_is_who_accepts_a_page() {
        assert!(is_shown(&accepting("text/html,application/xhtml+xml;q=0.9,*/*;q=0.8")));
        for text in ["", "*/*", "application/json", "text/htmlish"] {
            assert!(!is_shown(&accepting(text)), "{text}");
        }
    }
}
