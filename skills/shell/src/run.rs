//! Lists, pipelines and compound commands.

use std::rc::Rc;
use std::time::Instant;

use crate::bindings::kiso::exec::spawn;
use crate::expand::{self, Env};
use crate::external::Started;
use crate::options::Flag;
use crate::print;
use crate::program::{CaseItem, Clock, Command, Item, Kind, Link, List, Pipeline, Then};
use crate::shell::{Blame, Flow, Outcome, Shell};
use crate::state::Work;
use crate::variable::is_name;
use brush_parser::ast::Word;

impl Shell {
    pub fn list(&mut self, list: &List) -> Outcome {
        let mut code = 0;
        for item in &list.0 {
            code = self.item(item)?;
        }
        Ok(code)
    }

    /// Runs something whose failure `set -e` leaves alone.
    fn asking(&mut self, run: impl FnOnce(&mut Shell) -> Outcome) -> Outcome {
        self.asked += 1;
        let outcome = run(self);
        self.asked -= 1;
        outcome
    }

    fn item(&mut self, item: &Item) -> Outcome {
        if self.on(Flag::NoExec) {
            return Ok(0);
        }
        if item.background {
            return self.background(item);
        }
        let Some((last, _)) = item.rest.iter().enumerate().next_back() else { return self.pipeline(&item.first) };
        let mut code = self.asking(|shell| shell.pipeline(&item.first))?;
        for (at, (link, pipeline)) in item.rest.iter().enumerate() {
            if (*link == Link::And) != (code == 0) {
                continue;
            }
            code = if at == last { self.pipeline(pipeline) } else { self.asking(|shell| shell.pipeline(pipeline)) }?;
        }
        Ok(code)
    }

    /// `… &`: its standard input is empty, so that it does not take what the next command is to read.
    fn background(&mut self, item: &Item) -> Outcome {
        let mut table = self.table.clone();
        if let Ok(empty) = spawn::open("/dev/null", spawn::Mode::Read) {
            table.put_channel(0, empty);
        }
        let item = Item { background: false, ..item.clone() };
        let text = item.to_string();
        let started = self.start_list(&List(vec![item]), &table);
        self.state.background = Some(self.jobs.add(started, text));
        self.state.status = 0;
        Ok(0)
    }

    fn pipeline(&mut self, pipeline: &Pipeline) -> Outcome {
        let begun = pipeline.time.map(|clock| (clock, Instant::now()));
        let outcome = if pipeline.negated {
            self.asking(|shell| shell.stages(&pipeline.stages))
        } else {
            self.stages(&pipeline.stages)
        };
        if let Some((clock, begun)) = begun {
            self.report_time(clock, begun);
        }
        let mut code = outcome?;
        if pipeline.negated {
            code = u8::from(code == 0);
            if code != 0 {
                self.blame(pipeline, self.line, code);
            }
        }
        self.state.status = code;
        match code != 0 && !pipeline.negated && is_checked(&pipeline.stages) {
            true => self.checked(code),
            false => Ok(code),
        }
    }

    /// Applies the ERR trap and `set -e` to a failure.
    fn checked(&mut self, code: u8) -> Outcome {
        if self.asked > 0 {
            return Ok(code);
        }
        self.state.status = code;
        self.run_trap("ERR")?;
        if self.on(Flag::ErrExit) { Err(Flow::Exit(code)) } else { Ok(code) }
    }

    fn report_time(&self, clock: Clock, begun: Instant) {
        let spent = begun.elapsed();
        let text = match clock {
            Clock::Posix => format!("real {:.2}\nuser 0.00\nsys 0.00\n", spent.as_secs_f64()),
            Clock::Bash => {
                let (minutes, seconds) = (spent.as_secs() / 60, spent.as_secs_f64() % 60.0);
                format!("\nreal\t{minutes}m{seconds:.3}s\nuser\t0m0.000s\nsys\t0m0.000s\n")
            }
        };
        let _ = self.table.write(2, text.as_bytes());
    }

    fn stages(&mut self, stages: &[Command]) -> Outcome {
        let code = match stages {
            [] => 0,
            [one] => {
                let code = self.command(one)?;
                // A compound command has left the codes of its own last pipeline behind, as in bash.
                if is_checked(stages) {
                    self.state.pipe_status = vec![code];
                }
                code
            }
            [first, rest @ ..] => self.concurrent(first, rest)?,
        };
        Ok(code)
    }

    /// Starts all stages, each reading what the one before it writes, then waits for all.
    fn concurrent(&mut self, first: &Command, rest: &[Command]) -> Outcome {
        let mut started: Vec<(Started, &Command)> = Vec::with_capacity(rest.len() + 1);
        let mut here = None;
        let mut input = None;
        let stages: Vec<&Command> = std::iter::once(first).chain(rest).collect();
        for (at, stage) in stages.iter().enumerate() {
            let mut table = self.table.clone();
            if let Some(reader) = input.take() {
                table.put_channel(0, reader);
            }
            if at + 1 < stages.len() {
                let (reader, writer) = spawn::pipe();
                table.put_channel(1, writer);
                input = Some(reader);
            } else if self.on(Flag::LastPipe) {
                here = Some(table);
                break;
            }
            let process = self.start_stage(stage, &table);
            started.push((process, stage));
        }
        let mut codes = Vec::with_capacity(stages.len());
        let mut last = None;
        if let Some(table) = here {
            let saved = std::mem::replace(&mut self.table, table);
            let outcome = self.command(stages[stages.len() - 1]);
            self.table = saved;
            last = Some(outcome?);
        }
        codes.extend(started.iter_mut().map(|(process, _)| process.wait()));
        codes.extend(last);
        let failed = codes.iter().rposition(|&code| code != 0);
        let guilty = if self.on(Flag::PipeFail) { failed } else { failed.filter(|&at| at + 1 == codes.len()) };
        let code = guilty.map_or(0, |at| codes[at]);
        if let Some(at) = guilty {
            self.blame(stages[at], stages[at].line, code);
        }
        self.state.pipe_status = codes;
        Ok(code)
    }

    pub fn blame(&mut self, command: &impl std::fmt::Display, line: u32, code: u8) {
        self.blame = Some(Blame { command: print::short(command), line, code });
    }

    pub fn command(&mut self, command: &Command) -> Outcome {
        self.line = command.line.saturating_add(self.offset);
        if is_traced(&command.kind) {
            self.run_trap("DEBUG")?;
        }
        match &command.kind {
            Kind::Simple(simple) => self.simple(command, simple),
            Kind::Function { name, body } => {
                match self.file().map(str::to_owned) {
                    Some(file) => self.state.sources.insert(name.clone(), file),
                    None => self.state.sources.remove(name),
                };
                self.state.functions.insert(name.clone(), Rc::clone(body));
                Ok(0)
            }
            _ if command.redirections.is_empty() => self.nested(command),
            _ => {
                let saved = self.table.clone();
                let files = self.temporary.len();
                let opened = self.redirect(&command.redirections);
                let outcome = if matches!(opened, Ok(0)) { self.nested(command) } else { opened.clone() };
                self.table = saved;
                self.remove_temporary(files);
                // The codes of what stands in it have been looked at, this one has not.
                match opened {
                    Ok(code) if code != 0 && !is_checked(std::slice::from_ref(command)) => self.checked(code),
                    _ => outcome,
                }
            }
        }
    }

    fn nested(&mut self, command: &Command) -> Outcome {
        self.deeper("", |shell| shell.compound(command))
    }

    fn compound(&mut self, command: &Command) -> Outcome {
        match &command.kind {
            Kind::Simple(_) | Kind::Function { .. } => self.command(command),
            Kind::Group(list) => self.list(list),
            Kind::Subshell(list) => {
                let table = self.table.clone();
                let code = self.start_list(list, &table).wait();
                self.leaf(command, code)
            }
            Kind::If { branches, otherwise } => self.choose(branches, otherwise.as_ref()),
            Kind::Loop { until, condition, body } => self.looping(|shell| shell.repeat(*until, condition, body)),
            Kind::For { name, words, body } => self.looping(|shell| shell.each(name, words.as_deref(), body)),
            Kind::Select { name, words, body } => self.looping(|shell| shell.select(name, words.as_deref(), body)),
            Kind::ArithmeticFor { start, condition, step, body } => {
                self.looping(|shell| shell.count(start, condition, step, body))
            }
            Kind::Case { word, items } => self.case(word, items),
            Kind::Arithmetic(expression) => {
                if self.on(Flag::XTrace) {
                    self.trace(format_args!("(( {} ))", expression.trim()));
                }
                let code = match expand::arithmetic(self, expression) {
                    Ok(number) => u8::from(number == 0),
                    Err(stop) => self.stopped(stop.of_command())?,
                };
                self.leaf(command, code)
            }
            Kind::Test(test) => {
                if self.on(Flag::XTrace) {
                    self.trace(format_args!("[[ {test} ]]"));
                }
                let code = match expand::extended_test(self, test) {
                    Ok(holds) => u8::from(!holds),
                    Err(stop) => self.stopped(stop)?,
                };
                self.leaf(command, code)
            }
        }
    }

    fn leaf(&mut self, command: &Command, code: u8) -> Outcome {
        if code != 0 {
            self.blame(command, command.line, code);
        }
        Ok(code)
    }

    fn choose(&mut self, branches: &[(List, List)], otherwise: Option<&List>) -> Outcome {
        for (condition, body) in branches {
            if self.asking(|shell| shell.list(condition))? == 0 {
                return self.list(body);
            }
        }
        otherwise.map_or(Ok(0), |body| self.list(body))
    }

    fn looping(&mut self, run: impl FnOnce(&mut Shell) -> Outcome) -> Outcome {
        self.loops += 1;
        let outcome = run(self);
        self.loops -= 1;
        outcome
    }

    /// One turn of a loop. Returns whether it goes on.
    pub fn turn(&mut self, body: &List, code: &mut u8) -> Result<bool, Flow> {
        let flow = match self.list(body) {
            Ok(last) => {
                *code = last;
                return Ok(true);
            }
            Err(flow) => flow,
        };
        *code = 0;
        match flow {
            Flow::Break(1) => Ok(false),
            Flow::Continue(1) => Ok(true),
            Flow::Break(more) => Err(Flow::Break(more - 1)),
            Flow::Continue(more) => Err(Flow::Continue(more - 1)),
            flow => Err(flow),
        }
    }

    fn repeat(&mut self, until: bool, condition: &List, body: &List) -> Outcome {
        let mut code = 0;
        loop {
            let mut answer = 0;
            self.asked += 1;
            let goes_on = self.turn(condition, &mut answer);
            self.asked -= 1;
            if !goes_on? || (answer == 0) == until || !self.turn(body, &mut code)? {
                return Ok(code);
            }
        }
    }

    /// The values that `for` and `select` iterate over.
    pub fn values(&mut self, words: Option<&[Word]>) -> Result<Vec<String>, expand::Stop> {
        match words {
            None => Ok(self.state.positional.clone()),
            Some(words) => expand::words(self, &words.iter().collect::<Vec<_>>()),
        }
    }

    fn each(&mut self, name: &str, words: Option<&[Word]>, body: &List) -> Outcome {
        let values = match self.values(words) {
            Ok(values) => values,
            Err(stop) => return self.stopped(stop),
        };
        if !is_name(name) {
            self.complain(format_args!("`{name}': not a valid identifier"));
            return Ok(1);
        }
        let mut code = 0;
        for value in values {
            self.run_trap("DEBUG")?;
            if self.on(Flag::XTrace) {
                let words =
                    words.map(|words| words.iter().map(|word| word.value.as_str()).collect::<Vec<_>>().join(" "));
                self.trace(format_args!("for {name} in {}", words.as_deref().unwrap_or("\"$@\"")));
            }
            if let Err(stop) = self.set(name, value) {
                return self.stopped(stop.of_command());
            }
            if !self.turn(body, &mut code)? {
                break;
            }
        }
        Ok(code)
    }

    fn count(&mut self, start: &str, condition: &str, step: &str, body: &List) -> Outcome {
        let mut code = 0;
        let evaluate = |shell: &mut Shell, expression: &str| {
            shell.run_trap("DEBUG")?;
            if expression.trim().is_empty() {
                return Ok(Ok(1));
            }
            if shell.on(Flag::XTrace) {
                shell.trace(format_args!("(( {} ))", expression.trim()));
            }
            Ok(expand::arithmetic(shell, expression))
        };
        if let Err(stop) = evaluate(self, start)? {
            return self.stopped(stop.of_command());
        }
        loop {
            match evaluate(self, condition)? {
                Ok(0) => return Ok(code),
                Ok(_) => {}
                Err(stop) => return self.stopped(stop.of_command()),
            }
            if !self.turn(body, &mut code)? {
                return Ok(code);
            }
            if let Err(stop) = evaluate(self, step)? {
                return self.stopped(stop.of_command());
            }
        }
    }

    fn case(&mut self, word: &Word, items: &[CaseItem]) -> Outcome {
        let subject = match self.text(word) {
            Ok(subject) => subject,
            Err(stop) => return self.stopped(stop),
        };
        if self.on(Flag::XTrace) {
            self.trace(format_args!("case {word} in"));
        }
        let mut code = 0;
        let mut run_next = false;
        for item in items {
            if !run_next && !self.matches(&subject, &item.patterns)? {
                continue;
            }
            code = self.list(&item.body)?;
            match item.then {
                Then::Leave => break,
                Then::RunNext => run_next = true,
                Then::TryNext => run_next = false,
            }
        }
        Ok(code)
    }

    fn matches(&mut self, subject: &str, patterns: &[Word]) -> Result<bool, Flow> {
        for pattern in patterns {
            match expand::pattern(self, pattern) {
                Ok(pattern) if pattern.matches_text(subject) => return Ok(true),
                Ok(_) => {}
                Err(stop) => {
                    self.stopped(stop)?;
                }
            }
        }
        Ok(false)
    }

    /// Runs a list in a process of its own.
    pub fn start_list(&mut self, list: &List, table: &crate::table::Table) -> Started {
        let direct = match list.0.as_slice() {
            [Item { first, rest, background: false }] if rest.is_empty() && first.time.is_none() && !first.negated => {
                first.stages.first().filter(|_| first.stages.len() == 1)
            }
            _ => None,
        };
        match direct {
            Some(command) => self.start_stage(command, table),
            None => self.fork(Work::List(list.clone()), table),
        }
    }

    /// Runs a command in a process of its own: without a shell around it if it is an external one.
    pub fn start_stage(&mut self, command: &Command, table: &crate::table::Table) -> Started {
        match &command.kind {
            Kind::Simple(simple) if self.is_direct(command, simple) => self.start_simple(command, simple, table),
            Kind::Subshell(list) if command.redirections.is_empty() => self.start_list(list, table),
            _ => self.fork(Work::Command(command.clone()), table),
        }
    }
}

/// Whether the DEBUG trap runs before it. Loops run it for each turn.
fn is_traced(kind: &Kind) -> bool {
    matches!(kind, Kind::Simple(_) | Kind::Test(_) | Kind::Arithmetic(_) | Kind::Case { .. })
}

/// Whether `set -e` looks at the code of this pipeline. A compound command's own parts have been looked at already.
fn is_checked(stages: &[Command]) -> bool {
    match stages {
        [one] => matches!(one.kind, Kind::Simple(_) | Kind::Subshell(_) | Kind::Test(_) | Kind::Arithmetic(_)),
        _ => true,
    }
}
