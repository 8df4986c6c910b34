//! Blob location, parsed from a URL.

use std::path::PathBuf;
use std::str::FromStr;

use reqwest::Url;

/// Location of blobs, parsed from a URL.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BlobLocation {
    /// The store's own database: `db:`.
    Database,
    Directory(PathBuf),
    /// An S3 bucket: `s3://bucket` or `s3://bucket/prefix`.
    Bucket {
        name: String,
        /// Prefix of all object keys, without slashes at either end. Empty for none.
        prefix: String,
    },
}

/// Error for a text that is not a blob location. The message doesn't repeat the text, which may
/// contain a secret.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("no place for content: {reason}; expected db:, file:///directory or s3://bucket/prefix")]
pub struct BlobLocationError {
    reason: &'static str,
}

impl FromStr for BlobLocation {
    type Err = BlobLocationError;

    fn from_str(text: &str) -> Result<Self, BlobLocationError> {
        let wrong = |reason| Err(BlobLocationError { reason });
        let Ok(url) = Url::parse(text) else { return wrong("not a URL") };
        if url.query().is_some() || url.fragment().is_some() {
            return wrong("a query or a fragment means nothing here");
        }
        if !url.username().is_empty() || url.password().is_some() || url.port().is_some() {
            return wrong("keys and endpoint are not part of the URL");
        }
        match url.scheme() {
            "db" if !url.has_host() && url.path().is_empty() => Ok(Self::Database),
            "db" => wrong("nothing follows db:"),
            "file" => match url.to_file_path() {
                Ok(path) if path.parent().is_some() => Ok(Self::Directory(path)),
                _ => wrong("not a directory of this machine"),
            },
            "s3" => bucket(&url),
            _ => wrong("an unknown scheme"),
        }
    }
}

fn bucket(url: &Url) -> Result<BlobLocation, BlobLocationError> {
    let Some(name) = url.host_str().filter(|name| !name.is_empty()) else {
        return Err(BlobLocationError { reason: "no bucket is named" });
    };
    let prefix = url.path().trim_matches('/');
    if prefix.contains('%') || prefix.split('/').any(|part| part.is_empty()) && !prefix.is_empty() {
        return Err(BlobLocationError { reason: "the prefix is not made of plain words" });
    }
    Ok(BlobLocation::Bucket { name: name.to_owned(), prefix: prefix.to_owned() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_of_location_is_parsed() {
        let bucket = |name: &str, prefix: &str| BlobLocation::Bucket {
            name: name.into(),
            prefix: prefix.into(),
        };
        for (text, place) in [
            ("db:", BlobLocation::Database),
            ("file:///var/lib/noetl", BlobLocation::Directory("/var/lib/noetl".into())),
            ("file:///with%20space/", BlobLocation::Directory("/with space/".into())),
            ("s3://results", bucket("results", "")),
            ("s3://results/", bucket("results", "")),
            ("s3://results/a/b/", bucket("results", "a/b")),
        ] {
            assert_eq!(text.parse(), Ok(place), "{text}");
        }
    }

    #[test]
    fn invalid_locations_are_rejected_without_being_repeated() {
        for text in [
            "",
            "db",
            "db:x",
            "db://x",
            "file://host/dir",
            "file:///",
            "s3:",
            "s3://",
            "s3:///x",
            "s3://key:secret@bucket",
            "s3://bucket:9000/x",
            "s3://bucket/a//b",
            "s3://bucket/a%2Fb",
            "s3://bucket?region=x",
            "gs://bucket",
            "/var/lib",
        ] {
            let error = text.parse::<BlobLocation>().expect_err(text);
            assert!(
                error
                    .to_string()
                    .ends_with("expected db:, file:///directory or s3://bucket/prefix")
            );
            assert!(!error.to_string().contains("secret"));
        }
    }
}
