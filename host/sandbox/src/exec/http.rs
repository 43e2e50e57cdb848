//! Requests of a line's processes: one gate for each process, with the rules of the line and the label of the data that the
//! process has read.

use super::channel::Channel;
use super::commands::hosts_named;
use super::process::Process;
use super::task::ExecTask;
use crate::effect::network::Network;
use crate::engine::limits::{Limit, LimitHit};
use crate::skill::{HttpGate, OpenNetwork, RefusedRequest, TellRefused};
use std::sync::Arc;

/// Makes the gate of a process with these arguments.
pub(super) fn gate(task: &Arc<ExecTask>, process: &Process, argv: &[String], stderr: Channel) -> HttpGate {
    let name = argv.first().map_or("", String::as_str);
    let (network, of_task) = (task.network.network.clone(), task.clone());
    let stop: Arc<dyn Fn(&str) + Send + Sync> = Arc::new(move |host| {
        let setting = format!("an approval, or `kiso network allow {host}`");
        of_task.hit_with(LimitHit { limit: Limit::Network, value: host.to_owned(), setting });
    });
    HttpGate {
        rules: task.network.rules.clone(),
        open: Some(OpenNetwork { network: network.clone(), needs: None, secrets: task.commands.secrets.clone(), stop }),
        tell: Some(tell(network, stderr)),
        transaction: task.commands.transaction.clone(),
        permit: task.commands.permit.of_process(name, &process.label, hosts_named(argv)),
        ..HttpGate::default()
    }
}

/// Reports refused requests on a process's standard error, once for each host.
fn tell(network: Network, stderr: Channel) -> TellRefused {
    Arc::new(move |refused: RefusedRequest| {
        let said = refused.hint("kiso");
        let is_first = network.tell(&said);
        let stderr = stderr.clone();
        Box::pin(async move {
            if is_first {
                // Nobody may read standard error any more.
                let _ = stderr.write(format!("kiso: {said}\n").as_bytes()).await;
            }
        })
    })
}
