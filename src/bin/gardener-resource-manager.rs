//! gardener-resource-manager: parses the command line and runs what it asks for.

use std::{
    ffi::OsString,
    io::{self, Write as _},
};

#[cfg(feature = "sim")]
use gardener_resource_manager::demo;
use gardener_resource_manager::{
    cli::{Cli, Command, UsageError},
    commands,
    programs::resource_manager,
};
use process::{main_thread, print_or_fail, refuse};

fn main() {
    main_thread(|| {
        let line: Vec<_> = std::env::args_os().collect();
        run(&line, &|variable| std::env::var(variable).ok())
    })
}

/// Runs a command line, which begins with the name of the running file, and returns the exit code (spec 70 §13).
fn run(line: &[OsString], env: &dyn Fn(&str) -> Option<String>) -> i32 {
    match Cli::parse_line(line, env) {
        Ok(Command::Run(options)) => resource_manager::run(&options),
        Ok(Command::PrintConfig(options)) => resource_manager::print_config(&options),
        Ok(Command::Tool(tool)) => commands::run(&tool, env),
        Ok(Command::Version(text) | Command::Help(text) | Command::Candidates(text)) => {
            print_or_fail(&format!("{}\n", text.trim_end()))
        }
        #[cfg(feature = "sim")]
        Ok(Command::Demo(options)) => demo::run(options),
        #[cfg(not(feature = "sim"))]
        Ok(Command::Demo(_)) => refuse("the demonstration is not part of this build", &Cli::usage()),
        Err(UsageError::Tool(text)) => {
            io::stderr().write_all(text.as_bytes()).ok();
            commands::FAILED
        }
        Err(error) => refuse(&error.to_string(), &Cli::usage()),
    }
}
