//! Access token in an `Authorization` header: `Bearer TOKEN`, or `Basic` with the token as the
//! password.
//!
//! A client without a token setting uses the credentials in its base URL, as in
//! `http://name:TOKEN@host`, and sends them as Basic credentials. The name is informational: the
//! token alone identifies the caller. Messages never repeat any part of the header.

use std::borrow::Cow;

use base64::Engine as _;
use base64::alphabet::STANDARD;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use http::HeaderValue;

/// Longest Basic credentials, in bytes of base64. Tokens of identity providers have a few KiB.
const BASIC_MAX: usize = 16 << 10;

const FORM: &str = "the Authorization header must be of the form 'Bearer <token>', or 'Basic \
                    <base64 of name:token>'";
const TOO_LONG: &str = "the Basic credentials in the Authorization header exceed 16 KiB; send \
                        base64 of 'name:token'";
const NO_BASE64: &str = "the Basic credentials in the Authorization header must be base64 of \
                         'name:token'";
const NO_COLON: &str = "the Basic credentials in the Authorization header have no ':'; send base64 \
                        of 'name:token'";
const NO_PASSWORD: &str = "the Basic credentials in the Authorization header have no password; \
                           send the access token as the password, as base64 of 'name:token'";

/// Accepts base64 with and without padding, because clients differ.
const BASE64: GeneralPurpose = GeneralPurpose::new(
    &STANDARD,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

/// Returns the token in an `Authorization` header, which is not empty.
///
/// # Errors
///
/// Returns the form that the header should have, without any part of the one it has.
pub(crate) fn token(header: &HeaderValue) -> Result<Cow<'_, str>, &'static str> {
    let text = header.to_str().map_err(|_| FORM)?;
    let (scheme, rest) = text.trim().split_once(' ').ok_or(FORM)?;
    let rest = rest.trim();
    if scheme.eq_ignore_ascii_case("bearer") && !rest.is_empty() {
        Ok(Cow::Borrowed(rest))
    } else if scheme.eq_ignore_ascii_case("basic") {
        password(rest).map(Cow::Owned)
    } else {
        Err(FORM)
    }
}

/// Returns the password in Basic credentials.
fn password(credentials: &str) -> Result<String, &'static str> {
    if credentials.len() > BASIC_MAX {
        return Err(TOO_LONG);
    }
    let bytes = BASE64.decode(credentials).map_err(|_| NO_BASE64)?;
    let text = String::from_utf8(bytes).map_err(|_| NO_BASE64)?;
    let (_name, password) = text.split_once(':').ok_or(NO_COLON)?;
    match password.trim() {
        "" => Err(NO_PASSWORD),
        password => Ok(password.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use base64::engine::general_purpose::STANDARD_NO_PAD;

    use super::*;

    fn header(text: &str) -> HeaderValue {
        HeaderValue::from_str(text).expect("a header")
    }

    fn basic(credentials: impl AsRef<[u8]>) -> HeaderValue {
        header(&format!("Basic {}", BASE64.encode(credentials)))
    }

    #[test]
    fn the_password_of_basic_credentials_is_the_token_whatever_the_name() {
        for credentials in ["gateway:noetl_a_b", ":noetl_a_b", "admin:noetl_a_b", "é:noetl_a_b\n"]
        {
            assert_eq!(token(&basic(credentials)), Ok("noetl_a_b".into()), "{credentials}");
        }
        assert_eq!(token(&basic("a:b:c")), Ok("b:c".into()), "the first colon ends the name");
        let unpadded = format!("bAsIc   {}", STANDARD_NO_PAD.encode("gateway:noetl_a_b"));
        assert_eq!(token(&header(&unpadded)), Ok("noetl_a_b".into()));
        assert_eq!(token(&header("bearer  noetl_a_b ")), Ok("noetl_a_b".into()));
    }

    #[test]
    fn each_malformed_header_is_rejected_with_the_form_it_should_have() {
        let not_utf8 = HeaderValue::from_bytes(b"Basic YTpi\xff").expect("a header");
        let long = header(&format!("Basic {}", "YTpi".repeat(BASIC_MAX / 4 + 1)));
        for (header, expected) in [
            (header(""), FORM),
            (header("Bearer"), FORM),
            (header("Bearer "), FORM),
            (header("Basic"), FORM),
            (header("Digest YTpi"), FORM),
            (header("YTpi"), FORM),
            (not_utf8, FORM),
            (header("Basic !"), NO_BASE64),
            (header("Basic YTpi YTpi"), NO_BASE64),
            (header("Basic gateway:noetl_a_b"), NO_BASE64),
            (basic(b"a:\xff\xfe"), NO_BASE64),
            (basic("noetl_a_b"), NO_COLON),
            (basic("gateway:"), NO_PASSWORD),
            (basic("gateway: \t"), NO_PASSWORD),
            (basic(":"), NO_PASSWORD),
            (long, TOO_LONG),
        ] {
            assert_eq!(token(&header), Err(expected), "{header:?}");
        }
    }
}
