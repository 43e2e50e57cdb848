//! Lanes: the lists of messages that nodes read and write.
//!
//! The [`GraphLane`] is shared by all nodes. The planner and reasoning nodes each have a [`NodeLane`], which begins as a copy of
//! it; the action node has an [`ActionLane`] with its whole transcript. Entries are typed, so a text cannot pass for another
//! kind.

use kiso_plan::call::ToolCall;
use std::ops::Range;

use serde::{Deserialize, Serialize};

use super::reflection::Status;
use super::summary;
use kiso_plan::clip::clip;
use kiso_plan::picture::Picture;
use kiso_plan::report::Correction;

/// A context that nodes share; a lane has at most one of each kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SharedKind {
    /// The available resources. Refreshed by retrieval.
    Environment,
    /// Memory that is relevant for the goal. Refreshed by retrieval.
    ObservationalMemory,
    /// The selected skills. Refreshed by the planner.
    SkillEnvironment,
}

impl SharedKind {
    /// Its name in a lane.
    pub fn name(self) -> &'static str {
        match self {
            Self::Environment => "shared_context_environment",
            Self::ObservationalMemory => "shared_context_observational_memory",
            Self::SkillEnvironment => "shared_context_skill_environment",
        }
    }
}

/// The prefix of the actor's text for the critic and the summarizer.
pub const SAID: &str = "Assistant: ";

/// A message of the graph.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", content = "text", rename_all = "snake_case")]
pub enum Entry {
    User(String),
    Assistant(String),
    /// The brief that was passed to the action node.
    Brief(String),
    /// The result of the action node.
    Evidence(String),
    /// Why the critic rejected something. Praise is not recorded.
    Feedback(String),
    Shared(SharedKind, String),
}

impl Entry {
    pub fn text(&self) -> &str {
        match self {
            Self::User(text)
            | Self::Assistant(text)
            | Self::Brief(text)
            | Self::Evidence(text)
            | Self::Feedback(text)
            | Self::Shared(_, text) => text,
        }
    }

    /// Shortens its text to about [`MAX_TEXT`] characters.
    fn clipped(mut self) -> Self {
        match &mut self {
            Self::User(text)
            | Self::Assistant(text)
            | Self::Brief(text)
            | Self::Evidence(text)
            | Self::Feedback(text)
            | Self::Shared(_, text) => {
                if text.len() > MAX_TEXT {
                    *text = clip(text, MAX_TEXT);
                }
            }
        }
        self
    }

    fn shared_kind(&self) -> Option<SharedKind> {
        match self {
            Self::Shared(kind, _) => Some(*kind),
            _ => None,
        }
    }
}

/// Maximum entries of one lane. The lane is stored with every state of the run, and prompts only show the last few entries.
pub const MAX_ENTRIES: usize = 64;

/// Maximum characters of one entry; a larger text is complete in the scratchpad or in the task's report.
pub const MAX_TEXT: usize = 16_000;

/// The messages that all nodes share.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct GraphLane {
    entries: Vec<Entry>,
}

impl GraphLane {
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// Returns the entries before the message of the current cycle.
    pub fn earlier_cycles(&self) -> impl Iterator<Item = &Entry> {
        let present = self.entries.iter().rposition(|entry| matches!(entry, Entry::User(_))).unwrap_or(0);
        self.entries[..present].iter()
    }

    /// Returns the shared context of this kind.
    pub fn shared(&self, kind: SharedKind) -> Option<&str> {
        self.entries.iter().find(|entry| entry.shared_kind() == Some(kind)).map(Entry::text)
    }

    /// Replaces the shared context of this kind by `text`; blank text removes it.
    pub fn refresh(&mut self, kind: SharedKind, text: impl Into<String>) {
        let fresh = Entry::Shared(kind, text.into()).clipped();
        let place = self.entries.iter().position(|entry| entry.shared_kind() == Some(kind));
        match place {
            _ if fresh.text().trim().is_empty() => self.entries.retain(|entry| entry.shared_kind() != Some(kind)),
            Some(at) => self.entries[at] = fresh,
            None => {
                self.entries.push(fresh);
                bound(&mut self.entries);
            }
        }
    }

    /// Adds an entry. A shared context replaces the one of its kind. A brief replaces a brief that is the last entry, because it
    /// was rewritten before the action began.
    pub fn push(&mut self, entry: Entry) {
        match entry {
            Entry::Shared(kind, text) => self.refresh(kind, text),
            Entry::Brief(_) if matches!(self.entries.last(), Some(Entry::Brief(_))) => {
                self.entries.pop();
                self.entries.push(entry.clipped());
            }
            entry => {
                self.entries.push(entry.clipped());
                bound(&mut self.entries);
            }
        }
    }
}

/// Removes the least important entries of a lane that is too long: the oldest evidence first, then the oldest of the others.
/// Shared contexts (at most three) and the last entry stay.
fn bound(entries: &mut Vec<Entry>) {
    while entries.len() > MAX_ENTRIES {
        let older = &entries[..entries.len() - 1];
        let evidence = older.iter().position(|entry| matches!(entry, Entry::Evidence(_)));
        let other = || older.iter().position(|entry| !matches!(entry, Entry::User(_) | Entry::Shared(..)));
        let user = || older.iter().position(|entry| entry.shared_kind().is_none());
        let Some(at) = evidence.or_else(other).or_else(user) else {
            return;
        };
        entries.remove(at);
    }
}

/// The memory of one node: the graph lane at the node's first call, without messages of the user, and the node's own messages
/// since then.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct NodeLane {
    /// `None` before first use.
    #[serde(skip_serializing_if = "Option::is_none")]
    seeded: Option<Vec<Entry>>,
    /// The node's answers, each followed by the feedback if it was invalid.
    own: Vec<Entry>,
}

impl NodeLane {
    /// Copies the graph lane on first use. Later calls do nothing.
    pub fn seed(&mut self, from: &GraphLane) {
        let seen = from.entries.iter().filter(|entry| !matches!(entry, Entry::User(_)));
        self.seeded.get_or_insert_with(|| seen.cloned().collect());
    }

    /// Adds a message of the node.
    pub fn push(&mut self, entry: Entry) {
        self.own.push(entry.clipped());
        bound(&mut self.own);
    }

    /// Adds an invalid answer of the node, and why it is invalid.
    pub fn reject(&mut self, answer: &Correction) {
        self.push(Entry::Assistant(answer.broken.clone()));
        self.push(Entry::Feedback(answer.violations.join("\n")));
    }

    /// Returns the seed of the lane for a prompt that also shows `fresh`: without shared contexts for which `fresh` has newer
    /// ones.
    pub fn seeded<'a>(&'a self, fresh: &'a GraphLane) -> impl Iterator<Item = &'a Entry> {
        let stale = |entry: &Entry| entry.shared_kind().is_some_and(|kind| fresh.shared(kind).is_some());
        self.seeded.iter().flatten().filter(move |entry| !stale(entry))
    }

    /// Returns the node's own answers with the feedback on them, one text each.
    pub fn own(&self) -> Vec<String> {
        let mut texts: Vec<String> = Vec::new();
        for entry in &self.own {
            match (entry, texts.last_mut()) {
                (Entry::Feedback(why), Some(answer)) => {
                    answer.push_str("\nThis could not be used:\n");
                    answer.push_str(why);
                }
                (entry, _) => texts.push(entry.text().to_owned()),
            }
        }
        texts
    }
}

/// A turn of the action loop.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum ActionTurn {
    /// The actor's text and the calls that it requests.
    Assistant {
        text: String,
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        calls: Vec<ToolCall>,
    },
    /// The result of a call, with its id.
    Tool {
        id: String,
        name: String,
        text: String,
        status: Status,
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        pictures: Vec<Picture>,
    },
    /// The host's note on a batch of calls.
    Reflection { text: String },
    /// Replaces older turns; the source is archived under `reference`, a key without `ref:`.
    Summary { reference: String, text: String },
}

impl ActionTurn {
    /// Returns the turn in the form for the critic and the summarizer.
    pub fn text(&self) -> String {
        match self {
            Self::Assistant { text, calls } => {
                let mut said = format!("{SAID}{}", text.trim());
                for call in calls {
                    said.push_str(&format!("\ncalls {} {}", call.name, call.args.trim()));
                }
                said
            }
            Self::Tool { name, text, status, pictures, .. } => {
                let mut said = format!("Tool {name} [{}]: {text}", status.name());
                for picture in pictures {
                    said.push_str(&format!("\n[picture: {}]", picture.title()));
                }
                said
            }
            Self::Reflection { text } => text.clone(),
            Self::Summary { reference, text } => summary::render(reference, text),
        }
    }

    /// Returns the pictures of the turn.
    pub fn pictures(&self) -> &[Picture] {
        match self {
            Self::Tool { pictures, .. } => pictures,
            _ => &[],
        }
    }

    fn is_summary(&self) -> bool {
        matches!(self, Self::Summary { .. })
    }

    /// Whether a new exchange begins with this turn.
    fn opens(&self) -> bool {
        matches!(self, Self::Assistant { .. } | Self::Summary { .. })
    }
}

/// Exchanges at the end of the action lane that are never compressed, because the model continues from them.
pub const KEPT_EXCHANGES: usize = 2;

/// A range that cannot be replaced by a summary.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BadRange {
    #[error("turns {start}..{end} are not in a lane of {length} turns")]
    Outside { start: usize, end: usize, length: usize },
    #[error("turns {start}..{end} split an exchange")]
    Split { start: usize, end: usize },
    #[error("turns {start}..{end} contain a summary")]
    Summary { start: usize, end: usize },
}

/// A turn of the action lane as text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TranscriptTurn {
    pub text: String,
    /// If `text` is a summary: the key of the archived turns that it replaces.
    pub archived: Option<String>,
}

/// Maximum characters of a digest of the action lane, and of each turn in it.
const MAX_DIGEST: usize = 12_000;
const MAX_DIGEST_TURN: usize = 600;

/// The transcript of the action loop.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ActionLane {
    turns: Vec<ActionTurn>,
}

impl ActionLane {
    pub fn turns(&self) -> &[ActionTurn] {
        &self.turns
    }

    /// Adds a turn. Results follow the turn with their calls; texts have passed the output guard.
    pub fn push(&mut self, turn: ActionTurn) {
        self.turns.push(turn);
    }

    /// Returns the whole lane for the critic ("Action Conversation Transcript").
    pub fn transcript(&self) -> Vec<TranscriptTurn> {
        let turn = |turn: &ActionTurn| match turn {
            ActionTurn::Summary { reference, .. } => {
                TranscriptTurn { text: turn.text(), archived: Some(reference.clone()) }
            }
            _ => TranscriptTurn { text: turn.text(), archived: None },
        };
        self.turns.iter().map(turn).collect()
    }

    /// Returns a short form of the lane for a node that continues without the transcript: every call with the beginning of its
    /// result.
    pub fn digest(&self) -> String {
        let shown = self.turns.iter().filter(|turn| !matches!(turn, ActionTurn::Reflection { .. }));
        let lines: Vec<_> = shown.map(|turn| clip(&turn.text(), MAX_DIGEST_TURN)).collect();
        clip(&lines.join("\n"), MAX_DIGEST)
    }

    /// Returns the size of the lane in a prompt; `count` estimates tokens for the model.
    pub fn tokens(&self, count: impl Fn(&str) -> usize) -> usize {
        let pictures = |turn: &ActionTurn| turn.pictures().iter().map(Picture::tokens).sum::<usize>();
        self.turns.iter().map(|turn| count(&turn.text()) + pictures(turn)).sum()
    }

    /// Returns the turns that a summary may replace next: the first ones without a summary, in whole exchanges, so that a result
    /// is never separated from its call. The last `keep` exchanges stay, and never fewer than [`KEPT_EXCHANGES`]. Empty if there
    /// is nothing to compress.
    pub fn compressible(&self, keep: usize) -> Range<usize> {
        let assistants = self.turns.iter().enumerate().filter(|(_, turn)| matches!(turn, ActionTurn::Assistant { .. }));
        let kept = assistants.rev().nth(keep.max(KEPT_EXCHANGES) - 1);
        let Some((limit, _)) = kept else {
            return 0..0;
        };
        let Some(start) = self.turns[..limit].iter().position(|turn| !turn.is_summary()) else {
            return 0..0;
        };
        let length = self.turns[start..limit].iter().position(ActionTurn::is_summary).unwrap_or(limit - start);
        start..start + length
    }

    /// Returns the texts of a range in the form that is archived and summarised; empty if the range is not in the lane.
    pub fn source(&self, range: Range<usize>) -> Vec<String> {
        self.turns.get(range).unwrap_or_default().iter().map(ActionTurn::text).collect()
    }

    /// Replaces a range that [`Self::compressible`] returned by a summary. `reference` is the key of the archived source, without
    /// `ref:`. An error leaves the lane unchanged.
    pub fn replace(&mut self, range: Range<usize>, reference: String, text: String) -> Result<(), BadRange> {
        let Range { start, end } = range;
        let length = self.turns.len();
        let Some(replaced) = self.turns.get(start..end).filter(|turns| !turns.is_empty()) else {
            return Err(BadRange::Outside { start, end, length });
        };
        if replaced.iter().any(ActionTurn::is_summary) {
            return Err(BadRange::Summary { start, end });
        }
        let whole = |at: usize| at == 0 || at == length || self.turns[at].opens() || self.turns[at - 1].is_summary();
        if !whole(start) || !whole(end) {
            return Err(BadRange::Split { start, end });
        }
        self.turns.splice(start..end, [ActionTurn::Summary { reference, text }]);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn evidence(n: usize) -> Entry {
        Entry::Evidence(format!("e{n}"))
    }

    #[test]
    fn shared_contexts_are_replaced_where_they_stand() {
        let mut lane = GraphLane::default();
        lane.refresh(SharedKind::Environment, "old");
        lane.push(Entry::User("hi".to_owned()));
        lane.push(Entry::Shared(SharedKind::Environment, "new".to_owned()));
        lane.refresh(SharedKind::ObservationalMemory, "m");
        assert_eq!(lane.entries()[0], Entry::Shared(SharedKind::Environment, "new".to_owned()));
        assert_eq!(lane.entries().len(), 3);
        lane.refresh(SharedKind::ObservationalMemory, " ");
        assert_eq!(lane.shared(SharedKind::ObservationalMemory), None);
        assert_eq!(lane.shared(SharedKind::Environment), Some("new"));
    }

    #[test]
    fn a_brief_written_anew_replaces_the_one_before() {
        let mut lane = GraphLane::default();
        lane.push(Entry::Brief("1".to_owned()));
        lane.push(Entry::Brief("2".to_owned()));
        lane.push(evidence(0));
        lane.push(Entry::Brief("3".to_owned()));
        let texts: Vec<_> = lane.entries().iter().map(Entry::text).collect();
        assert_eq!(texts, ["2", "e0", "3"]);
    }

    #[test]
    fn the_oldest_evidence_goes_first() {
        let mut lane = GraphLane::default();
        lane.refresh(SharedKind::Environment, "env");
        lane.push(Entry::User("hi".to_owned()));
        lane.push(Entry::Feedback("no".to_owned()));
        for n in 0..MAX_ENTRIES {
            lane.push(evidence(n));
        }
        let texts: Vec<_> = lane.entries().iter().map(Entry::text).collect();
        assert_eq!((texts.len(), &texts[..4]), (MAX_ENTRIES, &["env", "hi", "no", "e3"][..]));
        lane.push(Entry::User("x".repeat(MAX_TEXT * 2)));
        assert!(lane.entries().last().unwrap().text().len() < MAX_TEXT + 100);
        for n in 0..MAX_ENTRIES {
            lane.push(Entry::User(n.to_string()));
        }
        assert_eq!(lane.shared(SharedKind::Environment), Some("env"));
        assert_eq!(lane.entries().len(), MAX_ENTRIES);
    }

    /// Rule: "lane is seeded from graph messages on first namespace initialization", "planner excludes graph user
    /// messages", "shared_context_* replay from planner history is filtered to avoid duplication".
    #[test]
    fn a_node_is_seeded_once_and_replays_without_what_is_fresh() {
        let mut graph = GraphLane::default();
        graph.refresh(SharedKind::Environment, "env");
        graph.refresh(SharedKind::SkillEnvironment, "skills");
        graph.push(Entry::User("hi".to_owned()));
        graph.push(Entry::Assistant("a".to_owned()));
        let mut lane = NodeLane::default();
        lane.seed(&graph);
        graph.push(evidence(1));
        graph.refresh(SharedKind::SkillEnvironment, "");
        lane.seed(&graph);
        lane.push(Entry::Assistant("mine".to_owned()));
        let texts: Vec<_> = lane.seeded(&graph).map(Entry::text).collect();
        assert_eq!(texts, ["skills", "a"]);
        assert_eq!(lane.own(), ["mine"]);
        let stored = serde_json::to_string(&lane).unwrap();
        assert_eq!(serde_json::from_str::<NodeLane>(&stored).unwrap(), lane);
    }

    #[test]
    fn an_answer_that_was_refused_stands_with_what_was_said_about_it() {
        let mut lane = NodeLane::default();
        let violations = vec!["goal: missing".to_owned(), "tasks: missing".to_owned()];
        lane.reject(&Correction { broken: "{}".to_owned(), violations });
        lane.push(Entry::Assistant("Plan: a chart".to_owned()));
        assert_eq!(lane.own(), ["{}\nThis could not be used:\ngoal: missing\ntasks: missing", "Plan: a chart"]);
    }

    fn assistant(id: &str) -> ActionTurn {
        let call = ToolCall::new(id, "fetch", "{}");
        ActionTurn::Assistant { text: "I look.".to_owned(), calls: vec![call] }
    }

    fn tool(id: &str) -> ActionTurn {
        let (id, name) = (id.to_owned(), "fetch".to_owned());
        ActionTurn::Tool { id, name, text: "found".to_owned(), status: Status::Ok, pictures: Vec::new() }
    }

    fn reflection() -> ActionTurn {
        ActionTurn::Reflection { text: "[TOOL REFLECTION]".to_owned() }
    }

    fn summary(reference: &str) -> ActionTurn {
        ActionTurn::Summary { reference: reference.to_owned(), text: "s".to_owned() }
    }

    fn lane(turns: impl IntoIterator<Item = ActionTurn>) -> ActionLane {
        ActionLane { turns: turns.into_iter().collect() }
    }

    #[test]
    fn the_transcript_is_whole() {
        let lane = lane([summary("k"), assistant("1"), tool("1"), reflection()]);
        let expected = [
            "[CONVERSATION SUMMARY]\nSource archived at ref:k\ns",
            "Assistant: I look.\ncalls fetch {}",
            "Tool fetch [ok]: found",
            "[TOOL REFLECTION]",
        ];
        let transcript = lane.transcript();
        assert_eq!(transcript.iter().map(|turn| turn.text.as_str()).collect::<Vec<_>>(), expected);
        assert_eq!(transcript.iter().filter_map(|turn| turn.archived.as_deref()).collect::<Vec<_>>(), ["k"]);
        assert_eq!(lane.tokens(str::len), expected.concat().len());
        let stored = serde_json::to_string(&lane).unwrap();
        assert_eq!(serde_json::from_str::<ActionLane>(&stored).unwrap(), lane);
    }

    #[test]
    fn old_exchanges_are_compressed_and_summaries_are_not() {
        let exchange = |id| [assistant(id), tool(id), reflection()];
        let mut lane = lane(["1", "2", "3", "4"].into_iter().flat_map(exchange));
        assert_eq!(lane.compressible(0), 0..6);
        assert_eq!(lane.compressible(3), 0..3);
        assert_eq!(lane.compressible(9), 0..0);
        assert_eq!(lane.replace(0..5, String::new(), String::new()), Err(BadRange::Split { start: 0, end: 5 }));
        assert!(matches!(lane.replace(6..99, String::new(), String::new()), Err(BadRange::Outside { .. })));
        lane.replace(0..6, "k".to_owned(), "s".to_owned()).unwrap();
        assert_eq!(lane.turns()[0], summary("k"));
        assert_eq!(lane.compressible(2), 0..0);
        assert!(matches!(lane.replace(0..4, String::new(), String::new()), Err(BadRange::Summary { .. })));
        exchange("5").into_iter().for_each(|turn| lane.push(turn));
        assert_eq!(lane.compressible(2), 1..4);
        assert!(!lane.source(1..4).iter().any(|text| summary::is_summary(text)));
    }

    proptest! {
        /// In any lane, repeated compression ends, keeps every summary and the last exchanges, and never separates a result from
        /// its call.
        #[test]
        fn compression_keeps_exchanges_whole(kinds in prop::collection::vec(0u8..8, 0..40), keep in 0usize..5) {
            let mut lane = ActionLane::default();
            for (n, kind) in kinds.iter().enumerate() {
                lane.push(match kind {
                    0..3 => assistant(&n.to_string()),
                    3..6 => tool(&n.to_string()),
                    6 => reflection(),
                    _ => summary(&n.to_string()),
                });
            }
            let before = lane.clone();
            let mut seen = Vec::new();
            for round in 0.. {
                let range = lane.compressible(keep);
                if range.is_empty() {
                    break;
                }
                prop_assert!(round < 50);
                seen.extend(lane.source(range.clone()));
                prop_assert_eq!(lane.replace(range, format!("new-{round}"), "s".to_owned()), Ok(()));
            }
            let kept = |lane: &ActionLane| -> Vec<String> {
                let new = |turn: &&ActionTurn| !matches!(turn, ActionTurn::Summary { reference, .. } if reference.starts_with("new"));
                lane.turns().iter().filter(new).map(ActionTurn::text).collect()
            };
            prop_assert_eq!(seen.len() + kept(&lane).len(), before.turns().len());
            let texts: Vec<_> = before.transcript().into_iter().map(|turn| turn.text).collect();
            prop_assert!(texts.ends_with(&kept(&lane)[kept(&lane).len().saturating_sub(1)..]));
            let assistants = |lane: &ActionLane| lane.turns().iter().filter(|turn| matches!(turn, ActionTurn::Assistant { .. })).count();
            prop_assert!(assistants(&lane) >= assistants(&before).min(keep.max(KEPT_EXCHANGES)));
        }

        /// After any history, a lane has at most one context of each kind and respects its maximum length.
        #[test]
        fn the_graph_lane_is_bounded(kinds in prop::collection::vec(0u8..9, 0..200)) {
            let mut lane = GraphLane::default();
            for (n, kind) in kinds.iter().enumerate() {
                let text = n.to_string();
                lane.push(match kind {
                    0 => Entry::User(text),
                    1 => Entry::Assistant(text),
                    2 => Entry::Brief(text),
                    3 => Entry::Feedback(text),
                    4 => Entry::Shared(SharedKind::Environment, text),
                    5 => Entry::Shared(SharedKind::ObservationalMemory, text),
                    6 => Entry::Shared(SharedKind::SkillEnvironment, text),
                    _ => Entry::Evidence(text),
                });
                prop_assert!(lane.entries().len() <= MAX_ENTRIES);
                prop_assert!(lane.entries().iter().any(|entry| entry.text() == n.to_string()));
            }
            for kind in [SharedKind::Environment, SharedKind::ObservationalMemory, SharedKind::SkillEnvironment] {
                prop_assert!(lane.entries().iter().filter(|entry| entry.shared_kind() == Some(kind)).count() <= 1);
            }
            let stored = serde_json::to_string(&lane).unwrap();
            prop_assert_eq!(serde_json::from_str::<GraphLane>(&stored).unwrap(), lane);
        }
    }
}
