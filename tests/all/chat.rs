//! `kiso` and `kiso chat`: the conversation in a terminal, with the real binary and the real daemon.

mod attached;
mod keys;

use crate::harness::{Home, Ran};
use crate::served::Served;
use rustix::fs::OFlags;
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};
use std::fs::File;
use std::io::{Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::process::{Child, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

const QUICK: &str = "model = \"reflex\"\n[daemon]\ndebounce_ms = 20\n";

/// A guard against tests that never end; no test waits for it to pass.
const PATIENCE: Duration = Duration::from_secs(120);

const COLUMNS: u16 = 100;

fn home() -> Home {
    let home = Home::new();
    home.config(QUICK);
    home
}

/// Runs the chat with these lines on its standard input.
pub(crate) fn piped(home: &Home, args: &[&str], lines: &str) -> Ran {
    let mut command = home.command(args);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("kiso starts");
    child.stdin.take().expect("it is a pipe").write_all(lines.as_bytes()).expect("it reads");
    Ran::new(args, child.wait_with_output().expect("it ends"))
}

/// The parts of a terminal that the chat needs.
#[derive(Default)]
struct Screen {
    lines: Vec<Vec<char>>,
    row: usize,
    column: usize,
    /// An incomplete sequence at the end of the last bytes.
    rest: String,
}

impl Screen {
    fn feed(&mut self, bytes: &str) {
        let text = std::mem::take(&mut self.rest) + bytes;
        let mut chars = text.char_indices();
        while let Some((at, c)) = chars.next() {
            match c {
                '\x1b' => {
                    let whole = text[at + 1..].strip_prefix('[').and_then(|after| {
                        after.find(|c: char| c.is_ascii_alphabetic()).map(|end| (&after[..end], after.as_bytes()[end]))
                    });
                    let Some((number, kind)) = whole else {
                        self.rest = text[at..].to_owned();
                        return;
                    };
                    self.control(number, kind);
                    (0..number.len() + 2).for_each(|_| {
                        chars.next();
                    });
                }
                '\n' => self.row += 1,
                '\r' => self.column = 0,
                '\x07' => {}
                c => {
                    let column = self.column;
                    let line = self.line();
                    line.resize(line.len().max(column + 1), ' ');
                    line[column] = c;
                    self.column += 1;
                }
            }
        }
    }

    fn control(&mut self, number: &str, kind: u8) {
        let count = number.parse().unwrap_or(1);
        let column = self.column;
        match kind {
            b'A' => self.row = self.row.saturating_sub(count),
            b'B' => self.row += count,
            b'C' => self.column += count,
            b'D' => self.column = self.column.saturating_sub(count),
            b'K' => self.line().truncate(column),
            b'J' => {
                self.line().truncate(column);
                let row = self.row;
                self.lines.truncate(row + 1);
            }
            b'm' | b'h' | b'l' => {}
            other => panic!("the chat uses {number:?} {}", other as char),
        }
    }

    fn line(&mut self) -> &mut Vec<char> {
        let row = self.row;
        self.lines.resize(self.lines.len().max(row + 1), Vec::new());
        &mut self.lines[row]
    }

    fn text(&self) -> String {
        let lines = self.lines.iter().map(|line| line.iter().collect::<String>().trim_end().to_owned());
        lines.collect::<Vec<_>>().join("\n")
    }

    /// The last line, which has the prompt.
    fn last(&self) -> String {
        self.text().trim_end().lines().next_back().unwrap_or_default().to_owned()
    }
}

/// A chat in its own terminal.
pub(crate) struct Terminal {
    child: Child,
    keys: File,
    output: Receiver<String>,
    screen: Screen,
    raw: String,
}

impl Terminal {
    pub(crate) fn open(home: &Home, args: &[&str], environment: &[(&str, &str)]) -> Terminal {
        let ours = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).expect("there are terminals");
        grantpt(&ours).expect("it is ours");
        unlockpt(&ours).expect("it is ours");
        let name = ptsname(&ours, Vec::new()).expect("it has a name");
        let theirs =
            rustix::fs::open(name, OFlags::RDWR | OFlags::NOCTTY, rustix::fs::Mode::empty()).expect("it opens");
        let size = Winsize { ws_row: 30, ws_col: COLUMNS, ws_xpixel: 0, ws_ypixel: 0 };
        tcsetwinsize(&ours, size).expect("it has a size");
        let end = || Stdio::from(theirs.try_clone().expect("there are descriptors"));
        let mut command = home.command(args);
        command.env_remove("NO_COLOR").env("TERM", "xterm-256color").envs(environment.iter().copied());
        command.stdin(end()).stdout(end()).stderr(end());
        // SAFETY: between fork and exec it makes two system calls, and allocates nothing.
        unsafe {
            command.pre_exec(|| {
                // Without a controlling terminal, a Ctrl-C between two lines would not cause a signal.
                rustix::process::setsid()?;
                Ok(rustix::process::ioctl_tiocsctty(std::io::stdin())?)
            });
        }
        let child = command.spawn().expect("kiso starts");
        let keys = File::from(ours);
        let mut reads = keys.try_clone().expect("there are descriptors");
        let (tell, output) = channel();
        std::thread::spawn(move || {
            let (mut held, mut bytes) = (Vec::new(), [0; 4096]);
            // Reading fails when the other end of the terminal is closed.
            while let Ok(count @ 1..) = reads.read(&mut bytes) {
                held.extend_from_slice(&bytes[..count]);
                let whole = held.utf8_chunks().next().map_or(0, |chunk| chunk.valid().len());
                let text = String::from_utf8(held.drain(..whole).collect()).expect("that much is valid");
                if tell.send(text).is_err() {
                    return;
                }
            }
        });
        Terminal { child, keys, output, screen: Screen::default(), raw: String::new() }
    }

    /// A chat that shows its prompt.
    #[track_caller]
    fn ready(home: &Home, args: &[&str], environment: &[(&str, &str)]) -> Terminal {
        let mut terminal = Terminal::open(home, args, environment);
        terminal.until_screen("the prompt", |screen| screen.last() == "default>");
        terminal
    }

    /// Types these keys into the binary and waits for its end. Returns everything that it wrote to its terminal, and the exit
    /// code.
    #[track_caller]
    pub(crate) fn run(home: &Home, args: &[&str], keys: &str) -> (String, i32) {
        let mut terminal = Terminal::open(home, args, &[]);
        terminal.keys(keys);
        let began = Instant::now();
        // Nobody else has the other end open, so the loop ends after the binary has ended and all was read.
        loop {
            match terminal.output.recv_timeout(PATIENCE.saturating_sub(began.elapsed())) {
                Ok(text) => terminal.raw.push_str(&text),
                Err(RecvTimeoutError::Disconnected) => break,
                Err(RecvTimeoutError::Timeout) => panic!("it does not end:\n{:?}", terminal.raw),
            }
        }
        let status = terminal.child.wait().expect("it was started here");
        (std::mem::take(&mut terminal.raw), status.code().unwrap_or(-1))
    }

    pub(crate) fn keys(&mut self, keys: &str) {
        self.keys.write_all(keys.as_bytes()).expect("it reads");
    }

    /// Reads until the screen meets a condition.
    #[track_caller]
    fn until_screen(&mut self, what: &str, there: impl Fn(&Screen) -> bool) {
        let began = Instant::now();
        while !there(&self.screen) {
            let left = PATIENCE.saturating_sub(began.elapsed());
            match self.output.recv_timeout(left) {
                Ok(text) => {
                    self.screen.feed(&text);
                    self.raw.push_str(&text);
                }
                Err(RecvTimeoutError::Timeout) => panic!("no {what}:\n{}", self.screen.text()),
                Err(RecvTimeoutError::Disconnected) => panic!("it ended without {what}:\n{}", self.screen.text()),
            }
        }
    }

    /// Waits until the last line ends with this text, as a prompt does.
    #[track_caller]
    pub(crate) fn prompts(&mut self, end: &str) {
        self.until_screen(&format!("the prompt {end:?}"), |screen| screen.last().ends_with(end));
    }

    /// All output so far.
    pub(crate) fn raw(&self) -> &str {
        &self.raw
    }

    #[track_caller]
    pub(crate) fn shows(&mut self, part: &str) {
        self.until_screen(&format!("{part:?}"), |screen| screen.text().contains(part));
    }

    /// Waits for the end. Returns the exit code.
    #[track_caller]
    pub(crate) fn code(&mut self) -> i32 {
        let began = Instant::now();
        let status = loop {
            if let Ok(text) = self.output.recv_timeout(Duration::from_millis(10)) {
                self.screen.feed(&text);
                self.raw.push_str(&text);
            } else if let Some(status) = self.child.try_wait().expect("it was started here") {
                break status;
            }
            assert!(began.elapsed() < PATIENCE, "it does not end:\n{}", self.screen.text());
        };
        // The last output may still be in the channel.
        while let Ok(text) = self.output.recv_timeout(PATIENCE) {
            self.screen.feed(&text);
            self.raw.push_str(&text);
        }
        status.code().unwrap_or(-1)
    }

    fn signal(&self, signal: rustix::process::Signal) {
        rustix::process::kill_process(rustix::process::Pid::from_child(&self.child), signal).expect("it runs");
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn lines_of_standard_input_are_messages() {
    let home = home();
    let ran = piped(&home, &[], "/model\n\n$ echo hello | tr a-z A-Z\n$ echo two\n");
    ran.ok().prints(&["The model of this session is reflex.\n", "HELLO\n", "two\n"]);
    ran.says(&["this chat started its own", "the model is `reflex`", "✓ $ echo two"]);
    assert!(ran.stdout.find("HELLO") < ran.stdout.find("two"), "{ran:?}");
    assert!(!ran.stdout.contains("Plan:") && !ran.stdout.contains('\x1b'), "only replies: {ran:?}");
    assert!(!home.path().join("kiso.sock").exists(), "its daemon ended in good order");
    piped(&home, &["chat", "--session", "../x"], "").exit(2);
    piped(&home, &["--json", "chat"], "").exit(2).prints(&["docs/socket.md"]);
    piped(&home, &[], "").ok();
}

/// The exit code is that of `kiso run` with the last message.
#[test]
fn the_chat_ends_as_its_last_run() {
    let home = Home::new();
    home.config(&format!("{QUICK}[exec]\nmax_output_mib = 1\n"));
    for (last, code) in [("$ false", 1), ("$ seq 1 1000000", 5), ("$ true", 0)] {
        home.kiso(&["run", "--session", "ran", last]).exit(code);
        piped(&home, &["chat", "--session", "chat"], &format!("$ echo x\n{last}\n")).exit(code);
    }
}

#[test]
fn a_daemon_that_runs_is_joined() {
    let home = home();
    let served = Served::start(&home);
    let ran = piped(&home, &["chat", "--plain"], "$ echo joined\n");
    assert!(!ran.ok().stderr.contains("started its own"), "{ran:?}");
    let messages = served.get("/sessions/default/messages");
    let texts: Vec<_> = messages["items"].as_array().unwrap().iter().map(|m| m["text"].as_str().unwrap()).collect();
    assert_eq!(texts[0], "$ echo joined");
    assert_eq!(ran.stdout.trim_end(), texts[1]);
    assert_eq!(served.terminate(), 0);
}

#[test]
fn a_conversation_at_a_terminal() {
    let home = home();
    let mut chat = Terminal::ready(&home, &[], &[]);
    chat.shows("the model is `reflex`");
    chat.keys("/sta\t");
    chat.until_screen("the completed command", |screen| screen.last().trim_end() == "default> /status");
    chat.keys("\r");
    chat.shows("- model: reflex");
    // Several lines: with a mark at the end of a line, and pasted.
    chat.keys("$ echo one; \\\recho two\r");
    chat.shows("✓ $ echo one");
    chat.until_screen("the reply", |screen| screen.text().contains("two\n\ndefault>"));
    chat.keys("\x1b[200~$ echo first\necho second\x1b[201~");
    chat.until_screen("the pasted text", |screen| screen.last().ends_with("echo second"));
    chat.keys("\r");
    chat.until_screen("the reply", |screen| screen.text().contains("second\n\ndefault>"));
    // Text of skills and models cannot move the cursor.
    chat.keys("$ printf 'a\\033[2Jb'\r");
    chat.shows("a⟦U+001B⟧[2Jb");
    assert!(!chat.raw.contains("\x1b[2J"));
    chat.until_screen("the reply", |screen| screen.text().contains("[2Jb\n\ndefault>"));
    chat.keys("my password: hunter2hunter2\r");
    chat.until_screen("the reply", |screen| {
        screen.text().contains("was not understood") && screen.last() == "default>"
    });
    chat.keys("\x04");
    assert_eq!(chat.code(), 0, "{}", chat.screen.text());
    let history = home.path().join("chat_history");
    assert_eq!(std::fs::metadata(&history).unwrap().permissions().mode() & 0o777, 0o600);
    let kept = std::fs::read_to_string(&history).unwrap();
    for line in ["/status", "$ echo one; \\necho two", "$ echo first\\necho second"] {
        assert!(kept.lines().any(|kept| kept.trim_end() == line), "{line} in {kept}");
    }
    assert!(!kept.contains("hunter2"), "{kept}");
    assert!(!home.path().join("kiso.sock").exists(), "its daemon ended in good order");
    // The next chat has the line in its history.
    let mut again = Terminal::ready(&home, &[], &[("NO_COLOR", "1")]);
    again.keys("\x1b[A");
    again.until_screen("the last line that was kept", |screen| screen.last().contains("printf"));
    again.keys("\x03");
    again.shows("Ctrl-C again to quit");
    again.keys("\x03");
    assert_eq!(again.code(), 0);
    for code in ["\x1b[1m", "\x1b[2m", "\x1b[36m"] {
        assert!(!again.raw.contains(code), "colour in spite of NO_COLOR: {:?}", again.raw);
    }
}

/// The text of steps comes before their reply, never inside it; `/quit` leaves.
#[test]
fn a_reply_is_not_interrupted_and_quit_leaves() {
    let home = home();
    std::fs::create_dir_all(home.work("default")).unwrap();
    let table: String = (0..12).map(|n| format!("city{n},{n}\n")).collect();
    std::fs::write(home.work("default").join("t.csv"), format!("city,value\n{table}")).unwrap();
    let mut chat = Terminal::ready(&home, &[], &[("NO_COLOR", "1")]);
    chat.keys("hello\r");
    chat.until_screen("the reply", |screen| screen.text().contains("I am reflex") && screen.last() == "default>");
    assert!(!chat.screen.text().contains("Plan:"), "{}", chat.screen.text());
    chat.keys("data file=t.csv\r");
    chat.until_screen("the table", |screen| screen.text().contains("city11") && screen.last() == "default>");
    let text = chat.screen.text();
    let [step, first, last] =
        ["✓ skill data", "city0", "city11"].map(|part| text.find(part).unwrap_or_else(|| panic!("{part}: {text}")));
    assert!(step < first && first < last, "{text}");
    chat.keys("/quit\r");
    assert_eq!(chat.code(), 0);
    let ran = piped(&home, &[], "$ echo one\n/exit\n$ echo two\n");
    assert!(ran.stdout.contains("one") && !ran.stdout.contains("two"), "{}", ran.stdout);
}

#[test]
fn ctrl_c_stops_the_run_and_a_second_one_leaves() {
    let home = home();
    let mut chat = Terminal::ready(&home, &[], &[]);
    chat.keys("$ sleep 600\r");
    chat.shows("1/2 $ sleep 600");
    chat.keys("\x03");
    chat.shows("stopping the run; press Ctrl-C again to quit");
    chat.shows("The run was cancelled before the work was done.");
    chat.keys("$ echo on\r");
    chat.until_screen("the reply", |screen| screen.text().contains("\non\n\ndefault>"));
    assert!(!chat.screen.text().contains("Stopping the current run"), "it is said once");
    chat.keys("\x03");
    chat.shows("press Ctrl-C again to quit, or Ctrl-D");
    chat.keys("\x03");
    assert_eq!(chat.code(), 0);
}

/// Between two lines, the terminal turns the key into a signal.
#[test]
fn ctrl_c_that_comes_as_a_signal_is_the_same() {
    let home = home();
    let mut chat = Terminal::ready(&home, &[], &[]);
    chat.keys("$ sleep 600\r");
    chat.shows("1/2 $ sleep 600");
    chat.signal(rustix::process::Signal::INT);
    chat.shows("stopping the run; press Ctrl-C again to quit");
    chat.shows("The run was cancelled before the work was done.");
    chat.keys("$ echo on\r");
    chat.until_screen("the reply", |screen| screen.text().contains("\non\n\ndefault>"));
    chat.signal(rustix::process::Signal::INT);
    chat.shows("press Ctrl-C again to quit, or Ctrl-D");
    chat.signal(rustix::process::Signal::INT);
    assert_eq!(chat.code(), 0);
}

#[test]
fn what_comes_by_itself_leaves_the_line_alone() {
    let home = home();
    let served = Served::start(&home);
    let mut chat = Terminal::ready(&home, &["chat"], &[]);
    chat.keys("half a li");
    chat.until_screen("the half-typed line", |screen| screen.last() == "default> half a li");
    let message = served.send("default", "$ echo by itself");
    served.send("elsewhere", "$ echo somewhere else");
    served.reply(message);
    chat.until_screen("the reply above the line", |screen| {
        screen.text().contains("» $ echo by itself") && screen.text().contains("\nby itself\n")
    });
    chat.until_screen("the line as it was", |screen| screen.last() == "default> half a li");
    assert!(!chat.screen.text().contains("somewhere else"), "another session is none of it");
    chat.signal(rustix::process::Signal::TERM);
    assert_eq!(chat.code(), 130, "a signal ends it, and the terminal is as it was");
    assert!(chat.raw.contains("\x1b[?2004l"));
    assert_eq!(served.terminate(), 0);
}

/// A path that is pasted or dropped is a file for the next message, and `@path` is one for this message.
#[test]
fn a_restart_of_the_daemon_loses_nothing() {
    let home = home();
    let served = Served::start(&home);
    let mut chat = Terminal::ready(&home, &[], &[]);
    chat.keys("$ echo before\r");
    chat.until_screen("the reply", |screen| screen.text().contains("\nbefore\n\ndefault>"));
    served.kill();
    chat.shows("kiso is offline");
    chat.keys("$ echo meanwhile\r");
    let served = Served::start(&home);
    chat.shows("reconnected");
    chat.shows("✓ $ echo meanwhile");
    chat.until_screen("the reply", |screen| screen.text().contains("\nmeanwhile\n"));
    let messages = served.get("/sessions/default/messages");
    let asked = messages["items"].as_array().unwrap().iter().filter(|m| m["text"] == "$ echo meanwhile").count();
    assert_eq!(asked, 1, "{messages}");
    // A daemon that is asked to end says so.
    assert_eq!(served.terminate(), 0);
    chat.until_screen("that it is away again", |screen| screen.text().matches("kiso is offline").count() == 2);
    chat.keys("\x04");
    assert_eq!(chat.code(), 0);
}

#[test]
fn a_terminal_that_can_only_print_gets_plain_lines() {
    let home = home();
    let mut chat = Terminal::open(&home, &[], &[("TERM", "dumb")]);
    chat.shows("the model is `reflex`");
    chat.keys("$ echo plain | rev\n");
    chat.shows("nialp");
    chat.keys("\x04");
    assert_eq!(chat.code(), 0);
    assert!(!chat.raw.contains('\x1b'), "{:?}", chat.raw);
}
