use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap, HashSet};

use brush_parser::ast::Word;

use super::*;

/// A shell without commands: a substitution gives back its own source.
pub struct Shell {
    pub variables: BTreeMap<String, Value>,
    pub readonly: HashSet<String>,
    pub positional: Vec<String>,
    pub options: Vec<Opt>,
    pub cwd: String,
    /// What commands print, by their source.
    pub outputs: HashMap<String, String>,
}

impl Shell {
    pub fn new() -> Self {
        Self {
            variables: BTreeMap::new(),
            readonly: HashSet::new(),
            positional: Vec::new(),
            options: Vec::new(),
            cwd: "/".into(),
            outputs: HashMap::new(),
        }
    }

    pub fn var(mut self, name: &str, value: &str) -> Self {
        self.variables.insert(name.into(), Value::Scalar(value.into()));
        self
    }

    pub fn array(mut self, name: &str, elements: &[&str]) -> Self {
        let elements = (0..).zip(elements.iter().map(|element| (*element).to_owned())).collect();
        self.variables.insert(name.into(), Value::Indexed(elements));
        self
    }

    pub fn keyed(mut self, name: &str, elements: &[(&str, &str)]) -> Self {
        let elements = elements.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
        self.variables.insert(name.into(), Value::Keyed(elements));
        self
    }

    pub fn args(mut self, args: &[&str]) -> Self {
        self.positional = args.iter().map(|arg| (*arg).to_owned()).collect();
        self
    }

    pub fn option(mut self, option: Opt) -> Self {
        self.options.push(option);
        self
    }

    pub fn output(mut self, command: &str, output: &str) -> Self {
        self.outputs.insert(command.into(), output.into());
        self
    }

    /// The arguments that these words make, each as `<…>`, as `printf '<%s>'` shows them.
    pub fn show(&mut self, source: &str) -> String {
        let tokens = brush_parser::tokenize_str(source).expect("the source has tokens");
        let all: Vec<Word> = tokens.iter().map(Word::from).collect();
        match words(self, &all.iter().collect::<Vec<_>>()) {
            Ok(words) => words.iter().map(|word| format!("<{word}>")).collect(),
            Err(stop) => format!("{}! {}", stop.code, stop.message),
        }
    }
}

impl Env for Shell {
    fn get(&self, name: &str) -> Option<Cow<'_, Value>> {
        self.variables.get(name).map(Cow::Borrowed)
    }

    fn set(&mut self, name: &str, value: String) -> Result<(), Stop> {
        if self.readonly.contains(name) {
            return Err(Stop::failed(format!("{name}: readonly variable")));
        }
        match self.variables.get_mut(name) {
            Some(Value::Indexed(elements)) => drop(elements.insert(0, value)),
            Some(Value::Keyed(elements)) => drop(elements.insert("0".into(), value)),
            _ => drop(self.variables.insert(name.into(), Value::Scalar(value))),
        }
        Ok(())
    }

    fn set_element(&mut self, name: &str, index: &str, value: String) -> Result<(), Stop> {
        match self.variables.entry(name.into()).or_insert_with(|| Value::Indexed(BTreeMap::new())) {
            Value::Keyed(elements) => drop(elements.insert(index.into(), value)),
            Value::Indexed(elements) => drop(elements.insert(index.parse().expect("a number"), value)),
            scalar => {
                let first = scalar.elements().into_iter().map(|text| (0, text));
                let new = [(index.parse().expect("a number"), value)];
                *scalar = Value::Indexed(first.chain(new).collect());
            }
        }
        Ok(())
    }

    fn set_array(&mut self, name: &str, elements: Vec<String>) -> Result<(), Stop> {
        self.variables.insert(name.into(), Value::Indexed((0..).zip(elements).collect()));
        Ok(())
    }

    fn names(&self, prefix: &str) -> Vec<String> {
        self.variables.keys().filter(|name| name.starts_with(prefix)).cloned().collect()
    }

    fn positional(&self) -> &[String] {
        &self.positional
    }

    fn special(&self, name: char) -> Option<String> {
        match name {
            '#' => Some(self.positional.len().to_string()),
            '?' => Some("0".into()),
            '0' => Some("bash".into()),
            '-' => Some("hBc".into()),
            '$' => Some("42".into()),
            _ => None,
        }
    }

    fn option(&self, option: Opt) -> bool {
        self.options.contains(&option)
    }

    fn substitute(&mut self, source: &str) -> Result<String, Stop> {
        Ok(self.outputs.get(source).cloned().unwrap_or_else(|| source.to_owned()))
    }

    fn cwd(&self) -> &str {
        &self.cwd
    }

    fn is_terminal(&self, _: u32) -> bool {
        false
    }
}
