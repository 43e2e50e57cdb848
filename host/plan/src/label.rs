//! Labels of data: who could have written it, who may read it, and where it came from.
//!
//! Labels form a lattice. Combined data has the [join](Label::join) of the labels of its parts: the integrity of the least
//! trusted part, and the confidentiality of the most secret one.

use std::collections::BTreeSet;
use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Who could have written it, from most to least trusted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Integrity {
    /// The owner of the session, or an administrator.
    #[default]
    User,
    /// The author of a file that the owner attached: the owner chose the file, but did not write every word of it.
    Attached,
    /// The publisher of an installed Agent Skill: an administrator installed it, but did not write it.
    Publisher,
    /// Another person: the sender of a channel's message who is not its owner.
    Person,
    /// Anybody: a web page, a tool of a server, the data of a hook.
    World,
}

/// Who may read it, from everybody to nobody.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Confidentiality {
    #[default]
    Everybody,
    /// The session, and recipients that a trusted decision names.
    Session,
    /// The session, and the sources that it came from.
    Hosts,
    /// Nobody outside.
    Nobody,
}

/// Maximum sources of a label. More become [`SourceSet::ANY`].
pub const MAX_SOURCES: usize = 12;

/// Maximum bytes of a source's name.
pub const MAX_SOURCE: usize = 120;

/// Prefix of sources with public data, such as "web:example.org".
pub const PUBLIC: &str = "web:";

/// Prefix of Agent Skills, such as "skill:greet". Everybody who has the skill has its text.
pub const SKILL_SOURCE: &str = "skill:";

/// The session itself: its files, memory and messages.
pub const SESSION_SOURCE: &str = "session";

/// The sources of data, such as "mcp:bank", "host:example.org" and "session".
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct SourceSet(BTreeSet<String>);

impl SourceSet {
    /// Stands for too many sources. No named source equals it.
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

    /// Whether all of it that is not public came from this source.
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

/// The label of some data. The default is the label of a person's own message to kiso.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Label {
    pub integrity: Integrity,
    pub confidentiality: Confidentiality,
    #[serde(skip_serializing_if = "SourceSet::is_empty")]
    pub sources: SourceSet,
}

impl Label {
    /// The label of a session's own data: its files and memory.
    pub fn session() -> Self {
        Self::new(Integrity::User, Confidentiality::Session, SESSION_SOURCE)
    }

    /// The label of a file that the owner of the session attached.
    pub fn attached() -> Self {
        Self::new(Integrity::Attached, Confidentiality::Session, SESSION_SOURCE)
    }

    /// The label of an Agent Skill's text.
    pub fn of_skill(name: &str) -> Self {
        Self::new(Integrity::Publisher, Confidentiality::Everybody, &format!("{SKILL_SOURCE}{name}"))
    }

    /// The label of public data from outside.
    pub fn world(source: &str) -> Self {
        Self::new(Integrity::World, Confidentiality::Everybody, source)
    }

    pub fn new(integrity: Integrity, confidentiality: Confidentiality, source: &str) -> Self {
        Self { integrity, confidentiality, sources: SourceSet::one(source) }
    }

    /// Changes it to the label of data that is made of both.
    pub fn join(&mut self, other: &Self) {
        self.integrity = self.integrity.max(other.integrity);
        self.confidentiality = self.confidentiality.max(other.confidentiality);
        self.sources.join(&other.sources);
    }

    pub fn joined(mut self, other: &Self) -> Self {
        self.join(other);
        self
    }

    /// Returns the label of data that is made of all of these.
    pub fn join_all<'a>(labels: impl IntoIterator<Item = &'a Label>) -> Self {
        labels.into_iter().fold(Self::default(), Self::joined)
    }

    /// Whether this label stays the same if data with the other one is added.
    pub fn covers(&self, other: &Self) -> bool {
        self.clone().joined(other) == *self
    }

    /// Whether only the owner of the session, or an administrator, could have written it.
    pub fn is_trusted(&self) -> bool {
        self.integrity <= Integrity::User
    }

    /// Whether the router and the planner may see it: the user wrote it, or attached it to be read.
    pub fn is_shown_to_planners(&self) -> bool {
        self.integrity <= Integrity::Attached
    }

    /// Whether another person, or anybody, wrote some of it.
    pub fn is_from_outside(&self) -> bool {
        self.integrity >= Integrity::Person
    }

    /// Whether it is at least as trusted and as public as a session's own data.
    pub fn is_ordinary(&self) -> bool {
        self.is_trusted() && self.confidentiality <= Confidentiality::Session
    }

    /// Whether it is the label of a person's own message to kiso.
    pub fn is_default(&self) -> bool {
        *self == Self::default()
    }

    /// Whether data with this label contains nothing new for this place: everything came from there, or is public.
    pub fn is_known_to(&self, place: &str) -> bool {
        self.confidentiality == Confidentiality::Everybody || self.sources.is_all(place)
    }

    /// Whether data with this label may be sent to this place by a trusted decision.
    pub fn may_flow_to(&self, place: &str) -> bool {
        self.confidentiality <= Confidentiality::Session
            || self.confidentiality == Confidentiality::Hosts && self.sources.is_all(place)
    }
}

impl Integrity {
    pub fn is_user(&self) -> bool {
        *self == Self::User
    }

    /// Describes the author for a person.
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
            // Never more trusted or more public than one of its parts, for any check that a rule makes.
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
        let bank = Label::new(Integrity::World, Confidentiality::Hosts, "mcp:bank");
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
