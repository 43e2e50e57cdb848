//! Talks to `kiso acp` as an editor does, with the official crate: list, prompt, stream, permission, cancel, a restart of the
//! daemon after a line on standard input, errors, load. Prints "ok …" for each successful check.
//!
//!   acp-client "KISO acp --project ask" PROJECT

use std::path::PathBuf;
use std::str::FromStr;
use std::sync::{Arc, Mutex};

use agent_client_protocol::schema::ProtocolVersion;
use agent_client_protocol::v1::ConnectionTo;
use agent_client_protocol::v1::schema::{
    CancelNotification, ContentBlock, InitializeRequest, LoadSessionRequest, NewSessionRequest, PermissionOptionKind,
    PromptRequest, RequestPermissionOutcome, RequestPermissionRequest, RequestPermissionResponse,
    SelectedPermissionOutcome, SessionId, SessionNotification, SessionUpdate, StopReason, TextContent, ToolCallContent,
    ToolCallStatus,
};
use agent_client_protocol::{AcpAgent, Agent};
use tokio::sync::Notify;

type Updates = Arc<Mutex<Vec<SessionUpdate>>>;

fn text_of(block: &ContentBlock) -> &str {
    match block {
        ContentBlock::Text(text) => &text.text,
        other => panic!("no text: {other:?}"),
    }
}

/// Returns the agent's text and all updates since the last call, and removes them.
fn take_updates(updates: &Updates) -> (String, Vec<SessionUpdate>) {
    let updates = std::mem::take(&mut *updates.lock().unwrap());
    let chunks = updates.iter().filter_map(|update| match update {
        SessionUpdate::AgentMessageChunk(chunk) => Some(text_of(&chunk.content)),
        _ => None,
    });
    (chunks.collect(), updates)
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut args = std::env::args().skip(1);
    let agent = AcpAgent::from_str(&args.next().expect("a command"))?;
    let project = PathBuf::from(args.next().expect("a directory"));
    let updates: Updates = Arc::default();
    let (heard, called) = (updates.clone(), Arc::new(Notify::new()));
    let calls = called.clone();
    agent_client_protocol::Client
        .v1()
        .on_receive_notification(
            async move |notification: SessionNotification, _connection| {
                if matches!(notification.update, SessionUpdate::ToolCall(_)) {
                    calls.notify_one();
                }
                heard.lock().unwrap().push(notification.update);
                Ok(())
            },
            agent_client_protocol::on_receive_notification!(),
        )
        .on_receive_request(
            async move |request: RequestPermissionRequest, responder, _connection| {
                let kind = PermissionOptionKind::AllowOnce;
                let option = request.options.iter().find(|option| option.kind == kind).expect("there is a yes");
                let chosen = SelectedPermissionOutcome::new(option.option_id.clone());
                println!("ok permission");
                let content = request.tool_call.fields.content.clone().unwrap_or_default();
                let diff = content.iter().find_map(|content| match content {
                    ToolCallContent::Diff(diff) => Some(diff),
                    _ => None,
                });
                let diff = diff.expect("a file was made");
                assert_eq!((diff.path.ends_with("made.txt"), diff.new_text.as_str()), (true, "made\n"));
                println!("ok diff");
                responder.respond(RequestPermissionResponse::new(RequestPermissionOutcome::Selected(chosen)))
            },
            agent_client_protocol::on_receive_request!(),
        )
        .connect_with(agent, |connection: ConnectionTo<Agent>| async move {
            let begun = connection.send_request(InitializeRequest::new(ProtocolVersion::V1)).block_task().await?;
            assert_eq!(begun.agent_info.expect("it says who it is").name, "kiso");
            assert!(begun.agent_capabilities.load_session);
            println!("ok initialize");

            let session =
                connection.send_request(NewSessionRequest::new(project.clone())).block_task().await?.session_id;
            let prompt = |session: &SessionId, text: &str| {
                connection
                    .send_request(PromptRequest::new(session.clone(), vec![ContentBlock::Text(TextContent::new(text))]))
                    .block_task()
            };
            println!("ok new");

            let answer = prompt(&session, "$ echo made > /project/made.txt; cat /project/made.txt").await?;
            assert_eq!(answer.stop_reason, StopReason::EndTurn);
            let (text, told) = take_updates(&updates);
            assert!(text.contains("made"), "{text}: {told:?}");
            assert!(told.iter().any(|update| matches!(update, SessionUpdate::Plan(_))), "{told:?}");
            println!("ok plan");
            assert!(told.iter().any(|update| matches!(update, SessionUpdate::AvailableCommandsUpdate(_))), "{told:?}");
            println!("ok commands");
            let done = told.iter().find_map(|update| match update {
                SessionUpdate::ToolCallUpdate(call) => Some(call.fields.clone()),
                _ => None,
            });
            let done = done.expect("a tool was called");
            assert_eq!(done.status, Some(ToolCallStatus::Completed));
            assert_eq!(std::fs::read_to_string(project.join("made.txt")).expect("it was applied"), "made\n");

            let endless = prompt(&session, "$ while :; do :; done");
            let cancel = async {
                called.notified().await;
                // Twice: the first notification belongs to the call before.
                called.notified().await;
                connection.send_notification(CancelNotification::new(session.clone()))
            };
            let (answer, sent) = tokio::join!(endless, cancel);
            sent?;
            assert_eq!(answer?.stop_reason, StopReason::Cancelled);
            println!("ok cancel");

            // The daemon is killed and another one started. The conversation and its permission continue.
            println!("restart");
            std::io::stdin()
                .read_line(&mut String::new())
                .map_err(agent_client_protocol::Error::into_internal_error)?;
            let answer = prompt(&session, "$ cat /project/made.txt").await?;
            assert_eq!(answer.stop_reason, StopReason::EndTurn);
            let (text, told) = take_updates(&updates);
            assert!(text.trim_end().ends_with("\nmade"), "{text}: {told:?}");
            println!("ok restart");

            let error = prompt(&SessionId::new("no-such-session"), "hello").await.expect_err("there is none");
            println!("ok error {}", error.message);

            take_updates(&updates);
            connection.send_request(LoadSessionRequest::new(session.clone(), project.clone())).block_task().await?;
            let (_, told) = take_updates(&updates);
            let replayed = told.iter().find_map(|update| match update {
                SessionUpdate::UserMessageChunk(chunk) => Some(text_of(&chunk.content)),
                _ => None,
            });
            assert!(replayed.is_some_and(|text| text.starts_with("$ echo made")), "{told:?}");
            println!("ok load");
            Ok(())
        })
        .await?;
    Ok(())
}
