//! Link options of the program.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let target = |part: &str| std::env::var(format!("CARGO_CFG_TARGET_{part}")).unwrap_or_default();
    if target("OS") == "linux" && target("ENV") == "gnu" {
        // The places that the loader has to adapt to where the program lies: 0.6 MB as a list that is read once and then
        // stays in memory, 20 KB in this form. The C library knows it since 2.36, and an older one refuses the program
        // with a message that names this.
        println!("cargo::rustc-link-arg-bins=-Wl,-z,pack-relative-relocs");
    }
}
