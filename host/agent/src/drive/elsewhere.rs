//! Of a fleet: work that asks for a machine with a label, such as "gpu".

use super::{DriveError, RunExecutor};
use kiso_base::home::SessionName;
use kiso_graph::step::Step;
use kiso_sandbox::effect::member::FleetMember;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::timeout;

/// How long the home takes to be given up once somebody has asked for that; whoever waits for longer goes on.
const PATIENCE: Duration = Duration::from_secs(10);

impl RunExecutor {
    /// Where a step asks for a label that this machine has not and a member that is there has, the home goes to that one, and the run
    /// with it. Where nobody has it, the step says so itself.
    pub(super) async fn find_machine(&self, step: &Step) -> Result<(), DriveError> {
        let Some(member) = &self.member else { return Ok(()) };
        for label in self.labels_of(step) {
            if self.goes_to(member.clone(), label).await {
                return Err(DriveError::Paused);
            }
        }
        Ok(())
    }

    /// The same for the label that a session prefers. Where nobody has it, its run goes on here.
    pub(super) async fn find_preferred_machine(&self, session: &SessionName) -> Result<(), DriveError> {
        let Some(member) = &self.member else { return Ok(()) };
        let of = session.clone();
        let label = self.store.read(move |view| Ok(view.session(&of)?.and_then(|line| line.runs_on))).await?;
        let Some(label) = label.filter(|label| !self.config.fleet.labels.contains(label)) else { return Ok(()) };
        if self.goes_to(member.clone(), label).await { Err(DriveError::Paused) } else { Ok(()) }
    }

    /// The labels that it asks for and this machine has not.
    fn labels_of(&self, step: &Step) -> Vec<String> {
        let tools: Vec<&str> = match step {
            Step::Start { brief, .. } | Step::Execute { brief, .. } => {
                brief.task.skill.as_deref().into_iter().collect()
            }
            Step::StartCalls { calls } | Step::Call { calls } => calls.iter().map(|call| call.name.as_str()).collect(),
            _ => Vec::new(),
        };
        tools.into_iter().filter_map(|tool| self.tools.missing_label(tool)).collect()
    }

    /// Whether the home is given up for a member with this label.
    async fn goes_to(&self, member: Arc<dyn FleetMember>, label: String) -> bool {
        let asks = tokio::task::spawn_blocking(move || member.hand_over(&label));
        let given = async {
            match asks.await {
                Ok(Ok(true)) => timeout(PATIENCE, self.pause.paused()).await.is_ok(),
                Ok(Ok(false)) => false,
                Ok(Err(why)) => {
                    tracing::warn!("the home could not be given to a member with another label: {why}");
                    false
                }
                Err(_) => false,
            }
        };
        tokio::select! {
            // Another run may have asked for the same.
            () = self.pause.paused() => true,
            given = given => given,
        }
    }
}
