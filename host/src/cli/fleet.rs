//! `kiso fleet`: the members of a fleet, and the owner of the home.

use super::listing::typed;
use super::show::printable_line;
use super::{Exit, Failure, Shared};
use clap::Subcommand;
use kiso_base::config::Config;
use kiso_base::home::Home;
use kiso_base::system;
use kiso_fleet::FleetError;
use kiso_fleet::bus::{Bus, BusSettings};
use kiso_fleet::control::GiveUp;
use kiso_fleet::lease::{Lease, Ownership};
use kiso_fleet::member;
use kiso_fleet::seal::Seal;
use kiso_fleet::status;
use kiso_sandbox::effect::member::{
    FLEET_NAME, FleetStatus, MACHINE_LABEL, MemberStatus, is_fleet_name, is_machine_label,
};
use serde_json::json;
use std::path::PathBuf;
use std::time::Duration;

/// Maximum bytes of a member's name that is derived from the machine's name.
const MAX_NAME: usize = 32;

#[derive(Debug, Subcommand)]
pub(super) enum FleetCommand {
    /// Start the fleet of config.toml with this home's data; the other members then receive it
    Begin,
    /// List the members and who owns the home
    Status,
    /// Move the home to another member
    Move {
        /// The member that becomes the owner
        member: String,
    },
    /// Make the owner release the home to whichever member takes it
    Drain,
}

impl FleetCommand {
    pub(super) fn execute(&self, shared: &Shared) -> Result<Exit, Failure> {
        let home = Home::open(&Home::locate(shared.home.as_deref())?)?;
        let config = Config::load(&home)?;
        let Some(bus) = connect(&home, &config)? else {
            return Err(Failure::new(
                Exit::Config,
                "this home is on one machine: fleet.url in config.toml says where NATS is (see docs/fleet.md)",
            ));
        };
        match self {
            Self::Begin => begin(&home, &config, &bus),
            Self::Status => status(&bus, shared.json),
            Self::Move { member } => give_up(&bus, Some(member)),
            Self::Drain => give_up(&bus, None),
        }
    }
}

/// Connects to the fleet of `config.toml`; `None` for a home on one machine.
pub(super) fn connect(home: &Home, config: &Config) -> Result<Option<Bus>, Failure> {
    let Some(settings) = settings(config)? else { return Ok(None) };
    let seal = Seal::derive(home.key(), &settings.fleet);
    Ok(Some(Bus::connect(settings, seal)?))
}

/// Returns the address of the fleet in `config.toml`; `None` for a home on one machine.
pub(super) fn settings(config: &Config) -> Result<Option<BusSettings>, Failure> {
    let fleet = &config.fleet;
    if let Some(label) = fleet.labels.iter().find(|label| !is_machine_label(label)) {
        return Err(Failure::new(Exit::Config, format!("fleet.labels: {label:?} is not a label: {MACHINE_LABEL}")));
    }
    let Some(url) = fleet.url.clone() else { return Ok(None) };
    if url.contains('@') {
        let words =
            "fleet.url must have no password in it: write USER:PASSWORD to a file, which fleet.credentials names";
        return Err(Failure::new(Exit::Config, words));
    }
    let member = fleet.member.clone().unwrap_or_else(host_name);
    for (key, name) in [("fleet.member", &member), ("fleet.name", &fleet.name)] {
        if !is_fleet_name(name) {
            return Err(Failure::new(Exit::Config, format!("{key} = {name:?} is not a name: {FLEET_NAME}")));
        }
    }
    Ok(Some(BusSettings {
        url,
        credentials: fleet.credentials.clone().map(PathBuf::from),
        ca: fleet.ca.clone().map(PathBuf::from),
        fleet: fleet.name.clone(),
        member,
        labels: fleet.labels.clone(),
        replicas: usize::try_from(fleet.replicas).unwrap_or(1),
    }))
}

/// Returns the machine's name, reduced to a valid member name; empty if the system has none.
fn host_name() -> String {
    let name = system::host_name().to_lowercase();
    let plain: String = name.trim().chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).collect();
    plain.trim_matches('-').chars().take(MAX_NAME).collect()
}

/// Returns the duration of a fleet's lease.
pub(super) fn lease(config: &Config) -> Duration {
    Duration::from_secs(config.fleet.lease_s)
}

fn begin(home: &Home, config: &Config, bus: &Bus) -> Result<Exit, Failure> {
    let _lock = home.lock_daemon()?;
    let lasts = lease(config);
    let (owner, revision) = bus.runtime().block_on(Ownership::read(bus))?;
    if let Some(member) = &owner.member {
        return Err(Failure::new(Exit::Failed, format!("{member} owns the home of this fleet: it has begun already")));
    }
    let taken = bus.runtime().block_on(async {
        let taken = tokio::time::timeout(lasts, Lease::take(bus, &owner, revision, lasts)).await;
        taken.map_err(|_| FleetError::Jetstream("it does not answer in time".to_owned()))
    })?;
    let lease = taken.ok_or_else(|| Failure::new(Exit::Failed, "another member was first; try again"))?;
    bus.runtime().spawn(lease.clone().renew(bus.clone()));
    let owned = member::take_over(bus, home, &lease, true).and_then(|owned| {
        owned.files.keep_home(bus)?;
        owned.store.close();
        Ok(())
    });
    let given = bus.runtime().block_on(lease.give_up(bus, None));
    owned?;
    given?;
    outln!("the fleet {} has begun with {}", bus.settings().fleet, home.path().display());
    outln!(
        "start `kiso serve` here and on the other machines; each needs this home's `key` and [fleet] in config.toml"
    );
    Ok(Exit::Done)
}

fn status(bus: &Bus, as_json: bool) -> Result<Exit, Failure> {
    let status = bus.runtime().block_on(status::read(bus))?;
    let FleetStatus { fleet, begun, owner, epoch, log_messages, log_bytes, members, other_keys } = status;
    if as_json {
        let object = json!({
            "type": "fleet", "fleet": fleet, "begun": begun, "owner": owner, "epoch": epoch, "log_messages": log_messages,
            "log_bytes": log_bytes, "other_keys": other_keys,
        });
        outln!("{object}");
    } else if !begun {
        outln!("the fleet {fleet} has not begun: run `kiso fleet begin` on the machine whose home it will use");
    } else {
        let by = owner.as_deref().unwrap_or("nobody at the moment");
        outln!("owner {by}, epoch {epoch}; {log_messages} messages in the log since the last copy of the store");
    }
    for name in other_keys.iter().filter(|_| !as_json) {
        let name = printable_line(name);
        outln!("{name}  its home has another `key`; copy that of the first member there, and restart `kiso serve`");
    }
    for member in members {
        if as_json {
            outln!("{}", typed("member", &member));
            continue;
        }
        let MemberStatus { name, version, ago_ms, labels, .. } = &member;
        let (name, version) = (printable_line(name), printable_line(version));
        let labels: String = labels.iter().map(|label| format!("  {}", printable_line(label))).collect();
        outln!("{name}  kiso {version}  {}, {} s ago{labels}", member.does(), ago_ms / 1_000);
    }
    Ok(Exit::Done)
}

fn give_up(bus: &Bus, to: Option<&str>) -> Result<Exit, Failure> {
    let asked = async {
        let (owner, _) = Ownership::read(bus).await?;
        let Some(from) = owner.member else { return Err(FleetError::NoOwner) };
        if let Some(to) = to
            && !status::read(bus).await?.members.iter().any(|member| member.name == to)
        {
            return Err(FleetError::NoMember { name: to.to_owned() });
        }
        if to == Some(from.as_str()) {
            return Ok(from);
        }
        GiveUp { epoch: owner.epoch, to: to.map(str::to_owned) }.ask(bus).await?;
        Ok(from)
    };
    let from = bus.runtime().block_on(asked)?;
    match to {
        Some(to) if to == from => outln!("{to} owns the home"),
        Some(to) => outln!("{from} gives the home to {to}"),
        None => outln!("{from} gives the home up"),
    }
    Ok(Exit::Done)
}

impl From<FleetError> for Failure {
    fn from(error: FleetError) -> Failure {
        let exit = match error {
            FleetError::Credentials { .. } | FleetError::Refused { .. } | FleetError::OtherKey => Exit::Config,
            FleetError::NoMember { .. } => Exit::Usage,
            _ => Exit::Failed,
        };
        Failure::new(exit, error.to_string())
    }
}
