//! `kiso connect`: other programs that send messages to kiso or receive its replies.

mod channel;
mod hook;
mod webhook;

use super::{Exit, Failure, Shared};

#[derive(Debug, clap::Subcommand)]
pub(super) enum ConnectCommand {
    /// List channels, and choose who may write through them
    #[command(subcommand)]
    Channel(channel::ChannelCommand),
    /// List hooks, print their secrets, and try their templates
    #[command(subcommand)]
    Hook(hook::HookCommand),
    /// List and test webhooks, and send failed deliveries again
    #[command(subcommand)]
    Webhook(webhook::WebhookCommand),
}

impl ConnectCommand {
    pub(super) fn execute(&self, shared: &Shared) -> Result<Exit, Failure> {
        match self {
            Self::Channel(command) => command.execute(shared),
            Self::Hook(command) => command.execute(shared),
            Self::Webhook(command) => command.execute(shared),
        }
    }
}
