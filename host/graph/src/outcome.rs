//! The outcome of a run.

use serde::{Deserialize, Serialize};

use kiso_plan::block::Block;
use kiso_plan::limits::LimitReached;
use kiso_plan::report::{FileNote, MAX_DELIVERED, TaskReport};

/// How a run ended.
///
/// A run fails if its plan was `blocked`, if planning failed, if the limit of plans is reached, or if the last task other than a
/// message failed. All other runs that reach the end of their plan are done.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "ending", rename_all = "snake_case")]
pub enum Ending {
    Done,
    Failed {
        reason: String,
    },
    /// A limit stopped the run.
    LimitHit(LimitReached),
    /// Its user cancelled it.
    Cancelled,
}

impl Ending {
    /// Returns a text for the user, unless the messages of the run say it; `None` if there is nothing to add.
    pub fn words(&self) -> Option<String> {
        match self {
            Self::Done => None,
            Self::Failed { reason } => Some(reason.clone()),
            Self::Cancelled => Some("The run was cancelled before the work was done.".to_owned()),
            Self::LimitHit(LimitReached { limit, value, setting, because }) => {
                let because = because.as_ref().map(|because| format!(" {because}")).unwrap_or_default();
                Some(format!(
                    "I stopped before the work was done: the run reached its limit {limit} of {value}. The setting \
                     {setting} in config.toml raises it.{because}"
                ))
            }
        }
    }
}

/// The result of a run for its user.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Outcome {
    #[serde(flatten)]
    pub ending: Ending,
    /// The texts of the `msg` tasks with `notify: true`, and the text of the ending.
    pub reply: String,
    /// Every file that a task produced, in order and each path once, with its latest note. At most [`MAX_DELIVERED`].
    pub files: Vec<FileNote>,
    /// Number of further files.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub more_files: u64,
    /// The same as `reply` in parts; empty if all of it is Markdown.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub blocks: Vec<Block>,
    /// Total time of models' reasoning before their answers, in milliseconds.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub thought_ms: u64,
}

impl Outcome {
    /// Creates the outcome of a run with the texts `said` and the `reports`. There is always a reply. It says why a run is not
    /// done, unless `told` says that the user already knows.
    pub(super) fn new<'a>(
        ending: Ending,
        said: &[ReplyText],
        told: bool,
        goal: &str,
        reports: impl Iterator<Item = &'a TaskReport>,
    ) -> Self {
        let mut reply = said.iter().map(|said| said.text.as_str()).collect::<Vec<_>>().join("\n\n");
        let mut blocks: Vec<Block> = said.iter().flat_map(ReplyText::blocks).collect();
        let told_failure = told && matches!(ending, Ending::Failed { .. });
        if let Some(words) = ending.words().filter(|words| !told_failure && !reply.contains(words.as_str())) {
            if !reply.is_empty() {
                reply.push_str("\n\n");
            }
            reply.push_str(&words);
            blocks.push(Block::Text { text: words });
        }
        // If all of it is Markdown, no parts are needed.
        if said.iter().all(|said| said.parts.is_empty()) {
            blocks.clear();
        }
        if reply.is_empty() {
            reply = format!("The plan came to its end without a message for you. Its goal was: {goal}");
        }
        let (mut files, mut more_files): (Vec<FileNote>, u64) = (Vec::new(), 0);
        for report in reports {
            more_files += report.more_files;
            for file in &report.files {
                more_files += u64::from(!file.add_to(&mut files, MAX_DELIVERED));
            }
        }
        Self { ending, reply, files, more_files, blocks, thought_ms: 0 }
    }

    /// Returns the same without the files at these paths.
    pub fn without_files(mut self, gone: &[String]) -> Self {
        self.files.retain(|file| !gone.contains(&file.path));
        self
    }

    /// Creates the outcome of a run that only ends with this text.
    pub fn in_words(ending: Ending, reply: String) -> Self {
        Self { ending, reply, files: Vec::new(), more_files: 0, blocks: Vec::new(), thought_ms: 0 }
    }
}

fn is_zero(count: &u64) -> bool {
    *count == 0
}

/// A text of a run to its user.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct ReplyText {
    pub text: String,
    /// The same in parts; empty if it is Markdown.
    pub parts: Vec<Block>,
}

impl ReplyText {
    fn blocks(&self) -> Vec<Block> {
        match self.parts.is_empty() {
            true => vec![Block::Text { text: self.text.clone() }],
            false => self.parts.clone(),
        }
    }
}

impl From<String> for ReplyText {
    fn from(text: String) -> Self {
        Self { text, parts: Vec::new() }
    }
}
