//! A server that is a component. One instance is started for each call, and ends with it.
//!
//! So no call sees state of another one, a server that crashed or hangs does not affect the next call, and idle servers use no
//! place and memory of the sandbox. Starting one takes a fraction of a millisecond.

use std::sync::Arc;

use futures_util::future::BoxFuture;
use tokio::sync::watch;
use tokio::task::AbortHandle;

use super::McpFault;
use super::stdio::{ServerInput, ServerLife, ServerOutput, StdioServer};
use kiso_plan::code::{Blame, ErrorCode};
use kiso_sandbox::effect::label::LabelCell;
use kiso_sandbox::exec::{Channel, Stdio, pipe};
use kiso_sandbox::skill::SkillError;
use kiso_sandbox::skill::server::ServerComponent;

/// A running instance.
#[derive(Debug)]
struct ServerInstance {
    task: AbortHandle,
    ended: watch::Receiver<Option<McpFault>>,
}

/// Starts an instance. It ends when the returned value is dropped.
pub(super) fn start(component: &Arc<ServerComponent>) -> StdioServer {
    let ((stdin, input), (output, stdout)) = (pipe(), pipe());
    let (told, ended) = watch::channel(None);
    let component = component.clone();
    let task = tokio::spawn(async move {
        let run = component.run(
            Stdio::new(Channel::Reader(stdin), LabelCell::default()),
            Stdio::new(Channel::Writer(stdout), LabelCell::default()),
        );
        told.send_replace(Some(fault(run.await)));
    });
    let life = Box::new(ServerInstance { task: task.abort_handle(), ended });
    let (input, output) = (Channel::Writer(input), Channel::Reader(output));
    StdioServer::new(life, ServerInput::Component(input), ServerOutput::Component(output))
}

/// Converts an error of the sandbox for the caller.
pub(super) fn fault(error: SkillError) -> McpFault {
    match (error.limit, error.blame, &error.code) {
        (Some(hit), ..) => McpFault::Limit(*hit),
        (None, Blame::Skill, ErrorCode::Exit | ErrorCode::Trap) => McpFault::Broken(error.message),
        _ => McpFault::Start(error.message),
    }
}

impl ServerLife for ServerInstance {
    fn end(&self) {
        self.task.abort();
    }

    fn is_over(&self) -> bool {
        self.task.is_finished()
    }

    fn ended(&self) -> BoxFuture<'_, McpFault> {
        let mut ended = self.ended.clone();
        Box::pin(async move {
            let fault = ended.wait_for(Option::is_some).await.ok().and_then(|fault| fault.clone());
            fault.unwrap_or_else(|| McpFault::Broken("it was ended".to_owned()))
        })
    }
}
