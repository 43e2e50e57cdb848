//! `test`, `[` and `let`.

use super::misuse;
use crate::expand;
use crate::shell::{Outcome, Shell};

pub fn test(shell: &mut Shell, args: &[String]) -> Outcome {
    match expand::test(shell, &args[1..]) {
        Ok(holds) => Ok(u8::from(!holds)),
        Err(stop) => {
            shell.complain(format_args!("{}: {}", args[0], stop.message));
            Ok(stop.code)
        }
    }
}

pub fn bracket(shell: &mut Shell, args: &[String]) -> Outcome {
    match args.split_last() {
        Some((last, rest)) if last == "]" && !rest.is_empty() => test(shell, rest),
        _ => misuse(shell, "[", "missing `]'"),
    }
}

/// `let`.
pub fn arithmetic(shell: &mut Shell, args: &[String]) -> Outcome {
    let mut last = 0;
    if args.len() < 2 {
        shell.complain("let: expression expected");
        return Ok(1);
    }
    for expression in &args[1..] {
        match expand::arithmetic(shell, expression) {
            Ok(number) => last = number,
            Err(stop) => return shell.stopped(stop.of_command()),
        }
    }
    Ok(u8::from(last == 0))
}
