//! Fields: what a word expands to before it is a list of strings.

/// Where text came from decides what may still happen to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Stays as it is.
    Quoted,
    /// Written in the word: a glob, but not split.
    Literal,
    /// The result of an expansion that was not quoted: split, and a glob.
    Expanded,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Segment {
    pub text: String,
    pub kind: Kind,
}

/// An empty quoted segment makes a field exist; a field without segments is none.
pub type Field = Vec<Segment>;

/// One character of a pattern, and whether it stands for itself.
pub type Mark = (char, bool);

/// Field splitting (POSIX 2.6.5) with the separators of `IFS`.
pub fn split(fields: Vec<Field>, separators: &str) -> Vec<Field> {
    let mut done = Vec::new();
    for field in fields {
        if field.iter().all(|segment| segment.kind != Kind::Expanded) || separators.is_empty() {
            done.extend((!field.is_empty()).then_some(field));
            continue;
        }
        split_one(field, separators, &mut done);
    }
    done
}

fn split_one(field: Field, separators: &str, done: &mut Vec<Field>) {
    let mut open = Field::new();
    // White space has ended the last field; one other separator may still follow and belong to the same end.
    let mut after_space = false;
    for segment in field {
        if segment.kind != Kind::Expanded {
            open.push(segment);
            after_space = false;
            continue;
        }
        let mut run = String::new();
        for c in segment.text.chars() {
            if !separators.contains(c) {
                run.push(c);
                after_space = false;
                continue;
            }
            push_run(&mut open, &mut run);
            let space = matches!(c, ' ' | '\t' | '\n');
            if !open.is_empty() {
                done.push(std::mem::take(&mut open));
                after_space = space;
            } else if !space {
                if !after_space {
                    done.push(vec![Segment { text: String::new(), kind: Kind::Quoted }]);
                }
                after_space = false;
            }
        }
        push_run(&mut open, &mut run);
    }
    done.extend((!open.is_empty()).then_some(open));
}

fn push_run(open: &mut Field, run: &mut String) {
    if !run.is_empty() {
        open.push(Segment { text: std::mem::take(run), kind: Kind::Expanded });
    }
}

/// Quote removal.
pub fn join(field: &Field) -> String {
    field.iter().map(|segment| segment.text.as_str()).collect()
}

/// A field as a pattern: a backslash that an expansion brought quotes the next character.
pub fn marks(field: &Field) -> Vec<Mark> {
    let mut marks = Vec::new();
    for segment in field {
        let mut chars = segment.text.chars();
        while let Some(c) = chars.next() {
            match (segment.kind, c) {
                (Kind::Quoted, c) => marks.push((c, true)),
                (_, '\\') => marks.push((chars.next().unwrap_or('\\'), true)),
                (_, c) => marks.push((c, false)),
            }
        }
    }
    marks
}

/// Fields while they are being built.
#[derive(Default)]
pub struct Fields {
    done: Vec<Field>,
    open: Field,
    /// How often something was added, to see whether an expansion added anything.
    pub added: usize,
}

impl Fields {
    pub fn push(&mut self, text: impl Into<String>, kind: Kind) {
        let text = text.into();
        if text.is_empty() && kind != Kind::Quoted {
            return;
        }
        self.added += 1;
        match self.open.last_mut() {
            Some(last) if last.kind == kind => last.text.push_str(&text),
            _ => self.open.push(Segment { text, kind }),
        }
    }

    /// Ends the field; the next text begins another one.
    pub fn end_field(&mut self) {
        self.added += 1;
        self.done.push(std::mem::take(&mut self.open));
    }

    pub fn finish(mut self) -> Vec<Field> {
        self.done.push(self.open);
        self.done
    }
}
