//! Channels: input and output for people, one file each, over one intake and one outbox.
//!
//! ```text
//!  somebody writes ─▶ channel ─▶ intake ─▶ a run ─▶ its reply ──┬─▶ the feed ─▶ connected clients
//!                                                              └─▶ the outbox ─▶ dispatcher ─▶ channel ─▶ other recipients
//! ```
//!
//! There are two kinds of output. Clients of HTTP and of the socket follow the feed themselves and resume after the last id
//! that they have; the page comes with HTTP, and the terminal is a client of the socket. For people who are not connected, a
//! channel has a [`Subscription`]: each notification is written to the outbox in the same transaction as the event, and is
//! sent until it arrives, each time with the same id.
//!
//! A new channel is a file, and a line in [`OpenChannels::open`] if every home has it, or in [`configured`] if `config.toml`
//! enables it.

mod component;
mod dispatcher;
mod http;
mod letter;
mod retry;
mod sink;
mod socket;
pub mod webhook;

use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use tokio::sync::watch;
use tokio::task::JoinHandle;

use self::component::ComponentChannel;
use self::dispatcher::Dispatcher;
use self::sink::ChannelSink;
use self::webhook::{Webhook, WebhookError};
use kiso_agent::drive::RunExecutor;
use kiso_base::config::Config;
use kiso_gateway::{App, HookError, HookKey, ListenError};
use kiso_store::store::{StoreError, Subscription};

pub use self::component::{ComponentError, pairing, token};
pub use self::http::Port;
pub use self::letter::Letter;
pub use self::retry::{NotDelivered, RetryPolicy, Trouble};

/// Input and output for people.
pub trait Channel: fmt::Debug + Send + Sync {
    /// Returns its name in the outbox and in the log; unique among channels.
    fn name(&self) -> &str;

    /// Returns its address, for a person, without secrets.
    fn place(&self) -> String;

    /// Receives messages until `ending` is true. Does nothing for a channel that only sends.
    fn serve(self: Arc<Self>, app: App, ending: watch::Receiver<bool>) -> BoxFuture<'static, ()> {
        drop((app, ending));
        Box::pin(std::future::ready(()))
    }

    /// Returns the events that are sent even if nobody is connected. `None` for a channel whose clients follow the feed.
    fn subscription(&self) -> Option<Subscription> {
        None
    }

    /// Returns the destination of its deliveries, for the check of labels; `None` for a channel that keeps them on this
    /// machine.
    fn sink(&self) -> Option<&ChannelSink> {
        None
    }

    /// Returns when failed deliveries are retried.
    fn retry_policy(&self) -> RetryPolicy {
        RetryPolicy::default()
    }

    /// Makes one attempt. A letter that arrived may be sent again, with the same id, if the daemon ends before the success
    /// is recorded.
    fn deliver<'a>(&'a self, letter: &'a Letter, now_ms: i64) -> BoxFuture<'a, Result<(), NotDelivered>> {
        let _ = (letter, now_ms);
        Box::pin(std::future::ready(Err(NotDelivered::passing("this channel delivers nothing"))))
    }
}

/// Reasons why a channel cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ChannelError {
    #[error(transparent)]
    Listen(#[from] ListenError),
    #[error(transparent)]
    Webhook(#[from] WebhookError),
    #[error(transparent)]
    Hook(#[from] HookError),
    #[error(transparent)]
    Component(#[from] ComponentError),
}

/// Returns the channels of `config.toml`, in its order. Also checks that hooks, which HTTP serves, have their secrets.
pub fn configured(drive: &RunExecutor, config: &Config) -> Result<Vec<Arc<dyn Channel>>, ChannelError> {
    let home = &drive.home;
    let environment = |variable: &str| std::env::var(variable).ok();
    config.hooks.iter().try_for_each(|hook| HookKey::open(home, hook, environment).map(drop))?;
    let webhooks = Webhook::open_all(home, config, environment)?;
    let components = ComponentChannel::open_all(drive, config, environment)?;
    let webhooks = webhooks.into_iter().map(|webhook| Arc::new(webhook) as _);
    Ok(webhooks.chain(components.into_iter().map(|channel| Arc::new(channel) as _)).collect())
}

/// Channels that are open, before anybody is served, so that errors are known before work begins.
#[derive(Debug)]
pub struct OpenChannels {
    address: SocketAddr,
    /// Channels that every home has, until the daemon ends.
    fixed: Vec<Arc<dyn Channel>>,
    configured: Vec<Arc<dyn Channel>>,
}

impl OpenChannels {
    /// Opens the port that `config.toml` names, or `port` instead, the home's unix socket, and the configured channels. The
    /// caller holds the daemon's lock of the home.
    pub async fn open(drive: &RunExecutor, port: Port) -> Result<OpenChannels, ChannelError> {
        let http = http::Http::open(drive, port).await?;
        let address = http.address();
        let socket = socket::UnixSocket::open(&drive.home)?;
        let fixed: Vec<Arc<dyn Channel>> = vec![Arc::new(http), Arc::new(socket)];
        Ok(OpenChannels { address, fixed, configured: configured(drive, &drive.config)? })
    }

    /// Returns the address of HTTP.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Starts to write notifications to the outbox and to deliver them. Called before anything is written that somebody must
    /// be notified of.
    pub async fn dispatch(self, drive: &RunExecutor, ending: watch::Receiver<bool>) -> Result<Channels, StoreError> {
        let OpenChannels { fixed, configured, .. } = self;
        let all = [fixed.clone(), configured.clone()].concat();
        let dispatcher = Dispatcher::start(drive, all, ending.clone()).await?;
        Ok(Channels { dispatcher, fixed, configured, serving: Vec::new(), listening: Vec::new(), app: None, ending })
    }
}

/// Running channels.
#[derive(Debug)]
pub struct Channels {
    dispatcher: Dispatcher,
    fixed: Vec<Arc<dyn Channel>>,
    configured: Vec<Arc<dyn Channel>>,
    /// Tasks of the fixed channels.
    serving: Vec<JoinHandle<()>>,
    /// Tasks of the configured channels, which a reload replaces.
    listening: Vec<JoinHandle<()>>,
    app: Option<App>,
    ending: watch::Receiver<bool>,
}

impl Channels {
    /// Starts to receive messages.
    pub fn serve(&mut self, app: App) {
        self.serving = begin(&self.fixed, &app, &self.ending);
        self.listening = begin(&self.configured, &app, &self.ending);
        self.app = Some(app);
    }

    /// Switches to another configuration. Deliveries that wait for a removed channel are given up, and that is recorded.
    pub async fn replace(&mut self, configured: Vec<Arc<dyn Channel>>) -> Result<(), StoreError> {
        self.dispatcher.replace([self.fixed.clone(), configured.clone()].concat()).await?;
        for task in self.listening.drain(..) {
            // Received messages are on disk; the others are received again.
            task.abort();
            let _ = task.await;
        }
        if let Some(app) = &self.app {
            self.listening = begin(&configured, app, &self.ending);
        }
        self.configured = configured;
        Ok(())
    }

    /// Returns two futures: the first waits for the end of connections, the second for the end of deliveries.
    pub fn ended(self) -> (impl Future<Output = ()>, impl Future<Output = ()>) {
        let Channels { dispatcher, serving, listening, .. } = self;
        let served = async {
            for task in serving.into_iter().chain(listening) {
                let _ = task.await;
            }
        };
        (served, dispatcher.ended())
    }
}

fn begin(channels: &[Arc<dyn Channel>], app: &App, ending: &watch::Receiver<bool>) -> Vec<JoinHandle<()>> {
    let serve = |channel: &Arc<dyn Channel>| tokio::spawn(Arc::clone(channel).serve(app.clone(), ending.clone()));
    channels.iter().map(serve).collect()
}
