//! Sinks: the only places where data leaves the sandbox, and the only ones that check labels.
//!
//! An effect is allowed if nobody below the user influenced the decision, nor an argument that says where it goes, how much or
//! when. Other arguments may be anybody's words, but must be allowed to go there. A read is refused only if three conditions
//! hold: somebody below the user influenced it, it contains something confidential, and the destination does not know that
//! already.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};

use super::label::{LabelCell, LabelId};
use kiso_plan::label::{Label, SESSION_SOURCE};
use kiso_plan::sink::{ArgumentRole, SinkArgument, SinkDecision, SinkVerdict};

/// The reaction to an effect that the rules do not allow (`[policy] effects`).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Enforcement {
    /// Ask a person, or refuse it.
    #[default]
    Enforce,
    /// Allow it and log a warning.
    Warn,
    Off,
    /// Like the first, and ask about every effect.
    AskAlways,
}

impl Enforcement {
    /// Parses the value in `config.toml`.
    pub fn named(word: &str) -> Self {
        match word {
            "warn" => Self::Warn,
            "off" => Self::Off,
            "ask_always" => Self::AskAlways,
            _ => Self::Enforce,
        }
    }

    /// Whether an effect that the rules do not allow is refused.
    pub fn refuses(self) -> bool {
        matches!(self, Self::Enforce | Self::AskAlways)
    }
}

/// The reason to ask about an effect that the rules allow.
pub const ASKED_ALWAYS: &str = "every effect is asked for (`[policy] effects`)";

/// Lines of the log of one call. Later effects are still checked.
const MAX_LINES: usize = 200;

/// Data that leaves the sandbox.
#[derive(Debug, Clone)]
pub struct SinkCall {
    /// "tool", "request" …
    pub sink: &'static str,
    /// The tool that does it.
    pub tool: String,
    /// Where it goes, such as "mcp:bank" or "host:example.org".
    pub destination: String,
    /// Whether it changes something there.
    pub changes: bool,
    pub decision: Label,
    pub args: Vec<SinkArgument>,
}

impl SinkCall {
    /// The reasons why the rules do not allow it; empty if they do.
    pub fn problems(&self) -> Vec<String> {
        let mut problems = self.whose_words();
        problems.extend(self.where_to());
        problems
    }

    /// Problems with the sources of the decision and of the arguments.
    fn whose_words(&self) -> Vec<String> {
        let mut problems = Vec::new();
        if self.changes {
            if !self.decision.is_trusted() {
                problems.push(format!("it was decided after reading text {}", describe(&self.decision)));
            }
            for arg in &self.args {
                if arg.role != ArgumentRole::Content && !arg.label.is_trusted() {
                    problems.push(format!("{} was {}", arg.name, describe(&arg.label)));
                }
            }
        } else {
            let all = self.label();
            if !all.is_trusted() && !all.is_known_to(&self.destination) {
                problems.push(format!(
                    "the request could pass something on to {}: it was decided after reading text {}",
                    self.destination.strip_prefix("host:").unwrap_or(&self.destination),
                    describe(&all)
                ));
            }
        }
        problems
    }

    /// Returns the parts that may not be sent to the destination, regardless of who decided to send them.
    fn where_to(&self) -> Vec<String> {
        let words = self.args.iter().map(|arg| (arg.name.as_str(), &arg.label));
        let kept =
            words.chain([("the decision", &self.decision)]).filter(|(_, label)| !label.may_flow_to(&self.destination));
        kept.map(|(name, label)| format!("{name} is made of what may not be sent to {}: {label}", self.destination))
            .collect()
    }

    /// Returns the label of all data that goes to the destination.
    fn label(&self) -> Label {
        Label::join_all(self.args.iter().map(|arg| &arg.label)).joined(&self.decision)
    }

    /// The line of the log.
    pub fn decided(self, verdict: SinkVerdict, because: String) -> SinkDecision {
        let Self { sink, tool, destination, decision, args, .. } = self;
        SinkDecision { sink: sink.to_owned(), tool, destination, decision, args, verdict, because }
    }
}

/// Whether an accepted destination covers another one.
fn covers(accepted: &str, destination: &str) -> bool {
    match accepted.strip_prefix("host:*") {
        Some(suffix) => destination.strip_prefix("host:").is_some_and(|host| host.ends_with(suffix)),
        None => accepted == destination,
    }
}

/// Describes the source of data.
fn describe(label: &Label) -> String {
    let whose = label.integrity.words();
    let from: Vec<_> = label.sources.iter().filter(|source| *source != SESSION_SOURCE).collect();
    if from.is_empty() { whose.to_owned() } else { format!("{whose} (from {})", from.join(", ")) }
}

/// The effects that a call may have outside of the sandbox, and those that it had. Made by the host for one call of a skill or
/// one command line; clones share it.
#[derive(Debug, Clone)]
pub struct Permit(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    enforcement: Enforcement,
    tool: String,
    /// The label of the decision.
    decision: Label,
    /// The labels of its arguments.
    args: Vec<SinkArgument>,
    /// Hosts that trusted arguments name.
    named: BTreeSet<String>,
    /// Whether a manifest says which arguments are addresses, and these are trusted.
    declared: bool,
    /// Whether somebody below the user influenced an argument that says where to, how much or when.
    steered: bool,
    /// Destinations that a person has accepted, such as "host:*.example.org".
    accepted: BTreeSet<String>,
    /// Destinations that a person has accepted for reading only.
    readable: BTreeSet<String>,
    /// The label of everything that the call has read.
    read: LabelCell,
    /// For a process: the permit of its whole line.
    line: Option<Permit>,
    log: Mutex<Vec<SinkDecision>>,
    /// Whether something outside was changed; the same for all processes of a line.
    changed: Arc<AtomicBool>,
}

/// The parts of a permit.
#[derive(Debug, Clone, Default)]
pub struct PermitParts {
    pub enforcement: Enforcement,
    pub tool: String,
    pub decision: Label,
    pub args: Vec<SinkArgument>,
    pub named: BTreeSet<String>,
    pub declared: bool,
    pub steered: bool,
    pub accepted: BTreeSet<String>,
    pub readable: BTreeSet<String>,
}

impl Default for Permit {
    /// The permit of a call that a person makes by hand.
    fn default() -> Self {
        Self::new(PermitParts { enforcement: Enforcement::Off, ..PermitParts::default() })
    }
}

impl Permit {
    pub fn new(parts: PermitParts) -> Self {
        let label = Label::join_all(parts.args.iter().map(|arg| &arg.label)).joined(&parts.decision);
        Self::with(parts, LabelCell::new(LabelId::from_label(&label)), Arc::default(), None)
    }

    fn with(parts: PermitParts, read: LabelCell, changed: Arc<AtomicBool>, line: Option<Permit>) -> Self {
        let PermitParts { enforcement, tool, decision, args, named, declared, steered, accepted, readable } = parts;
        let log = Mutex::default();
        Self(Arc::new(Inner {
            enforcement,
            tool,
            decision,
            args,
            named,
            declared,
            steered,
            accepted,
            readable,
            read,
            line,
            log,
            changed,
        }))
    }

    /// Returns the permit of a skill that a command line calls. Its arguments have the label of everything that the process has
    /// read.
    pub fn of_process(&self, tool: &str, read: &LabelCell, named: BTreeSet<String>) -> Self {
        let (inner, label) = (&self.0, read.get());
        let words =
            SinkArgument { name: "arguments".to_owned(), role: ArgumentRole::Address, label: (*label.label()).clone() };
        let trusted = words.label.is_trusted();
        let parts = PermitParts {
            enforcement: inner.enforcement,
            tool: tool.to_owned(),
            decision: inner.decision.clone(),
            args: vec![words],
            named: if trusted { named } else { BTreeSet::new() },
            declared: false,
            // The decision determines the line, whatever its variables contain.
            steered: inner.steered,
            accepted: inner.accepted.clone(),
            readable: inner.readable.clone(),
        };
        Self::with(parts, read.clone(), inner.changed.clone(), Some(self.clone()))
    }

    /// Whether every effect needs the approval of a person, whoever decided it.
    pub fn asks_always(&self) -> bool {
        self.0.enforcement == Enforcement::AskAlways
    }

    /// The label of all that the call has read.
    pub fn read(&self) -> &LabelCell {
        &self.0.read
    }

    /// The label of the decision.
    pub fn decision(&self) -> &Label {
        &self.0.decision
    }

    /// Takes the decisions so far.
    pub fn take_log(&self) -> Vec<SinkDecision> {
        std::mem::take(&mut *self.lock())
    }

    /// Logs effects that were refused.
    pub fn log_denied(&self, calls: Vec<SinkCall>, why: &str) {
        let mut log = self.lock();
        let room = MAX_LINES.saturating_sub(log.len());
        log.extend(calls.into_iter().take(room).map(|call| call.decided(SinkVerdict::Denied, why.to_owned())));
    }

    /// Adds the log of another permit to this one.
    pub fn take_in(&self, other: &Permit) {
        let lines = other.take_log();
        let mut log = self.lock();
        let room = MAX_LINES.saturating_sub(log.len());
        log.extend(lines.into_iter().take(room));
    }

    /// Whether something outside was changed. Repeating the work would then change it twice.
    pub fn has_changed(&self) -> bool {
        self.0.changed.load(Relaxed)
    }

    /// Returns why a request may not be sent to a host, or `None` if it may. Nothing is logged.
    pub fn refuses_request(&self, host: &str, changes: bool, by_name: bool) -> Option<String> {
        self.refused(host, changes, self.is_fixed(host, by_name)).map(|(_, why)| why)
    }

    /// Checks whether the data that the call has read by now may be sent in the body of a request that was allowed. The
    /// destination was checked before.
    pub fn request_body(&self, host: &str, changes: bool, by_name: bool) -> Result<(), String> {
        match self.refused(host, changes, changes || self.is_fixed(host, by_name)) {
            None => Ok(()),
            Some((call, why)) => {
                self.log_denied(vec![call], &why);
                Err(why)
            }
        }
    }

    /// Returns a request that may not be sent, and the reason.
    fn refused(&self, host: &str, changes: bool, fixed: bool) -> Option<(SinkCall, String)> {
        let destination = format!("host:{host}");
        let call = self.sink_call("request", &destination, changes, self.args_of(fixed, changes));
        let problems = self.problems(&call, fixed);
        let refuses = self.0.enforcement.refuses() && !problems.is_empty() && !self.has_accepted(&destination, changes);
        refuses.then(|| (call, problems.join("; ")))
    }

    /// Logs once why a request was allowed that no grant names.
    pub fn note_reached(&self, host: &str, changes: bool, because: &str) {
        if let Some(line) = &self.0.line {
            return line.note_reached(host, changes, because);
        }
        let call = self.sink_call("request", &format!("host:{host}"), changes, Vec::new());
        let mut log = self.lock();
        let is_noted = log.iter().any(|line| line.destination == call.destination && line.because == because);
        if log.len() < MAX_LINES && !is_noted {
            log.push(call.decided(SinkVerdict::Allowed, because.to_owned()));
        }
    }

    fn is_fixed(&self, host: &str, by_name: bool) -> bool {
        self.0.declared || by_name || self.0.named.contains(host)
    }

    /// Checks whether a request may be sent to a host. `by_name`: an administrator has granted the host by its name.
    pub fn request(&self, host: &str, changes: bool, by_name: bool) -> Result<(), String> {
        self.leave("request", &format!("host:{host}"), self.is_fixed(host, by_name), changes)
    }

    /// Checks whether the permit's tool may be called.
    pub fn call(&self, destination: &str, changes: bool) -> Result<(), String> {
        self.decide("tool", destination, changes, self.0.args.clone(), false)
    }

    /// Checks whether a file outside of the session may be written.
    pub fn mount(&self, at: &str, label: LabelId) -> Result<(), String> {
        let label = (*label.label()).clone();
        let args = vec![SinkArgument { name: "the path".to_owned(), role: ArgumentRole::Address, label }];
        self.decide("mount", at, true, args, false)
    }

    /// Checks whether an effect outside is allowed. The destination may be `fixed` by somebody who is trusted, whatever the call
    /// has read.
    pub fn leave(&self, sink: &'static str, destination: &str, fixed: bool, changes: bool) -> Result<(), String> {
        self.decide(sink, destination, changes, self.args_of(fixed, changes), fixed)
    }

    /// The data that goes out with an effect.
    fn args_of(&self, fixed: bool, changes: bool) -> Vec<SinkArgument> {
        let read = (*self.0.read.get().label()).clone();
        let role = if fixed { ArgumentRole::Content } else { ArgumentRole::Address };
        let mut args = if changes { self.0.args.clone() } else { Vec::new() };
        args.push(SinkArgument { name: "what it has read".to_owned(), role, label: read });
        args
    }

    fn sink_call(&self, sink: &'static str, destination: &str, changes: bool, args: Vec<SinkArgument>) -> SinkCall {
        let (tool, decision) = (self.0.tool.clone(), self.0.decision.clone());
        SinkCall { sink, tool, destination: destination.to_owned(), changes, decision, args }
    }

    fn problems(&self, call: &SinkCall, fixed: bool) -> Vec<String> {
        // If the user's own words name the destination and the query, it may be read from.
        let mut problems = match !call.changes && fixed && !self.0.steered && call.decision.is_trusted() {
            true => call.where_to(),
            false => call.problems(),
        };
        if self.asks_always() && call.changes && problems.is_empty() {
            problems.push(ASKED_ALWAYS.to_owned());
        }
        problems
    }

    fn has_accepted(&self, destination: &str, changes: bool) -> bool {
        let readable = self.0.readable.iter().filter(|_| !changes);
        self.0.accepted.iter().chain(readable).any(|accepted| covers(accepted, destination))
    }

    fn decide(
        &self,
        sink: &'static str,
        destination: &str,
        changes: bool,
        args: Vec<SinkArgument>,
        fixed: bool,
    ) -> Result<(), String> {
        let inner = &*self.0;
        let call = self.sink_call(sink, destination, changes, args);
        let problems = self.problems(&call, fixed);
        let accepted = self.has_accepted(destination, changes);
        let because = problems.join("; ");
        let (verdict, done) = match (problems.is_empty(), accepted, inner.enforcement) {
            (_, _, Enforcement::Off) => {
                inner.changed.fetch_or(changes, Relaxed);
                return Ok(());
            }
            (true, ..) => (SinkVerdict::Allowed, Ok(())),
            (false, true, _) => (SinkVerdict::Accepted, Ok(())),
            (false, false, Enforcement::Warn) => (SinkVerdict::Warned, Ok(())),
            (false, false, _) => (SinkVerdict::Denied, Err(because.clone())),
        };
        if verdict == SinkVerdict::Warned {
            tracing::warn!(tool = inner.tool, destination, "an effect that was not decided by the user: {because}");
        }
        inner.changed.fetch_or(changes && done.is_ok(), Relaxed);
        // Permitted reads are not reported.
        let mut log = self.lock();
        if log.len() < MAX_LINES && (changes || verdict != SinkVerdict::Allowed) {
            log.push(call.decided(verdict, because));
        }
        done
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Vec<SinkDecision>> {
        self.0.log.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A directory of the machine that tasks may write to: data that is written there leaves the session.
#[derive(Debug)]
pub struct MountSink {
    at: String,
    permit: Permit,
    /// The label that was allowed last.
    admitted: Mutex<Option<LabelId>>,
}

impl MountSink {
    pub fn new(at: &str, permit: Permit) -> Self {
        Self { at: at.to_owned(), permit, admitted: Mutex::default() }
    }

    /// Whether somebody with this label may write there. Decided once for each label.
    pub fn admits(&self, label: LabelId) -> bool {
        let mut admitted = self.admitted.lock().unwrap_or_else(PoisonError::into_inner);
        if *admitted != Some(label) && self.permit.mount(&self.at, label).is_ok() {
            *admitted = Some(label);
        }
        *admitted == Some(label)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kiso_plan::label::{Confidentiality, Integrity};

    fn bank() -> Label {
        Label::new(Integrity::World, Confidentiality::Session, "mcp:bank")
    }

    fn arg(role: ArgumentRole, label: Label) -> SinkArgument {
        SinkArgument { name: "x".to_owned(), role, label }
    }

    #[test]
    fn an_effect_needs_a_decision_and_addresses_of_the_user() {
        let call = |decision: &Label, role, label: &Label, destination: &str, changes| {
            let args = vec![arg(role, label.clone())];
            let (tool, destination) = ("t".to_owned(), destination.to_owned());
            let call = SinkCall { sink: "tool", tool, destination, changes, decision: decision.clone(), args };
            call.problems().is_empty()
        };
        let (user, world, page) = (Label::default(), bank(), Label::world("web:a.example"));
        let (nobody, own) = (
            Label::new(Integrity::User, Confidentiality::Nobody, "mcp:vault"),
            Label::new(Integrity::World, Confidentiality::Hosts, "mcp:bank"),
        );
        use ArgumentRole::{Address, Content, Value};
        for (decision, role, label, destination, changes, allowed) in [
            (&user, Address, &user, "mcp:bank", true, true),
            (&user, Address, &Label::session(), "mcp:bank", true, true),
            (&user, Address, &world, "mcp:bank", true, false),
            (&user, Value, &page, "mcp:bank", true, false),
            (&user, Content, &world, "mcp:bank", true, true),
            (&user, Content, &world, "mcp:mail", true, true),
            (&world, Content, &user, "mcp:bank", true, false),
            (&page, Content, &user, "mcp:bank", true, false),
            (&user, Content, &nobody, "mcp:vault", true, false),
            (&user, Content, &own, "mcp:bank", true, true),
            (&user, Content, &own, "mcp:mail", true, false),
            // Only reads.
            (&world, Address, &world, "mcp:bank", false, true),
            (&world, Address, &world, "host:evil.example", false, false),
            (&page, Address, &page, "host:evil.example", false, true),
            (&page, Address, &Label::session(), "host:evil.example", false, false),
            (&user, Address, &Label::session(), "host:a.example", false, true),
        ] {
            let found = call(decision, role, label, destination, changes);
            assert_eq!(found, allowed, "{decision} {role:?} {label} {destination} {changes}");
        }
    }

    #[test]
    fn what_a_call_has_read_counts_when_it_sends_something() {
        let parts = || PermitParts { tool: "fetch".to_owned(), ..PermitParts::default() };
        let permit = Permit::new(parts());
        permit.request("a.example", true, false).unwrap();
        permit.read().join(LabelId::from_label(&bank()));
        assert!(permit.request("a.example", true, false).unwrap_err().contains("mcp:bank"));
        assert!(permit.request("a.example", false, false).is_err());
        permit.request("a.example", true, true).unwrap();
        permit.request("a.example", false, true).unwrap();
        assert_eq!(permit.take_log().len(), 4);
        let named = BTreeSet::from(["a.example".to_owned()]);
        let accepted = |at: &str| PermitParts { accepted: BTreeSet::from([at.to_owned()]), ..parts() };
        for parts in [
            PermitParts { named, ..parts() },
            accepted("host:a.example"),
            accepted("host:*.example"),
            accepted("host:*"),
        ] {
            let permit = Permit::new(parts);
            permit.read().join(LabelId::from_label(&bank()));
            permit.request("a.example", true, false).unwrap();
            permit.request("a.example", false, false).unwrap();
        }
        // Even a host that is granted by name must not get data by an address that somebody else has chosen.
        let permit = Permit::new(PermitParts { steered: true, ..parts() });
        permit.request("a.example", false, true).unwrap();
        permit.read().join(LabelId::from_label(&bank()));
        assert!(permit.request("a.example", false, true).unwrap_err().contains("pass something on to a.example: "));
        // The reason why a process reached a site is logged for its whole line, once.
        let line = Permit::new(parts());
        for _ in 0..2 {
            let process = line.of_process("curl", line.read(), BTreeSet::new());
            process.note_reached("a.example", false, "a rule allows it");
            assert_eq!(process.take_log().len(), 0);
        }
        let noted: Vec<_> = line.take_log().into_iter().map(|line| (line.destination, line.because)).collect();
        assert_eq!(noted, [("host:a.example".to_owned(), "a rule allows it".to_owned())]);
        // An accepted effect allows no other one.
        let permit = Permit::new(accepted("host:b.example"));
        permit.read().join(LabelId::from_label(&bank()));
        assert!(
            permit.request("a.example", true, false).is_err()
                && permit.mount("/shared", LabelId::from_label(&bank())).is_err()
        );
        let always = Permit::new(PermitParts { enforcement: Enforcement::AskAlways, ..parts() });
        assert!(always.request("a.example", true, true).is_err() && always.request("a.example", false, true).is_ok());
        // Data that nobody outside may read goes nowhere, even if the user has named the place.
        let permit = Permit::new(parts());
        permit.read().join(LabelId::from_label(&Label::new(Integrity::User, Confidentiality::Nobody, "mcp:vault")));
        for changes in [true, false] {
            assert!(permit.request("a.example", changes, true).unwrap_err().contains("may not be sent"));
        }
        for (enforcement, verdict) in [(Enforcement::Warn, Some(SinkVerdict::Warned)), (Enforcement::Off, None)] {
            let permit = Permit::new(PermitParts { enforcement, decision: bank(), ..parts() });
            permit.request("b.example", true, true).unwrap();
            assert_eq!(permit.take_log().first().map(|line| line.verdict), verdict);
        }
    }

    #[test]
    fn who_accepts_that_a_host_is_read_has_accepted_nothing_more() {
        let session = bank().joined(&Label::session());
        let readable = BTreeSet::from(["host:a.example".to_owned()]);
        let permit = Permit::new(PermitParts { decision: session, readable, ..PermitParts::default() });
        assert!(permit.request("a.example", false, false).is_ok());
        assert!(
            permit.request("a.example", true, false).is_err() && permit.request("b.example", false, false).is_err()
        );
        let process = permit.of_process("curl", permit.read(), BTreeSet::new());
        assert!(
            process.request("a.example", false, false).is_ok() && process.request("a.example", true, false).is_err()
        );
    }
}
