//! Reads a response in bounded memory and decodes its body.

use base64::Engine as _;
use encoding_rs::{Encoding, UTF_8};
use jiff::fmt::rfc2822;
use noetl_model::{Failure, FailureKind, Map, Value};
use reqwest::header::{CONTENT_TYPE, DATE, HeaderMap, RETRY_AFTER};
use reqwest::{Response, StatusCode};
use serde_json::json;

use crate::config::{self, wrong};

/// Maximum bytes of the body of a failed response. Failures are stored in the event log, and an
/// error page is rarely worth more.
const FAILED_BODY_MAX: usize = 256 * 1024;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum BodyFormat {
    /// By content type and first character.
    Auto,
    /// As JSON. The step fails if the body is not JSON.
    Json,
    /// As text, regardless of the content type.
    Text,
}

impl BodyFormat {
    pub(super) fn read(config: &Map) -> Result<Self, Failure> {
        match config::text(config, "response_type")? {
            None | Some("auto") => Ok(Self::Auto),
            Some("json") => Ok(Self::Json),
            Some("text") => Ok(Self::Text),
            Some(other) => Err(wrong(format!(
                "`response_type` must be 'json', 'text' or 'auto', not '{other}'"
            ))),
        }
    }
}

/// Errors of reading a response.
pub(super) enum ReadError {
    /// The response is complete, and is a failure.
    Refused(Failure),
    /// The response was interrupted.
    Broken(reqwest::Error),
}

/// Reads the whole response. Returns the step's result, or the failure that corresponds to the
/// status.
pub(super) async fn read(
    mut response: Response,
    want: BodyFormat,
    body_max: usize,
) -> Result<Value, ReadError> {
    let status = response.status();
    let failed = status.is_client_error() || status.is_server_error();
    let room = if failed { body_max.min(FAILED_BODY_MAX) } else { body_max };
    let mut bytes = Vec::new();
    let mut truncated = false;
    while let Some(chunk) = response.chunk().await.map_err(ReadError::Broken)? {
        let take = chunk.len().min(room - bytes.len());
        bytes.extend_from_slice(&chunk[..take]);
        truncated = take < chunk.len();
        if truncated {
            break;
        }
    }
    if truncated && !failed {
        return Err(ReadError::Refused(Failure::new(
            FailureKind::OutputLimit,
            format!("the response is larger than {body_max} bytes; ask for it in pages"),
        )));
    }
    let headers = response.headers();
    // A failed response that is not JSON must not hide the failure of the server.
    let want = if failed && want == BodyFormat::Json { BodyFormat::Auto } else { want };
    let body = decode(bytes, headers, want).map_err(ReadError::Refused)?;
    if failed {
        Err(ReadError::Refused(failure(status, headers, body, truncated)))
    } else {
        Ok(answer(status, headers, body))
    }
}

/// A decoded body, and its encoding if it is not text.
struct Decoded {
    value: Value,
    encoding: Option<&'static str>,
}

fn decode(bytes: Vec<u8>, headers: &HeaderMap, want: BodyFormat) -> Result<Decoded, Failure> {
    let content_type = headers
        .get(CONTENT_TYPE)
        .and_then(|value| value.to_str().ok())
        .unwrap_or_default()
        .to_ascii_lowercase();
    let plain = |value| Ok(Decoded { value, encoding: None });
    if want != BodyFormat::Text {
        if bytes.is_empty() {
            return plain(Value::Null);
        }
        let first = bytes.iter().find(|byte| !byte.is_ascii_whitespace());
        let looks_like_json = matches!(first, Some(b'{' | b'['));
        if want == BodyFormat::Json || looks_like_json || is_json(&content_type) {
            match serde_json::from_slice(&bytes) {
                Ok(value) => return plain(value),
                Err(error) if want == BodyFormat::Json => {
                    return Err(Failure::new(
                        FailureKind::Parse,
                        format!("the response is not JSON: {error}"),
                    ));
                }
                Err(_) => {}
            }
        }
    }
    match text(bytes, &content_type) {
        Ok(text) => plain(Value::String(text)),
        Err(bytes) => Ok(Decoded {
            value: base64::engine::general_purpose::STANDARD.encode(bytes).into(),
            encoding: Some("base64"),
        }),
    }
}

fn is_json(content_type: &str) -> bool {
    let media_type = content_type.split(';').next().unwrap_or_default().trim();
    media_type == "application/json" || media_type.ends_with("+json")
}

/// Decodes bytes in the stated charset, by default UTF-8. Returns the bytes as the error if they
/// aren't text.
fn text(bytes: Vec<u8>, content_type: &str) -> Result<String, Vec<u8>> {
    let claimed = content_type
        .split(';')
        .filter_map(|part| part.trim().strip_prefix("charset="))
        .find_map(|label| Encoding::for_label(label.trim_matches('"').as_bytes()));
    match claimed {
        Some(encoding) if encoding != UTF_8 => Ok(encoding.decode(&bytes).0.into_owned()),
        _ => match String::from_utf8(bytes) {
            Ok(text) => Ok(text),
            Err(error) if content_type.starts_with("text/") => {
                Ok(String::from_utf8_lossy(error.as_bytes()).into_owned())
            }
            Err(error) => Err(error.into_bytes()),
        },
    }
}

fn answer(status: StatusCode, headers: &HeaderMap, body: Decoded) -> Value {
    let mut answer = json!({
        "status_code": status.as_u16(),
        "headers": header_map(headers),
        "data": body.value,
    });
    answer["body"] = answer["data"].clone();
    if let Some(encoding) = body.encoding {
        answer["encoding"] = encoding.into();
    }
    answer
}

/// Creates the failure of a response. The details have the fields of a result, so that templates
/// read both in the same way, and `http` for policies.
fn failure(status: StatusCode, headers: &HeaderMap, body: Decoded, truncated: bool) -> Failure {
    let kind = match status.as_u16() {
        401 | 403 => FailureKind::Auth,
        404 => FailureKind::NotFound,
        429 => FailureKind::RateLimit,
        400..=499 => FailureKind::ClientError,
        _ => FailureKind::ServerError,
    };
    let mut details = answer(status, headers, body);
    details["http"] = json!({"status": status.as_u16(), "headers": details["headers"]});
    if truncated {
        details["truncated"] = true.into();
    }
    if let Some(seconds) = retry_after(headers) {
        details["retry_after"] = seconds.into();
    }
    Failure::new(kind, format!("the server answered {status}")).with_details(details)
}

/// Returns the headers by lower-case name. Repeated headers are joined with commas, which HTTP
/// defines as equivalent.
fn header_map(headers: &HeaderMap) -> Value {
    let mut map = Map::new();
    for name in headers.keys() {
        let values = headers.get_all(name).iter();
        let texts: Vec<_> = values.map(|value| String::from_utf8_lossy(value.as_bytes())).collect();
        map.insert(name.as_str().to_owned(), texts.join(", ").into());
    }
    Value::Object(map)
}

/// Returns the value of `Retry-After` in seconds, stated as such or as a date.
///
/// A date is compared with the response's own `Date`, so the worker's clock doesn't matter.
fn retry_after(headers: &HeaderMap) -> Option<u64> {
    let text = headers.get(RETRY_AFTER)?.to_str().ok()?.trim();
    if let Ok(seconds) = text.parse() {
        return Some(seconds);
    }
    let until = rfc2822::DateTimeParser::new().parse_timestamp(text).ok()?;
    let now = headers.get(DATE)?.to_str().ok()?;
    let now = rfc2822::DateTimeParser::new().parse_timestamp(now).ok()?;
    Some(u64::try_from(until.duration_since(now).as_secs()).unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use reqwest::header::HeaderValue;

    use super::*;

    fn headers(pairs: &[(reqwest::header::HeaderName, &'static str)]) -> HeaderMap {
        let pairs = pairs.iter();
        pairs.map(|(name, value)| (name.clone(), HeaderValue::from_static(value))).collect()
    }

    #[test]
    fn a_retry_date_counts_from_the_servers_clock() {
        let date = headers(&[
            (RETRY_AFTER, "Wed, 21 Oct 2015 07:28:30 GMT"),
            (DATE, "Wed, 21 Oct 2015 07:28:00 GMT"),
        ]);
        assert_eq!(retry_after(&date), Some(30));
        assert_eq!(retry_after(&headers(&[(RETRY_AFTER, "7")])), Some(7));
        assert_eq!(retry_after(&headers(&[(RETRY_AFTER, "soon")])), None);
    }

    #[test]
    fn bodies_are_decoded_by_content_type_and_content() {
        let check = |content_type: &'static str, bytes: &[u8], want, expected: Value| {
            let headers = headers(&[(CONTENT_TYPE, content_type)]);
            let decoded = decode(bytes.to_vec(), &headers, want).ok().unwrap();
            assert_eq!(decoded.value, expected);
        };
        check("application/json", b"1", BodyFormat::Auto, json!(1));
        check("application/problem+json; charset=utf-8", b"\"x\"", BodyFormat::Auto, json!("x"));
        check("text/html", b" {\"a\": 1}", BodyFormat::Auto, json!({"a": 1}));
        check("text/plain", b"1", BodyFormat::Auto, json!("1"));
        check("application/json", b"{\"a\": 1}", BodyFormat::Text, json!("{\"a\": 1}"));
        check("application/json", b"{broken", BodyFormat::Auto, json!("{broken"));
        check("application/json", b"", BodyFormat::Auto, Value::Null);
        check("text/plain; charset=iso-8859-1", b"gr\xfcn", BodyFormat::Auto, json!("gr\u{fc}n"));
        check("image/png", b"\x89PNG", BodyFormat::Auto, json!("iVBORw=="));
    }
}
