//! How several members share one home, as a model that a checker goes through state by state.
//!
//! ```text
//!  clients ──messages──▶ member that serves ──append: a place and a record──▶ log (one stream)
//!     ▲                    │        │   ▲                                       │
//!     └──202, replies──────┘        │   └────────────answer to the append───────┘
//!                                   └──effect with its epoch──▶ sink        owner: who, epoch, revision (one key)
//! ```
//!
//! One member at a time owns the home, and what it does is in the log before anybody hears of it. The model has these rules of the
//! real members, server and clients, and nothing of how they are kept:
//!
//! - One key says who owns: a member, an epoch that grows with each owner, and a revision. It is changed by compare-and-set. An
//!   owner renews its lease by writing it; a member that has seen no new revision for a whole lease takes over.
//! - The log takes a record only at the place that the request names, which must be its end. A request that is sent twice may be
//!   confirmed or refused the second time ([`Step::Deliver`] has both; a NATS server refuses it). Whoever is refused may look what
//!   stands at that place, or give up at once ([`Step::Look`], [`Step::Hear`]).
//! - A member that takes over reads the log, appends a record of its epoch, and serves when that is in the log. If somebody
//!   appended in between, it reads again. If it reads a newer epoch than its own, it gives up.
//! - A message is accepted, started and replied to by one record each. Between the second and the third its effect leaves for a
//!   sink outside, with the epoch, and only while the lease is good by the owner's own clock. A run that another member had
//!   started is not started again: its reply says that it was interrupted.
//! - An owner may put a copy of everything in place of the log: it appends a record that says so, then sets another key, the base,
//!   by compare-and-set and never back to an older copy, and then has the log forget what lies before. Whoever takes over reads the
//!   base, then the log from there; if that is forgotten meanwhile, it begins with the base again.
//! - A client sends what it has no 202 for to any member that serves, as often as it likes, under the same key.
//!
//! **What can happen at any moment**: a lease passes and another member takes over ([`Step::Suspect`]); a member crashes and stands
//! by; a member does nothing for however long and goes on where it was, as one that was frozen does (it is not its turn, which needs
//! no step); an append or an effect is on its way for however long, or for ever, which is what "lost" means; an answer is lost and
//! the append is sent again, so that two copies are on their way. One that stays down is one that stands by and never has its turn,
//! and an owner that gives the home up is one that crashes.
//!
//! **What is assumed about clocks**: whoever waits for a whole lease sees its end later than the owner, who counts from before it
//! sent its last beat and keeps a margin. In the model: when somebody suspects the owner, the owner's own clock says that its lease
//! has passed. It has to look in order to know, and whatever it has sent before is on its way.
//!
//! **Clients are told at once** what they may be told. Being told later is never worse, so it would only be more states.
//!
//! **What is checked** is in `properties.rs`: what must hold in every state, and what must be reached in some state, so that the
//! first is not true only because nothing happens. What must come about in the end (a message *is* answered) is not checked: it
//! needs a member that stays alive, and the tests with real members show it. Left out besides: pieces of files, commits in several
//! parts, and connections through another member.
//!
//! **How far**: every state within [`Size`]. Crashes, second requests, beats, copies and epochs are counted, because without an end to
//! them there would be no end of states. States that are the same but for the names of members and messages count as one
//! (`symmetry.rs`). Each [`Flaw`] leaves one rule out, and `check.rs` asserts which property that breaks, and that each property
//! can be broken.

mod properties;
mod state;
mod symmetry;

pub use state::{
    Append, Base, Client, Content, Effect, Member, Pending, Rebase, Record, Reply, Role, Sink, Stage, State,
};

use state::insert;
use stateright::{Model, Property};

/// Messages at most; a model may use fewer.
pub const MESSAGES: usize = 2;

/// How much of everything there is.
#[derive(Debug, Clone, Copy)]
pub struct Size {
    pub members: usize,
    pub messages: usize,
    /// How often a member may take over, the first time included.
    pub epochs: u8,
    pub crashes: u8,
    /// How often an append may be sent again.
    pub retries: u8,
    /// How often an owner may renew its lease. Between beats any time may pass.
    pub beats: u8,
    /// How often a copy takes the place of the log.
    pub bases: u8,
}

/// A rule that is left out, to show that it is needed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Flaw {
    /// Who takes over writes the key whatever stands there by now.
    OwnerWithoutCompareAndSet,
    /// The log takes a record wherever its end is.
    NoCompareAndSet,
    /// A client has its 202 when the append is on its way.
    AnswerBeforeAcknowledgement,
    /// Who took over serves what it read, without a record of its epoch.
    NoEpochRecord,
    /// A member that was slow to take over does not mind a newer epoch in the log.
    NewerEpochIgnored,
    /// An append that is sent again has no identity and takes the end of the log as its place.
    RetryTakesNewPlace,
    /// A client's message that is sent again is a new message.
    MessageWithoutKey,
    /// A member that takes over believes what it had itself more than the log.
    KeepsOwnStore,
    /// A copy becomes the base even where a newer one is.
    OlderBase,
    /// Whoever reads the log takes what there is of it.
    GapIgnored,
    /// An effect starts whatever the clock says.
    NoLeaseCheck,
    /// The sink takes what comes, of whichever epoch.
    NoFencing,
    /// A run that another member had started is started again.
    RunsAgain,
}

/// The protocol, as it is or with a flaw.
#[derive(Debug, Clone, Copy)]
pub struct Fleet {
    pub size: Size,
    pub flaw: Option<Flaw>,
}
/// What happens next. The first number is a member.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// Whether the owner hears that its beat arrived.
    Beat(usize, bool),
    /// The owner's lease has passed, and this member has waited for it.
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
    /// What was refused is in the log, and so it counts.
    Look(usize),
    StandBy(usize),
    Crash(usize),
    /// An append arrives; whether one that is there already is refused.
    Deliver(Append, bool),
    /// An effect arrives: epoch and message.
    DeliverEffect(u8, usize),
}

impl Fleet {
    fn is(&self, flaw: Flaw) -> bool {
        self.flaw == Some(flaw)
    }

    /// A message's next record, if there is one to write.
    fn reply_to(&self, member: &Member, message: usize) -> Option<Reply> {
        let (epoch, Stage::Started { epoch: started }) = (member.serves()?, member.store[message]) else { return None };
        let own = started == epoch;
        (!own || member.effects[message] == Effect::Taken).then_some(Reply { epoch, interrupted: !own })
    }

    /// Forgets everything, and stands by.
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
        // A former owner that comes late leaves the newer one alone, and so forgets nothing.
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
        // Its member may have crashed meanwhile, and waits for nothing.
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

    /// What a member that serves can do about a message.
    fn about(&self, state: &State, at: usize, message: usize, steps: &mut Vec<Step>) {
        let member = &state.members[at];
        let Some(epoch) = member.serves() else { return };
        let stage = member.store[message];
        if member.writes() {
            let anew = || self.is(Flaw::MessageWithoutKey) && state.accepted(message) < 2;
            if stage == Stage::Unknown || anew() {
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

    /// What a member can do at all.
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
