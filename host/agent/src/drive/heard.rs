//! Text of a step before it was cancelled. It is in no event, because the step did not complete; the part that the user has read
//! is kept with the reply.

use super::voice::{Listener, Thought};
use kiso_base::role::Role;
use kiso_graph::outcome::Outcome;
use kiso_graph::run::Run;
use kiso_graph::step::{Event, Step, ToolResult};
use kiso_plan::block::Block;
use kiso_plan::clip::clip;
use kiso_plan::plan::TaskKind;
use kiso_store::store::RunId;

/// Maximum size in bytes of each text that is kept.
const MOST: usize = 16_000;

/// Passes on the output of a run, and keeps the texts of its current step.
pub(super) struct HeardListener<'a> {
    listener: &'a mut dyn Listener,
    command: Option<String>,
    stdout: String,
    stderr: String,
    reply: String,
}

impl<'a> HeardListener<'a> {
    pub(super) fn new(listener: &'a mut dyn Listener) -> Self {
        Self { listener, command: None, stdout: String::new(), stderr: String::new(), reply: String::new() }
    }

    /// Returns the text of the cancelled step, for the beginning of the reply.
    pub(super) fn unfinished(&mut self) -> Vec<Block> {
        let mut parts = Vec::new();
        if let Some(command) = self.command.take() {
            let short = |text: &str| clip(text.trim_end(), MOST);
            let (output, stderr) = (short(&self.stdout), short(&self.stderr));
            parts.push(Block::Command { command, output, stderr, exit_code: None, error: Some("stopped".to_owned()) });
        }
        if !self.reply.trim().is_empty() {
            parts.push(Block::Partial { text: clip(self.reply.trim(), MOST) });
        }
        parts
    }
}

/// Returns an outcome with these parts before its own.
pub(super) fn with_unfinished(outcome: Outcome, mut parts: Vec<Block>) -> Outcome {
    if parts.is_empty() {
        return outcome;
    }
    match outcome.blocks.is_empty() {
        true => parts.push(Block::Text { text: outcome.reply.clone() }),
        false => parts.extend(outcome.blocks),
    }
    Outcome { blocks: parts, ..outcome }
}

impl Listener for HeardListener<'_> {
    fn begun(&mut self, run: &RunId) {
        self.listener.begun(run);
    }

    fn step(&mut self, seq: u32, step: &Step) {
        self.command = match step {
            Step::Execute { brief, .. } if brief.task.kind == TaskKind::Exec => Some(brief.task.detail.clone()),
            _ => None,
        };
        for text in [&mut self.stdout, &mut self.stderr, &mut self.reply] {
            text.clear();
        }
        self.listener.step(seq, step);
    }

    fn thought(&mut self, thought: &Thought) {
        self.listener.thought(thought);
    }

    fn reasoning(&mut self, role: Role, text: &str) {
        self.listener.reasoning(role, text);
    }

    fn token(&mut self, role: Role, text: &str) {
        // The planner's text beside its plan is not a part of the reply. The limits of a step bound the size.
        if role != Role::Planner {
            self.reply.push_str(text);
        }
        self.listener.token(role, text);
    }

    fn output(&mut self, call: usize, stream: &'static str, text: &str) {
        if self.command.is_some() {
            let kept = if stream == "stderr" { &mut self.stderr } else { &mut self.stdout };
            kept.push_str(text);
        }
        self.listener.output(call, stream, text);
    }

    fn call_ended(&mut self, call: usize, result: &ToolResult) {
        self.listener.call_ended(call, result);
    }

    fn restart(&mut self, role: Role) {
        self.reply.clear();
        self.listener.restart(role);
    }

    fn event(&mut self, seq: u32, event: &Event, run: &Run) {
        self.listener.event(seq, event, run);
    }
}
