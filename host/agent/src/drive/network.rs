//! The hosts that command lines of a run may reach: by the rules, by approvals in the run, and by its message.

use super::DriveError;
use super::run_context::RunContext;
use crate::tool::address::{addresses, host_and_port};
use crate::tool::network::host_effects;
use crate::tool::{CallLabels, EXEC};
use kiso_graph::run::Run;
use kiso_plan::approval::{CallEffect, Card, Decision, NETWORK};
use kiso_plan::network::{NetworkAccess, NetworkRule};
use kiso_plan::plan::{CallerScope, Task};
use kiso_plan::prompt::strip_outside_text;
use kiso_sandbox::effect::network::{Network, is_near, rules_of};
use kiso_sandbox::effect::sink::Permit;
use std::collections::BTreeSet;

impl RunContext<'_> {
    /// Returns the network access of a command line of this run, or of a call of a bundled skill.
    pub(super) async fn network(&self, run: &Run) -> Result<Network, DriveError> {
        let mut rules = rules_of(&self.drive.store, &self.drive.config, &self.session).await?;
        for (decision, effect) in run.decisions() {
            if effect.tool != NETWORK {
                continue;
            }
            let (access, of_run) = match decision {
                Decision::Accepted => (NetworkAccess::Allow, &mut rules.accepted),
                Decision::Refused => (NetworkAccess::Deny, &mut rules.accepted),
                Decision::Expired => (NetworkAccess::Deny, &mut rules.unanswered),
            };
            for to in effect.access.iter().flat_map(|access| &access.hosts) {
                of_run.push(self.rule(&to.host, access, to.methods.clone()));
            }
        }
        if run.spec().label.is_trusted() {
            let own = strip_outside_text(run.message());
            let hosts: BTreeSet<String> = addresses(own).filter_map(host_and_port).collect();
            rules.named.extend(hosts.iter().map(|host| self.rule(host, NetworkAccess::Allow, Vec::new())));
        }
        Ok(Network::new(rules, self.caller, run.may_ask()))
    }

    fn rule(&self, host: &str, access: NetworkAccess, methods: Vec<String>) -> NetworkRule {
        // For other callers, this machine's own network is always closed.
        let private = self.caller == CallerScope::Admin && is_near(host);
        NetworkRule { methods, private, ..NetworkRule::new(host, access) }
    }

    /// Returns the questions about hosts that a task names, to be asked before it starts.
    pub(super) fn named_hosts(&self, network: &Network, task: &Task, labels: &CallLabels) -> Vec<CallEffect> {
        let mut wanted = self.drive.tools.named_requests(task, labels);
        wanted.retain(|wanted| {
            let decision = network.decide(&wanted.host, (&wanted.method, wanted.reads), &labels.all());
            let asks = match decision.access {
                NetworkAccess::Allow => wanted.because.is_some() && !decision.by_name,
                NetworkAccess::Ask => true,
                NetworkAccess::Deny => false,
            };
            asks && (self.caller == CallerScope::Admin || !is_near(&wanted.host))
        });
        host_effects(&wanted, &shown(task))
    }

    /// Returns the card for requests that a task made without permission, if the task can be repeated after the answer.
    pub(super) async fn card_for_wanted(
        &self,
        run: &Run,
        (network, permit): (&Network, &Permit),
        task: &Task,
    ) -> Result<Option<Card>, DriveError> {
        if !network.is_wanting() || !network.is_rolled_back() || permit.has_changed() || !run.may_ask() {
            return Ok(None);
        }
        let effects = host_effects(&network.wanted(), &shown(task));
        let effects = effects.into_iter().filter(|effect| run.decision(effect).is_none());
        self.card(effects.collect()).await
    }
}

/// Returns the call that requests hosts, as shown on a card.
fn shown(task: &Task) -> Vec<(String, String)> {
    match &task.skill {
        Some(skill) => vec![("for".to_owned(), skill.clone())],
        None => vec![("for".to_owned(), format!("{EXEC}: {}", task.detail))],
    }
}
