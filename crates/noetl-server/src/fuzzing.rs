//! A way in for generated input to what strangers reach before anything is known of them. Not for
//! programs: routes are the way in for those.

use axum::http::{HeaderMap, HeaderName, HeaderValue};
use noetl_control::ListenerVerify;
use noetl_model::Timestamp;

use crate::routes::ingress::verify as checks;

/// Whether a listener takes a message with these headers. What is no header never gets as far and is
/// left out.
pub fn verify(
    listener: &ListenerVerify,
    headers: &[(&[u8], &[u8])],
    body: &[u8],
    now: Timestamp,
) -> bool {
    let mut map = HeaderMap::new();
    for (name, value) in headers {
        let named = (HeaderName::from_bytes(name), HeaderValue::from_bytes(value));
        if let (Ok(name), Ok(value)) = named {
            map.append(name, value);
        }
    }
    // The other way to be known, by a token, reads the same headers.
    let _ = checks::bearer(listener, &map);
    let signature = checks::signature(listener, &map, now);
    signature.is_ok_and(|signature| checks::signed(listener, &signature, body).is_ok())
}
