//! Choices: values that are named alone ("as bars", "describe") or with their argument's name (`20 bins`).

use std::collections::BTreeSet;

use serde_json::json;

use crate::column::{ColumnMatch, Reach};
use crate::fill::Fill;
use crate::keyword::is_keyword;
use crate::schema::{Use, choices};
use crate::template::Item;
use crate::word::{WordShape, key, number};

/// Fills named values from the unused words.
pub(crate) fn fill(fill: &mut Fill<'_>) {
    named(fill);
    values(fill);
    switches(fill);
}

/// Reads `width 800`, `20 bins`, `titled "Rain"`: an argument's name beside a value of its type.
fn named(fill: &mut Fill<'_>) {
    for arg in fill.args {
        if fill.out.contains_key(arg.name) {
            continue;
        }
        let name = key(&arg.name.to_lowercase());
        let numeric = matches!(arg.used, Use::Integer | Use::Number | Use::Limit);
        for i in 0..fill.words.len() {
            let said = fill.words[i].key == name
                || (arg.used == Use::Title
                    && matches!(fill.words[i].norm.as_str(), "titled" | "called" | "entitled" | "named"));
            if fill.used[i] || !said {
                continue;
            }
            let fits = |j: usize| {
                fill.words.get(j).is_some_and(|w| {
                    !fill.used[j] && w.shape == if numeric { WordShape::Number } else { WordShape::Quoted }
                })
            };
            let textual = matches!(arg.used, Use::Text | Use::Title);
            let link =
                |j: usize| fill.words.get(j).is_some_and(|w| matches!(w.norm.as_str(), "of" | "is" | "to" | "="));
            let at = [i + 1, i + 2]
                .into_iter()
                .find(|j| (numeric || textual) && fits(*j) && (*j == i + 1 || link(i + 1)))
                .or(i.checked_sub(1).filter(|j| numeric && fits(*j)));
            if let Some(j) = at {
                let text = number(&fill.words[j].raw)
                    .filter(|_| numeric)
                    .map_or_else(|| fill.words[j].raw.clone(), |n| n.to_string());
                fill.parsed(arg, &text);
                for at in [i, j] {
                    fill.used[at] = true;
                    fill.aside[at] = true;
                }
                break;
            }
        }
    }
}

/// Reads words of an `enum`: "as bars", "a line chart". An unknown word in such a place ("a pie chart") is reported.
fn values(fill: &mut Fill<'_>) {
    for (name, after) in places(fill) {
        for (i, pair) in fill.words.windows(2).enumerate() {
            let [word, next] = pair else { continue };
            let alien = next.key == after
                && word.shape == WordShape::Plain
                && word.is_content()
                && !fill.lexicon.contains(&word.key)
                && !is_keyword(word)
                && !fill.source.is_some_and(|s| s.own_words().contains(&word.key))
                && fill.columns().is_some_and(|all| all.resolve(&word.raw, Reach::Spelling) == ColumnMatch::Nothing);
            if alien && let Some(arg) = fill.args.iter().find(|a| a.name == name) {
                let allowed = choices(arg.schema).collect::<Vec<_>>().join(", ");
                fill.problems.push(format!("{}: `{}` is none of {allowed}", arg.name, word.raw));
                fill.used[i] = true;
            }
        }
    }
    for arg in fill.args.iter().filter(|a| a.used == Use::Choice) {
        for i in 0..fill.words.len() {
            let word = &fill.words[i];
            let free = !fill.out.contains_key(arg.name) && word.shape == WordShape::Plain && !fill.is_column(&word.raw);
            if free && let Some(choice) = choices(arg.schema).find(|c| key(&c.to_lowercase()) == word.key) {
                fill.set(arg, json!(choice));
                // "dark theme", "kind bar": the argument's own name belongs to its value.
                let name = key(&arg.name.to_lowercase());
                for at in [i.wrapping_sub(1), i, i + 1] {
                    if at == i || fill.words.get(at).is_some_and(|w| w.key == name) {
                        fill.used[at] = true;
                        fill.aside[at] = true;
                    }
                }
            }
        }
    }
}

/// Returns the places of an `enum` in the examples: its name, and the word after it ("{kind} chart").
fn places(fill: &Fill<'_>) -> BTreeSet<(String, String)> {
    let pairs = fill.skill.templates.iter().flat_map(|items| items.windows(2));
    pairs
        .filter_map(|pair| match pair {
            [Item::Slot(name), Item::Literal { key, content: true }] => Some((name.clone(), key.clone())),
            _ => None,
        })
        .filter(|(name, _)| fill.args.iter().any(|a| a.name == name && a.used == Use::Choice))
        .collect()
}

/// Sets a boolean whose name is in the clause.
fn switches(fill: &mut Fill<'_>) {
    for arg in fill.args.iter().filter(|a| a.used == Use::Switch) {
        if !fill.out.contains_key(arg.name)
            && let Some(i) = fill.words.iter().position(|w| w.key == key(&arg.name.to_lowercase()))
        {
            fill.set(arg, json!(true));
            fill.used[i] = true;
        }
    }
}
