//! The planner: turns a message into a plan.

use kiso_base::role::{Lengths, Role, plan_schema, skill_task};
use kiso_graph::plan::{Secrets, Unusable};
use kiso_graph::run::Run;
use kiso_graph::step::{PlanAsk, StepResult};
use kiso_graph::{Chatter, plan};
use kiso_llm::{Answer, Completion, Model, Request, Sink, schema};
use kiso_plan::limits::Limits;
use kiso_plan::plan::Catalog;
use kiso_plan::prompt::{Pieces, SkillCard};
use kiso_plan::report::Correction;
use serde_json::{Value, json};
use std::sync::Arc;

/// Maximum size in bytes of a schema for a grammar, which servers build for each request.
const MAX_GRAMMAR: usize = 64 << 10;

/// Maximum length in characters of a message that is accompanied by the router's interpretation: a longer one is clear on its
/// own.
const MAX_REFERRING: usize = 300;

/// The outcome of a call.
#[derive(Debug, Clone, PartialEq)]
pub struct Planning {
    pub result: StepResult,
    /// Secrets from the message, which must be in the secret store before the event is committed.
    pub secrets: Secrets,
    /// The model's answer without these; `None` if there is none.
    pub answer: Option<String>,
}

/// Returns the planner's prompt. `given` contains the caller's rights and the session's knowledge: skills, environment, summary,
/// messages and facts.
pub fn request(system: &str, given: &Pieces, run: &Run, ask: &PlanAsk, boundary: &str) -> Request {
    let mut all = Pieces {
        new_message: Some(run.message().to_owned()),
        directive: Some(ask.directive.clone()).filter(|directive| {
            let message = run.message().trim();
            refers_back(message, given) && directive.trim() != message
        }),
        replies: (!ask.replies.is_empty()).then(|| ask.replies.clone()),
        planner_lane: (!ask.lane.is_empty()).then(|| ask.lane.clone()),
        feedback: (!ask.feedback.is_empty()).then(|| ask.feedback.clone()),
        correction: ask.correction.clone(),
        ..given.clone()
    };
    if let Some(replan) = &ask.replan {
        all.completed = Some(replan.completed.clone());
        all.remaining = Some(replan.remaining.clone());
        all.failure = Some(replan.failure.clone());
        all.replan_history = Some(replan.history.clone());
    }
    let mut request = super::request(Role::Planner, system, &all, boundary);
    request.turns = super::conversation::attached(run.attached(), boundary);
    request
}

/// Returns whether a message may refer to earlier ones. For any other message, its goal would only repeat its text.
fn refers_back(message: &str, given: &Pieces) -> bool {
    let is_first = given.messages.as_ref().is_none_or(Vec::is_empty) && given.summary.is_none();
    !is_first && message.chars().count() <= MAX_REFERRING
}

/// Returns `request` with the forms of a plan that chooses among its skills, for a model that uses one of them.
pub(super) fn formed(request: Request, lengths: &Lengths) -> Request {
    let (plan, grammar) = forms(request.pieces.skills.as_deref().unwrap_or_default(), lengths);
    Request { answer: Answer::Json(plan.into()), grammar: grammar.map(Arc::new), ..request }
}

/// Returns the forms of a plan with these skills: one with only their names, and one with the arguments of each, if a grammar can
/// express them.
fn forms(skills: &[Arc<SkillCard>], lengths: &Lengths) -> (Value, Option<Value>) {
    if skills.is_empty() {
        return (plan_schema(Vec::new(), lengths), None);
    }
    let open = || json!({ "type": "object" });
    let names: Vec<&str> = skills.iter().map(|card| card.name.as_str()).collect();
    let by_name = vec![skill_task(json!({ "type": "string", "enum": names }), open(), lengths)];
    let each = skills.iter().map(|card| {
        let args = schema::portable(&card.args).unwrap_or_else(open);
        skill_task(json!({ "type": "string", "enum": [card.name] }), args, lengths)
    });
    let each = plan_schema(each.collect(), lengths);
    let small = each.to_string().len() <= MAX_GRAMMAR;
    (plan_schema(by_name, lengths), small.then_some(each))
}

/// Calls the model. `talk` receives the planner's text beside its plan as it arrives, and never a part of the plan.
pub async fn call(
    model: &dyn Model,
    request: &Request,
    catalog: &(dyn Catalog + Sync),
    limits: &Limits,
    talk: &mut dyn Sink,
) -> Planning {
    let mut beside = Beside { chatter: Chatter::default(), talk };
    match model.complete(request, &mut beside).await {
        Ok(completion) => {
            let rest = beside.chatter.finish();
            if !rest.is_empty() {
                talk.text(&rest);
            }
            read(&completion, catalog, limits)
        }
        Err(error) => Planning { result: super::no_answer(&error), secrets: Secrets::default(), answer: None },
    }
}

/// Passes on text that is not a part of the plan.
struct Beside<'a> {
    chatter: Chatter,
    talk: &'a mut dyn Sink,
}

impl Sink for Beside<'_> {
    fn text(&mut self, piece: &str) {
        let shown = self.chatter.push(piece);
        if !shown.is_empty() {
            self.talk.text(&shown);
        }
    }

    fn thought(&mut self, piece: &str) {
        self.talk.thought(piece);
    }

    fn restart(&mut self) {
        self.chatter = Chatter::default();
        self.talk.restart();
    }
}

/// Parses the answer.
pub fn read(completion: &Completion, catalog: &dyn Catalog, limits: &Limits) -> Planning {
    let call = super::call_of(completion);
    match plan::parse(&completion.text, catalog, limits.max_tasks) {
        Ok(plan::ParsedPlan { plan, secrets, chatter }) => {
            let violations = super::full_commands(completion, "tasks", &plan.tasks);
            if !violations.is_empty() {
                let broken = plan::without_secrets(&completion.text, &secrets);
                let answer = Some(broken.clone());
                let result = StepResult::Unplanned { chatter, correction: Correction { broken, violations }, call };
                return Planning { result, secrets, answer };
            }
            let secret_names = secrets.names();
            let skill_environment = Vec::new();
            let result = StepResult::Planned {
                plan,
                chatter,
                secrets: secret_names,
                skill_environment,
                instructions: Vec::new(),
                call,
            };
            let answer = Some(plan::without_secrets(&completion.text, &secrets));
            Planning { result, secrets, answer }
        }
        Err(Unusable { chatter, broken, violations, secrets }) => {
            let violations = super::violations(completion, &violations);
            let answer = Some(broken.clone());
            let result = StepResult::Unplanned { chatter, correction: Correction { broken, violations }, call };
            Planning { result, secrets, answer }
        }
    }
}
