//! Descriptions of a run's steps for a person, in `kiso run` and in the chat.

use super::{Paint, clip, duration, printable, printable_line};
use crate::cli::Exit;
use kiso_agent::tool::EXEC;
use kiso_graph::reflection;
use kiso_graph::step::{Event, STDERR, StepResult, ToolResult};
use kiso_plan::call::ToolCall;
use kiso_plan::plan::{Task, TaskKind};
use kiso_plan::report::{FileNote, TaskReport, counted, size};
use kiso_plan::verdict::{Status, Verdict};
use kiso_sandbox::skill::Skills;
use serde_json::Value;
use std::path::Path;

/// Columns of a line about a call or a task.
const WIDTH: usize = 120;

/// Columns of one argument among several.
const ARG: usize = 60;

/// Maximum shown lines of a command.
const LINES: usize = 3;

/// Maximum shown lines of a command's output at its end.
const OUTPUT_LINES: usize = 5;

/// Returns the lines about an event; none if the event is shown in another way or does not matter to a person.
pub(crate) fn lines(paint: Paint, event: &Event, skills: &Skills) -> Vec<String> {
    match &event.result {
        StepResult::Admitted { unknown, .. } => {
            unknown.iter().map(|tag| paint.dim(&printable(&tag.to_string()))).collect()
        }
        StepResult::Planned { plan, .. } => plan_lines(paint, &plan.goal, &plan.tasks, skills),
        StepResult::Unplanned { correction, .. } => {
            vec![format!("the plan could not be used: {}", printable_line(&correction.violations.join("; ")))]
        }
        StepResult::Executed { report, .. } => task(paint, report).into_iter().collect(),
        StepResult::Reviewed { verdict, .. } => {
            let reason = verdict.reason.as_deref().map(|r| format!(": {}", printable_line(r))).unwrap_or_default();
            vec![format!("  review {}{reason}", status_of(verdict))]
        }
        StepResult::ModelFailed { message } => vec![paint.red(&printable_line(message))],
        StepResult::Told { text } => vec![printable(text)],
        StepResult::Acted { calls, .. } => {
            calls.iter().flat_map(call_lines).map(|line| paint.dim(&format!("  {line}"))).collect()
        }
        StepResult::Called { results } => results.iter().flat_map(|result| call_end(paint, result)).collect(),
        _ => Vec::new(),
    }
}

/// Describes a running call: the first lines of a command line; for other tools, the name and the arguments.
fn call_lines(call: &ToolCall) -> Vec<String> {
    let args = serde_json::from_str::<Value>(&call.args).unwrap_or(Value::Null);
    if call.name == EXEC
        && let Some(command) = args["command"].as_str()
    {
        let mut lines: Vec<String> = command
            .lines()
            .filter(|line| !line.trim().is_empty())
            .take(LINES + 1)
            .map(|line| clip(&printable_line(line.trim_end()), WIDTH))
            .collect();
        if lines.len() > LINES {
            lines.truncate(LINES);
            if let Some(last) = lines.last_mut().filter(|last| !last.ends_with('…')) {
                last.push_str(" …");
            }
        }
        let begin = |at| if at == 0 { "→ $ " } else { "    " };
        return lines.iter().enumerate().map(|(at, line)| format!("{}{line}", begin(at))).collect();
    }
    let shown = match args.as_object() {
        Some(args) => {
            let mut args: Vec<String> =
                args.iter().map(|(name, value)| format!("{name}={}", of_value(value))).collect();
            // Paths come first, because they say more than the beginning of a text.
            args.sort_by_key(|arg| (!arg.starts_with("path="), arg.len()));
            args.join(" ")
        }
        None => first_line(&call.args),
    };
    vec![clip(&format!("→ {} {shown}", printable_line(&call.name)), WIDTH).trim_end().to_owned()]
}

/// Returns the value of an argument as a part of a line.
fn of_value(value: &Value) -> String {
    let text = match value {
        Value::String(text) => first_line(text),
        other => printable_line(&other.to_string()),
    };
    clip(&text, ARG)
}

/// Returns the first line of a text that is not empty; "…" means that there are more.
fn first_line(text: &str) -> String {
    let mut lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    let first = printable_line(lines.next().unwrap_or_default());
    if lines.next().is_some() { format!("{first} …") } else { first }
}

/// Describes a finished call: its result and duration, the changed files, and the last lines of a command's output.
fn call_end(paint: Paint, result: &ToolResult) -> Vec<String> {
    let trouble = trouble(result);
    let mark = if trouble.is_none() { paint.green("✓") } else { paint.red("✗") };
    let mut line = format!("  {mark} {}  {}", printable_line(&result.name), paint.dim(&duration(result.millis)));
    let changed = result.changed.len() as u64 + result.more_changed;
    if changed > 0 {
        line.push_str(&paint.dim(&format!("  {}", counted(changed, "file changed", "files changed"))));
    }
    if result.outside {
        line.push_str(&paint.dim("  from outside"));
    }
    if let Some(trouble) = trouble {
        line.push_str(&format!("  {}", clip(&printable_line(&trouble), WIDTH)));
    }
    let mut lines = vec![line];
    if result.exit_code.is_some() {
        // The first line is the exit code.
        let output: Vec<&str> =
            result.text.lines().skip(1).filter(|line| !line.trim().is_empty() && *line != STDERR).collect();
        let left_out = output.len().saturating_sub(OUTPUT_LINES);
        if left_out > 0 {
            lines.push(paint.dim(&format!("    … {}", counted(left_out as u64, "line before", "lines before"))));
        }
        let last =
            output[left_out..].iter().map(|line| format!("    {}", clip(&printable_line(line.trim_end()), WIDTH)));
        lines.extend(last.map(|line| paint.dim(&line)));
    }
    lines
}

/// Returns the kind of a failure, with the first line of its reason.
fn trouble(result: &ToolResult) -> Option<String> {
    let (how, why) = match (result.status, result.exit_code) {
        (reflection::Status::Ok, None | Some(0)) => return None,
        (reflection::Status::Ok, Some(code)) => (format!("exit code {code}"), result.error_line()),
        (status, _) => (status.name().to_owned(), result.text.lines().next()),
    };
    let why = why.map(|why| format!(": {why}")).unwrap_or_default();
    Some(format!("{how}{why}"))
}

/// Describes the plan; no lines for a plan that is only the reply, or a typed command line.
fn plan_lines(paint: Paint, goal: &str, tasks: &[Task], skills: &Skills) -> Vec<String> {
    if matches!(tasks, [only] if only.kind == TaskKind::Msg) {
        return Vec::new();
    }
    let head = format!("{} {}", paint.bold("Plan:"), printable_line(goal));
    // Every plan ends with a reply, so that is not shown.
    let tasks = match tasks {
        [before @ .., last] if last.kind == TaskKind::Msg => before,
        all => all,
    };
    if matches!(tasks, [only] if only.kind == TaskKind::Exec && describe(only, skills) == goal) {
        return Vec::new();
    }
    let tasks = tasks.iter().enumerate().map(|(i, task)| {
        let review = if task.review { paint.dim("  (reviewed)") } else { String::new() };
        format!("  {}. {}{review}", i + 1, describe(task, skills))
    });
    std::iter::once(head).chain(tasks).collect()
}

/// Returns the line of a finished task. Text for the user shows itself.
pub(crate) fn task(paint: Paint, report: &TaskReport) -> Option<String> {
    if report.task.kind == TaskKind::Msg || report.task.kind == TaskKind::Act && report.task.notify {
        return None;
    }
    let (mark, rest) = match report.trouble() {
        None => (paint.green("✓"), String::new()),
        Some(trouble) => (paint.red("✗"), format!("  {}", printable_line(&trouble))),
    };
    let time = paint.dim(&duration(report.millis));
    Some(format!("{mark} {}  {time}{rest}", printable_line(&report.task.label())))
}

/// Returns a line for each file of a reply: its path on this machine, its size and its title.
pub(crate) fn files(paint: Paint, work: &Path, files: &[FileNote]) -> Vec<String> {
    let line = |file: &FileNote| {
        let title = file.title.as_deref().map(|title| format!(": {title}")).unwrap_or_default();
        paint.dim(&printable_line(&format!("{} ({}){title}", work.join(&file.path).display(), size(file.bytes))))
    };
    files.iter().map(line).collect()
}

pub(crate) fn status_of(verdict: &Verdict) -> &'static str {
    match verdict.status {
        Status::Ok => "ok",
        Status::NeedsFix => "needs_fix",
        Status::Replan => "replan",
    }
}

/// Describes a task on one line: "data file=weather.csv group=month(date)".
fn describe(task: &Task, skills: &Skills) -> String {
    let text = match task.kind {
        TaskKind::Skill => {
            let name = task.skill.as_deref().unwrap_or("skill");
            let args = task.args.as_ref().and_then(|a| a.as_object()).into_iter().flatten();
            // Defaults of the schema say nothing about this task.
            let default =
                |key: &str| skills.find_tool(name).ok().and_then(|(s, i)| s.tools[i].args.default_of(key).cloned());
            let args = args
                .filter(|(key, value)| default(key).as_ref() != Some(*value))
                .map(|(key, value)| format!(" {key}={}", of_value(value)));
            return printable_line(&format!("{name}{}", args.collect::<String>()));
        }
        TaskKind::Exec => format!("$ {}", first_line(&task.detail)),
        TaskKind::Msg => "reply".to_owned(),
        TaskKind::Act => first_line(&task.detail),
    };
    clip(&text, WIDTH)
}

/// The error of a run's last task that was more than a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LastError {
    Limit,
    Policy,
}

impl LastError {
    pub(crate) fn from_report(report: &TaskReport) -> Option<LastError> {
        report.error.as_ref().and_then(|error| match error {
            error if error.limit.is_some() => Some(LastError::Limit),
            error if error.policy => Some(LastError::Policy),
            _ => None,
        })
    }

    /// Returns the exit code of a command whose run has failed.
    pub(crate) fn exit(last: Option<LastError>) -> Exit {
        match last {
            Some(LastError::Limit) => Exit::Limit,
            Some(LastError::Policy) => Exit::Policy,
            None => Exit::Failed,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kiso_plan::report::{ChangeKind, ChangedFile};
    use serde_json::json;

    fn shown(name: &str, args: &str) -> Vec<String> {
        call_lines(&ToolCall { name: name.to_owned(), args: args.to_owned(), ..ToolCall::default() })
    }

    fn command(command: &str) -> Vec<String> {
        shown(EXEC, &json!({ "command": command }).to_string())
    }

    #[test]
    fn a_command_line_is_shown_as_it_is_typed() {
        assert_eq!(command("grep -c \"Nüsse\" a\tb"), ["→ $ grep -c \"Nüsse\" a b"]);
        let script = "python3 - <<'PY'\nimport re\n\nfor x in y:\n    print(x)\nPY\n";
        assert_eq!(command(script), ["→ $ python3 - <<'PY'", "    import re", "    for x in y: …"]);
        assert_eq!(command("a\n  b\n"), ["→ $ a", "      b"]);
        let long = command(&"ä".repeat(400));
        assert!(long.len() == 1 && long[0].ends_with("ä…") && long[0].chars().count() <= WIDTH + 4, "{long:?}");
        assert_eq!(command("echo \u{202e}x"), ["→ $ echo ⟦U+202E⟧x"]);
    }

    #[test]
    fn another_call_is_shown_with_its_short_arguments_first() {
        let written = json!({ "text": "import csv\nprint('ü')\n", "path": "build.py", "append": true }).to_string();
        assert_eq!(shown("file_write", &written), ["→ file_write path=build.py append=true text=import csv …"]);
        assert_eq!(shown("fetch", r#"{"url": "https://a.example/\u00fc"}"#), ["→ fetch url=https://a.example/ü"]);
        assert_eq!(shown("status", ""), ["→ status"]);
        assert_eq!(shown("fetch", "{\"url\": \"cut\n off"), ["→ fetch {\"url\": \"cut …"]);
        let long = shown("data", &json!({ "a": "x".repeat(500), "b": ["y".repeat(500)], "c": 1 }).to_string());
        assert!(
            long.len() == 1 && long[0].chars().count() <= WIDTH && long[0].starts_with("→ data c=1 a=xx"),
            "{long:?}"
        );
    }

    #[test]
    fn a_result_that_was_not_wanted_says_why() {
        let result = |status, exit_code: Option<i32>, text: &str| {
            let call = ToolCall { name: EXEC.to_owned(), ..ToolCall::default() };
            trouble(&ToolResult { status, exit_code, text: text.to_owned(), ..ToolResult::blank(&call) })
        };
        let ok = reflection::Status::Ok;
        assert_eq!(result(ok, Some(0), "exit code: 0\n"), None);
        assert_eq!(result(ok, Some(1), "exit code: 1\n").as_deref(), Some("exit code 1"));
        let text = "exit code: 2\nout\n\n[standard error]\nls: no such file: ü\nmore\n";
        assert_eq!(result(ok, Some(2), text).as_deref(), Some("exit code 2: ls: no such file: ü"));
        let trace = "exit code: 1\n\n[standard error]\nTraceback (most recent call last):\n  File \"<stdin>\", line 1\n    x\nNameError: no x\n";
        assert_eq!(result(ok, Some(1), trace).as_deref(), Some("exit code 1: NameError: no x"));
        let failed = result(reflection::Status::Error, None, "there is no tool \"x\"\nmore");
        assert_eq!(failed.as_deref(), Some("error: there is no tool \"x\""));
    }

    #[test]
    fn a_call_that_ended_has_its_time_changes_and_last_output() {
        let text = (1..=8).map(|n| format!("line {n}\n")).collect::<String>();
        let changed = vec![ChangedFile::new("a.txt", ChangeKind::Created); 2];
        let call = ToolCall { name: EXEC.to_owned(), ..ToolCall::default() };
        let result = ToolResult {
            status: reflection::Status::Ok,
            exit_code: Some(0),
            text: format!("exit code: 0\n{text}\n[standard error]\nslow"),
            millis: 1_200,
            changed,
            outside: true,
            ..ToolResult::blank(&call)
        };
        let shown = call_end(Paint::never(), &result);
        assert_eq!(shown[0], "  ✓ exec  1.2 s  2 files changed  from outside");
        assert_eq!(shown[1], "    … 4 lines before");
        assert_eq!(shown[2..], ["    line 5", "    line 6", "    line 7", "    line 8", "    slow"]);
        let failed =
            ToolResult { status: reflection::Status::Blocked, exit_code: None, text: "no".to_owned(), ..result };
        assert_eq!(call_end(Paint::never(), &failed), ["  ✗ exec  1.2 s  2 files changed  from outside  blocked: no"]);
    }

    #[test]
    fn a_plan_has_a_line_for_each_step_but_the_reply() {
        let dir = tempfile::tempdir().unwrap();
        let home = kiso_base::home::Home::open(&dir.path().join("home")).unwrap();
        let config = kiso_base::config::Config::load(&home).unwrap();
        let store = kiso_store::store::Store::open(&home.store_path()).unwrap();
        let skills = Skills::new(home, config, store, std::sync::Arc::new(kiso_sandbox::skill::Quiet));
        let lines = |tasks: &[Task]| plan_lines(Paint::never(), "sorted", tasks, &skills);
        let tasks = [
            Task::new(TaskKind::Act, format!("Sort\n{}", "x".repeat(900))),
            Task::new(TaskKind::Msg, "Say so"),
            Task::new(TaskKind::Exec, "python3 - <<'E'\nprint(1)\nE"),
            Task::new(TaskKind::Msg, "Say it"),
        ];
        assert_eq!(lines(&tasks), ["Plan: sorted", "  1. Sort …", "  2. reply", "  3. $ python3 - <<'E' …"]);
        assert_eq!(lines(&tasks[3..]), [""; 0]);
        let typed = [Task::new(TaskKind::Exec, "ls"), Task::new(TaskKind::Msg, "Say it")];
        assert_eq!(plan_lines(Paint::never(), "$ ls", &typed, &skills), [""; 0]);
        assert_eq!(lines(&typed), ["Plan: sorted", "  1. $ ls"]);
    }
}
