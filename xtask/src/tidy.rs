//! What no other tool checks: the borders between crates, that each uses what it depends on, where
//! SQL may be, which stores services take, how long files and crates may get, that modules import
//! each other one way, what a comment may say, that links lead somewhere, and that what belongs
//! together is there.
//!
//! Each check is one file, takes text and gives [`Finding`]s, and reads nothing itself; this file
//! reads the tree and asks Cargo. A finding names its place and says what would be right.

mod ceiling;
mod ceilings;
mod codes;
mod dependencies;
mod examples;
mod exceptions;
mod links;
mod manifests;
mod measures;
mod production;
mod prose;
mod scan;
mod snapshots;
mod sql;
mod stores;
mod supply;
mod tree;
mod unused;
mod words;

use std::{fmt, path::Path, process::Command};

use serde_json::Value;

use self::{exceptions::Exceptions, tree::Tree};

/// The list of exceptions, from the root of the workspace.
const EXCEPTIONS: &str = "xtask/tidy-exceptions.txt";

/// One thing that is wrong.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Finding {
    file: String,
    line: usize,
    wrong: String,
    right: String,
}

impl Finding {
    fn new(file: &str, line: usize, wrong: impl Into<String>, right: impl Into<String>) -> Self {
        Self { file: file.to_owned(), line, wrong: wrong.into(), right: right.into() }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}; {}", self.file, self.line, self.wrong, self.right)
    }
}

/// What a run saw.
pub(crate) struct Report {
    /// What is wrong, by place.
    pub(crate) findings: Vec<Finding>,
    /// What could not be checked, and why.
    pub(crate) notes: Vec<String>,
    /// How many files were looked at.
    pub(crate) files: usize,
}

/// Runs every check on the workspace at `root`.
pub(crate) fn run(root: &Path) -> Result<Report, String> {
    let tree = Tree::read(root)?;
    let mut notes = Vec::new();
    let (exceptions, mut findings) = Exceptions::parse(EXCEPTIONS, tree.text(EXCEPTIONS));

    let workspace = metadata(root, &["--no-deps"])?;
    findings.extend(dependencies::check(&workspace, &tree));
    findings.extend(manifests::check(&tree));
    findings.extend(unused::check(&tree));
    findings.extend(snapshots::check(&tree));
    findings.extend(sql::check(&tree, &exceptions));
    findings.extend(stores::check(&tree));
    findings.extend(ceiling::check(&tree, &exceptions));
    findings.extend(words::check(&tree));
    findings.extend(prose::check(&tree));
    findings.extend(measures::check(&tree));
    findings.extend(examples::check(&tree));
    findings.extend(links::check(&tree));
    findings.extend(exceptions.gone(&tree));
    match tree.has_folder("docs/errors") {
        true => findings.extend(codes::check(&tree)),
        false => notes.push("docs/errors does not exist, so error pages were not checked".into()),
    }

    let policy = supply::Policy::parse(tree.text("deny.toml"));
    findings.extend(supply::check_lock(&policy, tree.text("Cargo.lock")));
    // Licences are known only for crates on this machine; those of other platforms may be missing.
    match metadata(root, &["--filter-platform", &host()?]) {
        Ok(packages) => findings.extend(supply::check_licences(&policy, &packages)),
        Err(why) => notes.push(format!("licences were not checked: {why}")),
    }

    findings.sort();
    findings.dedup();
    Ok(Report { findings, notes, files: tree.len() })
}

/// Returns the lines of an area that break a rule of the prose guide, as `file:line: text`.
pub(crate) fn prose(root: &Path, rule: &str, area: &str) -> Result<Vec<String>, String> {
    let hits = prose::hits(&Tree::read(root)?);
    let of = hits.into_iter().filter(|((of, place), _)| *of == rule && place == area);
    let shown = |hit: prose::Hit| format!("{}:{}: {}", hit.file, hit.line, hit.text);
    Ok(of.flat_map(|(_, hits)| hits).map(shown).collect())
}

/// Returns the lines that show what a measure of a crate counts.
pub(crate) fn measure(root: &Path, measure: &str, area: &str) -> Result<Vec<String>, String> {
    let details = measures::details(&Tree::read(root)?, measure, area);
    details.ok_or_else(|| format!("nothing is measured as {measure} of {area}"))
}

/// Lowers the ceilings of the prose guide and of the measures of crates to the present counts.
pub(crate) fn lower_ceilings(root: &Path) -> Result<(), String> {
    let tree = Tree::read(root)?;
    let lists =
        [(prose::CEILINGS, prose::lowered(&tree)), (measures::CEILINGS, measures::lowered(&tree))];
    for (file, list) in lists {
        let written = std::fs::write(root.join(file), list);
        written.map_err(|error| format!("could not write {file}: {error}"))?;
    }
    Ok(())
}

fn metadata(root: &Path, more: &[&str]) -> Result<Value, String> {
    let mut words = vec!["metadata", "--format-version", "1", "--offline", "--locked"];
    words.extend(more);
    let printed = output(Command::new("cargo").args(words).current_dir(root))?;
    serde_json::from_str(&printed).map_err(|error| format!("cargo metadata is not JSON: {error}"))
}

/// The platform this machine builds for.
fn host() -> Result<String, String> {
    let printed = output(Command::new("rustc").arg("-vV"))?;
    let host = printed.lines().find_map(|line| line.strip_prefix("host: "));
    host.map(str::to_owned).ok_or_else(|| "rustc does not say which host it builds for".to_owned())
}

fn output(command: &mut Command) -> Result<String, String> {
    let ran = command
        .output()
        .map_err(|error| format!("could not start {:?}: {error}", command.get_program()))?;
    if ran.status.success() {
        Ok(String::from_utf8_lossy(&ran.stdout).into_owned())
    } else {
        let said = String::from_utf8_lossy(&ran.stderr);
        let said = said.lines().next().unwrap_or("it said nothing");
        Err(format!("{:?} failed: {said}", command.get_program()))
    }
}
