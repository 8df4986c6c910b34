//! Entry points for fuzzing of code that handles unauthenticated input. Not part of the public API.

use axum::http::{HeaderMap, HeaderName, HeaderValue};
use noetl_model::Timestamp;
use noetl_triggers::ListenerVerify;

use crate::routes::ingress::verify as checks;

/// Returns `true` if a listener accepts a message with these headers. Invalid header names and
/// values are skipped, because the HTTP server rejects them earlier.
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
    // Bearer verification reads the same headers, so it is run too.
    let _ = checks::bearer(listener, &map);
    let signature = checks::signature(listener, &map, now);
    signature.is_ok_and(|signature| checks::signed(listener, &signature, body).is_ok())
}
