//! One-time sign-in codes for browsers: a link contains the code, and the page exchanges it for a
//! token.
//!
//! Codes are stored in the memory of one process, work once, and expire after [`CODE_LASTS`]. A
//! code is 256 random bits, and only its digest is stored.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use noetl_model::Tenant;
use noetl_secrets::{Role, random_text};
use noetl_store::Digest;

pub const CODE_LASTS: Duration = Duration::from_secs(10 * 60);

/// Maximum pending codes. A person needs one; beyond the limit the oldest is removed.
const CODES_MAX: usize = 64;

/// Caller that a code signs in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CodeHolder {
    pub tenant: Tenant,
    pub role: Role,
    /// Identity of the caller that requested the code.
    pub actor: Arc<str>,
}

/// Pending codes. Cheap to clone.
#[derive(Clone, Default)]
pub struct SignInCodes(Arc<Mutex<HashMap<Digest, (Instant, CodeHolder)>>>);

impl SignInCodes {
    /// Creates a code that expires after [`CODE_LASTS`]. At [`CODES_MAX`] codes, the oldest is
    /// removed.
    pub fn issue(&self, holder: CodeHolder, now: Instant) -> String {
        let code = random_text();
        let mut codes = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        codes.retain(|_, (until, _)| *until > now);
        if codes.len() >= CODES_MAX
            && let Some(oldest) = codes.iter().min_by_key(|(_, (until, _))| *until)
        {
            let oldest = *oldest.0;
            codes.remove(&oldest);
        }
        codes.insert(Digest::of_bytes(code.as_bytes()), (now + CODE_LASTS, holder));
        code
    }

    /// Removes a code and returns its holder. Returns `None` if it is unknown, used, or expired.
    pub fn redeem(&self, code: &str, now: Instant) -> Option<CodeHolder> {
        let mut codes = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (until, holder) = codes.remove(&Digest::of_bytes(code.as_bytes()))?;
        (until > now).then_some(holder)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn holder() -> CodeHolder {
        CodeHolder { tenant: Tenant::default(), role: Role::Admin, actor: "a".into() }
    }

    #[test]
    fn a_code_counts_once_and_not_for_long() {
        let (codes, now) = (SignInCodes::default(), Instant::now());
        let code = codes.issue(holder(), now);
        assert_eq!(codes.redeem("", now), None);
        assert_eq!(codes.redeem(&code, now + CODE_LASTS / 2), Some(holder()));
        assert_eq!(codes.redeem(&code, now), None, "it was used");
        let late = codes.issue(holder(), now);
        assert_eq!(codes.redeem(&late, now + CODE_LASTS), None, "it is too old");
        assert_eq!(codes.redeem(&late, now), None, "and was taken back");
    }

    #[test]
    fn the_oldest_of_too_many_codes_is_dropped() {
        let (codes, now) = (SignInCodes::default(), Instant::now());
        let first = codes.issue(holder(), now);
        let step = Duration::from_millis(1);
        let others: Vec<String> = (1..=64).map(|n| codes.issue(holder(), now + step * n)).collect();
        assert_eq!(codes.redeem(&first, now + step), None);
        assert!(others.iter().all(|code| codes.redeem(code, now + step).is_some()));
    }
}
