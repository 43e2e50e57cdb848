//! Reads lines in a separate thread: history, completion, several lines, and the status line above.

use super::complete::Names;
use super::screen::{StatusLine, width};
use crate::cli::history::{InputHistory, LINES};
use crate::cli::show::{Paint, columns};
use rustyline::completion::Completer;
use rustyline::error::ReadlineError;
use rustyline::highlight::{CmdKind, Highlighter};
use rustyline::hint::Hinter;
use rustyline::history::MemHistory;
use rustyline::validate::{ValidationContext, ValidationResult, Validator};
use rustyline::{ColorMode, CompletionType, Config, Context, Editor, ExternalPrinter, Helper};
use std::borrow::Cow;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{SyncSender, sync_channel};
use std::thread;
use tokio::sync::mpsc;

/// Input from a person.
#[derive(Debug)]
pub(super) enum KeyboardInput {
    Line(String),
    /// Ctrl-C.
    Interrupt,
    /// Ctrl-D, or the terminal has gone.
    End,
}

/// A reader of lines from a terminal.
#[derive(Debug)]
pub(super) struct LineReader {
    typed: mpsc::Receiver<KeyboardInput>,
    go: SyncSender<()>,
}

impl LineReader {
    /// Starts to read. Also returns the printer for output above the prompt.
    pub(super) fn start(
        prompt: String,
        names: Names,
        history: InputHistory,
        status: StatusLine,
        paint: Paint,
    ) -> rustyline::Result<(LineReader, impl ExternalPrinter + Send + 'static)> {
        let config = Config::builder()
            .auto_add_history(false)
            .max_history_size(LINES)?
            .completion_type(CompletionType::List)
            // Colour mode is needed on any terminal: the status line is drawn in its hook.
            .color_mode(ColorMode::Forced)
            .build();
        let lines = MemHistory::with_config(&config);
        let mut editor = Editor::<Prompt, MemHistory>::with_history(config, lines)?;
        history.load().iter().for_each(|line| {
            let _ = editor.add_history_entry(line.as_str());
        });
        let (submitted, listed) = (AtomicBool::new(false), AtomicUsize::new(0));
        // The first row is for the status line; the editor must count it.
        let raw = format!("\n{prompt}");
        editor.set_helper(Some(Prompt { names, status, paint, prompt, submitted, rows: AtomicUsize::new(1), listed }));
        let printer = editor.create_external_printer()?;
        let (tell, typed) = mpsc::channel(1);
        let (go, gone) = sync_channel(1);
        thread::spawn(move || {
            loop {
                let typed = read(&mut editor, &raw, &history);
                let ended = matches!(typed, KeyboardInput::End);
                // The next line is read only after a request for it.
                if tell.blocking_send(typed).is_err() || ended || gone.recv().is_err() {
                    return;
                }
            }
        });
        Ok((LineReader { typed, go }, printer))
    }

    /// Waits for a person's input. After it, [`LineReader::go_on`] allows the next line to be read.
    pub(super) async fn typed(&mut self) -> KeyboardInput {
        self.typed.recv().await.unwrap_or(KeyboardInput::End)
    }

    pub(super) fn go_on(&self) {
        // The channel has one place, which is free because the reader waits.
        let _ = self.go.try_send(());
    }
}

fn read(editor: &mut Editor<Prompt, MemHistory>, prompt: &str, history: &InputHistory) -> KeyboardInput {
    if let Some(helper) = editor.helper() {
        helper.submitted.store(false, Ordering::Relaxed);
    }
    match editor.readline(prompt) {
        Ok(line) => {
            let text = line.replace("\\\n", "\n");
            if history.add(&text) {
                let _ = editor.add_history_entry(text.as_str());
            }
            KeyboardInput::Line(text)
        }
        Err(ReadlineError::Interrupted) => KeyboardInput::Interrupt,
        Err(_) => KeyboardInput::End,
    }
}

/// The editor's hooks while a line is typed.
struct Prompt {
    names: Names,
    status: StatusLine,
    paint: Paint,
    prompt: String,
    /// Whether the line is complete: then the status line is removed, so that it does not stay on the screen.
    submitted: AtomicBool,
    /// Rows below the first one that the prompt and the line took when Tab was last pressed.
    rows: AtomicUsize,
    /// Rows to add below a list of candidates that was printed since the last redraw.
    listed: AtomicUsize,
}

impl Prompt {
    /// Returns the rows below the status that the prompt and a line take.
    fn rows(&self, line: &str) -> usize {
        let width = width();
        let rows = |text: &str| columns(text) / width + 1;
        line.split('\n')
            .enumerate()
            .map(|(at, text)| if at == 0 { rows(&format!("{}{text}", self.prompt)) } else { rows(text) })
            .sum()
    }
}

impl Helper for Prompt {}

impl Hinter for Prompt {
    type Hint = String;
}

impl Completer for Prompt {
    type Candidate = String;

    fn complete(&self, line: &str, at: usize, _: &Context<'_>) -> rustyline::Result<(usize, Vec<String>)> {
        self.rows.store(self.rows(line), Ordering::Relaxed);
        Ok(self.names.complete(line, at))
    }
}

impl Validator for Prompt {
    fn validate(&self, typed: &mut ValidationContext<'_>) -> rustyline::Result<ValidationResult> {
        let marks = typed.input().len() - typed.input().trim_end_matches('\\').len();
        if marks % 2 == 1 {
            return Ok(ValidationResult::Incomplete);
        }
        self.submitted.store(true, Ordering::Relaxed);
        // A message, even an empty one, makes the editor redraw the prompt, which removes the status.
        Ok(ValidationResult::Valid((!self.status.get().is_empty()).then(String::new)))
    }
}

impl Highlighter for Prompt {
    fn highlight_prompt<'b, 's: 'b, 'p: 'b>(&'s self, prompt: &'p str, default: bool) -> Cow<'b, str> {
        if !default {
            return Cow::Borrowed(prompt);
        }
        // The redraw after a list clears the rows of the old prompt above the cursor, which are the list's last ones.
        let below = self.listed.swap(0, Ordering::Relaxed);
        if below > 0 {
            out!("{}", "\n".repeat(below));
        }
        let status = if self.submitted.load(Ordering::Relaxed) { String::new() } else { self.status.get() };
        Cow::Owned(format!("{status}\n{}", self.paint.bold(&self.prompt)))
    }

    fn highlight_candidate<'c>(&self, candidate: &'c str, _: CompletionType) -> Cow<'c, str> {
        self.listed.store(self.rows.load(Ordering::Relaxed), Ordering::Relaxed);
        Cow::Borrowed(candidate)
    }

    fn highlight_char(&self, _: &str, _: usize, kind: CmdKind) -> bool {
        kind == CmdKind::ForcedRefresh
    }
}
