//! `kiso doctor`: checks everything that a run needs, and prints how to fix problems.

mod fleet;
mod machine;
mod reach;

use super::show::{Show, printable_line};
use super::trace::time;
use super::{Exit, Failure, Shared, block_on, role};
use crate::channel::webhook::Webhook;
use kiso_agent::drive::{ConfiguredModel, ConnectedKeys, Models};
use kiso_agent::mcp::{McpServers, ServerSummary};
use kiso_agent::node::prompt::{override_of, override_path, strays};
use kiso_base::clock::now_ms;
use kiso_base::config::{self, Config};
use kiso_base::home::{Home, LOW_DISK};
use kiso_base::role::Role;
use kiso_gateway::HookKey;
use kiso_llm::Priority;
use kiso_llm::embed::Embeddings;
use kiso_llm::probe::{ProbeResult, probe};
use kiso_plan::limits::Usage;
use kiso_plan::report::size;
use kiso_sandbox::effect::overlay::SharedHistory;
use kiso_sandbox::exec::Exec;
use kiso_sandbox::skill::grant::Capabilities;
use kiso_sandbox::skill::{InstalledSkill, Quiet, Skills};
use kiso_store::secret::Vault;
use kiso_store::store::{Mark, SenderStanding, Store, Vector};
use serde_json::{Value, json};
use std::sync::Arc;

#[derive(Debug, clap::Args)]
pub(super) struct DoctorArgs {
    /// Do not call models, and do not ask the NATS of a fleet
    #[arg(long)]
    offline: bool,
}

impl DoctorArgs {
    pub(super) fn execute(&self, shared: &Shared) -> Result<Exit, Failure> {
        let mut report = Report { json: shared.json, show: Show::stdout(), worst: Exit::Done };
        let Some(home) = report.check("home", open_home(shared)) else { return Ok(report.worst) };
        let config = report.check(
            "config",
            Config::load(&home).map(|c| (c, home.config_path().display().to_string())).map_err(Failure::from),
        );
        let reserve_mib = config.as_ref().map_or(0, |config| config.limits.reserve_mib);
        report.check("disk", disk(&home, reserve_mib).map(|free| ((), format!("{} free", size(free)))));
        report.check("clock", clock().map(|now| ((), now)));
        report.note("clock sync", machine::synchronized());
        let store = match fleet::copy(&home, config.as_ref()) {
            None => report.check("store", open_store(&home)),
            copy => {
                report.note("store", copy);
                None
            }
        };
        report.note("clock jump", store.as_ref().and_then(machine::jumped));
        report.note("held runs", store.as_ref().and_then(held));
        report.note("leftovers", leftovers(&home));
        report.note("undo", store.as_ref().and_then(|store| kept(&home, store)));
        report.note("file system", machine::file_system(&home));
        report.note("memory", Some(machine::memory(config.as_ref())));
        report.note("socket", Some(reach::socket(&home)));
        report.note("port", config.as_ref().map(|config| reach::port(&home, config)));
        if let Some(config) = &config {
            fleet::look(&home, config, self.offline, &mut report)?;
        }
        for role in Role::ALL {
            match override_of(&home, role) {
                Ok(None) => {}
                Ok(Some(_)) => {
                    let text = format!("{} overrides the built-in prompt", override_path(&home, role).display());
                    report.check(&format!("role {role}"), Ok(((), text)));
                }
                Err(error) => drop(report.check::<()>(&format!("role {role}"), Err(error.into()))),
            }
        }
        for stray in strays(&home) {
            report.check::<()>("roles", Err(role::stray(&stray)));
        }
        let (config, keys) = with_connected(&home, config, store.as_ref())?;
        if let Some(config) = &config {
            let models = Models::open(config, keys.environment(super::environment)).map_err(Failure::from);
            report.check(
                "models",
                models.map(|models| {
                    let names: Vec<String> =
                        Role::ALL.iter().map(|r| format!("{r}: {}", models.for_role(*r).name())).collect();
                    ((), names.join(", "))
                }),
            );
            self.embedder(config, &keys, store.as_ref(), &mut report)?;
            for opened in Models::each_of(config, keys.environment(super::environment)) {
                match opened {
                    Ok(opened) => self.model(&opened, store.as_ref(), &mut report)?,
                    Err(error) => {
                        let what = format!("model {}", error.name);
                        report.check::<()>(&what, Err(error.into()));
                    }
                }
            }
        }
        let (Some(config), Some(store)) = (config, store) else { return Ok(report.worst) };
        for given in &config.webhooks {
            report.check(&format!("webhook {}", given.name), webhook(&home, &config, given, &store));
        }
        for given in &config.hooks {
            report.check(&format!("hook {}", given.name), hook(&home, given, &store));
        }
        for given in &config.channels {
            report.check(&format!("channel {}", given.name), channel(given, &store));
        }
        let skills = Skills::new(home.clone(), config.clone(), store.clone(), Arc::new(Quiet));
        for summary in McpServers::open(&config, store.clone(), skills.clone(), super::environment).summaries() {
            let what = format!("MCP server {}", summary.name);
            report.note(&what, Some(server(summary)));
        }
        let exec = Exec::new(home, config, skills.clone()).check();
        report.check("exec", exec.map(|n| ((), format!("the shell and {n} commands load"))).map_err(Failure::from));
        let mut allowed = Vec::new();
        for skill in skills.list() {
            match skill {
                Err(error) => drop(report.check::<()>("skill", Err(error.into()))),
                Ok(skill) => {
                    // A grant that cannot be read makes every call fail.
                    let loaded = block_on(async {
                        allowed.push((skill.name().to_string(), skills.allowed(&skill)?));
                        skills.warm(&skill).await
                    })?;
                    let mut what = format!("{} {} loads", skill.manifest.version, skill.shape.describe());
                    if let Some(label) = skills.missing_label(&skill.manifest) {
                        what += &format!("; it runs only on machines with the label {label}, which this one has not");
                    }
                    let usable = loaded.map_err(Failure::from).and_then(|()| has_files(&skill, skills.home()));
                    report.check(&format!("skill {}", skill.name()), usable.map(|()| ((), what)));
                }
            }
        }
        for skill in skills.agent_skills() {
            let checked = skill.and_then(|skill| skills.instructions(&skill).map(|_| skill)).map_err(Failure::from);
            let name = checked.as_ref().map_or("Agent Skill".to_owned(), |skill| format!("Agent Skill {}", skill.name));
            let line = checked.map(|skill| {
                let wrong = match skill.warnings.len() {
                    0 => String::new(),
                    many => format!(", {many} departures from the specification"),
                };
                ((), format!("{} files{wrong}", skill.files.len()))
            });
            report.check(&name, line);
        }
        for (name, line) in Capabilities::doctor(&allowed) {
            let line = line.map(|line| ((), line)).map_err(|why| Failure::new(Exit::Failed, why));
            report.check(&format!("capability {name}"), line);
        }
        store.close();
        Ok(report.worst)
    }

    /// Asks the embedding model for a vector, if one is configured. Errors when opening it are reported with the models.
    fn embedder(
        &self,
        config: &Config,
        keys: &ConnectedKeys,
        store: Option<&Store>,
        report: &mut Report,
    ) -> Result<(), Failure> {
        let Ok(models) = Models::open(config, keys.environment(super::environment)) else { return Ok(()) };
        let Some(embedder) = models.embedder() else { return Ok(()) };
        let what = format!("embeddings of {}", embedder.model());
        if self.offline {
            report.check(&what, Ok(((), "not called".to_owned())));
            return Ok(());
        }
        let answer = block_on(embedder.embed(&["hello".to_owned()], Priority::Interactive))?;
        let usage = answer.as_ref().map(|answer| answer.usage).unwrap_or_default();
        if let Some(store) = store
            && usage != Usage::default()
        {
            block_on(store.write(move |tx| tx.add_usage_of_day(now_ms(), usage)))??;
        }
        let numbers = |answer: Embeddings| answer.vectors.first().map_or(0, Vector::dimensions);
        let result = answer.map(|answer| ((), format!("vectors of {} numbers", numbers(answer))));
        report.check(&what, result.map_err(|error| Failure::new(Exit::Failed, error.to_string())));
        Ok(())
    }

    /// Tests the abilities of one model. A model that does not answer is a failure; other missing abilities are only listed.
    fn model(&self, opened: &ConfiguredModel, store: Option<&Store>, report: &mut Report) -> Result<(), Failure> {
        let what = format!("model {}", opened.name);
        let list = |roles: &[Role]| roles.iter().map(|role| role.name()).collect::<Vec<_>>().join(", ");
        let mut uses = Vec::new();
        if !opened.roles.is_empty() {
            uses.push(format!("for {}", list(&opened.roles)));
        }
        if !opened.fallback_of.is_empty() {
            uses.push(format!("fallback of {}", list(&opened.fallback_of)));
        }
        let uses = uses.join("; ");
        if opened.built_in || self.offline {
            let why = if opened.built_in { "built in, not called" } else { "not called" };
            report.check(&what, Ok(((), format!("{why}; {uses}"))));
            return Ok(());
        }
        let busy = Show::new(report.json);
        busy.busy(&format!("asking {}", opened.name));
        let (found, usage) = block_on(probe(opened.model.as_ref()))?;
        busy.rest();
        // These calls belong to no session, but count against the daily limits.
        if let Some(store) = store
            && usage != Usage::default()
        {
            let usage = opened.charge(usage);
            block_on(store.write(move |tx| tx.add_usage_of_day(now_ms(), usage)))??;
        }
        let more = serde_json::to_value(&found).unwrap_or_default();
        let result = match found.iter().find(|capability| capability.name == "answers" && !capability.works) {
            Some(silent) => Err(Failure::new(Exit::Failed, silent.note.clone())),
            None => Ok(((), format!("{}; {uses}", abilities(&found)))),
        };
        report.check_with(&what, result, json!({ "capabilities": more }));
        Ok(())
    }
}

/// Returns the configuration with the connected providers and their keys.
fn with_connected(
    home: &Home,
    config: Option<Config>,
    store: Option<&Store>,
) -> Result<(Option<Config>, ConnectedKeys), Failure> {
    let Some(store) = store else { return Ok((config, ConnectedKeys::default())) };
    let connected = store.read_blocking(|view| view.connected())?;
    let keys = ConnectedKeys::load(store, &Vault::open(home))?;
    Ok((config.map(|config| config.with_connected(&connected)), keys))
}

/// Returns text such as "answers, streams, usage; no tools: it called no tool".
fn abilities(found: &[ProbeResult]) -> String {
    let works: Vec<_> = found.iter().filter(|c| c.works).map(|c| c.name).collect();
    let lacks = found.iter().filter(|c| !c.works).map(|c| format!("; no {}: {}", c.name, c.note));
    works.join(", ") + &lacks.collect::<String>()
}

/// A result of a check that also allows warnings.
enum Finding {
    Ok(String),
    /// Works, but may cause trouble.
    Warn(String),
    Fail(String),
}

struct Report {
    json: bool,
    show: Show,
    worst: Exit,
}

impl Report {
    fn check<T>(&mut self, what: &str, result: Result<(T, String), Failure>) -> Option<T> {
        self.check_with(what, result, json!({}))
    }

    /// Prints a finding, if there is one.
    fn note(&mut self, what: &str, finding: Option<Finding>) {
        match finding {
            None => {}
            Some(Finding::Ok(text)) => drop(self.check(what, Ok(((), text)))),
            Some(Finding::Fail(text)) => drop(self.check::<()>(what, Err(Failure::new(Exit::Failed, text)))),
            Some(Finding::Warn(text)) if self.json => {
                outln!("{}", json!({ "type": "check", "what": what, "ok": true, "warn": true, "detail": text }));
            }
            Some(Finding::Warn(text)) => {
                outln!("{} {}", self.show.paint().bold("warn"), printable_line(&format!("{what}: {text}")))
            }
        }
    }

    /// Prints a check. `more` contains members for the JSON form only.
    fn check_with<T>(&mut self, what: &str, result: Result<(T, String), Failure>, more: Value) -> Option<T> {
        let (ok, text, value) = match result {
            Ok((value, text)) => (true, text, Some(value)),
            Err(failure) => {
                // The exit code is that of the most severe failure, in any order of checks.
                self.worst = self.worst.max(failure.exit);
                (false, failure.message, None)
            }
        };
        if self.json {
            let mut object = json!({ "type": "check", "what": what, "ok": ok, "detail": text });
            if let (Some(object), Value::Object(more)) = (object.as_object_mut(), more) {
                object.extend(more);
            }
            outln!("{object}");
        } else {
            let mark = if ok { self.show.green("ok  ") } else { self.show.red("FAIL") };
            outln!("{mark} {}", printable_line(&format!("{what}: {text}")));
        }
        value
    }
}

fn open_home(shared: &Shared) -> Result<(Home, String), Failure> {
    let home = Home::open(&Home::locate(shared.home.as_deref())?)?;
    let path = home.path().display().to_string();
    Ok((home, path))
}

fn open_store(home: &Home) -> Result<(Store, String), Failure> {
    let store = Store::open(&home.store_path())?;
    let found = store.read_blocking(|view| view.integrity())?;
    match found.as_slice() {
        [] => {
            let (space, backup) = store.read_blocking(|view| Ok((view.space()?, view.marked(Mark::Backup)?)))?;
            let path = home.store_path();
            let text = format!(
                "{} is whole: {}, of which {} are free; {}",
                path.display(),
                size(space.bytes),
                size(space.free),
                last_backup(backup, now_ms())
            );
            Ok((store, text))
        }
        problems => Err(Failure::new(
            Exit::Failed,
            format!(
                "{} is damaged ({}); `kiso restore FILE` replaces it with a backup",
                home.store_path().display(),
                problems.join("; ")
            ),
        )),
    }
}

/// Checks a webhook without sending anything; `kiso connect webhook test` sends.
fn webhook(
    home: &Home,
    config: &Config,
    given: &config::WebhookSettings,
    store: &Store,
) -> Result<((), String), Failure> {
    let host = Webhook::open(home, config, given, super::environment)?.host;
    let line = store.read_blocking(|view| view.webhooks())?.into_iter().find(|line| line.webhook == given.name);
    let told = match line {
        None => "nothing has been sent yet".to_owned(),
        Some(line) if line.failed == 0 => format!("{} waiting, {} delivered", line.pending, line.delivered),
        Some(line) => format!(
            "{} waiting, {} delivered, {} given up (`kiso connect webhook failed` says why)",
            line.pending, line.delivered, line.failed
        ),
    };
    Ok(((), format!("{host}: {told}")))
}

/// Checks that a hook can verify its sender, and reports its events.
fn hook(home: &Home, given: &config::HookSettings, store: &Store) -> Result<((), String), Failure> {
    HookKey::open(home, given, super::environment)?;
    let (name, session) = (given.name.clone(), given.own_session());
    let line = store.read_blocking(move |view| view.hook(&name, &session))?;
    let last = line
        .last_ms
        .map_or_else(|| "nothing came yet".to_owned(), |last| format!("the last event came {}", time(last)));
    Ok(((), format!("POST /hooks/{}: {} waiting, {last}", given.name, line.waiting)))
}

/// Checks that a channel has its token, and that it receives messages.
fn channel(given: &config::ChannelSettings, store: &Store) -> Result<((), String), Failure> {
    let unusable = |error: String| Failure::new(Exit::Config, error);
    crate::channel::token(given, super::environment).map_err(|error| unusable(error.to_string()))?;
    let name = given.name.clone();
    let (line, senders) = store.read_blocking(move |view| Ok((view.channel(&name)?, view.channel_senders(&name)?)))?;
    if let Some(trouble) = line.trouble {
        return Err(unusable(trouble));
    }
    let may = senders.iter().filter(|sender| sender.standing != SenderStanding::Waiting).count();
    Ok(((), format!("{}: {may} may write", given.url)))
}

/// Reports an MCP server without contacting it; `kiso mcp list` does that.
fn server(summary: ServerSummary) -> Finding {
    let ServerSummary { source, about, trouble, outside_the_sandbox, login, .. } = summary;
    match trouble {
        Some(trouble) if outside_the_sandbox => Finding::Fail(format!("{source} {about}; {trouble}")),
        Some(trouble) => Finding::Fail(format!("{source}: {trouble}")),
        None if outside_the_sandbox => Finding::Warn(format!("{source} {about}")),
        None => {
            let login = login.filter(|login| login != "not logged in").map(|login| format!(", {login}"));
            Finding::Ok(format!("{source} {about}{}", login.unwrap_or_default()))
        }
    }
}

fn last_backup(at_ms: Option<i64>, now_ms: i64) -> String {
    const DAY_MS: i64 = 24 * 60 * 60 * 1_000;
    match at_ms.map(|at| (now_ms - at).max(0) / DAY_MS) {
        None => "no backup yet; `kiso backup FILE` makes one".to_owned(),
        Some(0) => "the last backup was today".to_owned(),
        Some(1) => "the last backup was yesterday".to_owned(),
        Some(days) => format!("the last backup was {days} days ago"),
    }
}

fn disk(home: &Home, reserve_mib: u64) -> Result<u64, Failure> {
    let path = home.path();
    let free = home.free_bytes().map_err(|e| Failure::new(Exit::Config, format!("{}: {e}", path.display())))?;
    if let Some(shortage) = home.shortage(reserve_mib) {
        let message = format!("{shortage}: free some space on that disk, or delete sessions and files in them");
        return Err(Failure::new(Exit::Failed, message));
    }
    if free < LOW_DISK {
        let message = format!(
            "only {} are free at {}; delete something, or move the home with --home",
            size(free),
            path.display()
        );
        return Err(Failure::new(Exit::Failed, message));
    }
    Ok(free)
}

/// Reports the size of data kept for undo.
fn kept(home: &Home, store: &Store) -> Option<Finding> {
    let undo = SharedHistory::undo(home.clone());
    let sessions = home.sessions_with_undo();
    let bytes: u64 = sessions.iter().filter_map(|session| undo.bytes(session).ok()).sum();
    let counted = store.read_blocking(|view| view.undo_bytes()).unwrap_or(0);
    let of = match sessions.len() {
        0 => return None,
        1 => "1 session".to_owned(),
        many => format!("{many} sessions"),
    };
    let text = format!("{} kept for {of} to undo runs; {} counted in limits.home_mib", size(bytes), size(counted));
    Some(Finding::Ok(text))
}

/// Reports runs that wait for a person because kiso was interrupted too often while it executed them.
fn held(store: &Store) -> Option<Finding> {
    let runs = store.read_blocking(|view| view.held_runs(NAMED + 1)).ok()?;
    let names: Vec<_> = runs.iter().take(NAMED as usize).map(|(run, _)| run.to_string()).collect();
    let more = if runs.len() > names.len() { " and others" } else { "" };
    (!names.is_empty()).then(|| {
        Finding::Warn(format!(
            "{}{more} wait, because kiso was cut off again and again while it worked on them; `kiso run --resume RUN` tries one again, \
             `kiso cancel RUN` gives it up",
            names.join(", ")
        ))
    })
}

/// Maximum held runs that are named.
const NAMED: u32 = 5;

fn leftovers(home: &Home) -> Option<Finding> {
    let trash = home.trash();
    let first = trash.first()?;
    let more = if trash.len() > 1 { format!(" and {} more", trash.len() - 1) } else { String::new() };
    Some(Finding::Warn(format!(
        "{}{more} is still to be removed; `kiso serve` tries again at its start and every hour, and its log says what is in \
         the way",
        first.display()
    )))
}

/// Checks the clock. A board without a battery starts in 1970 until it reaches a time server; until then, timestamps and
/// certificates are wrong.
fn clock() -> Result<String, Failure> {
    let now = jiff::Timestamp::now();
    if now.as_second() < 1_750_000_000 {
        return Err(Failure::new(
            Exit::Failed,
            format!("the clock says {now}, which is in the past; set it or start a time service"),
        ));
    }
    Ok(now.strftime("%Y-%m-%d %H:%M:%S UTC").to_string())
}

/// Checks that the files of a package are in the home; other skills have none.
fn has_files(skill: &InstalledSkill, home: &Home) -> Result<(), Failure> {
    match skill.package().map(|package| package.mounts(home)) {
        Some(Err(error)) => Err(Failure::new(Exit::Failed, format!("its files cannot be used: {error}"))),
        _ => Ok(()),
    }
}
