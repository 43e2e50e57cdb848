//! Landlock: files that can be read and written, and TCP ports that can be connected to.

use std::path::Path;

use landlock::{
    ABI, Access, AccessFs, AccessNet, BitFlags, CompatLevel, Compatible, NetPort, PathFd, Ruleset, RulesetAttr,
    RulesetCreated, RulesetCreatedAttr, RulesetError, RulesetStatus, Scope, path_beneath_rules,
};

use super::Confinement;

/// The oldest version that blocks all writing: earlier ones allowed truncating files without write access.
const FILES: ABI = ABI::V3;

/// Paths that a program needs to start: itself, libraries and their configuration. None of them belongs to a single user.
const SYSTEM: [&str; 12] = [
    "/usr",
    "/bin",
    "/sbin",
    "/lib",
    "/lib32",
    "/lib64",
    "/etc/ld.so.cache",
    "/etc/ld.so.conf",
    "/etc/ld.so.conf.d",
    "/etc/alternatives",
    "/etc/localtime",
    "/etc/ssl/openssl.cnf",
];

/// Additional paths for network access: host names and certificates.
const NETWORK: [&str; 10] = [
    "/etc/hosts",
    "/etc/host.conf",
    "/etc/resolv.conf",
    "/etc/nsswitch.conf",
    "/etc/gai.conf",
    "/etc/services",
    "/etc/ssl/certs",
    "/etc/ca-certificates",
    "/etc/pki/tls/certs",
    "/etc/pki/ca-trust/extracted",
];

/// Devices that can be read, and the one that can be written.
const DEVICES: [&str; 5] = ["/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom"];

/// Confines this process, its program and child processes. Returns whether signals are confined, too.
pub(super) fn enforce(confinement: &Confinement) -> Result<bool, String> {
    let signals_are_scoped = scopes_signals();
    restrict(confinement).map(|()| signals_are_scoped)
}

fn restrict(confinement: &Confinement) -> Result<(), String> {
    let failed = |error: RulesetError| format!("Landlock cannot confine it: {error}");
    let readable = AccessFs::from_read(FILES);
    // No devices, and no sockets that others could connect to.
    let special = AccessFs::MakeChar | AccessFs::MakeBlock | AccessFs::MakeSock;
    let writable: BitFlags<AccessFs> = AccessFs::from_all(FILES) & !special;
    let program = confinement.command.first().map(Path::new).and_then(|program| program.canonicalize().ok());
    for path in confinement.read.iter().chain([&confinement.dir]) {
        PathFd::new(path).map_err(|error| format!("{} cannot be opened: {error}", path.display()))?;
    }
    let network = NETWORK.into_iter().filter(|_| !confinement.port.is_empty());
    let rules = |ruleset: RulesetCreated| {
        let ports = confinement.port.iter().map(|port| Ok(NetPort::new(*port, AccessNet::ConnectTcp)));
        ruleset
            .add_rules(path_beneath_rules(SYSTEM.into_iter().chain(network), readable))?
            .add_rules(path_beneath_rules(program, readable))?
            .add_rules(path_beneath_rules(&confinement.read, readable))?
            .add_rules(path_beneath_rules(DEVICES, AccessFs::ReadFile))?
            .add_rules(path_beneath_rules(["/dev/null"], AccessFs::WriteFile))?
            .add_rules(path_beneath_rules([&confinement.dir], writable))?
            .add_rules::<_, _, _, RulesetError>(ports)?
            .restrict_self()
    };
    let status = created(!confinement.port.is_empty()).and_then(rules).map_err(failed)?;
    match status.ruleset {
        RulesetStatus::NotEnforced => Err("Landlock does not confine it".to_owned()),
        RulesetStatus::FullyEnforced | RulesetStatus::PartiallyEnforced => Ok(()),
    }
}

/// Creates a ruleset with everything that this kernel supports. Fails if that is not enough.
fn created(tcp: bool) -> Result<RulesetCreated, RulesetError> {
    let mut ruleset =
        Ruleset::default().set_compatibility(CompatLevel::HardRequirement).handle_access(AccessFs::from_all(FILES))?;
    // A program without ports cannot create sockets at all.
    if tcp {
        ruleset = ruleset.handle_access(AccessNet::from_all(ABI::V4))?;
    }
    ruleset
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(AccessFs::IoctlDev)?
        .scope(Scope::from_all(ABI::V6))?
        .create()
}

fn scopes_signals() -> bool {
    let ruleset = Ruleset::default().set_compatibility(CompatLevel::HardRequirement).scope(Scope::Signal);
    ruleset.and_then(Ruleset::create).is_ok()
}

/// Checks that this kernel supports the necessary restrictions. The error names what is missing.
pub(super) fn support(tcp: bool) -> Result<(), String> {
    let version =
        if tcp { "version 4 of its interface, of Linux 6.7" } else { "version 3 of its interface, of Linux 6.2" };
    created(tcp).map(drop).map_err(|_| format!("the kernel has no Landlock, or not {version}"))
}
