//! Where execution goes on: loops, functions, `eval`, `exec`, `exit`, `trap`.

use super::misuse;
use crate::external;
use crate::print;
use crate::shell::{Flow, Outcome, Shell};

pub fn nothing(_: &mut Shell, _: &[String]) -> Outcome {
    Ok(0)
}

pub fn failure(_: &mut Shell, _: &[String]) -> Outcome {
    Ok(1)
}

/// `break` and `continue`.
pub fn leave_loop(shell: &mut Shell, args: &[String]) -> Outcome {
    let name = args[0].as_str();
    if shell.loops == 0 {
        shell.complain(format_args!("{name}: only meaningful in a `for', `while', or `until' loop"));
        return Ok(0);
    }
    let count = match args.get(1).map(|count| count.parse::<u32>()) {
        None => 1,
        Some(Ok(count)) if count > 0 => count.min(shell.loops),
        Some(_) => {
            shell.complain(format_args!("{name}: {}: loop count out of range", args[1]));
            return Err(Flow::Break(shell.loops));
        }
    };
    Err(if name == "break" { Flow::Break(count) } else { Flow::Continue(count) })
}

/// The code that is given to `exit` and `return`, or that of the last command.
fn code(shell: &Shell, args: &[String]) -> Result<u8, u8> {
    match args.get(1).map(|code| code.parse::<i64>()) {
        None => Ok(shell.state.status),
        // Only the low eight bits arrive, as everywhere.
        Some(Ok(code)) => Ok((code & 0xff) as u8),
        Some(Err(_)) => {
            shell.complain(format_args!("{}: {}: numeric argument required", args[0], args[1]));
            Err(2)
        }
    }
}

pub fn leave_function(shell: &mut Shell, args: &[String]) -> Outcome {
    if shell.state.scopes.is_empty() && shell.sourced == 0 {
        return misuse(shell, "return", "can only `return' from a function or sourced script");
    }
    let code = code(shell, args).unwrap_or_else(|code| code);
    Err(Flow::Return(code))
}

pub fn exit(shell: &mut Shell, args: &[String]) -> Outcome {
    let code = code(shell, args).unwrap_or_else(|code| code);
    shell.exited = true;
    Err(Flow::Exit(code))
}

pub fn eval(shell: &mut Shell, args: &[String]) -> Outcome {
    let line = shell.line;
    let outcome = shell.source("eval", &args[1..].join(" "));
    shell.line = line;
    outcome
}

pub fn source(shell: &mut Shell, args: &[String]) -> Outcome {
    let Some(path) = args.get(1) else { return misuse(shell, &args[0], "filename argument required") };
    let source = match external::read(&shell.absolute(path)) {
        Ok(source) => source,
        Err((_, reason)) => return super::failure(shell, path, &reason),
    };
    let positional = (args.len() > 2).then(|| std::mem::replace(&mut shell.state.positional, args[2..].to_vec()));
    shell.sourced += 1;
    let line = shell.line;
    let outcome = shell.source(path, &source);
    shell.run_trap("RETURN")?;
    shell.line = line;
    shell.sourced -= 1;
    if let Some(positional) = positional {
        shell.state.positional = positional;
    }
    match outcome {
        Err(Flow::Return(code)) => Ok(code),
        outcome => outcome,
    }
}

/// With a command: it takes the place of the shell. Without: the redirections stay, which `simple` sees to.
pub fn exec(shell: &mut Shell, args: &[String]) -> Outcome {
    let mut words =
        args[1..].iter().skip_while(|word| *word == "--" || *word == "-c" || *word == "-l").cloned().peekable();
    if words.next_if(|word| word == "-a").is_some() {
        words.next();
    }
    let argv: Vec<String> = words.collect();
    if argv.is_empty() {
        return Ok(0);
    }
    let table = shell.table.clone();
    let code = shell.start_external(argv, &table).wait();
    shell.exited = true;
    // The shell is gone, and with it its traps.
    Err(Flow::Killed(code))
}

const SIGNALS: [(&str, u8); 13] = [
    ("EXIT", 0),
    ("HUP", 1),
    ("INT", 2),
    ("QUIT", 3),
    ("ABRT", 6),
    ("KILL", 9),
    ("USR1", 10),
    ("USR2", 12),
    ("PIPE", 13),
    ("ALRM", 14),
    ("TERM", 15),
    ("CHLD", 17),
    ("CONT", 18),
];

/// The name and number of a signal, given as either, with or without `SIG`.
pub fn signal(text: &str) -> Option<(&'static str, u8)> {
    let upper = text.to_ascii_uppercase();
    let name = upper.strip_prefix("SIG").unwrap_or(&upper);
    let number = text.parse::<u8>().ok();
    SIGNALS.into_iter().find(|(known, code)| *known == name || number == Some(*code))
}

pub fn signals() -> impl Iterator<Item = (&'static str, u8)> {
    SIGNALS.into_iter().skip(1)
}

fn condition(text: &str) -> Option<&'static str> {
    match text {
        "ERR" => Some("ERR"),
        "DEBUG" => Some("DEBUG"),
        "RETURN" => Some("RETURN"),
        text => signal(text).map(|(name, _)| name),
    }
}

/// Signals are accepted and never come: the host ends a shell without asking.
pub fn trap(shell: &mut Shell, args: &[String]) -> Outcome {
    let mut args = &args[1..];
    if args.first().is_some_and(|arg| arg == "--") {
        args = &args[1..];
    }
    match args.first().map(String::as_str) {
        None => return list(shell, &[]),
        Some("-p") => return list(shell, &args[1..]),
        Some("-l") => {
            let names: Vec<String> = signals().map(|(name, number)| format!("{number}) SIG{name}\n")).collect();
            return shell.print("trap", names.concat().as_bytes());
        }
        _ => {}
    }
    // One operand, or a number as the first one, resets.
    let resets =
        args.len() == 1 || args[0] == "-" || args[0].bytes().all(|byte| byte.is_ascii_digit()) && !args[0].is_empty();
    let names = if args.len() > 1 && (args[0] == "-" || !resets) { &args[1..] } else { args };
    let mut code = 0;
    for name in names {
        match condition(name) {
            None => {
                shell.complain(format_args!("trap: {name}: invalid signal specification"));
                code = 1;
            }
            Some(name) if resets => {
                shell.state.traps.remove(name);
            }
            Some(name) => {
                shell.state.traps.insert(name.to_owned(), args[0].clone());
            }
        }
    }
    Ok(code)
}

fn list(shell: &Shell, names: &[String]) -> Outcome {
    let wanted: Vec<Option<&str>> = names.iter().map(|name| condition(name)).collect();
    let mut text = String::new();
    for (name, action) in &shell.state.traps {
        if wanted.is_empty() || wanted.contains(&Some(name.as_str())) {
            let prefix = if matches!(name.as_str(), "EXIT" | "ERR" | "DEBUG" | "RETURN") { "" } else { "SIG" };
            text.push_str(&format!("trap -- {} {prefix}{name}\n", print::always_quote(action)));
        }
    }
    shell.print("trap", text.as_bytes())
}
