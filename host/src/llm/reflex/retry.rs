//! Plans after a failure: one repair where the failure itself names it, and otherwise the truth.

use serde_json::Value;

use crate::graph::plan::{Plan, Task, TaskKind};
use crate::llm::prompt::{FailureNote, Pieces};

use super::plan::{NOTE, REPORT, close, msg, shortened};

/// The plan that follows a failure.
pub(super) fn plan(pieces: &Pieces, message: &str, failure: &FailureNote) -> Plan {
    let tried_before = pieces.replan_history.as_ref().is_some_and(|history| !history.is_empty());
    let remaining = pieces.remaining.as_deref().unwrap_or_default();
    let texts = [
        failure.report.error.as_ref().map_or("", |e| e.message.as_str()),
        failure.reason.as_str(),
        failure.report.text.as_str(),
    ];
    if !tried_before {
        if let Some((broken, near)) = texts.iter().find_map(|text| named_repair(text)) {
            let repaired = renamed(&failure.report.task, &broken, &near);
            if repaired != failure.report.task {
                let rest = remaining.iter().map(|task| renamed(task, &broken, &near));
                return again(
                    message,
                    repaired,
                    rest,
                    format!("`{broken}` was not found, and `{near}` was taken instead"),
                );
            }
        }
        if failure.report.error.as_ref().is_some_and(|e| e.retryable && !e.policy) {
            let note = "the first attempt failed and was repeated once".to_owned();
            return again(message, failure.report.task.clone(), remaining.iter().cloned(), note);
        }
    }
    gave_up(message, failure)
}

fn again(message: &str, first: Task, rest: impl Iterator<Item = Task>, note: String) -> Plan {
    let tasks = std::iter::once(first).chain(rest.filter(|task| task.kind != TaskKind::Msg)).collect();
    close(message, tasks, &[note])
}

fn gave_up(message: &str, failure: &FailureNote) -> Plan {
    let trouble = failure.report.trouble().unwrap_or_else(|| failure.reason.clone());
    let why = format!(
        "{} failed: {}",
        failure.report.task.label(),
        if failure.reason.is_empty() { &trouble } else { &failure.reason }
    );
    let notes = [
        why.trim_end_matches('.').to_owned(),
        "the plan was given up there, because reflex, the rule-based model that is built into kiso, has no rule for another way".to_owned(),
        "a language model can try another way; set one in config.toml, such as `model = \"provider:model\"`".to_owned(),
    ];
    let mut detail = REPORT.to_owned();
    for note in notes {
        detail.push_str(&format!("\n{NOTE}{note}."));
    }
    Plan { goal: shortened(message), tasks: vec![msg(detail)], blocked: Some(why) }
}

/// What a message offers in the form "no column `x` …; near: `y`": the name that is wrong and the first that is near.
fn named_repair(text: &str) -> Option<(String, String)> {
    let (before, after) = ["near: ", "did you mean "].iter().find_map(|mark| text.split_once(mark))?;
    let quoted = |s: &str| {
        let start = s.find('`')? + 1;
        let len = s[start..].find('`')?;
        Some(s[start..start + len].to_owned())
    };
    let broken = quoted(before)?;
    let near = match after.trim_start().strip_prefix('`') {
        Some(_) => quoted(after)?,
        None => after.split(|c: char| c.is_whitespace() || ",;?)".contains(c)).next()?.to_owned(),
    };
    (!near.is_empty() && near != broken).then_some((broken, near))
}

/// The task with `broken` replaced in its args, as a whole word.
fn renamed(task: &Task, broken: &str, near: &str) -> Task {
    fn walk(value: &Value, broken: &str, near: &str) -> Value {
        match value {
            Value::String(text) => Value::String(replace_word(text, broken, near)),
            Value::Array(items) => items.iter().map(|v| walk(v, broken, near)).collect(),
            Value::Object(map) => map.iter().map(|(k, v)| (k.clone(), walk(v, broken, near))).collect(),
            other => other.clone(),
        }
    }
    let mut out = task.clone();
    out.args = task.args.as_ref().map(|args| walk(args, broken, near));
    out.expect = task.expect.as_ref().map(|expect| replace_word(expect, broken, near));
    out
}

/// `rain` in `mean(rain)` and in `mean_rain`, but not in `train`.
fn replace_word(text: &str, broken: &str, near: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some(at) = rest.find(broken) {
        let end = at + broken.len();
        let free = |c: Option<char>| c.is_none_or(|c| !c.is_alphanumeric());
        out.push_str(&rest[..at]);
        let whole =
            free(rest[..at].chars().next_back().or(out.chars().next_back())) && free(rest[end..].chars().next());
        out.push_str(if whole { near } else { broken });
        rest = &rest[end..];
    }
    out + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_repairs() {
        let pair = |a: &str, b: &str| Some((a.to_owned(), b.to_owned()));
        assert_eq!(
            named_repair("no column `tempp` in w.csv; near: `temp`, `temp_c`; columns: a"),
            pair("tempp", "temp")
        );
        assert_eq!(named_repair("no column `tempp`; near: temp"), pair("tempp", "temp"));
        assert_eq!(named_repair("there is no file `a.csv`"), None);
        assert_eq!(
            replace_word("mean(rain) as train, mean_rain", "rain", "rain_mm"),
            "mean(rain_mm) as train, mean_rain_mm"
        );
    }
}
