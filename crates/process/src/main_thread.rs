//! The thread that runs the program.

use kit::json;

use crate::{limits, refuse};

/// Exit code after a panic (spec 70 §13).
const PANICKED: i32 = 1;

/// Runs the program on a thread of its own and ends the process with the code that `program` returns. The system's limit
/// for the stack of the first thread may be too small for deep objects.
pub fn main_thread(program: impl FnOnce() -> i32 + Send + 'static) -> ! {
    limits::forbid_core_dumps();
    #[cfg(feature = "profiling")]
    if let Err(error) = crate::allocator::set_up() {
        eprintln!("the allocator keeps its usual settings: {error}");
    }
    let thread = std::thread::Builder::new().name("main".to_owned()).stack_size(json::STACK).spawn(program);
    let code = match thread {
        Ok(thread) => thread.join().unwrap_or(PANICKED),
        Err(error) => refuse(&format!("cannot start: {error}"), ""),
    };
    // Do not return: that would wait for jobs of the blocking pool whose results are not needed any more.
    std::process::exit(code);
}
