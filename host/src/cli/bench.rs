//! `kiso bench`: measures the cost of this program on this machine. It measures itself, in a temporary home, so that a small
//! board needs neither a compiler nor a checkout.

mod figure;
mod program;
mod running;

use self::figure::Figure;
use super::show::Show;
use super::{Exit, Failure, Shared};
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

#[derive(Debug, clap::Args)]
pub(super) struct BenchArgs {
    /// Add ratios to the figures of another machine: a file with what `kiso --json bench` printed there
    #[arg(long, value_name = "FILE")]
    against: Option<PathBuf>,
    /// Repeat each measurement for at most this long (but three times), so that all take less than two minutes on a small board
    #[arg(long, value_name = "SECONDS", default_value_t = 8)]
    seconds: u64,
    /// Measure another build of kiso instead of this one
    #[arg(long, value_name = "FILE")]
    program: Option<PathBuf>,
    /// A command that starts the program, with its options, such as `qemu-aarch64-static -L /usr/aarch64-linux-gnu`
    #[arg(long, value_name = "COMMAND", default_value = "", hide_default_value = true)]
    runner: String,
}

impl BenchArgs {
    pub(super) fn execute(&self, shared: &Shared) -> Result<Exit, Failure> {
        let against = self.against.as_deref().map(other_machine).transpose()?.unwrap_or_default();
        let show = Show::new(shared.json);
        let program = self.program.clone().map_or_else(this_program, Ok)?;
        let runner = self.runner.split_whitespace().map(PathBuf::from).collect();
        let most = Duration::from_secs(self.seconds);
        let bench = Bench { program, runner, most, dir: TemporaryDir::new()? };
        if !shared.json {
            figure::print_heading(&against);
        }
        let print = |figure: Figure| match shared.json {
            true => outln!("{}", figure.json()),
            false => figure.print(&against),
        };
        program::measure(&bench, &show, &print)?;
        running::measure(&bench, &show, &print)?;
        show.rest();
        Ok(Exit::Done)
    }
}

/// The program to measure, and how.
struct Bench {
    program: PathBuf,
    /// Words before the program in its command, if something else starts it.
    runner: Vec<PathBuf>,
    /// The maximum duration of one measurement.
    most: Duration,
    dir: TemporaryDir,
}

impl Bench {
    /// Returns a command that runs the program with arguments, on a home of this name.
    fn kiso(&self, home: &str, args: &[&str]) -> Command {
        let mut words = self.runner.iter().chain([&self.program]);
        let mut command = Command::new(words.next().unwrap_or(&self.program));
        command.args(words).args(args).env("KISO_HOME", self.home(home)).env_remove("KISO_LOG");
        command.stdin(Stdio::null());
        command
    }

    fn home(&self, name: &str) -> PathBuf {
        self.dir.0.join(name)
    }

    /// Runs the program to its end, and fails if it fails.
    fn run(&self, home: &str, args: &[&str]) -> Result<(), Failure> {
        let output = self.kiso(home, args).output().map_err(|error| self.not_started(&error))?;
        if output.status.success() {
            return Ok(());
        }
        let said = String::from_utf8_lossy(&output.stderr);
        Err(Failure::new(
            Exit::Failed,
            format!("kiso {} ended with {}: {}", args.join(" "), output.status, said.trim()),
        ))
    }

    /// Repeats a measurement until the limit of repetitions or time is reached, but at least three times.
    fn repeat(
        &self,
        times: usize,
        mut work: impl FnMut() -> Result<Duration, Failure>,
    ) -> Result<Vec<Duration>, Failure> {
        let began = Instant::now();
        let mut all = Vec::new();
        while all.len() < times && (all.len() < LEAST_TIMES || began.elapsed() < self.most) {
            all.push(work()?);
        }
        Ok(all)
    }

    fn not_started(&self, error: &std::io::Error) -> Failure {
        Failure::new(Exit::Failed, format!("{} cannot be started: {error}", self.program.display()))
    }
}

const LEAST_TIMES: usize = 3;

fn this_program() -> Result<PathBuf, Failure> {
    std::env::current_exe()
        .map_err(|error| Failure::new(Exit::Failed, format!("kiso cannot find its own binary: {error}")))
}

/// Returns the medians that another machine printed, by name.
fn other_machine(file: &Path) -> Result<HashMap<String, u64>, Failure> {
    let usage = |message: String| Failure::new(Exit::Usage, format!("{}: {message}", file.display()));
    let text = std::fs::read_to_string(file).map_err(|error| usage(error.to_string()))?;
    let medians: HashMap<_, _> = text.lines().filter_map(Figure::parse_median).collect();
    if medians.is_empty() {
        return Err(usage("it has no figures; save the output of `kiso --json bench` there".to_owned()));
    }
    Ok(medians)
}

/// A directory that is removed with its contents.
struct TemporaryDir(PathBuf);

impl TemporaryDir {
    fn new() -> Result<Self, Failure> {
        let dir = std::env::temp_dir().join(format!("kiso-bench-{}", std::process::id()));
        // Creates the directory, which must not exist: a link that another user put there is not followed.
        std::fs::create_dir(&dir)
            .map_err(|error| Failure::new(Exit::Failed, format!("{} cannot be made: {error}", dir.display())))?;
        Ok(Self(dir))
    }
}

impl Drop for TemporaryDir {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
