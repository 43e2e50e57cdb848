//! `set` and `shopt`.

use super::{failure, misuse};
use crate::expand::Value;
use crate::options::{By, FLAGS, Flag, lettered, named};
use crate::print;
use crate::shell::{Outcome, Shell};

pub fn set(shell: &mut Shell, args: &[String]) -> Outcome {
    let mut words = &args[1..];
    if words.is_empty() {
        return list_variables(shell);
    }
    while let Some(word) = words.first().filter(|word| word.starts_with(['-', '+'])) {
        words = &words[1..];
        let on = word.starts_with('-');
        match word.as_str() {
            "--" => {
                shell.state.positional = words.to_vec();
                return Ok(0);
            }
            "-" => {
                // As in the first shells, it also ends what `set -xv` began.
                shell.state.options.switch(Flag::XTrace, false);
                shell.state.options.switch(Flag::Verbose, false);
                break;
            }
            // Nothing, and options may follow.
            "+" => continue,
            _ => {}
        }
        for letter in word[1..].chars() {
            if letter != 'o' {
                let Some(flag) = lettered(letter) else {
                    return misuse(shell, "set", &format!("{}{letter}: invalid option", &word[..1]));
                };
                shell.state.options.switch(flag, on);
                continue;
            }
            let Some(name) = words.first() else { return list_options(shell, on) };
            words = &words[1..];
            let Some(flag) = named(name, false) else {
                return misuse(shell, "set", &format!("{name}: invalid option name"));
            };
            shell.state.options.switch(flag, on);
        }
    }
    if !words.is_empty() {
        shell.state.positional = words.to_vec();
    }
    Ok(0)
}

fn list_variables(shell: &mut Shell) -> Outcome {
    let mut text = String::new();
    for (name, variable) in &shell.state.variables {
        match &variable.value {
            None => {}
            Some(Value::Scalar(value)) => text.push_str(&format!("{name}={}\n", print::quote_value(value))),
            Some(array) => text.push_str(&format!("{name}={}\n", print::literal(array))),
        }
    }
    shell.print("set", text.as_bytes())
}

fn list_options(shell: &mut Shell, table: bool) -> Outcome {
    let mut text = String::new();
    for &(flag, name, by, _) in FLAGS {
        if by == By::Shopt {
            continue;
        }
        let on = shell.on(flag);
        match table {
            true => text.push_str(&format!("{name:<15}\t{}\n", if on { "on" } else { "off" })),
            false => text.push_str(&format!("set {}o {name}\n", if on { '-' } else { '+' })),
        }
    }
    shell.print("set", text.as_bytes())
}

pub fn shopt(shell: &mut Shell, args: &[String]) -> Outcome {
    let (mut switch, mut quiet, mut of_set, mut reusable) = (None, false, false, false);
    let mut names = &args[1..];
    while let Some(flags) = names.first().and_then(|word| word.strip_prefix('-')) {
        names = &names[1..];
        for flag in flags.chars() {
            match flag {
                's' => switch = Some(true),
                'u' => switch = Some(false),
                'q' => quiet = true,
                'o' => of_set = true,
                'p' => reusable = true,
                flag => return misuse(shell, "shopt", &format!("-{flag}: invalid option")),
            }
        }
    }
    let mut text = String::new();
    let mut code = 0;
    let line = |name: &str, on: bool| match reusable {
        true if of_set => format!("set {}o {name}\n", if on { '-' } else { '+' }),
        true => format!("shopt -{} {name}\n", if on { 's' } else { 'u' }),
        false => format!("{name:<15}\t{}\n", if on { "on" } else { "off" }),
    };
    if names.is_empty() {
        for &(flag, name, by, _) in FLAGS {
            let on = shell.on(flag);
            if (by == By::Shopt) != of_set && switch.is_none_or(|wanted| wanted == on) {
                text.push_str(&line(name, on));
            }
        }
    }
    for name in names {
        let Some(flag) = named(name, !of_set) else {
            code = failure(shell, "shopt", &format!("{name}: invalid shell option name"))?;
            continue;
        };
        match switch {
            Some(on) => shell.state.options.switch(flag, on),
            None => {
                let on = shell.on(flag);
                code = code.max(u8::from(!on));
                if !quiet {
                    text.push_str(&line(name, on));
                }
            }
        }
    }
    let printed = shell.print("shopt", text.as_bytes())?;
    Ok(code.max(printed))
}
