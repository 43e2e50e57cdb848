//! The planner: a message becomes a plan.

use crate::graph::Chatter;
use crate::graph::limits::Limits;
use crate::graph::plan::{self, Catalog, Secrets, Unusable};
use crate::graph::report::Correction;
use crate::graph::run::Run;
use crate::graph::step::{PlanAsk, StepResult};
use crate::llm::prompt::Pieces;
use crate::llm::{Completion, Model, Request, Role, Sink};

/// What came of a call.
#[derive(Debug, Clone, PartialEq)]
pub struct Planning {
    pub result: StepResult,
    /// Values from the message for the secret store, which must have them before the event is committed.
    pub secrets: Secrets,
}

/// The planner's prompt. `given` has what the session knows: skills, environment, summary, messages and facts;
/// `boundary` is drawn for this call.
pub fn request(system: &str, given: &Pieces, run: &Run, ask: &PlanAsk, boundary: &str) -> Request {
    let mut all = Pieces {
        new_message: Some(run.message().to_owned()),
        caller: Some(run.spec().caller),
        directive: Some(ask.directive.clone()),
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
            read(&completion, catalog, limits)
        }
        Err(error) => Planning { result: super::no_answer(&error), secrets: Secrets::default() },
    }
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
        Ok(plan::Parsed { plan, secrets, chatter }) => {
            let secret_names = secrets.names();
            let skill_environment = Vec::new();
            let result = StepResult::Planned { plan, chatter, secrets: secret_names, skill_environment, call };
            Planning { result, secrets }
        }
        Err(Unusable { chatter, broken, violations, secrets }) => {
            let violations = super::violations(completion, &violations);
            let result = StepResult::Unplanned { chatter, correction: Correction { broken, violations }, call };
            Planning { result, secrets }
        }
    }
}
