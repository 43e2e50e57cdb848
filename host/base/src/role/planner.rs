//! The planner: turns a message into a plan.

use super::Cell::{Replan, Retry, Writes, Yes};
use super::schema::{Lengths, list, object, secrets, task, text};
use super::{Declaration, Duty, Piece};
use serde_json::{Value, json};

pub(super) const ROLE: Declaration = Declaration {
    does: "Turns a message into a plan.",
    prompt: include_str!("../../../../roles/planner.md"),
    // A low temperature: plans need no variety.
    temperature: Some(0.2),
    max_tokens: 4_096,
    schema: Some(schema),
    sees: &[
        (Piece::Caller, Yes),
        (Piece::Guidance, Yes),
        (Piece::Core, Yes),
        (Piece::Facts, Yes),
        (Piece::Summary, Yes),
        (Piece::Skills, Yes),
        (Piece::AgentSkills, Yes),
        (Piece::SkillEnvironment, Yes),
        (Piece::Environment, Yes),
        (Piece::Messages, Yes),
        (Piece::Memory, Yes),
        (Piece::Replies, Yes),
        (Piece::PlannerLane, Yes),
        (Piece::Completed, Replan),
        (Piece::Remaining, Replan),
        (Piece::ReplanHistory, Replan),
        (Piece::Failure, Replan),
        (Piece::Feedback, Yes),
        (Piece::Instructions, Yes),
        (Piece::Now, Yes),
        (Piece::NewMessage, Yes),
        (Piece::Directive, Yes),
        (Piece::Goal, Writes),
        (Piece::Correction, Retry),
    ],
    duty: Duty::Message,
    guided: true,
    speaks: true,
    writes: false,
};

fn schema(lengths: &Lengths) -> Value {
    plan_schema(Vec::new(), lengths)
}

/// Returns the schema of a plan for providers that only return JSON: the text before and the message at its end are fields of it.
/// A task's skill is one of `skills`, or any skill if there are none.
pub fn plan_schema(skills: Vec<Value>, lengths: &Lengths) -> Value {
    let mut task = task(lengths);
    if let Some(forms) = task["anyOf"].as_array_mut().filter(|_| !skills.is_empty()) {
        forms.splice(..1, skills);
    }
    let sentence = || text(lengths.sentence);
    let mut plan = object(
        [("say", sentence()), ("goal", sentence()), ("tasks", list(task, lengths.tasks)), ("reply", sentence())],
        [("blocked", sentence()), ("secrets", secrets(lengths))],
    );
    plan["required"] = json!(["goal", "tasks", "reply"]);
    plan
}
