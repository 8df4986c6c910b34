//! Follows redirects without sending secrets to another origin.
//!
//! Headers of any name may contain credentials, so a request to another origin includes only
//! headers that describe the wanted response. If a body would have to be sent to another origin,
//! the call fails instead. No request names the address it was redirected from.

use noetl_egress::EgressPolicy;
use noetl_model::trace::{TRACEPARENT, TRACESTATE};
use noetl_model::{Failure, FailureKind};
use reqwest::header::{
    ACCEPT, ACCEPT_ENCODING, ACCEPT_LANGUAGE, CONTENT_ENCODING, CONTENT_LANGUAGE, CONTENT_LENGTH,
    CONTENT_TYPE, HeaderMap, HeaderName, LOCATION, TRANSFER_ENCODING, USER_AGENT,
};
use reqwest::{Client, Method, Request, Response, StatusCode, Url};

use super::{denied, not_answered};

/// Maximum redirects, about as many as browsers and other clients follow.
const REDIRECTS_MAX: usize = 10;

/// Headers that are sent to another origin: they identify neither the caller nor a credential.
const HARMLESS: [HeaderName; 7] = [
    ACCEPT,
    ACCEPT_ENCODING,
    ACCEPT_LANGUAGE,
    USER_AGENT,
    CONTENT_TYPE,
    HeaderName::from_static(TRACEPARENT),
    HeaderName::from_static(TRACESTATE),
];

/// Headers that describe a body, and are removed with it.
const OF_BODY: [HeaderName; 5] =
    [CONTENT_TYPE, CONTENT_LENGTH, CONTENT_ENCODING, CONTENT_LANGUAGE, TRANSFER_ENCODING];

/// Sends a request and follows redirects. `client` itself must not follow any.
pub(super) async fn send(
    client: &Client,
    egress: &EgressPolicy,
    mut request: Request,
) -> Result<Response, Failure> {
    let host = |request: &Request| request.url().host_str().unwrap_or_default().to_owned();
    let first = host(&request);
    for _ in 0..=REDIRECTS_MAX {
        // Bodies are texts, which can be sent repeatedly.
        let Some(copy) = request.try_clone() else {
            return Err(Failure::new(FailureKind::Config, "the body can be sent only once"));
        };
        let target = host(&request);
        let response = client.execute(copy).await.map_err(|error| not_answered(&error, &target))?;
        let Some(next) = redirected(request, &response)? else { return Ok(response) };
        egress.check(next.url()).map_err(|error| denied(&error))?;
        request = next;
    }
    let message = format!("{first} redirected more than {REDIRECTS_MAX} times");
    Err(Failure::new(FailureKind::ClientError, message))
}

/// Returns the request that a response redirects to, or `None` if the response is final.
fn redirected(request: Request, response: &Response) -> Result<Option<Request>, Failure> {
    let status = response.status();
    let Some(url) = target(request.url(), status, response.headers()) else { return Ok(None) };
    let method = request.method();
    let is_dropped = match status {
        StatusCode::SEE_OTHER => *method != Method::HEAD,
        StatusCode::MOVED_PERMANENTLY | StatusCode::FOUND => *method == Method::POST,
        _ => false,
    };
    let mut next = Request::new(if is_dropped { Method::GET } else { method.clone() }, url);
    *next.headers_mut() = request.headers().clone();
    if next.url().origin() != request.url().origin() {
        retain(next.headers_mut(), |name| HARMLESS.contains(name));
        if !is_dropped && request.body().is_some() {
            let message = format!(
                "{} redirected the body to {}, which is another origin: it is not sent there; set \
                 `url` to the new address if it is right",
                request.url().host_str().unwrap_or_default(),
                next.url().host_str().unwrap_or_default(),
            );
            return Err(Failure::new(FailureKind::ClientError, message));
        }
    }
    match is_dropped {
        true => retain(next.headers_mut(), |name| !OF_BODY.contains(name)),
        false => *next.body_mut() = request.try_clone().and_then(|mut copy| copy.body_mut().take()),
    }
    Ok(Some(next))
}

/// Returns the URL that a response redirects to, if it is an HTTP URL.
fn target(from: &Url, status: StatusCode, headers: &HeaderMap) -> Option<Url> {
    if !matches!(status.as_u16(), 301 | 302 | 303 | 307 | 308) {
        return None;
    }
    let location = std::str::from_utf8(headers.get(LOCATION)?.as_bytes()).ok()?;
    let url = from.join(location).ok()?;
    matches!(url.scheme(), "http" | "https").then_some(url)
}

fn retain(headers: &mut HeaderMap, is_kept: impl Fn(&HeaderName) -> bool) {
    let dropped: Vec<HeaderName> = headers.keys().filter(|name| !is_kept(name)).cloned().collect();
    for name in dropped {
        headers.remove(name);
    }
}
