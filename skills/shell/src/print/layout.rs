//! A function on several lines, as `declare -f` and `type` of bash lay it out.

use std::fmt::Write;

use crate::program::{Command, Item, Kind, Link, List, Pipeline, Then};

const STEP: &str = "    ";

/// The definition of a function.
pub fn function(name: &str, body: &Command) -> String {
    let mut layout = Layout { text: format!("{name} () \n"), depth: 0 };
    layout.command(body);
    layout.text.push('\n');
    layout.text
}

struct Layout {
    text: String,
    depth: usize,
}

impl Layout {
    fn push(&mut self, text: &str) {
        self.text.push_str(text);
    }

    fn line(&mut self) {
        self.push("\n");
        self.text.push_str(&STEP.repeat(self.depth));
    }

    /// A list with a line for each of its commands, one step further in. `closed`: the last one ends with `;` too.
    fn block(&mut self, list: &List, closed: bool) {
        self.depth += 1;
        for (at, item) in list.0.iter().enumerate() {
            match at > 0 && list.0[at - 1].background {
                true => self.push(" "),
                false => self.line(),
            }
            self.item(item);
            if !item.background && (closed || at + 1 < list.0.len()) {
                self.push(";");
            }
        }
        self.depth -= 1;
        self.line();
    }

    /// A list that begins on this line.
    fn inline(&mut self, list: &List) {
        for (at, item) in list.0.iter().enumerate() {
            match at {
                0 => {}
                _ if list.0[at - 1].background => self.push(" "),
                _ => {
                    self.push(";");
                    self.line();
                }
            }
            self.item(item);
        }
    }

    fn item(&mut self, item: &Item) {
        self.pipeline(&item.first);
        for (link, pipeline) in &item.rest {
            self.push(if *link == Link::And { " && " } else { " || " });
            self.pipeline(pipeline);
        }
        if item.background {
            self.push(" &");
        }
    }

    fn pipeline(&mut self, pipeline: &Pipeline) {
        if pipeline.time.is_some() {
            self.push("time ");
        }
        if pipeline.negated {
            self.push("! ");
        }
        for (at, stage) in pipeline.stages.iter().enumerate() {
            if at > 0 {
                self.push(" | ");
            }
            self.command(stage);
        }
    }

    fn command(&mut self, command: &Command) {
        match &command.kind {
            Kind::Group(list) => {
                self.push("{ ");
                self.block(list, false);
                self.push("}");
            }
            Kind::Subshell(list) => {
                self.push("( ");
                self.inline(list);
                self.push(" )");
            }
            Kind::If { branches, otherwise } => self.branches(branches, otherwise.as_ref()),
            Kind::Loop { until, condition, body } => {
                self.push(if *until { "until " } else { "while " });
                self.inline(condition);
                self.push("; do");
                self.block(body, true);
                self.push("done");
            }
            Kind::For { name, words, body } | Kind::Select { name, words, body } => {
                let word = if matches!(command.kind, Kind::Select { .. }) { "select" } else { "for" };
                let words = words.as_ref().map_or_else(
                    || "\"$@\"".to_owned(),
                    |words| words.iter().map(|word| word.value.as_str()).collect::<Vec<_>>().join(" "),
                );
                self.push(&format!("{word} {name} in {words};"));
                self.looped(body);
            }
            Kind::ArithmeticFor { start, condition, step, body } => {
                self.push(&format!("for (({start}; {condition}; {step}))"));
                self.looped(body);
            }
            Kind::Case { word, items } => {
                self.push(&format!("case {word} in "));
                self.depth += 1;
                for item in items {
                    self.line();
                    let patterns: Vec<&str> = item.patterns.iter().map(|pattern| pattern.value.as_str()).collect();
                    self.push(&format!("{})", patterns.join(" | ")));
                    self.block(&item.body, false);
                    self.push(match item.then {
                        Then::Leave => ";;",
                        Then::RunNext => ";&",
                        Then::TryNext => ";;&",
                    });
                }
                self.depth -= 1;
                self.line();
                self.push("esac");
            }
            Kind::Function { name, body } => {
                self.push(&format!("function {name} () "));
                self.line();
                self.command(body);
            }
            kind @ (Kind::Simple(_) | Kind::Arithmetic(_) | Kind::Test(_)) => {
                // Writing into memory does not fail.
                let _ = write!(self.text, "{kind}");
            }
        }
        for redirection in &command.redirections {
            let _ = write!(self.text, " {redirection}");
        }
    }

    fn branches(&mut self, branches: &[(List, List)], otherwise: Option<&List>) {
        let Some(((condition, body), rest)) = branches.split_first() else { return };
        self.push("if ");
        self.inline(condition);
        self.push("; then");
        self.block(body, true);
        match (rest, otherwise) {
            ([], None) => {}
            ([], Some(body)) => {
                self.push("else");
                self.block(body, true);
            }
            // As in bash, `elif` becomes an `if` inside `else`.
            (rest, otherwise) => {
                self.push("else");
                self.depth += 1;
                self.line();
                self.branches(rest, otherwise);
                self.push(";");
                self.depth -= 1;
                self.line();
            }
        }
        self.push("fi");
    }

    fn looped(&mut self, body: &List) {
        self.line();
        self.push("do");
        self.block(body, true);
        self.push("done");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parse::parse;

    /// As bash 5.2 prints it.
    #[test]
    fn lays_out_as_bash_does() {
        let source = "f() { local x=1; if [ $x = 1 ]; then echo a; elif b; then c; else d; fi; for i in 1 2; do echo $i; done > o\n\
            while a; b; do c & d; done; case $x in a | b) echo a; echo b ;; *) c ;& esac; (a; b) | c && { d; }; }";
        let list = parse(source).expect("a program");
        let Kind::Function { name, body } = &list.0[0].first.stages[0].kind else { panic!("no function") };
        let expected = "f () \n{ \n    local x=1;\n    if [ $x = 1 ]; then\n        echo a;\n    else\n        if b; then\n            \
            c;\n        else\n            d;\n        fi;\n    fi;\n    for i in 1 2;\n    do\n        echo $i;\n    done > o;\n    \
            while a;\n    b; do\n        c & d;\n    done;\n    case $x in \n        a | b)\n            echo a;\n            \
            echo b\n        ;;\n        *)\n            c\n        ;&\n    esac;\n    ( a;\n    b ) | c && { \n        d\n    }\n}\n";
        assert_eq!(function(name, body), expected);
    }
}
