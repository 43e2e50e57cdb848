//! All commands by name.

use std::ffi::OsString;

use crate::awk;
use crate::bc;
use crate::checksum;
use crate::chmod;
use crate::cmp;
use crate::column;
use crate::compress;
use crate::date;
use crate::dd;
use crate::df;
use crate::diff;
use crate::du;
use crate::env;
use crate::file;
use crate::find;
use crate::grep;
use crate::iconv;
use crate::identity;
use crate::install;
use crate::jq;
use crate::list;
use crate::openssl;
use crate::patch;
use crate::rg;
use crate::sed;
use crate::small;
use crate::sort;
use crate::split;
use crate::stat;
use crate::tar_command;
use crate::timeout;
use crate::tree;
use crate::which;
use crate::xargs;
use crate::xxd;
use crate::zip_command;

/// The arguments, the command's name first.
pub type Arguments = std::vec::IntoIter<OsString>;

/// One command.
pub struct Command {
    pub name: &'static str,
    pub run: Run,
}

pub enum Run {
    /// From uutils, with the name of its messages.
    Uutils(&'static str, fn(Arguments) -> i32),
    /// Of this crate.
    Own(fn(Vec<String>) -> i32),
}

const fn uutils(name: &'static str, messages: &'static str, main: fn(Arguments) -> i32) -> Command {
    Command { name, run: Run::Uutils(messages, main) }
}

const fn own(name: &'static str, main: fn(Vec<String>) -> i32) -> Command {
    Command { name, run: Run::Own(main) }
}

/// The command of this name.
pub fn find(name: &str) -> Option<&'static Command> {
    COMMANDS.binary_search_by(|command| command.name.cmp(name)).ok().map(|at| &COMMANDS[at])
}

/// Sorted by name.
static COMMANDS: &[Command] = &[
    uutils("[", "test", uu_test::uumain),
    own("arch", identity::arch),
    own("awk", awk::main),
    uutils("b2sum", "b2sum", |arguments| checksum::main(arguments, uu_b2sum::uumain)),
    uutils("base32", "base32", uu_base32::uumain),
    uutils("base64", "base64", uu_base64::uumain),
    uutils("basename", "basename", uu_basename::uumain),
    uutils("basenc", "basenc", uu_basenc::uumain),
    own("bc", bc::main),
    own("bunzip2", compress::main),
    own("bzcat", compress::main),
    own("bzip2", compress::main),
    uutils("cat", "cat", uu_cat::uumain),
    own("chmod", chmod::main),
    uutils("cksum", "cksum", |arguments| checksum::main(arguments, uu_cksum::uumain)),
    own("cmp", cmp::main),
    own("column", column::main),
    uutils("comm", "comm", small::comm),
    uutils("cp", "cp", small::cp),
    uutils("csplit", "csplit", uu_csplit::uumain),
    uutils("cut", "cut", uu_cut::uumain),
    uutils("date", "date", date::main),
    own("dd", dd::main),
    own("df", df::main),
    own("diff", diff::main),
    uutils("dir", "ls", |arguments| list::main(arguments, uu_dir::uumain)),
    uutils("dircolors", "dircolors", uu_dircolors::uumain),
    uutils("dirname", "dirname", uu_dirname::uumain),
    own("du", du::main),
    uutils("echo", "echo", uu_echo::uumain),
    own("egrep", grep::main),
    own("env", env::main),
    uutils("expand", "expand", uu_expand::uumain),
    uutils("expr", "expr", uu_expr::uumain),
    uutils("factor", "factor", uu_factor::uumain),
    uutils("false", "false", uu_false::uumain),
    own("fgrep", grep::main),
    own("file", file::main),
    own("find", find::main),
    uutils("fmt", "fmt", uu_fmt::uumain),
    uutils("fold", "fold", uu_fold::uumain),
    own("gawk", awk::main),
    own("grep", grep::main),
    own("gunzip", compress::main),
    own("gzip", compress::main),
    uutils("head", "head", uu_head::uumain),
    own("hexdump", xxd::hexdump),
    own("hostname", identity::hostname),
    own("iconv", iconv::main),
    own("id", identity::id),
    own("install", install::main),
    uutils("join", "join", uu_join::uumain),
    own("jq", jq::main),
    uutils("link", "link", uu_link::uumain),
    uutils("ln", "ln", uu_ln::uumain),
    uutils("ls", "ls", |arguments| list::main(arguments, uu_ls::uumain)),
    own("mawk", awk::main),
    uutils("md5sum", "md5sum", |arguments| checksum::main(arguments, uu_md5sum::uumain)),
    uutils("mkdir", "mkdir", uu_mkdir::uumain),
    uutils("mktemp", "mktemp", uu_mktemp::uumain),
    uutils("mv", "mv", uu_mv::uumain),
    own("nice", env::nice),
    uutils("nl", "nl", uu_nl::uumain),
    own("nohup", env::nohup),
    uutils("nproc", "nproc", uu_nproc::uumain),
    uutils("numfmt", "numfmt", uu_numfmt::uumain),
    uutils("od", "od", uu_od::uumain),
    own("openssl", openssl::main),
    uutils("paste", "paste", uu_paste::uumain),
    own("patch", patch::main),
    uutils("pathchk", "pathchk", uu_pathchk::uumain),
    uutils("pr", "pr", uu_pr::uumain),
    uutils("printenv", "printenv", uu_printenv::uumain),
    uutils("printf", "printf", uu_printf::uumain),
    uutils("ptx", "ptx", uu_ptx::uumain),
    uutils("pwd", "pwd", uu_pwd::uumain),
    uutils("readlink", "readlink", uu_readlink::uumain),
    uutils("realpath", "realpath", uu_realpath::uumain),
    own("rev", small::rev),
    own("rg", rg::main),
    uutils("rm", "rm", uu_rm::uumain),
    uutils("rmdir", "rmdir", uu_rmdir::uumain),
    own("sed", sed::main),
    uutils("seq", "seq", uu_seq::uumain),
    uutils("sha1sum", "sha1sum", |arguments| checksum::main(arguments, uu_sha1sum::uumain)),
    uutils("sha224sum", "sha224sum", |arguments| checksum::main(arguments, uu_sha224sum::uumain)),
    uutils("sha256sum", "sha256sum", |arguments| checksum::main(arguments, uu_sha256sum::uumain)),
    uutils("sha384sum", "sha384sum", |arguments| checksum::main(arguments, uu_sha384sum::uumain)),
    uutils("sha512sum", "sha512sum", |arguments| checksum::main(arguments, uu_sha512sum::uumain)),
    uutils("shred", "shred", uu_shred::uumain),
    uutils("shuf", "shuf", uu_shuf::uumain),
    uutils("sleep", "sleep", uu_sleep::uumain),
    own("sort", sort::main),
    uutils("split", "split", split::main),
    own("stat", stat::main),
    own("strings", small::strings),
    uutils("sum", "sum", uu_sum::uumain),
    own("tac", small::tac),
    uutils("tail", "tail", uu_tail::uumain),
    own("tar", tar_command::main),
    uutils("tee", "tee", uu_tee::uumain),
    uutils("test", "test", uu_test::uumain),
    own("timeout", timeout::main),
    uutils("touch", "touch", uu_touch::uumain),
    uutils("tr", "tr", uu_tr::uumain),
    own("tree", tree::main),
    uutils("true", "true", uu_true::uumain),
    uutils("truncate", "truncate", uu_truncate::uumain),
    uutils("tsort", "tsort", uu_tsort::uumain),
    uutils("tty", "tty", uu_tty::uumain),
    own("uname", identity::uname),
    uutils("unexpand", "unexpand", uu_unexpand::uumain),
    uutils("uniq", "uniq", uu_uniq::uumain),
    uutils("unlink", "unlink", uu_unlink::uumain),
    own("unxz", compress::main),
    own("unzip", zip_command::unzip),
    uutils("vdir", "ls", list::vdir),
    uutils("wc", "wc", uu_wc::uumain),
    own("which", which::main),
    own("whoami", identity::whoami),
    own("xargs", xargs::main),
    own("xxd", xxd::main),
    own("xz", compress::main),
    own("xzcat", compress::main),
    uutils("yes", "yes", uu_yes::uumain),
    own("zcat", compress::main),
    own("zip", zip_command::zip),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_command_is_found() {
        assert!(COMMANDS.is_sorted_by(|a, b| a.name < b.name));
        assert!(COMMANDS.iter().all(|command| find(command.name).is_some()));
        assert!(find("no-such-command").is_none());
    }
}
