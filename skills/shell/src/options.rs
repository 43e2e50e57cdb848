//! The options of `set` and `shopt`.

use serde::{Deserialize, Serialize};

/// Which builtin switches it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum By {
    /// With this letter too.
    Set(Option<char>),
    Shopt,
}

macro_rules! flags {
    ($($flag:ident $name:literal $by:expr, $on:literal;)*) => {
        /// One switch. The order is that of the bits in a stored state.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Flag { $($flag),* }

        /// Each with its name and whether it is on in a fresh shell, in the order in which they are listed.
        pub const FLAGS: &[(Flag, &str, By, bool)] = &[$((Flag::$flag, $name, $by, $on)),*];
    };
}

// All that bash knows, so that a script which saves and restores them runs. docs/shell.md says which change something.
flags! {
    AllExport "allexport" By::Set(Some('a')), false;
    BraceExpand "braceexpand" By::Set(Some('B')), true;
    Emacs "emacs" By::Set(None), false;
    ErrExit "errexit" By::Set(Some('e')), false;
    ErrTrace "errtrace" By::Set(Some('E')), false;
    FuncTrace "functrace" By::Set(Some('T')), false;
    HashAll "hashall" By::Set(Some('h')), true;
    HistExpand "histexpand" By::Set(Some('H')), false;
    History "history" By::Set(None), false;
    IgnoreEof "ignoreeof" By::Set(None), false;
    InteractiveComments "interactive-comments" By::Set(None), true;
    Keyword "keyword" By::Set(Some('k')), false;
    Monitor "monitor" By::Set(Some('m')), false;
    NoClobber "noclobber" By::Set(Some('C')), false;
    NoExec "noexec" By::Set(Some('n')), false;
    NoGlob "noglob" By::Set(Some('f')), false;
    NoLog "nolog" By::Set(None), false;
    Notify "notify" By::Set(Some('b')), false;
    NoUnset "nounset" By::Set(Some('u')), false;
    OneCommand "onecmd" By::Set(Some('t')), false;
    Physical "physical" By::Set(Some('P')), false;
    PipeFail "pipefail" By::Set(None), false;
    Posix "posix" By::Set(None), false;
    Privileged "privileged" By::Set(Some('p')), false;
    Verbose "verbose" By::Set(Some('v')), false;
    Vi "vi" By::Set(None), false;
    XTrace "xtrace" By::Set(Some('x')), false;
    AutoCd "autocd" By::Shopt, false;
    AssocExpandOnce "assoc_expand_once" By::Shopt, false;
    CdableVariables "cdable_vars" By::Shopt, false;
    CdSpell "cdspell" By::Shopt, false;
    CheckHash "checkhash" By::Shopt, false;
    CheckJobs "checkjobs" By::Shopt, false;
    CheckWindowSize "checkwinsize" By::Shopt, true;
    CommandHistory "cmdhist" By::Shopt, true;
    Compat31 "compat31" By::Shopt, false;
    Compat32 "compat32" By::Shopt, false;
    Compat40 "compat40" By::Shopt, false;
    Compat41 "compat41" By::Shopt, false;
    Compat42 "compat42" By::Shopt, false;
    Compat43 "compat43" By::Shopt, false;
    Compat44 "compat44" By::Shopt, false;
    CompleteFullquote "complete_fullquote" By::Shopt, true;
    DirectoryExpand "direxpand" By::Shopt, false;
    DirectorySpell "dirspell" By::Shopt, false;
    DotGlob "dotglob" By::Shopt, false;
    ExecFail "execfail" By::Shopt, false;
    ExpandAliases "expand_aliases" By::Shopt, false;
    ExtDebug "extdebug" By::Shopt, false;
    ExtGlob "extglob" By::Shopt, true;
    ExtQuote "extquote" By::Shopt, true;
    FailGlob "failglob" By::Shopt, false;
    ForceFignore "force_fignore" By::Shopt, true;
    GlobAsciiRanges "globasciiranges" By::Shopt, true;
    GlobSkipDots "globskipdots" By::Shopt, true;
    GlobStar "globstar" By::Shopt, false;
    GnuErrfmt "gnu_errfmt" By::Shopt, false;
    HistoryAppend "histappend" By::Shopt, false;
    HistoryReedit "histreedit" By::Shopt, false;
    HistoryVerify "histverify" By::Shopt, false;
    HostComplete "hostcomplete" By::Shopt, true;
    HangUpOnExit "huponexit" By::Shopt, false;
    InheritErrExit "inherit_errexit" By::Shopt, false;
    ShoptInteractiveComments "interactive_comments" By::Shopt, true;
    LastPipe "lastpipe" By::Shopt, false;
    LiteralHistory "lithist" By::Shopt, false;
    LocalInherit "localvar_inherit" By::Shopt, false;
    LocalUnset "localvar_unset" By::Shopt, false;
    LoginShell "login_shell" By::Shopt, false;
    MailWarn "mailwarn" By::Shopt, false;
    NoEmptyCmdCompletion "no_empty_cmd_completion" By::Shopt, false;
    NoCaseGlob "nocaseglob" By::Shopt, false;
    NoCaseMatch "nocasematch" By::Shopt, false;
    NoexpandTranslation "noexpand_translation" By::Shopt, false;
    NullGlob "nullglob" By::Shopt, false;
    PatternReplacement "patsub_replacement" By::Shopt, true;
    ProgrammableCompletion "progcomp" By::Shopt, true;
    CompletionAlias "progcomp_alias" By::Shopt, false;
    PromptVariables "promptvars" By::Shopt, true;
    RestrictedShell "restricted_shell" By::Shopt, false;
    ShiftVerbose "shift_verbose" By::Shopt, false;
    SourcePath "sourcepath" By::Shopt, true;
    VarredirClose "varredir_close" By::Shopt, false;
    XpgEcho "xpg_echo" By::Shopt, false;
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Options(u128);

impl Default for Options {
    fn default() -> Options {
        let mut options = Options(0);
        for &(flag, _, _, on) in FLAGS {
            options.switch(flag, on);
        }
        options
    }
}

impl Options {
    pub fn on(self, flag: Flag) -> bool {
        self.0 & 1 << flag as u32 != 0
    }

    pub fn switch(&mut self, flag: Flag, on: bool) {
        let bit = 1 << flag as u32;
        self.0 = if on { self.0 | bit } else { self.0 & !bit };
        match flag {
            // There is one line editor at most.
            Flag::Vi if on => self.switch(Flag::Emacs, false),
            Flag::Emacs if on => self.switch(Flag::Vi, false),
            // bash lists it on both sides.
            Flag::InteractiveComments | Flag::ShoptInteractiveComments => {
                for twin in [Flag::InteractiveComments, Flag::ShoptInteractiveComments] {
                    let bit = 1 << twin as u32;
                    self.0 = if on { self.0 | bit } else { self.0 & !bit };
                }
            }
            _ => {}
        }
    }

    /// `$-`, without the letters that say how the shell was started.
    pub fn letters(self) -> String {
        let letter = |&(flag, _, by, _): &(Flag, &str, By, bool)| match by {
            By::Set(letter) if self.on(flag) => letter,
            _ => None,
        };
        let mut letters: Vec<char> = FLAGS.iter().filter_map(letter).collect();
        // As bash orders them: small letters first.
        letters.sort_unstable_by_key(|letter| (letter.is_ascii_uppercase(), *letter));
        letters.into_iter().collect()
    }

    /// `$SHELLOPTS` and `$BASHOPTS`.
    pub fn names(self, shopt: bool) -> String {
        let on = FLAGS.iter().filter(|(flag, _, by, _)| self.on(*flag) && (*by == By::Shopt) == shopt);
        on.map(|(_, name, ..)| *name).collect::<Vec<_>>().join(":")
    }
}

/// The switch of `set -o NAME` or `shopt NAME`.
pub fn named(name: &str, shopt: bool) -> Option<Flag> {
    let fits = |&&(_, known, by, _): &&(Flag, &str, By, bool)| known == name && (by == By::Shopt) == shopt;
    FLAGS.iter().find(fits).map(|(flag, ..)| *flag)
}

/// The switch of `set -LETTER`.
pub fn lettered(letter: char) -> Option<Flag> {
    FLAGS.iter().find(|(_, _, by, _)| *by == By::Set(Some(letter))).map(|(flag, ..)| *flag)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn switches_are_independent() {
        let fresh = Options::default();
        assert_eq!(fresh.letters(), "hB");
        for &(flag, name, by, on) in FLAGS {
            let mut options = fresh;
            options.switch(flag, !on);
            let changed = FLAGS.iter().filter(|(flag, ..)| options.on(*flag) != fresh.on(*flag)).count();
            assert_eq!(changed, if name.starts_with("interactive") { 2 } else { 1 }, "{name}");
            assert_eq!(named(name, by == By::Shopt), Some(flag));
        }
        assert_eq!(lettered('u'), named("nounset", false));
        assert_eq!(named("nullglob", false), None);
        assert!(FLAGS.len() < 128);
    }
}
