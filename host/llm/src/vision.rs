//! Whether a model takes pictures: as the administrator says, as its server says, or as its first refusal tells.

use super::Request;
use super::endpoint::Support;
use super::http::Refusal;

/// The state of one model's endpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Vision {
    /// Pictures are sent, and nobody knows yet.
    Tried,
    Sees,
    /// The administrator said so: a refusal is passed on.
    Fixed,
    Blind,
    /// It sees, and refused one of the pictures of this request.
    NotThese,
}

impl Vision {
    pub(super) fn new(said: Support) -> Self {
        match said {
            Support::Probe => Self::Tried,
            Support::Yes => Self::Fixed,
            Support::No => Self::Blind,
        }
    }

    /// Whether pictures are sent as such.
    pub(super) fn shows(self) -> bool {
        matches!(self, Self::Tried | Self::Sees | Self::Fixed)
    }

    pub(super) fn known(self) -> Option<bool> {
        match self {
            Self::Tried => None,
            Self::Sees | Self::Fixed | Self::NotThese => Some(true),
            Self::Blind => Some(false),
        }
    }

    /// Whether the request has pictures that are neither shown nor described.
    pub(super) fn is_blind_for(self, request: &Request) -> bool {
        !self.shows() && request.images().any(|image| image.content.is_some() && image.described.is_none())
    }

    /// For the same request without its pictures, if the refusal is about those.
    pub(super) fn without(self, refusal: &Refusal, request: &Request) -> Option<Self> {
        let shown = self.shows() && request.images().any(|image| image.content.is_some());
        match self {
            _ if !shown => None,
            _ if refusal.is_of_one_picture() => Some(Self::NotThese),
            Self::Tried if refusal.is_of_all_pictures() => Some(Self::Blind),
            _ => None,
        }
    }

    /// The request was answered.
    pub(super) fn answered(&mut self, request: &Request) {
        if *self == Self::Tried && request.images().any(|image| image.content.is_some()) {
            *self = Self::Sees;
        }
    }

    /// What a request has shown, for those after it.
    pub(super) fn learn(&mut self, other: Self) {
        if *self == Self::Tried && other != Self::NotThese {
            *self = other;
        }
    }
}
