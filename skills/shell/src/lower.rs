//! From the parser's tree to `program`.

use std::rc::Rc;

use brush_parser::ast::{self, CommandPrefixOrSuffixItem as Piece, SourceLocation};

use crate::parse::mask::Masked;
use crate::parse::parse;
use crate::program::{
    Access, Argument, Assigned, Assignment, CaseItem, Clock, Command, Descriptor, Direction, Item, Kind, Link, List,
    Pipeline, Redirection, Simple, Target, Then,
};

/// A form that the parser knows and the shell does not.
pub struct Unsupported {
    pub what: &'static str,
    pub line: u32,
}

type Lowered<T> = Result<T, Unsupported>;

pub fn program(source: &Masked, tree: ast::Program) -> Lowered<Vec<List>> {
    tree.complete_commands.into_iter().map(|tree| list(source, tree)).collect()
}

fn list(source: &Masked, tree: ast::CompoundList) -> Lowered<List> {
    Ok(List(tree.0.into_iter().map(|tree| item(source, tree)).collect::<Lowered<_>>()?))
}

fn item(source: &Masked, ast::CompoundListItem(tree, separator): ast::CompoundListItem) -> Lowered<Item> {
    let rest = tree.additional.into_iter().map(|linked| match linked {
        ast::AndOr::And(next) => Ok((Link::And, pipeline(source, next)?)),
        ast::AndOr::Or(next) => Ok((Link::Or, pipeline(source, next)?)),
    });
    Ok(Item {
        rest: rest.collect::<Lowered<_>>()?,
        first: pipeline(source, tree.first)?,
        background: matches!(separator, ast::SeparatorOperator::Async),
    })
}

fn pipeline(source: &Masked, tree: ast::Pipeline) -> Lowered<Pipeline> {
    Ok(Pipeline {
        time: tree.timed.map(|timed| if timed.is_posix_output() { Clock::Posix } else { Clock::Bash }),
        negated: tree.bang,
        stages: tree.seq.into_iter().map(|tree| command(source, tree)).collect::<Lowered<_>>()?,
    })
}

fn command(source: &Masked, tree: ast::Command) -> Lowered<Command> {
    let line = line(source, &tree);
    let (kind, list) = match tree {
        ast::Command::Simple(tree) => {
            let mut redirections = Vec::new();
            let kind = simple(source, tree, &mut redirections)?;
            return Ok(Command { line, kind: Kind::Simple(kind), redirections });
        }
        ast::Command::Compound(tree, list) => (compound(source, tree, line)?, list),
        ast::Command::ExtendedTest(tree, list) => (Kind::Test(test(source, tree.expr)), list),
        ast::Command::Function(tree) => {
            let ast::FunctionBody(body, list) = tree.body;
            let body = Command { line, kind: compound(source, body, line)?, redirections: redirections(source, list)? };
            (Kind::Function { name: tree.fname.value, body: Rc::new(body) }, None)
        }
    };
    Ok(Command { line, kind, redirections: redirections(source, list)? })
}

fn line(source: &Masked, tree: &ast::Command) -> u32 {
    let place = match tree {
        ast::Command::Simple(simple) => {
            let prefix = simple.prefix.as_ref().and_then(SourceLocation::location);
            prefix.or_else(|| simple.word_or_name.as_ref().and_then(SourceLocation::location))
        }
        tree => tree.location(),
    };
    let line = place.map_or(1, |span| source.line(span.start.line, span.start.index));
    u32::try_from(line).unwrap_or(u32::MAX)
}

fn compound(source: &Masked, tree: ast::CompoundCommand, line: u32) -> Lowered<Kind> {
    Ok(match tree {
        ast::CompoundCommand::Arithmetic(tree) => match inside_brackets(source, &tree) {
            None => Kind::Arithmetic(source.unmasked(&tree.expr.value)),
            Some(inside) => {
                let lines = "\n".repeat(line.saturating_sub(1) as usize);
                let inside = parse(&(lines + &inside)).map_err(|_| Unsupported { what: "((", line })?;
                Kind::Subshell(inside)
            }
        },
        ast::CompoundCommand::ArithmeticForClause(tree) => {
            let text = |part: Option<ast::UnexpandedArithmeticExpr>| {
                part.map(|part| source.unmasked(&part.value)).unwrap_or_default()
            };
            Kind::ArithmeticFor {
                start: text(tree.initializer),
                condition: text(tree.condition),
                step: text(tree.updater),
                body: list(source, tree.body.list)?,
            }
        }
        ast::CompoundCommand::BraceGroup(tree) => Kind::Group(list(source, tree.list)?),
        ast::CompoundCommand::Subshell(tree) => Kind::Subshell(list(source, tree.list)?),
        ast::CompoundCommand::ForClause(tree) => {
            let name = tree.variable_name;
            let words = tree.values.map(|words| words.into_iter().map(|tree| word(source, tree)).collect());
            let body = list(source, tree.body.list)?;
            match source.is_select(tree.loc.start.index) {
                true => Kind::Select { name, words, body },
                false => Kind::For { name, words, body },
            }
        }
        ast::CompoundCommand::CaseClause(tree) => Kind::Case {
            word: word(source, tree.value),
            items: tree.cases.into_iter().map(|tree| case_item(source, tree)).collect::<Lowered<_>>()?,
        },
        ast::CompoundCommand::IfClause(tree) => {
            let mut branches = vec![(list(source, tree.condition)?, list(source, tree.then)?)];
            let mut otherwise = None;
            for clause in tree.elses.into_iter().flatten() {
                match clause.condition {
                    Some(condition) => branches.push((list(source, condition)?, list(source, clause.body)?)),
                    None => otherwise = Some(list(source, clause.body)?),
                }
            }
            Kind::If { branches, otherwise }
        }
        ast::CompoundCommand::WhileClause(tree) => looping(source, false, tree)?,
        ast::CompoundCommand::UntilClause(tree) => looping(source, true, tree)?,
        ast::CompoundCommand::Coprocess(_) => return Err(Unsupported { what: "coproc", line }),
    })
}

/// The commands in `( (a) )` and `((a); (b))`, which the parser takes for arithmetic; nothing if it is right.
fn inside_brackets(source: &Masked, tree: &ast::ArithmeticCommand) -> Option<String> {
    let (start, end) = (tree.loc.start.index, tree.loc.end.index);
    let inside: String = source.text.chars().take(end.saturating_sub(1)).skip(start + 1).collect();
    let mut depth = 0_i32;
    let closes_early = tree.expr.value.chars().any(|c| {
        depth += i32::from(c == '(') - i32::from(c == ')');
        depth < 0
    });
    (closes_early || !inside.starts_with('(') || !inside.ends_with(')')).then(|| source.unmasked(&inside))
}

fn looping(source: &Masked, until: bool, tree: ast::WhileOrUntilClauseCommand) -> Lowered<Kind> {
    Ok(Kind::Loop { until, condition: list(source, tree.0)?, body: list(source, tree.1.list)? })
}

fn case_item(source: &Masked, tree: ast::CaseItem) -> Lowered<CaseItem> {
    Ok(CaseItem {
        patterns: tree.patterns.into_iter().map(|tree| word(source, tree)).collect(),
        body: tree.cmd.map(|tree| list(source, tree)).transpose()?.unwrap_or_default(),
        then: match tree.post_action {
            ast::CaseItemPostAction::ExitCase => Then::Leave,
            ast::CaseItemPostAction::UnconditionallyExecuteNextCaseItem => Then::RunNext,
            ast::CaseItemPostAction::ContinueEvaluatingCases => Then::TryNext,
        },
    })
}

fn simple(source: &Masked, tree: ast::SimpleCommand, redirections: &mut Vec<Redirection>) -> Lowered<Simple> {
    let mut made = Simple::default();
    for piece in tree.prefix.into_iter().flat_map(|prefix| prefix.0) {
        match piece {
            Piece::IoRedirect(tree) => redirections.push(redirection(source, tree)?),
            Piece::AssignmentWord(tree, _) => made.assignments.push(assignment(source, tree)),
            Piece::Word(tree) => made.words.push(Argument::Word(word(source, tree))),
            Piece::ProcessSubstitution(kind, tree) => {
                made.words.push(Argument::Process(direction(&kind), list(source, tree.list)?));
            }
        }
    }
    made.words.extend(tree.word_or_name.map(|name| Argument::Word(word(source, name))));
    for piece in tree.suffix.into_iter().flat_map(|suffix| suffix.0) {
        match piece {
            Piece::IoRedirect(tree) => redirections.push(redirection(source, tree)?),
            Piece::AssignmentWord(tree, text) => {
                made.words.push(Argument::Assignment(assignment(source, tree), word(source, text)));
            }
            Piece::Word(tree) => made.words.push(Argument::Word(word(source, tree))),
            Piece::ProcessSubstitution(kind, tree) => {
                made.words.push(Argument::Process(direction(&kind), list(source, tree.list)?));
            }
        }
    }
    Ok(made)
}

fn assignment(source: &Masked, tree: ast::Assignment) -> Assignment {
    let (name, index) = match tree.name {
        ast::AssignmentName::VariableName(name) => (name, None),
        ast::AssignmentName::ArrayElementName(name, index) => (name, Some(source.unmasked(&index))),
    };
    let value = match tree.value {
        ast::AssignmentValue::Scalar(value) => Assigned::Scalar(word(source, value)),
        ast::AssignmentValue::Array(elements) => {
            let element =
                |(key, value): (Option<ast::Word>, ast::Word)| (key.map(|key| word(source, key)), word(source, value));
            Assigned::Array(elements.into_iter().map(element).collect())
        }
    };
    Assignment { name, index, value, append: tree.append }
}

fn direction(kind: &ast::ProcessSubstitutionKind) -> Direction {
    match kind {
        ast::ProcessSubstitutionKind::Read => Direction::Read,
        ast::ProcessSubstitutionKind::Write => Direction::Write,
    }
}

fn redirections(source: &Masked, tree: Option<ast::RedirectList>) -> Lowered<Vec<Redirection>> {
    tree.into_iter().flat_map(|list| list.0).map(|tree| redirection(source, tree)).collect()
}

fn redirection(source: &Masked, tree: ast::IoRedirect) -> Lowered<Redirection> {
    let (number, target) = match tree {
        ast::IoRedirect::File(number, kind, target) => (number, file(source, &kind, target)?),
        ast::IoRedirect::HereDocument(number, document) => {
            (number, Target::Document { text: body(&document), expand: document.requires_expansion })
        }
        ast::IoRedirect::HereString(number, text) => (number, Target::Text(word(source, text))),
        ast::IoRedirect::OutputAndError(file, append) => (None, Target::Both { append, word: word(source, file) }),
    };
    let at = number.map_or(Descriptor::Usual, |number| {
        let number = u32::try_from(number).unwrap_or(u32::MAX);
        source.name(number).map_or(Descriptor::Number(number), |name| Descriptor::Name(name.to_owned()))
    });
    Ok(Redirection { at, target })
}

/// The parser leaves the tabs of `<<-` where they are.
fn body(document: &ast::IoHereDocument) -> String {
    if !document.remove_tabs {
        return document.doc.value.clone();
    }
    document.doc.value.split_inclusive('\n').map(|line| line.trim_start_matches('\t')).collect()
}

fn file(source: &Masked, kind: &ast::IoFileRedirectKind, target: ast::IoFileRedirectTarget) -> Lowered<Target> {
    use ast::{IoFileRedirectKind as From, IoFileRedirectTarget as To};
    let access = match kind {
        From::Read | From::DuplicateInput => Access::Read,
        From::Write | From::DuplicateOutput => Access::Write,
        From::Append => Access::Append,
        From::ReadAndWrite => Access::ReadWrite,
        From::Clobber => Access::Clobber,
    };
    let output = !matches!(kind, From::DuplicateInput);
    Ok(match target {
        To::Filename(name) => Target::File(access, word(source, name)),
        To::Fd(number) => Target::Duplicate { output, word: ast::Word::from(number.to_string()) },
        To::Duplicate(number) => Target::Duplicate { output, word: word(source, number) },
        To::ProcessSubstitution(kind, tree) => Target::Process(access, direction(&kind), list(source, tree.list)?),
    })
}

/// A word as it was written. Places would make up most of what a fork sends.
fn word(source: &Masked, tree: ast::Word) -> ast::Word {
    ast::Word { value: source.unmasked(&tree.value), loc: None }
}

fn test(source: &Masked, tree: ast::ExtendedTestExpr) -> ast::ExtendedTestExpr {
    use ast::ExtendedTestExpr as Test;
    let inner = |tree: Box<Test>| Box::new(test(source, *tree));
    let word = |tree| word(source, tree);
    match tree {
        Test::And(left, right) => Test::And(inner(left), inner(right)),
        Test::Or(left, right) => Test::Or(inner(left), inner(right)),
        Test::Not(tree) => Test::Not(inner(tree)),
        Test::Parenthesized(tree) => Test::Parenthesized(inner(tree)),
        Test::UnaryTest(predicate, operand) => Test::UnaryTest(predicate, word(operand)),
        Test::BinaryTest(predicate, left, right) => Test::BinaryTest(predicate, word(left), word(right)),
    }
}
