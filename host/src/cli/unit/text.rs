//! Generates the text of `kiso.service`.

use std::fmt::Write;
use std::path::{Path, PathBuf};

/// The first version with Type=notify-reload. Earlier ones would treat the type as "simple", miss the watchdog messages and
/// kill a healthy daemon.
const NOTIFY_RELOAD: u32 = 253;

/// The properties of a unit.
#[derive(Debug, Clone)]
pub(super) struct Unit {
    /// The binary.
    pub kiso: PathBuf,
    pub owner: Owner,
    /// The home; `None` for `/var/lib/kiso`, which systemd creates for the system unit's user.
    pub home: Option<PathBuf>,
    /// The version of systemd, if it is known.
    pub version: Option<u32>,
}

/// The user of the service.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Owner {
    /// The user's own systemd. `namespaces` says whether users may create them on this machine.
    Session { namespaces: bool },
    /// A unit of the system, as a user that exists only while the service runs.
    Dynamic,
    /// A unit of the system, as this user.
    User(String),
}

/// Settings for every unit: they need only a filter of system calls.
const FILTERED: &str = "
# The sandbox compiles skills and commands into memory that is written and then executed, so
# MemoryDenyWriteExecute= must not be set. Everything else that kiso never does is forbidden.
NoNewPrivileges=yes
LockPersonality=yes
RestrictAddressFamilies=AF_UNIX AF_INET AF_INET6 AF_NETLINK
RestrictNamespaces=yes
RestrictRealtime=yes
RestrictSUIDSGID=yes
SystemCallArchitectures=native
SystemCallFilter=@system-service
SystemCallFilter=~@privileged @resources
SystemCallErrorNumber=EPERM
UMask=0077
";

/// Settings that need a separate mount namespace.
const MOUNTED: &str = "ProtectSystem=strict
PrivateTmp=yes
PrivateDevices=yes
ProtectKernelTunables=yes
ProtectKernelModules=yes
ProtectKernelLogs=yes
ProtectControlGroups=yes
";

/// Needs the permissions of the system's systemd.
const OF_THE_MACHINE: &str = "ProtectClock=yes
ProtectHostname=yes
ProtectProc=invisible
CapabilityBoundingSet=
RemoveIPC=yes
";

/// The state directory of the system's unit.
pub(super) const STATE: &str = "/var/lib/kiso";

impl Unit {
    pub(super) fn text(&self) -> String {
        let mut text = format!(
            "# Written by `kiso service install` of kiso {}. Make changes with `systemctl edit kiso`.\n\n\
             [Unit]\nDescription=kiso: an agent whose skills and commands run in a sandbox\n",
            env!("CARGO_PKG_VERSION")
        );
        let session = matches!(self.owner, Owner::Session { .. });
        if !session {
            text += "Wants=network-online.target\nAfter=network-online.target time-sync.target\n";
        }
        // An unusable home is not fixed by endless restarts.
        text += "StartLimitIntervalSec=300\nStartLimitBurst=5\n\n[Service]\n";
        text += match self.version {
            Some(version) if version >= NOTIFY_RELOAD => "Type=notify-reload\n",
            _ => "Type=notify\nExecReload=/bin/kill -HUP $MAINPID\n",
        };
        let home = self.home.as_deref().unwrap_or(Path::new(STATE));
        let _ = writeln!(text, "ExecStart={} --home {} serve", quoted(&self.kiso), quoted(home));
        text += "Restart=on-failure\nRestartSec=2\nWatchdogSec=60\nTimeoutStartSec=120\n\
                 # When stopping, kiso also asks for daemon.shutdown_timeout_s.\nTimeoutStopSec=90\n";
        match &self.owner {
            Owner::Session { .. } => {}
            Owner::Dynamic => text += "DynamicUser=yes\nUser=kiso\n",
            Owner::User(name) => {
                let _ = writeln!(text, "User={name}");
            }
        }
        if self.home.is_none() {
            text += "StateDirectory=kiso\nStateDirectoryMode=0700\n";
        }
        text += match session {
            true => {
                "# Keys of providers and KISO_SKILL_… secrets, one NAME=value a line; for its owner only (chmod 600).\n\
                     EnvironmentFile=-%E/kiso/env\n"
            }
            false => {
                "# Keys of providers and KISO_SKILL_… secrets are best given as credentials, each in a file for root only:\n\
                      # LoadCredential=OPENAI_API_KEY:/etc/kiso/openai_api_key\n"
            }
        };
        text += "# A Raspberry Pi has no memory cgroup unless it is booted with cgroup_enable=memory, and MemoryMax= does nothing\n\
                 # without. kiso does not rely on it: [engine] and [exec] in config.toml bound what skills and commands take.\n";
        text += FILTERED;
        match &self.owner {
            Owner::Session { namespaces: false } => {
                text += "# Users of this machine may not make namespaces, so ProtectSystem= and its like would keep kiso from starting.\n";
            }
            Owner::Session { namespaces: true } => {
                // Older versions of systemd ignore the rest without it; newer ones imply it.
                text += "PrivateUsers=yes\n";
                text += MOUNTED;
            }
            Owner::Dynamic | Owner::User(_) => {
                text += MOUNTED;
                text += OF_THE_MACHINE;
            }
        }
        if let (Some(home), false) = (&self.home, self.owner == (Owner::Session { namespaces: false })) {
            // Nothing else is writable; a directory that exec tasks may write to ([exec.mounts]) needs a line of its own.
            let _ = writeln!(text, "ReadWritePaths={}", quoted(home));
        }
        if !session && self.home.is_none() {
            text += "ProtectHome=yes\n";
        }
        text += if session {
            "\n[Install]\nWantedBy=default.target\n"
        } else {
            "\n[Install]\nWantedBy=multi-user.target\n"
        };
        text
    }
}

/// Quotes a path as one word of a unit, without the special meaning of % and $.
fn quoted(path: &Path) -> String {
    let text = path.display().to_string().replace('\\', "\\\\").replace('"', "\\\"");
    format!("\"{}\"", text.replace('%', "%%").replace('$', "$$"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn unit(owner: Owner, home: Option<&str>, version: u32) -> String {
        let kiso = PathBuf::from("/usr/bin/kiso");
        Unit { kiso, owner, home: home.map(PathBuf::from), version: Some(version) }.text()
    }

    #[test]
    fn each_owner_has_its_unit() {
        let own = unit(Owner::Session { namespaces: true }, Some("/home/a/.kiso"), 257);
        for line in [
            "Type=notify-reload",
            "ExecStart=\"/usr/bin/kiso\" --home \"/home/a/.kiso\" serve",
            "ReadWritePaths=\"/home/a/.kiso\"",
            "ProtectSystem=strict",
            "PrivateUsers=yes",
            "WantedBy=default.target",
            "WatchdogSec=60",
        ] {
            assert!(own.lines().any(|l| l == line), "{line}\n{own}");
        }
        let plain = unit(Owner::Session { namespaces: false }, Some("/h"), 257);
        assert!(!plain.contains("ProtectSystem=strict") && !plain.contains("ReadWritePaths"), "{plain}");
        assert!(plain.contains("SystemCallFilter=@system-service"));

        let machine = unit(Owner::Dynamic, None, 252);
        for line in [
            "Type=notify",
            "ExecReload=/bin/kill -HUP $MAINPID",
            "DynamicUser=yes",
            "StateDirectory=kiso",
            "ProtectHome=yes",
            "CapabilityBoundingSet=",
            "WantedBy=multi-user.target",
        ] {
            assert!(machine.lines().any(|l| l == line), "{line}\n{machine}");
        }
        let user = unit(Owner::User("bob".to_owned()), Some("/home/bob/k"), 257);
        assert!(
            user.contains("\nUser=bob\n") && !user.contains("ProtectHome") && !user.contains("DynamicUser"),
            "{user}"
        );
        for text in [own, plain, machine, user] {
            assert!(!text.lines().any(|l| l.starts_with("MemoryDenyWriteExecute")), "the compiler would not work");
            assert!(!text.lines().any(|l| l.starts_with("MemoryMax")), "it does nothing on a Pi");
        }
    }

    #[test]
    fn paths_mean_themselves() {
        assert_eq!(quoted(Path::new("/a b/%h/$x/\"q\"/\\")), r#""/a b/%%h/$$x/\"q\"/\\""#);
    }
}
