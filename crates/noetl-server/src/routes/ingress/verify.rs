//! Verification of a message's sender, by a signature of the body or by a token.
//!
//! Checks that need only the headers run before the body is read. Signatures and tokens are
//! compared in a time that depends only on their length.

use axum::http::header::AUTHORIZATION;
use axum::http::{HeaderMap, StatusCode};
use base64::Engine as _;
use base64::prelude::{
    BASE64_STANDARD, BASE64_STANDARD_NO_PAD, BASE64_URL_SAFE, BASE64_URL_SAFE_NO_PAD,
};
use hmac::{Hmac, Mac as _};
use noetl_model::Timestamp;
use noetl_playbook::subscription::{BODY_MARK, SIGNATURE_PREFIX, SignedAt, TIMESTAMP_MARK};
use noetl_triggers::ListenerVerify;
use sha2::Sha256;
use subtle::ConstantTimeEq as _;

use crate::error::ApiError;

/// Size of a signature in bytes.
const LENGTH: usize = 32;

/// Maximum digits of a timestamp in seconds, far beyond any clock.
const TIME_DIGITS_MAX: usize = 12;

/// A well-formed signature. Its timestamp, if one is required, lies within the tolerance.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Signature {
    mac: [u8; LENGTH],
    /// Timestamp as sent, because the sender signed this text.
    time: Option<String>,
}

/// Reads the signature from the headers and checks its timestamp.
pub(crate) fn signature(
    verify: &ListenerVerify,
    headers: &HeaderMap,
    now: Timestamp,
) -> Result<Signature, ApiError> {
    let name = verify.header.as_deref().unwrap_or_default();
    let shown = one(headers, name).map_err(|why| match why {
        Missing::Absent => unknown("signature_missing", format!("the header '{name}' is missing")),
        Missing::Unclear => malformed(name),
    })?;
    let mac = decoded(shown, verify.prefix.as_deref()).ok_or_else(|| malformed(name))?;
    let time = match &verify.signed_at {
        None => None,
        Some(signed_at) => Some(time(signed_at, headers, now)?),
    };
    Ok(Signature { mac, time })
}

fn malformed(name: &str) -> ApiError {
    let message = format!("the header '{name}' holds no HMAC-SHA256 in hex or base64");
    unknown("signature_malformed", message)
}

/// Returns the signing time as sent, if it lies within the tolerance.
fn time(signed_at: &SignedAt, headers: &HeaderMap, now: Timestamp) -> Result<String, ApiError> {
    let name = &signed_at.header;
    let form = || {
        let message = format!("the header '{name}' is no time in seconds since 1970");
        unknown("timestamp_malformed", message)
    };
    let shown = one(headers, name).map_err(|why| match why {
        Missing::Absent => unknown("timestamp_missing", format!("the header '{name}' is missing")),
        Missing::Unclear => form(),
    })?;
    let is_number = !shown.is_empty() && shown.bytes().all(|byte| byte.is_ascii_digit());
    let seconds = shown.parse::<i64>().ok().filter(|_| is_number && shown.len() <= TIME_DIGITS_MAX);
    let seconds = seconds.ok_or_else(form)?;
    let apart = now.as_millis().div_euclid(1000).abs_diff(seconds);
    if apart > signed_at.tolerance_secs {
        let most = signed_at.tolerance_secs;
        let message = format!("the time in '{name}' is {apart} s away; at most {most} s are taken");
        return Err(unknown("timestamp_outside_window", message));
    }
    Ok(shown.to_owned())
}

/// Checks the signature of a body. Returns it in hex.
pub(crate) fn signed(
    verify: &ListenerVerify,
    signature: &Signature,
    body: &[u8],
) -> Result<String, ApiError> {
    let secret = verify.secret.as_deref().unwrap_or_default();
    let wrong = || unknown("signature_wrong", "the signature is not that of the body");
    let mut mac = Hmac::<Sha256>::new_from_slice(secret.as_bytes()).map_err(|_| wrong())?;
    match (&signature.time, &verify.signed_at) {
        (Some(time), Some(signed_at)) => {
            for part in parts(&signed_at.signed) {
                match part {
                    TIMESTAMP_MARK => mac.update(time.as_bytes()),
                    BODY_MARK => mac.update(body),
                    between => mac.update(between.as_bytes()),
                }
            }
        }
        _ => mac.update(body),
    }
    let computed: [u8; LENGTH] = mac.finalize().into_bytes().into();
    if !bool::from(computed.ct_eq(&signature.mac)) {
        return Err(wrong());
    }
    Ok(computed.iter().map(|byte| format!("{byte:02x}")).collect())
}

/// Splits the template of the signed text at its markers.
fn parts(form: &str) -> Vec<&str> {
    let mut parts = Vec::new();
    let mut rest = form;
    while !rest.is_empty() {
        let marks = [TIMESTAMP_MARK, BODY_MARK];
        let next = marks.iter().filter_map(|mark| Some((rest.find(mark)?, mark.len()))).min();
        let (at, length) = next.unwrap_or((rest.len(), 0));
        let (between, after) = rest.split_at(at);
        let (mark, after) = after.split_at(length);
        parts.extend([between, mark].into_iter().filter(|part| !part.is_empty()));
        rest = after;
    }
    parts
}

/// Checks that the sender's token equals the secret.
pub(crate) fn bearer(verify: &ListenerVerify, headers: &HeaderMap) -> Result<(), ApiError> {
    let shown = shown_token(headers)?;
    let secret = verify.secret.as_deref().unwrap_or_default();
    // Constant-time comparison: the duration reveals only the length.
    let is_same = bool::from(secret.as_bytes().ct_eq(shown.as_bytes()));
    if secret.is_empty() || !is_same {
        return Err(unknown("token_wrong", "the token is not that of the listener"));
    }
    Ok(())
}

/// Returns the token in `Authorization`.
pub(crate) fn shown_token(headers: &HeaderMap) -> Result<&str, ApiError> {
    let form = || {
        let message = "the Authorization header must be of the form 'Bearer <token>'";
        unknown("token_malformed", message)
    };
    let shown = one(headers, AUTHORIZATION.as_str()).map_err(|why| match why {
        Missing::Absent => {
            unknown("token_missing", "a token is needed, as 'Authorization: Bearer <token>'")
        }
        Missing::Unclear => form(),
    })?;
    let (scheme, token) = shown.split_once(' ').ok_or_else(form)?;
    let token = token.trim();
    if !scheme.eq_ignore_ascii_case("bearer") || token.is_empty() {
        return Err(form());
    }
    Ok(token)
}

/// Reason that a header cannot be used.
enum Missing {
    Absent,
    /// The header occurs twice or is not text, so a proxy may interpret it differently.
    Unclear,
}

fn one<'a>(headers: &'a HeaderMap, name: &str) -> Result<&'a str, Missing> {
    let mut all = headers.get_all(name).iter();
    let first = all.next().ok_or(Missing::Absent)?;
    let text = first.to_str().map(str::trim).map_err(|_| Missing::Unclear)?;
    if all.next().is_some() { Err(Missing::Unclear) } else { Ok(text) }
}

/// Decodes a signature from hex or base64, with or without its prefix.
fn decoded(shown: &str, prefix: Option<&str>) -> Option<[u8; LENGTH]> {
    let bare = prefix.and_then(|prefix| shown.strip_prefix(prefix));
    let bare = bare.or_else(|| shown.strip_prefix(SIGNATURE_PREFIX)).unwrap_or(shown);
    if bare.len() == 2 * LENGTH {
        let digits: Option<Vec<u8>> = bare
            .chars()
            .map(|digit| digit.to_digit(16).and_then(|digit| digit.try_into().ok()))
            .collect();
        let bytes: Vec<u8> = digits?.chunks(2).map(|pair| pair[0] << 4 | pair[1]).collect();
        return bytes.try_into().ok();
    }
    let forms = [BASE64_STANDARD, BASE64_STANDARD_NO_PAD, BASE64_URL_SAFE, BASE64_URL_SAFE_NO_PAD];
    let bytes = forms.iter().find_map(|form| form.decode(bare).ok())?;
    bytes.try_into().ok()
}

pub(crate) fn unknown(code: &'static str, message: impl Into<String>) -> ApiError {
    ApiError::with_status(StatusCode::UNAUTHORIZED, code, message)
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;

    use super::*;

    #[test]
    fn a_signature_is_hex_or_base64_of_32_bytes() {
        let bytes: [u8; 32] = std::array::from_fn(|at| u8::try_from(at * 8 % 256).expect("a byte"));
        let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        for right in [
            hex.clone(),
            hex.to_uppercase(),
            format!("sha256={hex}"),
            format!("v0={hex}"),
            BASE64_STANDARD.encode(bytes),
            BASE64_STANDARD_NO_PAD.encode(bytes),
            format!("sha256={}", BASE64_URL_SAFE.encode(bytes)),
            format!("v0={}", BASE64_URL_SAFE_NO_PAD.encode(bytes)),
        ] {
            assert_eq!(decoded(&right, Some("v0=")), Some(bytes), "{right}");
        }
        for wrong in [
            "",
            "sha256=",
            &hex[..62],
            &format!("{hex}00"),
            &format!("sha1={hex}"),
            &hex.replace('0', "g"),
            &"é".repeat(32),
            &BASE64_STANDARD.encode(&bytes[..31]),
            "====",
        ] {
            assert_eq!(decoded(wrong, Some("v0=")), None, "{wrong}");
        }
    }

    #[test]
    fn signed_texts_are_split_at_their_separators() {
        assert_eq!(parts("v0:{timestamp}:{body}"), ["v0:", "{timestamp}", ":", "{body}"]);
        assert_eq!(parts("{body}{timestamp}é"), ["{body}", "{timestamp}", "é"]);
        assert_eq!(parts("{body"), ["{body"]);
    }

    #[test]
    fn a_time_counts_on_either_side_of_now_up_to_its_window() {
        let signed_at =
            SignedAt { header: "x-time".into(), tolerance_secs: 10, signed: String::new() };
        let now = Timestamp::from_millis(1_000_500);
        let status = |shown: &[u8]| {
            let value = HeaderValue::from_bytes(shown).expect("a value");
            let headers = HeaderMap::from_iter([("x-time".parse().expect("a name"), value)]);
            time(&signed_at, &headers, now)
        };
        for right in ["990", "1000", "1010", " 1000 "] {
            assert_eq!(status(right.as_bytes()).expect(right), right.trim());
        }
        for wrong in
            [&b"989"[..], b"1011", b"", b"-1000", b"+1000", b"1e3", b"9999999999999", b"10\xff"]
        {
            assert!(status(wrong).is_err(), "{wrong:?}");
        }
    }
}
