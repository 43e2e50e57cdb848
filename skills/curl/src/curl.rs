//! `curl`: transfers over HTTP with the options, exit codes and messages of curl 8.

mod config_file;
mod data;
mod failed;
mod glob;
mod option;
mod output;
mod request;
mod retry;
mod settings;
mod table;
mod transfer;
mod verbose;
mod write_out;

pub use output::disposition;

use crate::reason::reason;
use failed::Failed;
use option::{Line, Only};
use settings::Options;
use std::io::Write;
use transfer::Session;

/// The curl whose options, codes and messages these are.
const VERSION: &str = "8.14.1";

/// How requests name their sender: many sites answer curl in plain text.
const AGENT: &str = concat!("curl/8.14.1 kiso/", env!("CARGO_PKG_VERSION"));

const HELP: &str = include_str!("curl/help.txt");

const HINT: &str = "curl: try 'curl --help' for more information\n";

/// Runs curl, and returns its exit code.
pub fn run(words: &[String]) -> i32 {
    let code = start(words);
    match std::io::stdout().flush() {
        Ok(()) => code.into(),
        Err(e) => {
            eprintln!("curl: ({}) {}", 23, Failed::write(&reason(&e)).message);
            23
        }
    }
}

fn start(words: &[String]) -> u8 {
    let line = match Line::parse(words) {
        Ok(line) => line,
        Err(failed) => {
            // Its own quietness may stand behind the mistake.
            tell(&failed);
            return failed.code;
        }
    };
    match line.only {
        Some(Only::Help) => return print(HELP),
        Some(Only::Version) => {
            return print(&format!(
                "curl {VERSION} (kiso {})\nProtocols: http https\nFeatures: HTTPS libz\n",
                env!("CARGO_PKG_VERSION")
            ));
        }
        None => {}
    }
    let mut session = Session::new(&line);
    let mut code = 0;
    for options in &line.groups {
        code = match group(&mut session, options) {
            Ok(code) => code,
            Err(failed) => {
                session.tell(&failed);
                return failed.code;
            }
        };
        if code != 0 && line.fail_early {
            break;
        }
    }
    code
}

/// Makes the transfers up to a `--next`. The code is that of the last.
fn group(session: &mut Session<'_>, options: &Options) -> Result<u8, Failed> {
    if !options.targets.iter().any(|target| target.url.is_some()) {
        return Err(Failed::usage("(2) no URL specified"));
    }
    session.begin(options)?;
    let mut code = 0;
    for target in &options.targets {
        let Some(url) = &target.url else { continue };
        let all = match options.globoff {
            true => vec![glob::Globbed { url: url.clone(), parts: Vec::new() }],
            false => glob::expand(url)?,
        };
        for globbed in &all {
            code = session.transfer(options, target, globbed);
            if code != 0 && session.line.fail_early {
                session.end(options);
                return Ok(code);
            }
        }
    }
    session.end(options);
    Ok(code)
}

fn print(text: &str) -> u8 {
    match std::io::stdout().write_all(text.as_bytes()) {
        Ok(()) => 0,
        Err(_) => 23,
    }
}

fn tell(failed: &Failed) {
    eprint!("{}", sentence(failed));
}

/// An error as it is written to standard error.
fn sentence(failed: &Failed) -> String {
    match failed.usage {
        true => format!("curl: {}\n{HINT}", failed.message),
        false => format!("curl: ({}) {}\n", failed.code, failed.message),
    }
}

#[cfg(test)]
mod tests;
