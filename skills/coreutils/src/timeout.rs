//! `timeout`: a command with a deadline.

use command::process::{self, Input};
use lexopt::Arg::{Long, Short, Value};

use crate::cli::{self, Error};

const USAGE: &str = "Usage: timeout [OPTION] DURATION COMMAND [ARG]...
Run COMMAND, and end it if it still runs after DURATION (a number with s, m, h or d).

  -s SIGNAL  -k DURATION    taken and ignored: a command is always killed at once
  --preserve-status         end with the command's code (137) instead of 124
";

const TIMED_OUT: i32 = 124;

pub fn main(arguments: Vec<String>) -> i32 {
    cli::run(arguments, USAGE, 125, |mut parser| {
        let (mut preserve, mut verbose) = (false, false);
        let mut killed = TIMED_OUT;
        let milliseconds = loop {
            match parser.next()?.ok_or("a duration and a command are needed")? {
                Short('s') | Long("signal") => {
                    if matches!(cli::value(&mut parser)?.trim_start_matches("SIG"), "9" | "KILL") {
                        killed = 128 + 9;
                    }
                }
                Short('k') | Long("kill-after") => {
                    duration(&cli::value(&mut parser)?)?;
                }
                Short('v') | Long("verbose") => verbose = true,
                Short('f') | Long("foreground") => {}
                Long("preserve-status") => preserve = true,
                Value(text) => break duration(&text.to_string_lossy())?,
                other => return Err(other.unexpected().into()),
            }
        };
        let argv: Vec<String> = parser.raw_args()?.map(|a| a.to_string_lossy().into_owned()).collect();
        if argv.is_empty() {
            return Err("a command is needed".into());
        }
        let process = match process::start(&argv, process::environment(), Input::Inherited) {
            Ok(process) => process,
            Err(refused) => {
                eprintln!("timeout: {}", refused.message);
                return Ok(refused.code);
            }
        };
        if milliseconds == 0 {
            return Ok(process.wait());
        }
        Ok(process.wait_for(milliseconds).unwrap_or_else(|| {
            if verbose {
                let signal = if killed == TIMED_OUT { "TERM" } else { "KILL" };
                eprintln!("timeout: sending signal {signal} to command '{}'", argv[0]);
            }
            process.kill();
            let code = process.wait();
            if preserve { code } else { killed }
        }))
    })
}

/// Milliseconds, 0 for no limit.
fn duration(text: &str) -> Result<u64, Error> {
    let (number, unit) = match text.chars().last() {
        Some('s') => (&text[..text.len() - 1], 1.0),
        Some('m') => (&text[..text.len() - 1], 60.0),
        Some('h') => (&text[..text.len() - 1], 3600.0),
        Some('d') => (&text[..text.len() - 1], 86400.0),
        _ => (text, 1.0),
    };
    match number.parse::<f64>() {
        Ok(seconds) if seconds > 0.0 => Ok(((seconds * unit * 1000.0) as u64).max(1)),
        Ok(0.0) => Ok(0),
        _ => Err(format!("invalid time interval '{text}'").into()),
    }
}

#[cfg(test)]
mod tests {
    use super::duration;

    #[test]
    fn durations_have_units() {
        for (text, milliseconds) in [("1", 1000), ("0.25", 250), ("2m", 120_000), ("1h", 3_600_000), ("0", 0)] {
            assert_eq!(duration(text).unwrap(), milliseconds);
        }
        assert!(duration("x").is_err());
        assert!(duration("-1").is_err());
    }
}
