//! Channels: the ways in and out for people, one file each, over one intake and one outbox.
//!
//! ```text
//!  somebody writes ─▶ channel ─▶ intake ─▶ a run ─▶ its reply ──┬─▶ the feed ─▶ whoever is connected
//!                                                              └─▶ the outbox ─▶ dispatcher ─▶ channel ─▶ who is not
//! ```
//!
//! There are two kinds of ways out. Clients of HTTP and of the socket follow the feed themselves and resume behind the last
//! id that they have; the page comes with HTTP, and the terminal is a client of the socket. Where nobody is connected, a
//! channel has a [`Subscription`]: what it is to be told is written into the outbox in the transaction of what it tells of,
//! and is delivered until it arrives, each time with the same id.
//!
//! A new channel is a file, and a line in [`OpenChannels::open`] if every home has it, or in [`configured`] if `config.toml`
//! says so.

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

/// A way in and out for people.
pub trait Channel: fmt::Debug + Send + Sync {
    /// Its name in the outbox and in the log; no two channels have the same.
    fn name(&self) -> &str;

    /// Where it is, for a person: no secrets.
    fn place(&self) -> String;

    /// Takes in what people write until `ending` is true. One that only sends has nothing to take.
    fn serve(self: Arc<Self>, app: App, ending: watch::Receiver<bool>) -> BoxFuture<'static, ()> {
        drop((app, ending));
        Box::pin(std::future::ready(()))
    }

    /// What it is told of though nobody is connected. `None` for one whose clients follow the feed.
    fn subscription(&self) -> Option<Subscription> {
        None
    }

    /// Where what it delivers goes, which not everything may; `None` for one that keeps it on this machine.
    fn sink(&self) -> Option<&ChannelSink> {
        None
    }

    /// When what did not arrive is sent again.
    fn retry_policy(&self) -> RetryPolicy {
        RetryPolicy::default()
    }

    /// Makes one attempt. A letter that arrived may come again, with the same id, if the daemon ends before that is on
    /// record.
    fn deliver<'a>(&'a self, letter: &'a Letter, now_ms: i64) -> BoxFuture<'a, Result<(), NotDelivered>> {
        let _ = (letter, now_ms);
        Box::pin(std::future::ready(Err(NotDelivered::passing("this channel delivers nothing"))))
    }
}

/// Why a channel cannot be used.
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

/// The channels of `config.toml`, in its order. Hooks, which HTTP serves, must have their secrets as well.
pub fn configured(drive: &RunExecutor, config: &Config) -> Result<Vec<Arc<dyn Channel>>, ChannelError> {
    let home = &drive.home;
    let environment = |variable: &str| std::env::var(variable).ok();
    config.hooks.iter().try_for_each(|hook| HookKey::open(home, hook, environment).map(drop))?;
    let webhooks = Webhook::open_all(home, config, environment)?;
    let components = ComponentChannel::open_all(drive, config, environment)?;
    let webhooks = webhooks.into_iter().map(|webhook| Arc::new(webhook) as _);
    Ok(webhooks.chain(components.into_iter().map(|channel| Arc::new(channel) as _)).collect())
}

/// Channels that are open, before anybody is served: what cannot be opened is known before work begins.
#[derive(Debug)]
pub struct OpenChannels {
    address: SocketAddr,
    /// Those that are there in every home, until it ends.
    fixed: Vec<Arc<dyn Channel>>,
    configured: Vec<Arc<dyn Channel>>,
}

impl OpenChannels {
    /// Opens the port that `config.toml` names, or `port` instead, the home's unix socket, and what else is configured. The
    /// caller holds the lock of the home's daemon.
    pub async fn open(drive: &RunExecutor, port: Port) -> Result<OpenChannels, ChannelError> {
        let http = http::Http::open(drive, port).await?;
        let address = http.address();
        let socket = socket::UnixSocket::open(&drive.home)?;
        let fixed: Vec<Arc<dyn Channel>> = vec![Arc::new(http), Arc::new(socket)];
        Ok(OpenChannels { address, fixed, configured: configured(drive, &drive.config)? })
    }

    /// Where HTTP is served.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Begins to write what is to be delivered into the outbox, and to deliver: before anything is written that somebody is
    /// to be told of.
    pub async fn dispatch(self, drive: &RunExecutor, ending: watch::Receiver<bool>) -> Result<Channels, StoreError> {
        let OpenChannels { fixed, configured, .. } = self;
        let all = [fixed.clone(), configured.clone()].concat();
        let dispatcher = Dispatcher::start(drive, all, ending.clone()).await?;
        Ok(Channels { dispatcher, fixed, configured, serving: Vec::new(), listening: Vec::new(), app: None, ending })
    }
}

/// Channels at work.
#[derive(Debug)]
pub struct Channels {
    dispatcher: Dispatcher,
    fixed: Vec<Arc<dyn Channel>>,
    configured: Vec<Arc<dyn Channel>>,
    /// Of the fixed ones.
    serving: Vec<JoinHandle<()>>,
    /// Of the configured ones, which a reload replaces.
    listening: Vec<JoinHandle<()>>,
    app: Option<App>,
    ending: watch::Receiver<bool>,
}

impl Channels {
    /// Takes in what people write.
    pub fn serve(&mut self, app: App) {
        self.serving = begin(&self.fixed, &app, &self.ending);
        self.listening = begin(&self.configured, &app, &self.ending);
        self.app = Some(app);
    }

    /// Goes by another configuration from now on. What waits for a channel that is gone is given up, and that is on record.
    pub async fn replace(&mut self, configured: Vec<Arc<dyn Channel>>) -> Result<(), StoreError> {
        self.dispatcher.replace([self.fixed.clone(), configured.clone()].concat()).await?;
        for task in self.listening.drain(..) {
            // What it took in is on disk, and what it did not, it finds again.
            task.abort();
            let _ = task.await;
        }
        if let Some(app) = &self.app {
            self.listening = begin(&configured, app, &self.ending);
        }
        self.configured = configured;
        Ok(())
    }

    /// Waits until all that was begun has ended: connections, and in the second place deliveries.
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
