//! The template of a hook: the administrator's text, with placeholders for parts of an event.

use serde::{Serialize, Serializer};

/// Maximum names of a path.
const MAX_PATH: usize = 16;

/// The template of the message that an event becomes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HookTemplate {
    source: String,
    pub pieces: Vec<TemplatePiece>,
}

/// A piece of a template.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TemplatePiece {
    Text(String),
    Field(EventField),
}

/// A placeholder for a part of the event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EventField {
    /// As written in the template, without a `?`.
    pub name: String,
    pub part: EventPart,
    /// The path to the value; empty for the whole body.
    pub path: Vec<String>,
    /// Whether it may be missing.
    pub optional: bool,
}

/// The part of a request that a field is in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EventPart {
    Body,
    Header,
}

impl HookTemplate {
    /// Parses a template, or returns what is wrong with it: "has …", "must …".
    pub fn parse(source: &str) -> Result<HookTemplate, String> {
        if source.trim_start().starts_with('/') {
            return Err("must not begin with /: a hook sends no commands".to_owned());
        }
        if source.lines().any(|line| line.trim_start().starts_with('$')) {
            return Err(
                "must not begin a line with $: text from outside would become part of a command line".to_owned()
            );
        }
        let (mut pieces, mut text, mut rest) = (Vec::new(), String::new(), source);
        while let Some(at) = rest.find(['{', '}']) {
            text.push_str(&rest[..at]);
            let from = &rest[at..];
            if let Some(brace) = ["{{", "}}"].into_iter().find(|double| from.starts_with(double)) {
                text.push_str(&brace[1..]);
                rest = &from[2..];
                continue;
            }
            let Some(inner) = from.strip_prefix('{') else { return Err("has a } without its {; }} is one".to_owned()) };
            let Some((field, behind)) = inner.split_once('}') else {
                return Err("has a { without its }; {{ is one".to_owned());
            };
            if !text.is_empty() {
                pieces.push(TemplatePiece::Text(std::mem::take(&mut text)));
            }
            pieces.push(TemplatePiece::Field(EventField::parse(field)?));
            rest = behind;
        }
        text.push_str(rest);
        if !text.is_empty() {
            pieces.push(TemplatePiece::Text(text));
        }
        Ok(HookTemplate { source: source.to_owned(), pieces })
    }

    pub fn fields(&self) -> impl Iterator<Item = &EventField> {
        self.pieces.iter().filter_map(|piece| match piece {
            TemplatePiece::Field(field) => Some(field),
            TemplatePiece::Text(_) => None,
        })
    }
}

impl Serialize for HookTemplate {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.source)
    }
}

impl EventField {
    /// Parses a field such as "body.issue.title" or "header.x-github-event?".
    pub(super) fn parse(text: &str) -> Result<EventField, String> {
        let wrong = || {
            let short: String = text.chars().take(60).collect();
            Err(format!("has {{{short}}}; a part of an event is {{body}}, {{body.PATH}} or {{header.NAME}}"))
        };
        let (name, optional) = text.strip_suffix('?').map_or((text, false), |name| (name, true));
        let is_word = |word: &str| {
            !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-:@/".contains(&byte))
        };
        let mut words = name.split('.');
        let part = match words.next() {
            Some("body") => EventPart::Body,
            Some("header") => EventPart::Header,
            _ => return wrong(),
        };
        let mut path: Vec<String> = words.map(str::to_owned).collect();
        if path.len() > MAX_PATH || !path.iter().all(|word| is_word(word)) {
            return wrong();
        }
        if part == EventPart::Header {
            if path.len() != 1 {
                return wrong();
            }
            path[0].make_ascii_lowercase();
        }
        Ok(EventField { name: name.to_owned(), part, path, optional })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_template_is_text_with_places() {
        let template = HookTemplate::parse("a {{b}} {body.x.0.y?}{header.X-Event}\nc").unwrap();
        let shown: Vec<_> = template
            .pieces
            .iter()
            .map(|piece| match piece {
                TemplatePiece::Text(text) => text.clone(),
                TemplatePiece::Field(field) => format!("<{} {:?} {}>", field.name, field.path, field.optional),
            })
            .collect();
        let expected =
            ["a {b} ", "<body.x.0.y [\"x\", \"0\", \"y\"] true>", "<header.X-Event [\"x-event\"] false>", "\nc"];
        assert_eq!(shown, expected);
        assert_eq!(serde_json::to_value(&template).unwrap(), "a {{b}} {body.x.0.y?}{header.X-Event}\nc");
        assert_eq!(HookTemplate::parse("{body}").unwrap().fields().next().unwrap().path, Vec::<String>::new());
    }

    #[test]
    fn what_is_no_template_is_told() {
        for (text, said) in [
            ("{", "a { without its }"),
            ("}", "a } without its {"),
            ("{}", "has {}; a part of an event is"),
            ("{body..x}", "has {body..x}"),
            ("{body.a b}", "has {body.a b}"),
            ("{header}", "has {header}"),
            ("x\n  $ ls {body}", "must not begin a line with $"),
            (" /status", "must not begin with /"),
        ] {
            let told = HookTemplate::parse(text).unwrap_err();
            assert!(told.contains(said), "{text}: {told}");
        }
        let deep = format!("{{body{}}}", ".a".repeat(17));
        assert!(HookTemplate::parse(&deep).unwrap_err().len() < 200);
    }
}
