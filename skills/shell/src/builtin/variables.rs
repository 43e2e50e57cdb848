//! `shift` and `unset`.

use super::{failure, misuse};
use crate::shell::{Outcome, Shell};
use crate::variable::is_name;

pub fn shift(shell: &mut Shell, args: &[String]) -> Outcome {
    if args.len() > 2 {
        return failure(shell, "shift", "too many arguments");
    }
    let count = match args.get(1).map(|count| count.parse::<usize>()) {
        None => 1,
        Some(Ok(count)) => count,
        Some(Err(_)) => return failure(shell, "shift", &format!("{}: numeric argument required", args[1])),
    };
    if count > shell.state.positional.len() {
        return Ok(1);
    }
    shell.state.positional.drain(..count);
    Ok(0)
}

pub fn unset(shell: &mut Shell, args: &[String]) -> Outcome {
    let (mut variables, mut functions, mut references) = (true, true, false);
    let mut code = 0;
    let mut may_be_flag = true;
    for name in &args[1..] {
        may_be_flag &= name.starts_with('-');
        match name.as_str() {
            "-v" if may_be_flag => functions = false,
            "-f" if may_be_flag => variables = false,
            "-n" if may_be_flag => references = true,
            "--" if may_be_flag => may_be_flag = false,
            flag if may_be_flag && flag.len() > 1 && flag.starts_with('-') => {
                return misuse(shell, "unset", &format!("{flag}: invalid option"));
            }
            name if references => {
                shell.state.variables.remove(name);
            }
            name => {
                if !variables {
                    shell.state.functions.remove(name);
                    continue;
                }
                let element = name.strip_suffix(']').and_then(|name| name.split_once('['));
                let plain = element.map_or(name, |(plain, _)| plain);
                if !is_name(plain) {
                    if !functions || !shell.state.functions.contains_key(name) {
                        code = failure(shell, "unset", &format!("`{name}': not a valid identifier"))?;
                    }
                    shell.state.functions.remove(name);
                    continue;
                }
                let result = match element {
                    Some((plain, "@" | "*")) => shell.unset(plain),
                    Some((plain, index)) => shell.unset_element(plain, index),
                    None if !shell.state.variables.contains_key(name) && functions => {
                        shell.state.functions.remove(name);
                        Ok(())
                    }
                    None => shell.unset(name),
                };
                if let Err(stop) = result {
                    shell.complain(&stop.message);
                    code = stop.code;
                }
            }
        }
    }
    Ok(code)
}
