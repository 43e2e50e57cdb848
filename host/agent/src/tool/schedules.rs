//! Changes of schedules: by a tool, on the command line, or over HTTP. All use this module, so that the same rules apply;
//! `crate::schedule` fires them.
//!
//! A schedule runs with the rights of its creator, and only an administrator may change somebody else's. Its work is done in a
//! separate session, `schedule.NAME`, a subagent of the session that receives the reply.

use schemars::JsonSchema;
use serde::Serialize;

use kiso_base::clock::timing::{Timing, TimingError};
use kiso_base::config::Config;
use kiso_base::home::SessionName;
use kiso_plan::label::Label;
use kiso_plan::plan::CallerScope;
use kiso_store::secret::vault::{SEALED_RUN, Vault, VaultError};
use kiso_store::secret::{Secrets, found};
use kiso_store::store::{DueSchedule, NewSchedule, Receipt, ReceiptState, Schedule, Store, StoreError, View};

/// Maximum length of a schedule's name in characters.
pub const MAX_NAME: usize = 40;

/// Maximum size of a scheduled message in bytes: longer text belongs in a file of a workspace.
pub const MAX_MESSAGE: usize = 16 << 10;

/// Maximum number of receipts in a listing.
pub const MAX_RECEIPTS: u32 = 1_000;

/// The schedules of a home. Cheap to create for each use.
#[derive(Debug, Clone)]
pub struct Schedules {
    store: Store,
    vault: Vault,
    config: kiso_base::config::Schedule,
    /// The time zone of the user.
    zone: String,
    /// The default model of schedules.
    model: Option<String>,
    /// Model strings in the configuration.
    models: Vec<String>,
}

/// A request to add a schedule.
#[derive(Debug, Clone)]
pub struct ScheduleRequest {
    pub name: String,
    pub timing: String,
    /// A name of the IANA database; the configured zone by default.
    pub zone: Option<String>,
    pub message: String,
    /// The session that receives the reply.
    pub session: Option<SessionName>,
    pub model: Option<String>,
    pub caller: CallerScope,
    /// Label of the request.
    pub label: Label,
}

/// Changes of a schedule; other fields stay unchanged.
#[derive(Debug, Clone, Default)]
pub struct ScheduleUpdate {
    pub timing: Option<String>,
    pub zone: Option<String>,
    pub message: Option<String>,
    /// The session that receives the reply; `Some(None)`: none.
    pub session: Option<Option<SessionName>>,
    /// `Some(None)`: the default model of schedules.
    pub model: Option<Option<String>>,
    /// Label of the change; `None` for a person, whose changes do not lower the label.
    pub label: Option<Label>,
}

/// Why the schedule was not changed.
#[derive(Debug, thiserror::Error)]
pub enum ScheduleError {
    #[error(
        "{name:?} cannot be the name of a schedule: it must have 1 to {MAX_NAME} of a to z, 0 to 9, '-' and '_', and begin with \
         a letter or digit"
    )]
    BadName { name: String },
    #[error("a schedule named {name:?} already exists; remove it first")]
    Taken { name: String },
    #[error("the name {name:?} belongs to a schedule of another caller, or did; choose another name")]
    NameInUse { name: String },
    #[error("there is no schedule {name:?}")]
    Unknown { name: String },
    #[error(transparent)]
    Timing(#[from] TimingError),
    #[error("schedule.time_zone in config.toml: {0}")]
    ConfiguredZone(TimingError),
    #[error(
        "it would come every {found_s} seconds; at least {min_s} must lie between two times (schedule.min_interval_s)"
    )]
    TooOften { found_s: i64, min_s: u64 },
    #[error("{text:?} is in the past; write a later time")]
    Past { text: String },
    #[error("the message is empty")]
    Empty,
    #[error("the message has {bytes} bytes; at most {MAX_MESSAGE} are taken")]
    TooLarge { bytes: usize },
    #[error("no model {model:?} is configured; there are {known}")]
    Model { model: String, known: String },
    #[error("a schedule cannot tell its reply to its own session {session}")]
    OwnSession { session: SessionName },
    #[error("the schedule {name:?} is an administrator's; only an administrator may change or run it")]
    Forbidden { name: String },
    #[error("the message of the time before is still waiting; this time was skipped")]
    StillWaiting,
    #[error(transparent)]
    Vault(#[from] VaultError),
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// A schedule for display.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Schedule")]
pub struct ScheduleView {
    pub name: String,
    /// As it was entered.
    pub when: String,
    pub zone: String,
    /// Null if it was sealed with the key of another home.
    pub message: Option<String>,
    /// The session that receives the replies.
    pub session: Option<SessionName>,
    pub model: Option<String>,
    /// The rights with which it runs.
    pub role: CallerScope,
    pub paused: bool,
    /// Its next time, in milliseconds since 1970 (UTC); null if there is none.
    pub next_ms: Option<i64>,
    /// Milliseconds since 1970 (UTC).
    pub created_ms: i64,
}

/// Returns the session that works for the schedule of that name.
pub fn session_of(name: &str) -> Result<SessionName, ScheduleError> {
    let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    let fits = (1..=MAX_NAME).contains(&name.len())
        && name.starts_with(plain)
        && name.chars().all(|c| plain(c) || matches!(c, '-' | '_'));
    let bad = || ScheduleError::BadName { name: name.chars().take(80).collect() };
    if !fits {
        return Err(bad());
    }
    SessionName::parse(&format!("schedule.{name}")).map_err(|_| bad())
}

/// Returns the timing of a stored schedule.
pub fn timing_of(schedule: &Schedule) -> Result<Timing, TimingError> {
    Timing::parse(&schedule.timing, &schedule.zone)
}

impl Schedules {
    pub fn new(config: &Config, store: &Store, vault: &Vault) -> Schedules {
        Schedules {
            store: store.clone(),
            vault: vault.clone(),
            config: config.schedule.clone(),
            zone: config.zone(),
            model: config.subagents.model.clone(),
            models: config.model_strings().into_iter().map(str::to_owned).collect(),
        }
    }

    /// Adds a schedule. Credentials in its message are stored separately, as for any message.
    pub async fn add(&self, wanted: ScheduleRequest, at_ms: i64) -> Result<Schedule, ScheduleError> {
        let ScheduleRequest { name, timing: text, zone, message, session, model, caller, label } = wanted;
        let works = session_of(&name)?;
        if session.as_ref() == Some(&works) {
            return Err(ScheduleError::OwnSession { session: works });
        }
        if let Some(told) = session.clone().filter(|_| caller == CallerScope::User) {
            // Whoever receives the replies may read the working session, which may remain from somebody else's schedule.
            let of = works.clone();
            let read = move |view: &View<'_>| Ok(!view.has_session(&of)? || view.have_same_owner(&of, &told)?);
            if !self.store.read(read).await? {
                return Err(ScheduleError::NameInUse { name });
            }
        }
        let zone = match zone {
            Some(zone) => zone,
            None => self.default_zone()?,
        };
        let next_ms = self.first_time(&text, &zone, at_ms)?;
        let message = checked(&message)?;
        self.check_model(model.as_ref())?;
        let (message, found) = found::extract(message, &Secrets::default());
        let new = NewSchedule {
            name: name.clone(),
            timing: text.trim().to_owned(),
            zone,
            message: self.vault.seal_text(SEALED_RUN, &message)?,
            session,
            model: model.or_else(|| self.model.clone()),
            caller,
            next_ms,
            at_ms,
            label,
        };
        let max = self.config.max_schedules;
        if !self.store.write(move |tx| tx.add_schedule(&new, max)).await? {
            return Err(ScheduleError::Taken { name });
        }
        if !found.is_empty() {
            self.vault.save(&self.store, &works, &found, at_ms).await?;
        }
        self.store.ring();
        self.one(&name).await
    }

    /// Changes a schedule. Its rights, its receipts, and whether it is paused, stay unchanged.
    pub async fn change(
        &self,
        name: &str,
        change: ScheduleUpdate,
        by: CallerScope,
        at_ms: i64,
    ) -> Result<Schedule, ScheduleError> {
        let was = self.of_caller(name, by).await?;
        let mut schedule = was.clone();
        let ScheduleUpdate { timing, zone, message, session, model, label } = change;
        if timing.is_some() || zone.is_some() {
            schedule.timing = timing.map_or(schedule.timing, |timing| timing.trim().to_owned());
            schedule.zone = zone.unwrap_or(schedule.zone);
            // An unchanged timing keeps its next time, so that frequent schedules are not delayed.
            if (&schedule.timing, &schedule.zone) != (&was.timing, &was.zone) {
                schedule.next_ms = Some(self.first_time(&schedule.timing, &schedule.zone, at_ms)?);
            }
        }
        let works = session_of(name)?;
        if let Some(session) = session {
            if session.as_ref() == Some(&works) {
                return Err(ScheduleError::OwnSession { session: works });
            }
            schedule.session = session;
        }
        if let Some(model) = model {
            self.check_model(model.as_ref())?;
            schedule.model = model.or_else(|| self.model.clone());
        }
        let mut secrets = Vec::new();
        if let Some(message) = message {
            let (message, found) = found::extract(checked(&message)?, &Secrets::default());
            schedule.message = self.vault.seal_text(SEALED_RUN, &message)?;
            secrets = found;
        }
        let from_ms = was.next_ms;
        let change = move |tx: &kiso_store::store::Tx<'_>| {
            if let Some(label) = &label {
                tx.join_schedule_label(schedule.id, label)?;
            }
            tx.change_schedule(&schedule, from_ms)
        };
        self.store.write(change).await?;
        if !secrets.is_empty() {
            self.vault.save(&self.store, &works, &secrets, at_ms).await?;
        }
        self.store.ring();
        self.one(name).await
    }

    /// Returns the first time of a timing; fails if there is none, or if it fires too often.
    fn first_time(&self, text: &str, zone: &str, at_ms: i64) -> Result<i64, ScheduleError> {
        let timing = Timing::parse(text, zone)?;
        let next_ms = timing.next_after(at_ms).ok_or_else(|| ScheduleError::Past { text: text.trim().to_owned() })?;
        let min_s = self.config.min_interval_s;
        match timing.shortest_interval_ms(at_ms) {
            Some(shortest) if shortest.unsigned_abs() < min_s * 1_000 => {
                Err(ScheduleError::TooOften { found_s: shortest / 1_000, min_s })
            }
            _ => Ok(next_ms),
        }
    }

    fn check_model(&self, model: Option<&String>) -> Result<(), ScheduleError> {
        match model.filter(|model| !self.models.contains(model)) {
            Some(model) => Err(ScheduleError::Model { model: model.clone(), known: self.models.join(", ") }),
            None => Ok(()),
        }
    }

    /// Returns all schedules, by name.
    pub async fn list(&self) -> Result<Vec<Schedule>, ScheduleError> {
        Ok(self.store.read(|view| view.schedules()).await?)
    }

    /// Returns whether there is a schedule of that name.
    pub async fn has(&self, name: &str) -> Result<bool, ScheduleError> {
        let wanted = name.to_owned();
        Ok(self.store.read(move |view| Ok(view.schedule(&wanted)?.is_some())).await?)
    }

    pub async fn one(&self, name: &str) -> Result<Schedule, ScheduleError> {
        let wanted = name.to_owned();
        let found = self.store.read(move |view| view.schedule(&wanted)).await?;
        found.ok_or_else(|| ScheduleError::Unknown { name: name.chars().take(80).collect() })
    }

    /// Returns the message of a schedule, without credentials.
    pub fn message(&self, schedule: &Schedule) -> Result<String, ScheduleError> {
        Ok(self.vault.open_text(SEALED_RUN, &schedule.message)?.into_owned())
    }

    /// Converts a schedule for display.
    pub fn shown(&self, schedule: Schedule) -> ScheduleView {
        let message = self.message(&schedule).ok();
        let Schedule { name, timing: when, zone, session, model, caller: role, paused, next_ms, created_ms, .. } =
            schedule;
        ScheduleView { name, when, zone, message, session, model, role, paused, next_ms, created_ms }
    }

    /// Removes a schedule, with its receipts.
    pub async fn remove(&self, name: &str, by: CallerScope) -> Result<(), ScheduleError> {
        let schedule = self.of_caller(name, by).await?;
        self.store.write(move |tx| tx.remove_schedule(schedule.id)).await?;
        self.store.ring();
        Ok(())
    }

    /// Pauses a schedule, or resumes it with its next time from now; missed times are skipped.
    pub async fn pause(
        &self,
        name: &str,
        paused: bool,
        by: CallerScope,
        at_ms: i64,
    ) -> Result<Schedule, ScheduleError> {
        let schedule = self.of_caller(name, by).await?;
        let next = match schedule.next_ms {
            // Times during the pause are skipped.
            Some(missed) if !paused && schedule.paused && missed <= at_ms => timing_of(&schedule)?.next(missed, at_ms),
            next => next,
        };
        // It may have fired since it was read, and then has another next time.
        self.store.write(move |tx| tx.pause_schedule(schedule.id, paused, schedule.next_ms, next)).await?;
        self.store.ring();
        self.one(name).await
    }

    /// Fires a schedule now, paused or not; its times do not change. Returns its receipt.
    pub async fn run(&self, name: &str, by: CallerScope, at_ms: i64) -> Result<Receipt, ScheduleError> {
        let schedule = self.of_caller(name, by).await?;
        let firing = DueSchedule {
            session: session_of(&schedule.name)?,
            due_ms: at_ms,
            next_ms: schedule.next_ms,
            by_hand: true,
            at_ms,
            keep: self.config.keep_receipts,
            schedule,
        };
        let of = name.to_owned();
        let write =
            self.store.write(move |tx| Ok((tx.fire_schedule(&firing)?, tx.receipts(Some(&of), None, 1)?.pop())));
        match write.await? {
            (Some(ReceiptState::Skipped), _) => Err(ScheduleError::StillWaiting),
            (Some(_), Some(receipt)) => {
                self.store.ring();
                Ok(receipt)
            }
            _ => Err(ScheduleError::Unknown { name: name.to_owned() }),
        }
    }

    /// Fires everything that is due at this time, each schedule once, however many times were missed. Returns when the next one
    /// is due.
    pub async fn fire_due(&self, now_ms: i64) -> Result<Option<i64>, ScheduleError> {
        // A fired schedule is not due any more, so this ends.
        loop {
            let due = self.store.peek(move |view| view.schedules_due(now_ms, DUE)).await?;
            if due.is_empty() {
                break;
            }
            for schedule in due {
                self.fire(schedule, now_ms).await?;
            }
        }
        Ok(self.store.peek(|view| view.schedule_next_ms()).await?)
    }

    async fn fire(&self, schedule: Schedule, now_ms: i64) -> Result<(), ScheduleError> {
        let (id, due_ms) = (schedule.id, schedule.next_ms.unwrap_or(now_ms));
        // A schedule whose time zone no longer exists is paused, instead of being lost or fired forever.
        let timing = match timing_of(&schedule) {
            Ok(timing) => timing,
            Err(error) => {
                tracing::error!(schedule = %schedule.name, "it is paused: {error}");
                self.store.write(move |tx| tx.pause_schedule(id, true, Some(due_ms), Some(due_ms))).await?;
                return Ok(());
            }
        };
        let firing = DueSchedule {
            session: session_of(&schedule.name)?,
            due_ms,
            next_ms: timing.next(due_ms, now_ms),
            by_hand: false,
            at_ms: now_ms,
            keep: self.config.keep_receipts,
            schedule,
        };
        let name = firing.schedule.name.clone();
        let fired = self.store.write(move |tx| tx.fire_schedule(&firing)).await?;
        if fired == Some(ReceiptState::Skipped) {
            tracing::warn!(schedule = %name, "this time is skipped: the message of the time before is still waiting, or there are too many sessions");
        }
        self.store.ring();
        Ok(())
    }

    /// Corrects next times after the clock was set back far. Each schedule gets the first time after the current one that it has
    /// not fired yet.
    pub async fn mend(&self, now_ms: i64) -> Result<(), ScheduleError> {
        for schedule in self.list().await? {
            let (Some(next), Ok(timing)) = (schedule.next_ms, timing_of(&schedule)) else { continue };
            let first = timing.next_after(earliest(&schedule, now_ms));
            if !schedule.paused && first.is_some_and(|first| first < next) {
                tracing::warn!(schedule = %schedule.name, "the clock was put back; it comes by the new time");
                self.store.write(move |tx| tx.move_schedule(schedule.id, Some(next), first)).await?;
            }
        }
        Ok(())
    }

    /// Returns the receipts of a schedule, or of all; latest first. With `before`, those older than the receipt of that id.
    pub async fn receipts(
        &self,
        name: Option<&str>,
        before: Option<i64>,
        limit: u32,
    ) -> Result<Vec<Receipt>, ScheduleError> {
        if let Some(name) = name {
            self.one(name).await?;
        }
        let name = name.map(str::to_owned);
        Ok(self.store.read(move |view| view.receipts(name.as_deref(), before, limit.min(MAX_RECEIPTS))).await?)
    }

    fn default_zone(&self) -> Result<String, ScheduleError> {
        let Some(zone) = &self.config.time_zone else { return Ok(self.zone.clone()) };
        Timing::parse("@daily", zone).map_err(ScheduleError::ConfiguredZone)?;
        Ok(zone.clone())
    }

    /// Returns the schedule, if this caller may change it.
    async fn of_caller(&self, name: &str, by: CallerScope) -> Result<Schedule, ScheduleError> {
        let schedule = self.one(name).await?;
        match by == CallerScope::Admin || schedule.caller == CallerScope::User {
            true => Ok(schedule),
            false => Err(ScheduleError::Forbidden { name: schedule.name }),
        }
    }
}

/// Returns the message in the form in which it is sent.
fn checked(message: &str) -> Result<&str, ScheduleError> {
    let message = message.trim();
    match message.len() {
        0 => Err(ScheduleError::Empty),
        bytes if bytes > MAX_MESSAGE => Err(ScheduleError::TooLarge { bytes }),
        _ => Ok(message),
    }
}

/// Number of due schedules that are read at once.
const DUE: u32 = 50;

/// If the clock was set back by less than this, it was only corrected: times before the step do not fire again.
const SMALL_STEP_MS: i64 = 3_600_000;

/// Returns the time after which a schedule may fire.
fn earliest(schedule: &Schedule, now_ms: i64) -> i64 {
    match schedule.last_due_ms {
        Some(last) if last > now_ms && last - now_ms < SMALL_STEP_MS => last,
        _ => now_ms,
    }
}

/// Returns a line about a schedule for a listing.
pub fn describe(schedule: &Schedule) -> String {
    let show = |at| timing_of(schedule).map_or_else(|_| String::new(), |timing| timing.show(at));
    let next = match (schedule.paused, schedule.next_ms) {
        (true, _) => "paused".to_owned(),
        (false, Some(next)) => format!("next {}", show(next)),
        (false, None) => "over".to_owned(),
    };
    let to = schedule.session.as_ref().map(|session| format!(", to {session}")).unwrap_or_default();
    format!("{}  {} ({}){to}: {next}", schedule.name, schedule.timing, schedule.zone)
}

/// Returns the next times of a schedule, up to this number, in milliseconds since 1970.
pub fn coming(schedule: &Schedule, count: usize) -> Vec<i64> {
    let Ok(timing) = timing_of(schedule) else { return Vec::new() };
    let next = if schedule.paused { None } else { schedule.next_ms };
    std::iter::successors(next, |at| timing.next_after(*at)).take(count).collect()
}

#[cfg(test)]
mod tests;
