//! From the parser's tree to `program`.

use std::rc::Rc;

use brush_parser::ast::{self, CommandPrefixOrSuffixItem as Piece, SourceLocation};

use crate::program::{
    Access, Argument, Assigned, Assignment, CaseItem, Clock, Command, Direction, Item, Kind, Link, List, Pipeline,
    Redirection, Simple, Target, Then,
};

/// A form that the parser knows and the shell does not.
pub struct Unsupported {
    pub what: &'static str,
    pub line: u32,
}

type Lowered<T> = Result<T, Unsupported>;

pub fn program(tree: ast::Program) -> Lowered<List> {
    let items = tree.complete_commands.into_iter().flat_map(|list| list.0).map(item).collect::<Lowered<_>>()?;
    Ok(List(items))
}

fn list(tree: ast::CompoundList) -> Lowered<List> {
    Ok(List(tree.0.into_iter().map(item).collect::<Lowered<_>>()?))
}

fn item(ast::CompoundListItem(tree, separator): ast::CompoundListItem) -> Lowered<Item> {
    let rest = tree.additional.into_iter().map(|linked| match linked {
        ast::AndOr::And(next) => Ok((Link::And, pipeline(next)?)),
        ast::AndOr::Or(next) => Ok((Link::Or, pipeline(next)?)),
    });
    Ok(Item {
        rest: rest.collect::<Lowered<_>>()?,
        first: pipeline(tree.first)?,
        background: matches!(separator, ast::SeparatorOperator::Async),
    })
}

fn pipeline(tree: ast::Pipeline) -> Lowered<Pipeline> {
    Ok(Pipeline {
        time: tree.timed.map(|timed| if timed.is_posix_output() { Clock::Posix } else { Clock::Bash }),
        negated: tree.bang,
        stages: tree.seq.into_iter().map(command).collect::<Lowered<_>>()?,
    })
}

fn command(tree: ast::Command) -> Lowered<Command> {
    let line = line(&tree);
    let (kind, list) = match tree {
        ast::Command::Simple(tree) => {
            let mut redirections = Vec::new();
            let kind = simple(tree, &mut redirections)?;
            return Ok(Command { line, kind: Kind::Simple(kind), redirections });
        }
        ast::Command::Compound(tree, list) => (compound(tree, line)?, list),
        ast::Command::ExtendedTest(tree, list) => (Kind::Test(without_places(tree.expr)), list),
        ast::Command::Function(tree) => {
            let ast::FunctionBody(body, list) = tree.body;
            let body = Command { line, kind: compound(body, line)?, redirections: redirections(list)? };
            (Kind::Function { name: tree.fname.value, body: Rc::new(body) }, None)
        }
    };
    Ok(Command { line, kind, redirections: redirections(list)? })
}

fn line(tree: &ast::Command) -> u32 {
    let place = match tree {
        ast::Command::Simple(simple) => {
            let prefix = simple.prefix.as_ref().and_then(SourceLocation::location);
            prefix.or_else(|| simple.word_or_name.as_ref().and_then(SourceLocation::location))
        }
        tree => tree.location(),
    };
    place.map_or(1, |span| u32::try_from(span.start.line).unwrap_or(u32::MAX))
}

fn compound(tree: ast::CompoundCommand, line: u32) -> Lowered<Kind> {
    Ok(match tree {
        ast::CompoundCommand::Arithmetic(tree) => Kind::Arithmetic(tree.expr.value),
        ast::CompoundCommand::ArithmeticForClause(tree) => {
            let text = |part: Option<ast::UnexpandedArithmeticExpr>| part.map(|part| part.value).unwrap_or_default();
            Kind::ArithmeticFor {
                start: text(tree.initializer),
                condition: text(tree.condition),
                step: text(tree.updater),
                body: list(tree.body.list)?,
            }
        }
        ast::CompoundCommand::BraceGroup(tree) => Kind::Group(list(tree.list)?),
        ast::CompoundCommand::Subshell(tree) => Kind::Subshell(list(tree.list)?),
        ast::CompoundCommand::ForClause(tree) => Kind::For {
            name: tree.variable_name,
            words: tree.values.map(|words| words.into_iter().map(word).collect()),
            body: list(tree.body.list)?,
        },
        ast::CompoundCommand::CaseClause(tree) => {
            Kind::Case { word: word(tree.value), items: tree.cases.into_iter().map(case_item).collect::<Lowered<_>>()? }
        }
        ast::CompoundCommand::IfClause(tree) => {
            let mut branches = vec![(list(tree.condition)?, list(tree.then)?)];
            let mut otherwise = None;
            for clause in tree.elses.into_iter().flatten() {
                match clause.condition {
                    Some(condition) => branches.push((list(condition)?, list(clause.body)?)),
                    None => otherwise = Some(list(clause.body)?),
                }
            }
            Kind::If { branches, otherwise }
        }
        ast::CompoundCommand::WhileClause(tree) => looping(false, tree)?,
        ast::CompoundCommand::UntilClause(tree) => looping(true, tree)?,
        ast::CompoundCommand::Coprocess(_) => return Err(Unsupported { what: "coproc", line }),
    })
}

fn looping(until: bool, tree: ast::WhileOrUntilClauseCommand) -> Lowered<Kind> {
    Ok(Kind::Loop { until, condition: list(tree.0)?, body: list(tree.1.list)? })
}

fn case_item(tree: ast::CaseItem) -> Lowered<CaseItem> {
    Ok(CaseItem {
        patterns: tree.patterns.into_iter().map(word).collect(),
        body: tree.cmd.map(list).transpose()?.unwrap_or_default(),
        then: match tree.post_action {
            ast::CaseItemPostAction::ExitCase => Then::Leave,
            ast::CaseItemPostAction::UnconditionallyExecuteNextCaseItem => Then::RunNext,
            ast::CaseItemPostAction::ContinueEvaluatingCases => Then::TryNext,
        },
    })
}

fn simple(tree: ast::SimpleCommand, redirections: &mut Vec<Redirection>) -> Lowered<Simple> {
    let mut made = Simple::default();
    for piece in tree.prefix.into_iter().flat_map(|prefix| prefix.0) {
        match piece {
            Piece::IoRedirect(tree) => redirections.push(redirection(tree)?),
            Piece::AssignmentWord(tree, _) => made.assignments.push(assignment(tree)),
            Piece::Word(tree) => made.words.push(Argument::Word(word(tree))),
            Piece::ProcessSubstitution(kind, tree) => {
                made.words.push(Argument::Process(direction(&kind), list(tree.list)?));
            }
        }
    }
    made.words.extend(tree.word_or_name.map(|name| Argument::Word(word(name))));
    for piece in tree.suffix.into_iter().flat_map(|suffix| suffix.0) {
        match piece {
            Piece::IoRedirect(tree) => redirections.push(redirection(tree)?),
            Piece::AssignmentWord(tree, text) => {
                made.words.push(Argument::Assignment(assignment(tree), word(text)));
            }
            Piece::Word(tree) => made.words.push(Argument::Word(word(tree))),
            Piece::ProcessSubstitution(kind, tree) => {
                made.words.push(Argument::Process(direction(&kind), list(tree.list)?));
            }
        }
    }
    Ok(made)
}

fn assignment(tree: ast::Assignment) -> Assignment {
    let (name, index) = match tree.name {
        ast::AssignmentName::VariableName(name) => (name, None),
        ast::AssignmentName::ArrayElementName(name, index) => (name, Some(index)),
    };
    let value = match tree.value {
        ast::AssignmentValue::Scalar(value) => Assigned::Scalar(word(value)),
        ast::AssignmentValue::Array(elements) => {
            Assigned::Array(elements.into_iter().map(|(key, value)| (key.map(word), word(value))).collect())
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

fn redirections(tree: Option<ast::RedirectList>) -> Lowered<Vec<Redirection>> {
    tree.into_iter().flat_map(|list| list.0).map(redirection).collect()
}

fn redirection(tree: ast::IoRedirect) -> Lowered<Redirection> {
    let (number, target) = match tree {
        ast::IoRedirect::File(number, kind, target) => (number, file(&kind, target)?),
        ast::IoRedirect::HereDocument(number, document) => {
            (number, Target::Document { text: body(&document), expand: document.requires_expansion })
        }
        ast::IoRedirect::HereString(number, text) => (number, Target::Text(word(text))),
        ast::IoRedirect::OutputAndError(file, append) => (None, Target::Both { append, word: word(file) }),
    };
    Ok(Redirection { number: number.and_then(|number| u32::try_from(number).ok()), target })
}

/// The parser leaves the tabs of `<<-` where they are.
fn body(document: &ast::IoHereDocument) -> String {
    if !document.remove_tabs {
        return document.doc.value.clone();
    }
    document.doc.value.split_inclusive('\n').map(|line| line.trim_start_matches('\t')).collect()
}

fn file(kind: &ast::IoFileRedirectKind, target: ast::IoFileRedirectTarget) -> Lowered<Target> {
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
        To::Filename(name) => Target::File(access, word(name)),
        To::Fd(number) => Target::Duplicate { output, word: ast::Word::from(number.to_string()) },
        To::Duplicate(source) => Target::Duplicate { output, word: word(source) },
        To::ProcessSubstitution(kind, tree) => Target::Process(access, direction(&kind), list(tree.list)?),
    })
}

/// Places would make up most of what a fork sends.
fn word(tree: ast::Word) -> ast::Word {
    ast::Word { value: tree.value, loc: None }
}

fn without_places(tree: ast::ExtendedTestExpr) -> ast::ExtendedTestExpr {
    use ast::ExtendedTestExpr as Test;
    let inner = |tree: Box<Test>| Box::new(without_places(*tree));
    match tree {
        Test::And(left, right) => Test::And(inner(left), inner(right)),
        Test::Or(left, right) => Test::Or(inner(left), inner(right)),
        Test::Not(tree) => Test::Not(inner(tree)),
        Test::Parenthesized(tree) => Test::Parenthesized(inner(tree)),
        Test::UnaryTest(predicate, operand) => Test::UnaryTest(predicate, word(operand)),
        Test::BinaryTest(predicate, left, right) => Test::BinaryTest(predicate, word(left), word(right)),
    }
}
