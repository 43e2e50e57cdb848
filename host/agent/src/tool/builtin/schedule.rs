//! `schedule_add`, `schedule_list`, `schedule_remove`: scheduled messages. Adding a schedule with an existing name changes it.

use serde_json::{Value, json};

use super::{Builtins, CallContext, Tool, ToolFault, text, tool};
use crate::tool::schedules::{self, MAX_MESSAGE, MAX_NAME, ScheduleError, ScheduleRequest, ScheduleUpdate, Schedules};
use kiso_base::clock::now_ms;
use kiso_base::clock::timing::MAX_TIMING;
use kiso_plan::code::ErrorCode;
use kiso_plan::plan::CallerScope;
use kiso_store::store::{LabelledRow, Schedule, Store};

pub(super) const CATEGORY: &str = "schedule";
pub(super) const ADD: &str = "schedule_add";
pub(super) const REMOVE: &str = "schedule_remove";
pub(super) const LIST: &str = "schedule_list";

/// Maximum length in characters of a message in a listing.
const SHOWN: usize = 200;

pub(super) fn tools() -> Vec<Tool> {
    let name = json!({ "type": "string", "minLength": 1, "maxLength": MAX_NAME, "pattern": "^[a-z0-9][a-z0-9_-]*$", "description": "a-z, 0-9, - and _" });
    vec![
        tool(
            ADD,
            CATEGORY,
            "Have a message sent at set times, or once: a subagent does what it says, and this conversation is told its answer. Under a \
             name that there is already, what is given changes that one.",
            json!({
                "name": name,
                "when": { "type": "string", "minLength": 1, "maxLength": MAX_TIMING, "description": "\"every weekday at 8\", cron such as \"30 8 * * MON-FRI\", \"@every 10m\" or \"at 2030-01-31 08:00\"" },
                "message": { "type": "string", "minLength": 1, "maxLength": MAX_MESSAGE, "description": "with all that is needed to understand it" },
                "zone": { "type": "string", "minLength": 1, "maxLength": 64, "description": "such as Europe/Berlin; else the user's" },
                "model": { "type": "string", "minLength": 1, "maxLength": 200, "description": "PROVIDER:MODEL" },
                "inject_into": { "type": "string", "minLength": 1, "maxLength": 64, "description": "session that is told, if not this one" },
            }),
            &["name"],
        ),
        tool(LIST, CATEGORY, "List the schedules.", json!({}), &[]),
        tool(REMOVE, CATEGORY, "Remove a schedule.", json!({ "name": name }), &["name"]),
    ]
}

pub(super) async fn call(builtins: &Builtins, name: &str, args: &Value, at: &CallContext) -> Result<String, ToolFault> {
    let Builtins { store, config, vault, .. } = builtins;
    let all = Schedules::new(config, store, vault);
    match name {
        ADD => {
            let given = |name| args.get(name).and_then(Value::as_str).map(str::to_owned);
            let (name, timing, message) = (text(args, "name"), given("when"), given("message"));
            let session = match given("inject_into") {
                Some(session) => Some(at.addressed(store, &session).await?),
                None => None,
            };
            let (zone, model, label) = (given("zone"), given("model"), at.written());
            let (verb, schedule) = if all.has(name).await? {
                if !is_of_caller(store, &all.one(name).await?, at).await? {
                    return Err(ScheduleError::NameInUse { name: name.to_owned() }.into());
                }
                let (session, model) = (session.map(Some), model.map(Some));
                let change = ScheduleUpdate { timing, zone, message, session, model, label: Some(label) };
                ("Changed, as there was one of this name", all.change(name, change, at.caller, now_ms()).await?)
            } else {
                let (Some(timing), Some(message)) = (timing, message) else {
                    let fault =
                        ToolFault::new(format!("there is no schedule {name:?}, and a new one needs when and message"));
                    return Err(
                        ToolFault { code: ErrorCode::BadArgs, ..fault }.hint("schedule_list shows which there are")
                    );
                };
                let session = Some(session.unwrap_or_else(|| at.session.clone()));
                let name = name.to_owned();
                let new = ScheduleRequest { name, timing, zone, message, session, model, caller: at.caller, label };
                ("Scheduled", all.add(new, now_ms()).await?)
            };
            let hint = if store.is_attended() { "" } else { " It comes while `kiso serve` runs." };
            Ok(format!("{verb}: {}.{hint}", schedules::describe(&schedule)))
        }
        LIST => {
            let mut lines = Vec::new();
            for schedule in all.list().await? {
                if !is_of_caller(store, &schedule, at).await? {
                    continue;
                }
                let id = schedule.id;
                at.read.join(&store.read(move |view| view.label(LabelledRow::Schedule, id)).await?);
                let message = all.message(&schedule).unwrap_or_default();
                let shown: String = message.chars().take(SHOWN).collect();
                let more = if shown.len() < message.len() { "…" } else { "" };
                lines.push(format!("{}: {shown}{more}", schedules::describe(&schedule)));
            }
            Ok(if lines.is_empty() { "There are no schedules.".to_owned() } else { lines.join("\n") })
        }
        _ => {
            let name = text(args, "name");
            if !is_of_caller(store, &all.one(name).await?, at).await? {
                return Err(ScheduleError::Unknown { name: name.to_owned() }.into());
            }
            all.remove(name, at.caller).await?;
            Ok(format!("The schedule {name} is removed."))
        }
    }
}

/// Returns whether a schedule belongs to this conversation: a user sees those that report to sessions of the same owner.
async fn is_of_caller(store: &Store, schedule: &Schedule, at: &CallContext) -> Result<bool, ToolFault> {
    if at.caller == CallerScope::Admin {
        return Ok(true);
    }
    let told = match &schedule.session {
        Some(session) => session.clone(),
        None => schedules::session_of(&schedule.name)?,
    };
    let here = at.session.clone();
    Ok(store.read(move |view| view.have_same_owner(&here, &told)).await?)
}

impl From<ScheduleError> for ToolFault {
    fn from(error: ScheduleError) -> ToolFault {
        let hint = match &error {
            ScheduleError::Unknown { .. } => Some("schedule_list shows which there are"),
            _ => None,
        };
        let fault = ToolFault::new(error.to_string());
        match hint {
            Some(hint) => fault.hint(hint),
            None => fault,
        }
    }
}
