//! Assigning to variables, with their attributes and scopes.

use std::borrow::Cow;
use std::collections::BTreeMap;

use crate::expand::value::absolute;
use crate::expand::{self, Reach, Stop, Value};
use crate::options::Flag;
use crate::program::{Assigned, Assignment};
use crate::shell::{Shell, now};
use crate::state::{Case, Variable};

/// The limit for an index, so that an array cannot fill the memory.
const HIGHEST_INDEX: u64 = 1 << 32;

/// A chain of name references is followed this far, as in bash; a circle ends there.
const MOST_REFERENCES: usize = 8;

pub fn is_name(text: &str) -> bool {
    let mut bytes = text.bytes();
    bytes.next().is_some_and(|first| first.is_ascii_alphabetic() || first == b'_')
        && bytes.all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

fn error(message: String) -> Stop {
    Stop { message, code: 1, reach: Reach::Command }
}

/// `name[index]`.
fn element(name: &str) -> Option<(&str, &str)> {
    name.strip_suffix(']')?.split_once('[')
}

impl Shell {
    /// The target of a name: the name itself, or the end of its name references, which may be an element of an array.
    pub fn target<'a>(&'a self, name: &'a str) -> &'a str {
        let mut name = name;
        for _ in 0..MOST_REFERENCES {
            match self.state.variables.get(name) {
                Some(Variable { reference: true, value: Some(Value::Scalar(target)), .. }) => name = target,
                _ => break,
            }
        }
        name
    }

    /// The value of a variable that is not one of the shell's own.
    pub fn stored(&self, name: &str) -> Option<Option<Cow<'_, Value>>> {
        let target = self.target(name);
        let Some((name, index)) = element(target).filter(|_| target != name) else {
            return self.state.variables.get(target).map(|variable| variable.value.as_ref().map(Cow::Borrowed));
        };
        let text = match self.state.variables.get(name)?.value.as_ref()? {
            Value::Keyed(elements) => elements.get(index).cloned(),
            value => index.parse().ok().and_then(|index| value.element(index)).map(str::to_owned),
        };
        Some(text.map(|text| Cow::Owned(Value::Scalar(text))))
    }

    /// The variable, made if it is missing; an error if it is readonly.
    fn writable(&mut self, name: &str) -> Result<&mut Variable, Stop> {
        let name = &*self.target(name).to_owned();
        let exported = self.on(Flag::AllExport);
        let reach = if self.on(Flag::ErrExit) { Reach::Shell } else { Reach::Line };
        let variable = self.state.variables.entry(name.to_owned()).or_default();
        if variable.readonly {
            return Err(Stop { message: format!("{name}: readonly variable"), code: 1, reach });
        }
        variable.exported |= exported;
        Ok(variable)
    }

    /// Replaces all that the variable holds.
    pub fn assign_value(&mut self, name: &str, value: Value) -> Result<(), Stop> {
        self.writable(name)?.value = Some(value);
        Ok(())
    }

    /// `name=value` or, to append, `name+=value`. An array gets it as its element 0.
    pub fn assign(&mut self, name: &str, value: String, append: bool) -> Result<(), Stop> {
        let target = self.target(name).to_owned();
        if let Some((name, index)) = element(&target).filter(|_| target != name) {
            let index = self.index(name, index)?;
            return self.assign_element(name, &index, value, append);
        }
        let name = target.as_str();
        match name {
            "SHELLOPTS" | "BASHOPTS" => {
                return Err(Stop { message: format!("{name}: readonly variable"), code: 1, reach: Reach::Line });
            }
            "RANDOM" => {
                self.state.random.set(value.parse().unwrap_or(1));
                return Ok(());
            }
            "SECONDS" => {
                self.state.began = now().saturating_sub(value.parse::<u64>().unwrap_or(0) * 1000);
                return Ok(());
            }
            _ => {}
        }
        if matches!(
            self.state.variables.get(name).and_then(|variable| variable.value.as_ref()),
            Some(Value::Indexed(_) | Value::Keyed(_))
        ) {
            return self.assign_element(name, "0", value, append);
        }
        let before = match self.state.variables.get(name).and_then(|variable| variable.value.as_ref()) {
            Some(Value::Scalar(text)) if append => text.clone(),
            _ => String::new(),
        };
        let value = self.converted(name, before, value, append)?;
        self.assign_value(name, Value::Scalar(value))
    }

    /// Applies the attributes of a variable to a new value.
    fn converted(&mut self, name: &str, before: String, value: String, append: bool) -> Result<String, Stop> {
        let Some(variable) = self.state.variables.get(name) else { return Ok(value) };
        let (integer, case) = (variable.integer, variable.case);
        if integer {
            let mut number = expand::arithmetic(self, &value)?;
            if append {
                number = number.wrapping_add(before.parse().unwrap_or(0));
            }
            return Ok(number.to_string());
        }
        let value = if append { before + &value } else { value };
        Ok(match case {
            Some(Case::Lower) => value.to_lowercase(),
            Some(Case::Upper) => value.to_uppercase(),
            None => value,
        })
    }

    pub fn assign_element(&mut self, name: &str, index: &str, value: String, append: bool) -> Result<(), Stop> {
        let name = &*self.target(name).to_owned();
        if let Some(Value::Keyed(elements)) =
            self.state.variables.get(name).and_then(|variable| variable.value.as_ref())
        {
            let before = elements.get(index).cloned().unwrap_or_default();
            let value = self.converted(name, before, value, append)?;
            if let Some(Value::Keyed(elements)) = &mut self.writable(name)?.value {
                elements.insert(index.to_owned(), value);
            }
            return Ok(());
        }
        let mut elements = match self.writable(name)?.value.take() {
            Some(Value::Indexed(elements)) => elements,
            Some(Value::Scalar(text)) => BTreeMap::from([(0, text)]),
            _ => BTreeMap::new(),
        };
        let place =
            index.parse::<i64>().ok().and_then(|index| absolute(index, &elements)).filter(|&at| at < HIGHEST_INDEX);
        let result = match place {
            None => Err(error(format!("{name}[{index}]: bad array subscript"))),
            Some(at) => {
                let before = elements.get(&at).cloned().unwrap_or_default();
                self.converted(name, before, value, append).map(|value| {
                    elements.insert(at, value);
                })
            }
        };
        self.writable(name)?.value = Some(Value::Indexed(elements));
        result
    }

    pub fn is_keyed(&self, name: &str) -> bool {
        let variable = self.state.variables.get(self.target(name));
        matches!(variable.and_then(|variable| variable.value.as_ref()), Some(Value::Keyed(_)))
    }

    /// Does what an assignment says.
    pub fn assignment(&mut self, assignment: &Assignment) -> Result<(), Stop> {
        let name = &assignment.name;
        match &assignment.value {
            Assigned::Scalar(word) => {
                let value = expand::assigned(self, word)?;
                if self.on(Flag::XTrace) {
                    let index = assignment.index.as_ref().map(|index| format!("[{index}]")).unwrap_or_default();
                    let operator = if assignment.append { "+=" } else { "=" };
                    self.trace(format_args!("{name}{index}{operator}{}", crate::print::quote_value(&value)));
                }
                match &assignment.index {
                    None => self.assign(name, value, assignment.append),
                    Some(index) => {
                        let index = self.index(name, index)?;
                        self.assign_element(name, &index, value, assignment.append)
                    }
                }
            }
            Assigned::Array(elements) => self.assign_elements(name, elements, assignment.append),
        }
    }

    /// A subscript as `assign_element` takes it.
    pub fn index(&mut self, name: &str, source: &str) -> Result<String, Stop> {
        if self.is_keyed(name) {
            return self.text(&brush_parser::ast::Word::new(source));
        }
        Ok(expand::arithmetic(self, source)?.to_string())
    }

    fn assign_elements(
        &mut self,
        name: &str,
        elements: &[(Option<brush_parser::ast::Word>, brush_parser::ast::Word)],
        append: bool,
    ) -> Result<(), Stop> {
        let keyed = self.is_keyed(name);
        // The values are read before the array is emptied: `a=(x "${a[@]}")`.
        let mut read: Vec<(Option<String>, String)> = Vec::with_capacity(elements.len());
        for (key, word) in elements {
            match key {
                Some(key) => {
                    let key = self.index(name, &key.value)?;
                    read.push((Some(key), expand::assigned(self, word)?));
                }
                None => read.extend(expand::word(self, word)?.into_iter().map(|value| (None, value))),
            }
        }
        if self.on(Flag::XTrace) {
            let values: Vec<String> = read.iter().map(|(_, value)| crate::print::quote(value)).collect();
            self.trace(format_args!("{name}=({})", values.join(" ")));
        }
        let variable = self.writable(name)?;
        let mut next = 0;
        match &variable.value {
            _ if keyed && append => {}
            _ if keyed => variable.value = Some(Value::Keyed(Default::default())),
            Some(Value::Indexed(elements)) if append => {
                next = elements.last_key_value().map_or(0, |(last, _)| last + 1);
            }
            Some(Value::Scalar(text)) if append => {
                variable.value = Some(Value::Indexed(BTreeMap::from([(0, text.clone())])));
                next = 1;
            }
            _ => variable.value = Some(Value::Indexed(BTreeMap::new())),
        }
        let mut pairs = read.into_iter();
        while let Some((key, value)) = pairs.next() {
            match key {
                Some(key) => {
                    self.assign_element(name, &key, value, false)?;
                    next = key.parse::<u64>().map_or(next, |at| at + 1);
                }
                // `declare -A m=(key value key value)`
                None if keyed => {
                    let element = pairs.next().map(|(_, value)| value).unwrap_or_default();
                    self.assign_element(name, &value, element, false)?;
                }
                None => {
                    self.assign_element(name, &next.to_string(), value, false)?;
                    next += 1;
                }
            }
        }
        Ok(())
    }

    /// Hides a variable until the present function ends.
    pub fn hide(&mut self, name: &str) {
        if let Some(scope) = self.state.scopes.last_mut() {
            let variables = &mut self.state.variables;
            scope.hidden.entry(name.to_owned()).or_insert_with(|| variables.remove(name));
        }
    }

    /// Brings back what was hidden.
    pub fn restore(&mut self, hidden: BTreeMap<String, Option<Variable>>) {
        for (name, variable) in hidden {
            match variable {
                Some(variable) => self.state.variables.insert(name, variable),
                None => self.state.variables.remove(&name),
            };
        }
    }

    pub fn unset(&mut self, name: &str) -> Result<(), Stop> {
        let name = &*self.target(name).to_owned();
        if self.state.variables.get(name).is_some_and(|variable| variable.readonly) {
            return Err(error(format!("unset: {name}: cannot unset: readonly variable")));
        }
        self.state.variables.remove(name);
        // A local of a caller uncovers what it hid; one of the present function stays a local without a value.
        let mut scopes = self.state.scopes.iter_mut().rev();
        if scopes.next().is_some_and(|own| !own.hidden.contains_key(name))
            && let Some(covered) = scopes.find_map(|scope| scope.hidden.remove(name)).flatten()
        {
            self.state.variables.insert(name.to_owned(), covered);
        }
        Ok(())
    }

    pub fn unset_element(&mut self, name: &str, source: &str) -> Result<(), Stop> {
        let index = self.index(name, source)?;
        match &mut self.writable(name)?.value {
            Some(Value::Keyed(elements)) => {
                elements.shift_remove(&index);
            }
            Some(Value::Indexed(elements)) => {
                if let Some(at) = index.parse::<i64>().ok().and_then(|index| absolute(index, elements)) {
                    elements.remove(&at);
                }
            }
            Some(Value::Scalar(_)) if index == "0" => return self.unset(name),
            _ => {}
        }
        Ok(())
    }
}
