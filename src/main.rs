//! The process: parse, load, run.
fn main() {}
