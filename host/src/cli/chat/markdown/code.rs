//! Colours for code in a terminal: comments, strings, numbers and keywords, by a few rules for each family of languages. A
//! line is coloured when it arrives, without looking ahead.

use crate::cli::show::Paint;

const COMMENT: &str = "2";
const STRING: &str = "32";
const NUMBER: &str = "33";
const WORD: &str = "35";
/// The colour of code in an unknown language.
const PLAIN: &str = "36";

/// Maximum bytes of a coloured line; longer ones are data.
const MAX_LINE: usize = 2_000;

/// The syntax of a family of languages.
struct Language {
    names: &'static [&'static str],
    /// The start of a comment that ends with the line.
    comments: &'static [&'static str],
    /// The start and the end of a comment over several lines.
    block: Option<(&'static str, &'static str)>,
    quotes: &'static [char],
    /// Whether a triple quote begins a text over several lines.
    triple: bool,
    /// The keywords; in lower case if `any_case`.
    words: &'static str,
    any_case: bool,
}

const C_LIKE: Language = Language {
    names: &[],
    comments: &["//"],
    block: Some(("/*", "*/")),
    quotes: &['"', '\''],
    triple: false,
    words: "",
    any_case: false,
};

const LANGUAGES: &[Language] = &[
    Language {
        names: &["rust", "rs"],
        // A quote also begins a lifetime.
        quotes: &['"'],
        words: "as async await break const continue crate dyn else enum extern false fn for if impl in let loop match mod move mut pub \
                ref return self Self static struct super trait true type unsafe use where while",
        ..C_LIKE
    },
    Language {
        names: &["js", "javascript", "ts", "typescript", "jsx", "tsx", "mjs"],
        quotes: &['"', '\'', '`'],
        words: "as async await break case catch class const continue default delete do else enum export extends false finally for from \
                function if import in instanceof interface let new null of return static super switch this throw true try type typeof \
                undefined var void while yield",
        ..C_LIKE
    },
    Language {
        names: &[
            "c", "h", "cpp", "c++", "cc", "hpp", "java", "kotlin", "kt", "cs", "csharp", "go", "swift", "scala",
            "dart", "php",
        ],
        words: "abstract auto bool boolean break byte case catch char class const continue default defer do double else enum extends \
                extern false final finally float for func fun go goto if implements import in int interface let long map namespace new \
                nil null nullptr override package private protected public range return self short signed sizeof static string struct \
                super switch template this throw throws true try type typedef typename union unsigned using val var virtual void \
                volatile when while",
        ..C_LIKE
    },
    Language { names: &["css", "scss", "less"], comments: &[], words: "important inherit initial none auto", ..C_LIKE },
    Language {
        names: &["python", "py", "python3"],
        comments: &["#"],
        block: None,
        triple: true,
        words: "and as assert async await break class continue def del elif else except False finally for from global if import in is \
                lambda match None nonlocal not or pass raise return self True try while with yield",
        ..C_LIKE
    },
    Language {
        names: &["sh", "bash", "shell", "zsh", "console", "dockerfile", "makefile", "make"],
        comments: &["#"],
        block: None,
        words: "break case cd continue do done echo elif else esac exit export fi for function if in local printf read return set shift \
                then trap unset until while",
        ..C_LIKE
    },
    Language {
        names: &["ruby", "rb", "perl", "pl", "r", "elixir", "ex"],
        comments: &["#"],
        block: None,
        words: "and begin break case class def do else elsif end ensure false for function if in module my next nil not or our package \
                raise require rescue return self sub then true unless until use when while yield",
        ..C_LIKE
    },
    Language {
        names: &["toml", "ini", "yaml", "yml", "conf", "properties"],
        comments: &["#", ";"],
        block: None,
        words: "true false null yes no on off",
        ..C_LIKE
    },
    Language { names: &["json", "jsonc", "json5", "jsonl"], words: "true false null", ..C_LIKE },
    Language {
        names: &["sql", "sqlite", "postgresql", "mysql"],
        comments: &["--"],
        words: "add all alter and as asc avg begin between by case commit constraint count create default delete desc distinct drop else \
                end exists foreign from group having if in index inner insert into is join key left like limit max min not null offset \
                on or order outer primary references returning right rollback select set sum table then trigger union unique update \
                using values view when where with",
        any_case: true,
        ..C_LIKE
    },
    Language {
        names: &["lua"],
        comments: &["--"],
        block: None,
        words: "and break do else elseif end false for function if in local nil not or repeat return then true until while",
        ..C_LIKE
    },
    Language { names: &["html", "xml", "svg", "vue"], comments: &[], block: Some(("<!--", "-->")), ..C_LIKE },
];

/// The colours of one block of code.
#[derive(Default)]
pub(super) struct CodeColours {
    language: Option<&'static Language>,
    /// The end of the comment or text that an earlier line began, and its colour.
    open: Option<(String, &'static str)>,
}

impl std::fmt::Debug for CodeColours {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CodeColours").field("open", &self.open).finish_non_exhaustive()
    }
}

impl CodeColours {
    /// Chooses the language by the text after the opening fence: "rust", "python title=a.py".
    pub(super) fn from_info(info: &str) -> Self {
        let name = info.trim().split(|c: char| c.is_whitespace() || ",{".contains(c)).next().unwrap_or_default();
        let name = name.to_ascii_lowercase();
        let language = LANGUAGES.iter().find(|language| language.names.contains(&name.as_str()));
        Self { language, open: None }
    }

    /// Colours a line of the block.
    pub(super) fn line(&mut self, paint: Paint, line: &str) -> String {
        let Some(language) = self.language.filter(|_| paint.is_coloured() && line.len() <= MAX_LINE) else {
            return paint.with(PLAIN, line);
        };
        let mut out = String::new();
        let mut rest = line;
        while !rest.is_empty() {
            let (length, colour) =
                self.token(language, rest, line.len() == rest.len() || !ends_word(&line[..line.len() - rest.len()]));
            let (token, after) = rest.split_at(length);
            match colour {
                Some(colour) => out.push_str(&paint.with(colour, token)),
                None => out.push_str(token),
            }
            rest = after;
        }
        out
    }

    /// Returns the length of the next token of a line that is not empty, and its colour. A word or number begins only if
    /// `start` is true.
    fn token(&mut self, language: &'static Language, rest: &str, start: bool) -> (usize, Option<&'static str>) {
        if let Some((end, colour)) = self.open.take() {
            return match rest.find(&end) {
                Some(at) => (at + end.len(), Some(colour)),
                None => {
                    self.open = Some((end, colour));
                    (rest.len(), Some(colour))
                }
            };
        }
        // In a shell, `a#b` and `$#` do not begin comments.
        if language.comments.iter().any(|mark| rest.starts_with(mark) && (start || *mark != "#")) {
            return (rest.len(), Some(COMMENT));
        }
        if let Some((begin, end)) = language.block.filter(|(begin, _)| rest.starts_with(begin)) {
            return self.opened(rest, begin.len(), end, COMMENT);
        }
        let first = rest.chars().next().unwrap_or_default();
        if language.quotes.contains(&first) {
            let triple = first.to_string().repeat(3);
            if language.triple && rest.starts_with(&triple) {
                return self.opened(rest, triple.len(), &triple, STRING);
            }
            return (quoted(rest, first), Some(STRING));
        }
        if !start || !(first.is_alphanumeric() || first == '_') {
            return (first.len_utf8(), None);
        }
        let end = rest.find(|c: char| !(c.is_alphanumeric() || c == '_')).unwrap_or(rest.len());
        if first.is_ascii_digit() {
            let end = rest.find(|c: char| !(c.is_ascii_alphanumeric() || "._".contains(c))).unwrap_or(rest.len());
            return (end, Some(NUMBER));
        }
        let word = &rest[..end];
        let known = language.words.split_whitespace().any(|known| match language.any_case {
            true => known.eq_ignore_ascii_case(word),
            false => known == word,
        });
        (end, known.then_some(WORD))
    }

    fn opened(&mut self, rest: &str, length: usize, end: &str, colour: &'static str) -> (usize, Option<&'static str>) {
        match rest[length..].find(end) {
            Some(at) => (length + at + end.len(), Some(colour)),
            None => {
                self.open = Some((end.to_owned(), colour));
                (rest.len(), Some(colour))
            }
        }
    }
}

/// Returns whether the text ends inside of a word, so that no word begins after it.
fn ends_word(text: &str) -> bool {
    text.chars().next_back().is_some_and(|c| c.is_alphanumeric() || "_$".contains(c))
}

/// Returns the length of a quoted text: up to its end, or that of the line.
fn quoted(rest: &str, quote: char) -> usize {
    let mut escaped = false;
    for (at, c) in rest.char_indices().skip(1) {
        match c {
            _ if std::mem::take(&mut escaped) => {}
            '\\' => escaped = true,
            c if c == quote => return at + c.len_utf8(),
            _ => {}
        }
    }
    rest.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn coloured(info: &str, lines: &[&str]) -> String {
        let mut colours = CodeColours::from_info(info);
        let lines: Vec<_> = lines.iter().map(|line| colours.line(Paint::always(), line)).collect();
        let text = lines.join("\n");
        let marks = [(COMMENT, "c"), (STRING, "s"), (NUMBER, "n"), (WORD, "w"), (PLAIN, "p")];
        let text = text.replace("\x1b[0m", ">");
        marks.iter().fold(text, |text, (code, mark)| text.replace(&format!("\x1b[{code}m"), &format!("<{mark}:")))
    }

    #[test]
    fn words_strings_numbers_and_comments_have_colours() {
        let rust = coloured("rust,ignore", &["let x = \"a\\\"b\"; // 1", "fnord(0x1f, 'a)"]);
        assert_eq!(rust, "<w:let> x = <s:\"a\\\"b\">; <c:// 1>\nfnord(<n:0x1f>, 'a)");
        assert_eq!(coloured("sql", &["SELECT a1 FROM t -- x"]), "<w:SELECT> a1 <w:FROM> t <c:-- x>");
        assert_eq!(coloured("sh", &["echo $# a#b # c"]), "<w:echo> $# a#b <c:# c>");
        assert_eq!(coloured("json", &["{\"a\": [1.5, true]}"]), "{<s:\"a\">: [<n:1.5>, <w:true>]}");
    }

    #[test]
    fn what_goes_over_several_lines_keeps_its_colour() {
        let python = coloured("python", &["x = '''a", "if", "b''' + 1"]);
        assert_eq!(python, "x = <s:'''a>\n<s:if>\n<s:b'''> + <n:1>");
        assert_eq!(coloured("c", &["/* a", "b */ int"]), "<c:/* a>\n<c:b */> <w:int>");
    }

    #[test]
    fn no_byte_of_the_code_is_lost_and_without_colours_none_is_added() {
        for line in ["", "ä \"ö", "'", "a\\", "\"\"\"", "/*", "日本 1_0.x"] {
            for info in ["rust", "python", "", "sql", "unknown"] {
                assert_eq!(CodeColours::from_info(info).line(Paint::never(), line), line, "{info}");
                let text = CodeColours::from_info(info).line(Paint::always(), line);
                let bare: String = text
                    .split('\x1b')
                    .enumerate()
                    .map(|(n, part)| if n == 0 { part } else { part.split_once('m').unwrap().1 })
                    .collect();
                assert_eq!(bare, line, "{info}");
            }
        }
    }
}
