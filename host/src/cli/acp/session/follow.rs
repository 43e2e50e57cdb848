//! Forwards the daemon's events about a prompt to the editor: plan, tool calls, text, and the end.

use serde_json::{Value, json};

use super::super::update;
use super::AcpSession;
use crate::cli::client::wire::{NoticeLine, ServerLine};
use kiso_base::rpc::{INTERNAL_ERROR, INVALID_PARAMS, RpcError};
use kiso_gateway::{progress, standing};
use kiso_graph::outcome::{Ending, Outcome};
use kiso_graph::step::{Event, StepResult, ToolResult};
use kiso_plan::plan::{Task, TaskKind};
use kiso_plan::report::{TaskReport, TaskStatus};
use kiso_store::store::{JobState, RunId, StoreError};

impl AcpSession {
    /// Handles a line of the daemon.
    pub(super) async fn hear(&mut self, heard: ServerLine) -> Result<(), StoreError> {
        let Some(prompt) = &mut self.prompt else { return Ok(()) };
        let is_own = heard.reference() == Some(prompt.reference.as_str());
        match heard {
            ServerLine::Accepted { message, .. } if is_own => {
                prompt.message = Some(message);
                self.settle().await
            }
            ServerLine::Outbound(outbound) if is_own => {
                self.write(&outbound.answer.unwrap_or_default()).await;
                self.finish("end_turn").await;
                Ok(())
            }
            ServerLine::Outbound(outbound)
                if prompt.message.is_some_and(|message| outbound.answers.contains(&message)) =>
            {
                self.settle().await
            }
            ServerLine::Error { code, message, hint, .. } if is_own => {
                let hint = hint.map(|hint| format!("; {hint}")).unwrap_or_default();
                let code = if code == "bad_request" || code == "too_large" { INVALID_PARAMS } else { INTERNAL_ERROR };
                self.fail(RpcError::new(code, format!("{message}{hint}"))).await;
                Ok(())
            }
            ServerLine::Event(notice) => self.happened(notice).await,
            _ => Ok(()),
        }
    }

    async fn happened(&mut self, notice: NoticeLine) -> Result<(), StoreError> {
        let NoticeLine { event, data, .. } = notice;
        match event.as_str() {
            "run" if self.is_own(&data["id"]).await? => {
                let is_cancelled = self.prompt.as_ref().is_some_and(|prompt| prompt.cancelled);
                // The prompt was cancelled before its run started.
                if is_cancelled && data["status"] == "running" {
                    self.say_cancel();
                }
                self.settle().await?;
            }
            "event" if self.is_own(&data["run"]).await? => self.step(data).await,
            "live" if self.is_own(&data["run"]).await? => self.live(&data).await,
            "gap" => self.settle().await?,
            "deleted" => self.fail(RpcError::new(INTERNAL_ERROR, "the session was deleted")).await,
            _ => {}
        }
        Ok(())
    }

    /// Returns whether this is the run that answers the prompt.
    async fn is_own(&mut self, run: &Value) -> Result<bool, StoreError> {
        let Some(prompt) = &mut self.prompt else { return Ok(false) };
        if prompt.run.is_none()
            && let Some(message) = prompt.message
        {
            prompt.run = self.drive.store.read(move |view| view.job(message)).await?.and_then(|job| job.run);
        }
        Ok(prompt.run.as_ref().is_some_and(|own| run.as_str() == Some(own.as_str())))
    }

    /// Ends the prompt if it is answered, or if it waits for a person.
    async fn settle(&mut self) -> Result<(), StoreError> {
        let Some(message) = self.prompt.as_ref().and_then(|prompt| prompt.message) else { return Ok(()) };
        match standing(&self.drive.store, &self.drive.vault, message, Some(&self.session)).await? {
            None => self.fail(RpcError::new(INTERNAL_ERROR, "the message was deleted with its session")).await,
            Some(Ok(answer)) => {
                let rest = self.prompt.as_mut().map(|prompt| prompt.text.end(&answer.text)).unwrap_or_default();
                self.write(&rest).await;
                let reason = self.stop_reason(answer.state, answer.run).await?;
                self.finish(reason).await;
            }
            Some(Err(JobState::Held)) => {
                let message = "the run was cut off too often and is waiting for a person to retry it in kiso's page";
                self.fail(RpcError::new(INTERNAL_ERROR, message)).await;
            }
            Some(Err(JobState::Waiting)) => self.ask_card().await?,
            Some(Err(_)) => {}
        }
        Ok(())
    }

    async fn stop_reason(&self, state: JobState, run: Option<RunId>) -> Result<&'static str, StoreError> {
        if state == JobState::Cancelled || self.prompt.as_ref().is_some_and(|prompt| prompt.cancelled) {
            return Ok("cancelled");
        }
        let Some(run) = run else { return Ok("end_turn") };
        let ending = self.drive.store.read(move |view| view.ending(&run)).await?;
        let outcome = ending.and_then(|(_, outcome)| serde_json::from_str::<Outcome>(&outcome?).ok());
        let is_limit = outcome.is_some_and(|outcome| matches!(outcome.ending, Ending::LimitHit(_)));
        Ok(if is_limit { "max_turn_requests" } else { "end_turn" })
    }

    /// Handles a step of the run.
    async fn step(&mut self, mut data: Value) {
        let kind = data["kind"].as_str().unwrap_or_default().to_owned();
        let event = serde_json::from_value::<Event>(data["body"].take());
        let Some(prompt) = &mut self.prompt else { return };
        let Ok(event) = event else { return prompt.text.missed(&kind) };
        let piece = prompt.text.hear_event(&event);
        match &event.result {
            StepResult::Planned { plan, .. } => {
                prompt.board.plan(&plan.tasks);
                self.tell_plan().await;
            }
            StepResult::Started { .. } => {
                let task = prompt.board.start();
                self.tell_plan().await;
                if let Some(task) = task.filter(|task| matches!(task.kind, TaskKind::Exec | TaskKind::Skill)) {
                    let id = self.begin_call(&task.label(), task_kind(&task), task_input(&task)).await;
                    if let Some(prompt) = &mut self.prompt {
                        prompt.task_call = Some(id);
                    }
                }
            }
            StepResult::Executed { report, .. } => self.executed(report).await,
            StepResult::Acted { calls, .. } => {
                for call in calls {
                    let input = serde_json::from_str(&call.args).unwrap_or_else(|_| json!({ "args": call.args }));
                    let id = self.begin_call(&call.name, tool_kind(&call.name), input).await;
                    if let Some(prompt) = &mut self.prompt {
                        prompt.calls.insert(call.id.clone(), id);
                    }
                }
            }
            StepResult::Called { results } => self.report_results(results).await,
            StepResult::Reviewed { verdict, .. } => {
                prompt.board.inject(&verdict.inject);
                if !verdict.inject.is_empty() {
                    self.tell_plan().await;
                }
                self.think_of(&event).await;
            }
            StepResult::Told { .. } => self.think_of(&event).await,
            _ => {}
        }
        self.write(&piece).await;
    }

    /// Reports a finished task. Text for the user is part of the reply, and not a tool call.
    async fn executed(&mut self, report: &TaskReport) {
        let Some(prompt) = &mut self.prompt else { return };
        prompt.board.end();
        let begun = prompt.task_call.take();
        self.tell_plan().await;
        if report.task.kind == TaskKind::Msg {
            return;
        }
        let id = match begun {
            Some(id) => id,
            None => self.begin_call(&report.task.label(), task_kind(&report.task), task_input(&report.task)).await,
        };
        let changes = self.changes().await;
        let trouble = report.trouble();
        let output = match &trouble {
            Some(trouble) if report.text.trim().is_empty() => trouble.clone(),
            Some(trouble) => format!("{}\n{trouble}", report.text.trim_end()),
            None => report.text.clone(),
        };
        let is_done = trouble.is_none() && report.status == TaskStatus::Done;
        self.send(update::call_end(&self.session, &id, is_done, &output, changes)).await;
    }

    /// Reports the results of the actor's tool calls.
    async fn report_results(&mut self, results: &[ToolResult]) {
        // The changes of parallel calls cannot be told apart, so the first result gets all of them.
        let mut changes = Some(self.changes().await);
        for result in results {
            let begun = self.prompt.as_mut().and_then(|prompt| prompt.calls.remove(&result.id));
            let id = match begun {
                Some(id) => id,
                None => self.begin_call(&result.name, tool_kind(&result.name), Value::Null).await,
            };
            let is_done = result.code.is_none();
            let changes = changes.take().unwrap_or_default();
            self.send(update::call_end(&self.session, &id, is_done, &result.text, changes)).await;
        }
    }

    async fn begin_call(&mut self, title: &str, kind: &str, input: Value) -> String {
        let id = format!("call-{}", self.next_id());
        self.send(update::call(&self.session, &id, title, kind, input)).await;
        id
    }

    async fn tell_plan(&self) {
        if let Some(prompt) = self.prompt.as_ref().filter(|prompt| !prompt.board.is_empty()) {
            self.send(update::plan(&self.session, &prompt.board)).await;
        }
    }

    async fn live(&mut self, data: &Value) {
        let Some(prompt) = &mut self.prompt else { return };
        if data["type"] == "thought" {
            let text = data["text"].as_str().unwrap_or_default();
            if prompt.busy != text {
                text.clone_into(&mut prompt.busy);
                self.think(&format!("{text}\n")).await;
            }
            return;
        }
        let piece = prompt.text.hear_live(data);
        self.write(&piece).await;
    }

    async fn think_of(&mut self, event: &Event) {
        if let Some(text) = progress::describe(event) {
            self.think(&text).await;
        }
    }
}

fn task_kind(task: &Task) -> &'static str {
    match task.kind {
        TaskKind::Exec => "execute",
        TaskKind::Act => "think",
        TaskKind::Skill | TaskKind::Msg => "other",
    }
}

fn task_input(task: &Task) -> Value {
    match task.kind {
        TaskKind::Exec => json!({ "command": task.detail }),
        _ => task.args.clone().unwrap_or_else(|| json!({})),
    }
}

/// Returns the kind of a built-in tool; it is not known for installed skills.
fn tool_kind(name: &str) -> &'static str {
    match name {
        "exec" => "execute",
        name if name.contains("search") => "search",
        _ => "other",
    }
}
