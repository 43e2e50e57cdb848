use std::fmt;
use std::io;
use std::ops::Range;
use std::path::PathBuf;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::key::{FieldSlot, ValueError, article, near, u64_of};
use super::model::{self, holds_models};
use super::{Config, KEYS, Key, Kind, NAMED, ORDERED, SECTIONS};
use super::{channel, command, folder, hook, mcp, mount, network, pill, provider, user, webhook};
use crate::home::HomeError;

/// Why the configuration cannot be loaded. Nothing starts then (exit code 3).
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConfigError {
    #[error("{}", listing(path, problems))]
    Invalid { path: PathBuf, problems: Vec<Problem> },
    #[error("failed to read {}: {error}", path.display())]
    Unreadable { path: PathBuf, error: io::Error },
    #[error(transparent)]
    Home(#[from] HomeError),
}

/// A problem in the text, and its place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// Counted from 1.
    pub line: usize,
    /// In characters, counted from 1.
    pub column: usize,
    pub message: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}", self.line, self.column, self.message)
    }
}

fn listing(path: &std::path::Path, problems: &[Problem]) -> String {
    let lines: Vec<_> = problems.iter().map(|problem| format!("{}:{problem}", path.display())).collect();
    lines.join("\n")
}

pub(super) fn parse(bytes: &[u8]) -> Result<Config, Vec<Problem>> {
    let text = std::str::from_utf8(bytes).map_err(|error| {
        let before = String::from_utf8_lossy(&bytes[..error.valid_up_to()]);
        vec![problem(&before, before.len(), "this is not UTF-8 text".to_owned())]
    })?;
    let document = DeTable::parse(text).map_err(|error| {
        let at = error.span().map_or(text.len(), |span| span.start);
        vec![problem(text, at, error.message().to_owned())]
    })?;
    let mut reading = Reading {
        text,
        config: Config::default(),
        given: Vec::new(),
        models: Vec::new(),
        commands: Vec::new(),
        providers_wrong: false,
        problems: Vec::new(),
    };
    for (name, value) in document.get_ref() {
        let known = name.get_ref().as_ref();
        if NAMED.iter().any(|table| table.name == known && !known.contains('.')) {
            reading.named_tables(known, value);
            continue;
        }
        match (SECTIONS.iter().any(|section| section.name == known), value.get_ref()) {
            (false, _) => reading.key("", name.get_ref(), name.span(), value),
            (true, DeValue::Table(table)) => {
                for (key, value) in table {
                    match (known, key.get_ref().as_ref()) {
                        ("exec", "mounts") => reading.named_tables("exec.mounts", value),
                        ("network", "rules") => reading.network_rules(value),
                        (_, name) => reading.key(known, name, key.span(), value),
                    }
                }
            }
            (true, other) => {
                let message = format!("[{known}] must be a table, and this is {}", article(other));
                reading.wrong(value.span(), message);
            }
        }
    }
    reading.model_strings();
    for (span, name) in std::mem::take(&mut reading.commands) {
        if let Some(why) = reading.config.unfit_command(&name) {
            reading.wrong(span, why);
        }
    }
    reading.order();
    if reading.problems.is_empty() {
        return Ok(reading.config);
    }
    // The parser returns keys sorted by name; people read from the top.
    reading.problems.sort_by_key(|problem| (problem.line, problem.column));
    Err(reading.problems)
}

struct Reading<'a> {
    text: &'a str,
    config: Config,
    /// Paths of the integers that the file sets, with their places.
    given: Vec<(String, Range<usize>)>,
    /// Model strings, each with its place and what contains it. Their providers are checked at the end.
    models: Vec<(String, Range<usize>, String)>,
    /// Commands and their places. The pills are only known at the end.
    commands: Vec<(Range<usize>, String)>,
    /// Whether a provider could not be read; then model strings cannot be checked.
    providers_wrong: bool,
    problems: Vec<Problem>,
}

impl Reading<'_> {
    fn wrong(&mut self, span: Range<usize>, message: String) {
        self.problems.push(problem(self.text, span.start, message));
    }

    fn key(&mut self, section: &str, name: &str, span: Range<usize>, value: &Spanned<DeValue<'_>>) {
        match KEYS.iter().find(|key| key.section == section && key.name == name) {
            Some(key) => {
                if let Err((span, message)) = set(&mut self.config, key, value) {
                    self.wrong(span, message);
                } else if let ("user", DeValue::String(text)) = (section, value.get_ref())
                    && let Some(message) = user::wrong(name, text)
                {
                    self.wrong(value.span(), message);
                } else {
                    self.given.push((key.path(), value.span()));
                    if holds_models(section, name) {
                        self.note_models(&key.path(), value);
                    }
                }
            }
            None => self.wrong(span, unknown(section, name)),
        }
    }

    fn note_models(&mut self, path: &str, value: &Spanned<DeValue<'_>>) {
        match value.get_ref() {
            DeValue::String(text) if !text.is_empty() => {
                self.models.push((path.to_owned(), value.span(), text.to_string()));
            }
            DeValue::Array(items) => {
                for item in items {
                    self.note_models(path, item);
                }
            }
            _ => {}
        }
    }

    /// Tables whose names a user chose, in the order of the file.
    fn named_tables(&mut self, section: &str, value: &Spanned<DeValue<'_>>) {
        let DeValue::Table(table) = value.get_ref() else {
            let message = format!("[{section}] must be a table, and this is {}", article(value.get_ref()));
            return self.wrong(value.span(), message);
        };
        let mut tables: Vec<_> = table.iter().collect();
        tables.sort_by_key(|(name, _)| name.span().start);
        for (name, value) in tables {
            let config = &mut self.config;
            let read = match section {
                "providers" => provider::read(name, value).map(|read| config.providers.push(read)),
                "folders" => folder::read(name, value).map(|read| config.folders.push(read)),
                "pills" => pill::read(name, value).map(|read| config.pills.push(read)),
                "webhooks" => webhook::read(name, value, config.webhooks.len()).map(|read| config.webhooks.push(read)),
                "hooks" => hook::read(name, value, config.hooks.len()).map(|read| config.hooks.push(read)),
                "mcp" => mcp::read(name, value, config.mcp.len()).map(|read| config.mcp.push(read)),
                "channels" => channel::read(name, value, config.channels.len()).map(|read| config.channels.push(read)),
                "commands" => command::read(name, value)
                    .map(|read| {
                        self.commands.push((name.span(), read.name.clone()));
                        config.commands.push(read);
                    })
                    .map_err(|wrong| vec![wrong]),
                "model_settings" => {
                    self.models.push((section.to_owned(), name.span(), name.get_ref().to_string()));
                    model::read(name, value).map(|read| config.model_settings.push(read))
                }
                _ => mount::read(name, value).map(|read| config.mounts.push(read)),
            };
            self.providers_wrong |= section == "providers" && read.is_err();
            for (span, message) in read.err().unwrap_or_default() {
                self.wrong(span, message);
            }
        }
    }

    fn network_rules(&mut self, value: &Spanned<DeValue<'_>>) {
        let (rules, wrong) = network::read_all(value);
        self.config.network_rules = rules;
        wrong.into_iter().for_each(|(span, message)| self.wrong(span, message));
    }

    /// Checks that every model string names something, and that each model has settings only once. A provider whose table is
    /// invalid is reported only for its table.
    fn model_strings(&mut self) {
        let mut settings = Vec::new();
        for (path, span, string) in std::mem::take(&mut self.models) {
            let unfit = |named| model::unfit(&path, named).map_or(Ok(()), Err);
            match self.config.named(&string).and_then(|named| unfit(named).map(|()| named.to_string())) {
                Err(_) if self.providers_wrong => {}
                Err(why) => self.wrong(span, format!("{path}: {why}")),
                Ok(name) if path == "model_settings" && settings.contains(&name) => {
                    self.wrong(span, format!("{path}: {name:?} is set twice"));
                }
                Ok(name) if path == "model_settings" => settings.push(name),
                Ok(_) => {}
            }
        }
    }

    fn order(&mut self) {
        for (section, low, high) in ORDERED {
            let (low, high) = (format!("{section}.{low}"), format!("{section}.{high}"));
            let (low_value, high_value) = (self.int(&low), self.int(&high));
            let place = |path: &str| self.given.iter().find(|(given, _)| given == path).map(|(_, span)| span.clone());
            let default = |path: &str| if place(path).is_none() { " (the default)" } else { "" };
            if low_value <= high_value {
                continue;
            }
            if let Some(span) = place(&high) {
                let rest = default(&low);
                self.wrong(span, format!("{high} = {high_value} is less than {low} = {low_value}{rest}: set both"));
            } else if let Some(span) = place(&low) {
                let rest = default(&high);
                self.wrong(span, format!("{low} = {low_value} is more than {high} = {high_value}{rest}: set both"));
            }
        }
    }

    fn int(&mut self, path: &str) -> u64 {
        let (section, name) = path.split_once('.').unwrap_or(("", path));
        match self.config.slot(section, name) {
            Some(FieldSlot::Int(value)) => *value,
            _ => 0,
        }
    }
}

/// Writes a value into its field, or returns its place and why it is refused.
fn set(config: &mut Config, key: &Key, value: &Spanned<DeValue<'_>>) -> Result<(), ValueError> {
    let path = key.path();
    let wrong_type = || {
        let wanted = match key.kind {
            Kind::Int(..) | Kind::Scaled(..) => "an integer",
            Kind::Bool(_) => "true or false",
            Kind::List(_) => "a list of strings",
            _ => "a string",
        };
        (value.span(), format!("{path} must be {wanted}, and this is {}", article(value.get_ref())))
    };
    let text = |text: &str, span: Range<usize>| {
        if (1..=200).contains(&text.chars().count()) && !text.contains(|c: char| c.is_whitespace() || c.is_control()) {
            return Ok(text.to_owned());
        }
        let shown: String = text.chars().take(60).collect();
        let rule = "it must have 1 to 200 characters and no spaces";
        Err((span, format!("{path} = {shown:?} is not allowed: {rule}")))
    };
    match (config.slot(key.section, key.name), value.get_ref()) {
        (Some(slot @ (FieldSlot::Int(_) | FieldSlot::Scaled(_))), DeValue::Integer(integer)) => {
            let (Kind::Int(_, min, max) | Kind::Scaled(_, min, max)) = key.kind else { return Err(wrong_type()) };
            let number = u64_of(integer).filter(|number| (min..=max).contains(number));
            let number =
                number.ok_or_else(|| (value.span(), format!("{path} = {integer} is out of range: {min} to {max}")))?;
            match slot {
                FieldSlot::Int(slot) => *slot = number,
                FieldSlot::Scaled(slot) => *slot = Some(number),
                _ => return Err(wrong_type()),
            }
        }
        (Some(FieldSlot::Text(slot)), DeValue::String(given)) => *slot = text(given, value.span())?,
        (Some(FieldSlot::Word(slot)), DeValue::String(given)) => {
            let Kind::Word(_, words) = key.kind else { return Err(wrong_type()) };
            if !words.contains(&given.as_ref()) {
                let shown: String = given.chars().take(60).collect();
                return Err((value.span(), format!("{path} = {shown:?} must be one of {}", words.join(", "))));
            }
            *slot = given.to_string();
        }
        // The commented default shows an empty text, so an empty text means "none".
        (Some(FieldSlot::Choice(slot)), DeValue::String(given)) => {
            *slot = if given.is_empty() { None } else { Some(text(given, value.span())?) };
        }
        (Some(FieldSlot::Bool(slot)), DeValue::Boolean(given)) => *slot = *given,
        (Some(FieldSlot::List(slot)), DeValue::Array(items)) => {
            let Kind::List(most) = key.kind else { return Err(wrong_type()) };
            if items.len() > most {
                return Err((value.span(), format!("{path} has {} entries; the most is {most}", items.len())));
            }
            let item = |item: &Spanned<DeValue<'_>>| match item.get_ref() {
                DeValue::String(given) => text(given, item.span()),
                other => {
                    Err((item.span(), format!("{path} must be a list of strings, and this is {}", article(other))))
                }
            };
            *slot = items.iter().map(item).collect::<Result<_, _>>()?;
        }
        _ => return Err(wrong_type()),
    }
    Ok(())
}

fn unknown(section: &str, name: &str) -> String {
    let path = if section.is_empty() { name.to_owned() } else { format!("{section}.{name}") };
    let mut allowed: Vec<String> =
        KEYS.iter().filter(|key| key.section == section).map(|key| key.name.to_owned()).collect();
    allowed.sort();
    if section.is_empty() {
        let names = SECTIONS.iter().skip(1).map(|section| section.name);
        let names = names.chain(NAMED.iter().map(|table| table.name).filter(|name| !name.contains('.')));
        let mut tables: Vec<_> = names.map(|name| format!("[{name}]")).collect();
        tables.sort();
        allowed.extend(tables);
    }
    let near = near(name, &allowed);
    let elsewhere = || {
        let key = KEYS.iter().find(|key| key.name == name)?;
        Some(if key.section.is_empty() { format!("{name} at the top") } else { format!("{name} in [{}]", key.section) })
    };
    let hint = near.or_else(elsewhere).map(|hint| format!(" did you mean {hint}?")).unwrap_or_default();
    format!("unknown key {path}:{hint} Allowed here: {}", allowed.join(", "))
}

pub(super) fn problem(text: &str, at: usize, message: String) -> Problem {
    let before = text.get(..at).unwrap_or(text);
    let line_start = before.rfind('\n').map_or(0, |end| end + 1);
    Problem { line: before.matches('\n').count() + 1, column: before[line_start..].chars().count() + 1, message }
}
