//! Fleet: work that requires a machine with a label, such as "gpu".

use super::{DriveError, RunExecutor};
use kiso_base::home::SessionName;
use kiso_graph::step::Step;
use kiso_sandbox::effect::member::FleetMember;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::timeout;

/// Time limit for the release of the home; after that, the waiting run continues here.
const PATIENCE: Duration = Duration::from_secs(10);

impl RunExecutor {
    /// If a step requires a label that this machine lacks and another available member has, hands over the home to that member,
    /// together with the run. If no member has it, the step itself reports that.
    pub(super) async fn find_machine(&self, step: &Step) -> Result<(), DriveError> {
        let Some(member) = &self.member else { return Ok(()) };
        for label in self.labels_of(step) {
            if self.goes_to(member.clone(), label).await {
                return Err(DriveError::Paused);
            }
        }
        Ok(())
    }

    /// The same for the label that a session prefers. If no member has it, its run continues here.
    pub(super) async fn find_preferred_machine(&self, session: &SessionName) -> Result<(), DriveError> {
        let Some(member) = &self.member else { return Ok(()) };
        let of = session.clone();
        let label = self.store.read(move |view| Ok(view.session(&of)?.and_then(|line| line.runs_on))).await?;
        let Some(label) = label.filter(|label| !self.config.fleet.labels.contains(label)) else { return Ok(()) };
        if self.goes_to(member.clone(), label).await { Err(DriveError::Paused) } else { Ok(()) }
    }

    /// Returns the labels that the step requires and this machine lacks.
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

    /// Returns whether the home is handed over to a member with this label.
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
            // Another run may have requested the same.
            () = self.pause.paused() => true,
            given = given => given,
        }
    }
}
