//! Links the chance of simulations into `noetl-sim`, and into nothing else.

use std::path::Path;

#[expect(clippy::disallowed_methods, reason = "cargo says there what it builds for")]
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
