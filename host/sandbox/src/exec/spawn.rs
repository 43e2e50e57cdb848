//! `kiso:exec/spawn`: the host functions for the shell and some commands.

use super::channel::{Channel, IoError, TaskEnded};
use super::errno::Errno;
use super::instance::ProcessCtx;
use super::process::{Child, ProcessSpec};
use super::requests::{Parent, StartRefusal};
use super::start::{ShellWork, start, start_shell};
use super::wit::kiso::exec::spawn::{
    Command, Errno as WitErrno, Host, HostChannel, HostProcess, Mode, Refusal, Space, Volume,
};
use crate::skill::sandbox::Room;
use std::collections::BTreeMap;
use std::time::Duration;
use wasmtime::component::Resource;
use wasmtime_wasi::I32Exit;

type Answer<T> = wasmtime::Result<Result<T, WitErrno>>;

/// Channels of a process: 0 to 9, and those that scripts number themselves.
const MAX_CHANNELS: usize = 64;

/// Separates errors that the guest may handle from those that end it.
fn answer<T>(result: Result<T, IoError>) -> Answer<T> {
    match result {
        Ok(value) => Ok(Ok(value)),
        Err(IoError::Errno(errno)) => Ok(Err(errno.into())),
        Err(IoError::Limit(hit)) => Err(hit.into()),
        Err(IoError::Ended) => Err(TaskEnded.into()),
    }
}

impl From<Errno> for WitErrno {
    fn from(errno: Errno) -> Self {
        match errno {
            Errno::NotFound => Self::NotFound,
            Errno::NotADirectory => Self::NotADirectory,
            Errno::IsADirectory => Self::IsADirectory,
            Errno::Exists => Self::Exists,
            Errno::Denied => Self::Denied,
            Errno::ReadOnly => Self::ReadOnly,
            Errno::NameTooLong => Self::NameTooLong,
            Errno::TooManyLinks => Self::TooManyLinks,
            Errno::NoSpace => Self::NoSpace,
            Errno::NotPlain => Self::NotPlain,
            Errno::Closed => Self::Closed,
            Errno::BadChannel => Self::BadChannel,
            Errno::Invalid => Self::Invalid,
            Errno::Io => Self::Io,
        }
    }
}

impl ProcessCtx {
    /// Fails if the task has reached a limit: a shell that waited for the command that did must not go on to the next one.
    fn go_on(&self) -> wasmtime::Result<()> {
        self.task.limit().map_or(Ok(()), |_| Err(TaskEnded.into()))
    }

    fn collect(&self, channels: Vec<(u32, Resource<Channel>)>) -> wasmtime::Result<BTreeMap<u32, Channel>> {
        if channels.len() > MAX_CHANNELS {
            wasmtime::bail!("a process gets at most {MAX_CHANNELS} channels");
        }
        let channels =
            channels.into_iter().map(|(number, channel)| Ok((number, self.guest.table.get(&channel)?.clone())));
        channels.collect()
    }
}

impl Host for ProcessCtx {
    fn pipe(&mut self) -> wasmtime::Result<(Resource<Channel>, Resource<Channel>)> {
        let (reader, writer) = self.task.pipe();
        Ok((self.guest.table.push(Channel::Reader(reader))?, self.guest.table.push(Channel::Writer(writer))?))
    }

    async fn open(&mut self, path: String, mode: Mode) -> Answer<Resource<Channel>> {
        let _alone = self.task.alone_in_folders().await;
        match answer(self.task.dirs.open_file(
            &path,
            mode,
            &self.task.quota,
            (&self.process.label, &self.task.commands.permit),
        ))? {
            Ok(channel) => Ok(Ok(self.guest.table.push(channel)?)),
            Err(errno) => Ok(Err(errno)),
        }
    }

    fn permissions(&mut self, path: String, follows: bool) -> Answer<u32> {
        answer(self.task.dirs.permissions((&path, follows), &self.task.quota, &self.process.label))
    }

    async fn set_permissions(&mut self, path: String, bits: u32) -> Answer<()> {
        let _alone = self.task.alone_in_folders().await;
        let who = (&self.process.label, &self.task.commands.permit);
        answer(self.task.dirs.set_permissions((&path, bits), &self.task.quota, who))
    }

    fn volumes(&mut self) -> wasmtime::Result<Vec<Volume>> {
        let Room { bytes, free_bytes, files, free_files } = self.task.quota.room();
        let space = Space { bytes, free_bytes, files, free_files };
        let volumes = self.task.dirs.volumes();
        Ok(volumes
            .map(|(at, writable, measured)| Volume { at: at.to_owned(), writable, space: measured.then_some(space) })
            .collect())
    }

    fn inherited(&mut self) -> wasmtime::Result<Vec<(u32, Resource<Channel>)>> {
        let channels = ProcessCtx::inherited(self);
        channels.into_iter().map(|(number, channel)| Ok((number, self.guest.table.push(channel)?))).collect()
    }

    fn start(&mut self, command: Command) -> wasmtime::Result<Result<Resource<Child>, Refusal>> {
        let Command { argv, program, env, cwd, channels } = command;
        let spec = ProcessSpec { argv, program, env, cwd, channels: self.collect(channels)? };
        let parent = Parent {
            components: &self.components,
            task: &self.task,
            process: &self.process,
            is_shell: self.is_shell(),
        };
        Ok(match start(parent, spec)? {
            Ok(process) => Ok(self.guest.table.push(process)?),
            Err(StartRefusal::Unknown(instead)) => Err(Refusal::Unknown(instead)),
            Err(StartRefusal::Failed(why)) => Err(Refusal::Failed(why.to_owned())),
        })
    }

    fn fork(&mut self, state: Vec<u8>, channels: Vec<(u32, Resource<Channel>)>) -> wasmtime::Result<Resource<Child>> {
        let channels = self.collect(channels)?;
        let spec = ProcessSpec { argv: vec!["sh".to_owned()], channels, ..ProcessSpec::default() };
        let work = ShellWork::Fork { state };
        let (process, _) = start_shell(&self.components, &self.task, Some(&self.process), work, spec)?;
        Ok(self.guest.table.push(process)?)
    }

    fn exists(&mut self, name: String) -> wasmtime::Result<bool> {
        Ok(self.task.commands.find(&name).is_some())
    }

    fn names(&mut self) -> wasmtime::Result<Vec<String>> {
        Ok(self.task.commands.names())
    }

    fn exit(&mut self, code: u8) -> wasmtime::Result<()> {
        Err(I32Exit(i32::from(code)).into())
    }
}

impl HostChannel for ProcessCtx {
    async fn read(&mut self, channel: Resource<Channel>, max: u32) -> Answer<Vec<u8>> {
        let channel = self.guest.table.get(&channel)?.clone();
        let read = channel.read(max as usize).await.map(Vec::from);
        self.process.label.join(channel.label());
        answer(read)
    }

    async fn read_line(&mut self, channel: Resource<Channel>, max: u32) -> Answer<Vec<u8>> {
        let channel = self.guest.table.get(&channel)?.clone();
        let read = channel.read_line(max as usize).await.map(Vec::from);
        self.process.label.join(channel.label());
        answer(read)
    }

    async fn write(&mut self, channel: Resource<Channel>, bytes: Vec<u8>) -> Answer<()> {
        let channel = self.guest.table.get(&channel)?.clone();
        if let Err(error) = channel.mark(self.process.label.get()) {
            return answer(Err(error));
        }
        answer(channel.write(&bytes).await)
    }

    fn duplicate(&mut self, channel: Resource<Channel>) -> wasmtime::Result<Resource<Channel>> {
        let channel = self.guest.table.get(&channel)?.clone();
        Ok(self.guest.table.push(channel)?)
    }

    fn is_terminal(&mut self, channel: Resource<Channel>) -> wasmtime::Result<bool> {
        self.guest.table.get(&channel)?;
        // A task has no terminal.
        Ok(false)
    }

    fn is_null(&mut self, channel: Resource<Channel>) -> wasmtime::Result<bool> {
        Ok(matches!(self.guest.table.get(&channel)?, Channel::Null))
    }

    fn drop(&mut self, channel: Resource<Channel>) -> wasmtime::Result<()> {
        self.guest.table.delete(channel)?;
        Ok(())
    }
}

impl HostProcess for ProcessCtx {
    fn id(&mut self, process: Resource<Child>) -> wasmtime::Result<u32> {
        Ok(self.guest.table.get(&process)?.id)
    }

    async fn wait(&mut self, process: Resource<Child>) -> wasmtime::Result<u8> {
        let process = self.guest.table.get(&process)?.clone();
        let code = process.wait().await;
        // The exit code depends on the data that the process has read.
        self.process.label.join(process.label.get());
        self.go_on()?;
        Ok(code)
    }

    async fn wait_for(&mut self, process: Resource<Child>, milliseconds: u64) -> wasmtime::Result<Option<u8>> {
        let process = self.guest.table.get(&process)?.clone();
        let code = tokio::time::timeout(Duration::from_millis(milliseconds), process.wait()).await.ok();
        self.process.label.join(process.label.get());
        self.go_on()?;
        Ok(code)
    }

    fn kill(&mut self, process: Resource<Child>) -> wasmtime::Result<()> {
        let process = self.guest.table.get(&process)?.clone();
        self.task.kill(&process);
        Ok(())
    }

    fn drop(&mut self, process: Resource<Child>) -> wasmtime::Result<()> {
        // The process continues: a background job outlives the variable that held it.
        self.guest.table.delete(process)?;
        Ok(())
    }
}
