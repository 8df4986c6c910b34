//! Secrets that `Debug` doesn't print.

use std::fmt;

/// Text that replaces a secret.
pub const MASK: &str = "********";

/// Text that is never shown by accident.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// Returns the text, for use.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl From<String> for Secret {
    fn from(text: String) -> Self {
        Self(text)
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(MASK)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_debug_form_of_a_secret_is_masked() {
        assert_eq!(format!("{:?}", Secret::from("hunter2".to_owned())), MASK);
    }
}
