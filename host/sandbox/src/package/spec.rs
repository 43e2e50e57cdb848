//! The table `[kiso.package]` of a `kiso.toml`: everything that makes a command a package. It is data, so that a package is one file.

use serde::Deserialize;
use std::collections::BTreeMap;

/// Sizes of lists and texts.
const MAX_COMMANDS: usize = 64;
const MAX_LIST: usize = 64;
const MAX_TEXT: usize = 400;
const MAX_WORDS: usize = 16;
const MAX_WORD: usize = 4_096;

/// Most bytes of a component or a part, and MiB of a download.
const MAX_SIZE: u64 = 1 << 30;

/// Most seconds of a build.
const MAX_BUILD: u64 = 600;

/// Directories of the session and of the system: no files of a package are mounted below them.
const RESERVED: [&str; 12] =
    ["work", "tmp", "skills", "shared", "project", "dev", "proc", "sys", "etc", "home", "root", "bin"];

/// The download of a package, the files that its commands see, and the start of its commands.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PackageSpec {
    /// An SPDX expression, or a sentence.
    pub licence: String,
    /// Its names in command lines.
    pub commands: Vec<String>,
    /// Lines that name its commands to models: the name of one, and a description.
    #[serde(default)]
    pub models: Vec<String>,
    /// The command that is named to models as missing, until the package is installed.
    #[serde(default)]
    pub suggested: Option<String>,
    pub component: ComponentSource,
    /// The build of the component, if the publisher's component only builds it.
    #[serde(default)]
    pub build: Option<PackageBuild>,
    /// Files of the publisher's that are not part of the component, such as an interpreter's library.
    #[serde(default)]
    pub parts: Vec<PackagePart>,
    /// The limits that compiling needs, where they are above the defaults.
    #[serde(default)]
    pub compile: Option<CompileNeeds>,
    /// For an interpreter that is started once and kept.
    #[serde(default)]
    pub interpreter: Option<StartedInterpreter>,
    /// The directory in which its commands see its files, read-only.
    #[serde(default)]
    pub mount: Option<String>,
    /// Its files beside `kiso.toml`: names, `*` for any characters. All of them are seen in one directory.
    #[serde(default)]
    pub files: Vec<String>,
    /// The directory below `mount` for the time zones that kiso has.
    #[serde(default)]
    pub timezones: Option<String>,
    /// The rules for starting commands; the first entry that names a command applies.
    #[serde(default)]
    pub start: Vec<StartRule>,
    /// Programs that run when it is added: it is installed only if each prints the expected text.
    #[serde(default)]
    pub tests: Vec<PackageTest>,
}

/// The source of a component, and the changes that make it a command.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ComponentSource {
    /// The publisher's address of the component, or of an archive that contains it.
    pub url: String,
    /// Describes other archives that contain the component, such as those of a package manager.
    pub also: String,
    /// SHA-256 of the component, in hexadecimal.
    pub sha256: String,
    /// Bytes of the component.
    pub size: u64,
    /// Most MiB of a download: the component, or an archive with it and its parts.
    pub download_mib: u64,
    /// The functions to call, if it has no `_start`.
    #[serde(default)]
    pub reactor: Option<Reactor>,
    /// Functions that it imports and that WASI does not have. A function that is not in the list is not replaced.
    #[serde(default)]
    pub imports: Vec<ImportStub>,
}

/// A module that was built to be called again and again.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Reactor {
    /// The calls that run one program, in this order.
    pub calls: Vec<ReactorCall>,
    /// The exported function that allocates memory for arguments: `malloc`, or `cabi_realloc` of the component model.
    #[serde(default)]
    pub allocate: Option<String>,
}

/// A call of an exported function.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReactorCall {
    pub function: String,
    /// The form in which it takes the words of the command; without one, it has no parameters.
    #[serde(default)]
    pub arguments: Option<ReactorArguments>,
    /// Whether it returns the exit code of the program.
    #[serde(default)]
    pub exit: bool,
}

/// The forms of a command's words.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ReactorArguments {
    /// Their number and an array of C strings, as `main` has them.
    Argv,
    /// An array of addresses and lengths, and their number: a `list<string>` of the component model.
    Strings,
}

/// Imported functions that are replaced by functions with one answer.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ImportStub {
    /// The module that they are imported from.
    pub module: String,
    /// Their names; all of the module, if none is given.
    #[serde(default)]
    pub names: Vec<String>,
    pub answer: StubAnswer,
}

/// The answer of a function that WASI does not have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(untagged)]
pub enum StubAnswer {
    Number(i32),
    /// The program ends with an error that names the function.
    Word(StubWord),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum StubWord {
    Refuse,
}

/// A file of the publisher's.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PackagePart {
    /// SHA-256, in hexadecimal.
    pub sha256: String,
    /// Bytes.
    pub size: u64,
    /// The publisher's address, if the file is not in the archive with the component.
    #[serde(default)]
    pub url: Option<String>,
    /// Its path below the directory of all parts. The command sees the first directory of the path.
    pub path: String,
    /// The path for the command, read-only.
    pub at: String,
    /// An archive in this archive whose files the command sees as files.
    #[serde(default)]
    pub tree: Option<NestedArchive>,
}

/// An archive in an archive.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NestedArchive {
    /// Its path in the outer one.
    pub entry: String,
    /// The directory for its files, below that of all parts.
    pub path: String,
    /// The path for the command, read-only.
    pub at: String,
}

/// Command lines that build a component. They run when the package is added, in a workspace of their own without network, and see there the
/// publisher's component as `component.wasm`, each part by its path, and `files`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PackageBuild {
    /// The file beside `kiso.toml` with the command lines.
    pub script: String,
    /// Files beside it that the script needs.
    #[serde(default)]
    pub files: Vec<String>,
    /// The built component, as a path in the workspace.
    pub component: String,
    /// The directory with files for its commands, as a path in the workspace.
    pub tree: String,
    /// The path for the commands, read-only.
    pub at: String,
    /// SHA-256 of the lines `DIGEST  PATH` of the component and the files, sorted by path: what `sha256sum` prints for them.
    pub sha256: String,
    pub timeout_s: u64,
}

/// Limits of the compiler, as in `[engine]` of the configuration.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CompileNeeds {
    pub memory_mib: u64,
    pub timeout_s: u64,
}

/// Offsets and sizes in an interpreter of Python, a module of C whose stack pointer is its first global.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StartedInterpreter {
    /// The words that start the interpreter and let it record itself. It prints two addresses, and then asks for the clock: of the
    /// function to call, and of the array of bytes that takes words and environment.
    pub record: Vec<String>,
    /// The offset in a function object, in bytes, of the table's index of its code.
    pub call: u32,
    /// The offsets in the array of its size and of the address of its bytes.
    pub size: u32,
    pub bytes: u32,
    /// The index of the function that ends the program with the exit code of a pending exception, and does nothing without one.
    pub exit: u32,
    /// Size of a program's stack in MiB. It lies behind all other memory, because the module's own stack lies before its data. With 0, the
    /// program has what is left of the module's own stack.
    pub stack_mib: u32,
}

/// The start of commands as programs of the component.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StartRule {
    /// The commands to which the rule applies; all, if none is named.
    #[serde(default)]
    pub commands: Vec<String>,
    /// Words that replace the command's name.
    #[serde(default)]
    pub words: Vec<String>,
    /// Variables of the environment, unless the line sets them.
    #[serde(default)]
    pub env: BTreeMap<String, String>,
    /// Whether the command continues in the kept interpreter.
    #[serde(default)]
    pub kept: bool,
    /// The words where it cannot; `words`, if there are none.
    #[serde(default)]
    pub unkept: Vec<String>,
    /// Beginnings of names of variables that the kept interpreter has read already: with one of them, the command starts a new interpreter.
    #[serde(default)]
    pub read_early: Vec<String>,
    /// Rules of kiso for an interpreter whose options decide whether it can be kept.
    #[serde(default)]
    pub options: Option<OptionRules>,
}

/// Interpreters whose options kiso knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum OptionRules {
    Cpython,
}

/// A program with its output.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PackageTest {
    /// The command and its arguments.
    pub words: Vec<String>,
    /// The expected standard output, without white space at both ends.
    pub prints: String,
}

impl PackageSpec {
    /// Returns an error for the first value that is not valid.
    pub(crate) fn check(&self) -> Result<(), String> {
        let lists = [
            ("commands", self.commands.len(), MAX_COMMANDS),
            ("models", self.models.len(), MAX_LIST),
            ("parts", self.parts.len(), MAX_LIST),
            ("files", self.files.len(), MAX_LIST),
            ("start", self.start.len(), MAX_LIST),
            ("tests", self.tests.len(), MAX_LIST),
        ];
        if let Some((name, count, most)) = lists.into_iter().find(|(_, count, most)| count > most) {
            return Err(format!("`{name}` has {count} entries; at most {most} are allowed"));
        }
        if self.commands.is_empty() {
            return Err("`commands` must name at least one command".to_owned());
        }
        let named =
            self.commands.iter().chain(&self.suggested).chain(self.start.iter().flat_map(|rule| &rule.commands));
        for name in named {
            if !is_command(name) {
                return Err(format!(
                    "{name:?} is not a name of a command: 1 to 64 of a-z, A-Z, 0-9, `.`, `_`, `+` and `-`"
                ));
            }
        }
        let own = |name: &String| self.commands.contains(name);
        if let Some(name) =
            self.suggested.iter().chain(self.start.iter().flat_map(|rule| &rule.commands)).find(|name| !own(name))
        {
            return Err(format!("{name:?} is not one of its `commands`"));
        }
        for text in self.models.iter().chain([&self.licence, &self.component.also]) {
            if text.len() > MAX_TEXT || text.chars().any(char::is_control) {
                return Err(format!("{text:.40?} must be a line of at most {MAX_TEXT} bytes"));
            }
        }
        if let Some(line) = self.models.iter().find(|line| !own(&first_word(line).to_owned())) {
            return Err(format!("{line:.40?} in `models` must begin with one of its `commands`"));
        }
        self.check_sources()?;
        self.check_places()?;
        self.check_starts()
    }

    fn check_sources(&self) -> Result<(), String> {
        let ComponentSource { url, sha256, size, download_mib, reactor, imports, .. } = &self.component;
        let parts = self.parts.iter().map(|part| (part.url.as_ref(), &part.sha256, part.size));
        for (url, sha256, size) in parts.chain([(Some(url), sha256, *size)]) {
            if let Some(url) = url.filter(|url| !url.starts_with("https://") || url.len() > MAX_WORD) {
                return Err(format!("{url:.80?} is not an https:// address"));
            }
            if sha256.len() != 64 || !sha256.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f')) {
                return Err(format!("{sha256:.80?} is not a SHA-256 in small hexadecimal digits"));
            }
            if size == 0 || size > MAX_SIZE {
                return Err(format!("`size` is {size}; it must be 1 to {MAX_SIZE} bytes"));
            }
        }
        if *download_mib == 0 || *download_mib > MAX_SIZE >> 20 {
            return Err(format!("`download_mib` is {download_mib}; it must be 1 to {}", MAX_SIZE >> 20));
        }
        let stubs = imports.iter().map(|stub| stub.names.len()).sum::<usize>() + imports.len();
        if stubs > MAX_LIST || reactor.as_ref().is_some_and(|reactor| reactor.calls.len() > MAX_LIST) {
            return Err(format!("`imports` and `calls` may have {MAX_LIST} entries each"));
        }
        let calls = reactor.iter().flat_map(|reactor| &reactor.calls);
        if reactor.as_ref().is_some_and(|reactor| reactor.calls.is_empty())
            || calls.clone().filter(|call| call.exit).count() > 1
        {
            return Err("`calls` must name functions, and one of them may return the exit code".to_owned());
        }
        let stubbed = imports.iter().flat_map(|stub| stub.names.iter().chain([&stub.module]));
        let called = calls.map(|call| &call.function).chain(reactor.iter().flat_map(|reactor| &reactor.allocate));
        match called.chain(stubbed).find(|name| name.is_empty() || name.len() > MAX_TEXT) {
            Some(name) => Err(format!("{name:.40?} is not a name of a function")),
            None => Ok(()),
        }
    }

    fn check_places(&self) -> Result<(), String> {
        let trees = self.parts.iter().filter_map(|part| part.tree.as_ref());
        let mounts =
            self.mount.iter().chain(self.parts.iter().map(|part| &part.at)).chain(trees.clone().map(|tree| &tree.at));
        if let Some(mount) = mounts.into_iter().find(|mount| !is_mount(mount)) {
            return Err(format!(
                "{mount:.80?} cannot be a place for its files: an absolute path outside of /{}",
                RESERVED.join(", /")
            ));
        }
        let paths = self.parts.iter().map(|part| &part.path).chain(trees.map(|tree| &tree.path)).chain(&self.timezones);
        if let Some(path) = paths.into_iter().find(|path| !is_relative(path)) {
            return Err(format!("{path:.80?} must be a path without `..`"));
        }
        if let Some(build) = &self.build {
            let paths = [&build.component, &build.tree, &build.script].into_iter().chain(&build.files);
            if let Some(path) = paths.into_iter().find(|path| !is_relative(path)) {
                return Err(format!("{path:.80?} must be a path without `..`"));
            }
            if !is_mount(&build.at) || build.files.len() > MAX_LIST || !(1..=MAX_BUILD).contains(&build.timeout_s) {
                return Err(format!(
                    "`build` needs a place for its files outside of /{}, and a `timeout_s` of 1 to {MAX_BUILD}",
                    RESERVED.join(", /")
                ));
            }
        }
        if self.mount.is_none() && !(self.files.is_empty() && self.timezones.is_none()) {
            return Err("`mount` must say where its commands see its `files`".to_owned());
        }
        Ok(())
    }

    fn check_starts(&self) -> Result<(), String> {
        let records = self.interpreter.iter().map(|interpreter| &interpreter.record);
        let tests = self.tests.iter().map(|test| &test.words);
        let starts = self.start.iter().flat_map(|rule| [&rule.words, &rule.unkept, &rule.read_early]);
        let all = starts.chain(records).chain(tests);
        for words in all {
            if words.len() > MAX_WORDS || words.iter().any(|word| word.len() > MAX_WORD || word.contains('\0')) {
                return Err(format!("there may be {MAX_WORDS} words of {MAX_WORD} bytes in one command"));
            }
        }
        for (name, value) in self.start.iter().flat_map(|rule| &rule.env) {
            if name.is_empty() || name.contains(['=', '\0']) || name.len() + value.len() > MAX_WORD {
                return Err(format!("{name:.40?} cannot be set in an environment"));
            }
        }
        if self.tests.iter().any(|test| test.words.first().is_none_or(|name| !self.commands.contains(name))) {
            return Err("each of `tests` must begin with one of its `commands`".to_owned());
        }
        if self.interpreter.is_none() && self.start.iter().any(|rule| rule.kept || rule.options.is_some()) {
            return Err("`kept` and `options` need `interpreter`".to_owned());
        }
        Ok(())
    }
}

/// The command that a line for models begins with.
pub(super) fn first_word(line: &str) -> &str {
    line.split(' ').next().unwrap_or(line)
}

fn is_command(name: &str) -> bool {
    (1..=64).contains(&name.len())
        && name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '+' | '-'))
        && name.starts_with(|c: char| c.is_ascii_alphanumeric())
}

fn is_relative(path: &str) -> bool {
    path.len() <= MAX_TEXT
        && path.split('/').all(|part| !matches!(part, "" | "." | ".."))
        && !path.contains(['\0', '\\'])
}

fn is_mount(path: &str) -> bool {
    path.strip_prefix('/')
        .is_some_and(|rest| is_relative(rest) && !rest.split('/').next().is_some_and(|first| RESERVED.contains(&first)))
}
