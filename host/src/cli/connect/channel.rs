//! `kiso connect channel`: the senders who may write through the channels in config.toml.

use crate::channel::{pairing, token};
use crate::cli::show::printable_line;
use crate::cli::trace::time;
use crate::cli::{Exit, Failure, Opened, Shared, environment};
use clap::Subcommand;
use kiso_agent::drive::SEALED_RUN;
use kiso_base::clock::now_ms;
use kiso_base::config::ChannelSettings;
use kiso_sandbox::skill::Quiet;
use kiso_store::secret::Vault;
use kiso_store::store::{ChannelSender, PAIRING_MS, SenderStanding};
use serde_json::json;
use std::sync::Arc;

#[derive(Debug, Subcommand)]
pub(in crate::cli) enum ChannelCommand {
    /// List the channels in config.toml, what each can reach, and who may write
    List,
    /// Let the sender who was given a pairing code write
    Allow {
        name: String,
        /// The code that the sender was given
        code: String,
        /// The sender is you: messages count as yours, not as outside text, and can be commands
        #[arg(long)]
        owner: bool,
    },
    /// Stop letting a sender write
    Remove {
        name: String,
        /// The sender, as `kiso connect channel list` shows it
        sender: String,
    },
}

impl ChannelCommand {
    pub(super) fn execute(&self, shared: &Shared) -> Result<Exit, Failure> {
        let opened = Opened::new(shared, Arc::new(Quiet))?;
        match self {
            Self::List => list(&opened, shared.json),
            Self::Allow { name, code, owner } => allow(&opened, name, code, *owner, shared.json),
            Self::Remove { name, sender } => remove(&opened, name, sender, shared.json),
        }
    }
}

fn list(opened: &Opened, as_json: bool) -> Result<Exit, Failure> {
    if opened.config.channels.is_empty() && !as_json {
        errln!("there are no channels; add one as [channels.NAME] in config.toml");
    }
    for channel in &opened.config.channels {
        let name = channel.name.clone();
        let (line, senders) =
            opened.store.read_blocking(move |view| Ok((view.channel(&name)?, view.channel_senders(&name)?)))?;
        let holds = |sender: &ChannelSender| {
            sender.standing != SenderStanding::Waiting || sender.at_ms > now_ms().saturating_sub(PAIRING_MS)
        };
        let senders: Vec<_> = senders.into_iter().filter(holds).collect();
        let error = token(channel, environment).err().map(|error| error.to_string()).or(line.trouble);
        if as_json {
            let senders: Vec<_> = senders.iter().map(|sender| sender_json(channel, sender)).collect();
            let object = json!({
                "type": "channel", "channel": channel.name, "component": channel.component, "url": channel.url,
                "token_env": channel.token_env, "token_in": channel.token_in, "allow_private": channel.allow_private,
                "error": error, "senders": senders,
            });
            outln!("{object}");
            continue;
        }
        let with =
            channel.token_env.as_ref().map_or_else(String::new, |variable| format!(" with the token in {variable}"));
        let state = error.map_or_else(|| "no errors".to_owned(), |error| printable_line(&error));
        outln!("{}  {}  connects to {}{with}  {state}", channel.name, channel.component, channel.url);
        for sender in &senders {
            let called = sender.name.as_ref().map_or_else(String::new, |name| format!(" ({})", printable_line(name)));
            let standing = match sender.standing {
                SenderStanding::Owner => "the owner".to_owned(),
                SenderStanding::Allowed => format!("allowed, in the session {}", session(channel, sender)),
                SenderStanding::Waiting => format!("was given a code at {}", time(sender.at_ms)),
            };
            outln!("  {}{called}  {standing}", printable_line(&sender.sender));
        }
    }
    Ok(Exit::Done)
}

fn allow(opened: &Opened, name: &str, code: &str, is_owner: bool, as_json: bool) -> Result<Exit, Failure> {
    let channel = find_channel(opened, name)?;
    let (of, code) = (channel.name.clone(), pairing::normal(code));
    let standing = if is_owner { SenderStanding::Owner } else { SenderStanding::Allowed };
    let sealed = Vault::open(&opened.home).seal_text(SEALED_RUN, pairing::welcome())?;
    let allowed = opened.store.write_blocking(move |tx| {
        let allowed = tx.allow_channel_sender(&of, &code, standing, now_ms())?;
        if let Some(sender) = &allowed {
            tx.add_channel_note(&of, &sender.sender, &sealed, now_ms())?;
        }
        Ok(allowed)
    })?;
    let Some(sender) = allowed else {
        let message = format!("nobody has this code for the channel {name}; a code holds for an hour, and once");
        return Err(Failure::new(Exit::Failed, message));
    };
    if as_json {
        let mut object = sender_json(channel, &sender);
        object["type"] = "channel_sender".into();
        outln!("{object}");
    } else {
        let called = sender.name.as_ref().map_or_else(String::new, |name| format!(" ({})", printable_line(name)));
        let session = session(channel, &sender);
        outln!("{}{called} may write through {name}, in the session {session}", printable_line(&sender.sender));
    }
    Ok(Exit::Done)
}

fn remove(opened: &Opened, name: &str, sender: &str, as_json: bool) -> Result<Exit, Failure> {
    let channel = find_channel(opened, name)?;
    let (of, gone) = (channel.name.clone(), sender.to_owned());
    if !opened.store.write_blocking(move |tx| tx.remove_channel_sender(&of, &gone))? {
        let message =
            format!("the channel {name} has no sender {:?}; `kiso connect channel list` lists them", brief(sender));
        return Err(Failure::new(Exit::Failed, message));
    }
    if as_json {
        outln!("{}", json!({ "type": "channel_sender_removed", "channel": name, "sender": sender }));
    } else {
        outln!("{} can no longer write through {name}", printable_line(sender));
    }
    Ok(Exit::Done)
}

fn sender_json(channel: &ChannelSettings, sender: &ChannelSender) -> serde_json::Value {
    json!({
        "channel": channel.name, "sender": sender.sender, "name": sender.name, "standing": sender.standing.as_str(),
        "session": (sender.standing != SenderStanding::Waiting).then(|| session(channel, sender)), "at_ms": sender.at_ms,
    })
}

fn session(channel: &ChannelSettings, sender: &ChannelSender) -> String {
    match sender.standing {
        SenderStanding::Owner => channel.own_session().to_string(),
        _ => channel.session_of(sender.number).to_string(),
    }
}

fn find_channel<'a>(opened: &'a Opened, name: &str) -> Result<&'a ChannelSettings, Failure> {
    let all = &opened.config.channels;
    all.iter().find(|channel| channel.name == name).ok_or_else(|| {
        let names: Vec<_> = all.iter().map(|channel| channel.name.as_str()).collect();
        let there =
            if names.is_empty() { "there is none".to_owned() } else { format!("there are {}", names.join(", ")) };
        Failure::new(Exit::Usage, format!("config.toml has no channel {:?}; {there}", brief(name)))
    })
}

fn brief(text: &str) -> String {
    text.chars().take(80).collect()
}
