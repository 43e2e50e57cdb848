//! Shell programs from a grammar, parsed and run by the shell component in its sandbox.
//!
//! `eval` runs the programs one after the other in one shell for as long as that shell lives: a program may end it. All loops of
//! the grammar terminate, so a loop that does not is a bug of the shell.

use crate::Target;
use crate::dice::Dice;
use kiso_base::config::Config;
use kiso_base::home::{Home, SessionName};
use kiso_plan::plan::CallerScope;
use kiso_sandbox::exec::{Channel, Exec, Line};
use kiso_sandbox::skill::{Quiet, Skills};
use kiso_store::secret::Secrets;
use kiso_store::store::Store;
use std::path::PathBuf;
use std::sync::Arc;
use tempfile::TempDir;
use tokio::runtime::Runtime;

pub(crate) struct Shell {
    _dir: TempDir,
    exec: Exec,
    session: SessionName,
    work: PathBuf,
    runtime: Runtime,
}

/// The timeout is long, because the watchdog enforces the deadline.
const CONFIG: &str =
    "model = \"reflex\"\n[exec]\ntimeout_s = 600\nmemory_mib = 512\noutput_kib = 8192\nmax_output_mib = 1024\n";

/// Printed on its own line after each program that ran.
const DONE: &str = "#done#";

/// Removes state that a program leaves to the next one (functions, options and traps, but not data). Without it, a loop over the
/// data of a thousand programs would take too long.
const BETWEEN: &str = "PATH=/bin; set +efux; unset -v a s x y";

impl Shell {
    pub(crate) fn new() -> Shell {
        let dir = TempDir::new().expect("there is room");
        let home = Home::open(&dir.path().join("home")).expect("a new home");
        std::fs::write(home.config_path(), CONFIG).expect("the home can be written");
        let config = Config::load(&home).expect("the configuration is right");
        let store = Store::open(&home.store_path()).expect("a new store");
        let skills = Skills::new(home.clone(), config.clone(), store, Arc::new(Quiet));
        let exec = Exec::new(home.clone(), config, skills);
        let session = SessionName::parse("fuzz").expect("a plain name");
        home.create_session(&session).expect("there is room");
        let work = home.work_dir(&session);
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
        Shell { _dir: dir, exec, session, work, runtime: runtime.expect("threads start") }
    }

    /// Empties the workspace.
    fn clear(&self) -> std::io::Result<()> {
        for entry in std::fs::read_dir(&self.work)? {
            let entry = entry?;
            match entry.file_type()?.is_dir() {
                true => std::fs::remove_dir_all(entry.path())?,
                false => std::fs::remove_file(entry.path())?,
            }
        }
        Ok(())
    }

    /// Runs programs one after the other in one shell. Returns how many ended, and the output.
    fn run_some(&self, programs: &[Vec<u8>]) -> Result<(usize, String), String> {
        let mut source = String::new();
        for program in programs {
            let quoted = String::from_utf8_lossy(program).replace('\0', "").replace('\'', "'\\''");
            source += &format!("eval '{quoted}' > /dev/null < /dev/null\n{BETWEEN}; echo '{DONE}' >&2\n");
        }
        let scratch = self.exec.scratch(&self.session).map_err(|error| error.to_string())?;
        let secrets = Secrets::default();
        let line = Line {
            source: &source,
            session: &self.session,
            role: CallerScope::Admin,
            shared: true,
            locale: "en",
            secrets: &secrets,
            stdin: Channel::Null,
            args: Vec::new(),
            state: Vec::new(),
            partial: false,
            outputs: None,
            watch: None,
            transaction: None,
            accepted: None,
            permit: Default::default(),
            network: Default::default(),
            scratch: &scratch,
        };
        let done = self.runtime.block_on(self.exec.run(line)).map_err(|error| error.to_string())?;
        if let Some(limit) = done.limit {
            return Err(limit.to_string());
        }
        if let Some(said) = done.stderr.lines().find(|line| line.contains("panicked at") || line.contains("crashed:")) {
            return Err(said.to_owned());
        }
        Ok((done.stderr.lines().filter(|line| *line == DONE).count(), done.stderr))
    }
}

impl Target for Shell {
    fn name(&self) -> &'static str {
        "shell"
    }

    fn together(&self) -> u64 {
        64
    }

    fn ordinary(&self) -> u64 {
        2_048
    }

    fn make(&mut self, dice: &mut Dice) -> Vec<u8> {
        let mut bytes = list(dice, 0).into_bytes();
        if dice.once_in(3) {
            for _ in 0..1 + dice.below(3) {
                dice.mutate(&mut bytes);
            }
            // A mutation must not remove the bound of a loop.
            let text = String::from_utf8_lossy(&bytes);
            if text.contains("while") || text.contains("until") || text.contains("for") {
                bytes = text.replace("while", "if").replace("until", "if").replace("for", "fo").into_bytes();
            }
        }
        bytes
    }

    fn run(&mut self, inputs: &[Vec<u8>]) -> Result<u64, String> {
        // A file to which a hundred thousand programs have appended takes long to read.
        self.clear().map_err(|error| error.to_string())?;
        let (mut rest, mut refused) = (inputs, 0);
        while !rest.is_empty() {
            let (ran, said) = self.run_some(rest)?;
            refused += said.lines().filter(|line| line.contains("syntax error")).count();
            // The program after the last finished one ended the shell.
            rest = rest.get(ran + 1..).unwrap_or_default();
        }
        Ok((inputs.len() - refused.min(inputs.len())) as u64)
    }
}

fn word(dice: &mut Dice, depth: usize) -> String {
    match dice.below(if depth > 3 { 10 } else { 19 }) {
        0 => dice.one_of(&["a", "b", "x1", "*", "?", "[a-c]*", "~", "-n", "--", "="]).to_owned(),
        1 => "$x".to_owned(),
        2 => format!("'{}'", dice.text().replace('\'', "")),
        3 => format!("\"{} $y\"", dice.one_of(&["a", "é", "\\\"", "`", "\\\\", "!"])),
        4 => dice.one_of(&["$#", "$?", "$@", "$*", "$-", "$0", "$$", "${10}", "$!"]).to_owned(),
        5 => dice.one_of(&["{a,b}", "{1..4}", "{a..e..2}", "{,x}", "{1..-3}", "{01..3}"]).to_owned(),
        6 => format!("$'{}'", dice.one_of(&["\\n", "\\x41", "\\u00e9", "\\777", "\\cA", "\\"])),
        7 => (dice.next() as i64 >> dice.below(60)).to_string(),
        8 => dice.one_of(&["\\ ", "\\\n", "é", "日本", "\u{202e}", "a\\", "%s"]).to_owned(),
        9 => "${a[1]}".to_owned(),
        10 | 11 => parameter(dice, depth),
        12 | 13 => format!("$(({}))", arithmetic(dice, depth)),
        14 => format!("$({})", simple(dice, depth + 2)),
        15 => format!("\"{}{}\"", word(dice, depth + 2).replace('"', ""), word(dice, depth + 2).replace('"', "")),
        16 => format!("\"${{a[{}]}}\"", arithmetic(dice, depth + 1)),
        17 => "${a[@]}".to_owned(),
        _ => word(dice, depth + 1) + &word(dice, depth + 1),
    }
}

fn parameter(dice: &mut Dice, depth: usize) -> String {
    let name = dice.one_of(&["x", "y", "a[0]", "a[@]", "1", "@", "*", "#", "s", "!x", "#s"]);
    let inner = word(dice, depth + 2);
    let form = dice.one_of(&[
        ":-", "-", ":+", "+", ":=", "#", "##", "%", "%%", "/", "//", "/#", "/%", "^", "^^", ",", ",,", "@Q", "@U",
        "@A", ":1:", ":", ":-1:", ": -2",
    ]);
    match form {
        "/" | "//" | "/#" | "/%" => format!("${{{name}{form}{inner}/{}}}", word(dice, depth + 2)),
        "@Q" | "@U" | "@A" | ": -2" => format!("${{{name}{form}}}"),
        ":1:" | ":" | ":-1:" => format!("${{{name}{form}{}}}", dice.below(9)),
        _ => format!("${{{name}{form}{inner}}}"),
    }
}

fn arithmetic(dice: &mut Dice, depth: usize) -> String {
    if depth > 4 || dice.once_in(3) {
        return dice
            .one_of(&["1", "x", "y", "07", "0xff", "2#101", "a[1]", "64#Z", "9223372036854775807", "-1", "0", "$x"])
            .to_owned();
    }
    let (left, right) = (arithmetic(dice, depth + 1), arithmetic(dice, depth + 1));
    match dice.below(8) {
        0 => format!("({left})"),
        1 => format!("{left} ? {right} : {left}"),
        2 => format!("-{left}"),
        3 => format!("x {} {left}", dice.one_of(&["=", "+=", "*=", "<<=", "%=", "|="])),
        4 => dice.one_of(&["x++", "--y", "!x", "~y", "++a[0]"]).to_owned(),
        _ => {
            let by = dice
                .one_of(&["+", "-", "*", "/", "%", "**", "<<", ">>", "&", "|", "^", "&&", "||", "<", ">=", "==", ","]);
            format!("{left} {by} {right}")
        }
    }
}

fn test(dice: &mut Dice, depth: usize) -> String {
    let (left, right) = (word(dice, depth + 2), word(dice, depth + 2));
    match dice.below(6) {
        0 => format!("[ {} {left} ]", dice.one_of(&["-n", "-z", "-e", "-d", "!", "-v"])),
        1 => format!("[ {left} {} {right} ]", dice.one_of(&["=", "!=", "-eq", "-lt", "-nt", "<"])),
        2 => format!("[[ {left} == {right} && ! {right} < {left} ]]"),
        3 => format!("[[ s =~ {} ]]", dice.one_of(&["^s$", "(s)|t", "[[:alpha:]]+", "a{2,3}", "(", "[", "*"])),
        4 => format!("(( {} ))", arithmetic(dice, depth)),
        _ => format!("[[ -n {left} || ( {right} != *a* ) ]]"),
    }
}

fn redirection(dice: &mut Dice) -> &'static str {
    dice.one_of(&[
        "",
        "",
        "",
        "",
        " 2>&1",
        " > f",
        " >> f",
        " < f",
        " 2>/dev/null",
        " <<< \"$x\"",
        " >&2",
        " 3>&1",
        " &> f",
    ])
}

fn simple(dice: &mut Dice, depth: usize) -> String {
    let words: Vec<String> = (0..dice.below(4)).map(|_| word(dice, depth)).collect();
    let words = words.join(" ");
    let command = match dice.below(20) {
        0..=3 => format!("echo {words}"),
        4 => {
            format!("printf '{}' {words}", dice.one_of(&["%s\\n", "%d %x", "%5.2f", "%q", "%b", "%(%Y)T", "%*d", "%"]))
        }
        5 => format!("x={}", word(dice, depth)),
        6 => format!("a=({words})"),
        7 => format!("a[{}]={}", arithmetic(dice, depth + 2), word(dice, depth)),
        8 => format!("declare {} x={}", dice.one_of(&["-i", "-a", "-A", "-r z;", "-x", "-p", "-u"]), word(dice, depth)),
        9 => format!("set -- {words}"),
        10 => format!("local y={}", word(dice, depth)),
        11 => format!("read {} y z <<< {}", dice.one_of(&["", "-r", "-a", "-n 2", "-d x"]), word(dice, depth)),
        12 => test(dice, depth),
        13 => format!("s={} f {words}", word(dice, depth)),
        14 => dice
            .one_of(&[
                "shift",
                "true",
                "false",
                ":",
                "cd /",
                "cd -",
                "pwd",
                "unset x",
                "unset 'a[0]'",
                "wait",
                "trap",
                "type echo",
            ])
            .to_owned(),
        15 => format!("eval {}", word(dice, depth)),
        16 => format!("let 'x = {}'", arithmetic(dice, depth)),
        17 => dice
            .one_of(&[
                "getopts ab: o -a",
                "mapfile -t m <<< \"$x\"",
                "shopt -s extglob",
                "set -u; echo $u; set +u",
                "export x",
                "hash",
                "alias q=echo",
            ])
            .to_owned(),
        18 if dice.once_in(12) => format!("{words} | cat"),
        _ => format!("[ {words} ]"),
    };
    command + redirection(dice)
}

fn command(dice: &mut Dice, depth: usize) -> String {
    if depth > 3 || dice.below(3) > 0 {
        return simple(dice, depth);
    }
    let body = list(dice, depth + 1);
    match dice.below(11) {
        0 => format!("if {}; then {body}; else {}; fi", test(dice, depth), simple(dice, depth + 1)),
        1 => format!("for i in {} b; do {body}; done", word(dice, depth + 1)),
        2 => format!("for ((i{depth} = 0; i{depth} < 3; i{depth}++)); do {body}; done"),
        3 => format!("n{depth}=0; while ((n{depth}++ < 3)); do {body}; done"),
        4 => {
            let pattern = dice.one_of(&["a|b", "*", "[!a]", "a*)", "(x", "?(a)", "\"$x\""]);
            format!("case {} in {pattern}) {body};; *) :;; esac", word(dice, depth + 1))
        }
        5 => format!("{{ {body}; }}"),
        6 if dice.once_in(12) => format!("( {body} )"),
        7 => format!("f() {{ echo $1; }}; {body}"),
        8 => format!("{} && {body} || :", test(dice, depth)),
        9 => {
            format!("cat <<E{}\n{}\nE\n", redirection(dice).replace('\n', ""), word(dice, depth + 1).replace('\n', " "))
        }
        _ => format!("! {body}"),
    }
}

fn list(dice: &mut Dice, depth: usize) -> String {
    let commands: Vec<String> = (0..1 + dice.below(3)).map(|_| command(dice, depth)).collect();
    commands.join(dice.one_of(&["; ", "\n", " && ", " || "]))
}
