//! Tells the program which compiler built it and for which target: figures belong to them.

use std::env;
use std::process::Command;

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    let compiler = env::var("RUSTC").unwrap_or_else(|_| "rustc".to_owned());
    let version = Command::new(compiler).arg("--version").output();
    let version = version.map_or("an unknown rustc".to_owned(), |output| {
        String::from_utf8_lossy(&output.stdout).trim().to_owned()
    });
    println!("cargo:rustc-env=BENCHES_RUSTC={version}");
    let target = env::var("TARGET").unwrap_or_default();
    println!("cargo:rustc-env=BENCHES_TARGET={target}");
}
