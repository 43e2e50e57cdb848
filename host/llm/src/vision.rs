//! Whether a model takes pictures: as the administrator says, as its server says, as its first refusal tells, or as a test shows.

use super::endpoint::Support;
use super::http::Refusal;
use super::{Image, Request};

/// The pictures of a request that are loaded.
fn pictures(request: &Request) -> impl Iterator<Item = &Image> {
    request.images().filter(|image| image.content.is_some() && !image.picture.is_sound())
}

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
        !self.shows() && pictures(request).any(|image| image.described.is_none())
    }

    /// For the same request without its pictures, if the refusal is about those.
    pub(super) fn without(self, refusal: &Refusal, request: &Request) -> Option<Self> {
        let shown = self.shows() && pictures(request).next().is_some();
        match self {
            _ if !shown => None,
            _ if refusal.is_of_one_picture() => Some(Self::NotThese),
            Self::Tried if refusal.is_of_all_pictures() => Some(Self::Blind),
            _ => None,
        }
    }

    /// The request was answered.
    pub(super) fn answered(&mut self, request: &Request) {
        if *self == Self::Tried && pictures(request).next().is_some() {
            *self = Self::Sees;
        }
    }

    /// Replaces a guess by the result of a test with a picture: a server that leaves pictures out answers all the same.
    pub(super) fn tested(&mut self, sees: bool) {
        if !matches!(self, Self::Fixed | Self::Blind) {
            *self = if sees { Self::Sees } else { Self::Blind };
        }
    }

    /// Takes over the result of a request for those after it.
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
        let image = Image { content: Some("AA==".into()), ..Image::of(&picture) };
        let request = Request::new(Role::Worker, String::new(), String::new());
        Request { turns: vec![crate::Turn::Pictures(vec![image])], ..request }
    }

    /// Rule: an answer after a test that said "blind" does not teach "sees".
    #[test]
    fn a_test_outweighs_answers() {
        let (request, mut vision) = (with_picture(), Vision::new(Support::Probe));
        // The test is a request with a picture, and its answer comes first.
        let mut of_test = vision;
        of_test.answered(&request);
        vision.learn(of_test);
        assert_eq!(vision.known(), Some(true));
        vision.tested(false);
        // Another request was on its way since before the test.
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
