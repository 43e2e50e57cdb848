//! The conditions of `test`, `[` and `[[`.

mod file;
mod regex;
#[cfg(test)]
mod tests;

use brush_parser::ast::{BinaryPredicate, ExtendedTestExpr, UnaryPredicate, Word};

use crate::arith;
use crate::expand::{self, Env, Opt, Stop};

/// How deep parentheses and `!` may nest, and how long a chain of `&&` or `||` may be: each level is a frame of the stack.
const MAX_DEPTH: usize = 200;

/// `test` and `[` (without its `]`): the number of arguments decides what they mean (POSIX). Messages do not start with
/// the name of the command.
pub fn test(env: &mut dyn Env, args: &[String]) -> Result<bool, Stop> {
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    if let Some(result) = short(env, &args)? {
        return Ok(result);
    }
    let mut parser = Parser { env, args: &args, at: 0, depth: MAX_DEPTH };
    let result = parser.or()?;
    if parser.at < args.len() {
        return Err(Stop::misuse("too many arguments"));
    }
    Ok(result)
}

/// Up to four arguments; nothing if they have to be read as an expression.
fn short(env: &mut dyn Env, args: &[&str]) -> Result<Option<bool>, Stop> {
    Ok(Some(match args {
        [] => false,
        [one] => !one.is_empty(),
        ["!", one] => one.is_empty(),
        [operator, operand] => match unary_operator(operator) {
            Some(operator) => unary(env, &operator, operand)?,
            None => return Err(Stop::misuse(format!("{operator}: unary operator expected"))),
        },
        [left, operator, right] if binary_operator(operator).is_some() => binary_of(env, left, operator, right)?,
        [left, "-a", right] => !left.is_empty() && !right.is_empty(),
        [left, "-o", right] => !left.is_empty() || !right.is_empty(),
        ["!", rest @ ..] if args.len() < 5 => return Ok(short(env, rest)?.map(|result| !result)),
        ["(", one, ")"] => !one.is_empty(),
        [_, operator, _] => return Err(Stop::misuse(format!("{operator}: binary operator expected"))),
        ["(", first, second, ")"] => return short(env, &[first, second]),
        _ => return Ok(None),
    }))
}

fn binary_of(env: &mut dyn Env, left: &str, operator: &str, right: &str) -> Result<bool, Stop> {
    match binary_operator(operator) {
        Some(operator) => binary(env, &operator, left, right),
        None => Err(Stop::misuse(format!("{operator}: binary operator expected"))),
    }
}

/// More arguments than POSIX gives a meaning to: `-o` binds weaker than `-a`, and that weaker than `!`.
struct Parser<'e, 'a> {
    env: &'e mut dyn Env,
    args: &'a [&'a str],
    at: usize,
    depth: usize,
}

impl Parser<'_, '_> {
    fn peek(&self, ahead: usize) -> Option<&str> {
        self.args.get(self.at + ahead).copied()
    }

    fn or(&mut self) -> Result<bool, Stop> {
        let mut result = self.and()?;
        while self.peek(0) == Some("-o") {
            self.at += 1;
            result |= self.and()?;
        }
        Ok(result)
    }

    fn and(&mut self) -> Result<bool, Stop> {
        let mut result = self.primary()?;
        while self.peek(0) == Some("-a") {
            self.at += 1;
            result &= self.primary()?;
        }
        Ok(result)
    }

    fn primary(&mut self) -> Result<bool, Stop> {
        let mut negated = false;
        while self.peek(0) == Some("!") && self.peek(1).is_some() {
            negated = !negated;
            self.at += 1;
        }
        let Some(&first) = self.args.get(self.at) else { return Err(Stop::misuse("argument expected")) };
        let result = if let Some(operator) = self.args.get(self.at + 1).filter(|word| binary_operator(word).is_some())
            && let Some(right) = self.args.get(self.at + 2)
        {
            self.at += 3;
            binary_of(self.env, first, operator, right)?
        } else if first == "(" {
            self.depth = self.depth.checked_sub(1).ok_or_else(|| Stop::misuse("nested too deeply"))?;
            self.at += 1;
            let inner = self.or()?;
            if self.peek(0) != Some(")") {
                return Err(Stop::misuse("`)' expected"));
            }
            self.at += 1;
            self.depth += 1;
            inner
        } else if let Some(operator) = unary_operator(first)
            && let Some(operand) = self.args.get(self.at + 1)
        {
            self.at += 2;
            unary(self.env, &operator, operand)?
        } else {
            self.at += 1;
            !first.is_empty()
        };
        Ok(result != negated)
    }
}

/// `[[ … ]]`.
pub fn extended_test(env: &mut dyn Env, expr: &ExtendedTestExpr) -> Result<bool, Stop> {
    extended(env, expr, MAX_DEPTH)
}

fn extended(env: &mut dyn Env, expr: &ExtendedTestExpr, depth: usize) -> Result<bool, Stop> {
    let depth = depth.checked_sub(1).ok_or_else(|| Stop::misuse("[[: nested too deeply"))?;
    match expr {
        ExtendedTestExpr::And(left, right) => Ok(extended(env, left, depth)? && extended(env, right, depth)?),
        ExtendedTestExpr::Or(left, right) => Ok(extended(env, left, depth)? || extended(env, right, depth)?),
        ExtendedTestExpr::Not(inner) => Ok(!extended(env, inner, depth)?),
        ExtendedTestExpr::Parenthesized(inner) => extended(env, inner, depth),
        ExtendedTestExpr::UnaryTest(operator, operand) => {
            let operand = expand::text(env, operand)?;
            unary(env, operator, &operand)
        }
        ExtendedTestExpr::BinaryTest(operator, left, right) => extended_binary(env, operator, left, right),
    }
}

fn extended_binary(env: &mut dyn Env, operator: &BinaryPredicate, left: &Word, right: &Word) -> Result<bool, Stop> {
    use BinaryPredicate as Is;
    let left = expand::text(env, left)?;
    match operator {
        Is::StringExactlyMatchesPattern | Is::StringExactlyMatchesString => {
            Ok(expand::pattern(env, right)?.matches_text(&left))
        }
        Is::StringDoesNotExactlyMatchPattern | Is::StringDoesNotExactlyMatchString => {
            Ok(!expand::pattern(env, right)?.matches_text(&left))
        }
        // The parser takes a word that starts with a quote for text without a pattern, but only parts of it may be quoted.
        Is::StringMatchesRegex | Is::StringContainsSubstring => {
            let parts = expand::parts(env, right)?;
            let fold = env.option(Opt::Nocasematch);
            let groups = regex::groups(&parts, &left, fold)?;
            env.set_array("BASH_REMATCH", groups.clone().unwrap_or_default())?;
            Ok(groups.is_some())
        }
        other => {
            let right = expand::text(env, right)?;
            match arithmetic_comparison(other) {
                // Here both sides are expressions.
                Some(compare) => {
                    let left = arith::evaluate(env, &left).map_err(Stop::of_command)?;
                    Ok(compare(left, arith::evaluate(env, &right).map_err(Stop::of_command)?))
                }
                None => binary(env, other, &left, &right),
            }
        }
    }
}

fn unary(env: &mut dyn Env, operator: &UnaryPredicate, operand: &str) -> Result<bool, Stop> {
    use UnaryPredicate as Is;
    Ok(match operator {
        Is::StringHasZeroLength => operand.is_empty(),
        Is::StringHasNonZeroLength => !operand.is_empty(),
        Is::ShellVariableIsSetAndAssigned => is_set(env, operand)?,
        // There are no references to names.
        Is::ShellVariableIsSetAndNameRef => false,
        Is::ShellOptionEnabled => env.named_option(operand),
        Is::FdIsOpenTerminal => operand.trim().parse().is_ok_and(|fd| env.is_terminal(fd)),
        other => file::is(env.cwd(), other, operand),
    })
}

/// `-v name`, `-v name[index]`, `-v 1`.
fn is_set(env: &mut dyn Env, operand: &str) -> Result<bool, Stop> {
    if let Ok(position) = operand.parse::<usize>() {
        return Ok(position == 0 || position <= env.positional().len());
    }
    match operand.strip_suffix(']').and_then(|text| text.split_once('[')) {
        Some((name, "@" | "*")) => Ok(env.get(name).is_some_and(|value| !value.elements().is_empty())),
        Some((name, index)) => Ok(expand::element(env, name, index)?.is_some()),
        None => Ok(env.get(operand).is_some_and(|value| value.scalar().is_some())),
    }
}

fn binary(env: &mut dyn Env, operator: &BinaryPredicate, left: &str, right: &str) -> Result<bool, Stop> {
    use BinaryPredicate as Is;
    if let Some(compare) = arithmetic_comparison(operator) {
        return Ok(compare(integer(left)?, integer(right)?));
    }
    Ok(match operator {
        Is::StringExactlyMatchesString => left == right,
        Is::StringDoesNotExactlyMatchString => left != right,
        Is::LeftSortsBeforeRight => left < right,
        Is::LeftSortsAfterRight => left > right,
        Is::LeftFileIsNewerOrExistsWhenRightDoesNot => file::is_newer(env.cwd(), left, right),
        Is::LeftFileIsOlderOrDoesNotExistWhenRightDoes => file::is_newer(env.cwd(), right, left),
        Is::FilesReferToSameDeviceAndInodeNumbers => file::is_same(env.cwd(), left, right),
        other => return Err(Stop::misuse(format!("{other}: binary operator expected"))),
    })
}

fn arithmetic_comparison(operator: &BinaryPredicate) -> Option<fn(i64, i64) -> bool> {
    use BinaryPredicate as Is;
    Some(match operator {
        Is::ArithmeticEqualTo => |left, right| left == right,
        Is::ArithmeticNotEqualTo => |left, right| left != right,
        Is::ArithmeticLessThan => |left, right| left < right,
        Is::ArithmeticLessThanOrEqualTo => |left, right| left <= right,
        Is::ArithmeticGreaterThan => |left, right| left > right,
        Is::ArithmeticGreaterThanOrEqualTo => |left, right| left >= right,
        _ => return None,
    })
}

fn integer(text: &str) -> Result<i64, Stop> {
    text.trim().parse().map_err(|_| Stop::misuse(format!("{text}: integer expression expected")))
}

fn unary_operator(word: &str) -> Option<UnaryPredicate> {
    use UnaryPredicate as Is;
    Some(match word {
        "-a" | "-e" => Is::FileExists,
        "-b" => Is::FileExistsAndIsBlockSpecialFile,
        "-c" => Is::FileExistsAndIsCharSpecialFile,
        "-d" => Is::FileExistsAndIsDir,
        "-f" => Is::FileExistsAndIsRegularFile,
        "-g" => Is::FileExistsAndIsSetgid,
        "-h" | "-L" => Is::FileExistsAndIsSymlink,
        "-k" => Is::FileExistsAndHasStickyBit,
        "-n" => Is::StringHasNonZeroLength,
        "-o" => Is::ShellOptionEnabled,
        "-p" => Is::FileExistsAndIsFifo,
        "-r" => Is::FileExistsAndIsReadable,
        "-s" => Is::FileExistsAndIsNotZeroLength,
        "-t" => Is::FdIsOpenTerminal,
        "-u" => Is::FileExistsAndIsSetuid,
        "-v" => Is::ShellVariableIsSetAndAssigned,
        "-w" => Is::FileExistsAndIsWritable,
        "-x" => Is::FileExistsAndIsExecutable,
        "-z" => Is::StringHasZeroLength,
        "-G" => Is::FileExistsAndOwnedByEffectiveGroupId,
        "-N" => Is::FileExistsAndModifiedSinceLastRead,
        "-O" => Is::FileExistsAndOwnedByEffectiveUserId,
        "-R" => Is::ShellVariableIsSetAndNameRef,
        "-S" => Is::FileExistsAndIsSocket,
        _ => return None,
    })
}

fn binary_operator(word: &str) -> Option<BinaryPredicate> {
    use BinaryPredicate as Is;
    Some(match word {
        "=" | "==" => Is::StringExactlyMatchesString,
        "!=" => Is::StringDoesNotExactlyMatchString,
        "<" => Is::LeftSortsBeforeRight,
        ">" => Is::LeftSortsAfterRight,
        "-eq" => Is::ArithmeticEqualTo,
        "-ne" => Is::ArithmeticNotEqualTo,
        "-lt" => Is::ArithmeticLessThan,
        "-le" => Is::ArithmeticLessThanOrEqualTo,
        "-gt" => Is::ArithmeticGreaterThan,
        "-ge" => Is::ArithmeticGreaterThanOrEqualTo,
        "-nt" => Is::LeftFileIsNewerOrExistsWhenRightDoesNot,
        "-ot" => Is::LeftFileIsOlderOrDoesNotExistWhenRightDoes,
        "-ef" => Is::FilesReferToSameDeviceAndInodeNumbers,
        _ => return None,
    })
}
