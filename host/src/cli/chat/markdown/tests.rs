use super::*;
use proptest::prelude::*;

fn whole(text: &str, looks: Looks) -> String {
    let mut markdown = Markdown::new(looks);
    let mut out = markdown.push(text);
    out.push_str(&markdown.finish());
    out
}

fn plain(text: &str) -> String {
    whole(text, Looks { paint: Paint::never(), width: 40 })
}

fn coloured(text: &str) -> String {
    whole(text, Looks { paint: Paint::always(), width: 40 })
}

/// Returns the output of each piece, and of the end.
fn printed(pieces: &[&str]) -> Vec<String> {
    let mut markdown = Markdown::new(Looks { paint: Paint::never(), width: 40 });
    let mut printed: Vec<_> = pieces.iter().map(|piece| markdown.push(piece)).collect();
    printed.push(markdown.finish());
    printed
}

#[test]
fn blocks_stand_apart_and_lines_break_between_words() {
    let text = "# Title\n\nA text that is *long* enough to need\nanother line, and `code` **bold**.\n\n---\nEnd";
    assert_eq!(
        plain(text),
        "\n# Title\n\nA text that is *long* enough to need\nanother line, and `code` **bold**.\n\n\
         ────────────────────────\n\nEnd\n"
    );
    assert_eq!(
        coloured("# A *b*\n`c` ~~d~~"),
        "\n\x1b[1mA \x1b[0m\x1b[1;3mb\x1b[0m\n\n\x1b[36mc\x1b[0m \x1b[9md\x1b[0m\n"
    );
}

#[test]
fn lists_nest_and_count() {
    let text = "Before\n- one\n- two words that are long enough to go on\n  - inner\n  - more\n\n  apart\n- [x] done\n";
    assert_eq!(
        plain(text),
        "\nBefore\n\n- one\n- two words that are long enough to go\n  on\n  - inner\n  - more\n\n  apart\n- [x] done\n"
    );
    assert_eq!(plain("3. c\n4. d\n4. e\n"), "\n3. c\n4. d\n5. e\n");
}

#[test]
fn items_of_a_list_are_printed_as_they_are_finished() {
    let lines = ["1. a\n", "2. b\n", "2. c\n", "\n", "end"];
    assert_eq!(printed(&lines), ["", "\n1. a\n", "2. b\n", "", "", "3. c\n\nend\n"]);
}

#[test]
fn code_is_printed_line_by_line() {
    let lines = ["See:\n", "```sh\n", "  a\tb *no*\n", "\n", "``` x\n", "```\n", "So\n", "\n"];
    assert_eq!(printed(&lines), ["", "\nSee:\n\n", "      a    b *no*\n", "\n", "    ``` x\n", "", "", "\nSo\n", ""]);
    assert_eq!(plain("- item\n\n  ```\n  code\n  ```\n- next"), "\n- item\n\n      code\n- next\n");
    assert_eq!(plain("    indented\n\n    more\n"), "\n    indented\n\n    more\n");
}

#[test]
fn quotes_links_and_images() {
    let text = "> said\n> > deeper\n\n[kiso](https://a.example/x) <https://b.example> ![a cat](cat.png)\n\n[x]: http://c.example\n";
    assert_eq!(
        plain(text),
        "\n> said\n>\n> > deeper\n\nkiso (https://a.example/x)\nhttps://b.example image: a cat (cat.png)\n\n[x]: http://c.example\n"
    );
}

#[test]
fn tables_stand_in_columns_or_as_lists() {
    let text = "| City | Mean |\n|---|--:|\n| Oslo | 7 |\n| 東京 | 16.5 |\n";
    assert_eq!(plain(text), "\nCity  Mean\n────  ────\nOslo     7\n東京  16.5\n");
    let wide = "| a | b |\n|---|---|\n| a sentence that goes on | and another one that does |\n| c | d |\n";
    assert_eq!(plain(wide), "\na: a sentence that goes on\nb: and another one that does\n\na: c\nb: d\n");
}

#[test]
fn nothing_moves_the_cursor() {
    let text =
        "a \x1b[2J b\x07 \u{9b}1A c\rd &#27;[1A &#x9b; <\x1b[A>\n\n```\n\x1b]0;x\x07\n```\n[l](http://x/&#27;[A)\r\n";
    for out in [plain(text), coloured(text)] {
        assert!(harmless(&out), "{out:?}");
        assert!(out.contains("⟦U+001B⟧[2J"), "{out:?}");
    }
    assert_eq!(plain("a\r\nb\r\n\r\nc"), "\na\nb\n\nc\n", "line ends of another system are none of it");
}

#[test]
fn a_block_without_end_is_printed_in_parts() {
    let mut markdown = Markdown::new(Looks { paint: Paint::never(), width: 40 });
    let out: String = (0..2_000).map(|_| markdown.push("word and word\n")).collect();
    assert!(out.matches("and").count() > 1_000, "{}", out.len());
}

/// Returns whether the only control characters are ends of lines and kiso's own colours.
fn harmless(out: &str) -> bool {
    let has_controls = |text: &str| text.chars().any(|c| c.is_control() && c != '\n');
    let mut rest = out;
    while let Some((before, after)) = rest.split_once("\x1b[") {
        let Some((codes, more)) = after.split_once('m') else { return false };
        if !codes.chars().all(|c| c.is_ascii_digit() || c == ';') || has_controls(before) {
            return false;
        }
        rest = more;
    }
    !has_controls(rest)
}

/// Texts that look like Markdown, with dangerous characters in them.
fn texts() -> impl Strategy<Value = String> {
    let part = prop_oneof![
        "[a-z ]{0,12}",
        Just("\n".to_owned()),
        Just("\n\n".to_owned()),
        Just("\r\n".to_owned()),
        "\n {0,5}[-*+] ",
        "\n {0,4}[1-3][.)] ",
        "\n {0,4}```[a-z]{0,2}\n",
        "\n {0,4}~~~\n",
        "\n#{1,3} ",
        "\n> ?",
        "\n\\|a\\|b\\|\n\\|-\\|-\\|\n",
        "[*_`~<>|&;\\[\\]()!=-]{1,3}",
        Just("&#27;[2J".to_owned()),
        Just("\x1b[1A\x07\u{9b}".to_owned()),
        Just("\n<div>\n".to_owned()),
        Just("\n[a]: http://b\n".to_owned()),
        Just("日本".to_owned()),
    ];
    proptest::collection::vec(part, 0..24).prop_map(|parts| parts.concat())
}

proptest! {
    #[test]
    fn pieces_do_not_matter(text in texts(), cuts in proptest::collection::vec(0_usize..200, 0..20)) {
        let looks = Looks { paint: Paint::always(), width: 30 };
        let mut markdown = Markdown::new(looks);
        let (mut out, mut at) = (String::new(), 0);
        let mut cuts: Vec<usize> = cuts.into_iter().filter(|cut| text.is_char_boundary(*cut)).collect();
        cuts.sort_unstable();
        for cut in cuts {
            out.push_str(&markdown.push(&text[at..cut]));
            at = cut;
        }
        out.push_str(&markdown.push(&text[at..]));
        out.push_str(&markdown.finish());
        prop_assert_eq!(out, whole(&text, looks));
    }

    #[test]
    fn no_control_character_passes(text in texts(), any in ".{0,40}") {
        for out in [plain(&text), coloured(&text), coloured(&any)] {
            prop_assert!(harmless(&out), "{:?}", out);
        }
    }

    #[test]
    fn no_word_is_lost(parts in proptest::collection::vec(("[a-z]{3,6}", 0_usize..10), 1..20)) {
        let between = [" ", "\n", "\n\n", "\n- ", "\n\n1. ", "\n> ", "\n## ", "\n```\n", "\n  - ", "\n\n    "];
        let text: String = parts.iter().map(|(word, at)| format!("{word}{}", between[*at])).collect();
        let out = plain(&text);
        let printed: Vec<&str> = out.split(|c: char| !c.is_ascii_lowercase()).filter(|word| !word.is_empty()).collect();
        let expected: Vec<&str> = parts.iter().map(|(word, _)| word.as_str()).collect();
        prop_assert_eq!(printed, expected, "{:?}", text);
    }
}
