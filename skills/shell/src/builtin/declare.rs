//! `declare`, `typeset`, `local`, `export` and `readonly`.

use super::misuse;
use crate::expand::{Reach, Stop, Value};
use crate::options::Flag;
use crate::print;
use crate::program::Assignment;
use crate::shell::{Outcome, Shell};
use crate::simple::Operand;
use crate::state::{Case, Variable};
use crate::variable::is_name;

#[derive(Default)]
struct DeclareOptions {
    array: bool,
    keyed: bool,
    integer: Option<bool>,
    readonly: bool,
    export: Option<bool>,
    case: Option<Option<Case>>,
    global: bool,
    reference: Option<bool>,
    print: bool,
    functions: bool,
    function_names: bool,
}

pub fn declare(shell: &mut Shell, operands: Vec<Operand>) -> Outcome {
    let mut operands = operands.into_iter();
    let Some(Operand::Text(name)) = operands.next() else { return Ok(0) };
    let mut wanted = DeclareOptions::default();
    match name.as_str() {
        "export" => wanted.export = Some(true),
        "readonly" => wanted.readonly = true,
        _ => {}
    }
    let mut rest = Vec::new();
    let mut flags_end = false;
    for operand in operands {
        match &operand {
            Operand::Text(text) if !flags_end && text == "--" => flags_end = true,
            Operand::Text(text) if !flags_end && text.len() > 1 && text.starts_with(['-', '+']) => {
                if let Err(flag) = wanted.flags(&name, text) {
                    return misuse(shell, &name, &format!("-{flag}: invalid option"));
                }
            }
            _ => {
                flags_end = true;
                rest.push(operand);
            }
        }
    }
    if name == "local" && shell.state.scopes.is_empty() {
        shell.complain("local: can only be used in a function");
        return Ok(1);
    }
    if wanted.functions {
        return functions(shell, &name, &wanted, rest);
    }
    if wanted.print || rest.is_empty() {
        return list(shell, &name, &wanted, rest);
    }
    let is_local =
        matches!(name.as_str(), "declare" | "typeset" | "local") && !wanted.global && !shell.state.scopes.is_empty();
    let mut code = 0;
    for operand in rest {
        if let Err(stop) = one(shell, &wanted, is_local, operand) {
            let stop = stop.of_command();
            let message = if is_name(stop.message.split(':').next().unwrap_or_default()) {
                stop.message
            } else {
                format!("{name}: {}", stop.message)
            };
            shell.complain(message);
            code = stop.code;
        }
    }
    Ok(code)
}

impl DeclareOptions {
    fn flags(&mut self, name: &str, text: &str) -> Result<(), char> {
        let on = text.starts_with('-');
        for flag in text[1..].chars() {
            match (name, flag) {
                ("export", 'n') => self.export = Some(false),
                (_, 'p') => self.print = true,
                (_, 'f') => self.functions = true,
                (_, 'a') => self.array = true,
                (_, 'A') => self.keyed = true,
                ("export", _) => return Err(flag),
                (_, 'i') => self.integer = Some(on),
                (_, 'r') => self.readonly = true,
                (_, 'x') => self.export = Some(on),
                (_, 'l') => self.case = Some(on.then_some(Case::Lower)),
                (_, 'u') => self.case = Some(on.then_some(Case::Upper)),
                (_, 'n') => self.reference = Some(on),
                (_, 'g') => self.global = true,
                (_, 'F') => (self.functions, self.function_names) = (true, true),
                _ => return Err(flag),
            }
        }
        Ok(())
    }

    fn fits(&self, variable: &Variable) -> bool {
        (!self.array || matches!(variable.value, Some(Value::Indexed(_))))
            && (!self.keyed || matches!(variable.value, Some(Value::Keyed(_))))
            && (self.export != Some(true) || variable.exported)
            && (!self.readonly || variable.readonly)
            && (self.integer != Some(true) || variable.integer)
            && (self.reference != Some(true) || variable.reference)
    }

    fn selects(&self) -> bool {
        self.array
            || self.keyed
            || self.readonly
            || [self.integer, self.export, self.reference].contains(&Some(true))
            || self.case.is_some()
    }
}

/// `name`, `name=value` or `name=(…)`.
fn one(shell: &mut Shell, wanted: &DeclareOptions, is_local: bool, operand: Operand) -> Result<(), Stop> {
    let refused =
        |text: &str| Stop { message: format!("`{text}': not a valid identifier"), code: 1, reach: Reach::Command };
    let (name, assignment, text) = match operand {
        Operand::Assignment(assignment) => (assignment.name.clone(), Some(assignment), None),
        Operand::Text(text) => match text.split_once('=') {
            Some((name, value)) => (name.to_owned(), None, Some(value.to_owned())),
            None => (text, None, None),
        },
    };
    let (plain, append) = match (&text, name.strip_suffix('+')) {
        (Some(_), Some(plain)) => (plain.to_owned(), true),
        _ => (name, false),
    };
    if !is_name(&plain) {
        return Err(refused(&plain));
    }
    if let Some(on) = wanted.reference {
        let target = match assignment {
            Some(Assignment { value: crate::program::Assigned::Scalar(word), .. }) => {
                Some(crate::expand::assigned(shell, word)?)
            }
            _ => text,
        };
        if is_local {
            shell.hide(&plain);
        }
        let variable = shell.state.variables.entry(plain.clone()).or_default();
        let meant = target.as_deref().or(variable.value.as_ref().and_then(Value::scalar));
        if let Some(meant) = meant.filter(|meant| on && (!is_reference(meant) || *meant == plain)) {
            let message = format!("`{meant}': invalid variable name for name reference");
            return Err(Stop { message, code: 1, reach: Reach::Command });
        }
        variable.exported = wanted.export.unwrap_or(variable.exported);
        variable.reference = on;
        variable.value = target.map(Value::Scalar).or(variable.value.take());
        return Ok(());
    }
    if is_local {
        // The value is read before the name hides what it may speak of: `local x=$x`.
        if let Some(Assignment { value: crate::program::Assigned::Scalar(word), index: None, append, .. }) = assignment
        {
            let value = crate::expand::assigned(shell, word)?;
            shell.hide(&plain);
            attributes(shell, wanted, &plain)?;
            return finish(shell, wanted, &plain, |shell| shell.assign(&plain, value, *append));
        }
        shell.hide(&plain);
    }
    attributes(shell, wanted, &plain)?;
    finish(shell, wanted, &plain, |shell| match (assignment, text) {
        (Some(assignment), _) => shell.assignment(assignment),
        (None, Some(value)) => shell.assign(&plain, value, append),
        (None, None) => Ok(()),
    })
}

/// A name, or an element of an array.
fn is_reference(text: &str) -> bool {
    is_name(text.strip_suffix(']').and_then(|text| text.split_once('[')).map_or(text, |(name, _)| name))
}

/// Sets the attributes that an assignment of the value depends on.
fn attributes(shell: &mut Shell, wanted: &DeclareOptions, name: &str) -> Result<(), Stop> {
    let refused = |name: &str, why: &str| Stop { message: format!("{name}: {why}"), code: 1, reach: Reach::Command };
    let variable = shell.state.variables.entry(name.to_owned()).or_default();
    variable.integer = wanted.integer.unwrap_or(variable.integer);
    variable.case = wanted.case.unwrap_or(variable.case);
    variable.exported = wanted.export.unwrap_or(variable.exported);
    match (&variable.value, wanted.array, wanted.keyed) {
        (Some(Value::Keyed(_)), true, _) => return Err(refused(name, "cannot convert associative to indexed array")),
        (Some(Value::Indexed(_)), _, true) => return Err(refused(name, "cannot convert indexed to associative array")),
        (None, true, _) => variable.value = Some(Value::Indexed(Default::default())),
        (None, _, true) => variable.value = Some(Value::Keyed(Default::default())),
        (Some(Value::Scalar(text)), true, _) => variable.value = Some(Value::Indexed([(0, text.clone())].into())),
        (Some(Value::Scalar(text)), _, true) => {
            variable.value = Some(Value::Keyed([("0".to_owned(), text.clone())].into_iter().collect()));
        }
        _ => {}
    }
    Ok(())
}

fn finish(
    shell: &mut Shell,
    wanted: &DeclareOptions,
    name: &str,
    assign: impl FnOnce(&mut Shell) -> Result<(), Stop>,
) -> Result<(), Stop> {
    assign(shell)?;
    if let Some(variable) = shell.state.variables.get_mut(name) {
        variable.readonly |= wanted.readonly;
    }
    Ok(())
}

fn functions(shell: &mut Shell, name: &str, wanted: &DeclareOptions, rest: Vec<Operand>) -> Outcome {
    let names: Vec<String> = crate::simple::texts(rest);
    // `export -f` has nothing to do: a fork gets all functions, and a component none.
    if name == "export" || name == "readonly" {
        return Ok(0);
    }
    let mut text = String::new();
    let mut code = 0;
    let all: Vec<String> =
        if names.is_empty() { shell.state.functions.keys().cloned().collect() } else { names.clone() };
    for function in &all {
        match shell.state.functions.get(function) {
            Some(_) if wanted.function_names && names.is_empty() => text.push_str(&format!("declare -f {function}\n")),
            Some(body) if wanted.function_names && shell.on(Flag::ExtDebug) => {
                let source = shell.state.sources.get(function).map_or("environment", String::as_str);
                text.push_str(&format!("{function} {} {source}\n", body.line));
            }
            Some(_) if wanted.function_names => text.push_str(&format!("{function}\n")),
            Some(body) => text.push_str(&print::function(function, body)),
            None => code = 1,
        }
    }
    let printed = shell.print(name, text.as_bytes())?;
    Ok(code.max(printed))
}

fn list(shell: &mut Shell, name: &str, wanted: &DeclareOptions, rest: Vec<Operand>) -> Outcome {
    let names = crate::simple::texts(rest);
    let mut text = String::new();
    let mut code = 0;
    if names.is_empty() {
        let local = (name == "local").then(|| shell.state.scopes.last()).flatten();
        // Without `-p` and attributes, `declare` lists as `set` does.
        let plain = matches!(name, "declare" | "typeset") && !wanted.print && !wanted.selects();
        for (name, variable) in &shell.state.variables {
            if !wanted.fits(variable) || local.is_some_and(|scope| !scope.hidden.contains_key(name)) {
                continue;
            }
            match &variable.value {
                Some(Value::Scalar(value)) if plain => {
                    text.push_str(&format!("{name}={}\n", print::quote_value(value)));
                }
                Some(value) if plain => text.push_str(&format!("{name}={}\n", print::literal(value))),
                None if plain => {}
                _ => text.push_str(&describe(name, variable)),
            }
        }
    }
    // As in bash, these two name no variables.
    let names = if matches!(name, "export" | "readonly") { Vec::new() } else { names };
    for wanted in names {
        match shell.state.variables.get(&wanted) {
            Some(variable) => text.push_str(&describe(&wanted, variable)),
            None => {
                shell.complain(format_args!("{name}: {wanted}: not found"));
                code = 1;
            }
        }
    }
    let printed = shell.print(name, text.as_bytes())?;
    Ok(code.max(printed))
}

/// As `declare -p` writes it.
fn describe(name: &str, variable: &Variable) -> String {
    let mut flags = variable.flags();
    if flags.is_empty() {
        flags.push('-');
    }
    let value = variable.value.as_ref().map(|value| format!("={}", print::literal(value))).unwrap_or_default();
    format!("declare -{flags} {name}{value}\n")
}
