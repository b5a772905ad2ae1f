//! Exit codes: 0 done, 1 the user can mend it, 2 only we can, 130 stopped by Ctrl-C.

use std::io::{self, Write};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::ExitCode;

const USER: u8 = 1;
const INTERNAL: u8 = 2;
const INTERRUPTED: u8 = 130;

/// Runs a command and says what went wrong, if anything.
pub(crate) fn guarded(command: impl FnOnce() -> anyhow::Result<()>) -> ExitCode {
    match catch_unwind(AssertUnwindSafe(command)) {
        Ok(Ok(())) => ExitCode::SUCCESS,
        Ok(Err(error)) if is_closed_pipe(&error) => ExitCode::SUCCESS,
        Ok(Err(error)) => {
            let bold_red = anstyle::AnsiColor::Red.on_default().bold();
            say(&format!("{bold_red}error{bold_red:#}: {error:#}"));
            match error.downcast_ref() {
                Some(ngame::Error::Cancelled) => ExitCode::from(INTERRUPTED),
                _ => ExitCode::from(USER),
            }
        }
        // The panic hook has printed where it happened.
        Err(_) => {
            say("this is a bug in ngame, not in your data: please report it with the lines above");
            ExitCode::from(INTERNAL)
        }
    }
}

/// What clap has to say: help and version are answers, everything else is the user's to mend.
pub(crate) fn usage(error: &clap::Error) -> ExitCode {
    // Nothing is left to do where even the message cannot be written.
    let _ = error.print();
    if error.use_stderr() { ExitCode::from(USER) } else { ExitCode::SUCCESS }
}

/// Whoever read our output has seen enough, as `head` does; that is no error.
fn is_closed_pipe(error: &anyhow::Error) -> bool {
    error
        .chain()
        .filter_map(|cause| cause.downcast_ref::<io::Error>())
        .any(|cause| cause.kind() == io::ErrorKind::BrokenPipe)
}

fn say(message: &str) {
    let _ = writeln!(anstream::stderr(), "{message}");
}
