//! Writes the table of files in `web/dist`, for the library to include.
//!
//! Runs no Node: `make web` fills the folder, which is empty before. `make run` and `make build` fill
//! it while cargo compiles other crates, so this script waits for the lock that they hold meanwhile.

use std::error::Error;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::{env, fs};

fn main() -> Result<(), Box<dyn Error>> {
    let web = Path::new(&setting("CARGO_MANIFEST_DIR")?).join("../../web");
    let dist = web.join("dist");
    print_directive("rerun-if-changed=build.rs");
    wait_for_web_build(&web.join(".build.lock"))?;
    let out = PathBuf::from(setting("OUT_DIR")?);
    let copies = out.join("files");
    if copies.exists() {
        fs::remove_dir_all(&copies)?;
    }
    fs::create_dir_all(&copies)?;
    let mut table = String::from("&[\n");
    if dist.is_dir() {
        print_directive(&format!("rerun-if-changed={}", dist.display()));
        let mut files = Vec::new();
        collect(&dist, &mut files)?;
        files.sort();
        for file in &files {
            entry(&mut table, &dist, &copies, file)?;
        }
    }
    table.push(']');
    fs::write(out.join("files.rs"), table)?;
    Ok(())
}

/// Waits until no build of the web UI is in flight. The lock ends with the process that holds it.
fn wait_for_web_build(lock: &Path) -> Result<(), Box<dyn Error>> {
    if lock.is_file() {
        // Each build touches the file before cargo starts, so that cargo reruns this script.
        print_directive(&format!("rerun-if-changed={}", lock.display()));
        fs::File::open(lock)?.lock_shared()?;
    }
    Ok(())
}

/// Returns a variable that cargo sets for every build script.
#[expect(clippy::disallowed_methods, reason = "a build script is told by its environment")]
fn setting(name: &str) -> Result<String, env::VarError> {
    env::var(name)
}

fn print_directive(what: &str) {
    println!("cargo::{what}");
}

/// Collects all files except hidden ones and compressed copies of others.
fn collect(folder: &Path, files: &mut Vec<PathBuf>) -> Result<(), Box<dyn Error>> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or(".");
        if name.starts_with('.') || name.ends_with(".gz") || name.ends_with(".br") {
            continue;
        }
        match path.is_dir() {
            true => collect(&path, files)?,
            false => files.push(path),
        }
    }
    Ok(())
}

/// Copies a file and its compressed forms to where the library is built, so that a build of the UI at
/// the same time takes nothing away from under the compiler.
fn entry(table: &mut String, dist: &Path, out: &Path, file: &Path) -> Result<(), Box<dyn Error>> {
    let path = file.strip_prefix(dist)?.to_str().ok_or("a file's name is not UTF-8")?;
    let path = path.replace('\\', "/");
    let copied = |ending: &str| -> Result<Option<String>, Box<dyn Error>> {
        let mut name = file.as_os_str().to_owned();
        name.push(ending);
        if !Path::new(&name).is_file() {
            return Ok(None);
        }
        let to = out.join(format!("{}{ending}", path.replace('/', "~")));
        fs::copy(&name, &to)?;
        Ok(Some(format!("include_bytes!({:?})", to.display().to_string())))
    };
    let plain = copied("")?.ok_or("a file is gone")?;
    let packed =
        |bytes: Option<String>| bytes.map_or("None".to_owned(), |it| format!("Some({it})"));
    let (gzip, brotli) = (packed(copied(".gz")?), packed(copied(".br")?));
    writeln!(
        table,
        "    File {{ path: {path:?}, plain: {plain}, gzip: {gzip}, brotli: {brotli} }},"
    )?;
    Ok(())
}
