//! `document` as a skill, and `document`, `pdftotext`, `pandoc` and others as commands: `argv[0]` and standard input say which.
//!
//! A skill of the command shape is called without arguments and reads its call as JSON. The component uses WASI alone, so that it can be
//! both; its exit codes are 0 and 1.

use std::io::{IsTerminal, Read, Write};
use std::path::Path;
use std::process::ExitCode;
use std::sync::OnceLock;

use document::answer::answer;
use document::command;
use document::error::{Error, Result};
use document::request::Request;
use serde_json::Value;

/// Bytes of a call.
const CALL_BYTES: u64 = 1 << 20;

/// How the process was started, for the sentence of a panic.
static STARTED: OnceLock<String> = OnceLock::new();

fn main() -> ExitCode {
    let mut arguments: Vec<String> = std::env::args_os().map(|word| word.to_string_lossy().into_owned()).collect();
    let path = if arguments.is_empty() { "document".to_owned() } else { arguments.remove(0) };
    // Under any other name that it was installed with, it is `document`.
    let name = path.rsplit('/').next().filter(|name| command::is_known(name)).unwrap_or("document").to_owned();
    let _ = STARTED.set(name.clone());
    std::panic::set_hook(Box::new(|panic| {
        // A library gave up: to whoever asked, that is a file that it cannot read.
        let name = STARTED.get().map_or("document", String::as_str);
        let _ = writeln!(
            std::io::stderr(),
            "{name}: the file cannot be read: there is something in it that its reader does not expect"
        );
        if cfg!(debug_assertions) {
            let _ = writeln!(std::io::stderr(), "{panic}");
        }
        std::process::exit(1);
    }));
    if let Some(directory) = std::env::var_os("PWD") {
        // Where it cannot be entered, relative paths are not found, and that is said.
        let _ = std::env::set_current_dir(directory);
    }
    let mut out = std::io::BufWriter::with_capacity(64 << 10, Stdout);
    let result = match arguments.is_empty() && name == "document" {
        true => answer_call().and_then(|answer| Ok(out.write_all(answer.as_bytes())?)),
        false => command::run(&name, &arguments, &mut out),
    };
    let result = result.and_then(|()| Ok(out.flush()?));
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let _ = writeln!(std::io::stderr(), "{name}: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Answers a call that the host writes to standard input.
fn answer_call() -> Result<String> {
    let help = || Error::new("a file is needed (see document --help)");
    let stdin = std::io::stdin();
    if stdin.is_terminal() {
        return Err(help());
    }
    let mut text = String::new();
    stdin.lock().take(CALL_BYTES).read_to_string(&mut text).map_err(|_| help())?;
    let call: Value = serde_json::from_str(&text).map_err(|_| help())?;
    let workspace = call.get("workspace").and_then(Value::as_str).ok_or_else(help)?.to_owned();
    answer(&Request::from_call(&call)?, Path::new(&workspace))
}

/// Standard output without the buffer of lines that Rust puts before it.
struct Stdout;

impl Write for Stdout {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        let mut stdout = std::io::stdout().lock();
        stdout.write_all(bytes)?;
        stdout.flush()?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        std::io::stdout().flush()
    }
}
