//! What `set` and `shopt` switch.

use serde::{Deserialize, Serialize};

/// One switch. The order is that of the bits in a stored state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flag {
    AllExport,
    ErrExit,
    ErrTrace,
    HashAll,
    NoClobber,
    NoExec,
    NoGlob,
    NoUnset,
    PipeFail,
    Verbose,
    XTrace,
    Monitor,
    Posix,
    DotGlob,
    ExpandAliases,
    ExtGlob,
    FailGlob,
    GlobStar,
    InheritErrExit,
    LastPipe,
    NoCaseGlob,
    NoCaseMatch,
    NullGlob,
}

/// Which builtin switches it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum By {
    Set(Option<char>),
    Shopt,
}

pub const FLAGS: [(Flag, &str, By); 23] = [
    (Flag::AllExport, "allexport", By::Set(Some('a'))),
    (Flag::ErrExit, "errexit", By::Set(Some('e'))),
    (Flag::ErrTrace, "errtrace", By::Set(Some('E'))),
    (Flag::HashAll, "hashall", By::Set(Some('h'))),
    (Flag::Monitor, "monitor", By::Set(Some('m'))),
    (Flag::NoClobber, "noclobber", By::Set(Some('C'))),
    (Flag::NoExec, "noexec", By::Set(Some('n'))),
    (Flag::NoGlob, "noglob", By::Set(Some('f'))),
    (Flag::NoUnset, "nounset", By::Set(Some('u'))),
    (Flag::PipeFail, "pipefail", By::Set(None)),
    (Flag::Posix, "posix", By::Set(None)),
    (Flag::Verbose, "verbose", By::Set(Some('v'))),
    (Flag::XTrace, "xtrace", By::Set(Some('x'))),
    (Flag::DotGlob, "dotglob", By::Shopt),
    (Flag::ExpandAliases, "expand_aliases", By::Shopt),
    (Flag::ExtGlob, "extglob", By::Shopt),
    (Flag::FailGlob, "failglob", By::Shopt),
    (Flag::GlobStar, "globstar", By::Shopt),
    (Flag::InheritErrExit, "inherit_errexit", By::Shopt),
    (Flag::LastPipe, "lastpipe", By::Shopt),
    (Flag::NoCaseGlob, "nocaseglob", By::Shopt),
    (Flag::NoCaseMatch, "nocasematch", By::Shopt),
    (Flag::NullGlob, "nullglob", By::Shopt),
];

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Options(u32);

impl Options {
    pub fn on(self, flag: Flag) -> bool {
        self.0 & 1 << flag as u32 != 0
    }

    pub fn switch(&mut self, flag: Flag, on: bool) {
        let bit = 1 << flag as u32;
        self.0 = if on { self.0 | bit } else { self.0 & !bit };
    }

    /// `$-`.
    pub fn letters(self) -> String {
        let letter = |&(flag, _, by): &(Flag, &str, By)| match by {
            By::Set(letter) if self.on(flag) => letter,
            _ => None,
        };
        FLAGS.iter().filter_map(letter).collect()
    }
}

/// The switch of `set -o NAME` or `shopt NAME`.
pub fn named(name: &str, shopt: bool) -> Option<Flag> {
    let fits = |&&(_, known, by): &&(Flag, &str, By)| known == name && (by == By::Shopt) == shopt;
    FLAGS.iter().find(fits).map(|(flag, ..)| *flag)
}

/// The switch of `set -LETTER`.
pub fn lettered(letter: char) -> Option<Flag> {
    FLAGS.iter().find(|(_, _, by)| *by == By::Set(Some(letter))).map(|(flag, ..)| *flag)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn switches_are_independent() {
        let mut options = Options::default();
        for (flag, ..) in FLAGS {
            options.switch(flag, true);
        }
        options.switch(Flag::ErrExit, false);
        assert!(FLAGS.iter().all(|&(flag, ..)| options.on(flag) == (flag != Flag::ErrExit)));
        assert_eq!(options.letters(), "aEhmCnfuvx");
        assert_eq!(lettered('u'), named("nounset", false));
        assert_eq!(named("nullglob", false), None);
    }
}
