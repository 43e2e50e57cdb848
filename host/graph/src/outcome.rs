//! How a run ends.

use serde::{Deserialize, Serialize};

use kiso_plan::block::Block;
use kiso_plan::limits::LimitReached;
use kiso_plan::report::{FileNote, MAX_DELIVERED, TaskReport};

/// The way a run ended.
///
/// A run has failed if its plan was `blocked`, if planning failed, if there may be no further plan, or if the last
/// task that was more than a message did not succeed. Everything else that comes to the end of its plan is done.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "ending", rename_all = "snake_case")]
pub enum Ending {
    Done,
    Failed {
        reason: String,
    },
    /// The run was stopped before its end.
    LimitHit(LimitReached),
    /// Its user stopped it.
    Cancelled,
}

impl Ending {
    /// What the user is told if the messages of the run do not say it; `None` when there is nothing to add.
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

/// What a run leaves for its user.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Outcome {
    #[serde(flatten)]
    pub ending: Ending,
    /// The texts of the `msg` tasks with `notify: true`, and what the ending adds.
    pub reply: String,
    /// Every file that a task produced, in order; a path that was written twice stands once, as it was last. At most
    /// [`MAX_DELIVERED`].
    pub files: Vec<FileNote>,
    /// Files beyond those.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub more_files: u64,
    /// The same as `reply` in parts; empty where all of it is Markdown.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub blocks: Vec<Block>,
    /// Milliseconds that models thought before they answered, all calls together.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub thought_ms: u64,
}

impl Outcome {
    /// The outcome of a run that said `said` and left `reports`. There is always a reply, and it says why a run that
    /// is not done is not done, where that was not `told` already.
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
        // Where it is made of nothing but Markdown, that says it all.
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

    /// The same without the files at these paths.
    pub fn without_files(mut self, gone: &[String]) -> Self {
        self.files.retain(|file| !gone.contains(&file.path));
        self
    }

    /// The outcome of a run that ended with nothing but these words.
    pub fn in_words(ending: Ending, reply: String) -> Self {
        Self { ending, reply, files: Vec::new(), more_files: 0, blocks: Vec::new(), thought_ms: 0 }
    }
}

fn is_zero(count: &u64) -> bool {
    *count == 0
}

/// What a run said to its user.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct ReplyText {
    pub text: String,
    /// The same in parts; empty where it is Markdown.
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
