//! Conditions for every state, and conditions that some state must reach.

use crate::{Content, Effect, Fleet, MESSAGES, Member, Reply, Role, Stage, State};
use stateright::Property;

pub(crate) fn all() -> Vec<Property<Fleet>> {
    let (always, sometimes) = (Property::<Fleet>::always, Property::<Fleet>::sometimes);
    vec![
        always("each epoch is one member's", |_, state| {
            let log = &state.log;
            log.iter().all(|a| log.iter().all(|b| a.epoch != b.epoch || a.member == b.member))
        }),
        always("epochs in the log never go back", |_, state| {
            state.log.windows(2).all(|two| two[0].epoch <= two[1].epoch)
        }),
        always("a commit is in the log once", |_, state| {
            let is_there = |at: usize| state.log[..at].contains(&state.log[at]);
            (0..state.log.len()).all(|at| message_of(state.log[at].content).is_none() || !is_there(at))
        }),
        always("what has a 202 is in the log", |_, state| {
            each().all(|message| !state.clients[message].has_202 || stages(state, message).any(|_| true))
        }),
        always("the newest owner has every message with a 202", |_, state| {
            newest(state).all(|member| {
                each().all(|message| !state.clients[message].has_202 || member.store[message] != Stage::Unknown)
            })
        }),
        always("a reply that was told is in the log", |_, state| {
            received_replies(state)
                .all(|(message, reply)| stages(state, message).any(|stage| stage == Stage::Replied(reply)))
        }),
        always("the newest owner has every reply that was told", |_, state| {
            newest(state).all(|member| {
                received_replies(state).all(|(message, reply)| member.store[message] == Stage::Replied(reply))
            })
        }),
        always("nobody is told two replies", |_, state| each().all(|message| !state.clients[message].another_reply)),
        always("a message has one reply in the log", |_, state| {
            let replies = |message| stages(state, message).filter(|stage| matches!(stage, Stage::Replied(_))).count();
            each().all(|message| replies(message) <= 1)
        }),
        always("no message has its effect twice", |_, state| state.sink.taken.iter().all(|times| *times <= 1)),
        always("the sink takes no effect of an epoch before one it has seen", |_, state| !state.sink.took_old),
        always("an effect starts at the owner", |_, state| !state.started_late),
        always("the base is the log before it, and nothing else of it is forgotten", |_, state| {
            let before = state.replay(0..state.base.place, Default::default());
            state.base.store == before && state.first <= state.base.place
        }),
        sometimes("two members serve and each believes that it owns", |_, state| {
            state.members.iter().filter(|member| member.serves().is_some()).count() >= 2
        }),
        sometimes("an append of a former owner is refused", |_, state| {
            former(state).any(|member| member.serves().is_some() && answer(member) == Some(false))
        }),
        sometimes("an append of a former owner is acknowledged, from before its successor's record", |_, state| {
            former(state).any(|member| member.serves().is_some() && answer(member) == Some(true))
        }),
        sometimes("a former owner appends between what its successor reads and announces", |_, state| {
            let announces = |member: &Member| matches!(member.role, Role::Announces { .. });
            state.members.iter().any(|member| {
                announces(member)
                    && answer(member) == Some(false)
                    && state.log.last().is_some_and(|last| Some(last.epoch) < member.role.epoch())
            })
        }),
        sometimes("a member that was slow to take over finds a newer epoch in the log", |_, state| {
            let newest = state.log.last().map(|record| record.epoch);
            state.members.iter().any(|member| matches!(member.role, Role::TakesOver { epoch } if newest > Some(epoch)))
        }),
        sometimes("who suspects comes too late, because the owner has beaten", |_, state| {
            let late =
                |member: &Member| matches!(member.role, Role::Suspects { revision, .. } if revision != state.revision);
            state.members.iter().any(late) && newest(state).any(|owner| !owner.lease_passed)
        }),
        sometimes("an append is in the log, and another copy is on its way", |_, state| {
            state.appends.iter().any(|append| state.log.get(append.place) == Some(&append.record))
        }),
        sometimes("an append arrives although its member is gone", |_, state| {
            state.log.last().is_some_and(|last| {
                last.content != Content::Epoch
                    && last.epoch == state.epoch
                    && state.members[last.member].role.epoch().is_none()
            })
        }),
        sometimes("an effect of a former owner is tried and refused", |_, state| {
            former(state).any(|member| member.serves().is_some() && member.effects.contains(&Effect::Refused))
        }),
        sometimes("a takeover finds a message with a 202 that nobody has started", |_, state| {
            newest(state).any(|owner| {
                each().any(|message| {
                    let is_old = state
                        .log
                        .iter()
                        .any(|record| record.epoch < state.epoch && message_of(record.content) == Some(message));
                    is_old && state.clients[message].has_202 && owner.store[message] == Stage::Accepted
                })
            })
        }),
        sometimes("a takeover finds a run in the middle, and its reply says so", |_, state| {
            received_replies(state).any(|(message, reply)| reply.interrupted && state.sink.taken[message] == 1)
        }),
        sometimes("the log is forgotten under one who takes over", |_, state| {
            let reads = |member: &Member| matches!(member.role, Role::Reads { .. } | Role::Announces { .. });
            state.members.iter().any(|member| reads(member) && member.place < state.first)
        }),
        sometimes("a former owner comes with an older base", |_, state| {
            former(state)
                .any(|member| member.rebase.is_some_and(|rebase| !rebase.is_set && rebase.place < state.base.place))
        }),
        sometimes("everything is answered, the last of it by another owner", |fleet, state| {
            let size = fleet.size;
            let done = |message: usize| state.clients[message].reply.filter(|reply| !reply.interrupted);
            let epochs: Vec<u8> = (0..size.messages).filter_map(done).map(|reply| reply.epoch).collect();
            epochs.len() == size.messages && epochs.iter().any(|epoch| *epoch >= 2)
        }),
    ]
}

fn each() -> std::ops::Range<usize> {
    0..MESSAGES
}

/// The message that a record is about.
fn message_of(content: Content) -> Option<usize> {
    if let Content::Message(message, _) = content { Some(message) } else { None }
}

/// The stages of a message in the log, in order.
fn stages(state: &State, message: usize) -> impl Iterator<Item = Stage> {
    state.log.iter().filter_map(move |record| match record.content {
        Content::Message(other, stage) if other == message => Some(stage),
        _ => None,
    })
}

/// Replies that clients have received.
fn received_replies(state: &State) -> impl Iterator<Item = (usize, Reply)> {
    each().filter_map(|message| Some((message, state.clients[message].reply?)))
}

/// The owner by the key, if it serves.
fn newest(state: &State) -> impl Iterator<Item = &Member> {
    state.members.iter().filter(|member| member.serves() == Some(state.epoch))
}

/// Members that believe to be the owner, but are not any more.
fn former(state: &State) -> impl Iterator<Item = &Member> {
    state.members.iter().filter(|member| member.role.epoch().is_some_and(|epoch| epoch < state.epoch))
}

fn answer(member: &Member) -> Option<bool> {
    member.pending.and_then(|pending| pending.answer)
}
