//! `getopts`.

use super::misuse;
use crate::expand::{Env, Stop};
use crate::shell::{Outcome, Shell};
use crate::variable::is_name;

pub fn getopts(shell: &mut Shell, args: &[String]) -> Outcome {
    let [_, options, name, operands @ ..] = args else {
        return misuse(shell, "getopts", "usage: getopts optstring name [arg ...]");
    };
    if !is_name(name) {
        shell.complain(format_args!("getopts: `{name}': not a valid identifier"));
        return Ok(1);
    }
    let operands = if operands.is_empty() { shell.state.positional.clone() } else { operands.to_vec() };
    match next(shell, options, name, &operands) {
        Ok(code) => Ok(code),
        Err(stop) => shell.stopped(stop),
    }
}

/// `OPTIND` says which operand is next, `option_place` how far its letters are read.
fn next(shell: &mut Shell, options: &str, name: &str, operands: &[String]) -> Result<u8, Stop> {
    let (silent, options) = options.strip_prefix(':').map_or((false, options), |options| (true, options));
    let mut index = shell.scalar("OPTIND").and_then(|index| index.parse::<usize>().ok()).unwrap_or(1).max(1);
    // A script that resets OPTIND starts again at the first letter.
    let (at, letter) = shell.state.option_place;
    let mut letter = if at == index { letter } else { 1 };
    let word = operands.get(index - 1).map(String::as_str);
    let letters: Vec<char> = word.unwrap_or_default().chars().collect();
    if letters.len() < 2 || letters[0] != '-' || word == Some("--") {
        if word == Some("--") {
            index += 1;
        }
        shell.state.option_place = (0, 1);
        shell.set("OPTIND", index.to_string())?;
        shell.set(name, "?".to_owned())?;
        return Ok(1);
    }
    letter = letter.min(letters.len() - 1);
    let option = letters[letter];
    letter += 1;
    let known = options.find(option).filter(|_| option != ':');
    let takes_value = known.is_some_and(|at| options[at + option.len_utf8()..].starts_with(':'));
    let mut value = None;
    let mut missing = false;
    if takes_value {
        if letter < letters.len() {
            value = Some(letters[letter..].iter().collect::<String>());
        } else {
            index += 1;
            value = operands.get(index - 1).cloned();
            missing = value.is_none();
        }
        letter = letters.len();
    }
    if letter >= letters.len() {
        index += 1;
        letter = 1;
    }
    let index = index.min(operands.len() + 1);
    shell.state.option_place = (index, letter);
    shell.set("OPTIND", index.to_string())?;
    let found = match known {
        Some(_) if !missing => option.to_string(),
        Some(_) if silent => ":".to_owned(),
        _ => "?".to_owned(),
    };
    let complaint = match known {
        None => Some(format!("illegal option -- {option}")),
        Some(_) if missing => Some(format!("option requires an argument -- {option}")),
        Some(_) => None,
    };
    match (value, complaint) {
        (_, Some(_)) if silent => shell.set("OPTARG", option.to_string())?,
        (_, Some(complaint)) => {
            if shell.scalar("OPTERR").as_deref() != Some("0") {
                shell.complain(complaint);
            }
            shell.unset("OPTARG")?;
        }
        (Some(value), None) => shell.set("OPTARG", value)?,
        (None, None) => shell.unset("OPTARG")?,
    }
    shell.set(name, found)?;
    Ok(0)
}
