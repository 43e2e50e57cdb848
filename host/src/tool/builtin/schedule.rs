//! `schedule_add`, `schedule_list`, `schedule_remove`: messages that come by themselves.

use serde_json::{Value, json};

use super::{Builtins, CallContext, Tool, ToolFault, text, tool};
use crate::clock::now_ms;
use crate::clock::timing::MAX_TIMING;
use crate::store::LabelledRow;
use crate::tool::schedules::{self, MAX_MESSAGE, MAX_NAME, ScheduleError, ScheduleRequest, Schedules};

pub(super) const CATEGORY: &str = "schedule";
pub(super) const ADD: &str = "schedule_add";
pub(super) const REMOVE: &str = "schedule_remove";
const LIST: &str = "schedule_list";

/// Characters of a message in a listing.
const SHOWN: usize = 200;

pub(super) fn tools() -> Vec<Tool> {
    let name = json!({ "type": "string", "minLength": 1, "maxLength": MAX_NAME, "pattern": "^[a-z0-9][a-z0-9_-]*$", "description": "name of the schedule: small letters, digits, - and _" });
    vec![
        tool(
            ADD,
            CATEGORY,
            "Have a message sent by itself, again and again or once. A subagent does what it says, with the rights of this \
             conversation, and this conversation is told its answer.",
            json!({
                "name": name,
                "when": { "type": "string", "minLength": 1, "maxLength": MAX_TIMING, "description": "a cron expression such as \"30 8 * * MON-FRI\", @daily, \"@every 10m\" or \"at 2030-01-31 08:00\"" },
                "message": { "type": "string", "minLength": 1, "maxLength": MAX_MESSAGE, "description": "the message to send each time, with everything needed to understand it" },
                "zone": { "type": "string", "minLength": 1, "maxLength": 64, "description": "time zone, such as Europe/Berlin; without it, the configured one" },
                "model": { "type": "string", "minLength": 1, "maxLength": 200, "description": "model string; without it, the one for subagents" },
                "inject_into": { "type": "string", "minLength": 1, "maxLength": 64, "default": "self", "description": "session that receives the replies; \"self\" is this conversation" },
            }),
            &["name", "when", "message"],
        ),
        tool(LIST, CATEGORY, "List the schedules, with when each comes next.", json!({}), &[]),
        tool(REMOVE, CATEGORY, "Remove a schedule.", json!({ "name": name }), &["name"]),
    ]
}

pub(super) async fn call(builtins: &Builtins, name: &str, args: &Value, at: &CallContext) -> Result<String, ToolFault> {
    let Builtins { store, config, vault, .. } = builtins;
    let all = Schedules::new(config, store, vault);
    match name {
        ADD => {
            let given = |name| args.get(name).and_then(Value::as_str).map(str::to_owned);
            let wanted = ScheduleRequest {
                name: text(args, "name").to_owned(),
                timing: text(args, "when").to_owned(),
                zone: given("zone"),
                message: text(args, "message").to_owned(),
                session: Some(at.addressed(store, text(args, "inject_into")).await?),
                model: given("model"),
                caller: at.caller,
                label: at.written(),
            };
            let added = all.add(wanted, now_ms()).await?;
            let hint = if store.is_attended() { "" } else { " It comes while `kiso serve` runs." };
            Ok(format!("Scheduled: {}.{hint}", schedules::describe(&added)))
        }
        LIST => {
            let mut lines = Vec::new();
            for schedule in all.list().await? {
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
            all.remove(text(args, "name"), at.caller).await?;
            Ok(format!("The schedule {} is removed.", text(args, "name")))
        }
    }
}

impl From<ScheduleError> for ToolFault {
    fn from(error: ScheduleError) -> ToolFault {
        let hint = match &error {
            ScheduleError::Taken { .. } => Some("schedule_remove removes it; another name keeps both"),
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
