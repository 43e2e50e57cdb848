//! Effects of calls: the data that leaves the sandbox, and whether the labels of the decision and the arguments allow that.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::address::{addresses, bare, host_and_port, named_in, texts};
use super::builtin::{CORE_UPDATE, SAVE_TO_FOLDER, SCHEDULE_ADD, SCHEDULE_REMOVE, folder_destination};
use super::deliver::SHARED_FOLDER;
use super::{EXEC, Tools};
use kiso_base::home::SessionName;
use kiso_plan::approval::{CardAccess, Destination};
use kiso_plan::call::ToolCall;
use kiso_plan::label::Label;
use kiso_plan::plan::{Task, TaskKind};
use kiso_plan::prompt::strip_outside_text;
use kiso_plan::sink::{ArgumentRole, ArgumentRoles, SinkArgument, ToolEffect};
use kiso_sandbox::effect::sink::{ASKED_ALWAYS, Enforcement, Permit, PermitParts, SinkCall};
use kiso_sandbox::skill::InstalledSkill;
use kiso_store::scratchpad::parse_ref;
use kiso_store::store::StoreError;

/// Minimum number of letters of a word in a tool's name that must occur in a message.
const LEAST_VERB: usize = 3;

/// HTTP methods that change nothing.
const READING: [&str; 3] = ["GET", "HEAD", "OPTIONS"];

/// The labels of a call.
#[derive(Debug, Clone, Default)]
pub struct CallLabels {
    pub enforcement: Enforcement,
    /// Label of everything that it was decided from.
    pub decision: Label,
    /// Labels of arguments that differ from that of the decision.
    pub args: BTreeMap<String, Label>,
}

impl CallLabels {
    /// Returns the joined label of the whole call.
    pub fn all(&self) -> Label {
        Label::join_all(self.args.values()).joined(&self.decision)
    }

    fn for_argument(&self, argument: &str) -> Label {
        let own = self.args.get(argument);
        own.map_or_else(|| self.decision.clone(), |own| own.clone().joined(&self.decision))
    }
}

/// Hosts for which a person has accepted a data flow that the rules of labels forbid, as "host:example.org".
#[derive(Debug, Clone, Default)]
pub struct AcceptedHosts {
    /// With methods that change nothing.
    pub readable: BTreeSet<String>,
    pub changeable: BTreeSet<String>,
}

/// The external effects of a call, and the access that they need.
pub(super) struct CallSinks {
    pub calls: Vec<SinkCall>,
    pub access: Vec<CardAccess>,
}

impl CallSinks {
    /// Returns why a person must be asked; empty if the rules allow it.
    pub(super) fn problems(&self, enforcement: Enforcement) -> Vec<String> {
        if !enforcement.refuses() {
            return Vec::new();
        }
        let mut problems: Vec<String> = self.calls.iter().flat_map(SinkCall::problems).collect();
        if enforcement == Enforcement::AskAlways && self.calls.iter().any(|call| call.changes) && problems.is_empty() {
            problems.push(ASKED_ALWAYS.to_owned());
        }
        problems.dedup();
        problems
    }
}

impl Tools {
    /// Returns the labels of arguments that name entries of the scratchpad, together with the known ones.
    pub async fn argument_labels(
        &self,
        session: &SessionName,
        args: &Value,
        mut known: BTreeMap<String, Label>,
    ) -> Result<BTreeMap<String, Label>, StoreError> {
        let mut refs: Vec<(String, String)> = Vec::new();
        for (name, value) in args.as_object().into_iter().flatten() {
            let keys = texts(value).into_iter().filter_map(parse_ref);
            refs.extend(keys.map(|key| (name.clone(), key.to_owned())));
        }
        if refs.is_empty() {
            return Ok(known);
        }
        let session = session.clone();
        let read = self.store.read(move |view| {
            refs.into_iter()
                .map(|(name, key)| Ok((name, view.ref_label(&session, &key)?)))
                .collect::<Result<Vec<_>, _>>()
        });
        for (name, label) in read.await? {
            known.entry(name).or_default().join(&label);
        }
        Ok(known)
    }

    /// Returns whether the user's own message names the tool, and each address and value of the call, so that no file has
    /// influenced it. A command line must only name addresses from the message, and must not change anything there.
    pub fn is_in_own_words(&self, task: &Task, labels: &CallLabels, message: &str) -> bool {
        let message = strip_outside_text(message).to_lowercase();
        let has = |text: &str| {
            let text = text.trim().to_lowercase();
            !text.is_empty() && message.contains(&text)
        };
        let sinks = self.sinks_of(task, labels);
        let Some(tool) = task.skill.as_deref() else {
            let named: Vec<_> = addresses(&task.detail).collect();
            return !named.is_empty() && named.into_iter().all(has) && !sinks.calls.iter().any(|call| call.changes);
        };
        let (args, roles) = (task.args.as_ref().unwrap_or(&Value::Null), self.roles(tool));
        let values = self.sink_args(args, labels, roles.as_ref()).into_iter();
        let values = values.filter(|arg| arg.role != ArgumentRole::Content).filter_map(|arg| args.get(&arg.name));
        let mut values = values.map(|value| value.as_str().map_or_else(|| value.to_string(), str::to_owned)).peekable();
        let verb = tool.split(|c: char| !c.is_alphanumeric()).any(|word| word.len() >= LEAST_VERB && has(word));
        verb && values.peek().is_some() && values.all(|value| has(&value))
    }

    /// Creates the permit of a task, or of a call in its form. A person has accepted the effects `accepted`, and any data flow to
    /// `hosts`.
    pub fn permit(
        &self,
        task: &Task,
        labels: &CallLabels,
        accepted: Option<&[CardAccess]>,
        hosts: AcceptedHosts,
    ) -> Permit {
        let (tool, none) = (task.skill.as_deref().unwrap_or(EXEC), Value::Null);
        let args = task.args.as_ref().unwrap_or(&none);
        let roles = self.roles(tool);
        let sinks = self.sink_args(args, labels, roles.as_ref());
        let trusted = labels.decision.is_trusted();
        let is_trusted = |arg: &SinkArgument| arg.role == ArgumentRole::Content || arg.label.is_trusted();
        let named = sinks.iter().filter(|arg| arg.label.is_trusted()).filter_map(|arg| args.get(&arg.name));
        let named = named.flat_map(texts).flat_map(addresses).filter_map(host_and_port);
        let named: BTreeSet<String> = named.map(|host| bare(&host).to_owned()).collect();
        Permit::new(PermitParts {
            enforcement: labels.enforcement,
            declared: roles.is_some() && trusted && sinks.iter().all(is_trusted),
            steered: !sinks.iter().all(is_trusted),
            named: if trusted { named } else { BTreeSet::new() },
            tool: tool.to_owned(),
            decision: labels.decision.clone(),
            args: sinks,
            readable: hosts.readable,
            accepted: hosts
                .changeable
                .into_iter()
                .chain(accepted.into_iter().flat_map(|accepted| self.accepted(task, labels, accepted)))
                .collect(),
        })
    }

    /// Returns the destinations that a person has accepted on the card.
    fn accepted(&self, task: &Task, labels: &CallLabels, accepted: &[CardAccess]) -> BTreeSet<String> {
        let hosts = accepted.iter().flat_map(|access| &access.hosts).map(|asked| format!("host:{}", bare(&asked.host)));
        self.sinks_of(task, labels).calls.into_iter().map(|call| call.destination).chain(hosts).collect()
    }

    fn sinks_of(&self, task: &Task, labels: &CallLabels) -> CallSinks {
        match &task.skill {
            Some(tool) => self.sinks(tool, task.args.as_ref().unwrap_or(&Value::Null), labels),
            None => self.sinks_of_line(&task.detail, labels),
        }
    }

    /// Returns a call in the form of a task.
    pub fn as_task(&self, call: &ToolCall, args: Value) -> Task {
        match call.name == EXEC {
            true => Task::new(TaskKind::Exec, args.get("command").and_then(Value::as_str).unwrap_or_default()),
            false => {
                let skill = Some(self.index().tool(&call.name).to_owned());
                Task { skill, args: Some(args), ..Task::new(TaskKind::Skill, "") }
            }
        }
    }

    /// Logs that a call was refused, and the reason.
    pub fn log_denied(&self, permit: &Permit, task: &Task, labels: &CallLabels, why: &str) {
        permit.log_denied(self.sinks_of(task, labels).calls, why);
    }

    /// Returns the roles of a tool's arguments, from an administrator or a manifest.
    fn roles(&self, tool: &str) -> Option<ArgumentRoles> {
        if tool == SAVE_TO_FOLDER {
            let [address, value, content] = ["folder", "name", "file"].map(|name| vec![name.to_owned()]);
            return Some(ArgumentRoles { address, value, content });
        }
        let index = self.index();
        let effect = match index.outside.get(tool) {
            Some(outside) => outside.effect.clone(),
            None => {
                let (skill, at) = self.skills.find_tool(tool).ok()?;
                skill.manifest.effects.get(&skill.tools[at].inner).cloned()
            }
        };
        match effect? {
            ToolEffect::Changes(roles) => Some(roles),
            ToolEffect::Reads(_) => None,
        }
    }

    fn sink_args(&self, args: &Value, labels: &CallLabels, roles: Option<&ArgumentRoles>) -> Vec<SinkArgument> {
        let names = args.as_object().into_iter().flat_map(|args| args.keys());
        let arg = |name: &String| SinkArgument {
            name: name.clone(),
            role: roles.map_or(ArgumentRole::Address, |roles| roles.role_of(name)),
            label: labels.for_argument(name),
        };
        names.map(arg).collect()
    }

    /// Returns the data of a call that leaves the sandbox.
    pub(super) fn sinks(&self, tool: &str, args: &Value, labels: &CallLabels) -> CallSinks {
        let roles = self.roles(tool);
        let all = self.sink_args(args, labels, roles.as_ref());
        let one = |sink, destination: String, changes| SinkCall {
            sink,
            tool: tool.to_owned(),
            destination,
            changes,
            decision: labels.decision.clone(),
            args: all.clone(),
        };
        let of_tool = || vec![CardAccess { of: tool.to_owned(), hosts: Vec::new(), secrets: Vec::new() }];
        if let Some(outside) = self.index().outside.get(tool) {
            let call = one("tool", format!("mcp:{}", outside.server), outside.changes());
            return CallSinks { calls: vec![call], access: of_tool() };
        }
        let own = match tool {
            SCHEDULE_ADD | SCHEDULE_REMOVE => Some(("schedule", "the schedule".to_owned())),
            CORE_UPDATE => Some(("memory", "core memory".to_owned())),
            SAVE_TO_FOLDER => {
                let folder = args.get("folder").and_then(Value::as_str).unwrap_or_default();
                // Shared files have labels: the file does not leave kiso.
                (folder != SHARED_FOLDER).then(|| ("folder", folder_destination(folder)))
            }
            _ => None,
        };
        if let Some((sink, destination)) = own {
            return CallSinks { calls: vec![one(sink, destination, true)], access: of_tool() };
        }
        let Ok((skill, at)) = self.skills.find_tool(tool) else {
            return CallSinks { calls: Vec::new(), access: Vec::new() };
        };
        let reads = matches!(skill.manifest.effects.get(&skill.tools[at].inner), Some(ToolEffect::Reads(_)));
        let named: BTreeSet<String> = texts(args).into_iter().flat_map(addresses).filter_map(host_and_port).collect();
        let (hosts, access) = self.reached(&skill, &named, reads);
        let calls = hosts.into_iter().map(|(host, changes)| one("request", format!("host:{}", bare(&host)), changes));
        CallSinks { calls: calls.collect(), access }
    }

    /// Returns the data of a command line that leaves the sandbox, by the skills that it names.
    pub(super) fn sinks_of_line(&self, line: &str, labels: &CallLabels) -> CallSinks {
        let named: BTreeSet<String> = addresses(line).filter_map(host_and_port).collect();
        let (mut calls, mut access) = (Vec::new(), Vec::new());
        let index = self.index();
        for skill in index.skills.iter().filter(named_in(line)) {
            let (hosts, more) = self.reached(skill, &named, false);
            access.extend(more);
            calls.extend(hosts.into_iter().map(|(host, changes)| SinkCall {
                sink: "request",
                tool: EXEC.to_owned(),
                destination: format!("host:{}", bare(&host)),
                changes,
                decision: labels.decision.clone(),
                args: Vec::new(),
            }));
        }
        CallSinks { calls, access }
    }

    /// Returns the hosts that a skill may reach, and whether it may change something there: the `named` ones, or all of its
    /// grant.
    fn reached(
        &self,
        skill: &InstalledSkill,
        named: &BTreeSet<String>,
        reads: bool,
    ) -> (Vec<(String, bool)>, Vec<CardAccess>) {
        let Ok(allowed) = self.skills.allowed(skill) else { return (Vec::new(), Vec::new()) };
        let mut hosts: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        for (need, _) in &allowed.http {
            let covered = named.iter().filter(|host| super::call::covers(bare(&need.host), bare(host)));
            let covered: Vec<&String> = covered.collect();
            let reached = if named.is_empty() || !need.host.contains('*') { vec![&need.host] } else { covered };
            for host in reached {
                hosts.entry(host.clone()).or_default().extend(need.methods.iter().cloned());
            }
        }
        let changes =
            |methods: &BTreeSet<String>| !reads && methods.iter().any(|method| !READING.contains(&method.as_str()));
        let access = CardAccess {
            of: skill.name().to_string(),
            hosts: hosts
                .iter()
                .map(|(host, methods)| Destination { host: host.clone(), methods: methods.iter().cloned().collect() })
                .collect(),
            secrets: Vec::new(),
        };
        let reached: Vec<_> = hosts.iter().map(|(host, methods)| (host.clone(), changes(methods))).collect();
        let access = if reached.is_empty() { Vec::new() } else { vec![access] };
        (reached, access)
    }
}
