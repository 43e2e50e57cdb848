//! Text of others has no effect on a terminal or the log. Guests, files, names, titles and summaries try to move the cursor, to
//! fill the clipboard, to reverse lines and to imitate kiso's own lines.

use crate::chat::Terminal;
use crate::harness::{Home, guest};
use crate::served::Served;

/// The text of each attempt, and its harmless replacement.
const ATTEMPTS: &[(&str, &str)] = &[
    ("\x1b[2J\x1b[H", "⟦U+001B⟧[2J⟦U+001B⟧[H"),
    ("\x1b]52;c;cm0gLXJmIH4K\x07", "⟦U+001B⟧]52;c;cm0gLXJmIH4K⟦U+0007⟧"),
    ("\x1b]0;title\x1b\\", "⟦U+001B⟧]0;title⟦U+001B⟧\\"),
    ("\x1b]8;;http://x.example\x1b\\link\x1b]8;;\x1b\\", "⟦U+001B⟧]8;;http://x.example"),
    ("\x1bP$q\"p\x1b\\", "⟦U+001B⟧P$q\"p"),
    ("\x1bc", "⟦U+001B⟧c"),
    ("\x1b[6n", "⟦U+001B⟧[6n"),
    ("\x1b[8mhidden\x1b[28m", "⟦U+001B⟧[8mhidden"),
    ("\x1b[?1049h", "⟦U+001B⟧[?1049h"),
    ("\x1b[20t", "⟦U+001B⟧[20t"),
    ("\x1b#8", "⟦U+001B⟧#8"),
    ("\u{9b}2J", "⟦U+009B⟧2J"),
    ("\u{9d}52;c;eA==\u{9c}", "⟦U+009D⟧52;c;eA==⟦U+009C⟧"),
    ("\u{90}x\u{9c}", "⟦U+0090⟧x⟦U+009C⟧"),
    ("safe\rgone", "safe⟦U+000D⟧gone"),
    ("x\x08\x08y", "x⟦U+0008⟧⟦U+0008⟧y"),
    ("\x07\x0b\x0c\x0e\x0f\x7f", "⟦U+0007⟧⟦U+000B⟧⟦U+000C⟧⟦U+000E⟧⟦U+000F⟧⟦U+007F⟧"),
    ("a\u{202e}gpj.exe", "a⟦U+202E⟧gpj.exe"),
    ("\u{202a}\u{202b}\u{202c}\u{202d}", "⟦U+202A⟧⟦U+202B⟧⟦U+202C⟧⟦U+202D⟧"),
    ("\u{2066}\u{2067}\u{2068}\u{2069}", "⟦U+2066⟧⟦U+2067⟧⟦U+2068⟧⟦U+2069⟧"),
    ("\u{61c}\u{200e}\u{200f}", "⟦U+061C⟧⟦U+200E⟧⟦U+200F⟧"),
    ("one\u{2028}two\u{2029}three\u{85}four", "one⟦U+2028⟧two⟦U+2029⟧three⟦U+0085⟧four"),
];

/// Returns the first character or sequence that kiso itself would not write to a terminal: it writes text, lines, and colours.
fn acting(text: &str) -> Option<String> {
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        let colour = rest.strip_prefix("\x1b[").and_then(|after| {
            let end = after.find(|c: char| !c.is_ascii_digit() && c != ';')?;
            after[end..].starts_with('m').then_some(end + 3)
        });
        let turns =
            matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
        let hidden = rest.starts_with("\x1b[8m");
        match colour {
            Some(length) if !hidden => rest = &rest[length..],
            _ if turns || hidden || c.is_control() && !"\n\t\r".contains(c) => {
                return Some(rest.chars().take(40).collect());
            }
            _ => rest = &rest[c.len_utf8()..],
        }
    }
    None
}

/// The text quoted for a shell.
fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', "'\\''"))
}

/// A skill with an attempt in each of its texts.
fn hostile_manifest(attempt: &str) -> String {
    let text = |text: &str| toml::Value::String(text.to_owned()).to_string();
    let forged = |what: &str| text(&format!("{what}{attempt}\nforged {what}"));
    format!(
        "[kiso]\ntype = \"skill\"\nname = \"odd\"\nversion = {version}\ndescription = {description}\n\n\
         [kiso.skill]\nsummary = {summary}\ncategory = \"other\"\nexamples = [{example}]\n\n\
         [kiso.skill.args]\nmode = {{ type = \"string\", required = true, description = {argument} }}\n",
        version = text(&format!("1.0{}", attempt.replace(|c: char| c.is_control() || c.is_whitespace(), ""))),
        description = forged("description"),
        summary = forged("summary"),
        example = forged("example"),
        argument = forged("argument"),
    )
}

/// A command's output is shown on a terminal without active sequences, except colours, and passed to a pipe unchanged.
#[test]
fn a_command_steers_no_terminal() {
    let home = Home::new();
    let texts: String = ATTEMPTS.iter().map(|(text, _)| format!("{text}|\n")).collect();
    let line = format!("printf %s {}", quoted(&texts));
    let (shown, code) = Terminal::run(&home, &["shell", "-c", &line], "");
    assert_eq!(code, 0);
    assert_eq!(acting(&shown), None, "{shown}");
    for (text, safe) in ATTEMPTS {
        assert!(shown.contains(safe), "{text:?} is not shown as {safe}: {shown}");
    }
    let piped = home.kiso(&["shell", "-c", &line]);
    assert_eq!(piped.stdout, texts);

    // Raw bytes that some terminals treat as C1 codes, also on standard error.
    let (shown, _) = Terminal::run(&home, &["shell", "-c", "printf '\\x9b2J\\xff'; printf '\\x9d52;\\033[2J' >&2"], "");
    assert!(shown.contains("⟦0x9B⟧2J⟦0xFF⟧") && shown.contains("⟦0x9D⟧52;⟦U+001B⟧[2J"), "{shown}");
    // A command may use colours; they end with it.
    let (shown, _) = Terminal::run(&home, &["shell", "-c", "printf '\\033[31mred \\033[38;5;8mgrey'"], "");
    assert_eq!(shown, "\x1b[31mred \x1b[38;5;8mgrey\x1b[0m");
    // Right-to-left text stays readable.
    let (shown, _) = Terminal::run(&home, &["shell", "-c", "echo 'שלום مرحبا'"], "");
    assert_eq!(shown, "שלום مرحبا\r\n");
}

/// A message about a limit names the command, and the prompt names the directory: a guest chooses both.
#[test]
fn neither_limit_nor_prompt_carries_a_sequence() {
    let home = Home::new();
    home.config("[exec]\nmemory_mib = 16\n");
    let (osc, turn) = ("\x1b]52;c;eA==\x07", "\u{202e}\u{9b}2J");
    // It fills memory in a command whose arguments try something.
    let line = format!("head -c 40000000 /dev/zero | sort -o {}", quoted(&format!("{osc}{turn}\nkiso: all is well")));
    let (shown, code) = Terminal::run(&home, &["shell", "-c", &line], "");
    assert_eq!(code, 137, "{shown}");
    assert_eq!(acting(&shown), None, "{shown}");
    assert!(shown.contains("stopped: ") && !shown.contains("\nkiso: all is well"), "{shown}");
    let piped = home.kiso(&["shell", "-c", &line]);
    assert!(acting(&piped.stderr).is_none() && piped.stderr.contains("⟦U+001B⟧]52;c;eA==⟦U+0007⟧"), "{piped:?}");

    let home = Home::new();
    home.kiso(&["skill", "list"]).ok();
    let name = "\u{1b}]52;c;eA==\u{7}\u{202e}";
    std::fs::create_dir_all(home.work("s").join(name)).unwrap();
    let mut terminal = Terminal::open(&home, &["shell", "-s", "s"], &[]);
    terminal.prompts("s:/work$");
    terminal.keys("cd *52*\r");
    terminal.prompts("s:/work/⟦U+001B⟧]52;c;eA==⟦U+0007⟧⟦U+202E⟧$");
    terminal.keys("exit\r");
    assert_eq!(terminal.code(), 0);
    let shown = terminal.raw();
    assert!(!shown.contains("\x1b]52") && !shown.contains('\u{202e}'), "{shown:?}");
}

/// Every text of a manifest, in every command that shows it, on a terminal and in a pipe.
#[test]
fn a_skill_says_nothing_but_its_words() {
    let home = Home::new();
    home.kiso(&["skill", "list"]).ok();
    let component = guest("command");
    for (attempt, safe) in ATTEMPTS {
        let manifest = home.file("odd/kiso.toml", hostile_manifest(attempt));
        let (component, manifest) = (component.to_str().unwrap(), manifest.to_str().unwrap());
        let added = home.kiso(&["skill", "add", component, "--manifest", manifest, "--grant", "all"]);
        assert_eq!(added.code, 0, "{attempt:?}: {added:?}");
        let (listed, info) = (home.kiso(&["skill", "list"]), home.kiso(&["skill", "info", "odd"]));
        for text in [&added.stdout, &added.stderr, &listed.stdout, &info.stdout] {
            assert_eq!(acting(text), None, "{attempt:?}: {text}");
            let forged = text.lines().find(|line| line.trim_start().starts_with("forged"));
            assert_eq!(forged, None, "{attempt:?}: {text}");
        }
        assert!(listed.stdout.contains(safe) && info.stdout.contains(safe), "{attempt:?}: {listed:?} {info:?}");
        // JSON contains the same text, also without active sequences.
        let json = home.kiso(&["--json", "skill", "info", "odd"]);
        assert_eq!(acting(&json.stdout), None, "{attempt:?}: {json:?}");
        let summary = json.json()["summary"].as_str().unwrap().to_owned();
        assert_eq!(summary, format!("summary{attempt}\nforged summary"));
    }
    let (shown, _) = Terminal::run(&home, &["skill", "info", "odd"], "");
    assert_eq!(acting(&shown), None, "{shown}");
}

/// Messages, titles, goals, replies, file names and errors, in every command that prints them.
#[test]
fn runs_and_sessions_show_harmless_text() {
    let home = Home::new();
    let hostile: String = ATTEMPTS.iter().map(|(text, _)| *text).collect::<Vec<_>>().join(" ");
    let message = format!("$ printf %s {}", quoted(&hostile));
    let run = home.kiso(&["run", "--session", "s", &message]);
    let name = "a\u{202e}\u{1b}[2J.txt";
    let file = home.file(name, "x");
    let copied = home.kiso(&["shell", "-s", "s", "--file", file.to_str().unwrap(), "-c", "true"]);
    assert!(copied.stderr.contains("a⟦U+202E⟧⟦U+001B⟧[2J.txt"), "{copied:?}");
    home.kiso(&["session", "rename", "s", "title \u{202e}\u{2066}x"]);
    let missing = home.kiso(&["run", "--file", "/no/such\u{1b}[2J\u{202e}\nerror: forged", "hello"]);
    assert!(missing.code != 0 && !missing.stderr.contains("\nerror: forged"), "{missing:?}");
    let mut texts = vec![run.stdout, run.stderr, copied.stderr, missing.stderr];
    for args in [
        &["session", "list"][..],
        &["session", "show", "s"],
        &["trace"],
        &["trace", "last"],
        &["trace", "last", "--prompts"],
        &["--json", "session", "show", "s"],
        &["--json", "trace", "last"],
        &["doctor", "--offline"],
        &["skill", "info", "\u{1b}[2J\u{202e}"],
        &["session", "show", "\u{1b}[2J\u{9b}x"],
        &["no-such\u{1b}[2J\u{202e}"],
        &["--no-such\u{9b}2J"],
        &["trace", "\u{202e}\u{1b}]0;x\u{7}"],
        &["session", "export", "s"],
    ] {
        let ran = home.kiso(args);
        texts.extend([ran.stdout, ran.stderr]);
        let (shown, _) = Terminal::run(&home, args, "");
        texts.push(shown);
    }
    for text in &texts {
        assert_eq!(acting(text), None, "{text}");
    }
    assert!(texts.iter().any(|text| text.contains("⟦U+202E⟧")), "{texts:#?}");
}

/// A log entry is one line, and a name from a client cannot imitate a field.
#[test]
fn a_name_forges_nothing_in_the_log() {
    let home = Home::new();
    let token = home.kiso(&["token", "add", "boss", "--scope", "admin"]).ok().stdout.trim().to_owned();
    let mut served = Served::start(&home);
    served.token = Some(token);
    for name in ["x by=admin", "x\" by=admin y=\"", "a\u{202e}b.txt", "by=admin"] {
        let encoded: String = name.bytes().map(|byte| format!("%{byte:02X}")).collect();
        let answer = served.request("PUT", &format!("/sessions/main/files/{encoded}"), Some("x"));
        assert!(answer.status < 300, "{name:?}: {answer:?}");
    }
    let log = served.logs("a file was uploaded", 4);
    assert_eq!(acting(&log), None, "{log}");
    for line in log.lines().filter(|line| line.contains("a file was uploaded")) {
        let mut outside = String::new();
        let (mut in_quotes, mut escaped) = (false, false);
        for c in line.chars() {
            match c {
                _ if escaped => escaped = false,
                '\\' if in_quotes => escaped = true,
                '"' => in_quotes = !in_quotes,
                c if !in_quotes => outside.push(c),
                _ => {}
            }
        }
        assert!(!in_quotes && !outside.contains("by=admin"), "{line}");
        assert_eq!(outside.matches(" by=").count(), 1, "{line}");
    }
}

/// Credentials typed into the shell are not saved in its history, as in the chat.
#[test]
fn the_shell_keeps_no_credential() {
    let home = Home::new();
    home.kiso(&["skill", "list"]).ok();
    let token = ["gh", "p_a1b2c3d4e5f6g7h8i9j0k1l2m3n4o5p6q7r8"].concat();
    let mut terminal = Terminal::open(&home, &["shell"], &[]);
    for line in ["echo kept", &format!("echo {token} >/dev/null"), "export password=Zx81qqWvTr90", "exit"] {
        terminal.prompts("default:/work$");
        terminal.keys(&format!("{line}\r"));
    }
    assert_eq!(terminal.code(), 0);
    let mut kept = String::new();
    for entry in std::fs::read_dir(home.path()).unwrap().flatten() {
        if entry.file_name().to_string_lossy().contains("history") {
            kept += &std::fs::read_to_string(entry.path()).unwrap();
        }
    }
    assert!(kept.contains("echo kept"), "{kept}");
    assert!(!kept.contains(&token) && !kept.contains("Zx81qqWvTr90"), "{kept}");
}

/// A loop of several lines is recalled from the history as one entry, in this shell and in the next.
#[test]
fn a_loop_that_is_recalled_is_a_loop() {
    let home = Home::new();
    home.kiso(&["skill", "list"]).ok();
    let (first, code) = Terminal::run(&home, &["shell"], "for i in 1 2; do\recho n$i\rdone\r\x1b[A\rexit\r");
    assert_eq!((first.matches("\nn1\r\nn2\r\n").count(), code), (2, 0), "{first:?}");
    let (next, _) = Terminal::run(&home, &["shell"], "\x1b[A\x1b[A\rexit\r");
    assert!(next.contains("\nn1\r\nn2\r\n"), "{next:?}");
}

/// Completions are listed below the line, and stay there.
#[test]
fn the_list_of_completions_stays() {
    let home = Home::new();
    home.kiso(&["skill", "list"]).ok();
    let mut terminal = Terminal::open(&home, &["shell"], &[]);
    terminal.prompts("default:/work$");
    terminal.keys("g\t\t\x15exit\r");
    assert_eq!(terminal.code(), 0);
    let shown = terminal.raw();
    let after = shown.split_once("gzip").unwrap_or_else(|| panic!("no list: {shown:?}")).1;
    assert!(!after.contains("\x1b[A") && !after.contains("\x1b[J") && !after.contains("\x1b[2J"), "{after:?}");
}
