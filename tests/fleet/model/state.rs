//! The state: log, keys, members and their knowledge, requests in flight, clients, and the sink.

use crate::MESSAGES;

/// The progress of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub enum Stage {
    #[default]
    Unknown,
    Accepted,
    Started {
        epoch: u8,
    },
    Replied(Reply),
}

/// Two replies are equal if one member wrote them for the same run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Reply {
    pub epoch: u8,
    pub interrupted: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Content {
    /// The first record of an owner.
    Epoch,
    /// Marks a copy of everything, which replaces the earlier records.
    Base,
    /// A commit: the new stage of a message.
    Message(usize, Stage),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Record {
    pub epoch: u8,
    pub member: usize,
    pub content: Content,
}

/// A request to the log. Requests with the same position, epoch and content are equal, however often they are sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Append {
    pub place: usize,
    pub record: Record,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub enum Role {
    /// On standby, or down.
    #[default]
    StandsBy,
    /// Has waited for a whole lease since it saw this revision.
    Suspects {
        epoch: u8,
        revision: u8,
    },
    /// Is the owner by the key, and has read nothing yet.
    TakesOver {
        epoch: u8,
    },
    /// Has the base, and possibly some of the log.
    Reads {
        epoch: u8,
    },
    /// Has read the log, and waits until its epoch's record is in it.
    Announces {
        epoch: u8,
    },
    Serves {
        epoch: u8,
    },
}

/// An append whose answer a member waits for; it writes nothing else meanwhile.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Pending {
    pub append: Append,
    /// Whether it was accepted, once there is an answer.
    pub answer: Option<bool>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub enum Effect {
    #[default]
    None,
    OnItsWay,
    Taken,
    Refused,
}

/// The state of one member.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct Member {
    pub role: Role,
    /// The revision of the key that it wrote last.
    pub revision: u8,
    /// Whether its own clock says that the lease has ended. It has to check the clock to know.
    pub lease_passed: bool,
    pub store: [Stage; MESSAGES],
    /// The position of its next read or append.
    pub place: usize,
    /// Set while it replaces the log by a copy.
    pub rebase: Option<Rebase>,
    pub pending: Option<Pending>,
    pub effects: [Effect; MESSAGES],
}

/// A copy whose record is in the log at a position, and whether it is already the base. The earlier records are deleted then.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Rebase {
    pub place: usize,
    pub is_set: bool,
}

/// The second key: a copy of everything, and the position where the log continues.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct Base {
    pub place: usize,
    pub epoch: u8,
    pub store: [Stage; MESSAGES],
}

/// Messages received by the client of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct Client {
    pub has_202: bool,
    pub reply: Option<Reply>,
    /// Whether it then received a different reply.
    pub another_reply: bool,
}

/// A receiver outside that checks epochs.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct Sink {
    /// The newest epoch that it has seen.
    pub epoch: u8,
    pub taken: [u8; MESSAGES],
    /// Whether it accepted an effect of an older epoch than it had seen.
    pub took_old: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct State {
    pub owner: Option<usize>,
    pub epoch: u8,
    pub revision: u8,
    pub base: Base,
    /// The log from its beginning. Records before `first` cannot be read any more.
    pub log: Vec<Record>,
    pub first: usize,
    pub members: Vec<Member>,
    /// Appends in flight, sorted, so that equal sets are equal states.
    pub appends: Vec<Append>,
    /// Effects in flight, sorted: epoch and message.
    pub effects: Vec<(u8, usize)>,
    pub sink: Sink,
    pub clients: [Client; MESSAGES],
    /// Whether an effect started at a member that was not the owner any more.
    pub started_late: bool,
    pub crashes: u8,
    pub retries: u8,
    pub beats: u8,
    pub bases: u8,
}

impl Role {
    /// The epoch in which it believes to be the owner.
    pub fn epoch(self) -> Option<u8> {
        match self {
            Role::StandsBy | Role::Suspects { .. } => None,
            Role::TakesOver { epoch } | Role::Reads { epoch } | Role::Announces { epoch } | Role::Serves { epoch } => {
                Some(epoch)
            }
        }
    }
}

impl Member {
    pub fn serves(&self) -> Option<u8> {
        if let Role::Serves { epoch } = self.role { Some(epoch) } else { None }
    }

    /// Whether it may start an append.
    pub(crate) fn writes(&self) -> bool {
        self.serves().is_some() && self.pending.is_none() && self.rebase.is_none()
    }

    /// Writes a record, and waits for the answer.
    pub(crate) fn append(&mut self, member: usize, content: Content, appends: &mut Vec<Append>) {
        let Some(epoch) = self.role.epoch() else { return };
        let append = Append { place: self.place, record: Record { epoch, member, content } };
        self.pending = Some(Pending { append, answer: None });
        insert(appends, append);
    }
}

pub(crate) fn insert<T: Ord>(sorted: &mut Vec<T>, new: T) {
    if let Err(at) = sorted.binary_search(&new) {
        sorted.insert(at, new);
    }
}

impl State {
    /// The store after these records.
    pub(crate) fn replay(&self, from: std::ops::Range<usize>, mut store: [Stage; MESSAGES]) -> [Stage; MESSAGES] {
        for record in &self.log[from] {
            if let Content::Message(message, stage) = record.content {
                store[message] = stage;
            }
        }
        store
    }

    /// Whether the log contains this append and can still be read there.
    pub(crate) fn has(&self, append: &Append) -> bool {
        append.place >= self.first && self.log.get(append.place) == Some(&append.record)
    }

    /// Number of records that accept a message as new.
    pub(crate) fn accepted(&self, message: usize) -> usize {
        let new = Content::Message(message, Stage::Accepted);
        self.log.iter().filter(|record| record.content == new).count()
    }

    /// A serving member immediately tells clients what it knows: a later delivery is never worse.
    pub(crate) fn tell(&mut self, member: usize) {
        let member = &self.members[member];
        if member.serves().is_none() {
            return;
        }
        for (client, stage) in self.clients.iter_mut().zip(member.store) {
            client.has_202 |= stage != Stage::Unknown;
            if let Stage::Replied(reply) = stage {
                client.another_reply |= *client.reply.get_or_insert(reply) != reply;
            }
        }
    }
}
