//! Keys of the chat in a terminal, and the screen while they are typed.

use super::{Terminal, home, piped};
use rustix::termios::{Winsize, tcsetwinsize};

#[test]
fn tab_lists_every_candidate() {
    let home = home();
    let mut chat = Terminal::ready(&home, &[], &[]);
    chat.keys("/re\t\t");
    chat.until_screen("a list of one row", |screen| {
        ["/retry", "/redo", "/refuse"].iter().all(|name| screen.text().contains(name))
            && screen.last() == "default> /re"
    });
    chat.keys("\x15/\t\t");
    chat.until_screen("a list of several rows", |screen| {
        ["/new", "/models", "/memory", "/undo", "/skills", "/help", "/quit"].iter().all(|name| {
            let named = |line: &str| line.split_whitespace().any(|word| word == *name);
            screen.text().lines().any(named)
        }) && screen.last() == "default> /"
    });
    chat.keys("\x15\x04");
    assert_eq!(chat.code(), 0, "{}", chat.screen.text());
}

#[test]
fn the_status_is_removed_when_a_line_is_sent() {
    let home = home();
    let mut chat = Terminal::ready(&home, &[], &[]);
    chat.keys("$ sleep 600\r");
    chat.shows("1/2 $ sleep 600 ·");
    chat.keys("/status\r");
    chat.shows("- model: reflex");
    let text = chat.screen.text();
    let above = text.lines().zip(text.lines().skip(1)).find(|(_, line)| *line == "default> /status");
    assert_eq!(above.map(|(above, _)| above), Some(""), "{text}");
    chat.keys("\x03");
    chat.shows("The run was cancelled");
    chat.keys("\x03");
    assert_eq!(chat.code(), 0);
}

#[test]
fn text_fits_a_terminal_that_was_made_narrower() {
    let home = home();
    let mut chat = Terminal::ready(&home, &[], &[]);
    let size = Winsize { ws_row: 30, ws_col: 40, ws_xpixel: 0, ws_ypixel: 0 };
    tcsetwinsize(&chat.keys, size).expect("it has a size");
    chat.keys("/help\r");
    chat.until_screen("the help", |screen| screen.text().contains("Ctrl-R") && screen.last() == "default>");
    let text = chat.screen.text();
    let help: Vec<&str> = text.lines().skip_while(|line| *line != "default> /help").collect();
    assert!(help.len() > 30 && help.iter().all(|line| line.chars().count() <= 40), "{text}");
    // Without a terminal, keys are not listed.
    assert!(!piped(&home, &[], "/help\n").ok().stdout.contains("Ctrl-R"));
    chat.keys("\x04");
    assert_eq!(chat.code(), 0);
}

#[test]
fn the_chat_says_where_help_is_and_which_words_are_only_text() {
    let home = home();
    let mut first = Terminal::ready(&home, &[], &[]);
    first.shows("/help lists the commands and keys, @PATH attaches a file, /quit leaves");
    assert!(!first.screen.text().contains("continuing"), "{}", first.screen.text());
    first.keys("/attach photo.png\r");
    first.shows("/attach is not a command, so this is sent as a message; /help lists the commands");
    first.until_screen("the reply", |screen| screen.text().contains("I am reflex") && screen.last() == "default>");
    first.keys("what is in @none.pdf\r");
    first.shows("there is no file none.pdf, so @none.pdf is sent as text");
    first.until_screen("the reply", |screen| {
        screen.text().contains("was not understood") && screen.last() == "default>"
    });
    first.keys("/quit\r");
    assert_eq!(first.code(), 0);
    let mut again = Terminal::ready(&home, &[], &[]);
    again.shows("continuing the conversation default, last message ");
    assert!(!again.screen.text().contains("/help lists"), "{}", again.screen.text());
    again.keys("$ echo typed\r");
    again.shows("✓ $ echo typed");
    again.until_screen("the reply", |screen| screen.text().contains("\ntyped\n\ndefault>"));
    assert!(!again.screen.text().contains("Plan:"), "{}", again.screen.text());
    again.keys("\x04");
    assert_eq!(again.code(), 0);
}
