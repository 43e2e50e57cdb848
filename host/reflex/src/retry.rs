//! Plans after a failure: one repair if the failure itself suggests it, otherwise an honest reply.

use serde_json::Value;

use kiso_plan::plan::{Plan, Task, TaskKind};
use kiso_plan::prompt::{FailureNote, Pieces};

use crate::closing::{NOTE, REPORT, close, msg, shortened};
use crate::expect::is_name;

/// Maximum bytes of a name in a suggested replacement.
const MAX_NAME: usize = 256;

/// Returns the plan after a failure.
pub(crate) fn plan(pieces: &Pieces, message: &str, failure: &FailureNote) -> Plan {
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
    // The reply shows the failed task with its own reason; the review's finding is nowhere else.
    let found = match failure.report.trouble() {
        Some(_) => String::new(),
        None => format!("{}. ", why.trim_end_matches('.')),
    };
    // The person chose this command line: another model would have run the same one.
    let is_typed = message.trim_start().starts_with('$');
    let detail = match (is_typed, found.as_str()) {
        (true, "") => REPORT.to_owned(),
        (true, found) => format!("{REPORT}\n{NOTE}{}", found.trim_end()),
        (false, found) => format!(
            "{REPORT}\n{NOTE}{found}I stopped there. I am reflex, the rule-based model that is built into kiso, and know no other way to do this; a language model may (`kiso config preset` lists how to connect one)."
        ),
    };
    Plan { goal: shortened(message), tasks: vec![msg(detail)], blocked: Some(why) }
}

/// Parses an error such as "no column `x` …; near: `y`" into the wrong name and the first similar one.
fn named_repair(text: &str) -> Option<(String, String)> {
    let (before, after) = ["near: ", "did you mean "].iter().find_map(|mark| text.split_once(mark))?;
    let quoted = |s: &str| {
        let start = s.find('`')? + 1;
        let len = s[start..].find('`')?;
        Some(s[start..start + len].to_owned())
    };
    // Skills write "orders.csv has no column date; did you mean Order Date?" without quotes.
    let bare = |s: &str| {
        let marks = ["no column ", "unknown function ", "unknown part "];
        let name = marks.iter().find_map(|mark| s.rsplit_once(mark))?.1.split(';').next()?.trim();
        (!name.is_empty() && !name.contains('`')).then(|| name.to_owned())
    };
    let broken = bare(before).or_else(|| quoted(before))?;
    let near = match after.trim_start().strip_prefix('`') {
        Some(_) => quoted(after)?,
        None if after.contains('?') => after.split(" or ").next()?.split('?').next()?.trim().to_owned(),
        None => after.split(|c: char| c.is_whitespace() || ",;?)".contains(c)).next()?.to_owned(),
    };
    // Both must be names: an empty one would be found everywhere, endlessly.
    let is_name = |text: &str| !text.is_empty() && text.len() <= MAX_NAME;
    (is_name(&broken) && is_name(&near) && near != broken).then_some((broken, near))
}

/// Returns the task with the word `broken` replaced in its args.
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
    out.expect = task.expect.as_ref().map(|expect| renamed_expectation(expect, broken, near));
    out
}

/// Expectations quote a name with spaces in backticks.
fn renamed_expectation(expect: &str, broken: &str, near: &str) -> String {
    if is_name(near) || expect.contains('`') {
        return replace_word(expect, broken, near);
    }
    let token = |token: &str| {
        let name = token.trim_end_matches(',');
        let new = replace_word(name, broken, near);
        if new == name { token.to_owned() } else { format!("`{new}`{}", &token[name.len()..]) }
    };
    expect.split(' ').map(token).collect::<Vec<_>>().join(" ")
}

/// Replaces `rain` in `mean(rain)` and in `mean_rain`, but not in `train`.
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
        for (message, broken, near) in [
            (
                "orders.csv has no column date; did you mean Order Date? Its columns: Order Date, Unit Price",
                "date",
                "Order Date",
            ),
            ("weather.csv has no column tmep; did you mean temp? Its columns: date", "tmep", "temp"),
            ("a.csv has no column max; did you mean Max Temp or Max? Its columns: a", "max", "Max Temp"),
            ("`men(temp)`: unknown function men; did you mean mean? There are mean, sum and p1 to p99", "men", "mean"),
            ("`mnth(date)`: unknown part mnth; did you mean month? There are year, month", "mnth", "month"),
        ] {
            assert_eq!(named_repair(message), pair(broken, near), "{message}");
        }
        // Skills choose their texts: the search for an empty name would never end.
        for message in ["`` is nothing; near: `x`", "`x` is nothing; near: ``"] {
            assert_eq!(named_repair(message), None, "{message}");
        }
        assert_eq!(named_repair(&format!("`a`; near: `{}`", "k".repeat(60_000))), None);
        assert_eq!(named_repair("a.csv has no column x; its columns: a, b"), None);
        assert_eq!(
            renamed_expectation("a table with the columns mean_date and city, at least 1 row", "date", "Order Date"),
            "a table with the columns `mean_Order Date` and city, at least 1 row"
        );
        assert_eq!(named_repair("no column `tempp`; near: temp"), pair("tempp", "temp"));
        assert_eq!(named_repair("there is no file `a.csv`"), None);
        assert_eq!(
            replace_word("mean(rain) as train, mean_rain", "rain", "rain_mm"),
            "mean(rain_mm) as train, mean_rain_mm"
        );
    }
}
