//! Extractors for bodies, paths, and query strings. A rejection has the same JSON shape as any
//! other error.

use axum::body::Bytes;
use axum::extract::rejection::BytesRejection;
use axum::extract::{FromRequest, FromRequestParts, Request};
use axum::http::header::{CONTENT_TYPE, ORIGIN};
use axum::http::request::Parts;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use noetl_api::IdForm;
use percent_encoding::percent_decode_str;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::pace::too_slow;
use crate::error::ApiError;

/// A JSON body, as extractor and as response.
pub(crate) struct Json<T>(pub(crate) T);

/// A JSON body that may be empty, which yields the default.
pub(crate) struct OptionalJson<T>(pub(crate) T);

/// A JSON body before decoding.
pub(crate) struct JsonText(pub(crate) Bytes);

/// A body of any media type.
pub(crate) struct Raw(pub(crate) Bytes);

pub(crate) struct Path<T>(pub(crate) T);

pub(crate) struct Query<T>(pub(crate) T);

/// Format of IDs in the response: text for browsers, which lose precision in large numbers.
pub(crate) struct IdFormat(pub(crate) IdForm);

/// Decodes a JSON body, or a part of one. Rejects escaped NUL characters.
pub(crate) fn decode<T: DeserializeOwned>(text: &[u8]) -> Result<T, ApiError> {
    if holds_nul(text) {
        let message = "text must not hold NUL characters";
        return Err(ApiError::invalid("nul_character", message));
    }
    decode_text(text)
}

/// Decodes a JSON body whose parts the caller checks one by one. Doesn't check for NUL characters.
///
/// Rejects an array, although serde can decode an array as the fields of a struct in order.
pub(crate) fn decode_text<T: DeserializeOwned>(text: &[u8]) -> Result<T, ApiError> {
    if text.trim_ascii_start().first() == Some(&b'[') {
        let message = "Failed to deserialize the JSON body into the target type: invalid type: \
                       sequence, expected an object";
        return Err(ApiError::invalid("invalid_body", message));
    }
    decode_list(text)
}

/// Decodes a JSON body that may be an array.
pub(crate) fn decode_list<T: DeserializeOwned>(text: &[u8]) -> Result<T, ApiError> {
    let axum::Json(value) = axum::Json::from_bytes(text).map_err(|error| {
        let status = error.status();
        let code = match status {
            StatusCode::UNPROCESSABLE_ENTITY => "invalid_body",
            _ => "malformed_json",
        };
        ApiError::with_status(status, code, error.body_text())
    })?;
    Ok(value)
}

/// Returns `true` if the percent-decoded query string is UTF-8. Decoding would otherwise change the
/// text.
fn is_utf8(query: &str) -> bool {
    percent_decode_str(query).decode_utf8().is_ok()
}

/// Returns `true` if JSON text contains an escaped NUL character, which not every store supports.
/// An escaped backslash before `u0000` is not an escape.
fn holds_nul(text: &[u8]) -> bool {
    const ESCAPE: &[u8] = br"\u0000";
    // Fast path: most text contains no backslash.
    text.contains(&b'\\')
        && text.windows(ESCAPE.len()).enumerate().any(|(at, found)| {
            let slashes = || text[..at].iter().rev().take_while(|byte| **byte == b'\\').count();
            found == ESCAPE && slashes().is_multiple_of(2)
        })
}

impl<S: Send + Sync> FromRequest<S> for JsonText {
    type Rejection = ApiError;

    async fn from_request(request: Request, state: &S) -> Result<Self, ApiError> {
        if !is_json(request.headers()) {
            let message = "Expected request with `Content-Type: application/json`";
            let status = StatusCode::UNSUPPORTED_MEDIA_TYPE;
            return Err(ApiError::with_status(status, "unsupported_media_type", message));
        }
        body_of(request, state).await.map(Self)
    }
}

impl<S: Send + Sync> FromRequest<S> for Raw {
    type Rejection = ApiError;

    async fn from_request(request: Request, state: &S) -> Result<Self, ApiError> {
        body_of(request, state).await.map(Self)
    }
}

impl<T: DeserializeOwned, S: Send + Sync> FromRequest<S> for Json<T> {
    type Rejection = ApiError;

    async fn from_request(request: Request, state: &S) -> Result<Self, ApiError> {
        let JsonText(text) = JsonText::from_request(request, state).await?;
        decode(&text).map(Self)
    }
}

impl<T: DeserializeOwned + Default, S: Send + Sync> FromRequest<S> for OptionalJson<T> {
    type Rejection = ApiError;

    async fn from_request(request: Request, state: &S) -> Result<Self, ApiError> {
        let text = body_of(request, state).await?;
        if text.is_empty() { Ok(Self(T::default())) } else { decode(&text).map(Self) }
    }
}

impl<T: DeserializeOwned + Send, S: Send + Sync> FromRequestParts<S> for Path<T> {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ApiError> {
        if parts.uri.path().contains("%00") {
            let message = "a path must not hold NUL characters";
            return Err(ApiError::with_status(StatusCode::BAD_REQUEST, "invalid_path", message));
        }
        match axum::extract::Path::from_request_parts(parts, state).await {
            Ok(axum::extract::Path(value)) => Ok(Self(value)),
            Err(error) => {
                Err(ApiError::with_status(error.status(), "invalid_path", error.body_text()))
            }
        }
    }
}

impl<T: DeserializeOwned, S: Send + Sync> FromRequestParts<S> for Query<T> {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ApiError> {
        let query = parts.uri.query().unwrap_or_default();
        if query.contains("%00") {
            return Err(ApiError::query("text must not hold NUL characters"));
        }
        if !is_utf8(query) {
            return Err(ApiError::query("text must be UTF-8"));
        }
        match axum::extract::Query::from_request_parts(parts, state).await {
            Ok(axum::extract::Query(value)) => Ok(Self(value)),
            Err(error) => Err(ApiError::query(error.body_text())),
        }
    }
}

impl<S: Send + Sync> FromRequestParts<S> for IdFormat {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _state: &S) -> Result<Self, ApiError> {
        let query = parts.uri.query().unwrap_or_default();
        let is_text = parts.headers.contains_key(ORIGIN)
            || parts.headers.contains_key("x-session-token")
            || query.split('&').any(|pair| pair == "ids=string");
        Ok(Self(if is_text { IdForm::Text } else { IdForm::Number }))
    }
}

impl<T: Serialize> IntoResponse for Json<T> {
    fn into_response(self) -> Response {
        axum::Json(self.0).into_response()
    }
}

async fn body_of<S: Send + Sync>(request: Request, state: &S) -> Result<Bytes, ApiError> {
    Bytes::from_request(request, state).await.map_err(|error: BytesRejection| {
        if let Some(slow) = too_slow(&error) {
            return slow.into();
        }
        let code = match error.status() {
            StatusCode::PAYLOAD_TOO_LARGE => "body_too_large",
            _ => "unreadable_body",
        };
        ApiError::with_status(error.status(), code, error.body_text())
    })
}

/// Returns `true` if the `Content-Type` is `application/json` or `application/…+json`.
fn is_json(headers: &HeaderMap) -> bool {
    let said = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
    let essence = said.and_then(|said| said.split(';').next()).unwrap_or_default();
    let essence = essence.trim().to_ascii_lowercase();
    let subtype = essence.strip_prefix("application/");
    subtype.is_some_and(|subtype| subtype == "json" || subtype.ends_with("+json"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escaped_query_values_are_utf8() {
        for query in ["", "a=b&c=%C3%A9", "a=%", "a=%4", "a=%zz", "a=é", "%25%27=+"] {
            assert!(is_utf8(query), "{query}");
        }
        for query in ["a=%FF", "a=%C3", "a=%C3&b=%A9", "%e9=1"] {
            assert!(!is_utf8(query), "{query}");
        }
    }

    #[test]
    fn a_list_is_no_object() {
        assert!(decode::<std::collections::BTreeMap<String, u8>>(b" [] ").is_err());
        assert!(decode::<std::collections::BTreeMap<String, u8>>(b" {} ").is_ok());
        assert!(decode_list::<Vec<u8>>(b" [1] ").is_ok());
    }

    #[test]
    fn an_escaped_nul_is_found_and_an_escaped_backslash_is_not_one() {
        assert!(holds_nul(br#"{"a":"\u0000"}"#));
        assert!(holds_nul(br#"{"a":"\\\u0000"}"#));
        assert!(!holds_nul(br#"{"a":"\\u0000"}"#));
        assert!(!holds_nul(br#"{"a":"\u0001"}"#));
    }
}
