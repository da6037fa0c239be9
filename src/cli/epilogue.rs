use process::command_line::unbroken;

use super::PROGRAM;

/// Examples and exit codes of gardener-resource-manager, as [`epilogue_of`].
pub(super) fn epilogue(examples: &[&str], exit_code_1: &str) -> String {
    epilogue_of(PROGRAM, examples, exit_code_1)
}

/// Examples and exit codes, at the end of a long help. Examples are not wrapped. An empty `exit_code_1` leaves that code
/// out.
pub(super) fn epilogue_of(program: &str, examples: &[&str], exit_code_1: &str) -> String {
    let examples: String =
        examples.iter().map(|example| format!("{}\n", unbroken(&format!("  {program} {example}")))).collect();
    let exit_code_1 = if exit_code_1.is_empty() { String::new() } else { format!("  1  {exit_code_1}\n") };
    format!("Examples:\n{examples}\nExit codes:\n  0  success\n{exit_code_1}  2  wrong usage, or a failure")
}
