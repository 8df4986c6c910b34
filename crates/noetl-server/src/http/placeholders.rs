//! Removes the tags of placeholders from responses: readers see `«secret:alias.field»`.
//!
//! The layer wraps all routes, so it covers new routes too. Responses to remote workers are exempt:
//! workers need the tags in leased commands, and in blobs, whose digest they verify.

use std::borrow::Cow;

use axum::body::{Body, Bytes, HttpBody as _};
use axum::extract::{MatchedPath, Request};
use axum::http::HeaderMap;
use axum::http::header::{CONTENT_LENGTH, CONTENT_TYPE};
use axum::middleware::Next;
use axum::response::Response;
use futures::{StreamExt as _, stream};
use noetl_model::placeholder::{TEXT_MAX, without_tags};

/// Routes whose responses include the tags.
const WITH_TAGS: [&str; 3] =
    ["/api/worker/lease", "/api/worker/report", "/api/worker/content/{digest}"];

/// Removes tags from a text response.
pub(crate) async fn shown(request: Request, next: Next) -> Response {
    let path = request.extensions().get::<MatchedPath>().cloned();
    let response = next.run(request).await;
    let keeps_tags = path.is_some_and(|path| WITH_TAGS.contains(&path.as_str()));
    if keeps_tags || !is_text(response.headers()) {
        return response;
    }
    let (mut parts, body) = response.into_parts();
    if body.size_hint().exact().is_none() {
        return Response::from_parts(parts, in_pieces(body));
    }
    // Most responses are a single chunk that is available at once.
    let body = match axum::body::to_bytes(body, usize::MAX).await {
        Ok(bytes) => {
            let bytes = stripped(bytes);
            if parts.headers.contains_key(CONTENT_LENGTH) {
                parts.headers.insert(CONTENT_LENGTH, bytes.len().into());
            }
            Body::from(bytes)
        }
        Err(error) => Body::from_stream(stream::iter([Err::<Bytes, _>(error)])),
    };
    Response::from_parts(parts, body)
}

/// Removes tags from a streamed body, such as a list that is written as it is read or a stream of
/// events. A possible beginning of a placeholder is buffered until the next chunk.
fn in_pieces(body: Body) -> Body {
    let pieces = body.into_data_stream().map(Some).chain(stream::iter([None]));
    let shown = pieces.scan(Vec::new(), |held, piece| {
        let piece = match piece {
            Some(Err(error)) => Err(error),
            Some(Ok(bytes)) => {
                let bytes = match held.is_empty() {
                    true => bytes,
                    false => Bytes::from([&**held, &bytes].concat()),
                };
                let cut = open_at(&bytes);
                *held = bytes[cut..].to_vec();
                Ok(stripped(bytes.slice(..cut)))
            }
            None => Ok(stripped(std::mem::take(held).into())),
        };
        futures::future::ready(Some(piece))
    });
    let is_empty = |piece: &Result<Bytes, axum::Error>| piece.as_ref().is_ok_and(Bytes::is_empty);
    Body::from_stream(shown.filter(move |piece| futures::future::ready(!is_empty(piece))))
}

fn is_text(headers: &HeaderMap) -> bool {
    let kind = headers.get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    kind.starts_with("text/") || kind.contains("json") || kind.contains("xml")
}

fn stripped(bytes: Bytes) -> Bytes {
    match std::str::from_utf8(&bytes).map(without_tags) {
        Ok(Cow::Owned(text)) => text.into(),
        Ok(Cow::Borrowed(_)) | Err(_) => bytes,
    }
}

/// Returns the offset of an incomplete placeholder, or the length if there is none. A placeholder
/// has at most [`TEXT_MAX`] bytes, so no more than that is buffered.
fn open_at(bytes: &[u8]) -> usize {
    const QUOTE: [u8; 2] = [0xc2, 0xab];
    const END: [u8; 2] = [0xc2, 0xbb];
    let from = bytes.len().saturating_sub(TEXT_MAX);
    let pairs = || bytes[from..].windows(2).enumerate().rev();
    let last = |what: [u8; 2]| pairs().find(|(_, pair)| *pair == what).map(|(at, _)| from + at);
    let cut = match (last(QUOTE), last(END)) {
        (Some(begin), end) if end.is_none_or(|end| end < begin) && may_begin(&bytes[begin..]) => {
            begin
        }
        _ => bytes.len(),
    };
    // The first byte of a quote, or of a character split between chunks, belongs to the next chunk.
    let mut cut = cut;
    if cut == bytes.len() {
        let tail = bytes.iter().rev().take(3).position(|byte| *byte >= 0xc0);
        if let Some(back) = tail {
            let lead = bytes[bytes.len() - 1 - back];
            let needed = match lead {
                0xc0..=0xdf => 2,
                0xe0..=0xef => 3,
                _ => 4,
            };
            if back + 1 < needed {
                cut = bytes.len() - 1 - back;
            }
        }
    }
    cut
}

/// Returns `true` if the bytes from a quote on may become a placeholder. A placeholder contains no
/// line end, so a complete message of an event stream is never buffered.
fn may_begin(bytes: &[u8]) -> bool {
    const BEGIN: &[u8] = "«secret:".as_bytes();
    let length = bytes.len().min(BEGIN.len());
    bytes[..length].eq_ignore_ascii_case(&BEGIN[..length]) && !bytes.contains(&b'\n')
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use axum::Router;
    use axum::middleware::from_fn;
    use axum::routing::get;
    use tokio::net::TcpListener;

    use super::*;

    const TAGGED: &str = "«secret:a.b~1.0123456789abcdefghijkl»";

    async fn served(router: Router) -> String {
        let router = router.layer(from_fn(shown));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let base = format!("http://{}", listener.local_addr().unwrap());
        tokio::spawn(async move { axum::serve(listener, router).await });
        // The typed client sets up what every client of the process needs.
        noetl_api::Client::new(&base).unwrap();
        base
    }

    async fn body_of(url: String) -> String {
        let http = reqwest::Client::builder().no_proxy().build().unwrap();
        http.get(url).send().await.unwrap().text().await.unwrap()
    }

    #[tokio::test]
    async fn a_whole_response_shows_no_tag() {
        let answer = async || ([(CONTENT_TYPE, "application/json")], format!("[\"x {TAGGED} y\"]"));
        let base = served(Router::new().route("/", get(answer))).await;
        assert_eq!(body_of(base).await, "[\"x «secret:a.b» y\"]");
    }

    #[tokio::test]
    async fn a_response_in_pieces_shows_no_tag_wherever_it_is_cut() {
        let whole = format!("ä«« {TAGGED} ß «secret:c.d» « {TAGGED}");
        let expected = "ä«« «secret:a.b» ß «secret:c.d» « «secret:a.b»";
        for size in 1..whole.len() {
            let pieces = whole.as_bytes().chunks(size).map(Bytes::copy_from_slice);
            let pieces: Vec<Result<Bytes, Infallible>> = pieces.map(Ok).collect();
            let body = in_pieces(Body::from_stream(stream::iter(pieces)));
            let bytes = axum::body::to_bytes(body, usize::MAX).await.unwrap();
            assert_eq!(std::str::from_utf8(&bytes), Ok(expected), "pieces of {size}");
        }
    }

    #[test]
    fn only_the_beginning_of_a_placeholder_waits_for_the_next_piece() {
        for whole in ["data: « bonjour\n\n", "data: «secret:a.b\n\n", "«secret:a.b»", "", "ä"]
        {
            assert_eq!(open_at(whole.as_bytes()), whole.len(), "{whole}");
        }
        for held in ["«", "«sec", "«SECRET:a", "«secret:a.b~1.AAAA"] {
            let whole = format!("x{held}");
            assert_eq!(open_at(whole.as_bytes()), 1, "{held}");
        }
        assert_eq!(open_at(&"xä".as_bytes()[..2]), 1, "half a character");
    }

    #[tokio::test]
    async fn workers_and_other_media_keep_their_bytes() {
        let json = async || ([(CONTENT_TYPE, "application/json")], TAGGED);
        let binary = async || ([(CONTENT_TYPE, "application/octet-stream")], TAGGED);
        let router = Router::new()
            .route("/api/worker/content/{digest}", get(json))
            .route("/object", get(binary));
        let base = served(router).await;
        for path in ["/api/worker/content/x", "/object"] {
            assert_eq!(body_of(format!("{base}{path}")).await, TAGGED, "{path}");
        }
    }
}
