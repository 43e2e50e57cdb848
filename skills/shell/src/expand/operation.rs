//! The operators of `${…}`.

use std::borrow::Cow;

use super::evaluate::{self, Expander, Expansion, is_name};
use super::lex::Piece;
use super::parameter::{Operation, Parameter, Target, Unless, Where};
use super::quote;
use super::split::{self, Field, Kind, Mark};
use super::value::Value;
use super::{Env, Opt, Pattern, Stop};
use crate::arith;

/// The target of a parameter: with `${!x}`, the target that `x` names.
pub fn pointed<'a>(env: &mut dyn Env, parameter: &'a Parameter) -> Result<Cow<'a, Target>, Stop> {
    if !parameter.indirect {
        return Ok(Cow::Borrowed(&parameter.target));
    }
    let name = match Expander::joining(env).checked(&parameter.target, &parameter.source)? {
        Expansion::One(name) => name,
        Expansion::Many { values, .. } => Some(values.join(" ")),
    };
    let invalid = |name: &str| Stop::failed(format!("{name}: invalid variable name"));
    let Some(name) = name.filter(|name| !name.is_empty()) else {
        let source = parameter.source.trim_start_matches('!');
        return Err(Stop::failed(format!("{source}: invalid indirect expansion")));
    };
    let target = match name.as_str() {
        "@" | "*" => Target::Positions { star: name == "*" },
        "?" | "$" | "!" | "#" | "-" | "0" => Target::Special(name.chars().next().unwrap_or('?')),
        digits if digits.bytes().all(|byte| byte.is_ascii_digit()) => {
            Target::Position(digits.parse().unwrap_or(usize::MAX))
        }
        plain if is_name(plain) => Target::Name(plain.to_owned()),
        other => {
            let (name, index) =
                other.strip_suffix(']').and_then(|text| text.split_once('[')).ok_or_else(|| invalid(other))?;
            if !is_name(name) || index.is_empty() {
                return Err(invalid(other));
            }
            match index {
                "@" | "*" => Target::Elements { name: name.into(), star: index == "*" },
                _ => Target::Element { name: name.into(), index: index.into() },
            }
        }
    };
    Ok(Cow::Owned(target))
}

/// How messages call a parameter.
pub fn label(target: &Target, source: &str) -> String {
    match target {
        Target::Name(name) => name.clone(),
        Target::Element { name, index } => format!("{name}[{index}]"),
        Target::Elements { name, star } => format!("{name}[{}]", if *star { '*' } else { '@' }),
        Target::Position(number) if source.len() > 1 => number.to_string(),
        Target::Position(number) => format!("${number}"),
        Target::Positions { star } => String::from(if *star { "*" } else { "@" }),
        Target::Special(name) => format!("${name}"),
    }
}

/// The replacement of a parameter.
pub enum Use {
    Value,
    Word,
    Text(String),
}

pub fn unless(
    env: &mut dyn Env,
    target: &Target,
    what: Unless,
    empty: bool,
    missing: bool,
    word: &[Piece],
    source: &str,
) -> Result<Use, Stop> {
    match (what, missing) {
        (Unless::Default, true) | (Unless::Instead, false) => Ok(Use::Word),
        (Unless::Default | Unless::Assign | Unless::Fail, false) => Ok(Use::Value),
        (Unless::Instead, true) => Ok(Use::Text(String::new())),
        (Unless::Assign, true) => {
            let value = evaluate::text(env, word, Kind::Literal)?;
            match target {
                Target::Name(name) => env.set(name, value.clone())?,
                Target::Element { name, index } => arith::set_element(env, name, index, value.clone())?,
                other => {
                    let name = label(other, "$");
                    return Err(Stop::failed(format!("${}: cannot assign in this way", name.trim_start_matches('$'))));
                }
            }
            Ok(Use::Text(value))
        }
        (Unless::Fail, true) => {
            let message = evaluate::text(env, word, Kind::Literal)?;
            let message = match (message.as_str(), empty) {
                ("", true) => "parameter null or not set",
                ("", false) => "parameter not set",
                (message, _) => message,
            };
            Err(Stop::unset(format!("{}: {message}", label(target, source).trim_start_matches('$'))))
        }
    }
}

/// The value that the operator makes.
pub fn apply(expander: &mut Expander, target: &Target, parameter: &Parameter) -> Result<Expansion, Stop> {
    match &parameter.operation {
        Operation::Length => length(expander, target, &parameter.source),
        Operation::Keys { star } => {
            let values = match target {
                Target::Name(name) => expander.env.get(name).map_or_else(Vec::new, |value| value.keys()),
                _ => Vec::new(),
            };
            Ok(Expansion::Many { values, star: *star })
        }
        Operation::Names { star } => {
            let values = match target {
                Target::Name(prefix) => expander.env.names(prefix),
                _ => Vec::new(),
            };
            Ok(Expansion::Many { values, star: *star })
        }
        Operation::Slice { offset, length } => slice(expander, target, &parameter.source, offset, length.as_deref()),
        Operation::Value | Operation::Unless { .. } => expander.checked(target, &parameter.source),
        Operation::Strip { suffix, longest, pattern } => {
            let found = expander.checked(target, &parameter.source)?;
            let pattern = evaluate::pattern(expander.env, pattern, false)?;
            Ok(each(found, |text| strip(&pattern, &text, *suffix, *longest)))
        }
        Operation::Replace { r#where, pattern, with } => {
            let found = expander.checked(target, &parameter.source)?;
            let fold = expander.env.option(Opt::Nocasematch);
            let pattern = evaluate::pattern(expander.env, pattern, fold)?;
            let ampersand = expander.env.option(Opt::PatternReplacement);
            let with = Replacement::new(&evaluate::field(expander.env, with, Kind::Literal)?, ampersand);
            Ok(each(found, |text| replace(&pattern, &text, *r#where, &with)))
        }
        Operation::Case { upper, all, pattern } => {
            let found = expander.checked(target, &parameter.source)?;
            let pattern = match pattern.is_empty() {
                true => None,
                false => Some(evaluate::pattern(expander.env, pattern, false)?),
            };
            Ok(each(found, |text| change_case(&text, *upper, *all, pattern.as_ref())))
        }
        Operation::Transform(letter) => transform(expander, target, &parameter.source, *letter),
    }
}

fn each(found: Expansion, change: impl Fn(String) -> String) -> Expansion {
    match found {
        Expansion::One(value) => Expansion::One(value.map(change)),
        Expansion::Many { values, star } => Expansion::Many { values: values.into_iter().map(change).collect(), star },
    }
}

fn length(expander: &mut Expander, target: &Target, source: &str) -> Result<Expansion, Stop> {
    let length = match expander.checked(target, source.trim_start_matches('#'))? {
        Expansion::One(value) => value.map_or(0, |value| value.chars().count()),
        Expansion::Many { values, .. } => values.len(),
    };
    Ok(Expansion::One(Some(length.to_string())))
}

fn strip(pattern: &Pattern, text: &str, suffix: bool, longest: bool) -> String {
    let chars: Vec<char> = text.chars().collect();
    if suffix {
        let from = pattern.suffix(&chars, longest).unwrap_or(chars.len());
        return chars[..from].iter().collect();
    }
    chars[pattern.prefix(&chars, longest).unwrap_or(0)..].iter().collect()
}

fn replace(pattern: &Pattern, text: &str, r#where: Where, with: &Replacement) -> String {
    let chars: Vec<char> = text.chars().collect();
    let mut result = String::with_capacity(text.len());
    let mut at = 0;
    match r#where {
        Where::Start => {
            if let Some(end) = pattern.prefix(&chars, true) {
                with.write(&chars[..end], &mut result);
                at = end;
            }
        }
        Where::End => {
            if let Some(start) = pattern.suffix(&chars, true) {
                result.extend(&chars[..start]);
                with.write(&chars[start..], &mut result);
                at = chars.len();
            }
        }
        Where::First | Where::All => {
            while at < chars.len() && !pattern.is_empty() {
                match pattern.prefix(&chars[at..], true).filter(|&length| length > 0) {
                    Some(length) => {
                        with.write(&chars[at..at + length], &mut result);
                        at += length;
                        if r#where == Where::First {
                            break;
                        }
                    }
                    None => {
                        result.push(chars[at]);
                        at += 1;
                    }
                }
            }
        }
    }
    result.extend(&chars[at..]);
    result
}

/// The replacement of a match; an `&` that is not quoted is the match itself.
struct Replacement(Vec<Mark>);

impl Replacement {
    fn new(field: &Field, ampersand: bool) -> Self {
        let mut marks = split::marks(field);
        if !ampersand {
            marks.iter_mut().for_each(|mark| mark.1 = true);
        }
        Self(marks)
    }

    fn write(&self, matched: &[char], result: &mut String) {
        for &(c, quoted) in &self.0 {
            if c == '&' && !quoted { result.extend(matched) } else { result.push(c) }
        }
    }
}

fn change_case(text: &str, upper: bool, all: bool, pattern: Option<&Pattern>) -> String {
    let mut changed = String::with_capacity(text.len());
    for (index, c) in text.chars().enumerate() {
        if (all || index == 0) && pattern.is_none_or(|pattern| pattern.matches(&[c])) {
            if upper { changed.extend(c.to_uppercase()) } else { changed.extend(c.to_lowercase()) }
        } else {
            changed.push(c);
        }
    }
    changed
}

fn slice(
    expander: &mut Expander,
    target: &Target,
    source: &str,
    offset: &[Piece],
    length: Option<&[Piece]>,
) -> Result<Expansion, Stop> {
    let found = expander.checked(target, source)?;
    let number = |env: &mut dyn Env, pieces: &[Piece]| {
        let source = evaluate::text(env, pieces, Kind::Quoted)?;
        arith::evaluate(env, &source)
    };
    let offset = number(expander.env, offset)?;
    let length = length.map(|length| number(expander.env, length)).transpose()?;
    match found {
        Expansion::One(value) => {
            let chars: Vec<char> = value.unwrap_or_default().chars().collect();
            let (start, end) = range(offset, length, chars.len(), true)?;
            Ok(Expansion::One(Some(chars[start..end].iter().collect())))
        }
        Expansion::Many { mut values, star } => {
            if let Target::Positions { .. } = target {
                values.insert(0, expander.env.special('0').unwrap_or_default());
                // `${@:-1}` counts from the end of the parameters, and 0 is the shell.
                let (start, end) = range(offset, length, values.len(), false)?;
                return Ok(Expansion::Many { values: values[start..end].to_vec(), star });
            }
            // The offset into an array is an index, and there may be gaps before it.
            let start = match (target, offset) {
                (Target::Elements { name, .. }, 1..) => match expander.env.get(name).as_deref() {
                    Some(Value::Indexed(elements)) => elements.range(..offset as u64).count() as i64,
                    _ => offset,
                },
                _ => offset,
            };
            let (start, end) = range(start, length, values.len(), false)?;
            Ok(Expansion::Many { values: values[start..end].to_vec(), star })
        }
    }
}

/// `negative`: a length may be negative and then counts from the end.
fn range(offset: i64, length: Option<i64>, count: usize, negative: bool) -> Result<(usize, usize), Stop> {
    let count = count as i64;
    let start = if offset < 0 { count.saturating_add(offset) } else { offset };
    if start < 0 || start > count {
        return Ok((0, 0));
    }
    let end = match length {
        None => count,
        Some(length) if length >= 0 => start.saturating_add(length).min(count),
        Some(length) if negative && count.saturating_add(length) >= start => count + length,
        Some(length) => return Err(Stop::failed(format!("{length}: substring expression < 0"))),
    };
    Ok((start as usize, end as usize))
}

fn transform(expander: &mut Expander, target: &Target, source: &str, letter: char) -> Result<Expansion, Stop> {
    let name = match target {
        Target::Name(name) | Target::Elements { name, .. } | Target::Element { name, .. } => Some(name.as_str()),
        _ => None,
    };
    if letter == 'a' {
        let attributes = name.map_or_else(String::new, |name| expander.env.attributes(name));
        let found = expander.found(target)?;
        let declared = name.is_some_and(|name| expander.env.get(name).is_some()) || !attributes.is_empty();
        return match found {
            Expansion::Many { values, star } => Ok(Expansion::Many { values: vec![attributes; values.len()], star }),
            Expansion::One(None) if !declared => {
                expander.checked(target, source)?;
                Ok(Expansion::One(None))
            }
            Expansion::One(_) => Ok(Expansion::One(Some(attributes))),
        };
    }
    if letter == 'A' {
        return Ok(Expansion::One(declaration(expander, target)?));
    }
    if let ('K' | 'k', Target::Elements { name, star }) = (letter, target) {
        let value = expander.env.get(name).map(Cow::into_owned);
        let pairs = value.map_or_else(Vec::new, |value| value.keys().into_iter().zip(value.elements()).collect());
        let words = |(key, value): (String, String)| match letter {
            'K' => [key, format!("\"{}\"", protected(&value))],
            _ => [key, value],
        };
        let values: Vec<String> = pairs.into_iter().flat_map(words).collect();
        let values = if letter == 'K' { vec![values.join(" ")] } else { values };
        return Ok(Expansion::Many { values, star: *star });
    }
    let found = expander.checked(target, source)?;
    Ok(each(found, |text| match letter {
        'Q' | 'K' | 'k' => quote::quoted(&text),
        'E' => quote::ansi(&text),
        'U' => text.to_uppercase(),
        'L' => text.to_lowercase(),
        'u' => change_case(&text, true, false, None),
        // Of the prompt's escapes only those of `E` mean something here.
        _ => quote::ansi(&text),
    }))
}

/// `@A`: the assignment that makes the variable again.
fn declaration(expander: &mut Expander, target: &Target) -> Result<Option<String>, Stop> {
    let (Target::Name(name) | Target::Elements { name, .. }) = target else {
        return Ok(None);
    };
    let attributes = expander.env.attributes(name);
    let value = expander.env.get(name).map(Cow::into_owned);
    Ok(match value {
        None if attributes.is_empty() => None,
        None => Some(format!("declare -{attributes} {name}")),
        Some(Value::Indexed(elements)) => Some(listed(name, &attributes, elements.iter())),
        Some(value @ Value::Keyed(_)) => {
            let pairs: Vec<_> = value.keys().into_iter().zip(value.elements()).collect();
            Some(listed(name, &attributes, pairs.iter().map(|(key, value)| (key, value))))
        }
        Some(Value::Scalar(text)) if attributes.is_empty() => Some(format!("{name}={}", quote::quoted(&text))),
        Some(Value::Scalar(text)) => Some(format!("declare -{attributes} {name}={}", quote::quoted(&text))),
    })
}

fn listed<'a>(name: &str, attributes: &str, elements: impl Iterator<Item = (impl ToString, &'a String)>) -> String {
    let elements: Vec<String> =
        elements.map(|(key, value)| format!("[{}]=\"{}\"", key.to_string(), protected(value))).collect();
    format!("declare -{attributes} {name}=({})", elements.join(" "))
}

/// For double quotes.
fn protected(value: &str) -> String {
    let mut protected = String::new();
    for c in value.chars() {
        protected.extend(matches!(c, '"' | '$' | '`' | '\\').then_some('\\'));
        protected.push(c);
    }
    protected
}
