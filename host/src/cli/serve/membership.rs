//! `kiso serve` as a member of a fleet: it stands by, and serves when it owns the home.

use std::net::{SocketAddr, TcpListener};
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use tokio::sync::{Semaphore, mpsc, watch};
use tokio::task::JoinHandle;

use super::super::{Exit, Failure, fleet};
use super::standby;
use crate::channel::Port;
use crate::daemon::systemd;
use kiso_base::config::Config;
use kiso_base::home::Home;
use kiso_fleet::FleetError;
use kiso_fleet::bus::{Bus, BusSettings};
use kiso_fleet::control::GiveUp;
use kiso_fleet::lease::Lease;
use kiso_fleet::member;
use kiso_fleet::owner::MemberFiles;
use kiso_fleet::seal::Seal;
use kiso_fleet::status::MemberState;
use kiso_fleet::tunnel::{self, TunnelBus, TunnelLimits};
use kiso_sandbox::effect::member::FleetMember;
use kiso_store::store::Store;

/// Set for the process that a drained owner becomes: it stands by and does not take over until it is restarted.
const DRAINED: &str = "KISO_FLEET_DRAINED";

/// Set for every process that replaces a member: the member has reached NATS before, so it waits for NATS.
const REPLACED: &str = "KISO_FLEET_REPLACED";

/// The pause between attempts to reach NATS.
const AGAIN: Duration = Duration::from_secs(1);

/// How long a connection waits for an owner of the home: as long as a takeover takes.
const PATIENCE: Duration = Duration::from_secs(30);

/// Maximum connections from other members that wait for the gateway.
const HANDED_ON: usize = 64;

/// Maximum connections that wait for an owner or are forwarded to it; further ones get status 503.
const FORWARDED: usize = 256;

const UNANNOUNCED: &str = "could not announce that the home was given up; the others wait for fleet.lease_s";

/// How long the last responses may take to reach standby members.
const LAST: Duration = Duration::from_secs(5);

/// The ownership of the home.
pub(super) struct Membership {
    bus: Bus,
    listener: TcpListener,
    lease: Lease,
    files: Arc<MemberFiles>,
    pub store: Store,
    /// Whether the home is being released in order.
    ending: Arc<AtomicBool>,
    /// Accepts connections that other members hand on: the signal that ends it, and its task.
    handed_on: OnceLock<(watch::Sender<bool>, JoinHandle<()>)>,
    /// The current owner, for connections that wait for one.
    known: watch::Sender<Option<String>>,
}

impl Membership {
    /// Stands by until the home can be taken over, and takes it over; `None` for a home on one machine. Calls `listens` with
    /// the address where clients can connect from now on, whoever owns the home.
    pub(super) fn join(
        home: &Home,
        config: &Config,
        port: Option<u16>,
        listens: impl FnOnce(SocketAddr),
    ) -> Result<Option<Membership>, Failure> {
        if config.fleet.url.is_none() {
            return Ok(None);
        }
        let lock = home.lock_daemon()?;
        let listener = listen(config, port)?;
        let Some(settings) = fleet::settings(config)? else { return Ok(None) };
        let bus = connected(home, &settings)?;
        member::begin_standby(home)?;
        let stands_by = std::env::var_os(DRAINED).is_none();
        let (name, lasts) = (bus.settings().member.clone(), fleet::lease(config));
        let says = bus.runtime().spawn(MemberState::keep_saying(bus.clone(), stands_by));
        tracing::info!("kiso {} is {name}, a member of the fleet {}", env!("CARGO_PKG_VERSION"), config.fleet.name);
        systemd::ready("stands by");
        let known = watch::Sender::new(None);
        let forwards = bus.runtime().spawn(forward(bus.clone(), cloned(&listener)?, known.subscribe()));
        let address = listener.local_addr().map_err(|error| Failure::new(Exit::Failed, error.to_string()))?;
        listens(address);
        let told = |owner: Option<&str>| {
            match owner {
                Some(owner) => tracing::info!("{owner} owns the home; this member stands by"),
                None => tracing::info!("nobody owns the home"),
            }
            // This member itself, before its restart, does not count as an owner: connections wait until somebody takes
            // over.
            known.send_replace(owner.filter(|owner| *owner != name).map(str::to_owned));
        };
        let (taken, is_taken) = watch::channel(false);
        let (of, at, by) = (bus.clone(), home.clone(), config.clone());
        let prepares = std::thread::spawn(move || standby::prepare(&of, &at, &by, is_taken));
        let lease = bus.runtime().block_on(member::stand_by(&bus, lasts, stands_by, told))?;
        taken.send_replace(true);
        says.abort();
        tracing::info!("this member takes the home over, with epoch {}", lease.epoch());
        // The previous owner sends nothing more. Waiting connections are served here, as soon as this member serves.
        known.send_replace(None);
        forwards.abort();
        let ending = Arc::new(AtomicBool::new(false));
        bus.runtime().spawn(lease.clone().renew(bus.clone()));
        bus.runtime().spawn(replaced_when_lost(lease.clone(), ending.clone()));
        bus.runtime().spawn(MemberState::keep_saying(bus.clone(), true));
        // Two processes that restore the same files would conflict. The lease is renewed during the wait.
        let _ = prepares.join();
        let owned = match member::take_over(&bus, home, &lease, false) {
            Ok(owned) => owned,
            // If NATS was away for too long, the lease may be about to expire.
            Err(error) if !lease.is_held() || matches!(error, FleetError::Jetstream(_) | FleetError::Append(_)) => {
                tracing::error!("the home could not be taken over, and this member restarts: {error}");
                return Err(restart(false));
            }
            Err(error) => {
                ending.store(true, Ordering::Release);
                if let Err(error) = bus.runtime().block_on(lease.give_up(&bus, None)) {
                    tracing::warn!("{UNANNOUNCED}: {error}");
                }
                return Err(error.into());
            }
        };
        drop(lock);
        let (files, of, store) = (owned.files.clone(), bus.clone(), owned.store.clone());
        std::thread::spawn(move || files.follow_home(&of, &store));
        let (files, store) = (owned.files, owned.store);
        Ok(Some(Membership { bus, listener, lease, files, store, ending, handed_on: OnceLock::new(), known }))
    }

    /// Returns the daemon's listeners: the port, and connections that other members hand on. Called within its runtime.
    pub(super) fn port(&self) -> Result<Port, Failure> {
        let (sender, tunnelled) = mpsc::channel(HANDED_ON);
        let (bus, name) = (tunnel_of(&self.bus), self.bus.settings().member.clone());
        let (ending, ended) = watch::channel(false);
        let known = self.known.clone();
        let accepts = self.bus.runtime().spawn(async move {
            known.send_replace(Some(name.clone()));
            if let Err(error) = tunnel::accept(&bus, &name, sender, ended).await {
                tracing::warn!("connections forwarded by other members do not arrive: {error}");
            }
        });
        let _ = self.handed_on.set((ending, accepts));
        Ok(Port::Bound { listener: cloned(&self.listener)?, tunnelled })
    }

    /// Returns the part that runs need.
    pub(super) fn member(&self) -> Arc<dyn FleetMember> {
        self.files.clone()
    }

    /// Returns the next request to release the home.
    pub(super) async fn asked(&self) -> GiveUp {
        let (bus, epoch) = (self.bus.clone(), self.lease.epoch());
        let asked = self.bus.runtime().spawn(async move { GiveUp::asked(&bus, epoch).await });
        match asked.await {
            Ok(Ok(asked)) => asked,
            // Without a connection, no request can arrive.
            _ => std::future::pending().await,
        }
    }

    /// Releases the home after everything has ended; stands by again if a request says so.
    pub(super) async fn give_up(self, asked: Option<GiveUp>) -> Result<(), Failure> {
        self.ending.store(true, Ordering::Release);
        if let Some((ending, accepts)) = self.handed_on.into_inner() {
            ending.send_replace(true);
            // The last bytes of responses are still being sent.
            let _ = tokio::time::timeout(LAST, accepts).await;
        }
        let (files, bus) = (self.files.clone(), self.bus.clone());
        let kept = tokio::task::spawn_blocking(move || files.keep_home(&bus)).await;
        if let Ok(Err(error)) = kept {
            tracing::warn!("the last changes of skills and grants could not be kept for the other members: {error}");
        }
        let (bus, lease, to) =
            (self.bus.clone(), self.lease.clone(), asked.as_ref().and_then(|asked| asked.to.clone()));
        let given = self.bus.runtime().spawn(async move { lease.give_up(&bus, to).await });
        if let Ok(Err(error)) = given.await {
            tracing::warn!("{UNANNOUNCED}: {error}");
        }
        match asked {
            Some(asked) => Err(restart(asked.to.is_none())),
            None => Ok(()),
        }
    }
}

/// Connects to NATS. A member that a person starts reports errors; a member that has lost its connection waits for NATS.
fn connected(home: &Home, settings: &BusSettings) -> Result<Bus, FleetError> {
    loop {
        match Bus::connect(settings.clone(), Seal::derive(home.key(), &settings.fleet)) {
            Err(error @ (FleetError::Connect { .. } | FleetError::Jetstream(_)))
                if std::env::var_os(REPLACED).is_some() =>
            {
                tracing::warn!("it is tried again: {error}");
                std::thread::sleep(AGAIN);
            }
            connected => return connected,
        }
    }
}

fn tunnel_of(bus: &Bus) -> TunnelBus {
    TunnelBus::new(bus.clone(), bus.client().clone(), TunnelLimits::default())
}

fn listen(config: &Config, port: Option<u16>) -> Result<TcpListener, Failure> {
    let bind = &config.gateway.bind;
    let wrong = || Failure::new(Exit::Config, format!("gateway.bind = {bind:?} is not an address of this machine"));
    let port = port.unwrap_or(u16::try_from(config.gateway.port).unwrap_or(0));
    let address = SocketAddr::new(bind.parse().map_err(|_| wrong())?, port);
    let failed = |error| Failure::new(Exit::Config, format!("cannot listen on {address}: {error}"));
    let listener = TcpListener::bind(address).map_err(failed)?;
    listener.set_nonblocking(true).map_err(failed)?;
    Ok(listener)
}

fn cloned(listener: &TcpListener) -> Result<TcpListener, Failure> {
    listener.try_clone().map_err(|error| Failure::new(Exit::Failed, format!("the port cannot be shared: {error}")))
}

/// Forwards each connection to the owner of the home.
async fn forward(bus: Bus, listener: TcpListener, owner: watch::Receiver<Option<String>>) {
    let listener = match tokio::net::TcpListener::from_std(listener) {
        Ok(listener) => listener,
        Err(error) => return tracing::error!("nothing can be forwarded to the owner: {error}"),
    };
    let (tunnel, places) = (tunnel_of(&bus), Arc::new(Semaphore::new(FORWARDED)));
    loop {
        let (stream, peer) = match listener.accept().await {
            Ok(accepted) => accepted,
            Err(error) => {
                tracing::warn!("a connection could not be accepted: {error}");
                tokio::time::sleep(Duration::from_millis(100)).await;
                continue;
            }
        };
        let (tunnel, mut owner) = (tunnel.clone(), owner.clone());
        let place = places.clone().try_acquire_owned();
        tokio::spawn(async move {
            let Ok(_place) = place else { return tunnel::refuse(stream).await };
            let known = tokio::time::timeout(PATIENCE, owner.wait_for(Option::is_some)).await;
            let Some(name) = known.ok().and_then(|known| known.ok().and_then(|known| known.clone())) else {
                return tunnel::refuse(stream).await;
            };
            let is_another = |now: &Option<String>| now.as_deref() != Some(name.as_str());
            tokio::select! {
                forwarded = tunnel::forward(stream, peer.ip(), &tunnel, &name) => {
                    if let Err(error) = forwarded {
                        tracing::debug!("a connection to {name} broke off: {error}");
                    }
                }
                // The previous owner sends nothing more; the client notices that at once.
                _ = owner.wait_for(is_another) => {}
            }
        });
    }
}

/// Replaces the process when somebody else owns the home, so that none of its work continues.
async fn replaced_when_lost(lease: Lease, ending: Arc<AtomicBool>) {
    let why = lease.lost().await;
    if ending.load(Ordering::Acquire) {
        return;
    }
    tracing::error!("this member does not own the home any more, and restarts: {why}");
    let failure = restart(false);
    failure.print(false);
    std::process::exit(1);
}

/// Restarts the program in place of this process; returns only if that fails.
fn restart(drained: bool) -> Failure {
    let program = std::env::current_exe().unwrap_or_else(|_| "kiso".into());
    let mut command = Command::new(program);
    command.args(std::env::args_os().skip(1)).env(REPLACED, "1");
    match drained {
        true => command.env(DRAINED, "1"),
        false => command.env_remove(DRAINED),
    };
    let error = command.exec();
    Failure::new(Exit::Failed, format!("kiso cannot be restarted: {error}"))
}
