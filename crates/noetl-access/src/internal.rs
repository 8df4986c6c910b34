//! Authentication of the internal routes: one bearer token that only system pools know.
//!
//! The token is checked before the body is read. Its value is read on every request, so that it can
//! be changed while the server runs.

use std::fmt;
use std::sync::Arc;

use http::header::AUTHORIZATION;
use http::{HeaderMap, HeaderValue};
use subtle::ConstantTimeEq;

use crate::authorization;
use crate::error::AccessError;

/// Environment variable of the internal token, for messages.
pub const TOKEN_VARIABLE: &str = "NOETL_INTERNAL_API_TOKEN";

/// Source of the access token for the internal routes, read on every request.
#[derive(Clone)]
pub struct InternalToken(Arc<dyn Fn() -> Option<String> + Send + Sync>);

impl InternalToken {
    /// Creates a source that calls `read` on every request. `None` closes the internal routes.
    pub fn read_by(read: impl Fn() -> Option<String> + Send + Sync + 'static) -> Self {
        Self(Arc::new(read))
    }

    fn read(&self) -> Option<String> {
        (self.0)()
    }

    /// Checks that a request presents the internal token. The error describes the problem with the
    /// header.
    pub(crate) fn check(&self, headers: &HeaderMap) -> Result<(), AccessError> {
        check(self.read().as_deref(), headers.get(AUTHORIZATION))
    }

    /// Returns `true` if a request presents the internal token.
    pub(crate) fn is_presented(&self, headers: &HeaderMap) -> bool {
        headers.contains_key(AUTHORIZATION) && self.check(headers).is_ok()
    }
}

impl Default for InternalToken {
    /// Returns a source without a token, which closes the internal routes.
    fn default() -> Self {
        Self::read_by(|| None)
    }
}

impl fmt::Debug for InternalToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("InternalToken")
    }
}

fn check(expected: Option<&str>, presented: Option<&HeaderValue>) -> Result<(), AccessError> {
    let expected = expected.map(str::trim).filter(|token| !token.is_empty());
    let Some(expected) = expected else {
        let message = format!("internal routes are off: set {TOKEN_VARIABLE} to a secret token");
        return Err(AccessError::unavailable("internal_token_unset", message));
    };
    let Some(presented) = presented else {
        let message = "the Authorization header is missing: send 'Authorization: Bearer <token>'";
        return Err(AccessError::forbidden("internal_token_missing", message));
    };
    let token = authorization::token(presented)
        .map_err(|message| AccessError::forbidden("internal_token_malformed", message))?;
    // Constant-time comparison: the duration reveals only the length.
    if !bool::from(expected.as_bytes().ct_eq(token.as_bytes())) {
        return Err(AccessError::forbidden(
            "internal_token_wrong",
            "Invalid service-account token",
        ));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The status, or 200, and the sentence.
    fn answer(expected: Option<&str>, header: Option<&[u8]>) -> (u16, String) {
        let header = header.map(|header| HeaderValue::from_bytes(header).expect("a header"));
        match check(expected, header.as_ref()) {
            Ok(()) => (200, String::new()),
            Err(AccessError::Forbidden { message, .. }) => (403, message),
            Err(AccessError::Unavailable { message, .. }) => (503, message),
            Err(other) => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_token_that_is_not_set_closes_the_gate_for_everybody() {
        for unset in [None, Some(""), Some(" \n\t")] {
            let (status, message) = answer(unset, Some(b"Bearer x"));
            assert_eq!(status, 503);
            assert!(message.contains(TOKEN_VARIABLE), "{message}");
        }
    }

    #[test]
    fn each_mistake_is_named_and_none_gets_through() {
        let mistakes: [(Option<&[u8]>, &str); 11] = [
            (None, "Authorization header"),
            (Some(b"Bearer"), "'Bearer <token>'"),
            (Some(b"Bearer "), "'Bearer <token>'"),
            (Some(b"Bearer    "), "'Bearer <token>'"),
            (Some(b"Basic secret!"), "base64 of 'name:token'"),
            (Some(b"Basic bmFtZTo="), "no password"),
            (Some(b"secret"), "'Bearer <token>'"),
            (Some(b"Bearer secre\xff"), "'Bearer <token>'"),
            (Some(b"Bearer secre"), "Invalid service-account token"),
            (Some(b"Basic bmFtZTpTZWNyZXQ="), "Invalid service-account token"),
            (Some(b"Bearer Secret"), "Invalid service-account token"),
        ];
        for (header, expected) in mistakes {
            let (status, message) = answer(Some("secret"), header);
            assert_eq!(status, 403, "{header:?}");
            assert!(message.contains(expected), "{header:?}: {message}");
        }
    }

    #[test]
    fn the_token_opens_the_gate_with_blanks_around_either_side() {
        for header in [
            &b"Bearer secret"[..],
            b"bearer   secret  ",
            b"BEARER secret",
            b"Basic bmFtZTpzZWNyZXQ=",
        ] {
            for expected in ["secret", " secret\n"] {
                assert_eq!(answer(Some(expected), Some(header)).0, 200, "{header:?}");
            }
        }
    }
}
