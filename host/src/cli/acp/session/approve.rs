//! Asks the editor when a run waits for an approval.

use serde_json::{Value, json};

use super::AcpSession;
use kiso_agent::drive::{AlwaysScope, CardReply};
use kiso_base::rpc::{self, RequestId, RpcError};
use kiso_store::store::{ApprovalLine, StoreError};

impl AcpSession {
    /// Asks the editor once about the card that the prompt's run waits for.
    pub(super) async fn ask_card(&mut self) -> Result<(), StoreError> {
        let session = self.session.clone();
        let Some(run) = self.prompt.as_ref().and_then(|prompt| prompt.run.clone()) else { return Ok(()) };
        let waiting = self.drive.store.read(move |view| view.approvals(Some(&session), false, None, 100)).await?;
        let Some(card) = waiting.into_iter().find(|card| card.run == run) else { return Ok(()) };
        let number = self.next_id();
        let request = format!("{}/{number}", self.session);
        let Some(prompt) = &mut self.prompt else { return Ok(()) };
        if prompt.asked.as_ref().is_some_and(|(asked, _)| *asked == card.id) {
            return Ok(());
        }
        prompt.asked = Some((card.id, request.clone()));
        self.send(permission(&request, &card)).await;
        Ok(())
    }

    /// Handles a person's answer about the card.
    pub(super) async fn answer_card(&mut self, request: &str, result: Result<Value, RpcError>) {
        let Some(prompt) = &mut self.prompt else { return };
        let Some((card, _)) = prompt.asked.as_ref().filter(|(_, asked)| asked == request) else { return };
        let card = *card;
        let outcome = result.map(|result| result["outcome"].clone()).unwrap_or_default();
        // Only an explicit yes accepts; a cancelled prompt ends by itself.
        let (accepted, always) = match (outcome["outcome"].as_str(), outcome["optionId"].as_str()) {
            (Some("selected"), Some("accept")) => (None, None),
            (Some("selected"), Some("always")) => (None, Some(AlwaysScope::Session)),
            (Some("selected"), Some("never")) => (Some(Vec::new()), Some(AlwaysScope::Session)),
            (Some("cancelled"), _) => return,
            _ => (Some(Vec::new()), None),
        };
        let reply = CardReply { accepted, always, by: "editor".to_owned() };
        if let Err(error) = self.drive.answer_card(card, None, reply).await {
            self.think(&format!("{error}\n")).await;
        }
    }
}

fn permission(request: &str, card: &ApprovalLine) -> Value {
    let text = card.card.lines().join("\n");
    let title = match card.card.effects.as_slice() {
        [effect] => format!("{}: {}", effect.tool, effect.destination()),
        effects => format!("{} calls that need your approval", effects.len()),
    };
    let mut options = vec![json!({ "optionId": "accept", "name": "Approve", "kind": "allow_once" })];
    if card.card.can_last() {
        options.push(
            json!({ "optionId": "always", "name": "Approve, always in this conversation", "kind": "allow_always" }),
        );
    }
    options.push(json!({ "optionId": "refuse", "name": "Refuse", "kind": "reject_once" }));
    if card.card.is_about_hosts() {
        options.push(
            json!({ "optionId": "never", "name": "Refuse, always in this conversation", "kind": "reject_always" }),
        );
    }
    let params = json!({
        "sessionId": card.session,
        "toolCall": {
            "toolCallId": format!("approval-{}", card.id), "title": title, "kind": "fetch", "status": "pending",
            "content": [{ "type": "content", "content": { "type": "text", "text": text } }],
        },
        "options": options,
    });
    rpc::request(&RequestId::Text(request.to_owned()), "session/request_permission", params)
}
