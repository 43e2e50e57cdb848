//! Asks a person before data leaves the sandbox, and applies the answer.
//!
//! ```text
//! start? ─▶ undecided effects ─▶ card: event and row in one commit ─▶ the run is suspended
//!                                              answer, expiry or cancel ─▶ it is resumed
//! ```
//!
//! While a run waits, it uses no memory and no place among the active runs: it is resumed like an interrupted one. The permission
//! of each call is determined again from the records when the call is made.

use super::run_context::RunContext;
use super::{DriveError, RunExecutor};
use crate::tool::address::bare;
use crate::tool::{AcceptedHosts, CallLabels};
use kiso_base::clock::now_ms;
use kiso_base::home::SessionName;
use kiso_base::json;
use kiso_graph::run::{Run, Starting};
use kiso_graph::step::StepResult;
pub use kiso_plan::approval::AlwaysScope;
use kiso_plan::approval::{CallEffect, Card, CardAccess, CardAnswer, Decision, Destination, MAX_EFFECTS, NETWORK};
use kiso_plan::call::ToolCall;
use kiso_plan::code::ErrorCode;
use kiso_plan::label::{Integrity, Label};
use kiso_plan::network::{NetworkAccess, NetworkRule, READING};
use kiso_plan::plan::Task;
use kiso_plan::report::TaskError;
use kiso_sandbox::effect::network::is_near;
use kiso_sandbox::effect::sink::{Enforcement, Permit};
use kiso_store::store::{ApprovalRule, ApprovalState, MAX_PENDING_CARDS, NewApprovalRule, NewNetworkRule, StoreError};
use serde_json::Value;
use std::collections::BTreeMap;

/// How long a decision is remembered that does not belong to a session.
const REMEMBERED_MS: i64 = 30 * 24 * 60 * 60 * 1_000;

/// Whether a call may be made.
pub(super) enum Clearance {
    /// Nothing in it requires approval.
    Free,
    /// Accepted with this access; the flag tells whether a person has seen this very call.
    Accepted(Vec<CardAccess>, bool),
    Denied(TaskError),
}

impl Clearance {
    /// Returns the accepted access.
    pub(super) fn accepted(&self) -> Option<&[CardAccess]> {
        match self {
            Self::Accepted(access, _) => Some(access),
            Self::Free | Self::Denied(_) => None,
        }
    }

    /// The same, if a person has seen this very call.
    pub(super) fn accepted_by_person(&self) -> Option<&[CardAccess]> {
        self.accepted().filter(|_| matches!(self, Self::Accepted(_, true)))
    }
}

impl RunContext<'_> {
    /// Returns the card to show before the next step may start; `None` if nothing needs approval.
    pub(super) async fn wanted_card(&self, run: &Run) -> Result<Option<Card>, DriveError> {
        let tools = &self.drive.tools;
        let mut effects: Vec<CallEffect> = Vec::new();
        let network = self.network(run).await?;
        match run.starting() {
            Some(Starting::Tasks(tasks)) => {
                for (number, task, decision) in tasks {
                    // Bindings to an unfinished task are unknown yet. They are asked about later.
                    let Ok((task, labels)) = self.with_labels(run, task, decision).await? else { continue };
                    let effect = tools.effect_of_task(&task, &labels);
                    let all = effect.into_iter().chain(self.named_hosts(&network, &task, &labels));
                    effects.extend(all.map(|effect| CallEffect { task: Some(number), ..effect }));
                }
            }
            Some(Starting::Calls(calls)) => {
                for call in calls {
                    let labels = self.labels_of_call(run, call).await?;
                    let task = tools.as_task(call, json::parse(call.args.trim().as_bytes()).unwrap_or_default());
                    effects.extend(tools.effect_of_call(call, &labels));
                    effects.extend(self.named_hosts(&network, &task, &labels));
                }
            }
            None => {}
        }
        if effects.is_empty() || !run.may_ask() {
            return Ok(None);
        }
        let rules = self.rules().await?;
        effects.retain(|effect| run.decision(effect).is_none() && remembered(&rules, effect).is_none());
        let mut asked: Vec<CallEffect> = Vec::new();
        for effect in effects {
            if !asked.iter().any(|known| effect.is_within(known)) {
                asked.push(effect);
            }
        }
        self.card(asked).await
    }

    /// Returns a card with these effects, unless it would be empty or too many are already pending.
    pub(super) async fn card(&self, mut asked: Vec<CallEffect>) -> Result<Option<Card>, DriveError> {
        asked.truncate(MAX_EFFECTS);
        if asked.is_empty() {
            return Ok(None);
        }
        let pending = self.drive.store.read(|view| view.count_pending_approvals()).await?;
        if pending >= MAX_PENDING_CARDS {
            tracing::warn!(run = %self.run, "{pending} approvals are waiting already; nobody is asked for this one");
            return Ok(None);
        }
        let seconds = i64::try_from(self.drive.config.approvals.expires_s).unwrap_or(i64::MAX);
        let expires_ms = now_ms().saturating_add(seconds.saturating_mul(1_000));
        Ok(Some(Card { effects: asked, expires_ms }))
    }

    /// Returns the answer to the card that the run waits for. Suspends the run if there is no answer yet.
    pub(super) async fn card_answer(&self) -> Result<StepResult, DriveError> {
        let (run, seq) = (self.run.clone(), self.seq);
        let asked = self.drive.store.read(move |view| view.approval_of(&run, seq)).await?;
        let asked = asked.ok_or_else(|| DriveError::NotResumable("its card is not in the store".to_owned()))?;
        let answer = match asked.state {
            ApprovalState::Pending if asked.card.expires_ms > now_ms() => {
                return Err(DriveError::Waiting { approval: asked.id });
            }
            ApprovalState::Pending => {
                self.drive.store.write(|tx| tx.expire_approvals(now_ms())).await?;
                CardAnswer::expired()
            }
            ApprovalState::Answered => asked.answer.unwrap_or_else(CardAnswer::expired),
            ApprovalState::Expired | ApprovalState::Withdrawn => CardAnswer::expired(),
        };
        Ok(StepResult::ApprovalGiven { answer })
    }

    /// Returns a task with the bound outputs inserted into its arguments, and their labels; or an error if an output is missing.
    pub(super) async fn with_labels(
        &self,
        run: &Run,
        task: &Task,
        decision: &Label,
    ) -> Result<Result<(Task, CallLabels), String>, DriveError> {
        let mut labels =
            CallLabels { decision: decision.clone(), enforcement: self.enforcement(), ..CallLabels::default() };
        let Some(args) = &task.args else {
            self.by_own_words(run, task, &mut labels);
            return Ok(Ok((task.clone(), labels)));
        };
        let bound = match run.bound(args) {
            Ok(bound) => bound,
            Err(why) => return Ok(Err(why)),
        };
        labels.args = self.drive.tools.argument_labels(&self.session, &bound.args, bound.labels).await?;
        let task = Task { args: Some(bound.args), ..task.clone() };
        self.by_own_words(run, &task, &mut labels);
        Ok(Ok((task, labels)))
    }

    /// Returns the labels of a call of the action loop.
    pub(super) async fn labels_of_call(&self, run: &Run, call: &ToolCall) -> Result<CallLabels, DriveError> {
        let args: Value = json::parse(call.args.trim().as_bytes()).unwrap_or_default();
        let (decision, known) = match run.named(call) {
            Some(named) => (named.decision, named.args),
            None => (run.decision_label(), BTreeMap::new()),
        };
        let known = self.drive.tools.argument_labels(&self.session, &args, known).await?;
        let mut labels = CallLabels { decision, enforcement: self.enforcement(), args: known };
        self.by_own_words(run, &self.drive.tools.as_task(call, args), &mut labels);
        Ok(labels)
    }

    /// A call gets the user's label if the user's own message specifies it, even if it was decided after reading a file that the
    /// user attached.
    fn by_own_words(&self, run: &Run, task: &Task, labels: &mut CallLabels) {
        let of_file = |label: &Label| label.integrity == Integrity::Attached;
        let worst = labels.all();
        if of_file(&worst) && self.drive.tools.is_in_own_words(task, labels, run.message()) {
            let own = Label::default().integrity;
            labels.decision.integrity = own;
            labels.args.values_mut().for_each(|label| label.integrity = own);
        }
    }

    fn enforcement(&self) -> Enforcement {
        Enforcement::named(&self.drive.config.policy.effects)
    }

    /// Returns whether a task may be executed, with what access, and its permit for effects outside.
    pub(super) async fn clear_task(
        &self,
        run: &Run,
        task: &Task,
        labels: &CallLabels,
    ) -> Result<(Clearance, Permit), DriveError> {
        let tools = &self.drive.tools;
        let clearance = self.clear(run, tools.effect_of_task(task, labels)).await?;
        let permit = tools.permit(task, labels, clearance.accepted_by_person(), accepted_hosts(run));
        if let Clearance::Denied(error) = &clearance {
            tools.log_denied(&permit, task, labels, &error.message);
        }
        Ok((clearance, permit))
    }

    /// Returns whether a call of the action loop may be made, with what access, and its permit for effects outside.
    pub(super) async fn clear_call(&self, run: &Run, call: &ToolCall) -> Result<(Clearance, Permit), DriveError> {
        let (tools, labels) = (&self.drive.tools, self.labels_of_call(run, call).await?);
        let clearance = self.clear(run, tools.effect_of_call(call, &labels)).await?;
        let args = json::parse(call.args.trim().as_bytes()).unwrap_or_default();
        let task = tools.as_task(call, args);
        let permit = tools.permit(&task, &labels, clearance.accepted_by_person(), accepted_hosts(run));
        if let Clearance::Denied(error) = &clearance {
            tools.log_denied(&permit, &task, &labels, &error.message);
        }
        Ok((clearance, permit))
    }

    async fn clear(&self, run: &Run, effect: Option<CallEffect>) -> Result<Clearance, DriveError> {
        let Some(effect) = effect else { return Ok(Clearance::Free) };
        let why: String = effect.because.iter().map(|why| format!("; {why}")).collect();
        let what = format!("{}, {}{why}", effect.tool, effect.destination());
        let denied = |code: ErrorCode, message: String| {
            Clearance::Denied(TaskError { code, message, limit: None, retryable: false, policy: true })
        };
        Ok(match run.decision(&effect) {
            // With the accepted access, not with what would be asked for now.
            Some((Decision::Accepted, accepted)) => Clearance::Accepted(accepted.access.clone(), true),
            Some((Decision::Refused, _)) => denied(ErrorCode::Refused, format!("refused by the user: {what}")),
            Some((Decision::Expired, _)) => denied(
                ErrorCode::ApprovalExpired,
                format!("nobody accepted this in time (approvals.expires_s in config.toml): {what}"),
            ),
            None => match remembered(&self.rules().await?, &effect) {
                Some(_) => Clearance::Accepted(effect.access, false),
                None => denied(
                    ErrorCode::ApprovalNeeded,
                    format!("this needs the user's approval, and no more of them can be asked for: {what}"),
                ),
            },
        })
    }

    /// Returns the remembered decisions for the session.
    async fn rules(&self) -> Result<Vec<ApprovalRule>, DriveError> {
        let session = self.session.clone();
        Ok(self.drive.store.read(move |view| view.approval_rules(Some(&session), now_ms())).await?)
    }
}

/// Returns the hosts for which a person has accepted a data flow that the rules of labels forbid.
fn accepted_hosts(run: &Run) -> AcceptedHosts {
    let accepted = run.decisions().filter(|(decision, _)| *decision == Decision::Accepted).map(|(_, effect)| effect);
    let asked = accepted.filter(|effect| effect.tool == NETWORK && !effect.because.is_empty());
    let hosts = asked.flat_map(|effect| &effect.access).flat_map(|access| &access.hosts);
    let mut all = AcceptedHosts::default();
    for to in hosts {
        let reads = to.methods.iter().all(|method| READING.contains(&method.as_str()));
        let of_kind = if reads { &mut all.readable } else { &mut all.changeable };
        of_kind.insert(format!("host:{}", bare(&to.host)));
    }
    all
}

/// Returns the decision that covers all of an effect, whatever its arguments. Effects that text from outside may have influenced
/// are never covered, because the source of each instruction is checked for every call.
fn remembered<'r>(rules: &'r [ApprovalRule], effect: &CallEffect) -> Option<&'r ApprovalRule> {
    let covers = |rule: &&ApprovalRule| {
        let covered = |access: &CardAccess| rule.access.iter().any(|wide| access.is_within(wide));
        effect.because.is_empty() && rule.tool == effect.tool && effect.access.iter().all(covered)
    };
    rules.iter().find(covers)
}

/// A person's answer to a card.
#[derive(Debug, Clone)]
pub struct CardReply {
    /// Numbers of the accepted effects; `None` for all.
    pub accepted: Option<Vec<usize>>,
    /// Whether to accept the same in the future without asking.
    pub always: Option<AlwaysScope>,
    /// Who answers.
    pub by: String,
}

/// Why an answer was not accepted. Nothing was decided.
#[derive(Debug, thiserror::Error)]
pub enum CardReplyError {
    #[error("there is no approval {0}")]
    Unknown(i64),
    #[error("approval {id} waits for no answer: it is {}", .state.as_str())]
    Over { id: i64, state: ApprovalState },
    #[error("approval {id} has the numbers 1 to {most}, and not {number}")]
    Number { id: i64, number: usize, most: usize },
    #[error("an answer that accepts nothing cannot be remembered")]
    Nothing,
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl RunExecutor {
    /// Cancels the runs of a session that wait for a person; returns whether there were any.
    pub async fn cancel_waiting(&self, session: &SessionName) -> Result<bool, StoreError> {
        let of = session.clone();
        let waiting = self.store.read(move |view| view.runs_waiting(&of)).await?;
        let any = !waiting.is_empty();
        self.store.write(move |tx| waiting.iter().try_for_each(|run| tx.request_cancel(run))).await?;
        Ok(any)
    }

    /// Answers a card. `within` lists the sessions whose cards may be answered; `None` for all. The run continues by itself.
    pub async fn answer_card(
        &self,
        id: i64,
        within: Option<Vec<SessionName>>,
        reply: CardReply,
    ) -> Result<CardAnswer, CardReplyError> {
        let now = now_ms();
        let found = self.store.read(move |view| view.approval(id)).await?;
        let is_here = |session: &SessionName| within.as_ref().is_none_or(|within| within.contains(session));
        let asked = found.filter(|asked| is_here(&asked.session)).ok_or(CardReplyError::Unknown(id))?;
        let most = asked.card.effects.len();
        let mut accepted = reply.accepted.unwrap_or_else(|| (1..=most).collect());
        accepted.sort_unstable();
        accepted.dedup();
        if let Some(number) = accepted.iter().find(|number| !(1..=most).contains(number)) {
            return Err(CardReplyError::Number { id, number: *number, most });
        }
        let about_hosts = |effect: &&CallEffect| effect.tool == NETWORK && effect.because.is_empty();
        // A refusal can be remembered for hosts, but not for calls.
        let refuses_hosts = accepted.is_empty() && asked.card.is_about_hosts();
        if reply.always.is_some() && accepted.is_empty() && !refuses_hosts {
            return Err(CardReplyError::Nothing);
        }
        let access = if refuses_hosts { NetworkAccess::Deny } else { NetworkAccess::Allow };
        let hosts =
            asked.card.effects.iter().enumerate().filter(|(at, _)| refuses_hosts || accepted.contains(&(at + 1)));
        let hosts = hosts.map(|(_, effect)| effect).filter(about_hosts).flat_map(|effect| &effect.access);
        let by =
            format!("approval {id}{}", if reply.by.is_empty() { String::new() } else { format!(" ({})", reply.by) });
        let host_rule = |to: &Destination| NewNetworkRule {
            session: (reply.always == Some(AlwaysScope::Session)).then(|| asked.session.clone()),
            rule: NetworkRule {
                methods: if refuses_hosts { Vec::new() } else { to.methods.clone() },
                ..NetworkRule::new(&to.host, access)
            },
            by: by.clone(),
        };
        // Rules for hosts near this machine require an administrator's command.
        let hosts = hosts.flat_map(|access| &access.hosts).filter(|to| refuses_hosts || !is_near(&to.host));
        let host_rules: Vec<_> = hosts.filter(|_| reply.always.is_some()).map(host_rule).collect();
        let rule = |always: AlwaysScope, effect: &CallEffect| NewApprovalRule {
            session: (always == AlwaysScope::Session).then(|| asked.session.clone()),
            tool: effect.tool.clone(),
            access: effect.access.clone(),
            until_ms: (always == AlwaysScope::ThirtyDays).then(|| now.saturating_add(REMEMBERED_MS)),
        };
        let chosen = accepted.iter().filter_map(|number| asked.card.effects.get(number - 1));
        let chosen = chosen.filter(|effect| effect.tool != NETWORK);
        let rules: Vec<_> = chosen.filter_map(|effect| Some(rule(reply.always?, effect))).collect();
        let lasts = !host_rules.is_empty() || !rules.is_empty();
        let answer = CardAnswer { accepted, expired: false, by: reply.by, always: reply.always.filter(|_| lasts) };
        let said = answer.clone();
        let write = self.store.write(move |tx| {
            let taken = tx.answer_approval(id, &said, now_ms())?;
            if taken {
                tx.remember_approvals(&rules, now)?;
                for rule in &host_rules {
                    tx.remember_network_rule(rule, now)?;
                }
            }
            Ok((taken, tx.approval(id)?))
        });
        match write.await? {
            (true, _) => {
                // Wakes the queue, so that the run continues now.
                self.store.ring();
                tracing::info!(approval = id, run = %asked.run, accepted = answer.accepted.len(), by = answer.by, "a card is answered");
                Ok(answer)
            }
            (false, now) => {
                let state = now.map_or(ApprovalState::Withdrawn, |now| now.state);
                // The card has expired, but that was not recorded yet.
                let state = if state == ApprovalState::Pending { ApprovalState::Expired } else { state };
                Err(CardReplyError::Over { id, state })
            }
        }
    }
}
