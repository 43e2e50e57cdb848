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
    /// Is the owner by the key, and has not read the log yet.
    TakesOver {
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
    /// Where it appends next.
    pub place: usize,
    pub pending: Option<Pending>,
    pub effects: [Effect; MESSAGES],
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
    pub log: Vec<Record>,
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
}

impl Role {
    /// The epoch in which it owns, as far as it knows.
    pub fn epoch(self) -> Option<u8> {
        match self {
            Role::StandsBy | Role::Suspects { .. } => None,
            Role::TakesOver { epoch } | Role::Announces { epoch } | Role::Serves { epoch } => Some(epoch),
        }
    }
}

impl Member {
    pub fn serves(&self) -> Option<u8> {
        if let Role::Serves { epoch } = self.role { Some(epoch) } else { None }
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
