//! Prints the reference page of all settings.

fn main() {
    use std::io::Write as _;
    // A closed pipe ends the program; the shell reports that.
    let _ = std::io::stdout().write_all(noetl_config::reference::page().as_bytes());
}
