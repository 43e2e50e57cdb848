//! Where execution goes on: loops, functions, `eval`, `exec`, `exit`, `trap`.

use super::misuse;
use crate::external;
use crate::print;
use crate::shell::{Flow, Outcome, Shell};
use crate::state::Frame;

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
    let args = &without_dashes(args);
    if args.len() > 2 {
        shell.complain(format_args!("{name}: too many arguments"));
        return Err(Flow::Exit(1));
    }
    let count = match args.get(1).map(|count| count.parse::<i64>()) {
        None => 1,
        Some(Ok(count)) if count > 0 => u32::try_from(count).unwrap_or(u32::MAX).min(shell.loops),
        Some(Err(_)) => {
            shell.complain(format_args!("{name}: {}: numeric argument required", args[1]));
            return Err(Flow::Exit(128));
        }
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
    let args = &without_dashes(args);
    if args.len() > 2 && args[1].parse::<i64>().is_ok() {
        shell.complain("exit: too many arguments");
        return Err(Flow::Discard(1));
    }
    let code = code(shell, args).unwrap_or_else(|code| code);
    shell.exited = true;
    Err(Flow::Exit(code))
}

/// Without the `--` that may end the options.
fn without_dashes(args: &[String]) -> Vec<String> {
    let dashes = args.get(1).is_some_and(|word| word == "--");
    args.iter().enumerate().filter(|(at, _)| *at != 1 || !dashes).map(|(_, word)| word.clone()).collect()
}

pub fn eval(shell: &mut Shell, args: &[String]) -> Outcome {
    if let Some(flag) = args.get(1).filter(|word| word.len() > 1 && word.starts_with('-') && *word != "--") {
        return misuse(shell, "eval", &format!("{flag}: invalid option"));
    }
    let (line, offset) = (shell.line, shell.offset);
    shell.offset = line.saturating_sub(1);
    let outcome = shell.source("eval", &without_dashes(args)[1..].join(" "));
    (shell.line, shell.offset) = (line, offset);
    outcome
}

pub fn source(shell: &mut Shell, args: &[String]) -> Outcome {
    let args = &without_dashes(args);
    let Some(path) = args.get(1) else { return misuse(shell, &args[0], "filename argument required") };
    let source = match external::read(&shell.absolute(&shell.sourced(path))) {
        Ok(source) => source,
        Err((_, reason)) => return super::failure(shell, path, &reason),
    };
    let positional = (args.len() > 2).then(|| std::mem::replace(&mut shell.state.positional, args[2..].to_vec()));
    shell.sourced += 1;
    let (line, offset) = (shell.line, std::mem::take(&mut shell.offset));
    shell.state.frames.push(Frame { name: "source".to_owned(), source: path.clone(), line });
    let outcome = shell.source(path, &source);
    let trapped = shell.run_trap("RETURN");
    shell.state.frames.pop();
    (shell.line, shell.offset) = (line, offset);
    shell.sourced -= 1;
    trapped?;
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
    let mut words = args[1..].iter();
    let (mut name, mut empty) = (None, false);
    let mut argv = Vec::new();
    while let Some(word) = words.next() {
        match word.as_str() {
            "--" => break,
            "-a" => name = words.next().cloned(),
            "-c" => empty = true,
            "-l" => {}
            flag if flag.len() > 1 && flag.starts_with('-') => {
                return misuse(shell, "exec", &format!("{flag}: invalid option"));
            }
            word => {
                argv.push(word.to_owned());
                break;
            }
        }
    }
    argv.extend(words.cloned());
    if argv.is_empty() {
        return Ok(0);
    }
    if empty {
        shell.state.variables.values_mut().for_each(|variable| variable.exported = false);
    }
    let table = shell.table.clone();
    shell.called = name;
    let code = shell.start_external(argv, &table).wait();
    shell.exited = true;
    // The shell is gone, and with it its traps.
    Err(Flow::Killed(code))
}

const SIGNALS: [(&str, u8); 32] = [
    ("EXIT", 0),
    ("HUP", 1),
    ("INT", 2),
    ("QUIT", 3),
    ("ILL", 4),
    ("TRAP", 5),
    ("ABRT", 6),
    ("BUS", 7),
    ("FPE", 8),
    ("KILL", 9),
    ("USR1", 10),
    ("SEGV", 11),
    ("USR2", 12),
    ("PIPE", 13),
    ("ALRM", 14),
    ("TERM", 15),
    ("STKFLT", 16),
    ("CHLD", 17),
    ("CONT", 18),
    ("STOP", 19),
    ("TSTP", 20),
    ("TTIN", 21),
    ("TTOU", 22),
    ("URG", 23),
    ("XCPU", 24),
    ("XFSZ", 25),
    ("VTALRM", 26),
    ("PROF", 27),
    ("WINCH", 28),
    ("IO", 29),
    ("PWR", 30),
    ("SYS", 31),
];

/// The name and number of a signal, given as either, with or without `SIG`.
pub fn signal(text: &str) -> Option<(&'static str, u8)> {
    let upper = text.trim().to_ascii_uppercase();
    let name = upper.strip_prefix("SIG").unwrap_or(&upper);
    let number = text.trim().parse::<u8>().ok();
    SIGNALS.into_iter().find(|(known, code)| *known == name || number == Some(*code))
}

pub fn signals() -> impl Iterator<Item = (&'static str, u8)> {
    SIGNALS.into_iter().skip(1)
}

/// All signals in columns, as `trap -l` and `kill -l` show them.
pub fn signal_table() -> String {
    let mut text = String::new();
    for (name, number) in signals() {
        let end = if number % 5 == 0 || number == 31 { '\n' } else { '\t' };
        text.push_str(&format!("{number:>2}) SIG{name}{end}"));
    }
    text
}

fn condition(text: &str) -> Option<&'static str> {
    match text.to_ascii_uppercase().as_str() {
        "ERR" => Some("ERR"),
        "DEBUG" => Some("DEBUG"),
        "RETURN" => Some("RETURN"),
        _ => signal(text).map(|(name, _)| name),
    }
}

/// Signals come from this shell's own `kill` alone: the host ends a shell without asking.
pub fn trap(shell: &mut Shell, args: &[String]) -> Outcome {
    let mut args = &args[1..];
    let mut shows = false;
    while let Some(flag) = args.first().filter(|arg| arg.len() > 1 && arg.starts_with('-')) {
        args = &args[1..];
        match flag.as_str() {
            "--" => break,
            "-p" => shows = true,
            "-l" => return shell.print("trap", signal_table().as_bytes()),
            flag => return misuse(shell, "trap", &format!("{flag}: invalid option")),
        }
    }
    if shows || args.is_empty() {
        return list(shell, args);
    }
    // One operand, or a number as the first one, resets.
    let is_number = args[0].trim().parse::<u8>().is_ok_and(|_| condition(&args[0]).is_some());
    if args.len() == 1 && !is_number && (args[0] == "-" || condition(&args[0]).is_none()) {
        return misuse(shell, "trap", "usage: trap [-lp] [[arg] signal_spec ...]");
    }
    let resets = args.len() == 1 || args[0] == "-" || is_number;
    let names = if args.len() > 1 && (args[0] == "-" || !resets) { &args[1..] } else { args };
    if shell.state.foreign_traps {
        // The first of its own puts those away that it only showed.
        let kept = std::mem::take(&mut shell.state.traps);
        let kept: Vec<_> =
            kept.into_iter().filter(|(name, action)| action.is_empty() || shell.in_force(name)).collect();
        shell.state.traps.extend(kept);
        shell.state.foreign_traps = false;
    }
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

/// In the order of the signals' numbers, as bash lists them.
fn list(shell: &mut Shell, names: &[String]) -> Outcome {
    let mut code = 0;
    let mut wanted = Vec::new();
    for name in names {
        match condition(name) {
            Some(name) => wanted.push(name),
            None => {
                shell.complain(format_args!("trap: {name}: invalid signal specification"));
                code = 1;
            }
        }
    }
    let order = |name: &str| SIGNALS.iter().position(|(known, _)| *known == name).unwrap_or(SIGNALS.len());
    let mut traps: Vec<(&String, &String)> = shell.state.traps.iter().collect();
    traps.sort_by_key(|(name, _)| order(name));
    let mut text = String::new();
    for (name, action) in traps {
        if names.is_empty() || wanted.contains(&name.as_str()) {
            let prefix = if matches!(name.as_str(), "EXIT" | "ERR" | "DEBUG" | "RETURN") { "" } else { "SIG" };
            text.push_str(&format!("trap -- {} {prefix}{name}\n", print::always_quote(action)));
        }
    }
    let printed = shell.print("trap", text.as_bytes())?;
    Ok(code.max(printed))
}
