//! Whether a model accepts pictures: according to the administrator, its server, its first refusal, or a test.

use super::endpoint::Support;
use super::http::Refusal;
use super::{Image, Request};

/// Returns the loaded pictures of a request.
fn pictures(request: &Request) -> impl Iterator<Item = &Image> {
    request.images().filter(|image| image.content.is_some() && !image.picture.is_sound())
}

/// The state of one model's endpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Vision {
    /// Unknown; pictures are sent.
    Tried,
    Sees,
    /// Declared by the administrator: a refusal is passed on.
    Fixed,
    Blind,
    /// It accepts pictures, but refused one of this request.
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

    /// Whether pictures are sent.
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

    /// Whether the request has pictures that are neither sent nor described.
    pub(super) fn is_blind_for(self, request: &Request) -> bool {
        !self.shows() && pictures(request).any(|image| image.described.is_none())
    }

    /// Returns the state for the same request without its pictures, if the refusal is about them.
    pub(super) fn without(self, refusal: &Refusal, request: &Request) -> Option<Self> {
        let shown = self.shows() && pictures(request).next().is_some();
        match self {
            _ if !shown => None,
            _ if refusal.is_of_one_picture() => Some(Self::NotThese),
            Self::Tried if refusal.is_of_all_pictures() => Some(Self::Blind),
            _ => None,
        }
    }

    /// Records that the request was answered.
    pub(super) fn answered(&mut self, request: &Request) {
        if *self == Self::Tried && pictures(request).next().is_some() {
            *self = Self::Sees;
        }
    }

    /// Replaces a guess by the result of a test with a picture: a server that ignores pictures answers, too.
    pub(super) fn tested(&mut self, sees: bool) {
        if !matches!(self, Self::Fixed | Self::Blind) {
            *self = if sees { Self::Sees } else { Self::Blind };
        }
    }

    /// Adopts the result of a request for later ones.
    pub(super) fn learn(&mut self, other: Self) {
        if *self == Self::Tried && other != Self::NotThese {
            *self = other;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kiso_base::role::Role;
    use kiso_plan::picture::Picture;

    fn with_picture() -> Request {
        let picture = Picture {
            name: "a.png".to_owned(),
            digest: String::new(),
            media_type: "image/png".to_owned(),
            width: 1,
            height: 1,
        };
        let image = Image { content: Some("AA==".into()), ..Image::from_picture(&picture) };
        let request = Request::new(Role::Worker, String::new(), String::new());
        Request { turns: vec![crate::Turn::Pictures(vec![image])], ..request }
    }

    /// Rule: an answer after a test with the result "blind" does not change it to "sees".
    #[test]
    fn a_test_outweighs_answers() {
        let (request, mut vision) = (with_picture(), Vision::new(Support::Probe));
        // The test is a request with a picture, and its answer comes first.
        let mut of_test = vision;
        of_test.answered(&request);
        vision.learn(of_test);
        assert_eq!(vision.known(), Some(true));
        vision.tested(false);
        // Another request began before the test.
        vision.learn(of_test);
        let mut later = vision;
        later.answered(&request);
        vision.learn(later);
        assert_eq!((vision.known(), vision.shows()), (Some(false), false));

        for (said, sees) in [(Support::Yes, true), (Support::No, false)] {
            let mut vision = Vision::new(said);
            vision.tested(true);
            assert_eq!(vision.known(), Some(sees), "the configuration decides");
        }
    }
}
