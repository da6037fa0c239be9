//! The program: parses the command line and runs what it asks for.

#[cfg(feature = "profiling")]
mod allocator;

use std::{
    ffi::OsString,
    io::{self, Write as _},
};

#[cfg(feature = "sim")]
use gardener_resource_manager::demo;
use gardener_resource_manager::{
    cli::{Cli, Command, UsageError},
    commands, process,
};
use kit::json;

/// Exit code after a panic (spec 70 §13).
const PANICKED: i32 = 1;

fn main() {
    process::limits::forbid_core_dumps();
    #[cfg(feature = "profiling")]
    if let Err(error) = allocator::set_up() {
        eprintln!("the allocator keeps its usual settings: {error}");
    }
    // The system's limit for the stack of the first thread may be too small for deep objects.
    let thread = std::thread::Builder::new().name("main".to_owned()).stack_size(json::STACK).spawn(|| {
        let arguments: Vec<_> = std::env::args_os().skip(1).collect();
        run(&arguments, &|variable| std::env::var(variable).ok())
    });
    let code = match thread {
        Ok(thread) => thread.join().unwrap_or(PANICKED),
        Err(error) => process::refuse(&format!("cannot start: {error}")),
    };
    // Do not return: that would wait for jobs of the blocking pool whose results are not needed any more.
    std::process::exit(code);
}

/// Runs the command line (without the program's name) and returns the exit code (spec 70 §13).
fn run(arguments: &[OsString], env: &dyn Fn(&str) -> Option<String>) -> i32 {
    match Cli::parse_from(arguments, env) {
        Ok(Command::Run(options)) => process::run(&options),
        Ok(Command::PrintConfig(options)) => process::print_config(&options),
        Ok(Command::Tool(tool)) => commands::run(&tool, env),
        Ok(Command::Version(text) | Command::Help(text)) => process::print_or_fail(&format!("{}\n", text.trim_end())),
        #[cfg(feature = "sim")]
        Ok(Command::Demo(options)) => demo::run(options),
        #[cfg(not(feature = "sim"))]
        Ok(Command::Demo(_)) => process::refuse("the demonstration is not part of this build"),
        Err(UsageError::Tool(text)) => {
            io::stderr().write_all(text.as_bytes()).ok();
            commands::FAILED
        }
        Err(error) => process::refuse(&error.to_string()),
    }
}
