//! Slash commands: answered at once by the host, without a model, in the same way in every channel.

use super::workspace::{self, FilePath};
use super::{folder_command, search, version};
use crate::drive::{DriveError, EarlierWork, FolderFailure, RevertedAcceptance, RunExecutor, UndoFailure};
use kiso_base::clock::{minute, now_ms};
use kiso_base::config::Config;
use kiso_base::home::SessionName;
use kiso_base::role::Role;
use kiso_plan::plan::CallerScope;
use kiso_plan::report::often;
use kiso_sandbox::effect::undo::{UndoChoice, UndoError, UndoKind, UndoResult};
use kiso_sandbox::engine::limits::{Budget, HitCell};
use kiso_sandbox::skill::near_names;
use kiso_store::memory;
use kiso_store::store::{ModelChoice, RunLine, RunStatus, StoreError, TaskRow, TaskState};

/// A parsed command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SlashCommand {
    New,
    /// Contains the new model, if one is named.
    Model(Option<String>),
    Models,
    Memory,
    Status,
    Help,
    Cancel,
    Trace,
    Skills,
    /// A run, or none, and "force".
    Undo(UndoKind, Vec<String>),
    /// Whether it is accepted, and the arguments: a number, and the accepted effects.
    Approval(bool, Vec<String>),
    /// `accept` or `discard`, and paths.
    Diff(Vec<String>),
    /// Files of the workspace.
    Trust(Vec<String>),
    /// Another version of the last turn, which the intake handles.
    Revise(RevisedText),
    /// The words to search for.
    Search(String),
    /// The number of a version, or nothing.
    Version(String),
    /// The unknown word.
    Unknown(String),
}

/// The message of another version of a turn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RevisedText {
    /// `undo` also undoes the file changes of the replaced run.
    Same {
        undo: bool,
    },
    New(String),
}

/// Name, arguments, and description.
pub const COMMANDS: [(&str, &str, &str); 19] = [
    ("new", "", "clear the context: earlier messages are kept, but no longer sent to the model"),
    (
        "model",
        " [[ROLE] MODEL]",
        "show this session's models, or switch all roles, or one, to another model; `default` goes back",
    ),
    ("models", "", "list the models of the configuration"),
    ("memory", "", "show core memory"),
    ("status", "", "show the status of this session"),
    ("cancel", "", "stop the current run"),
    ("trace", "", "show what the last message did"),
    ("retry", " [undo]", "answer the last message again; `undo` first restores the files that its run changed"),
    ("edit", " TEXT", "replace the last message by TEXT, and answer that"),
    ("version", " [NUMBER]", "list the versions of the last turn, or continue from another one"),
    ("search", " WORDS", "find earlier messages of this session"),
    ("undo", " [RUN] [force]", "restore the files to before the last run, or before RUN"),
    ("redo", " [RUN] [force]", "take an undo back"),
    ("diff", " [accept|discard [PATH…]]", "show what runs changed in this session's folders, apply it, or drop it"),
    (
        "approve",
        " [NUMBER [EFFECT…] [always]]",
        "approve what a run asks for, or only some of it; without a number, show what is waiting",
    ),
    ("refuse", " NUMBER", "refuse what a run asks for"),
    (
        "trust",
        " FILE…",
        "take files in /work for your own words: what is decided after they were read is not asked about",
    ),
    ("skills", "", "list the skills"),
    ("help", "", "list these commands"),
];

/// Maximum number of files in one `/trust`.
const MAX_TRUSTED: usize = 100;

/// Number of facts that `/memory` shows.
const FACTS: u32 = 20;

/// Number of tasks that `/trace` shows.
const TASKS: usize = 20;

impl SlashCommand {
    /// Parses the command in a message; `None` if the message is not a command, such as a path.
    pub fn parse(text: &str) -> Option<SlashCommand> {
        let rest = text.trim().strip_prefix('/')?;
        let (word, argument) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
        if word.is_empty() || !word.chars().all(|c| c.is_ascii_lowercase()) {
            return None;
        }
        let argument = argument.trim();
        let words = || argument.split_whitespace().map(str::to_owned).collect();
        Some(match word {
            "new" => SlashCommand::New,
            "model" => SlashCommand::Model((!argument.is_empty()).then(|| argument.to_owned())),
            "models" => SlashCommand::Models,
            "memory" => SlashCommand::Memory,
            "status" => SlashCommand::Status,
            "help" => SlashCommand::Help,
            "cancel" => SlashCommand::Cancel,
            "trace" => SlashCommand::Trace,
            "skills" => SlashCommand::Skills,
            "undo" => SlashCommand::Undo(UndoKind::Undo, words()),
            "redo" => SlashCommand::Undo(UndoKind::Redo, words()),
            "approve" => SlashCommand::Approval(true, words()),
            "refuse" => SlashCommand::Approval(false, words()),
            "diff" => SlashCommand::Diff(quoted_words(argument)),
            "trust" => SlashCommand::Trust(words()),
            "retry" => SlashCommand::Revise(RevisedText::Same { undo: argument == "undo" }),
            "edit" => SlashCommand::Revise(RevisedText::New(argument.to_owned())),
            "version" => SlashCommand::Version(argument.to_owned()),
            "search" => SlashCommand::Search(argument.to_owned()),
            // "/tmp is full" is about a path, but "/modle x" is a mistyped command.
            word if !argument.is_empty() && near_names(word, COMMANDS.iter().map(|(name, ..)| *name)).is_empty() => {
                return None;
            }
            word => SlashCommand::Unknown(word.to_owned()),
        })
    }
}

/// Splits a text into words; a quoted word may contain spaces.
fn quoted_words(text: &str) -> Vec<String> {
    let (mut words, mut word, mut quote) = (Vec::new(), None::<String>, None);
    for c in text.chars() {
        match (c, quote) {
            ('"' | '\'', None) => {
                quote = Some(c);
                word.get_or_insert_default();
            }
            (c, Some(open)) if c == open => quote = None,
            (c, None) if c.is_whitespace() => words.extend(word.take()),
            (c, _) => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    words
}

/// A command with the context for its answer.
#[derive(Debug)]
pub struct CommandContext<'a> {
    pub drive: &'a RunExecutor,
    pub session: &'a SessionName,
    /// Number of waiting messages of all sessions.
    pub queued: u64,
    /// Start time of the daemon; `None` without a daemon.
    pub began_ms: Option<i64>,
    /// Whether `/cancel` stopped something.
    pub stopped: bool,
    /// Whether the command counts as typed by a person.
    pub by_person: bool,
    /// The caller: folders of the machine are for administrators.
    pub caller: CallerScope,
}

impl CommandContext<'_> {
    pub async fn answer(&self, command: SlashCommand) -> Result<String, DriveError> {
        match command {
            SlashCommand::New => self.new_segment().await,
            SlashCommand::Model(None) => self.show_model().await,
            SlashCommand::Model(Some(model)) => self.set_model(&model).await,
            SlashCommand::Models => Ok(self.models()),
            SlashCommand::Memory => self.memory().await,
            SlashCommand::Status => self.status().await,
            SlashCommand::Help => Ok(help(&self.drive.config)),
            SlashCommand::Cancel if self.stopped => Ok("Stopping the current run.".to_owned()),
            SlashCommand::Cancel => Ok("Nothing is running in this session.".to_owned()),
            SlashCommand::Trace => self.trace().await,
            SlashCommand::Skills => Ok(self.skills()),
            SlashCommand::Undo(kind, words) => self.undo(kind, &words).await,
            SlashCommand::Approval(accepts, words) => self.approval(accepts, &words).await,
            SlashCommand::Diff(words) => {
                Ok(folder_command::answer(self.drive, self.session, &words, (self.caller, self.by_person)).await)
            }
            SlashCommand::Trust(files) => self.trust(files).await,
            SlashCommand::Search(words) => search::answer(self.drive, self.session, &words).await,
            SlashCommand::Version(number) => version::answer(self.drive, self.session, &number).await,
            SlashCommand::Revise(_) => {
                Ok("Only a daemon replaces a turn: start `kiso serve`, and use `kiso chat` or the page.".to_owned())
            }
            SlashCommand::Unknown(word) => Ok(format!("There is no command /{word}.\n\n{}", help(&self.drive.config))),
        }
    }

    async fn new_segment(&self) -> Result<String, DriveError> {
        let session = self.session.clone();
        self.drive.store.write(move |tx| tx.break_session(&session, now_ms())).await?;
        Ok("Context cleared. Earlier messages won't be sent to the model. Memory, the model setting and the log are kept.".to_owned())
    }

    async fn show_model(&self) -> Result<String, DriveError> {
        let drive = self.drive.for_session(self.session).await?;
        Ok(format!("The model of this session is {}.", drive.models.summary()))
    }

    /// `MODEL` for every role that works on a message, or `ROLE MODEL` for one.
    async fn set_model(&self, words: &str) -> Result<String, DriveError> {
        let (role, model) = match words.split_once(char::is_whitespace) {
            Some((role, model)) => (Some(role), model.trim()),
            None => (None, words),
        };
        if let Some(role) = role
            && Role::named(role).is_none()
        {
            return Ok(format!("The model was not changed: {role:?} is not a role; there are {}.", Role::names()));
        }
        let chosen = (model != "default").then(|| model.to_owned());
        let session = self.session.clone();
        let before = self.drive.store.read(move |view| view.model_choice(&session)).await?;
        let mut choice = match role {
            Some(_) => before,
            None => ModelChoice { all: chosen.clone(), ..ModelChoice::default() },
        };
        if let (Some(role), Some(model)) = (role, &chosen) {
            choice.roles.insert(role.to_owned(), model.clone());
        }
        if let Err(why) = self.drive.models_with(&choice) {
            return Ok(format!("The model was not changed: {why}."));
        }
        let (session, of) = (self.session.clone(), role.map(str::to_owned));
        let write = self.drive.store.write(move |tx| match of {
            Some(role) => tx.set_role_model(&session, &role, chosen.as_deref(), now_ms()),
            None => tx.set_session_model(&session, chosen.as_deref(), now_ms()),
        });
        write.await?;
        let drive = self.drive.for_session(self.session).await?;
        Ok(format!("The model of this session is now {}.", drive.models.summary()))
    }

    fn models(&self) -> String {
        let config = &self.drive.config;
        let lines = config.model_strings().into_iter().map(|string| {
            let settings = config.named(string).ok().and_then(|named| config.settings_of(named));
            let budget = settings.and_then(|settings| settings.context_budget).unwrap_or(config.context.budget_tokens);
            let default = if string == config.model { ", the default" } else { "" };
            format!("- {string}: a context of {budget} tokens{default}")
        });
        lines.collect::<Vec<_>>().join("\n")
    }

    async fn memory(&self) -> Result<String, DriveError> {
        let core = memory::core(&self.drive.store).await?;
        let facts = self.drive.store.read(|view| view.facts(FACTS)).await?;
        let mut text = match core.as_object().is_some_and(|core| core.is_empty()) {
            true => "Core memory is empty.".to_owned(),
            false => format!("```json\n{core:#}\n```"),
        };
        if !facts.is_empty() {
            text += "\n\nFacts:";
            facts.iter().for_each(|fact| text += &format!("\n- {}", fact.text));
        }
        Ok(text)
    }

    async fn status(&self) -> Result<String, DriveError> {
        let drive = self.drive.for_session(self.session).await?;
        let session = self.session.clone();
        let read = self.drive.store.read(move |view| {
            Ok((
                view.segment_start(&session)?,
                view.unfinished_runs(Some(&session))?,
                view.queued_jobs(&session, 1_000)?.len(),
            ))
        });
        let (start, running, waiting) = read.await?;
        let slots = self.drive.models.slots();
        let begins = match start {
            0 => "at the first message".to_owned(),
            after => format!("after message {after}"),
        };
        let doing = match running.first() {
            Some(run) => format!("run {run} is running"),
            None => "nothing is running".to_owned(),
        };
        let up = self.began_ms.map(|began| format!("- up for {}\n", duration(now_ms() - began)));
        Ok(format!(
            "{}- model: {}\n- segment begins {begins}\n- here: {doing}, {waiting} waiting\n\
             - all sessions: {} waiting; {} model calls waiting, {} slots free",
            up.unwrap_or_default(),
            drive.models.summary(),
            self.queued,
            slots.waiting(),
            slots.free(),
        ))
    }

    async fn trace(&self) -> Result<String, DriveError> {
        let session = self.session.clone();
        let read = self.drive.store.read(move |view| {
            let last = view.list_runs(Some(&session), None, 1)?.pop();
            let Some(run) = last else { return Ok(None) };
            let (tasks, cut_off) = (view.tasks_of(&run.id)?, 1 + view.times_resumed(&run.id)?);
            Ok(Some((run, tasks, cut_off)))
        });
        let Some((run, tasks, cut_off)) = read.await? else {
            return Ok("Nothing has run in this session yet.".to_owned());
        };
        Ok(trace(&run, &tasks, cut_off))
    }

    /// Undoes or redoes a run, and describes the changes.
    async fn undo(&self, kind: UndoKind, words: &[String]) -> Result<String, DriveError> {
        let force = words.iter().any(|word| word == "force");
        let named: Vec<_> = words.iter().filter(|word| *word != "force").collect();
        let run = match named.as_slice() {
            [] => None,
            [run] => match self.run_here(run).await? {
                Ok(run) => Some(run),
                Err(why) => return Ok(why),
            },
            _ => return Ok(format!("/{kind} takes one run, and `force`.")),
        };
        if run.is_none() && self.by_person {
            match self.drive.revert_acceptance(self.session, self.caller, kind, force).await {
                Ok(Some(RevertedAcceptance { folder, acceptance })) => {
                    let (changes, verb) = (acceptance.changes, kind.participle());
                    let next = match (kind, acceptance.waits) {
                        (UndoKind::Undo, true) => " The changes wait again: `/diff` shows them, `/redo` applies them.",
                        (UndoKind::Undo, false) => " `/redo` applies the changes again.",
                        (UndoKind::Redo, _) => "",
                    };
                    let at = folder.at;
                    return Ok(format!("What was applied to {at} ({changes} of its entries) was {verb}.{next}"));
                }
                Ok(None) => {}
                Err(FolderFailure::Rest(UndoFailure::Drive(error))) => return Err(error),
                Err(error) => return Ok(format!("Nothing was changed: {error}.")),
            }
        }
        if run.is_none() && kind == UndoKind::Undo {
            match self.drive.earlier_work(self.session).await {
                Ok(Some(EarlierWork { last, entry })) => {
                    let (run, at) = (entry.run().unwrap_or_default(), minute(entry.header.at_ms));
                    return Ok(format!(
                        "Nothing was changed: the last run ({}) changed no files. `/undo {run}` undoes what run {run} changed ({at}).",
                        last.id
                    ));
                }
                Ok(None) => {}
                Err(UndoFailure::Drive(error)) => return Err(error),
                Err(error) => return Ok(format!("Nothing was changed: {error}.")),
            }
        }
        let choice = UndoChoice { run, task: None };
        Ok(match self.drive.undo(self.session, kind, choice, force).await {
            Ok(done) => undone(kind, &done),
            Err(error @ (UndoFailure::Undo(UndoError::Conflict(_)) | UndoFailure::Accepted { .. })) => {
                format!("Nothing was changed: {error}.\n\n`/{kind} force` does it all the same.")
            }
            Err(UndoFailure::Drive(error)) => return Err(error),
            Err(error) => format!("Nothing was changed: {error}."),
        })
    }

    /// Returns the id of a run of this session, or an error message.
    async fn run_here(&self, text: &str) -> Result<Result<String, String>, DriveError> {
        let (text, session) = (text.to_owned(), self.session.clone());
        let found = self.drive.store.read(move |view| {
            let id = view.resolve_run(&text)?;
            Ok(view.run(&id)?.filter(|run| run.session == session).map(|run| run.id.to_string()))
        });
        match found.await {
            Ok(Some(run)) => Ok(Ok(run)),
            Ok(None) => Ok(Err("That run is of another session.".to_owned())),
            Err(error @ (StoreError::NoRun { .. } | StoreError::Ambiguous { .. })) => Ok(Err(format!("{error}."))),
            Err(error) => Err(error.into()),
        }
    }

    /// Gives files the user's label.
    async fn trust(&self, files: Vec<String>) -> Result<String, DriveError> {
        if !self.by_person {
            return Ok("Only a person can trust a file.".to_owned());
        }
        if files.is_empty() {
            return Ok("/trust takes the files in /work that are to count as your own words.".to_owned());
        }
        let budget = Budget::upload(&self.drive.config.engine);
        let quota = self.drive.tools.skills().exec_quota(self.session, &budget, HitCell::default(), None);
        let (home, session) = (self.drive.home.clone(), self.session.clone());
        let trusted = tokio::task::spawn_blocking(move || {
            let trust = |name: &String| {
                let path = name.strip_prefix("/work/").unwrap_or(name);
                let done = FilePath::parse(path).and_then(|path| workspace::trust(&home, &session, &path, &quota));
                match done {
                    Ok(()) => format!("- {path} counts as your own words now."),
                    Err(error) => format!("- {path}: {error}."),
                }
            };
            files.iter().take(MAX_TRUSTED).map(trust).collect::<Vec<_>>().join("\n")
        });
        Ok(trusted.await.unwrap_or_else(|error| std::panic::resume_unwind(error.into_panic())))
    }

    fn skills(&self) -> String {
        let cards = self.drive.tools.cards();
        let tools = cards.iter().map(|card| format!("- {} ({}): {}", card.name, card.category, card.summary));
        let agent = self.drive.tools.skills().agent_skills().into_iter().flatten();
        let agent = agent.map(|skill| format!("- {} (Agent Skill): {}", skill.name, skill.description));
        tools.chain(agent).collect::<Vec<_>>().join("\n")
    }
}

fn undone(kind: UndoKind, done: &UndoResult) -> String {
    let mut text = format!("Run {} was {}.", done.plan.run, kind.participle());
    for change in done.plan.changes.iter().take(TASKS) {
        text += &format!("\n- {} `{}`", change.change.name(), change.path.replace('`', "'"));
    }
    if done.plan.changes.len() > TASKS {
        text += &format!("\n- and {} more", done.plan.changes.len() - TASKS);
    }
    for problem in &done.problems {
        text += &format!("\n\n{problem}.");
    }
    text + &format!("\n\n`/{}` takes this back.", kind.opposite())
}

/// `cut_off` is the number of interruptions of a held run.
fn trace(run: &RunLine, tasks: &[TaskRow], cut_off: u32) -> String {
    let state = match (run.status, run.ended_ms) {
        (RunStatus::Running, _) => "is under way".to_owned(),
        (RunStatus::Waiting, _) => "is waiting for your approval (`/approve` and `/refuse`)".to_owned(),
        (RunStatus::Held, _) => format!("was cut off {}, and waits for somebody to try it again", often(cut_off)),
        (status, ended) => {
            format!("{} after {}", status.as_str(), duration(ended.unwrap_or(run.started_ms) - run.started_ms))
        }
    };
    let mut text = format!("Run {} {state}.", run.id);
    for task in tasks.iter().take(TASKS) {
        let mark = match task.status {
            TaskState::Done => "✓",
            TaskState::Failed | TaskState::Interrupted => "✗",
            TaskState::Running => "…",
            TaskState::Planned | TaskState::Dropped => "·",
        };
        text += &format!("\n- {mark} {}", task.label);
        if let Some(error) = &task.error {
            text += &format!(": {}", error.lines().next().unwrap_or_default());
        }
    }
    if tasks.len() > TASKS {
        text += &format!("\n- and {} more", tasks.len() - TASKS);
    }
    text + &format!("\n\n`kiso trace {}` shows every step.", run.id)
}

/// Returns the listed commands: name, arguments, and description. "`/help` lists all available commands as configured under
/// `commands:`"; without that table, returns kiso's own.
pub fn listed(config: &Config) -> Vec<(&str, &str, &str)> {
    if config.commands.is_empty() {
        return COMMANDS.to_vec();
    }
    let own = |name: &str| COMMANDS.iter().find(|(known, ..)| *known == name);
    let listed = config.commands.iter().map(|command| {
        let argument = own(&command.name).map_or(" [TEXT]", |(_, argument, _)| argument);
        (command.name.as_str(), argument, command.description.as_str())
    });
    listed.collect()
}

fn help(config: &Config) -> String {
    let lines = listed(config).into_iter().map(|(name, argument, does)| format!("- /{name}{argument}: {does}"));
    lines.collect::<Vec<_>>().join("\n")
}

/// Formats a duration for a person: "3 d 4 h", "5 min", "1.2 s".
fn duration(ms: i64) -> String {
    let ms = ms.max(0);
    let s = ms / 1_000;
    match s {
        0..60 => format!("{}.{} s", s, ms % 1_000 / 100),
        60..3_600 => format!("{} min {} s", s / 60, s % 60),
        3_600..86_400 => format!("{} h {} min", s / 3_600, s % 3_600 / 60),
        _ => format!("{} d {} h", s / 86_400, s % 86_400 / 3_600),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_words_and_paths_are_not() {
        assert_eq!(SlashCommand::parse(" /new "), Some(SlashCommand::New));
        assert_eq!(SlashCommand::parse("/model"), Some(SlashCommand::Model(None)));
        assert_eq!(
            SlashCommand::parse("/model  openai:gpt "),
            Some(SlashCommand::Model(Some("openai:gpt".to_owned())))
        );
        assert_eq!(SlashCommand::parse("/modle now"), Some(SlashCommand::Unknown("modle".to_owned())));
        assert_eq!(SlashCommand::parse("/dance"), Some(SlashCommand::Unknown("dance".to_owned())));
        assert_eq!(SlashCommand::parse("/tmp is full, why?"), None);
        for text in ["", "new", "/", "/work/a.csv is broken", "/etc/passwd", "/New", "// a comment", "/ new"] {
            assert_eq!(SlashCommand::parse(text), None, "{text}");
        }
    }

    #[test]
    fn the_configuration_knows_every_command() {
        assert_eq!(COMMANDS.map(|(name, ..)| name), kiso_base::config::COMMAND_NAMES);
    }

    #[test]
    fn every_command_is_listed_and_read() {
        for (name, _, _) in COMMANDS {
            assert!(
                !matches!(SlashCommand::parse(&format!("/{name}")), None | Some(SlashCommand::Unknown(_))),
                "{name}"
            );
        }
    }

    #[test]
    fn durations_are_short() {
        let shown: Vec<_> = [-1, 1_250, 65_000, 3_700_000, 90_000_000].into_iter().map(duration).collect();
        assert_eq!(shown, ["0.0 s", "1.2 s", "1 min 5 s", "1 h 1 min", "1 d 1 h"]);
    }
}
