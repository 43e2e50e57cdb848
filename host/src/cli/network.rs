//! `kiso network`: the hosts that command lines may reach.

use super::listing::{row, typed};
use super::{Exit, Failure, Opened, Shared, session};
use clap::Subcommand;
use clap::builder::PossibleValuesParser;
use kiso_base::clock::now_ms;
use kiso_base::home::SessionName;
use kiso_plan::label::Label;
use kiso_plan::network::{
    METHODS, NetworkAccess, NetworkDecision, NetworkRequest, NetworkRule, NetworkRules, READING, split_port,
};
use kiso_plan::plan::CallerScope;
use kiso_sandbox::skill::Quiet;
use kiso_store::store::{NetworkRuleLine, NewNetworkRule};
use serde_json::json;
use std::sync::Arc;

#[derive(Debug, clap::Args)]
#[command(after_help = AFTER)]
pub(super) struct NetworkArgs {
    /// Without one: list
    #[command(subcommand)]
    command: Option<NetworkCommand>,
}

const AFTER: &str = "\
Examples:
  kiso network                                      list the rules
  kiso network allow example.org                    GET, HEAD and OPTIONS requests
  kiso network allow api.example.org --method POST
  kiso network allow 192.168.1.7:8080 --private     in the machine's own network
  kiso network deny '*.example.net'
  kiso network forget example.org

Rules in `[network]` of config.toml come first.";

#[derive(Debug, Subcommand)]
enum NetworkCommand {
    /// List the rules
    List {
        /// Only the rules for this session
        #[arg(long, short, value_name = "NAME")]
        session: Option<String>,
    },
    /// Allow requests to a host without asking
    Allow {
        #[command(flatten)]
        rule: RuleArgs,
        /// Also if the host's address is in this machine's own network, such as 127.0.0.1 or 192.168.1.7
        #[arg(long)]
        private: bool,
    },
    /// Ask before requests to a host
    Ask {
        #[command(flatten)]
        rule: RuleArgs,
        /// Also ask if the host's address is in this machine's own network; without it, such a host is refused
        #[arg(long)]
        private: bool,
    },
    /// Refuse requests to a host
    Deny {
        #[command(flatten)]
        rule: RuleArgs,
    },
    /// Remove the rules about a host
    Forget {
        #[command(flatten)]
        host: HostArgs,
    },
}

#[derive(Debug, clap::Args)]
struct HostArgs {
    /// A name such as example.org, '*.example.org' for every name below it, or '*'; without a port, that of the scheme
    #[arg(value_name = "HOST[:PORT]")]
    host: String,
    /// Only for command lines of this session
    #[arg(long, short, value_name = "NAME")]
    session: Option<String>,
}

#[derive(Debug, clap::Args)]
struct RuleArgs {
    #[command(flatten)]
    host: HostArgs,
    /// Only for this method; can be repeated. GET means all reading methods [default: GET, or all to deny]
    #[arg(long, value_name = "METHOD", ignore_case = true, value_parser = PossibleValuesParser::new(METHODS))]
    method: Vec<String>,
}

impl NetworkArgs {
    pub(super) fn execute(&self, shared: &Shared) -> Result<Exit, Failure> {
        let opened = Opened::new(shared, Arc::new(Quiet))?;
        match &self.command {
            None => list(&opened, None, shared.json)?,
            Some(NetworkCommand::List { session }) => list(&opened, session.as_deref(), shared.json)?,
            Some(NetworkCommand::Allow { rule, private }) => {
                add(&opened, rule, NetworkAccess::Allow, *private, shared.json)?;
            }
            Some(NetworkCommand::Ask { rule, private }) => {
                add(&opened, rule, NetworkAccess::Ask, *private, shared.json)?;
            }
            Some(NetworkCommand::Deny { rule }) => add(&opened, rule, NetworkAccess::Deny, false, shared.json)?,
            Some(NetworkCommand::Forget { host }) => forget(&opened, host, shared.json)?,
        }
        Ok(Exit::Done)
    }
}

fn list(opened: &Opened, of: Option<&str>, json: bool) -> Result<(), Failure> {
    let of = of.map(SessionName::parse).transpose()?;
    let remembered = opened.store.read_blocking(|view| view.network_rule_lines(of.as_ref()))?;
    let default = opened.config.network_default();
    if json {
        for rule in &opened.config.network_rules {
            let mut line = typed("network_rule", rule);
            line["source"] = "config".into();
            outln!("{line}");
        }
        remembered.iter().for_each(|line| outln!("{}", object(line)));
        outln!("{}", json!({ "type": "network_default", "access": default }));
        return Ok(());
    }
    for rule in &opened.config.network_rules {
        row(&head(rule), &format!("{}, in config.toml", details(rule)));
    }
    for line in &remembered {
        row(&head(&line.rule), &format!("{}, {}", details(&line.rule), place(line.session.as_ref())));
    }
    row(&format!("{:<5}  any other host", default.as_str()), "[network] default in config.toml");
    Ok(())
}

fn object(line: &NetworkRuleLine) -> serde_json::Value {
    let mut object = typed("network_rule", line);
    object["source"] = "remembered".into();
    object
}

fn head(rule: &NetworkRule) -> String {
    format!("{:<5}  {}", rule.access.as_str(), rule.host)
}

fn details(rule: &NetworkRule) -> String {
    let methods = match methods(rule) {
        all if all.len() == METHODS.len() => "all methods".to_owned(),
        some => some.join(", "),
    };
    let private = rule.private.then(|| "private addresses too".to_owned());
    let role = rule.role.map(|role| format!("only {}", role.name()));
    let label = rule.label.map(|label| format!("only after text {}", label.words()));
    let secret = rule.secret.as_deref().map(|name| format!("with the secret {name}"));
    [Some(methods), private, secret, role, label].into_iter().flatten().collect::<Vec<_>>().join("; ")
}

/// Returns the methods of a rule.
fn methods(rule: &NetworkRule) -> Vec<&'static str> {
    let named = |method: &str| rule.methods.iter().any(|named| named == method);
    let is_about = |method: &str| match rule.methods.is_empty() {
        true => rule.access == NetworkAccess::Deny || READING.contains(&method),
        false => named(method) || named("GET") && READING.contains(&method),
    };
    METHODS.into_iter().filter(|method| is_about(method)).collect()
}

fn place(session: Option<&SessionName>) -> String {
    session.map_or_else(|| "every session".to_owned(), |session| format!("session {session}"))
}

fn add(opened: &Opened, args: &RuleArgs, access: NetworkAccess, private: bool, json: bool) -> Result<(), Failure> {
    let of = args.host.session.as_deref().map(|name| session(Some(name))).transpose()?;
    let rule =
        NetworkRule { methods: named(&args.method, access), private, ..NetworkRule::new(&args.host.host, access) };
    rule.check().map_err(|why| Failure::new(Exit::Usage, why))?;
    let (new, opens) = (NewNetworkRule { session: of.clone(), rule, by: "command line".to_owned() }, of.clone());
    let id = opened.store.write_blocking(move |tx| {
        if let Some(session) = &opens {
            tx.open_session(session, now_ms())?;
        }
        tx.remember_network_rule(&new, now_ms())
    })?;
    let lines = opened.store.read_blocking(|view| view.network_rule_lines(of.as_ref()))?;
    let lines: Vec<_> = lines.into_iter().filter(|line| line.session.is_none() || line.session == of).collect();
    let Some(line) = lines.iter().find(|line| Some(line.id) == id) else { return Ok(()) };
    if json {
        outln!("{}", object(line));
    } else {
        outln!("{}", sentence(line));
    }
    let rules = NetworkRules {
        configured: opened.config.network_rules.clone(),
        remembered: lines.iter().map(|line| line.rule.clone()).collect(),
        default: opened.config.network_default(),
        ..NetworkRules::default()
    };
    if let Some(note) = overruled(&line.rule, rules) {
        errln!("note: {note}");
    }
    Ok(())
}

/// Returns the methods for a rule; none if it is about the default ones.
fn named(given: &[String], access: NetworkAccess) -> Vec<String> {
    let is_given = |method: &str| given.iter().any(|given| given.eq_ignore_ascii_case(method));
    let reads = READING.into_iter().any(is_given);
    let others = METHODS.into_iter().filter(|method| !READING.contains(method) && is_given(method));
    let all: Vec<_> = reads.then_some("GET").into_iter().chain(others).map(str::to_owned).collect();
    if all == ["GET"] && access != NetworkAccess::Deny { Vec::new() } else { all }
}

/// Returns the rule as a sentence.
fn sentence(line: &NetworkRuleLine) -> String {
    let rule = &line.rule;
    let whose = match &line.session {
        None => "command lines".to_owned(),
        Some(session) => format!("command lines of session {session}"),
    };
    let methods = methods(rule);
    let requests = match methods.split_last() {
        _ if methods.len() == METHODS.len() => "any".to_owned(),
        Some((last, [])) => (*last).to_owned(),
        Some((last, others)) => format!("{} and {last}", others.join(", ")),
        None => String::new(),
    };
    let private = if rule.private { ", also at a private address" } else { "" };
    let host = &rule.host;
    match rule.access {
        NetworkAccess::Allow => format!("{whose} can send {requests} requests to {host}{private}"),
        NetworkAccess::Ask => format!("kiso asks you before {whose} send {requests} requests to {host}{private}"),
        NetworkAccess::Deny => format!("{whose} cannot send {requests} requests to {host}"),
    }
}

/// Names the methods for which other rules decide otherwise, if there are any.
fn overruled(rule: &NetworkRule, rules: NetworkRules) -> Option<String> {
    if !rule.names_host() {
        return None;
    }
    let (name, port) = split_port(&rule.host);
    let label = Label::default();
    let decide = |rules: &NetworkRules, method: &str, role| {
        let reads = READING.contains(&method);
        rules.decide(&NetworkRequest { host: name, port, method, reads, role, label: &label })
    };
    let differs = |found: &NetworkDecision| found.access != rule.access || found.private != rule.private;
    let decisions = |rules: &NetworkRules| -> Vec<(&'static str, NetworkAccess)> {
        let each = methods(rule).into_iter().flat_map(|method| {
            [CallerScope::Admin, CallerScope::User].map(|role| (method, decide(rules, method, role)))
        });
        let mut other: Vec<_> = each.filter(|(_, found)| differs(found)).map(|(m, found)| (m, found.access)).collect();
        other.dedup();
        other
    };
    let other = decisions(&rules);
    let (_, access) = *other.first()?;
    let methods: Vec<_> = other.iter().filter(|(_, found)| *found == access).map(|(method, _)| *method).collect();
    let source = match decisions(&NetworkRules { configured: Vec::new(), ..rules }).is_empty() {
        true => "a rule in config.toml",
        false => "another rule",
    };
    let still = match access {
        NetworkAccess::Allow if rule.access == NetworkAccess::Allow => "allows only public addresses of",
        NetworkAccess::Allow => "allows",
        NetworkAccess::Ask => "asks you about",
        NetworkAccess::Deny => "refuses",
    };
    let host = &rule.host;
    Some(format!("{source} comes first and {still} {host} ({}); `kiso network` lists the rules", methods.join(", ")))
}

fn forget(opened: &Opened, args: &HostArgs, json: bool) -> Result<(), Failure> {
    let of = args.session.as_deref().map(|name| session(Some(name))).transpose()?;
    let (session, host) = (of.clone(), args.host.clone());
    let count = opened.store.write_blocking(move |tx| tx.forget_network_rules(session.as_ref(), &host))?;
    let (host, place) = (&args.host, place(of.as_ref()));
    if count == 0 {
        let message = format!("there is no rule about {host:?} for {place}; `kiso network` lists the rules");
        return Err(Failure::new(Exit::Usage, message));
    }
    match json {
        true => outln!("{}", json!({ "type": "forgotten", "host": host, "session": of, "rules": count })),
        false => outln!("forgot the rules about {} for {place}", super::show::printable_line(host)),
    }
    Ok(())
}
