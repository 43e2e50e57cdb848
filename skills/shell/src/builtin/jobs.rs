//! `jobs`, `wait`, `kill`, `fg`, `bg` and `disown`.

use super::control::{signal, signal_table, signals};
use super::{failure, misuse};
use crate::shell::{Flow, Outcome, Shell};

pub fn jobs(shell: &mut Shell, args: &[String]) -> Outcome {
    let numbers_only = args.get(1).is_some_and(|arg| arg == "-p");
    let mut text = String::new();
    let count = shell.jobs.untold().count();
    for (at, job) in shell.jobs.untold().enumerate() {
        if numbers_only {
            text.push_str(&format!("{}\n", job.id));
            continue;
        }
        let mark = match count - at {
            1 => '+',
            2 => '-',
            _ => ' ',
        };
        let (state, end) = match job.poll(0) {
            None => ("Running".to_owned(), " &"),
            Some(0) => ("Done".to_owned(), ""),
            Some(137) => ("Killed".to_owned(), ""),
            Some(143) => ("Terminated".to_owned(), ""),
            Some(code) => (format!("Exit {code}"), ""),
        };
        text.push_str(&format!("[{}]{mark}  {state:<24}{}{end}\n", job.number, job.text));
    }
    for job in shell.jobs.untold().filter(|_| !numbers_only) {
        job.told = job.poll(0).is_some();
    }
    shell.print("jobs", text.as_bytes())
}

pub fn wait(shell: &mut Shell, args: &[String]) -> Outcome {
    let mut names = &args[1..];
    let mut any = false;
    while let Some(flags) = names.first().and_then(|word| word.strip_prefix('-')).filter(|flags| !flags.is_empty()) {
        names = &names[1..];
        match flags {
            "-" => break,
            "n" => any = true,
            "f" => {}
            flags => return misuse(shell, "wait", &format!("-{flags}: invalid option")),
        }
    }
    if any {
        return wait_for_any(shell, names);
    }
    if names.is_empty() {
        // As in bash, nobody can ask for their codes afterwards.
        for mut job in std::mem::take(&mut shell.jobs.list) {
            job.wait();
        }
        return Ok(0);
    }
    let mut code = 0;
    for name in names {
        code = match shell.jobs.position(name) {
            Some(at) => {
                shell.jobs.list[at].told = true;
                shell.jobs.list[at].wait()
            }
            None if name.starts_with('%') => {
                shell.complain(format_args!("wait: {name}: no such job"));
                127
            }
            None if name.parse::<u32>().is_err() => {
                return failure(shell, "wait", &format!("`{name}': not a pid or valid job spec"));
            }
            None => {
                shell.complain(format_args!("wait: pid {name} is not a child of this shell"));
                127
            }
        };
    }
    Ok(code)
}

/// Asks one after the other, because the host waits for one process at a time.
fn wait_for_any(shell: &mut Shell, names: &[String]) -> Outcome {
    const TURN: u64 = 5;
    loop {
        let wanted: Vec<usize> = match names {
            [] => (0..shell.jobs.list.len()).collect(),
            names => names.iter().filter_map(|name| shell.jobs.position(name)).collect(),
        };
        let wanted: Vec<usize> = wanted.into_iter().filter(|&at| !shell.jobs.list[at].told).collect();
        if wanted.is_empty() {
            return Ok(127);
        }
        for at in wanted {
            if let Some(code) = shell.jobs.list[at].poll(TURN) {
                shell.jobs.list[at].told = true;
                return Ok(code);
            }
        }
    }
}

pub fn kill(shell: &mut Shell, args: &[String]) -> Outcome {
    let mut names = &args[1..];
    let mut number = 15;
    match names.first().map(String::as_str) {
        Some("-l" | "-L") => {
            return signal_names(shell, &names[1..]);
        }
        Some("-s" | "-n") if names.len() > 1 => {
            let Some((_, code)) = signal(&names[1]) else { return bad_signal(shell, &names[1]) };
            number = code;
            names = &names[2..];
        }
        Some("--") => names = &names[1..],
        Some(flag) if flag.len() > 1 && flag.starts_with('-') => {
            let Some((_, code)) = signal(&flag[1..]) else { return bad_signal(shell, &flag[1..]) };
            number = code;
            names = &names[1..];
        }
        _ => {}
    }
    if names.is_empty() {
        return misuse(shell, "kill", "usage: kill [-s sigspec | -sigspec] pid | jobspec ...");
    }
    let mut code = 0;
    // `$$`, and `$BASHPID` in a fork.
    let own = ["1".to_owned(), (1 + shell.state.subshells).to_string()];
    for name in names {
        match shell.jobs.position(name) {
            Some(at) => {
                let job = &mut shell.jobs.list[at];
                if job.poll(0).is_some() {
                    code = failure(shell, "kill", &format!("({name}) - No such process"))?;
                } else if number != 0 {
                    // All signals end a process here; there is none that it could handle.
                    job.kill(number);
                }
            }
            None if own.contains(name) && number == 0 => {}
            None if own.contains(name) => signal_to_self(shell, number)?,
            None => code = failure(shell, "kill", &format!("({name}) - No such process"))?,
        }
    }
    Ok(code)
}

/// `kill $$`.
fn signal_to_self(shell: &mut Shell, number: u8) -> Result<(), Flow> {
    let trapped = signals().find(|&(_, known)| known == number).map(|(name, _)| name);
    // Those that nothing is done about if nobody wants them.
    if trapped
        .is_some_and(|name| matches!(name, "CHLD" | "CONT" | "URG" | "WINCH") && !shell.state.traps.contains_key(name))
    {
        return Ok(());
    }
    match trapped.filter(|name| number != 9 && shell.state.traps.contains_key(*name) && shell.in_force(name)) {
        Some(name) => shell.run_trap(name),
        None => Err(Flow::Killed(128 + number)),
    }
}

/// `kill -l`: all signals, or the names of numbers (exit codes too) and the numbers of names.
fn signal_names(shell: &mut Shell, wanted: &[String]) -> Outcome {
    if wanted.is_empty() {
        return shell.print("kill", signal_table().as_bytes());
    }
    let mut text = String::new();
    let mut code = 0;
    for word in wanted {
        let number = word.parse::<u8>().ok().map(|number| if number > 128 { number - 128 } else { number });
        let found = match number {
            Some(number) => signal(&number.to_string()).map(|(name, _)| name.to_owned()),
            None => signal(word).map(|(_, number)| number.to_string()),
        };
        match found {
            Some(found) => text.push_str(&format!("{found}\n")),
            None => code = bad_signal(shell, word)?,
        }
    }
    let printed = shell.print("kill", text.as_bytes())?;
    Ok(code.max(printed))
}

fn bad_signal(shell: &Shell, name: &str) -> Outcome {
    failure(shell, "kill", &format!("{name}: invalid signal specification"))
}

/// `fg` and `bg`: a job is never stopped, so the one waits for it and the other has nothing to do.
pub fn foreground(shell: &mut Shell, args: &[String]) -> Outcome {
    let name = args.get(1).map_or("%+", String::as_str);
    let Some(at) = shell.jobs.position(name) else {
        return failure(shell, &args[0], &format!("{}: no such job", name.trim_start_matches('%')));
    };
    if args[0] == "bg" {
        return Ok(0);
    }
    let mut job = shell.jobs.list.remove(at);
    shell.print("fg", format!("{}\n", job.text).as_bytes())?;
    Ok(job.wait())
}

pub fn disown(shell: &mut Shell, args: &[String]) -> Outcome {
    let names: Vec<&String> = args[1..].iter().filter(|name| !name.starts_with('-')).collect();
    if names.is_empty() {
        shell.jobs.list.clear();
    }
    for name in names {
        match shell.jobs.position(name) {
            Some(at) => drop(shell.jobs.list.remove(at)),
            None => return failure(shell, "disown", &format!("{name}: no such job")),
        }
    }
    Ok(0)
}
