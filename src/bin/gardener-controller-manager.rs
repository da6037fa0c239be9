//! gardener-controller-manager: parses the command line and runs what it asks for.

use gardener_resource_manager::{
    cli::controller_manager::{Command, usage},
    programs::controller_manager,
};
use process::{main_thread, print_or_fail, refuse};

fn main() {
    main_thread(|| {
        let arguments: Vec<_> = std::env::args_os().skip(1).collect();
        match Command::parse_from(&arguments, &|variable| std::env::var(variable).ok()) {
            Ok(Command::Run(options)) => controller_manager::run(&options),
            Ok(Command::PrintConfig(options)) => controller_manager::print_config(&options),
            Ok(Command::Version(text) | Command::Help(text)) => print_or_fail(&format!("{}\n", text.trim_end())),
            Err(error) => refuse(&error.to_string(), &usage()),
        }
    })
}
