//! `kiso service`: the daemon as a systemd unit.

mod text;

use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use clap::Subcommand;
use serde_json::json;

use self::text::{Owner, Unit};
use super::show::printable;
use super::{Exit, Failure, Shared, environment};
use kiso_base::home::Home;

/// The unit's name.
const NAME: &str = "kiso.service";

/// The directory of the system units that an administrator added.
const SYSTEM_UNITS: &str = "/etc/systemd/system";

#[derive(Debug, Subcommand)]
pub(super) enum ServiceCommand {
    /// Install the unit, and start it now and at each boot
    Install(InstallArgs),
    /// Stop the daemon and remove its unit; the home is kept
    Uninstall(ServiceScope),
    /// Show whether the unit is installed, up to date and running
    Status(ServiceScope),
}

/// The systemd instance: the user's or the system's.
#[derive(Debug, clap::Args)]
pub(super) struct ServiceScope {
    /// Use the system's systemd instead of the user's (needs root)
    #[arg(long)]
    system: bool,
}

#[derive(Debug, clap::Args)]
pub(super) struct InstallArgs {
    #[command(flatten)]
    place: ServiceScope,
    /// User to run as, with --system [default: a dynamic user]
    #[arg(long, value_name = "NAME", requires = "system")]
    user: Option<String>,
    /// Only print the unit
    #[arg(long)]
    print: bool,
}

impl ServiceCommand {
    pub(super) fn execute(&self, shared: &Shared) -> Result<Exit, Failure> {
        match self {
            Self::Install(install) => install.execute(shared),
            Self::Uninstall(place) => uninstall(place, shared),
            Self::Status(place) => status(place, shared),
        }
    }
}

impl InstallArgs {
    fn execute(&self, shared: &Shared) -> Result<Exit, Failure> {
        if let Some(name) = &self.user
            && !is_user_name(name)
        {
            return Err(Failure::new(Exit::Usage, format!("{name:?} is not a valid user name")));
        }
        let text = self.unit(shared)?.text();
        if self.print {
            match shared.json {
                true => outln!("{}", json!({ "type": "unit", "name": NAME, "text": text })),
                false => out!("{text}"),
            }
            return Ok(Exit::Done);
        }
        version()?;
        self.place.answers()?;
        let path = self.place.path()?;
        let written = match std::fs::read_to_string(&path) {
            Ok(there) if there == text => "is there already",
            _ => {
                write(&path, &text)?;
                "written"
            }
        };
        say(shared, &format!("{} {written}", path.display()));
        self.place.systemctl(shared, &["daemon-reload"])?;
        self.place.systemctl(shared, &["enable", NAME])?;
        self.place.systemctl(shared, &["restart", NAME])?;
        if !self.place.system {
            say(shared, "kiso runs while you are logged in; `loginctl enable-linger` keeps it running");
        }
        Ok(Exit::Done)
    }

    fn unit(&self, shared: &Shared) -> Result<Unit, Failure> {
        let kiso = std::env::current_exe()
            .map_err(|e| Failure::new(Exit::Failed, format!("kiso cannot find its own binary: {e}")))?;
        let (owner, home) = match (self.place.system, &self.user) {
            (true, user) => {
                // A home from a person's environment is not meant for the system's service.
                let home = shared.home.clone().filter(|_| given_as_argument());
                (user.clone().map_or(Owner::Dynamic, Owner::User), home)
            }
            (false, _) => {
                let home = Home::open(&Home::locate(shared.home.as_deref())?)?;
                (Owner::Session { namespaces: users_make_namespaces() }, Some(home.path().to_owned()))
            }
        };
        if owner == Owner::Dynamic && home.is_some() {
            let text = "a user that exists only while kiso runs cannot own a home elsewhere; name one with --user";
            return Err(Failure::new(Exit::Usage, text));
        }
        let home = home.map(std::path::absolute).transpose();
        let home = home.map_err(|e| Failure::new(Exit::Usage, format!("the home has no path: {e}")))?;
        Ok(Unit { kiso, owner, home, version: version().ok().flatten() })
    }
}

fn uninstall(place: &ServiceScope, shared: &Shared) -> Result<Exit, Failure> {
    let path = place.path()?;
    if !path.exists() {
        say(shared, &format!("{} is not there", path.display()));
        return Ok(Exit::Done);
    }
    version()?;
    place.answers()?;
    place.systemctl(shared, &["disable", "--now", NAME])?;
    std::fs::remove_file(&path).map_err(|e| Failure::new(Exit::Failed, format!("{}: {e}", path.display())))?;
    say(shared, &format!("{} removed", path.display()));
    place.systemctl(shared, &["daemon-reload"])?;
    Ok(Exit::Done)
}

fn status(place: &ServiceScope, shared: &Shared) -> Result<Exit, Failure> {
    let path = place.path()?;
    let there = std::fs::read_to_string(&path).ok();
    version()?;
    let mut command = place.command(&["is-active", NAME]);
    let answer = command.output().map_err(|e| Failure::new(Exit::Failed, format!("systemctl: {e}")))?;
    let state = String::from_utf8_lossy(&answer.stdout).trim().to_owned();
    // Empty after an error such as "Failed to connect to bus".
    if state.is_empty() {
        return Err(Failure::new(
            Exit::Failed,
            format!("systemctl: {}", String::from_utf8_lossy(&answer.stderr).trim()),
        ));
    }
    let by = there.as_deref().map(|text| text.lines().next().unwrap_or_default().contains(env!("CARGO_PKG_VERSION")));
    if shared.json {
        let unit = path.display().to_string();
        outln!("{}", json!({ "type": "service", "unit": unit, "installed": there.is_some(), "state": state }));
    } else {
        let unit = match by {
            None => "is not installed; run `kiso service install`",
            Some(true) => "is up to date",
            Some(false) => "was written by another version of kiso; `kiso service install` updates it",
        };
        outln!("{} {unit}", printable(&path.display().to_string()));
        outln!("{}", printable(&state));
    }
    Ok(if answer.status.success() { Exit::Done } else { Exit::Failed })
}

impl ServiceScope {
    /// Returns the path of the unit.
    fn path(&self) -> Result<PathBuf, Failure> {
        if self.system {
            return Ok(Path::new(SYSTEM_UNITS).join(NAME));
        }
        let config = environment("XDG_CONFIG_HOME").filter(|dir| dir.starts_with('/')).map(PathBuf::from);
        let config = config.or_else(|| Some(std::env::home_dir()?.join(".config")));
        let none = || {
            Failure::new(
                Exit::Config,
                "neither XDG_CONFIG_HOME nor HOME is set, so the directory for user units is unknown",
            )
        };
        Ok(config.ok_or_else(none)?.join("systemd/user").join(NAME))
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new("systemctl");
        if !self.system {
            command.arg("--user");
        }
        command.args(args).stdin(Stdio::null());
        command
    }

    /// Checks that this systemd answers. Called first, so that nothing is left half done.
    fn answers(&self) -> Result<(), Failure> {
        let answer = self.command(&["show-environment"]).output();
        let answer = answer.map_err(|e| Failure::new(Exit::Failed, format!("systemctl: {e}")))?;
        if answer.status.success() {
            return Ok(());
        }
        let said = String::from_utf8_lossy(&answer.stderr).trim().to_owned();
        let hint = match self.system {
            true => "is this machine run by systemd?",
            false => "log in as that user, not through su or sudo, or use --system",
        };
        Err(Failure::new(Exit::Failed, format!("systemd does not answer ({said}): {hint}")))
    }

    /// Runs systemctl and reports it. Its output goes to the user.
    fn systemctl(&self, shared: &Shared, args: &[&str]) -> Result<(), Failure> {
        let mut command = self.command(args);
        let shown = format!("systemctl {}{}", if self.system { "" } else { "--user " }, args.join(" "));
        let answer = command.output().map_err(|e| Failure::new(Exit::Failed, format!("{shown}: {e}")))?;
        if !answer.status.success() {
            let said = String::from_utf8_lossy(&answer.stderr);
            return Err(Failure::new(Exit::Failed, format!("`{shown}` failed: {}", said.trim())));
        }
        say(shared, &shown);
        Ok(())
    }
}

/// Returns the version of systemd, if it reports one; an error if there is no systemd.
fn version() -> Result<Option<u32>, Failure> {
    match Command::new("systemctl").arg("--version").stdin(Stdio::null()).output() {
        // "systemd 257 (257.8-1~deb13u2)"
        Ok(answer) => {
            let text = String::from_utf8_lossy(&answer.stdout).into_owned();
            Ok(text.split_whitespace().nth(1).and_then(|word| word.split(['.', '~']).next()?.parse().ok()))
        }
        Err(error) if error.kind() == ErrorKind::NotFound => Err(Failure::new(
            Exit::Failed,
            "there is no systemctl here, and kiso knows no other way to run as a service: have your system's own \
             (OpenRC, launchd, runit) run `kiso serve`, and send it SIGTERM to end it",
        )),
        Err(error) => Err(Failure::new(Exit::Failed, format!("systemctl cannot be run: {error}"))),
    }
}

fn write(path: &Path, text: &str) -> Result<(), Failure> {
    let failed = |e: std::io::Error| {
        let hint = if e.kind() == ErrorKind::PermissionDenied { "; --system needs root (sudo)" } else { "" };
        Failure::new(Exit::Failed, format!("{} cannot be written: {e}{hint}", path.display()))
    };
    if let Some(dir) = path.parent() {
        std::fs::create_dir_all(dir).map_err(failed)?;
    }
    // systemd must never read an incomplete unit.
    let part = path.with_extension("service.new");
    std::fs::write(&part, text).and_then(|()| std::fs::rename(&part, path)).map_err(failed)
}

fn say(shared: &Shared, what: &str) {
    match shared.json {
        true => outln!("{}", json!({ "type": "step", "what": what })),
        false => outln!("{}", printable(what)),
    }
}

/// Returns whether `--home` was given, rather than only `KISO_HOME`.
fn given_as_argument() -> bool {
    std::env::args_os().any(|arg| arg.to_str().is_some_and(|arg| arg == "--home" || arg.starts_with("--home=")))
}

/// Returns whether systemd accepts the name of a user, and it cannot begin another line of the unit.
fn is_user_name(name: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    (1..=31).contains(&name.len()) && !name.starts_with('-') && name.chars().all(plain)
}

/// Returns whether users may create namespaces, which systemd needs for mounts in a user's unit.
fn users_make_namespaces() -> bool {
    let says = |file: &str, no: &str| std::fs::read_to_string(file).is_ok_and(|text| text.trim() == no);
    !(says("/proc/sys/kernel/unprivileged_userns_clone", "0")
        || says("/proc/sys/user/max_user_namespaces", "0")
        || says("/proc/sys/kernel/apparmor_restrict_unprivileged_userns", "1"))
}
