//! Labels: who could have written some data, who may read it, and where it came from.
//!
//! Labels form a lattice. Data that is made of several others has the [join](Label::join) of their labels: it is as good as the worst of
//! them, and as secret as the most secret.

use std::collections::BTreeSet;
use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Who could have written it, from the best to the worst.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Integrity {
    /// The owner of the session, or an administrator.
    #[default]
    User,
    /// Whoever wrote a file that the owner attached: they chose it, and did not write every word of it.
    Attached,
    /// Whoever published an Agent Skill that is installed: an administrator took it in, and did not write it.
    Publisher,
    /// Another person: the sender of a channel's message who is not its owner.
    Person,
    /// Anybody: a web page, a tool of a server, what a hook was sent.
    World,
}

/// Who may read it, from all to none.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Confidentiality {
    #[default]
    Everybody,
    /// The session; beyond it, whoever a trusted decision names.
    Session,
    /// The session, and the places that it came from.
    Hosts,
    /// Nobody outside.
    Nobody,
}

/// Places that some data came from. More are [any place](SourceSet::ANY) that is not known.
pub const MAX_SOURCES: usize = 12;

/// Longest name of a place, in bytes.
pub const MAX_SOURCE: usize = 120;

/// With this begins the name of a place whose data everybody can have, such as "web:example.org".
pub const PUBLIC: &str = "web:";

/// With this begins the name of an Agent Skill, such as "skill:greet". Whoever has the skill has its text.
pub const SKILL_SOURCE: &str = "skill:";

/// The session itself: its files, what is remembered, what was said.
pub const SESSION_SOURCE: &str = "session";

/// Where data came from, such as "mcp:bank", "host:example.org" and "session".
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct SourceSet(BTreeSet<String>);

impl SourceSet {
    /// Stands for places that nobody remembers one by one. It is none of those that can be named.
    pub const ANY: &'static str = "*";

    pub fn one(source: &str) -> Self {
        let cut = source.floor_char_boundary(MAX_SOURCE);
        Self(BTreeSet::from([source[..cut].to_owned()]))
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn iter(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(String::as_str)
    }

    /// Whether all of it that is not public came from this place.
    pub fn is_all(&self, source: &str) -> bool {
        let is_public = |known: &String| known.starts_with(PUBLIC) || known.starts_with(SKILL_SOURCE);
        self.0.iter().all(|known| known == source || is_public(known))
    }

    fn join(&mut self, other: &Self) {
        self.0.extend(other.0.iter().cloned());
        if self.0.len() > MAX_SOURCES || self.0.contains(Self::ANY) {
            self.0 = BTreeSet::from([Self::ANY.to_owned()]);
        }
    }
}

/// The label of some data. The default is that of a person's own words to kiso.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Label {
    pub integrity: Integrity,
    pub confidentiality: Confidentiality,
    #[serde(skip_serializing_if = "SourceSet::is_empty")]
    pub sources: SourceSet,
}

impl Label {
    /// The data of a session that nobody outside has touched: its files, and what is remembered.
    pub fn session() -> Self {
        Self::of(Integrity::User, Confidentiality::Session, SESSION_SOURCE)
    }

    /// A file that the owner of the session attached.
    pub fn attached() -> Self {
        Self::of(Integrity::Attached, Confidentiality::Session, SESSION_SOURCE)
    }

    /// What an Agent Skill says.
    pub fn of_skill(name: &str) -> Self {
        Self::of(Integrity::Publisher, Confidentiality::Everybody, &format!("{SKILL_SOURCE}{name}"))
    }

    /// What came from outside, and everybody may read.
    pub fn world(source: &str) -> Self {
        Self::of(Integrity::World, Confidentiality::Everybody, source)
    }

    pub fn of(integrity: Integrity, confidentiality: Confidentiality, source: &str) -> Self {
        Self { integrity, confidentiality, sources: SourceSet::one(source) }
    }

    /// The label of data that is made of both.
    pub fn join(&mut self, other: &Self) {
        self.integrity = self.integrity.max(other.integrity);
        self.confidentiality = self.confidentiality.max(other.confidentiality);
        self.sources.join(&other.sources);
    }

    pub fn joined(mut self, other: &Self) -> Self {
        self.join(other);
        self
    }

    /// The label of data that is made of all of these.
    pub fn join_all<'a>(labels: impl IntoIterator<Item = &'a Label>) -> Self {
        labels.into_iter().fold(Self::default(), Self::joined)
    }

    /// Whether data with this label keeps it if data with the other is added.
    pub fn covers(&self, other: &Self) -> bool {
        self.clone().joined(other) == *self
    }

    /// Whether nobody but the owner of the session, or an administrator, could have written it.
    pub fn is_trusted(&self) -> bool {
        self.integrity <= Integrity::User
    }

    /// Whether those who route and plan are shown it: what the user wrote, or handed over to be read.
    pub fn is_shown_to_planners(&self) -> bool {
        self.integrity <= Integrity::Attached
    }

    /// Whether another person or anybody wrote some of it.
    pub fn is_from_outside(&self) -> bool {
        self.integrity >= Integrity::Person
    }

    /// Whether it is no worse than that of a session's own data.
    pub fn is_ordinary(&self) -> bool {
        self.is_trusted() && self.confidentiality <= Confidentiality::Session
    }

    /// Whether it is that of the words of a person to kiso.
    pub fn is_default(&self) -> bool {
        *self == Self::default()
    }

    /// Whether data with this label says nothing to the place that it does not know already, or that everybody may know.
    pub fn is_known_to(&self, place: &str) -> bool {
        self.confidentiality == Confidentiality::Everybody || self.sources.is_all(place)
    }

    /// Whether data with this label may be sent to the place by a decision that is trusted.
    pub fn may_flow_to(&self, place: &str) -> bool {
        self.confidentiality <= Confidentiality::Session
            || self.confidentiality == Confidentiality::Hosts && self.sources.is_all(place)
    }
}

impl Integrity {
    pub fn is_user(&self) -> bool {
        *self == Self::User
    }

    /// Whose words something is, for a person.
    pub fn words(self) -> &'static str {
        match self {
            Self::User => "written by the user",
            Self::Attached => "in a file that the user attached",
            Self::Publisher => "written by the publisher of a skill",
            Self::Person => "written by another person",
            Self::World => "written by anybody",
        }
    }
}

impl fmt::Display for Label {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.integrity.words())?;
        f.write_str(match self.confidentiality {
            Confidentiality::Everybody => ", for everybody",
            Confidentiality::Session => ", for this session",
            Confidentiality::Hosts => ", for the places that it came from",
            Confidentiality::Nobody => ", for nobody outside",
        })?;
        if !self.sources.is_empty() {
            write!(f, " (from {})", self.sources.iter().collect::<Vec<_>>().join(", "))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn label() -> impl Strategy<Value = Label> {
        let integrity = prop_oneof![
            Just(Integrity::User),
            Just(Integrity::Attached),
            Just(Integrity::Publisher),
            Just(Integrity::Person),
            Just(Integrity::World)
        ];
        let confidentiality = prop_oneof![
            Just(Confidentiality::Everybody),
            Just(Confidentiality::Session),
            Just(Confidentiality::Hosts),
            Just(Confidentiality::Nobody)
        ];
        let sources = proptest::collection::btree_set(0_u8..30, 0..10);
        (integrity, confidentiality, sources).prop_map(|(integrity, confidentiality, sources)| {
            let mut all = SourceSet::default();
            sources.iter().for_each(|n| all.join(&SourceSet::one(&format!("host:{n}.example"))));
            Label { integrity, confidentiality, sources: all }
        })
    }

    proptest! {
        #[test]
        fn a_join_is_associative_commutative_and_idempotent(a in label(), b in label(), c in label()) {
            let left = a.clone().joined(&b).joined(&c);
            prop_assert_eq!(&left, &a.clone().joined(&b.clone().joined(&c)));
            prop_assert_eq!(a.clone().joined(&b), b.clone().joined(&a));
            prop_assert_eq!(a.clone().joined(&a), a.clone());
            prop_assert!(left.covers(&a) && left.covers(&c) && a.covers(&Label::default()));
            // Never better than any of its parts, in any way that a rule asks about.
            prop_assert!(left.integrity >= a.integrity && left.confidentiality >= b.confidentiality);
            for place in ["host:1.example", "host:29.example", "mcp:x"] {
                for part in [&a, &b, &c].into_iter().filter(|part| part.confidentiality > Confidentiality::Everybody) {
                    prop_assert!(part.is_known_to(place) || !left.is_known_to(place));
                    prop_assert!(part.may_flow_to(place) || !left.may_flow_to(place));
                }
            }
        }

        #[test]
        fn a_label_is_read_as_it_was_written(a in label()) {
            prop_assert_eq!(serde_json::from_str::<Label>(&serde_json::to_string(&a).unwrap()).unwrap(), a);
        }
    }

    #[test]
    fn what_a_skill_says_may_go_wherever_the_rest_came_from() {
        let bank = Label::of(Integrity::World, Confidentiality::Hosts, "mcp:bank");
        let both = bank.joined(&Label::of_skill("greet"));
        assert!(both.may_flow_to("mcp:bank") && !both.may_flow_to("mcp:mail"));
        assert!(!Label::of_skill("greet").is_trusted() && Label::of_skill("greet").is_known_to("mcp:mail"));
    }

    #[test]
    fn many_places_are_any_place() {
        let all: Vec<_> = (0..=MAX_SOURCES).map(|n| Label::world(&format!("host:{n}"))).collect();
        let label = Label::join_all(&all);
        assert_eq!(label.sources.iter().collect::<Vec<_>>(), [SourceSet::ANY]);
        assert!(!label.joined(&Label::session()).is_known_to("host:1"));
    }
}
