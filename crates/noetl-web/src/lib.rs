//! The web UI, built from `web/` together with the program and embedded in it.
//!
//! A program built without Node has no UI; see [`Site::is_built`].

/// An embedded file of the UI.
#[derive(Debug, Clone, Copy)]
pub struct File {
    /// Path without a leading slash, such as `assets/index-3f2a.js`.
    pub path: &'static str,
    /// Content of the file, uncompressed.
    pub plain: &'static [u8],
    /// Content compressed with gzip, if that is smaller.
    pub gzip: Option<&'static [u8]>,
    /// Content compressed with brotli, if that is smaller.
    pub brotli: Option<&'static [u8]>,
}

impl File {
    /// Returns the media type for the extension of the path.
    pub fn media_type(&self) -> &'static str {
        match self.path.rsplit('.').next().unwrap_or_default() {
            "html" => "text/html; charset=utf-8",
            "js" => "text/javascript; charset=utf-8",
            "css" => "text/css; charset=utf-8",
            "svg" => "image/svg+xml",
            "png" => "image/png",
            "json" => "application/json",
            "woff2" => "font/woff2",
            _ => "application/octet-stream",
        }
    }

    /// Returns `true` if the file name contains a hash of the content, so that clients may cache
    /// the file forever.
    pub fn is_immutable(&self) -> bool {
        self.path.starts_with("assets/")
    }
}

/// Set of files that make up a UI.
#[derive(Debug, Clone, Copy)]
pub struct Site {
    files: &'static [File],
}

impl Site {
    /// UI embedded in this program.
    pub const EMBEDDED: Self = Self { files: include!(concat!(env!("OUT_DIR"), "/files.rs")) };

    /// Creates a site from a list of files.
    pub const fn from_files(files: &'static [File]) -> Self {
        Self { files }
    }

    /// Returns `true` if the site contains a UI.
    pub fn is_built(&self) -> bool {
        self.page().is_some()
    }

    /// Returns `index.html`, which is served for every address of the UI.
    pub fn page(&self) -> Option<&'static File> {
        self.file("index.html")
    }

    /// Returns the file at a path without a leading slash.
    pub fn file(&self, path: &str) -> Option<&'static File> {
        self.files.iter().find(|file| file.path == path)
    }
}

impl Default for Site {
    fn default() -> Self {
        Self::EMBEDDED
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_built_in_file_has_a_media_type() {
        for file in Site::EMBEDDED.files {
            assert_ne!(file.media_type(), "application/octet-stream", "{}", file.path);
            for packed in [file.gzip, file.brotli].into_iter().flatten() {
                assert!(packed.len() < file.plain.len(), "{}", file.path);
            }
        }
    }

    #[test]
    fn the_page_references_existing_scripts() {
        let Some(page) = Site::EMBEDDED.page() else { return };
        let text = std::str::from_utf8(page.plain).expect("UTF-8");
        let sources = text.split("src=\"/").skip(1).filter_map(|rest| rest.split('"').next());
        let mut scripts = 0;
        for source in sources {
            assert!(Site::EMBEDDED.file(source).is_some(), "{source}");
            scripts += 1;
        }
        assert!(scripts > 0, "{text}");
        assert!(!text.contains("<script>") && !text.contains("style="), "{text}");
    }
}
