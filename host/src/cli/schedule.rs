//! `kiso schedule`: messages sent at given times.

use super::client::daemon::is_served;
use super::listing::typed;
use super::show::printable_line;
use super::{Exit, Failure, Opened, Shared, block_on, session};
use clap::Subcommand;
use kiso_agent::tool::schedules::{
    MAX_RECEIPTS, ScheduleError, ScheduleRequest, ScheduleUpdate, Schedules, coming, describe, timing_of,
};
use kiso_base::clock::now_ms;
use kiso_plan::plan::CallerScope;
use kiso_sandbox::skill::Quiet;
use kiso_store::secret::vault::Vault;
use kiso_store::store::{Receipt, Schedule};
use serde_json::json;
use std::sync::Arc;

/// Maximum times that `next` shows.
const MAX_TIMES: usize = 1_000;

#[derive(Debug, Subcommand)]
pub(super) enum ScheduleCommand {
    /// Schedule a message; `kiso serve` sends it
    #[command(after_help = TIMES)]
    Add {
        /// Name of the schedule: lowercase letters, digits, - and _
        name: String,
        /// When: "every weekday at 8", "30 8 * * MON-FRI", @daily, "@every 10m" or "at 2030-01-31 08:00"
        #[arg(value_name = "WHEN")]
        timing: String,
        /// The message to send each time
        message: String,
        /// Time zone, such as Europe/Berlin [default: schedule.time_zone, or that of the system]
        #[arg(long)]
        zone: Option<String>,
        /// Session that receives the replies; without it, only the receipts and the session schedule.NAME show them
        #[arg(long)]
        session: Option<String>,
        /// Model that does the work [default: subagents.model]
        #[arg(long)]
        model: Option<String>,
    },
    /// Change a schedule; settings without an option stay unchanged
    #[command(after_help = TIMES)]
    Edit {
        name: String,
        /// When: "every weekday at 8", "30 8 * * MON-FRI", @daily, "@every 10m" or "at 2030-01-31 08:00"
        #[arg(long = "when", value_name = "WHEN")]
        timing: Option<String>,
        /// The message to send each time
        #[arg(long)]
        message: Option<String>,
        /// Time zone, such as Europe/Berlin
        #[arg(long)]
        zone: Option<String>,
        /// Session that receives the replies; "" for none
        #[arg(long)]
        session: Option<String>,
        /// Model that does the work; "default" goes back to subagents.model
        #[arg(long)]
        model: Option<String>,
    },
    /// List the schedules
    List,
    /// Show when schedules run next
    Next {
        /// One schedule only
        name: Option<String>,
        /// How many times to show for each
        #[arg(short, default_value_t = 1, value_name = "COUNT")]
        n: usize,
    },
    /// Run a schedule now, without changing its times
    Run { name: String },
    /// Pause a schedule
    Pause { name: String },
    /// Resume a schedule; times missed while it was paused are skipped
    Resume { name: String },
    /// Remove a schedule and its receipts
    Remove { name: String },
    /// Show the result of each time a schedule was due
    Receipts {
        /// One schedule only
        name: Option<String>,
        /// How many to show
        #[arg(short, default_value_t = 20, value_name = "COUNT")]
        n: u32,
    },
}

const TIMES: &str = "A cron expression has 5 fields: minute, hour, day of month, month and day of week; 6 with seconds before them. \
                     docs/schedule.md says more.";

impl ScheduleCommand {
    pub(super) fn execute(&self, shared: &Shared) -> Result<Exit, Failure> {
        let opened = Opened::new(shared, Arc::new(Quiet))?;
        let schedules = Schedules::new(&opened.config, &opened.store, &Vault::open(&opened.home));
        block_on(self.perform(shared, &schedules))??;
        if matches!(self, Self::Add { .. }) && !shared.json && !is_served(&opened.home)? {
            errln!("no daemon is running, and only a daemon sends scheduled messages: start one with `kiso serve`");
        }
        Ok(Exit::Done)
    }

    async fn perform(&self, shared: &Shared, schedules: &Schedules) -> Result<(), Failure> {
        // Whoever can write to the home is its administrator.
        let by = CallerScope::Admin;
        match self {
            Self::Add { name, timing, message, zone, session: told, model } => {
                let wanted = ScheduleRequest {
                    label: Default::default(),
                    name: name.clone(),
                    timing: timing.clone(),
                    zone: zone.clone(),
                    message: message.clone(),
                    session: told.as_deref().map(|name| session(Some(name))).transpose()?,
                    model: model.clone(),
                    caller: by,
                };
                tell(shared, &schedules.add(wanted, now_ms()).await?, schedules);
            }
            Self::Edit { name, timing, message, zone, session: told_text, model } => {
                let told = told_text.as_deref().map(|name| Some(name).filter(|name| !name.is_empty()));
                let change = ScheduleUpdate {
                    timing: timing.clone(),
                    zone: zone.clone(),
                    message: message.clone(),
                    session: told.map(|name| name.map(|name| session(Some(name))).transpose()).transpose()?,
                    model: model.clone().map(|model| Some(model).filter(|model| model != "default")),
                    label: None,
                };
                if [timing, message, zone, told_text, model].iter().all(|given| given.is_none()) {
                    let message = "nothing is to be changed: give --when, --message, --zone, --session or --model";
                    return Err(Failure::new(Exit::Usage, message));
                }
                tell(shared, &schedules.change(name, change, by, now_ms()).await?, schedules);
            }
            Self::List => {
                for schedule in schedules.list().await? {
                    tell(shared, &schedule, schedules);
                }
            }
            Self::Next { name, n } => {
                let all = match name {
                    Some(name) => vec![schedules.one(name).await?],
                    None => schedules.list().await?,
                };
                let mut times: Vec<_> = Vec::new();
                for schedule in &all {
                    times.extend(coming(schedule, (*n).min(MAX_TIMES)).into_iter().map(|at| (at, schedule)));
                }
                times.sort_by_key(|(at, _)| *at);
                for (at, schedule) in times {
                    let shown = timing_of(schedule).map_err(ScheduleError::from)?.show(at);
                    if shared.json {
                        outln!("{}", json!({ "type": "next", "name": schedule.name, "at_ms": at, "at": shown }));
                    } else {
                        outln!("{shown}  {}", schedule.name);
                    }
                }
            }
            Self::Run { name } => {
                let receipt = schedules.run(name, by, now_ms()).await?;
                if shared.json {
                    outln!("{}", typed("receipt", &receipt));
                } else {
                    outln!(
                        "{name} was sent as message {}; `kiso serve` answers it",
                        receipt.message.unwrap_or_default()
                    );
                }
            }
            Self::Pause { name } => tell(shared, &schedules.pause(name, true, by, now_ms()).await?, schedules),
            Self::Resume { name } => tell(shared, &schedules.pause(name, false, by, now_ms()).await?, schedules),
            Self::Remove { name } => {
                schedules.remove(name, by).await?;
                if shared.json {
                    outln!("{}", json!({ "type": "removed", "name": name }));
                } else {
                    outln!("{name} is removed");
                }
            }
            Self::Receipts { name, n } => {
                let all = schedules.list().await?;
                for receipt in schedules.receipts(name.as_deref(), None, (*n).min(MAX_RECEIPTS)).await? {
                    if shared.json {
                        outln!("{}", typed("receipt", &receipt));
                    } else {
                        outln!("{}", receipt_line(&receipt, &all));
                    }
                }
            }
        }
        Ok(())
    }
}

fn tell(shared: &Shared, schedule: &Schedule, schedules: &Schedules) {
    let shown = schedules.shown(schedule.clone());
    if shared.json {
        outln!("{}", typed("schedule", &shown));
        return;
    }
    // A message sealed with the key of another home is listed anyway.
    let message = shown.message.unwrap_or_else(|| "(sealed with the key of another home)".to_owned());
    let first = message.lines().next().unwrap_or_default();
    outln!("{}\n    {}", describe(schedule), printable_line(first));
}

fn receipt_line(receipt: &Receipt, all: &[Schedule]) -> String {
    let timing = all.iter().find(|one| one.name == receipt.schedule).and_then(|one| timing_of(one).ok());
    let due = timing.map_or_else(|| receipt.due_ms.to_string(), |timing| timing.show(receipt.due_ms));
    let by_hand = if receipt.by_hand { " (by hand)" } else { "" };
    let late_s = (receipt.fired_ms - receipt.due_ms) / 1_000;
    let late = if late_s >= 60 { format!(" ({late_s} s late)") } else { String::new() };
    let run = receipt.run.as_ref().map(|run| format!("  run {run}")).unwrap_or_default();
    format!("{due}{by_hand}{late}  {}  {}{run}", receipt.schedule, receipt.state.as_str())
}

impl From<ScheduleError> for Failure {
    fn from(error: ScheduleError) -> Failure {
        let exit = match error {
            ScheduleError::Store(error) => return error.into(),
            ScheduleError::Vault(_) | ScheduleError::StillWaiting => Exit::Failed,
            ScheduleError::Forbidden { .. } => Exit::Policy,
            ScheduleError::TooOften { .. } | ScheduleError::TooLarge { .. } => Exit::Limit,
            ScheduleError::ConfiguredZone(_) => Exit::Config,
            _ => Exit::Usage,
        };
        Failure::new(exit, error.to_string())
    }
}
