//! Reads `SKILL.md`: YAML between two lines of dashes, then Markdown. The format's guide for clients asks for leniency: only a
//! missing part that is necessary is an error, everything else is a warning.

use super::FolderError;
use saphyr_parser::{Event, Parser};
use serde_json::{Map, Value};

/// Most characters of a description, and of `compatibility`: the specification's.
const MAX_DESCRIPTION: usize = 1_024;
const MAX_COMPATIBILITY: usize = 500;

/// Most bytes of the YAML, levels and values in it; every field of the specification together has less.
const MAX_BYTES: usize = 32 << 10;
const MAX_DEPTH: usize = 8;
const MAX_VALUES: usize = 1_000;

/// Names in `metadata` and `allowed-tools` that are kept, and characters of each text there.
const MAX_LISTED: usize = 100;
const MAX_WORD: usize = 200;

/// The fields at the beginning of a `SKILL.md`.
#[derive(Debug, Clone, Default, PartialEq)]
pub(in crate::skill) struct Frontmatter {
    /// The name as written.
    pub name: Option<String>,
    pub description: String,
    pub license: Option<String>,
    pub compatibility: Option<String>,
    pub metadata: Vec<(String, String)>,
    /// `None` if it says nothing about tools.
    pub allowed_tools: Option<Vec<String>>,
    /// Whether only a person may bring it into use, by its name.
    pub by_name_only: bool,
    /// Differences from the specification, a sentence each.
    pub warnings: Vec<String>,
}

/// The two parts of a `SKILL.md`: its YAML and its body.
pub(super) fn split(text: &str) -> Option<(&str, &str)> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text).trim_start();
    let (first, rest) = text.split_once('\n')?;
    if first.trim_end() != "---" {
        return None;
    }
    let mut at = 0;
    for line in rest.split_inclusive('\n') {
        if line.trim_end() == "---" {
            return Some((&rest[..at], rest[at + line.len()..].trim()));
        }
        at += line.len();
    }
    None
}

/// Reads the YAML.
pub(super) fn read(yaml: &str) -> Result<Frontmatter, FolderError> {
    let wrong = |why: String| FolderError::Frontmatter { why };
    if yaml.len() > MAX_BYTES {
        return Err(wrong(format!("its YAML has {} bytes, at most {MAX_BYTES} are read", yaml.len())));
    }
    let mut out = Frontmatter::default();
    let fields = match mapping(yaml) {
        Ok(fields) => fields,
        Err(why) => {
            // Other programs accept `description: Use it when: …`, although it is not valid YAML.
            let (loose, keys) = quoted(yaml);
            let fields = mapping(&loose).map_err(|_| wrong(why))?;
            let read = |key: &String| {
                format!("the value of {key} is not in quotes, which YAML needs here; it was read as a text")
            };
            out.warnings.extend(keys.iter().map(read));
            fields
        }
    };
    for (key, value) in fields {
        match (key.as_str(), value) {
            ("name", Value::String(name)) => out.name = Some(name),
            ("description", Value::String(text)) => {
                out.description = text.split_whitespace().collect::<Vec<_>>().join(" ");
            }
            ("license", Value::String(text)) => out.license = Some(cut(text.trim(), MAX_WORD)),
            ("compatibility", Value::String(text)) => {
                if text.chars().count() > MAX_COMPATIBILITY {
                    out.warnings.push(format!("compatibility has more than {MAX_COMPATIBILITY} characters and is cut"));
                }
                out.compatibility = Some(cut(text.trim(), MAX_COMPATIBILITY));
            }
            ("metadata", Value::Object(map)) => out.metadata = metadata(&map, &mut out.warnings),
            ("allowed-tools", value @ (Value::String(_) | Value::Array(_))) => {
                out.allowed_tools = Some(tools(&value, &mut out.warnings));
            }
            ("disable-model-invocation", Value::String(word)) => out.by_name_only = word == "true",
            ("name" | "description" | "license" | "compatibility" | "metadata" | "allowed-tools", _) => {
                out.warnings.push(format!("{key} is not of the type that the specification says, and is ignored"));
            }
            _ => out.warnings.push(format!("{} is not a field of the specification, and is ignored", cut(&key, 40))),
        }
    }
    if out.description.is_empty() {
        return Err(wrong("it has no description, by which models know when to use it".into()));
    }
    if out.description.chars().count() > MAX_DESCRIPTION {
        out.warnings.push(format!("the description has more than {MAX_DESCRIPTION} characters and is cut"));
        out.description = cut(&out.description, MAX_DESCRIPTION);
    }
    Ok(out)
}

fn metadata(map: &Map<String, Value>, warnings: &mut Vec<String>) -> Vec<(String, String)> {
    if map.len() > MAX_LISTED {
        warnings.push(format!("metadata has more than {MAX_LISTED} entries, of which the first are kept"));
    }
    let text = |value: &Value| match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    let kept = map.iter().take(MAX_LISTED);
    kept.map(|(key, value)| (cut(key, MAX_WORD), cut(&text(value), MAX_WORD))).collect()
}

/// Parses `Bash(git:*) Read`, separated by white space or commas, or a list.
fn tools(value: &Value, warnings: &mut Vec<String>) -> Vec<String> {
    let words: Vec<String> = match value {
        Value::Array(items) => items.iter().filter_map(Value::as_str).map(|word| word.trim().to_owned()).collect(),
        other => separated(other.as_str().unwrap_or_default()),
    };
    let mut words: Vec<String> = words.into_iter().filter(|word| !word.is_empty()).collect();
    if words.len() > MAX_LISTED {
        warnings.push(format!("allowed-tools names more than {MAX_LISTED} tools, of which the first are kept"));
        words.truncate(MAX_LISTED);
    }
    words.iter().map(|word| cut(word, MAX_WORD)).collect()
}

/// Splits a text into words. White space in parentheses belongs to a pattern.
fn separated(text: &str) -> Vec<String> {
    let (mut words, mut word, mut depth) = (Vec::new(), String::new(), 0usize);
    for c in text.chars() {
        match c {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth == 0 && (c.is_whitespace() || c == ',') {
            words.push(std::mem::take(&mut word));
        } else {
            word.push(c);
        }
    }
    words.push(word);
    words
}

/// The beginning of a text.
fn cut(text: &str, max: usize) -> String {
    text.chars().take(max).collect()
}

/// Reads a YAML document as a mapping; every scalar becomes a text. Aliases are not followed, so a short document is always a
/// small value.
fn mapping(yaml: &str) -> Result<Map<String, Value>, String> {
    let mut open: Vec<(Value, Option<String>)> = Vec::new();
    let (mut root, mut values) = (None, 0);
    for event in Parser::new_from_str(yaml) {
        let (event, span) = event.map_err(|error| format!("its YAML cannot be read: {error}"))?;
        let line = span.start.line();
        values += 1;
        if values > MAX_VALUES || open.len() > MAX_DEPTH {
            return Err(format!("its YAML has more than {MAX_VALUES} values or {MAX_DEPTH} levels"));
        }
        let done = match event {
            Event::Alias(_) => return Err(format!("its YAML has an alias in line {line}; write the value out")),
            Event::Scalar(text, ..) => Value::String(text.into_owned()),
            Event::SequenceStart(..) => {
                open.push((Value::Array(Vec::new()), None));
                continue;
            }
            Event::MappingStart(..) => {
                open.push((Value::Object(Map::new()), None));
                continue;
            }
            Event::SequenceEnd | Event::MappingEnd => match open.pop() {
                Some((value, _)) => value,
                None => return Err("its YAML ends what it did not begin".into()),
            },
            _ => continue,
        };
        match open.last_mut() {
            None if root.is_none() => root = Some(done),
            None => return Err("its YAML has a second document".into()),
            Some((Value::Array(items), _)) => items.push(done),
            Some((Value::Object(map), key)) => match (key.take(), done) {
                (Some(key), value) => drop(map.insert(key, value)),
                (None, Value::String(name)) => *key = Some(name),
                (None, _) => return Err(format!("its YAML has a key in line {line} that is no text")),
            },
            Some(_) => unreachable!("only lists and mappings are opened"),
        }
    }
    match root {
        Some(Value::Object(map)) => Ok(map),
        _ => Err("its YAML is no mapping of names to values".into()),
    }
}

/// Puts quotes around each value of the outermost level that is not valid YAML, and returns their keys. Lists, mappings and
/// aliases stay as they are.
fn quoted(yaml: &str) -> (String, Vec<String>) {
    let (mut out, mut keys) = (String::new(), Vec::new());
    let mut fields: Vec<(&str, Vec<&str>)> = Vec::new();
    for line in yaml.lines() {
        let key = line.split_once(':').filter(|(key, rest)| {
            let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
            !key.is_empty() && key.chars().all(plain) && (rest.is_empty() || rest.starts_with([' ', '\t', '\r']))
        });
        match (key, fields.last_mut()) {
            (Some((key, rest)), _) => fields.push((key, vec![rest])),
            (None, Some((_, lines))) => lines.push(line),
            (None, None) => out.extend([line, "\n"]),
        }
    }
    for (key, lines) in fields {
        let as_it_is = format!("{key}:{}\n", lines.join("\n"));
        let words: Vec<&str> = lines.iter().map(|line| line.trim()).filter(|line| !line.is_empty()).collect();
        let text = words.join(" ");
        let is_alias = text.strip_prefix('*').is_some_and(|name| !name.contains([' ', '*']));
        if is_alias || text.starts_with(['[', '{']) || mapping(&as_it_is).is_ok() {
            out += &as_it_is;
        } else {
            out += &format!("{key}: {}\n", Value::String(text));
            keys.push(key.to_owned());
        }
    }
    (out, keys)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read_all(text: &str) -> Result<Frontmatter, String> {
        let (yaml, _) = split(text).ok_or("no frontmatter")?;
        read(yaml).map_err(|error| error.to_string())
    }

    #[test]
    fn the_fields_of_the_specification_are_read() {
        let text = "---\nname: pdf-forms\ndescription: >\n  Fills PDF forms.\n  Use it for forms.\nlicense: MIT\n\
                    compatibility: Needs qpdf\nmetadata:\n  author: ann\n  version: \"1.0\"\n\
                    allowed-tools: Bash(git:*, diff --stat) Read, Write\n---\n\n# Body\n";
        let read = read_all(text).unwrap();
        assert_eq!(read.name.as_deref(), Some("pdf-forms"));
        assert_eq!(read.description, "Fills PDF forms. Use it for forms.");
        assert_eq!((read.license.as_deref(), read.compatibility.as_deref()), (Some("MIT"), Some("Needs qpdf")));
        let metadata: Vec<_> = read.metadata.iter().map(|(key, value)| (key.as_str(), value.as_str())).collect();
        assert_eq!(metadata, [("author", "ann"), ("version", "1.0")]);
        assert_eq!(read.allowed_tools.unwrap(), ["Bash(git:*, diff --stat)", "Read", "Write"]);
        assert!(read.warnings.is_empty(), "{:?}", read.warnings);
        assert_eq!(split(text).unwrap().1, "# Body");
        let list = read_all("---\ndescription: d\nallowed-tools:\n- Bash(jq:*)\n- Read\n---\n").unwrap();
        assert_eq!(list.allowed_tools.unwrap(), ["Bash(jq:*)", "Read"]);
    }

    #[test]
    fn what_others_accept_is_a_warning() {
        for (text, warned) in [
            ("---\nname: x\ndescription: Use when: asked \"so\"\n---\n", "not in quotes"),
            (
                "---\nname: x\ndescription:\n  Use for plans.\n  Pairs with the tech skill: grill first,\n  then go.\n---\n",
                "not in quotes",
            ),
            ("---\ndescription: *important* use this\n---\n", "not in quotes"),
            ("---\ndescription: `kiso` runs it\n---\n", "not in quotes"),
            ("---\ndescription: @ada asked\n---\n", "not in quotes"),
            ("---\ndescription: \"Quoted\" at first: then not\n---\n", "not in quotes"),
            ("---\ndescription: 50% of it: fine\nname: x\nmetadata:\n  a: b\n---\n", "not in quotes"),
            ("---\ndescription: Use when: a\n  # no comment, a line: two\n---\n", "not in quotes"),
            ("---\ndescription: d\nuser-invocable: true\n---\n", "user-invocable is not a field"),
            ("---\ndescription: d\nlicense: [a]\n---\n", "license is not of the type"),
            (&format!("---\ndescription: {}\n---\n", "x ".repeat(800)), "more than 1024 characters"),
        ] {
            let read = read_all(text).unwrap_or_else(|error| panic!("{text}: {error}"));
            assert!(read.warnings.iter().any(|warning| warning.contains(warned)), "{text}: {:?}", read.warnings);
            assert!(read.description.chars().count() <= 1_024);
        }
        let windows = read_all("\u{feff}---\r\nname: x\r\ndescription: d\r\n---\r\nbody").unwrap();
        assert_eq!(windows.description, "d");
        assert_eq!(read_all("--- \nname: x\ndescription: d\n---  \nText").unwrap().description, "d");
        let several = read_all(
            "---\nname: x\ndescription:\n  Use for plans.\n  Pairs with a: b,\n  then go.\nlicense: MIT\n---\n",
        )
        .unwrap();
        assert_eq!(several.description, "Use for plans. Pairs with a: b, then go.");
        assert_eq!((several.name.as_deref(), several.license.as_deref()), (Some("x"), Some("MIT")));
        assert_eq!(
            read_all("---\ndescription: *important* use this\n---\n").unwrap().description,
            "*important* use this"
        );
        assert!(read_all("---\ndescription: d\ndisable-model-invocation: true\n---\n").unwrap().by_name_only);
    }

    #[test]
    fn what_cannot_be_used_is_an_error() {
        let deep = format!("---\ndescription: d\nmetadata: {}{}\n---\n", "[".repeat(20), "]".repeat(20));
        for (text, why) in [
            ("# no dashes", "no frontmatter"),
            ("---\nname: x\n", "no frontmatter"),
            ("---\nname: x\n---\n", "it has no description"),
            ("---\n- a\n---\n", "no mapping"),
            ("---\na: &x [1]\ndescription: *x\n---\n", "an alias"),
            ("---\ndescription: [\n---\n", "cannot be read"),
            (&deep, "levels"),
            (&format!("---\ndescription: {}\n---\n", "x".repeat(40_000)), "40014 bytes"),
        ] {
            let error = read_all(text).unwrap_err();
            assert!(error.contains(why), "{text:.60}: {error}");
        }
    }
}
