//! The conversation: sent messages, the current run, and the output for a person. Independent of terminal, socket and clock.

use super::KEYS;
use super::doing::{Doing, is_written, made_by, read};
use super::order::EventOrder;
use super::stream::{Stream, TextForm};
use crate::cli::Exit;
use crate::cli::client::wire::{
    LiveLine, LiveText, MessageLine, NoticeLine, Outbound, RunNotice, Say, ServerLine, StepLine,
};
use crate::cli::show::told::LastError;
use crate::cli::show::{Paint, clip, printable, printable_line, told};
use kiso_agent::session::command::SlashCommand;
use kiso_graph::step::{Event, StepResult};
use kiso_plan::report::{FileNote, MAX_DELIVERED};
use kiso_sandbox::skill::Skills;
use std::collections::{HashMap, VecDeque};
use std::path::PathBuf;

/// Answered messages that are remembered, because their `accepted` may arrive after the answer.
const ANSWERED: usize = 256;

/// Columns of the last line of a command's output in the activity.
const OUTPUT: usize = 160;

/// Columns of another person's message that are shown.
const STRANGER: usize = 160;

/// Text to print, in complete lines.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum ScreenText {
    /// A reply, an answer, or a part of one.
    Text(String),
    /// A note about progress.
    Note(String),
}

/// The current activity.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Activity {
    /// One line for a person.
    pub what: String,
    pub since_ms: i64,
}

/// A conversation in one session.
#[derive(Debug)]
pub(super) struct Talk {
    form: TextForm,
    paint: Paint,
    skills: Skills,
    work: PathBuf,
    /// Counter for `ref`s.
    said: u64,
    /// Requests without an answer, by their `ref`.
    asked: HashMap<String, Request>,
    /// Messages of this client that were accepted and not answered, and the time of acceptance.
    open: Vec<(i64, i64)>,
    answered: VecDeque<i64>,
    run: Option<Doing>,
    /// Whether a run may have started or stopped waiting for a person since the last call.
    changed: bool,
    /// Whether a run has ended since the last call.
    ended: bool,
    /// The last run that has ended: its later texts are dropped.
    over: String,
    /// Files of the last runs; reported after their reply.
    files: Vec<FileNote>,
    reply: Stream,
    planner: Stream,
    order: EventOrder,
    /// Whether kiso is offline.
    away: bool,
    /// The next requests.
    asks: Vec<Say>,
    /// The exit code of the last run.
    exit: Exit,
}

/// Maximum lines of reasoning shown for a run.
const MAX_REASONED: usize = 12;

#[derive(Debug)]
enum Request {
    Message {
        text: String,
        since_ms: i64,
    },
    Command {
        name: String,
    },
    /// Cancels the run, after Ctrl-C.
    Stop,
}

impl Talk {
    /// `work` is the session's workspace.
    pub(super) fn new(form: TextForm, skills: Skills, work: PathBuf) -> Talk {
        let paint = match form {
            TextForm::Rendered(looks) => looks.paint,
            TextForm::Raw => Paint::never(),
        };
        Talk {
            form,
            paint,
            skills,
            work,
            said: 0,
            asked: HashMap::new(),
            open: Vec::new(),
            answered: VecDeque::new(),
            run: None,
            changed: true,
            ended: false,
            over: String::new(),
            files: Vec::new(),
            reply: Stream::new(form),
            planner: Stream::new(form),
            order: EventOrder::default(),
            away: false,
            asks: Vec::new(),
            exit: Exit::Done,
        }
    }

    /// Changes the width of text printed from now on.
    pub(super) fn resize(&mut self, columns: usize) {
        for stream in [&mut self.reply, &mut self.planner] {
            if let Some(markdown) = &mut stream.markdown {
                markdown.resize(columns);
            }
        }
        if let TextForm::Rendered(looks) = &mut self.form {
            looks.width = columns;
        }
    }

    /// Returns the request for a typed line. `key` must be new.
    pub(super) fn say(&mut self, text: &str, key: String, now_ms: i64) -> Say {
        let text = text.trim();
        let reference = self.reference();
        if SlashCommand::parse(text).is_some() {
            let (command, args) = text[1..].split_once(char::is_whitespace).unwrap_or((&text[1..], ""));
            self.asked.insert(reference.clone(), Request::Command { name: command.to_owned() });
            return Say::Command { command: command.to_owned(), args: args.trim().to_owned(), reference };
        }
        self.asked.insert(reference.clone(), Request::Message { text: text.to_owned(), since_ms: now_ms });
        Say::Inbound { text: text.to_owned(), key, reference }
    }

    /// Returns the request that cancels the current run, or one that waits for a person if `waits` is true; `None` if there
    /// is nothing to cancel, or it was cancelled already.
    pub(super) fn cancel(&mut self, waits: bool) -> Option<Say> {
        match &mut self.run {
            Some(run) if !run.cancelled => run.cancelled = true,
            None if waits => {}
            _ => return None,
        }
        let reference = self.reference();
        self.asked.insert(reference.clone(), Request::Stop);
        Some(Say::Command { command: "cancel".to_owned(), args: String::new(), reference })
    }

    /// Returns whether runs started, ended or began to wait since the last call.
    pub(super) fn has_changed(&mut self) -> bool {
        std::mem::take(&mut self.changed)
    }

    /// Returns whether a run has ended since the last call, and its reply has arrived.
    pub(super) fn has_ended(&mut self) -> bool {
        self.is_idle() && std::mem::take(&mut self.ended)
    }

    /// Returns the conversation's own requests.
    pub(super) fn asks(&mut self) -> Vec<Say> {
        std::mem::take(&mut self.asks)
    }

    /// Returns whether nothing is running and all messages are answered.
    pub(super) fn is_idle(&self) -> bool {
        self.asked.is_empty() && self.open.is_empty() && self.run.is_none()
    }

    /// Returns the exit code of the last run.
    pub(super) fn exit(&self) -> Exit {
        self.exit
    }

    /// Returns the current activity.
    pub(super) fn busy(&self) -> Option<Activity> {
        if self.away {
            return None;
        }
        if let Some(run) = &self.run {
            let tail = [self.reply.unfinished(), self.planner.unfinished()].into_iter().find(|text| !text.is_empty());
            let what = tail.map(str::to_owned).unwrap_or_else(|| match run.output.is_empty() {
                true => run.thought.clone(),
                false => format!("{}: {}", run.thought, run.output),
            });
            return Some(Activity { what, since_ms: run.since_ms });
        }
        let asked = self.asked.values().filter_map(|asked| match asked {
            Request::Message { since_ms, .. } => Some(*since_ms),
            Request::Command { .. } | Request::Stop => None,
        });
        let since_ms = self.open.iter().map(|(_, since_ms)| *since_ms).chain(asked).min()?;
        Some(Activity { what: "waiting".to_owned(), since_ms })
    }

    /// Handles a lost connection.
    pub(super) fn lost(&mut self) -> Vec<ScreenText> {
        self.away = true;
        // Events may be missed from now on.
        self.order.forget();
        // The daemon may not have received the request to cancel; it can be sent again.
        if let Some(run) = &mut self.run {
            run.cancelled = false;
        }
        let mut shown = self.release();
        shown.push(self.quiet("kiso is offline; reconnecting… your messages are saved"));
        let mut unanswered = Vec::new();
        self.asked.retain(|_, asked| match asked {
            Request::Command { name } => {
                unanswered.push(name.clone());
                false
            }
            Request::Message { .. } => true,
            Request::Stop => false,
        });
        shown.extend(unanswered.iter().map(|name| self.quiet(&format!("/{name} got no answer; try again"))));
        shown
    }

    /// Handles a new connection.
    pub(super) fn connected(&mut self, again: bool) -> Vec<ScreenText> {
        (self.away, self.changed) = (false, true);
        if again { vec![self.quiet("reconnected")] } else { Vec::new() }
    }

    /// Handles a line of the daemon.
    pub(super) fn hear(&mut self, heard: ServerLine, now_ms: i64) -> Vec<ScreenText> {
        match heard {
            ServerLine::Accepted { reference, message } => self.accepted(reference.as_deref(), message, now_ms),
            ServerLine::Outbound(outbound) => self.outbound(outbound),
            ServerLine::Status { running, queued } => {
                if running.is_none() && queued == 0 {
                    self.open.clear();
                    self.run = None;
                }
                Vec::new()
            }
            ServerLine::Event(happened) => self.happened(happened, now_ms),
            ServerLine::Error { reference, code, message, hint } => {
                if let Some(reference) = reference {
                    self.asked.remove(&reference);
                }
                self.exit =
                    if matches!(code.as_str(), "queue_full" | "too_large") { Exit::Limit } else { Exit::Failed };
                let hint = hint.map(|hint| format!("; {hint}")).unwrap_or_default();
                vec![ScreenText::Note(self.paint.red(&printable_line(&format!("{message}{hint}"))))]
            }
            ServerLine::Registered { .. } | ServerLine::File { .. } | ServerLine::Shutdown | ServerLine::Other => {
                Vec::new()
            }
        }
    }

    fn accepted(&mut self, reference: Option<&str>, message: i64, now_ms: i64) -> Vec<ScreenText> {
        let asked = reference.and_then(|reference| self.asked.remove(reference));
        let since_ms = match asked {
            Some(Request::Message { since_ms, .. }) => since_ms,
            _ => now_ms,
        };
        if !self.answered.contains(&message) {
            self.open.push((message, since_ms));
        }
        Vec::new()
    }

    fn outbound(&mut self, outbound: Outbound) -> Vec<ScreenText> {
        let asked = outbound.reference.as_ref().and_then(|reference| self.asked.remove(reference));
        let mut shown = Vec::new();
        // A cancelled run reports that itself.
        if let Some(mut answer) = outbound.answer.filter(|_| !matches!(asked, Some(Request::Stop))) {
            if matches!((&asked, self.form), (Some(Request::Command { name }), TextForm::Rendered(_)) if name == "help")
            {
                answer.push_str(KEYS);
            }
            shown.push(ScreenText::Text(Stream::new(self.form).end(None, &answer)));
        }
        if let Some(message) = outbound.message {
            self.order.forget();
            shown.extend(self.release());
            shown.extend(text(self.planner.leave()));
            shown.extend(text(self.reply.end(message.run.as_deref(), message.without_files())));
            shown.extend(self.made());
        }
        self.open.retain(|(message, _)| !outbound.answers.contains(message));
        self.answered.extend(outbound.answers);
        while self.answered.len() > ANSWERED {
            self.answered.pop_front();
        }
        shown
    }

    fn happened(&mut self, happened: NoticeLine, now_ms: i64) -> Vec<ScreenText> {
        let NoticeLine { event, data, .. } = happened;
        match event.as_str() {
            "message" => read(data).map(|message| self.message(&message)).unwrap_or_default(),
            "run" => read(data).map(|run| self.run_line(run, now_ms)).unwrap_or_default(),
            "event" => read(data).map(|step| self.step(step)).unwrap_or_default(),
            "live" => read(data).map(|live| self.live(live, now_ms)).unwrap_or_default(),
            "gap" => {
                let reference = self.reference();
                self.asks.push(Say::Status { reference });
                self.order.forget();
                let mut shown = self.release();
                shown.extend([
                    self.quiet("some events in between are no longer available; `kiso trace` shows every run")
                ]);
                shown
            }
            _ => Vec::new(),
        }
    }

    /// Returns the files that were created since the last call.
    fn made(&mut self) -> Vec<ScreenText> {
        let files = std::mem::take(&mut self.files);
        told::files(self.paint, &self.work, &files).into_iter().map(ScreenText::Note).collect()
    }

    /// Handles a message of another person, or of the schedule.
    fn message(&self, message: &MessageLine) -> Vec<ScreenText> {
        let mine = self.open.iter().any(|(id, _)| *id == message.id)
            || self.answered.contains(&message.id)
            || self.asked.values().any(|asked| matches!(asked, Request::Message { text, .. } if *text == message.text));
        if message.role != "user" || mine {
            return Vec::new();
        }
        let line = message.text.split_whitespace().collect::<Vec<_>>().join(" ");
        vec![self.quiet(&format!("» {}", clip(&printable_line(&line), STRANGER)))]
    }

    fn run_line(&mut self, line: RunNotice, now_ms: i64) -> Vec<ScreenText> {
        self.changed = true;
        if line.status == "running" {
            self.order.begin(&line.id);
            self.begin(line.id, now_ms);
            return Vec::new();
        }
        if line.status == "waiting" {
            // Texts of a run that continues later are not dropped.
            drop(self.run.take_if(|run| run.id == line.id));
            return text(self.planner.leave()).into_iter().collect();
        }
        // Its last events may arrive after this; the rest of the step's text waits for them, or for the reply.
        self.over.clone_from(&line.id);
        self.ended = true;
        let Some(run) = self.run.take_if(|run| run.id == line.id) else { return Vec::new() };
        self.exit = match line.status.as_str() {
            "done" => Exit::Done,
            "failed" if run.limit => Exit::Limit,
            "failed" => LastError::exit(run.last),
            _ => Exit::Failed,
        };
        // The reply may arrive after the end of its run, and is compared with the text that was printed already.
        text(self.planner.leave()).into_iter().collect()
    }

    fn begin(&mut self, id: String, now_ms: i64) {
        if self.run.as_ref().is_none_or(|run| run.id != id) {
            let (thought, output) = ("beginning".to_owned(), String::new());
            let since_ms = now_ms;
            self.run =
                Some(Doing { id, since_ms, thought, output, cancelled: false, last: None, limit: false, reasoned: 0 });
        }
    }

    fn step(&mut self, step: StepLine) -> Vec<ScreenText> {
        let mut shown = match read::<Event>(step.body) {
            Some(event) => self.event(&step.run, event),
            None => Vec::new(),
        };
        self.order.hear(&step.run, step.seq);
        shown.extend(self.release());
        shown
    }

    fn event(&mut self, run: &str, event: Event) -> Vec<ScreenText> {
        if let Some(run) = self.run.as_mut().filter(|doing| doing.id == run) {
            run.note(&event);
        }
        if let StepResult::Finished { gone, .. } = &event.result {
            self.files.retain(|file| !gone.contains(&file.path));
        }
        for file in made_by(&event) {
            file.add_to(&mut self.files, MAX_DELIVERED);
        }
        let mut shown: Vec<ScreenText> = text(self.planner.leave()).into_iter().collect();
        // Text written before a call is shown above the line about the call.
        if matches!(&event.result, StepResult::Acted { calls, .. } if !calls.is_empty()) && self.reply.role == "actor" {
            shown.extend(text(self.reply.leave()));
        }
        shown.extend(told::lines(self.paint, &event, &self.skills).into_iter().map(ScreenText::Note));
        // A model's text for the user was shown while it was written, and notices are among the lines.
        if let Some(said) = event.notification().filter(|_| !is_written(&event)) {
            shown.push(ScreenText::Text(format!("{}\n", printable(said.trim_end()))));
        }
        shown
    }

    fn live(&mut self, live: LiveLine, now_ms: i64) -> Vec<ScreenText> {
        if live.run == self.over {
            return Vec::new();
        }
        self.begin(live.run.clone(), now_ms);
        if let Some(run) = &mut self.run {
            match &live.said {
                LiveText::Thought { text, .. } => (run.thought, run.output) = (text.clone(), String::new()),
                LiveText::Output { text } => {
                    if let Some(line) = text.lines().rev().map(str::trim).find(|line| !line.is_empty()) {
                        run.output = clip(&printable_line(line), OUTPUT);
                    }
                }
                _ => {}
            }
        }
        self.order.push(live);
        self.release()
    }

    /// Prints the held back texts that no longer have to wait.
    fn release(&mut self) -> Vec<ScreenText> {
        let mut shown = Vec::new();
        while let Some(live) = self.order.next() {
            shown.extend(self.print_live(live));
        }
        shown
    }

    fn print_live(&mut self, live: LiveLine) -> Vec<ScreenText> {
        let mut shown = Vec::new();
        match live.said {
            LiveText::Thought { kind, text: thought } => {
                match kind.as_str() {
                    "reasoning" if self.paint.is_coloured() => shown.extend(self.reasoning(&thought)),
                    "synthesizing" | "thinking" => self.reply.written.part(),
                    // Text before a call is not part of the reply.
                    "working" if self.reply.role == "actor" => shown.extend(text(self.reply.leave())),
                    _ => {}
                }
            }
            LiveText::Token { role, text: piece } => {
                let stream = if role == "planner" { &mut self.planner } else { &mut self.reply };
                shown.extend(text(stream.push(&live.run, &role, &piece)));
            }
            LiveText::Restart { role } => {
                let stream = if role == "planner" { &mut self.planner } else { &mut self.reply };
                let had = !stream.written.has_no_text();
                shown.extend(text(stream.leave()));
                if had {
                    let void = "the text so far is not the answer";
                    shown.push(ScreenText::Note(void.to_owned()));
                }
            }
            LiveText::Output { .. } | LiveText::Other => {}
        }
        shown
    }

    /// Returns a dimmed line of a model's reasoning; only the first lines of a run are shown.
    fn reasoning(&mut self, line: &str) -> Option<ScreenText> {
        let run = self.run.as_mut().filter(|run| run.reasoned <= MAX_REASONED)?;
        run.reasoned += 1;
        let line = match run.reasoned {
            shown if shown <= MAX_REASONED => format!("  {}", printable_line(line)),
            _ => format!("  … (`kiso trace {}` has all of it)", run.id),
        };
        Some(self.quiet(&line))
    }

    /// Returns a note about progress, less bright than other text.
    pub(super) fn quiet(&self, text: &str) -> ScreenText {
        ScreenText::Note(self.paint.dim(&self.form.wrap(text)))
    }

    fn reference(&mut self) -> String {
        self.said += 1;
        self.said.to_string()
    }
}

fn text(text: String) -> Option<ScreenText> {
    (!text.is_empty()).then_some(ScreenText::Text(text))
}

#[cfg(test)]
mod tests {
    use super::super::markdown::Looks;
    use super::*;
    use kiso_base::config::Config;
    use kiso_base::home::Home;
    use kiso_plan::plan::{Task, TaskKind};
    use kiso_plan::report::{TaskReport, TaskStatus};
    use kiso_sandbox::skill::Quiet;
    use kiso_store::store::Store;
    use serde_json::Value;
    use serde_json::json;
    use std::sync::Arc;

    struct Scene {
        talk: Talk,
        _dir: tempfile::TempDir,
    }

    fn scene() -> Scene {
        let dir = tempfile::tempdir().unwrap();
        let home = Home::open(&dir.path().join("home")).unwrap();
        let config = Config::load(&home).unwrap();
        let store = Store::open(&home.store_path()).unwrap();
        let skills = Skills::new(home, config, store, Arc::new(Quiet));
        let looks = Looks { paint: Paint::never(), width: 60 };
        Scene { talk: Talk::new(TextForm::Rendered(looks), skills, PathBuf::from("/w")), _dir: dir }
    }

    impl Scene {
        /// Returns the output for a line of the daemon.
        fn hear(&mut self, line: Value) -> String {
            let shown = self.talk.hear(serde_json::from_value(line).unwrap(), 5_000);
            shown
                .into_iter()
                .map(|(ScreenText::Text(text) | ScreenText::Note(text))| format!("{}\n", text.trim_end()))
                .collect()
        }

        fn event(&mut self, event: &str, data: Value) -> String {
            self.hear(json!({ "type": "event", "id": 1, "event": event, "data": data }))
        }

        fn run(&mut self, status: &str) -> String {
            self.event("run", json!({ "id": "r1", "status": status }))
        }

        fn live(&mut self, said: Value) -> String {
            let mut data = json!({ "session": "default", "run": "r1" });
            data.as_object_mut().unwrap().extend(said.as_object().unwrap().clone());
            self.event("live", data)
        }

        fn reply(&mut self, text: &str) -> String {
            let message = json!({ "id": 8, "role": "assistant", "text": text, "run": "r1" });
            self.hear(json!({ "type": "outbound", "id": 9, "answers": [7], "message": message }))
        }

        fn ask(&mut self) {
            let said = self.talk.say(" what is it? ", "k".to_owned(), 1_000);
            let Say::Inbound { text, reference, .. } = said else { panic!("{said:?}") };
            assert_eq!(text, "what is it?");
            self.hear(json!({ "type": "accepted", "ref": reference, "message": 7, "status": "queued" }));
        }
    }

    #[test]
    fn files_are_shown_once_by_their_path_here() {
        let mut scene = scene();
        scene.ask();
        let mut report = TaskReport::new(Task::new(TaskKind::Exec, "x"), TaskStatus::Done, "");
        let (path, media_type) = ("pub/a.csv".to_owned(), "text/csv".to_owned());
        report.files = vec![FileNote { path, media_type, bytes: 3, title: None, link: None }];
        let result = StepResult::Executed { task: 0, report: Box::new(report), call: None };
        let mut event = serde_json::to_value(result).unwrap();
        event["moves"] = json!([]);
        scene.event("event", json!({ "run": "r1", "body": event }));
        let reply = json!({ "status": "done", "blocks": [{ "type": "text", "text": "Done." }], "files": [] });
        let message = json!({ "id": 8, "role": "assistant", "run": "r1", "reply": reply,
            "text": "Done.\n\nFiles:\n- pub/a.csv (text/csv, 3 B)" });
        let shown = scene.hear(json!({ "type": "outbound", "id": 9, "answers": [7], "message": message }));
        assert_eq!(shown, "\nDone.\n/w/pub/a.csv (3 B)\n");
    }

    /// They are dimmed, so they are shown only on a terminal that supports that.
    #[test]
    fn the_first_lines_of_thoughts_are_shown_on_a_terminal() {
        let thought = |text: &str| json!({ "type": "thought", "kind": "reasoning", "text": text, "since_ms": 5 });
        let mut plain = scene();
        plain.ask();
        plain.run("running");
        assert_eq!(plain.live(thought("The sea is wide.")), "");
        let mut coloured = scene();
        coloured.talk.paint = Paint::always();
        coloured.ask();
        coloured.run("running");
        let shown: String = (0..20).map(|n| coloured.live(thought(&format!("thought {n}")))).collect();
        assert!(shown.contains("thought 0") && shown.contains(&format!("thought {}", MAX_REASONED - 1)), "{shown}");
        assert!(!shown.contains(&format!("thought {MAX_REASONED}")), "{shown}");
        assert_eq!(shown.matches("kiso trace r1").count(), 1, "{shown}");
    }

    #[test]
    fn a_reply_that_was_streamed_is_printed_once() {
        for ended_first in [false, true] {
            let mut scene = scene();
            scene.ask();
            assert_eq!(scene.talk.busy().unwrap(), Activity { what: "waiting".to_owned(), since_ms: 1_000 });
            scene.run("running");
            let token = |text: &str| json!({ "type": "token", "role": "worker", "text": text });
            assert_eq!(scene.live(token("It is **one**.\n\nAnd ")), "\nIt is **one**.\n");
            assert_eq!(scene.talk.busy().unwrap().what, "And");
            scene.live(token("two"));
            if ended_first {
                scene.run("done");
            }
            assert_eq!(scene.reply("It is **one**.\n\nAnd two."), "\nAnd two.\n");
            scene.run("done");
            assert!(scene.talk.is_idle());
            assert_eq!(scene.live(token("late")), "", "what comes too late revives nothing");
            assert_eq!((scene.talk.busy(), scene.talk.exit()), (None, Exit::Done));
        }
    }

    /// The events of built-in models are recorded together, and sent after the reply that they led to.
    #[test]
    fn the_lines_of_steps_stand_before_the_reply_that_they_led_to() {
        let mut scene = scene();
        scene.ask();
        scene.run("running");
        let token = |text: &str| json!({ "seq": 4, "type": "token", "role": "worker", "text": text });
        assert_eq!(scene.live(token("| a | b |\n|---|---|\n")), "");
        assert_eq!(scene.live(token("| 1 | 2 |\n\nThat is all.\n\n")), "");
        let mut event = |seq: u32, result: StepResult| {
            let mut body = serde_json::to_value(result).unwrap();
            body["moves"] = json!([]);
            scene.event("event", json!({ "run": "r1", "seq": seq, "body": body }))
        };
        let report = TaskReport::new(Task::new(TaskKind::Exec, "x"), TaskStatus::Done, "");
        let shown = event(2, StepResult::Executed { task: 0, report: Box::new(report), call: None });
        assert!(shown.starts_with('✓') && shown.lines().count() == 1, "{shown}");
        let shown = event(3, StepResult::CallsStarted);
        assert!(shown.contains("a  b") && shown.contains("1  2"), "{shown}");
        let rest = scene.reply("| a | b |\n|---|---|\n| 1 | 2 |\n\nThat is all.");
        assert!(rest.trim() == "That is all.", "{rest}");
    }

    #[test]
    fn what_was_written_before_a_call_stands_above_it() {
        let mut scene = scene();
        scene.ask();
        scene.run("running");
        assert_eq!(scene.live(json!({ "type": "token", "role": "actor", "text": "I look." })), "");
        let call = kiso_plan::call::ToolCall {
            name: "exec".to_owned(),
            args: json!({ "command": "ls" }).to_string(),
            ..Default::default()
        };
        let mut acted = |calls: Vec<_>| {
            let acted = StepResult::Acted { text: String::new(), calls, call: kiso_graph::step::Call::default() };
            let mut body = serde_json::to_value(acted).unwrap();
            body["moves"] = json!([]);
            scene.event("event", json!({ "run": "r1", "seq": 2, "body": body }))
        };
        assert_eq!(acted(vec![call]), "\nI look.\n  → $ ls\n");
        scene.live(json!({ "type": "token", "role": "actor", "text": "Two files." }));
        let mut body = serde_json::to_value(StepResult::CallsStarted).unwrap();
        body["moves"] = json!([]);
        scene.event("event", json!({ "run": "r1", "seq": 3, "body": body }));
        assert_eq!(scene.reply("Two files."), "\nTwo files.\n", "the reply is printed once");
    }

    #[test]
    fn the_line_above_the_prompt_has_the_last_line_of_a_command() {
        let mut scene = scene();
        scene.run("running");
        scene.live(json!({ "type": "thought", "kind": "working", "text": "$ make" }));
        scene.live(json!({ "type": "output", "call": 0, "stream": "stdout", "text": "one\ntwo\n" }));
        assert_eq!(scene.talk.busy().unwrap().what, "$ make: two");
        scene.live(json!({ "type": "thought", "kind": "thinking", "text": "deciding" }));
        assert_eq!(scene.talk.busy().unwrap().what, "deciding");
    }

    #[test]
    fn an_answer_that_broke_off_is_void() {
        let mut scene = scene();
        scene.run("running");
        scene.live(json!({ "type": "token", "role": "worker", "text": "Half of" }));
        let said = scene.live(json!({ "type": "restart", "role": "worker" }));
        assert_eq!(said, "\nHalf of\nthe text so far is not the answer\n");
        assert_eq!(scene.reply("All of it."), "\nAll of it.\n");
    }

    #[test]
    fn what_others_write_is_told_and_what_was_written_here_is_not() {
        let mut scene = scene();
        scene.ask();
        let message = |id: i64, text: &str| json!({ "id": id, "role": "user", "text": text, "run": null });
        assert_eq!(scene.event("message", message(7, "what is it?")), "");
        assert_eq!(scene.event("message", message(6, "and\n\x1b[2J this")), "» and ⟦U+001B⟧[2J this\n");
    }

    #[test]
    fn a_message_outlives_the_connection_and_a_command_is_said_again() {
        let mut scene = scene();
        scene.talk.say("hello", "k".to_owned(), 1_000);
        let said = scene.talk.say("/model  x ", "k".to_owned(), 1_000);
        assert!(matches!(said, Say::Command { command, args, .. } if command == "model" && args == "x"));
        let lost = scene.talk.lost();
        assert!(
            matches!(&lost[..], [_, ScreenText::Note(note)] if note.starts_with("/model got no answer")),
            "{lost:?}"
        );
        assert!(!scene.talk.is_idle(), "the message waits");
        assert_eq!((scene.talk.busy(), scene.talk.connected(true).len()), (None, 1));
        // The reply arrives before the confirmation.
        scene.reply("Hi");
        scene.hear(json!({ "type": "accepted", "ref": "1", "message": 7, "status": "known" }));
        assert!(scene.talk.is_idle());
    }

    #[test]
    fn how_a_run_ended_is_how_the_chat_ends() {
        let stopped =
            json!({ "kind": "stopped", "limit": { "limit": "max_tasks", "value": 1, "setting": "limits.max_tasks" } });
        for (body, status, exit) in [
            (Value::Null, "done", Exit::Done),
            (Value::Null, "failed", Exit::Failed),
            (Value::Null, "cancelled", Exit::Failed),
            (stopped, "failed", Exit::Limit),
        ] {
            let mut scene = scene();
            scene.run("running");
            scene.event("event", json!({ "run": "r1", "seq": 1, "kind": "x", "body": body }));
            scene.run(status);
            assert_eq!(scene.talk.exit(), exit, "{status}");
        }
        let mut scene = scene();
        let said = scene.hear(json!({ "type": "error", "code": "queue_full", "message": "full", "hint": "later" }));
        assert_eq!((said.as_str(), scene.talk.exit()), ("full; later\n", Exit::Limit));
    }

    #[test]
    fn a_run_is_cancelled_once_and_a_gap_is_asked_about() {
        let mut scene = scene();
        assert_eq!(scene.talk.cancel(false), None);
        scene.run("running");
        assert!(matches!(scene.talk.cancel(false), Some(Say::Command { command, .. }) if command == "cancel"));
        assert_eq!(scene.talk.cancel(false), None);
        scene.event("gap", json!({ "missed_from": 1, "to": 2 }));
        assert!(matches!(scene.talk.asks()[..], [Say::Status { .. }]));
        scene.hear(json!({ "type": "status", "running": null, "queued": 0 }));
        assert_eq!(scene.talk.busy(), None);
        assert_eq!(scene.hear(json!({ "type": "of a later version", "x": 1 })), "");
    }
}
