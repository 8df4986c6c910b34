//! Finds the files in a directory tree.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::error::{CliError, ErrorKind};

/// Maximum depth of the search, which is beyond any reasonable layout.
const DEPTH_MAX: usize = 64;

/// Returns the files with one of these extensions, sorted by path.
///
/// Skips names that start with a dot, and symbolic links to directories, which could form a cycle.
/// Fails if there is no matching file.
pub(in crate::commands) fn files_below(
    directory: &Path,
    extensions: &[&str],
) -> Result<Vec<PathBuf>, CliError> {
    let mut files = Vec::new();
    walk(directory, extensions, 0, &mut files).map_err(|(path, error)| {
        CliError::from_error(ErrorKind::User, &error)
            .about(&format!("could not read {}", path.display()))
    })?;
    files.sort();
    if files.is_empty() {
        let message = format!("{} holds no file to register", directory.display());
        let hint = format!("looked for names that end with .{}", extensions.join(", ."));
        return Err(CliError::new(ErrorKind::User, message).hint(hint));
    }
    Ok(files)
}

fn walk(
    directory: &Path,
    extensions: &[&str],
    depth: usize,
    files: &mut Vec<PathBuf>,
) -> Result<(), (PathBuf, io::Error)> {
    let at = |error| (directory.to_owned(), error);
    for entry in fs::read_dir(directory).map_err(at)? {
        let entry = entry.map_err(at)?;
        if entry.file_name().as_encoded_bytes().starts_with(b".") {
            continue;
        }
        let path = entry.path();
        let kind = entry.file_type().map_err(at)?;
        let extension = path.extension().and_then(|text| text.to_str()).unwrap_or_default();
        if kind.is_dir() && depth < DEPTH_MAX {
            walk(&path, extensions, depth + 1, files)?;
        } else if path.is_file() && extensions.iter().any(|one| one.eq_ignore_ascii_case(extension))
        {
            files.push(path);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nested_files_are_listed_in_order_and_link_cycles_are_skipped() {
        let home = tempfile::TempDir::new().expect("a directory");
        let at = |name: &str| home.path().join(name);
        fs::create_dir_all(at("b/c")).expect("directories");
        for name in ["z.yaml", "b/a.YML", "b/c/d.yaml", "b/note.txt", ".hidden.yaml"] {
            fs::write(at(name), "").expect("a file");
        }
        std::os::unix::fs::symlink(home.path(), at("b/circle")).expect("a link");
        let files = files_below(home.path(), &["yaml", "yml"]).expect("files");
        assert_eq!(files, [at("b/a.YML"), at("b/c/d.yaml"), at("z.yaml")]);
    }

    #[test]
    fn a_directory_without_files_is_reported() {
        let home = tempfile::TempDir::new().expect("a directory");
        let message = files_below(home.path(), &["yaml"]).expect_err("nothing").text();
        assert!(message.ends_with("holds no file to register"), "{message}");
        let message = files_below(&home.path().join("x"), &["yaml"]).expect_err("nothing").text();
        assert!(message.starts_with("could not read "), "{message}");
    }
}
