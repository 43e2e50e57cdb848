//! Finds states that differ only in the names of members and messages, so that the checker visits one of them.

use crate::{Append, Content, MESSAGES, Record, State};
use stateright::Representative;

impl Representative for State {
    /// Sorts members by their state, and messages by their order in the log.
    fn representative(&self) -> State {
        let mut members: Vec<usize> = (0..self.members.len()).collect();
        members.sort_by_key(|at| (&self.members[*at], self.owner == Some(*at), self.last_record_of(*at)));
        let first = self.log.iter().find_map(|record| match record.content {
            Content::Message(message, _) => Some(message),
            Content::Epoch | Content::Base => None,
        });
        let messages: Vec<usize> = match first {
            Some(first) => std::iter::once(first).chain((0..MESSAGES).filter(|other| *other != first)).collect(),
            None => (0..MESSAGES).collect(),
        };
        self.renamed(&members, &messages)
    }
}

impl State {
    fn last_record_of(&self, member: usize) -> Option<usize> {
        self.log.iter().rposition(|record| record.member == member)
    }

    /// The same state with other names: `members[0]` becomes 0, and so on.
    fn renamed(&self, members: &[usize], messages: &[usize]) -> State {
        let place = |names: &[usize], old: usize| names.iter().position(|name| *name == old).unwrap_or(old);
        let record = |old: Record| Record {
            member: place(members, old.member),
            content: match old.content {
                Content::Epoch | Content::Base => old.content,
                Content::Message(message, stage) => Content::Message(place(messages, message), stage),
            },
            ..old
        };
        let append = |old: Append| Append { record: record(old.record), ..old };
        let mut new = self.clone();
        new.owner = self.owner.map(|owner| place(members, owner));
        new.log.iter_mut().for_each(|old| *old = record(*old));
        new.appends.iter_mut().for_each(|old| *old = append(*old));
        new.appends.sort_unstable();
        new.effects.iter_mut().for_each(|(_, message)| *message = place(messages, *message));
        new.effects.sort_unstable();
        for (member, old) in new.members.iter_mut().zip(members) {
            member.clone_from(&self.members[*old]);
            if let Some(pending) = &mut member.pending {
                pending.append = append(pending.append);
            }
            let (store, effects) = (member.store, member.effects);
            for (at, message) in messages.iter().enumerate() {
                (member.store[at], member.effects[at]) = (store[*message], effects[*message]);
            }
        }
        for (at, message) in messages.iter().enumerate() {
            new.clients[at] = self.clients[*message];
            new.sink.taken[at] = self.sink.taken[*message];
            new.base.store[at] = self.base.store[*message];
        }
        new
    }
}
