//! A model of several members that share one home, for a checker that visits all of its states.
//!
//! ```text
//!  clients ──messages──▶ member that serves ──append: a place and a record──▶ log (one stream)
//!     ▲                    │        │   ▲                                       │
//!     └──202, replies──────┘        │   └────────────answer to the append───────┘
//!                                   └──effect with its epoch──▶ sink        owner: who, epoch, revision (one key)
//! ```
//!
//! One member at a time owns the home, and its changes are in the log before anybody sees them. The model has the following rules
//! of the real members, server and clients, but not their implementation:
//!
//! - One key names the owner: a member, an epoch that grows with each owner, and a revision. It is changed by compare-and-set. An
//!   owner renews its lease by writing it; a member that has seen no new revision for a whole lease takes over.
//! - The log accepts a record only at the position in the request, which must be its end. A repeated request may be confirmed or
//!   refused ([`Step::Deliver`] has both; a NATS server refuses it). A member that was refused may read the record at that
//!   position, or give up at once ([`Step::Look`], [`Step::Hear`]).
//! - A member that takes over reads the log, appends a record of its epoch, and serves when that is in the log. If somebody
//!   appended in between, it reads again. If it reads a newer epoch than its own, it gives up.
//! - Accepting, starting and replying to a message are one record each. Between the second and the third, its effect leaves for a
//!   sink outside, with the epoch, and only while the lease is valid by the owner's own clock. A run that another member had
//!   started is not started again: its reply says that it was interrupted.
//! - An owner may replace the log by a copy of everything: it appends a record that says so, then sets another key, the base,
//!   by compare-and-set and never back to an older copy, and then deletes earlier records from the log. A member that takes over
//!   reads the base, then the log from there; if that was deleted meanwhile, it starts with the base again.
//! - A client sends a message without a 202 to any serving member, any number of times, with the same key.
//!
//! **Events that can happen at any moment**: a lease ends and another member takes over ([`Step::Suspect`]); a member crashes and
//! is on standby; a member pauses for any time and continues where it was, like a frozen process (this needs no step); an append
//! or an effect is delayed for any time, or for ever, which models a loss; an answer is lost and the append is sent again, so
//! that there are two copies. A member that stays down is a standby that takes no steps, and an owner that releases the home is
//! one that crashes.
//!
//! **Assumptions about clocks**: a member that waits for a whole lease sees its end later than the owner, which counts from
//! before its last beat and keeps a margin. In the model: when a member suspects the owner, the owner's clock says that its lease
//! has ended. It has to check the clock to know, and earlier requests are still in flight.
//!
//! **Clients receive news at once.** A later delivery is never worse, and would only add states.
//!
//! **Checked properties** are in `properties.rs`: conditions for every state, and conditions that some state must reach, so that
//! the first are not trivially true. Liveness (a message *is* answered in the end) is not checked: it needs a member that stays
//! alive, and the tests with real members cover it. The model also omits pieces of files, commits in several parts, and
//! connections through another member.
//!
//! **Bounds**: every state within [`Size`]. Crashes, repeated requests, beats, copies and epochs are counted, because the number
//! of states would be infinite otherwise. States that differ only in the names of members and messages count as one
//! (`symmetry.rs`). Each [`Flaw`] leaves one rule out, and `check.rs` asserts which properties that breaks, and that each
//! property can be broken.

mod properties;
mod state;
mod symmetry;

pub use state::{
    Append, Base, Client, Content, Effect, Member, Pending, Rebase, Record, Reply, Role, Sink, Stage, State,
};

use state::insert;
use stateright::{Model, Property};

/// Maximum number of messages; a model may use fewer.
pub const MESSAGES: usize = 2;

/// Bounds of the model.
#[derive(Debug, Clone, Copy)]
pub struct Size {
    pub members: usize,
    pub messages: usize,
    /// Number of takeovers, including the first owner's.
    pub epochs: u8,
    pub crashes: u8,
    /// Number of repeated appends.
    pub retries: u8,
    /// Number of lease renewals. Any time may pass between beats.
    pub beats: u8,
    /// Number of copies that replace the log.
    pub bases: u8,
}

/// A rule to leave out, to show that it is needed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Flaw {
    /// A member that takes over writes the key without checking its revision.
    OwnerWithoutCompareAndSet,
    /// The log accepts a record at any position.
    NoCompareAndSet,
    /// A client gets its 202 when the append was sent.
    AnswerBeforeAcknowledgement,
    /// A member that took over serves what it read, without a record of its epoch.
    NoEpochRecord,
    /// A member that was slow to take over ignores a newer epoch in the log.
    NewerEpochIgnored,
    /// A repeated append has no identity and takes the end of the log as its position.
    RetryTakesNewPlace,
    /// A repeated message of a client is a new message.
    MessageWithoutKey,
    /// A member that takes over trusts its own store more than the log.
    KeepsOwnStore,
    /// A copy becomes the base even if there is a newer one.
    OlderBase,
    /// A member that reads the log accepts missing records.
    GapIgnored,
    /// An effect starts without a check of the clock.
    NoLeaseCheck,
    /// The sink accepts effects of every epoch.
    NoFencing,
    /// A run that another member had started is started again.
    RunsAgain,
}

/// The protocol, complete or with a flaw.
#[derive(Debug, Clone, Copy)]
pub struct Fleet {
    pub size: Size,
    pub flaw: Option<Flaw>,
}
/// The next step. The first number is a member.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// A lease renewal, and whether the owner receives its confirmation.
    Beat(usize, bool),
    /// The owner's lease has ended, and this member has waited for it.
    Suspect(usize),
    CompareAndSet(usize),
    ReadBase(usize),
    ReadLog(usize),
    Receive(usize, usize),
    Start(usize, usize),
    StartEffect(usize, usize),
    WriteReply(usize, usize),
    WriteBase(usize),
    /// By compare-and-set.
    SetBase(usize),
    ForgetLog(usize),
    Retry(usize),
    Hear(usize),
    /// A refused append is in the log after all, and so it counts.
    Look(usize),
    StandBy(usize),
    Crash(usize),
    /// An append arrives, and whether it is refused if it is already there.
    Deliver(Append, bool),
    /// An effect arrives: epoch and message.
    DeliverEffect(u8, usize),
}

impl Fleet {
    fn is(&self, flaw: Flaw) -> bool {
        self.flaw == Some(flaw)
    }

    /// The next record for a message, if there is one to write.
    fn reply_to(&self, member: &Member, message: usize) -> Option<Reply> {
        let (epoch, Stage::Started { epoch: started }) = (member.serves()?, member.store[message]) else { return None };
        let own = started == epoch;
        (!own || member.effects[message] == Effect::Taken).then_some(Reply { epoch, interrupted: !own })
    }

    /// Discards the volatile state, and goes on standby.
    fn stand_by(&self, member: &mut Member) {
        let mut store = member.store;
        if let Some(Pending { append: Append { record, .. }, .. }) = member.pending
            && let Content::Message(message, stage) = record.content
        {
            store[message] = stage;
        }
        *member = Member::default();
        if self.is(Flaw::KeepsOwnStore) {
            member.store = store;
        }
    }

    fn read_base(&self, member: &mut Member, base: &Base) {
        let Role::TakesOver { epoch } = member.role else { return };
        (member.role, member.place) = (Role::Reads { epoch }, base.place);
        if !self.is(Flaw::KeepsOwnStore) {
            member.store = base.store;
        }
    }

    fn read_log(&self, state: &mut State, at: usize) {
        let member = &state.members[at];
        let Role::Reads { epoch } = member.role else { return };
        let is_short = member.place < state.first;
        let from = member.place.max(state.first)..state.log.len();
        let own = |record: &Record| record.epoch == epoch && record.member == at;
        let (is_over, is_announced) = (
            state.log[from.clone()].iter().any(|record| record.epoch > epoch),
            state.log[from.clone()].iter().any(own),
        );
        let mut store = state.replay(from, member.store);
        let (is_over, place) = (is_over || state.base.epoch > epoch, state.log.len());
        let member = &mut state.members[at];
        if is_over && !self.is(Flaw::NewerEpochIgnored) {
            return self.stand_by(member);
        }
        if is_short && !self.is(Flaw::GapIgnored) {
            member.role = Role::TakesOver { epoch };
            return;
        }
        if self.is(Flaw::KeepsOwnStore) {
            let kept = member.store.into_iter().enumerate().filter(|(_, stage)| *stage != Stage::Unknown);
            kept.for_each(|(message, stage)| store[message] = stage);
        }
        (member.store, member.place) = (store, place);
        // Its own record is there if a second copy of it was refused.
        if is_announced || self.is(Flaw::NoEpochRecord) {
            member.role = Role::Serves { epoch };
        } else {
            member.role = Role::Announces { epoch };
            member.append(at, Content::Epoch, &mut state.appends);
        }
    }

    fn set_base(&self, state: &mut State, at: usize) {
        let member = &mut state.members[at];
        let (Some(Rebase { place, .. }), Some(epoch)) = (member.rebase, member.role.epoch()) else { return };
        // A former owner that comes late does not change the newer base, and so deletes nothing.
        if place < state.base.place && !self.is(Flaw::OlderBase) {
            member.rebase = None;
            return;
        }
        member.rebase = Some(Rebase { place, is_set: true });
        state.base = Base { place: place + 1, epoch, store: member.store };
    }

    fn deliver(&self, state: &mut State, append: Append, refused: bool) {
        state.appends.retain(|other| *other != append);
        let is_known = state.log.get(append.place) == Some(&append.record);
        let taken = if is_known && !self.is(Flaw::RetryTakesNewPlace) {
            !refused
        } else {
            let fits = append.place == state.log.len() || self.is(Flaw::NoCompareAndSet);
            if fits {
                state.log.push(append.record);
            }
            fits
        };
        // Its member may have crashed meanwhile, and then waits for nothing.
        if let Some(pending) = &mut state.members[append.record.member].pending
            && pending.append == append
        {
            pending.answer = Some(taken);
        }
    }

    fn hear(&self, member: &mut Member, append: Append, taken: bool) {
        member.role = match (member.role, taken) {
            (Role::Announces { epoch }, true) => Role::Serves { epoch },
            (Role::Announces { epoch }, false) => Role::Reads { epoch },
            (_, false) => return self.stand_by(member),
            (role, true) => role,
        };
        member.pending = None;
        if !taken {
            return;
        }
        member.place = append.place + 1;
        match append.record.content {
            Content::Epoch => {}
            Content::Base => member.rebase = Some(Rebase { place: append.place, is_set: false }),
            Content::Message(message, stage) => {
                member.store[message] = stage;
                if stage == Stage::Accepted {
                    member.effects[message] = Effect::None;
                }
            }
        }
    }

    fn deliver_effect(&self, state: &mut State, epoch: u8, message: usize) {
        state.effects.retain(|other| *other != (epoch, message));
        let sink = &mut state.sink;
        let is_old = epoch < sink.epoch;
        let taken = !is_old || self.is(Flaw::NoFencing);
        if taken {
            sink.epoch = sink.epoch.max(epoch);
            sink.taken[message] = (sink.taken[message] + 1).min(2);
            sink.took_old |= is_old;
        }
        for member in &mut state.members {
            if member.serves() == Some(epoch) && member.effects[message] == Effect::OnItsWay {
                member.effects[message] = if taken { Effect::Taken } else { Effect::Refused };
            }
        }
    }

    /// Steps of a serving member for a message.
    fn about(&self, state: &State, at: usize, message: usize, steps: &mut Vec<Step>) {
        let member = &state.members[at];
        let Some(epoch) = member.serves() else { return };
        let stage = member.store[message];
        if member.writes() {
            let accepts_again = || self.is(Flaw::MessageWithoutKey) && state.accepted(message) < 2;
            if stage == Stage::Unknown || accepts_again() {
                steps.push(Step::Receive(at, message));
            }
            let again = matches!(stage, Stage::Started { epoch: other } if other < epoch) && self.is(Flaw::RunsAgain);
            if stage == Stage::Accepted || again {
                steps.push(Step::Start(at, message));
            }
            if self.reply_to(member, message).is_some() {
                steps.push(Step::WriteReply(at, message));
            }
        }
        let may_start = !member.lease_passed || self.is(Flaw::NoLeaseCheck);
        if stage == (Stage::Started { epoch }) && member.effects[message] == Effect::None && may_start {
            steps.push(Step::StartEffect(at, message));
        }
    }

    /// All steps of a member.
    fn of_member(&self, state: &State, at: usize, steps: &mut Vec<Step>) {
        let member = &state.members[at];
        match member.role {
            Role::StandsBy => {
                if state.epoch < self.size.epochs {
                    steps.push(Step::Suspect(at));
                }
                return;
            }
            Role::Suspects { .. } => return steps.push(Step::CompareAndSet(at)),
            Role::TakesOver { .. } => steps.push(Step::ReadBase(at)),
            Role::Reads { .. } => steps.push(Step::ReadLog(at)),
            Role::Announces { .. } | Role::Serves { .. } => {}
        }
        if member.revision == state.revision && state.owner == Some(at) && state.beats < self.size.beats {
            steps.extend([Step::Beat(at, true), Step::Beat(at, false)]);
        }
        if let Some(pending) = &member.pending {
            if pending.answer.is_some() {
                steps.push(Step::Hear(at));
            }
            if pending.answer == Some(false) && state.has(&pending.append) {
                steps.push(Step::Look(at));
            }
            if state.retries < self.size.retries && state.appends.binary_search(&pending.append).is_err() {
                steps.push(Step::Retry(at));
            }
        }
        match member.rebase {
            Some(Rebase { is_set: false, .. }) => steps.push(Step::SetBase(at)),
            Some(Rebase { is_set: true, .. }) => steps.push(Step::ForgetLog(at)),
            None if member.writes() && state.bases < self.size.bases => steps.push(Step::WriteBase(at)),
            None => {}
        }
        if member.lease_passed || member.effects.contains(&Effect::Refused) {
            steps.push(Step::StandBy(at));
        } else if state.crashes < self.size.crashes {
            steps.push(Step::Crash(at));
        }
        (0..self.size.messages).for_each(|message| self.about(state, at, message, steps));
    }
}

impl Model for Fleet {
    type State = State;
    type Action = Step;

    fn init_states(&self) -> Vec<State> {
        vec![State {
            owner: None,
            epoch: 0,
            revision: 0,
            base: Base::default(),
            log: Vec::new(),
            first: 0,
            members: vec![Member::default(); self.size.members],
            appends: Vec::new(),
            effects: Vec::new(),
            sink: Sink::default(),
            clients: Default::default(),
            started_late: false,
            crashes: 0,
            retries: 0,
            beats: 0,
            bases: 0,
        }]
    }

    fn actions(&self, state: &State, steps: &mut Vec<Step>) {
        (0..self.size.members).for_each(|at| self.of_member(state, at, steps));
        for append in &state.appends {
            steps.push(Step::Deliver(*append, false));
            if state.log.get(append.place) == Some(&append.record) {
                steps.push(Step::Deliver(*append, true));
            }
        }
        steps.extend(state.effects.iter().map(|(epoch, message)| Step::DeliverEffect(*epoch, *message)));
    }

    fn next_state(&self, last: &State, step: Step) -> Option<State> {
        let mut next = last.clone();
        match step {
            Step::Beat(at, heard) => {
                next.revision += 1;
                next.beats += 1;
                if heard {
                    (next.members[at].revision, next.members[at].lease_passed) = (next.revision, false);
                }
            }
            Step::Suspect(at) => {
                next.members[at].role = Role::Suspects { epoch: next.epoch, revision: next.revision };
                if let Some(owner) = next.owner.filter(|owner| next.members[*owner].role.epoch() == Some(next.epoch)) {
                    next.members[owner].lease_passed = true;
                }
            }
            Step::CompareAndSet(at) => {
                let Role::Suspects { epoch, revision } = next.members[at].role else { return None };
                if revision != next.revision && !self.is(Flaw::OwnerWithoutCompareAndSet) {
                    next.members[at].role = Role::StandsBy;
                    return Some(next);
                }
                (next.owner, next.epoch, next.revision) = (Some(at), epoch + 1, next.revision + 1);
                (next.members[at].role, next.members[at].revision) =
                    (Role::TakesOver { epoch: epoch + 1 }, next.revision);
            }
            Step::ReadBase(at) => self.read_base(&mut next.members[at], &next.base),
            Step::ReadLog(at) => {
                self.read_log(&mut next, at);
                next.tell(at);
            }
            Step::Receive(at, message) => {
                next.clients[message].has_202 |= self.is(Flaw::AnswerBeforeAcknowledgement);
                next.members[at].append(at, Content::Message(message, Stage::Accepted), &mut next.appends);
            }
            Step::Start(at, message) => {
                let epoch = next.members[at].serves()?;
                next.members[at].append(at, Content::Message(message, Stage::Started { epoch }), &mut next.appends);
            }
            Step::StartEffect(at, message) => {
                let epoch = next.members[at].serves()?;
                next.members[at].effects[message] = Effect::OnItsWay;
                next.started_late |= epoch < next.epoch;
                insert(&mut next.effects, (epoch, message));
            }
            Step::WriteReply(at, message) => {
                let reply = self.reply_to(&next.members[at], message)?;
                next.members[at].append(at, Content::Message(message, Stage::Replied(reply)), &mut next.appends);
            }
            Step::WriteBase(at) => {
                next.bases += 1;
                next.members[at].append(at, Content::Base, &mut next.appends);
            }
            Step::SetBase(at) => self.set_base(&mut next, at),
            Step::ForgetLog(at) => {
                next.first = next.first.max(next.members[at].rebase.take()?.place);
            }
            Step::Retry(at) => {
                next.retries += 1;
                let pending = next.members[at].pending.as_mut()?;
                if self.is(Flaw::RetryTakesNewPlace) {
                    *pending = Pending { append: Append { place: next.log.len(), ..pending.append }, answer: None };
                }
                insert(&mut next.appends, pending.append);
            }
            Step::Hear(at) | Step::Look(at) => {
                let Pending { append, answer } = next.members[at].pending?;
                self.hear(&mut next.members[at], append, answer? || matches!(step, Step::Look(_)));
                next.tell(at);
            }
            Step::StandBy(at) => self.stand_by(&mut next.members[at]),
            Step::Crash(at) => {
                next.crashes += 1;
                self.stand_by(&mut next.members[at]);
            }
            Step::Deliver(append, refused) => self.deliver(&mut next, append, refused),
            Step::DeliverEffect(epoch, message) => self.deliver_effect(&mut next, epoch, message),
        }
        Some(next)
    }

    fn properties(&self) -> Vec<Property<Fleet>> {
        properties::all()
    }
}
