//! Links the seeded `getrandom` into `noetl-sim` only.

use std::path::Path;

#[expect(clippy::disallowed_methods, reason = "Cargo names the target there")]
fn main() {
    println!("cargo::rerun-if-changed=chance/getrandom.c");
    if std::env::var("CARGO_CFG_TARGET_OS").as_deref() != Ok("linux") {
        return;
    }
    let objects = cc::Build::new().file("chance/getrandom.c").compile_intermediates();
    for object in objects {
        println!("cargo::rustc-link-arg-bin=noetl-sim={}", Path::new(&object).display());
    }
}
