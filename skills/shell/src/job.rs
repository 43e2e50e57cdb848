//! Jobs that were started with `&`. The host ends a job that still runs when the line ends, because nothing may outlive its line.

use crate::external::Started;

pub struct Job {
    pub number: u32,
    pub id: u32,
    pub text: String,
    started: Started,
    /// Nothing while it runs.
    code: Option<u8>,
    /// `wait` or `jobs` has told its end; its code is kept for those who ask for it by its number.
    pub told: bool,
    /// The signal that `kill` would have sent. The host knows only one way to end a process.
    signal: Option<u8>,
}

/// The exit code that the host reports for a killed process.
const KILLED: u8 = 128 + 9;

impl Job {
    pub fn wait(&mut self) -> u8 {
        let code = self.started.wait();
        self.ended(code)
    }

    fn ended(&mut self, code: u8) -> u8 {
        let code = self.signal.filter(|_| code == KILLED).map_or(code, |signal| 128 + signal);
        self.code = Some(code);
        code
    }

    /// Its code if it has ended within this time.
    pub fn poll(&mut self, milliseconds: u64) -> Option<u8> {
        if self.code.is_none() {
            let code = match &self.started {
                Started::Process(process) => process.wait_for(milliseconds),
                Started::Ended(code) => Some(*code),
            };
            return code.map(|code| self.ended(code));
        }
        self.code
    }

    pub fn kill(&mut self, signal: u8) {
        self.signal = Some(signal);
        if let Started::Process(process) = &self.started {
            process.kill();
        }
    }
}

/// So many jobs are remembered at least, even if nobody asks for them again.
const MOST: usize = 1000;

#[derive(Default)]
pub struct Jobs {
    pub list: Vec<Job>,
}

impl Jobs {
    /// Returns its process number.
    pub fn add(&mut self, started: Started, text: String) -> u32 {
        if self.list.len() >= MOST {
            self.list.retain(|job| !job.told);
        }
        let number = self.untold().map(|job| job.number).max().map_or(1, |number| number + 1);
        let id = match &started {
            Started::Process(process) => process.id(),
            // It never got to run; any number that no process has will do.
            Started::Ended(_) => u32::MAX - number,
        };
        self.list.push(Job { number, id, text, started, code: None, told: false, signal: None });
        id
    }

    /// Those whose end has not been told.
    pub fn untold(&mut self) -> impl DoubleEndedIterator<Item = &mut Job> {
        self.list.iter_mut().filter(|job| !job.told)
    }

    /// `%1`, `%%`, `%-`, `%name` or a process number.
    pub fn position(&self, name: &str) -> Option<usize> {
        let Some(job) = name.strip_prefix('%') else {
            let id: u32 = name.parse().ok()?;
            return self.list.iter().position(|job| job.id == id);
        };
        let mut untold = self.list.iter().enumerate().filter(|(_, listed)| !listed.told);
        let found = match job {
            "" | "%" | "+" => untold.next_back(),
            "-" => untold.rev().nth(1),
            _ => match job.parse::<u32>() {
                Ok(number) => untold.find(|(_, listed)| listed.number == number),
                Err(_) => untold.find(|(_, listed)| listed.text.starts_with(job)),
            },
        };
        found.map(|(at, _)| at)
    }
}
