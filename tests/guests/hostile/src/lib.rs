//! Attacks of a skill. One component whose `mode` selects the behaviour; each variant of [`Mode`] says what it attacks and what
//! must stop it.
//!
//! The flooding modes stop at the first refusal with a failure of code "refused", so that a test can distinguish a limit that
//! ended the call from one that was only an error for the guest. With `stubborn` they ignore refusals and continue, which the
//! host must end, too. The asserting modes panic when a forbidden action succeeds; a call that returns a reply has passed its
//! checks.

use kiso_sdk::{Call, Failure, Reply, Skill};

mod burn;
mod disk;
mod escape;
mod host;
mod race;
mod speech;
mod walls;

#[allow(missing_docs)]
mod wasi {
    wit_bindgen::generate!({
        path: "../../../wit/since_v0_1",
        inline: "
            package test:hostile;
            world raw {
                import wasi:clocks/monotonic-clock@0.2.12;
                import wasi:filesystem/preopens@0.2.12;
                import wasi:filesystem/types@0.2.12;
                import wasi:http/types@0.2.12;
                import wasi:random/random@0.2.12;
            }
        ",
        world: "test:hostile/raw",
        generate_all,
    });
    pub use wasi::*;
}

#[derive(serde::Deserialize)]
struct Args {
    mode: Mode,
    /// The amount, in the unit of the mode.
    amount: Option<u64>,
    /// A path, for the modes that take one.
    path: Option<String>,
    #[serde(default)]
    stubborn: bool,
}

#[derive(serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Mode {
    /// Spins and never calls the host. Limit: the deadline, by epochs.
    Loop,
    /// Awaits an hour inside one host call, where no epoch reaches it. Limit: the deadline.
    Sleep,
    /// Sleeps `amount` milliseconds (default 100) and replies. Limit: none, unless the deadline is shorter.
    Slow,
    /// Allocates and touches every page. Limit: memory.
    Allocate,
    /// Grows its memory and touches nothing, so that resident memory stays small. Limit: memory.
    Grow,
    /// Calls itself without end. Limit: the stack of wasm.
    Recurse,
    /// The same with large frames, which Rust keeps in linear memory. Error: a trap (a memory access out of bounds).
    RecurseFrames,
    /// Reads the clock without end. Limit: host calls (or the deadline, where they are not counted).
    HostCalls,
    /// Makes host resources that it never drops: the host's memory grows, not the guest's. Limit: resources or host calls.
    Pollables,
    /// Fills header tables in the host's memory. Limit: resources, host calls, or a size that the host refuses.
    Fields,
    /// Asks for `amount` random bytes (default 2^40) at once. The host must not allocate them. Limit: a trap or memory.
    Random,
    /// Asks to read 2^40 bytes of a file at once. The host must answer with what there is; replies.
    HugeRead,

    /// Writes one file without end. Limit: bytes written, per call or session.
    Write,
    /// Makes a file of 1 TiB by setting its length. Limit: bytes written.
    SparseLength,
    /// Writes a byte 1 TiB into a file. Limit: bytes written, or the file's size.
    SparseOffset,
    /// Appends to one file without end. Limit: bytes written.
    Append,
    /// Writes, truncates and writes again without end: wears the disk though the file stays small. Limit: bytes
    /// written, or host calls.
    Rewrite,
    /// Makes empty files without end: no bytes, but inodes. Limit: files, or host calls.
    Files,
    /// Makes directories without end, side by side. Limit: files, or host calls.
    Dirs,
    /// Nests directories by moving them, so that no path is ever long: naive removal of the session would fail. Limit:
    /// depth. `amount` bounds the depth; then it replies, and the host must be able to clean up.
    DeepDirs,
    /// Makes symbolic links without end, chained so that resolving them explodes. Limit: files, or host calls.
    Symlinks,
    /// Opens files and keeps them open. Limit: open files.
    Open,
    /// Writes `amount` KiB (default 64) to `path` (default "made.bin") and names it in the reply. Limit: none.
    Produce,

    /// Prints on stdout without end. Limit: stdout.
    Print,
    /// Prints on stderr without end. Limit: stderr.
    Eprint,
    /// Logs lines without end. Limit: log lines.
    Log,
    /// Reports progress without end, with values outside 0 to 1. Limit: host calls.
    Progress,
    /// Replies with `amount` KiB of text (default 1024). Limit: output; from about the memory cap on, memory.
    BigReply,
    /// The same in the reply's data. Limit: output.
    BigData,
    /// Replies with data that is not JSON. Error: "bad-reply".
    BadData,
    /// Replies with data of `amount` lists in each other (default 126). Error: "bad-reply" from 65 on.
    DeepData,
    /// Names 101 files in the reply. Error: "bad-reply".
    ManyReplyFiles,
    /// Names `path` (default "missing.txt") in the reply without making it. Error: "bad-reply".
    ReplyFile,
    /// Names a symbolic link that points outside. Error: "bad-reply".
    ReplyLink,
    /// Names a directory. Error: "bad-reply".
    ReplyDir,
    /// Returns a failure with code "not-today". It is the guest's own.
    Failure,
    /// Returns a failure with the code in `path` (default "trap"), which only the host may use. Error: "failed".
    ForgedFailure,
    /// Fails `amount` times (default 1) in a row with a retryable failure, counted in kv, then replies.
    Flaky,
    /// Returns a failure whose message is 10 MB. At most 4 KiB are kept, or the output limit ends the call.
    LongFailure,

    /// Executes `unreachable`. Error: a trap, blamed on the guest.
    Trap,
    /// Panics with a message. Error: a trap; the user sees the message.
    Panic,
    /// Exits with status 3. Error: the exit.
    Exit3,
    /// Exits with status 0 in the middle of a call, which is not a reply. Error: the exit.
    Exit0,

    /// Sets kv pairs until they are refused. Asserts that each refusal is "quota" or "bad-args" and that the space is bounded.
    KvFlood,
    /// Publishes files until that is refused. Asserts code "quota" after at most 1,000.
    PublishFlood,
    /// Publishes a path outside, a link, a directory. Asserts that each is refused.
    PublishEscape,
    /// Reads a secret that the manifest does not name, then the one that it does. Asserts "undeclared" for the first;
    /// replies with both codes ("ok" for a value) and never with a value.
    Secrets,
    /// Replies with environment variables, arguments and standard input, which must all be empty.
    Env,
    /// Opens TCP, UDP and DNS, and HTTP to a host that nobody granted. Asserts that each is refused.
    Net,

    /// Tries to leave `/work` by names, links, renames and descriptors. Asserts that every try fails; replies with all of them.
    Escape,
    /// Opens through `/work/door`, `amount` times (default 200), while the test swaps it for a link to the outside; asserts that
    /// it never sees the outside. `path` (default "store.db") is a name that exists in both places.
    RaceOpen,
    /// Everything that changes the workspace, for a call whose workspace is "read". Asserts that each is refused and
    /// that `given.txt` can still be read.
    WriteWhenReadOnly,
    /// Everything that needs a workspace, for a call without one. Asserts that there is no directory at all.
    WorkWhenNone,
}

struct Hostile;

impl Skill for Hostile {
    type Args = Args;

    fn run(args: Args, _call: &Call) -> Result<Reply, Failure> {
        let Args { mode, amount, path, stubborn } = args;
        let path = path.as_deref();
        match mode {
            Mode::Loop => burn::spin(),
            Mode::Sleep => burn::sleep(3_600_000),
            Mode::Slow => burn::sleep(amount.unwrap_or(100)),
            Mode::Allocate => burn::allocate(),
            Mode::Grow => burn::grow(),
            Mode::Recurse => burn::recurse(),
            Mode::RecurseFrames => burn::recurse_frames(),
            Mode::HostCalls => burn::clock(),
            Mode::Pollables => burn::pollables(),
            Mode::Fields => burn::fields(),
            Mode::Random => burn::random(amount.unwrap_or(1 << 40)),
            Mode::HugeRead => burn::huge_read(),

            Mode::Write => disk::write(stubborn),
            Mode::SparseLength => disk::sparse_length(),
            Mode::SparseOffset => disk::sparse_offset(),
            Mode::Append => disk::append(stubborn),
            Mode::Rewrite => disk::rewrite(stubborn),
            Mode::Files => disk::files(stubborn),
            Mode::Dirs => disk::dirs(stubborn),
            Mode::DeepDirs => disk::deep_dirs(amount.unwrap_or(u64::MAX), stubborn),
            Mode::Symlinks => disk::symlinks(stubborn),
            Mode::Open => disk::open(stubborn),
            Mode::Produce => disk::produce(path.unwrap_or("made.bin"), amount.unwrap_or(64)),

            Mode::Print => speech::print(std::io::stdout()),
            Mode::Eprint => speech::print(std::io::stderr()),
            Mode::Log => speech::log(),
            Mode::Progress => speech::progress(),
            Mode::BigReply => Ok(Reply::text(speech::long(amount.unwrap_or(1024)))),
            Mode::BigData => Ok(Reply::text("see data").data(&speech::long(amount.unwrap_or(1024)))),
            Mode::BadData => Ok(Reply::text("see data").json("{\"open\": [1, 2")),
            Mode::DeepData => {
                let levels = amount.unwrap_or(126) as usize;
                Ok(Reply::text("see data").json(format!("{}1{}", "[".repeat(levels), "]".repeat(levels))))
            }
            Mode::ManyReplyFiles => speech::many_files(),
            Mode::ReplyFile => Ok(Reply::text("see the file").file(path.unwrap_or("missing.txt"))),
            Mode::ReplyLink => speech::reply_link(),
            Mode::ReplyDir => speech::reply_dir(),
            Mode::Failure => Err(Failure::new("not-today", "the moon is in the wrong house; try tomorrow")),
            Mode::ForgedFailure => Err(Failure::new(path.unwrap_or("trap"), "it was the host, honestly")),
            Mode::Flaky => speech::flaky(amount.unwrap_or(1)),
            Mode::LongFailure => Err(Failure::new("long", speech::long(10 << 10))),

            Mode::Trap => burn::trap(),
            Mode::Panic => panic!("the guest gave up, on purpose"),
            Mode::Exit3 => std::process::exit(3),
            Mode::Exit0 => std::process::exit(0),

            Mode::KvFlood => host::kv_flood(),
            Mode::PublishFlood => host::publish_flood(),
            Mode::PublishEscape => host::publish_escape(),
            Mode::Secrets => host::secrets(),
            Mode::Env => host::environment(),
            Mode::Net => host::net(),

            Mode::Escape => escape::run(),
            Mode::RaceOpen => race::open(amount.unwrap_or(200), path.unwrap_or("store.db")),
            Mode::WriteWhenReadOnly => walls::read_only(),
            Mode::WorkWhenNone => walls::none(),
        }
    }
}

kiso_sdk::skill!(Hostile);

/// The result of a flood that was refused instead of ended: the count so far, and the refusal.
fn refused(what: &str, count: u64, why: impl std::fmt::Display) -> Failure {
    Failure::new("refused", format!("{count} {what}, then: {why}"))
}

/// Creates a symbolic link. The standard library has it only as an unstable feature.
fn symlink(target: &str, link: &str) -> std::io::Result<()> {
    unsafe extern "C" {
        fn symlink(target: *const std::ffi::c_char, link: *const std::ffi::c_char) -> i32;
    }
    let target = std::ffi::CString::new(target)?;
    let link = std::ffi::CString::new(link)?;
    // SAFETY: both are valid C strings that live through the call; wasi-libc keeps neither.
    match unsafe { symlink(target.as_ptr(), link.as_ptr()) } {
        0 => Ok(()),
        _ => Err(std::io::Error::last_os_error()),
    }
}
