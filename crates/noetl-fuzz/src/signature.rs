//! Headers and bodies that strangers send to listeners.

use hmac::{Hmac, Mac as _};
use noetl_model::Timestamp;
use noetl_playbook::subscription::{SignedAt, VerifyKind};
use noetl_server::fuzzing::verify;
use noetl_triggers::ListenerVerify;
use sha2::Sha256;

const SECRET: &str = "the secret of the listener";
const HEADER: &str = "x-signature";
const TIME: &str = "x-time";
const NOW: i64 = 1_704_067_200;

/// Reads headers, one `name: value` a line, and behind a NUL the body.
///
/// Nothing but the right signature is taken; with it the message is, and with any bit of it, of the
/// time or of the body turned it is not.
pub fn signature(data: &[u8]) {
    let (head, body) = crate::halves::halves(data);
    let headers: Vec<(&[u8], &[u8])> = head.split(|byte| *byte == b'\n').map(header).collect();
    for signed in [None, Some("{timestamp}.{body}"), Some("v0:{body}:{timestamp}{")] {
        let listener = listener(signed);
        let now = Timestamp::from_millis(NOW * 1000);
        let is_taken =
            |headers: &[(&[u8], &[u8])], body: &[u8]| verify(&listener, headers, body, now);
        assert!(!is_taken(&headers, body), "nobody guesses a signature");
        let time = NOW.to_string();
        let mac = mac(signed, &time, body);
        let hex: String = mac.iter().map(|byte| format!("{byte:02x}")).collect();
        let right: [(&[u8], &[u8]); 2] =
            [(HEADER.as_bytes(), hex.as_bytes()), (TIME.as_bytes(), time.as_bytes())];
        assert!(is_taken(&right, body), "the right signature is taken");
        let mut longer = body.to_vec();
        longer.push(b' ');
        assert!(!is_taken(&right, &longer), "another body is not");
        let turned: String = hex.chars().rev().collect();
        let wrong = [(HEADER.as_bytes(), turned.as_bytes()), right[1]];
        assert_eq!(is_taken(&wrong, body), turned == hex, "another signature is not");
        if signed.is_some() {
            let later = (NOW + 1).to_string();
            let moved = [right[0], (TIME.as_bytes(), later.as_bytes())];
            assert!(!is_taken(&moved, body), "another time is not");
        }
    }
}

fn header(line: &[u8]) -> (&[u8], &[u8]) {
    match line.iter().position(|byte| *byte == b':') {
        Some(at) => (&line[..at], &line[at + 1..]),
        None => (line, b""),
    }
}

fn listener(signed: Option<&str>) -> ListenerVerify {
    let signed_at = signed.map(|signed| SignedAt {
        header: TIME.to_owned(),
        tolerance_secs: 300,
        signed: signed.to_owned(),
    });
    ListenerVerify {
        kind: VerifyKind::HmacSha256,
        header: Some(HEADER.to_owned()),
        secret: Some(SECRET.to_owned()),
        audience: None,
        service_account: None,
        prefix: Some("v0=".to_owned()),
        signed_at,
        issuer: String::new(),
    }
}

fn mac(signed: Option<&str>, time: &str, body: &[u8]) -> Vec<u8> {
    let mut mac = Hmac::<Sha256>::new_from_slice(SECRET.as_bytes()).expect("any length is a key");
    match signed {
        None => mac.update(body),
        // The body is whatever it is, marks included: it is put in last.
        Some(signed) => {
            let signed = signed.replace("{timestamp}", time);
            let (before, after) = signed.split_once("{body}").expect("the body is signed");
            mac.update(before.as_bytes());
            mac.update(body);
            mac.update(after.as_bytes());
        }
    }
    mac.finalize().into_bytes().to_vec()
}
