//! The process: parse, load, run.

use gardener_resource_manager::process;

fn main() {
    let arguments: Vec<_> = std::env::args_os().skip(1).collect();
    let code = process::run(&arguments, &|variable| std::env::var(variable).ok());
    // Not by returning: that would wait for jobs of the blocking pool, which nobody needs any more.
    std::process::exit(code);
}
