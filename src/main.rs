//! The program: parse, then hand over to who does it.

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
use tikv_jemalloc_ctl::{Access, AsName, background_thread};

/// Most of the work is on trees of JSON: many small pieces, and at the start many at once. Measured with 10,000 objects, it
/// takes a quarter less CPU than with the allocator of glibc, and what the start took goes back to the system.
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

/// For how long the allocator keeps what was freed before it goes back to the system, in milliseconds.
const KEEPS_FREED: isize = 250;

/// The exit code of a program that panicked (spec 70 §13).
const PANICKED: i32 = 1;

fn main() {
    process::limits::forbid_core_dumps();
    // Without it the program is right all the same, but larger at rest.
    if let Err(error) = set_up_allocator() {
        eprintln!("the allocator keeps its usual settings: {error}");
    }
    // The stack of the first thread is as large as the system's settings say, which may be too small for deep objects.
    let thread = std::thread::Builder::new().name("main".to_owned()).stack_size(json::STACK).spawn(|| {
        let arguments: Vec<_> = std::env::args_os().skip(1).collect();
        run(&arguments, &|variable| std::env::var(variable).ok())
    });
    let code = match thread {
        Ok(thread) => thread.join().unwrap_or(PANICKED),
        Err(error) => process::refuse(&format!("cannot start: {error}")),
    };
    // Not by returning: that would wait for jobs of the blocking pool, which nobody needs any more.
    std::process::exit(code);
}

/// Has freed memory go back to the system by a thread of the allocator's own: by itself that happens as a side effect of
/// allocations, of which a process at rest makes none (decision 0013). Called before there is a second thread.
fn set_up_allocator() -> Result<(), tikv_jemalloc_ctl::Error> {
    // Of the one arena that there is, and of those to come.
    for arenas in [c"arena.0.dirty_decay_ms", c"arenas.dirty_decay_ms"] {
        arenas.to_bytes_with_nul().name().write(KEEPS_FREED)?;
    }
    background_thread::write(true)
}

/// Does what the command line (without the program's name) asks for; the exit code (spec 70 §13).
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
