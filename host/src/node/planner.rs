//! The planner: a message becomes a plan.

use crate::graph::Chatter;
use crate::graph::limits::Limits;
use crate::graph::plan::{self, Catalog, Secrets, Unusable};
use crate::graph::plan::{TaskKind, Violation};
use crate::graph::report::Correction;
use crate::graph::run::Run;
use crate::graph::step::{PlanAsk, StepResult};
use crate::llm::prompt::{Pieces, SkillCard};
use crate::llm::{Answer, Completion, Form, Model, Request, Role, Sink, schema};
use crate::role::{plan_schema, skill_task};
use serde_json::{Value, json};
use std::sync::Arc;

/// Bytes of a schema that a grammar is made of. Servers make it anew for each request.
const MAX_GRAMMAR: usize = 64 << 10;

/// What came of a call.
#[derive(Debug, Clone, PartialEq)]
pub struct Planning {
    pub result: StepResult,
    /// Values from the message for the secret store, which must have them before the event is committed.
    pub secrets: Secrets,
    /// What the model answered, without those; `None` if it did not.
    pub answer: Option<String>,
}

/// The planner's prompt. `given` has what the session knows: skills, environment, summary, messages and facts.
pub fn request(system: &str, given: &Pieces, run: &Run, ask: &PlanAsk, boundary: &str) -> Request {
    let mut all = Pieces {
        new_message: Some(run.message().to_owned()),
        caller: Some(run.spec().caller),
        directive: Some(ask.directive.clone()).filter(|directive| directive.trim() != run.message().trim()),
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
    super::request(Role::Planner, system, &all, boundary)
}

/// `request` with the forms of a plan that chooses among its skills, for a model that is asked for one of them.
pub fn formed(request: Request) -> Request {
    let (plan, grammar) = forms(request.pieces.skills.as_deref().unwrap_or_default());
    Request { answer: Answer::Json(plan.into()), grammar, ..request }
}

/// The form of a plan with these skills, by their names alone, and with the arguments of each as far as a grammar can have them.
fn forms(skills: &[Arc<SkillCard>]) -> (Value, Option<Value>) {
    if skills.is_empty() {
        return (plan_schema(Vec::new()), None);
    }
    let open = || json!({ "type": "object" });
    let names: Vec<&str> = skills.iter().map(|card| card.name.as_str()).collect();
    let by_name = vec![skill_task(json!({ "type": "string", "enum": names }), open())];
    let each = skills.iter().map(|card| {
        let args = schema::portable(&card.args).unwrap_or_else(open);
        skill_task(json!({ "type": "string", "enum": [card.name] }), args)
    });
    let each = plan_schema(each.collect());
    let small = each.to_string().len() <= MAX_GRAMMAR;
    (plan_schema(by_name), small.then_some(each))
}

/// Calls the model. `talk` hears what the planner says beside its plan, as it arrives, and never any of the plan.
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
            match cut_commands(&completion, request, catalog, limits) {
                Some(cut) => cut,
                None => read(&completion, catalog, limits),
            }
        }
        Err(error) => Planning { result: super::no_answer(&error), secrets: Secrets::default(), answer: None },
    }
}

/// A plan whose server ended a command line for the model, because its schema had no room for more: half of one is another command
/// line. `None` for every other.
fn cut_commands(
    completion: &Completion,
    request: &Request,
    catalog: &dyn Catalog,
    limits: &Limits,
) -> Option<Planning> {
    let Answer::Json(small) = &request.answer else { return None };
    let most = [Some(&**small), request.grammar.as_ref()].into_iter().flatten().filter_map(most_of_command).min()?;
    let plan =
        plan::parse(&completion.text, catalog, limits.max_tasks).ok().filter(|_| completion.form == Form::Schema)?;
    let cut = plan
        .plan
        .tasks
        .iter()
        .enumerate()
        .filter(|(_, task)| task.kind == TaskKind::Exec && task.detail.chars().count() as u64 >= most);
    let message = format!("was cut off at {most} characters; write a shorter command, or several");
    let cut: Vec<_> =
        cut.map(|(n, _)| Violation::new(format!("tasks[{n}].detail"), message.clone()).to_string()).collect();
    let broken = plan::without_secrets(&completion.text, &plan.secrets);
    let (call, secrets, answer) = (super::call_of(completion), plan.secrets, Some(broken.clone()));
    let correction = Correction { broken, violations: cut };
    let unplanned = !correction.violations.is_empty();
    let result = StepResult::Unplanned { chatter: plan.chatter, correction, call };
    unplanned.then_some(Planning { result, secrets, answer })
}

/// Characters that the schema of a plan leaves to a command line.
fn most_of_command(plan: &Value) -> Option<u64> {
    let forms = plan.pointer("/properties/tasks/items/anyOf")?.as_array()?;
    let exec = forms.iter().find(|form| form["properties"]["type"]["enum"][0] == TaskKind::Exec.name())?;
    exec["properties"]["detail"]["maxLength"].as_u64()
}

/// Lets through what is not a plan.
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

    fn restart(&mut self) {
        self.chatter = Chatter::default();
        self.talk.restart();
    }
}

/// Reads the answer.
pub fn read(completion: &Completion, catalog: &dyn Catalog, limits: &Limits) -> Planning {
    let call = super::call_of(completion);
    match plan::parse(&completion.text, catalog, limits.max_tasks) {
        Ok(plan::ParsedPlan { plan, secrets, chatter }) => {
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
