//! gardener-controller-manager: parses the command line and runs what it asks for.

use std::io::{self, Write as _};

use gardener_resource_manager::{
    cli::{
        UsageError,
        controller_manager::{Command, usage},
    },
    commands,
    programs::controller_manager,
};
use process::{main_thread, print_or_fail, refuse};

fn main() {
    main_thread(|| {
        let arguments: Vec<_> = std::env::args_os().skip(1).collect();
        let env = |variable: &str| std::env::var(variable).ok();
        match Command::parse_from(&arguments, &env) {
            Ok(Command::Run(options)) => controller_manager::run(&options),
            Ok(Command::PrintConfig(options)) => controller_manager::print_config(&options),
            Ok(Command::Tool(tool)) => commands::run_controller_manager(&tool, &env),
            Ok(Command::Version(text) | Command::Help(text)) => print_or_fail(&format!("{}\n", text.trim_end())),
            Err(UsageError::Tool(text)) => {
                io::stderr().write_all(text.as_bytes()).ok();
                commands::FAILED
            }
            Err(error) => refuse(&error.to_string(), &usage()),
        }
    })
}
