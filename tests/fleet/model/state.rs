//! What there is: the log, the key, members and what they know, what is on its way, clients, and the sink.

use crate::MESSAGES;

/// How far a message has come.
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

/// Two replies are the same if one member wrote them for the same run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Reply {
    pub epoch: u8,
    pub interrupted: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Content {
    /// The first thing that an owner writes.
    Epoch,
    /// Here a copy of everything was made, which stands in place of the records before.
    Base,
    /// A commit: what is now true of a message.
    Message(usize, Stage),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Record {
    pub epoch: u8,
    pub member: usize,
    pub content: Content,
}

/// A request to the log. The same place, epoch and content are the same request, however often it is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Append {
    pub place: usize,
    pub record: Record,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub enum Role {
    /// Or is down.
    #[default]
    StandsBy,
    /// Has waited for a whole lease since it saw this.
    Suspects {
        epoch: u8,
        revision: u8,
    },
    /// Is the owner by the key, and has read nothing yet.
    TakesOver {
        epoch: u8,
    },
    /// Has the base, and perhaps some of the log.
    Reads {
        epoch: u8,
    },
    /// Has read the log, and waits for the record of its epoch to be in it.
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
    /// Whether it was taken, as soon as an answer has come.
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

/// What one member knows.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct Member {
    pub role: Role,
    /// The revision of the key that it wrote last.
    pub revision: u8,
    /// What its own clock says. It has to look in order to know.
    pub lease_passed: bool,
    pub store: [Stage; MESSAGES],
    /// Where it reads or appends next.
    pub place: usize,
    /// While it puts a copy in place of the log.
    pub rebase: Option<Rebase>,
    pub pending: Option<Pending>,
    pub effects: [Effect; MESSAGES],
}

/// A copy whose record is in the log at a place, and whether it is the base by now. The records before are forgotten then.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Rebase {
    pub place: usize,
    pub is_set: bool,
}

/// Another key: a copy of everything, and where the log goes on.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct Base {
    pub place: usize,
    pub epoch: u8,
    pub store: [Stage; MESSAGES],
}

/// What the client of a message was told.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct Client {
    pub has_202: bool,
    pub reply: Option<Reply>,
    /// And then another one.
    pub another_reply: bool,
}

/// Something outside that can fence.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct Sink {
    /// The newest that it has seen.
    pub epoch: u8,
    pub taken: [u8; MESSAGES],
    /// Whether it took something of an older epoch than it had seen.
    pub took_old: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct State {
    pub owner: Option<usize>,
    pub epoch: u8,
    pub revision: u8,
    pub base: Base,
    /// The log from its beginning. Nobody can read what lies before `first` any more.
    pub log: Vec<Record>,
    pub first: usize,
    pub members: Vec<Member>,
    /// Appends that are on their way, in order, so that the same are the same state.
    pub appends: Vec<Append>,
    /// Effects that are on their way, likewise: epoch and message.
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
    /// The epoch in which it owns, as far as it knows.
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

    /// Whether it may begin an append.
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
    /// What a store is after these records.
    pub(crate) fn replay(&self, from: std::ops::Range<usize>, mut store: [Stage; MESSAGES]) -> [Stage; MESSAGES] {
        for record in &self.log[from] {
            if let Content::Message(message, stage) = record.content {
                store[message] = stage;
            }
        }
        store
    }

    /// Whether somebody who looks finds this in the log.
    pub(crate) fn has(&self, append: &Append) -> bool {
        append.place >= self.first && self.log.get(append.place) == Some(&append.record)
    }

    /// How often a message is in the log as a new one.
    pub(crate) fn accepted(&self, message: usize) -> usize {
        let new = Content::Message(message, Stage::Accepted);
        self.log.iter().filter(|record| record.content == new).count()
    }

    /// A member that serves tells clients what it knows, at once: to be told something later is never worse.
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
