//! The part of a fleet in the work of a member: whether it may still act, where files are kept besides the home, and who the
//! others are.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use schemars::JsonSchema;
use serde::Serialize;

use kiso_base::home::SessionName;

/// Polling interval for permission to begin.
const LOOK: Duration = Duration::from_millis(50);

/// A member that owns the home.
pub trait FleetMember: fmt::Debug + Send + Sync {
    /// The number of its ownership. It grows with each owner, so that a receiver can refuse messages of an earlier one.
    fn epoch(&self) -> u64;

    /// Whether irreversible work may begin: whether nobody else can own the home yet.
    fn may_act(&self) -> bool;

    /// Keeps a snapshot of the session's files for the other members, and returns its name. Waits on the caller's thread.
    fn keep_files(&self, session: &SessionName) -> Result<[u8; 32], String>;

    /// Gives the home to a present member with this label. Returns false if there is none. Waits on the caller's thread.
    fn hand_over(&self, label: &str) -> Result<bool, String>;

    /// The fleet's name.
    fn fleet(&self) -> String;

    /// The present state of the fleet, or the reason why it is not known. Waits on the caller's thread.
    fn status(&self) -> Result<FleetStatus, String>;
}

/// Who is in a fleet, and who owns its home.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(rename = "Fleet")]
pub struct FleetStatus {
    /// Its name.
    pub fleet: String,
    /// Whether it has a home: whether `kiso fleet begin` was run.
    pub begun: bool,
    /// The member that owns the home; null if no member owns it at the moment.
    pub owner: Option<String>,
    /// Grows with each owner.
    pub epoch: u64,
    /// Messages that whoever takes over reads from the log, after the last copy of the whole store.
    pub log_messages: u64,
    /// Bytes of all messages that the log has.
    pub log_bytes: u64,
    /// All that ever were members, by name.
    pub members: Vec<MemberStatus>,
    /// Members whose homes have another key than this fleet, so that nothing that they say can be read; absent where there are none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub other_keys: Vec<String>,
}

/// A member, as it last described itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(rename = "FleetMember")]
pub struct MemberStatus {
    pub name: String,
    /// Of kiso.
    pub version: String,
    /// Whether it owns the home.
    pub owns: bool,
    /// Whether it was ready to take over the home.
    pub stands_by: bool,
    /// The labels of its machine: its `fleet.labels`.
    pub labels: Vec<String>,
    /// Milliseconds since its last report, by the clock of NATS; a member reports every five seconds.
    pub ago_ms: u64,
    /// Milliseconds that its clock was ahead of the clock of NATS.
    pub ahead_ms: i64,
}

impl MemberStatus {
    /// Milliseconds without a message after which a member counts as absent.
    const GONE: u64 = 30_000;

    /// The same for a member that is to get the home: two messages of it are missing.
    const LATE: u64 = 12_000;

    /// Whether it would take the home over at once, and has this label.
    pub fn can_take(&self, label: &str) -> bool {
        let is_ready = !self.owns && self.stands_by && self.ago_ms < MemberStatus::LATE;
        is_ready && self.labels.iter().any(|has| has == label)
    }

    /// Whether it seems to be present.
    pub fn is_there(&self) -> bool {
        self.ago_ms < MemberStatus::GONE
    }

    /// Returns a short description of its role.
    pub fn does(&self) -> &'static str {
        match (self.owns, self.stands_by) {
            (true, _) => "owns the home",
            (false, true) => "stands by",
            (false, false) => "does not take over",
        }
    }
}

/// The characters of the name of a fleet or of a member, for people.
pub const FLEET_NAME: &str = "1 to 32 of a-z, 0-9 and -";

/// Whether this is a valid name of a fleet or member. It becomes part of names and subjects of NATS.
pub fn is_fleet_name(name: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    (1..=32).contains(&name.len()) && name.bytes().all(is_plain)
}

/// The characters of a machine's label, for people.
pub const MACHINE_LABEL: &str = "1 to 32 of a-z, 0-9 and -, and not \"any\"";

/// No label: a session that runs on any machine.
pub const ANY_MACHINE: &str = "any";

/// Whether a machine can have this label.
pub fn is_machine_label(label: &str) -> bool {
    is_fleet_name(label) && label != ANY_MACHINE
}

/// Returns when irreversible work may begin. For a member that has lost the home it never returns: its process is replaced.
pub async fn may_act(member: Option<&Arc<dyn FleetMember>>) {
    while member.is_some_and(|member| !member.may_act()) {
        tokio::time::sleep(LOOK).await;
    }
}
