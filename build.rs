//! Link options of the program.

use std::{env, process::Command};

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let variable = |name: &str| env::var(name).unwrap_or_default();
    let is_linux = variable("CARGO_CFG_TARGET_OS") == "linux" && variable("CARGO_CFG_TARGET_ENV") == "gnu";
    if is_linux && variable("PROFILE") == "release" && variable("HOST") == variable("TARGET") && packs_relocations() {
        // The places that the loader adapts to where the program lies: 0.6 MB that are read once and stay in memory, 8 KB in
        // this form.
        println!("cargo::rustc-link-arg-bins=-Wl,-z,pack-relative-relocs");
    }
}

/// Whether the loader of this machine knows packed relocations: the GNU C library does since 2.36. As always, what is built
/// with one version does not run with an older one.
fn packs_relocations() -> bool {
    let Ok(output) = Command::new("getconf").arg("GNU_LIBC_VERSION").output() else { return false };
    let text = String::from_utf8_lossy(&output.stdout);
    let mut numbers =
        text.trim().trim_start_matches("glibc ").split('.').map_while(|number| number.parse::<u32>().ok());
    (numbers.next(), numbers.next()) >= (Some(2), Some(36))
}
