//! `file_read`, `file_write`, `file_edit`, `look`: access to files of the workspace, without quoting text in a command line.
//!
//! Each is a fixed line of shell that gets the path as `$1` and the text on its standard input. So there is only one way into the
//! workspace, with one quota, one undo and one set of labels, and links cannot lead out of it.

mod attach;
mod look;
mod preview;
mod reach;
mod remember;
mod text;

pub use self::attach::text_room;
use self::look::LookCall;
pub(super) use self::look::{LOOK, PictureSource, ShownSize};
pub use self::preview::{DocumentPart, DocumentPreview, PagePreview};
use self::reach::plain_path;
use self::text::{lines_from, list_lines, numbered, replace};
use super::builtin::{CallContext, ToolFault};
use super::{Tools, label};
use kiso_llm::ToolSpec;
use kiso_plan::code::ErrorCode;
use kiso_plan::label::Label;
use kiso_plan::picture::MAX_PICTURES;
use kiso_plan::plan::{CallerScope, Task, TaskKind};
use kiso_plan::report::{TaskError, TaskReport, TaskStatus};
use kiso_sandbox::exec::{Channel, CommandResult, Line, pipe};
use kiso_sandbox::skill::{ArgsSchema, Caller};
use kiso_store::scratchpad::parse_ref;
use serde_json::{Value, json};
use std::sync::LazyLock;

pub(super) const READ: &str = "file_read";
pub(super) const WRITE: &str = "file_write";
pub(super) const EDIT: &str = "file_edit";

/// Maximum size in bytes of a file that is changed, and of the lines that are read at once: larger ones need a command line.
const MAX_BYTES: usize = 4 << 20;

/// Default number of lines that are read.
const LINES: u64 = 2_000;

/// Tokens of a result besides the lines.
const AROUND: usize = 40;

const READ_LINES: &str = r#"sed -n "$2,$3p;$3q" <"$1""#;
const READ_ALL: &str = r#"cat <"$1""#;
const REPLACE: &str = r#"cat >"$1""#;
const APPEND: &str = r#"cat >>"$1""#;
const MAKE_PARENT: &str = r#"mkdir -p -- "${1%/*}" && "#;

/// A tool with its arguments.
struct FileTool {
    name: &'static str,
    description: &'static str,
    args: ArgsSchema,
}

static TOOLS: LazyLock<[FileTool; 4]> = LazyLock::new(|| {
    let path = json!({ "type": "string", "minLength": 1, "maxLength": 1_024 });
    let text = json!({ "type": "string", "maxLength": MAX_BYTES });
    let line = json!({ "type": "integer", "minimum": 1 });
    let tool = |name, description, properties: Value, required: &[&str]| {
        let schema =
            json!({ "type": "object", "properties": properties, "required": required, "additionalProperties": false });
        FileTool { name, description, args: ArgsSchema::checked(schema) }
    };
    [
        tool(
            READ,
            "Read lines of a text file in /work, or of ref:KEY, with their numbers.",
            json!({ "path": path, "from": line, "to": line }),
            &["path"],
        ),
        tool(
            WRITE,
            "Write a file in /work; append adds to its end.",
            json!({ "path": path, "text": text, "append": { "type": "boolean" } }),
            &["path", "text"],
        ),
        tool(
            EDIT,
            "Replace a text in a file in /work. old stands there exactly so, and once unless all is true.",
            json!({ "path": path, "old": { "type": "string", "minLength": 1, "maxLength": MAX_BYTES }, "new": text, "all": { "type": "boolean" } }),
            &["path", "old", "new"],
        ),
        tool(
            LOOK,
            "See a picture in /work, or pages of a PDF (scans, layout, charts). region is [left, top, width, height] in pixels of the whole picture as you see it, or in fractions of 1.",
            json!({
                "path": path,
                "pages": { "type": "array", "items": line, "minItems": 1, "maxItems": MAX_PICTURES },
                "region": { "type": "array", "items": { "type": "number", "minimum": 0 } }
            }),
            &["path"],
        ),
    ]
});

/// A parsed call.
#[derive(Debug, Clone)]
pub(super) enum FileCall {
    Read {
        path: ReadPath,
        from: u64,
        to: Option<u64>,
    },
    Write {
        path: String,
        text: String,
        append: bool,
    },
    Edit {
        path: String,
        old: String,
        new: String,
        all: bool,
    },
    Look(LookCall),
    /// Saves its text to memory.
    Remember {
        path: String,
    },
}

/// The source of lines.
#[derive(Debug, Clone)]
pub(super) enum ReadPath {
    File(String),
    /// An entry of the scratchpad.
    Ref(String),
}

/// The result of a line of shell.
struct Ran {
    done: CommandResult,
    output: Vec<u8>,
    errors: Vec<u8>,
    label: Label,
}

/// Returns the tools in their form for models.
pub(super) fn specs() -> Vec<ToolSpec> {
    let spec = |tool: &FileTool| ToolSpec {
        name: tool.name.to_owned(),
        description: tool.description.to_owned(),
        parameters: tool.args.schema().clone(),
    };
    TOOLS.iter().map(spec).collect()
}

/// Returns whether this is the name of one of these tools.
pub(super) fn has(name: &str) -> bool {
    [READ, WRITE, EDIT, LOOK].contains(&name)
}

/// Returns the argument of a tool that may name an entry of the scratchpad.
pub(super) fn names_entry(name: &str) -> Option<&'static str> {
    (name == READ).then_some("path")
}

/// Returns the arguments of the tool of that name.
pub(super) fn args(name: &str) -> Option<&'static ArgsSchema> {
    TOOLS.iter().find(|tool| tool.name == name).map(|tool| &tool.args)
}

impl FileCall {
    /// Parses a call of one of these tools.
    pub(super) fn parse(name: &str, given: &Value) -> Result<FileCall, ToolFault> {
        let schema = args(name).ok_or_else(|| wrong(format!("there is no tool {name:?}"), super::FITTING))?;
        let given =
            schema.check(given).map_err(|violations| wrong(super::describe_violations(&violations), super::FITTING))?;
        let text = |name: &str| given[name].as_str().unwrap_or_default().to_owned();
        let is_set = |name: &str| given[name].as_bool().unwrap_or_default();
        if name == LOOK {
            return look::parse(&given);
        }
        if name == READ {
            let (from, to) = (given["from"].as_u64().unwrap_or(1), given["to"].as_u64());
            if to.is_some_and(|to| to < from) {
                return Err(wrong("`to` comes before `from`".to_owned(), super::FITTING));
            }
            let path = text("path");
            let path = match parse_ref(&path) {
                Some(key) => ReadPath::Ref(key.to_owned()),
                None => ReadPath::File(plain_path(&path)?),
            };
            return Ok(FileCall::Read { path, from, to });
        }
        let path = plain_path(&text("path"))?;
        Ok(match name {
            WRITE => FileCall::Write { path, text: text("text"), append: is_set("append") },
            _ => FileCall::Edit { path, old: text("old"), new: text("new"), all: is_set("all") },
        })
    }

    /// Returns the call that saves a document to memory.
    pub(super) fn remember(path: &str) -> Result<FileCall, ToolFault> {
        Ok(FileCall::Remember { path: plain_path(path)? })
    }

    /// Returns whether it changes no file.
    pub(super) fn only_reads(&self) -> bool {
        !matches!(self, FileCall::Write { .. } | FileCall::Edit { .. })
    }

    /// Returns the entry of the scratchpad that it reads.
    pub(super) fn reference(&self) -> Option<&str> {
        match self {
            FileCall::Read { path: ReadPath::Ref(key), .. } => Some(key),
            _ => None,
        }
    }
}

fn wrong(message: String, hint: &str) -> ToolFault {
    ToolFault { code: ErrorCode::BadArgs, message, hint: Some(hint.to_owned()) }
}

impl Tools {
    /// Executes a call, and returns its report. `room` is the maximum size of its text in tokens.
    pub(super) async fn edit_file(
        &self,
        call: &FileCall,
        role: CallerScope,
        caller: &Caller<'_>,
        at: &CallContext,
    ) -> TaskReport {
        let room = at.result_tokens.saturating_sub(AROUND);
        let call = &match self.placed(call, role, caller) {
            Ok(call) => call,
            Err(report) => return *report,
        };
        let mut report = match call {
            FileCall::Read { path: ReadPath::Ref(key), from, to } => {
                return self.read_entry(key, (*from, *to), at, room).await;
            }
            FileCall::Read { path: ReadPath::File(path), from, to } => {
                self.read_file(path, (*from, *to), role, caller, room).await
            }
            FileCall::Write { path, text, append } => {
                self.write_file(path, text, if *append { APPEND } else { REPLACE }, role, caller).await
            }
            FileCall::Remember { path } => self.remember(path, role, caller).await,
            FileCall::Look(view) => self.look(view, ShownSize::for_context(at.context_budget), role, caller).await,
            FileCall::Edit { path, old, new, all } => self.replace_in(path, (old, new, *all), role, caller).await,
        };
        report.text = caller.secrets.redact(&report.text);
        let read = report.label.clone();
        label(&mut report, caller.permit);
        report.label.join(&read);
        report
    }

    async fn read_entry(&self, key: &str, lines: (u64, Option<u64>), at: &CallContext, room: usize) -> TaskReport {
        let (session, wanted, read) = (at.session.clone(), key.to_owned(), at.read.clone());
        let found = self.store.read(move |view| {
            read.join(&view.ref_label(&session, &wanted)?);
            let known = view.scratchpad_list(&session)?.into_iter().map(|entry| entry.key).collect::<Vec<_>>();
            Ok((view.scratchpad_get(&session, &wanted)?, known))
        });
        let task = Task::new(TaskKind::Exec, READ);
        match found.await {
            Ok((Some(text), _)) => TaskReport::new(task, TaskStatus::Done, numbered(&text, lines, false, room)),
            Ok((None, known)) => {
                let near = kiso_store::scratchpad::near(key, &known);
                failed(task, ErrorCode::NotFound, format!("there is no ref:{key} in the scratchpad{near}"))
            }
            Err(error) => failed(task, ErrorCode::Unavailable, error.to_string()),
        }
    }

    async fn read_file(
        &self,
        path: &str,
        (from, to): (u64, Option<u64>),
        role: CallerScope,
        caller: &Caller<'_>,
        room: usize,
    ) -> TaskReport {
        let task = Task::new(TaskKind::Exec, READ);
        // One line more than is shown, to detect whether there are more.
        let last = to.unwrap_or_else(|| from.saturating_add(LINES - 1)).saturating_add(1);
        let args = vec![path.to_owned(), from.to_string(), last.to_string()];
        let ran = match self.run_fixed(READ_LINES, args, b"", role, caller).await {
            Ok(ran) => ran,
            Err(error) => return TaskReport::failed(task, error),
        };
        if let Some(report) = ran.failure(&task, path, caller) {
            return report;
        }
        let mut report = TaskReport::new(task, TaskStatus::Done, String::new());
        report.label = ran.label;
        if ran.output.contains(&0) {
            let why = format!("{} is not a text file", shown(path));
            return TaskReport { label: report.label, ..failed(report.task, ErrorCode::NotText, why) };
        }
        let text = String::from_utf8_lossy(&ran.output);
        let cut = ran.output.len() > MAX_BYTES;
        report.text = if text.is_empty() {
            match from {
                1 => format!("{} is empty", shown(path)),
                from => format!("{} has no line {from}", shown(path)),
            }
        } else {
            // The text begins with line `from`.
            let of = text.split_inclusive('\n').count() as u64;
            let to = to.unwrap_or(from + LINES - 1).min(from + of - 1);
            lines_from(&text, from, to, cut, room)
        };
        report
    }

    async fn write_file(
        &self,
        path: &str,
        text: &str,
        program: &str,
        role: CallerScope,
        caller: &Caller<'_>,
    ) -> TaskReport {
        let task = Task::new(TaskKind::Exec, WRITE);
        let is_deep = path.trim_start_matches("/work/").contains('/');
        let program = format!("{}{program}", if is_deep { MAKE_PARENT } else { "" });
        let ran = match self.run_fixed(&program, vec![path.to_owned()], text.as_bytes(), role, caller).await {
            Ok(ran) => ran,
            Err(error) => return TaskReport::failed(task, error),
        };
        if let Some(report) = ran.failure(&task, path, caller) {
            return report;
        }
        let (verb, bytes) = (if program.ends_with(APPEND) { "Appended" } else { "Wrote" }, text.len());
        TaskReport { label: ran.label, ..TaskReport::new(task, TaskStatus::Done, format!("{verb} {bytes} bytes.")) }
    }

    async fn replace_in(
        &self,
        path: &str,
        (old, new, all): (&str, &str, bool),
        role: CallerScope,
        caller: &Caller<'_>,
    ) -> TaskReport {
        let task = Task::new(TaskKind::Exec, EDIT);
        let read = match self.run_fixed(READ_ALL, vec![path.to_owned()], b"", role, caller).await {
            Ok(read) => read,
            Err(error) => return TaskReport::failed(task, error),
        };
        if let Some(report) = read.failure(&task, path, caller) {
            return report;
        }
        let refused = |task, code, why: String| TaskReport { label: read.label.clone(), ..failed(task, code, why) };
        if read.output.len() > MAX_BYTES {
            let why = format!("{} has more than {} MiB; change it with sed", shown(path), MAX_BYTES >> 20);
            return refused(task, ErrorCode::TooLarge, why);
        }
        let Ok(text) = std::str::from_utf8(&read.output) else {
            return refused(task, ErrorCode::NotText, format!("{} is not UTF-8 text", shown(path)));
        };
        let (changed, places) = match replace(text, (old, new, all)) {
            Ok(changed) => changed,
            Err(why) => return refused(task, ErrorCode::NoMatch, format!("{}: {why}", shown(path))),
        };
        // The new text contains the old one.
        if let Some(permit) = caller.permit {
            permit.read().join(kiso_sandbox::effect::label::LabelId::from_label(&read.label));
        }
        let wrote = match self.run_fixed(REPLACE, vec![path.to_owned()], changed.as_bytes(), role, caller).await {
            Ok(wrote) => wrote,
            Err(error) => return TaskReport::failed(task, error),
        };
        if let Some(report) = wrote.failure(&task, path, caller) {
            return report;
        }
        let text = format!("Replaced at {}.", list_lines(&places));
        TaskReport { label: read.label.joined(&wrote.label), ..TaskReport::new(task, TaskStatus::Done, text) }
    }

    /// Runs one of the lines above to its end.
    async fn run_fixed(
        &self,
        program: &str,
        args: Vec<String>,
        input: &[u8],
        role: CallerScope,
        caller: &Caller<'_>,
    ) -> Result<Ran, TaskError> {
        let of_host = |error: String| TaskError::of_host(error);
        let scratch = self.exec.scratch(caller.session).map_err(|error| of_host(error.to_string()))?;
        let (stdin, input_end) = pipe();
        let ((output, output_end), (errors, errors_end)) = (pipe(), pipe());
        let (output, errors) = (Channel::Reader(output), Channel::Reader(errors));
        let line = Line {
            stdin: Channel::Reader(stdin),
            args,
            outputs: Some((Channel::Writer(output_end), Channel::Writer(errors_end))),
            ..Line::for_caller(program, caller, role, &scratch)
        };
        let feed = async move {
            // A command that does not read its input closes it, and reports the reason.
            let _ = Channel::Writer(input_end).write(input).await;
        };
        let (done, output, errors, ()) = tokio::join!(self.exec.run(line), drain(output), drain(errors), feed);
        let done = done.map_err(|error| of_host(error.to_string()))?;
        let label = (*done.label.join(output.1).join(errors.1).label()).clone();
        Ok(Ran { done, output: output.0, errors: errors.0, label })
    }
}

/// Reads a pipe to its end, or slightly more than [`MAX_BYTES`]; also returns its label. A longer writer is killed.
async fn drain(from: Channel) -> (Vec<u8>, kiso_sandbox::effect::label::LabelId) {
    let mut all = Vec::new();
    while all.len() <= MAX_BYTES {
        match from.read(MAX_BYTES).await {
            Ok(bytes) if !bytes.is_empty() => all.extend_from_slice(&bytes),
            _ => break,
        }
    }
    (all, from.label())
}

impl Ran {
    /// Returns the report of a failed line.
    fn failure(&self, task: &Task, path: &str, caller: &Caller<'_>) -> Option<TaskReport> {
        // Its output was longer than necessary.
        let is_enough = self.output.len() > MAX_BYTES;
        if self.done.limit.is_none() && (self.done.code == 0 || is_enough) {
            return None;
        }
        let said = String::from_utf8_lossy(&self.errors);
        // The first command of a pipeline reports the reason; its message begins with its name and usually the file.
        let line = said.lines().find(|line| !line.trim().is_empty()).unwrap_or("it could not be done");
        let behind = |mark: &str| line.split_once(mark).map(|(_, why)| why);
        let why =
            behind(&format!("{path}: ")).or_else(|| behind(&format!("{}: ", shown(path)))).or_else(|| behind(": "));
        let why = why.unwrap_or(line);
        let error = match &self.done.limit {
            Some(hit) => TaskError {
                code: ErrorCode::Limit,
                message: hit.to_string(),
                limit: Some(hit.limit.name().to_owned()),
                retryable: false,
                policy: false,
            },
            None => TaskError {
                code: ErrorCode::Failed,
                ..TaskError::of_host(format!("{}: {}", shown(path), caller.secrets.redact(why)))
            },
        };
        let mut report = TaskReport::failed(task.clone(), error);
        (report.label, report.used, report.limits) =
            (self.label.clone(), Some(self.done.used), Some(self.done.allowed));
        Some(report)
    }
}

fn failed(task: Task, code: ErrorCode, message: String) -> TaskReport {
    TaskReport::failed(task, TaskError { code, ..TaskError::of_host(message) })
}

fn shown(path: &str) -> &str {
    path.strip_prefix("/work/").unwrap_or(path)
}
