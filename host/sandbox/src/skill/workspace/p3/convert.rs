//! The types of `wasi:filesystem` 0.3 and 0.2, each as the other.

use crate::engine::stream::StreamErrorCode;
use std::io;
use wasmtime_wasi::p2::FsError;
use wasmtime_wasi::p2::bindings::clocks::wall_clock::Datetime;
use wasmtime_wasi::p2::bindings::filesystem::types as earlier;
use wasmtime_wasi::p3::bindings::clocks::system_clock::Instant;
use wasmtime_wasi::p3::bindings::filesystem::types::{
    Advice, DescriptorFlags, DescriptorStat, DescriptorType, ErrorCode, NewTimestamp, OpenFlags, PathFlags,
};
use wasmtime_wasi::p3::filesystem::{FilesystemError, FilesystemResult};

/// An error of 0.2; a trap stays one.
pub(super) fn trappable(error: FsError) -> FilesystemError {
    match error.downcast() {
        Ok(error) => code(error).into(),
        Err(trap) => FilesystemError::trap(trap),
    }
}

pub(super) fn code(code: earlier::ErrorCode) -> ErrorCode {
    use earlier::ErrorCode as Earlier;
    match code {
        Earlier::Access => ErrorCode::Access,
        // There is no such code any more: functions wait.
        Earlier::WouldBlock => ErrorCode::Other(Some("would-block".to_owned())),
        Earlier::Already => ErrorCode::Already,
        Earlier::BadDescriptor => ErrorCode::BadDescriptor,
        Earlier::Busy => ErrorCode::Busy,
        Earlier::Deadlock => ErrorCode::Deadlock,
        Earlier::Quota => ErrorCode::Quota,
        Earlier::Exist => ErrorCode::Exist,
        Earlier::FileTooLarge => ErrorCode::FileTooLarge,
        Earlier::IllegalByteSequence => ErrorCode::IllegalByteSequence,
        Earlier::InProgress => ErrorCode::InProgress,
        Earlier::Interrupted => ErrorCode::Interrupted,
        Earlier::Invalid => ErrorCode::Invalid,
        Earlier::Io => ErrorCode::Io,
        Earlier::IsDirectory => ErrorCode::IsDirectory,
        Earlier::Loop => ErrorCode::Loop,
        Earlier::TooManyLinks => ErrorCode::TooManyLinks,
        Earlier::MessageSize => ErrorCode::MessageSize,
        Earlier::NameTooLong => ErrorCode::NameTooLong,
        Earlier::NoDevice => ErrorCode::NoDevice,
        Earlier::NoEntry => ErrorCode::NoEntry,
        Earlier::NoLock => ErrorCode::NoLock,
        Earlier::InsufficientMemory => ErrorCode::InsufficientMemory,
        Earlier::InsufficientSpace => ErrorCode::InsufficientSpace,
        Earlier::NotDirectory => ErrorCode::NotDirectory,
        Earlier::NotEmpty => ErrorCode::NotEmpty,
        Earlier::NotRecoverable => ErrorCode::NotRecoverable,
        Earlier::Unsupported => ErrorCode::Unsupported,
        Earlier::NoTty => ErrorCode::NoTty,
        Earlier::NoSuchDevice => ErrorCode::NoSuchDevice,
        Earlier::Overflow => ErrorCode::Overflow,
        Earlier::NotPermitted => ErrorCode::NotPermitted,
        Earlier::Pipe => ErrorCode::Pipe,
        Earlier::ReadOnly => ErrorCode::ReadOnly,
        Earlier::InvalidSeek => ErrorCode::InvalidSeek,
        Earlier::TextFileBusy => ErrorCode::TextFileBusy,
        Earlier::CrossDevice => ErrorCode::CrossDevice,
    }
}

impl StreamErrorCode for ErrorCode {
    fn from_error(error: &wasmtime::Error) -> Self {
        match (error.downcast_ref::<io::Error>(), error.downcast_ref::<earlier::ErrorCode>()) {
            (Some(error), _) => Self::from(error),
            (None, Some(error)) => code(*error),
            (None, None) => Self::Io,
        }
    }

    fn closed() -> Self {
        Self::Pipe
    }
}

pub(super) fn kind(kind: earlier::DescriptorType) -> DescriptorType {
    match kind {
        earlier::DescriptorType::Unknown => DescriptorType::Other(None),
        earlier::DescriptorType::BlockDevice => DescriptorType::BlockDevice,
        earlier::DescriptorType::CharacterDevice => DescriptorType::CharacterDevice,
        earlier::DescriptorType::Directory => DescriptorType::Directory,
        earlier::DescriptorType::Fifo => DescriptorType::Fifo,
        earlier::DescriptorType::SymbolicLink => DescriptorType::SymbolicLink,
        earlier::DescriptorType::RegularFile => DescriptorType::RegularFile,
        earlier::DescriptorType::Socket => DescriptorType::Socket,
    }
}

pub(super) fn stat(stat: earlier::DescriptorStat) -> DescriptorStat {
    let instant = |time: Option<Datetime>| {
        let time = time?;
        Some(Instant { seconds: i64::try_from(time.seconds).ok()?, nanoseconds: time.nanoseconds })
    };
    DescriptorStat {
        type_: kind(stat.type_),
        link_count: stat.link_count,
        size: stat.size,
        data_access_timestamp: instant(stat.data_access_timestamp),
        data_modification_timestamp: instant(stat.data_modification_timestamp),
        status_change_timestamp: instant(stat.status_change_timestamp),
    }
}

/// A time to set. Those before 1970 did not exist in 0.2.
pub(super) fn time(time: NewTimestamp) -> FilesystemResult<earlier::NewTimestamp> {
    Ok(match time {
        NewTimestamp::NoChange => earlier::NewTimestamp::NoChange,
        NewTimestamp::Now => earlier::NewTimestamp::Now,
        NewTimestamp::Timestamp(Instant { seconds, nanoseconds }) => {
            let seconds = u64::try_from(seconds).map_err(|_| ErrorCode::Overflow)?;
            earlier::NewTimestamp::Timestamp(Datetime { seconds, nanoseconds })
        }
    })
}

pub(super) fn advice(advice: Advice) -> earlier::Advice {
    match advice {
        Advice::Normal => earlier::Advice::Normal,
        Advice::Sequential => earlier::Advice::Sequential,
        Advice::Random => earlier::Advice::Random,
        Advice::WillNeed => earlier::Advice::WillNeed,
        Advice::DontNeed => earlier::Advice::DontNeed,
        Advice::NoReuse => earlier::Advice::NoReuse,
    }
}

pub(super) fn path_flags(flags: PathFlags) -> earlier::PathFlags {
    match flags.contains(PathFlags::SYMLINK_FOLLOW) {
        true => earlier::PathFlags::SYMLINK_FOLLOW,
        false => earlier::PathFlags::empty(),
    }
}

pub(super) fn open_flags(flags: OpenFlags) -> earlier::OpenFlags {
    let all = [
        (OpenFlags::CREATE, earlier::OpenFlags::CREATE),
        (OpenFlags::DIRECTORY, earlier::OpenFlags::DIRECTORY),
        (OpenFlags::EXCLUSIVE, earlier::OpenFlags::EXCLUSIVE),
        (OpenFlags::TRUNCATE, earlier::OpenFlags::TRUNCATE),
    ];
    let set = all.into_iter().filter(|(later, _)| flags.contains(*later));
    set.fold(earlier::OpenFlags::empty(), |flags, (_, flag)| flags | flag)
}

/// The flags of a descriptor, in both versions.
const DESCRIPTOR_FLAGS: [(DescriptorFlags, earlier::DescriptorFlags); 6] = [
    (DescriptorFlags::READ, earlier::DescriptorFlags::READ),
    (DescriptorFlags::WRITE, earlier::DescriptorFlags::WRITE),
    (DescriptorFlags::FILE_INTEGRITY_SYNC, earlier::DescriptorFlags::FILE_INTEGRITY_SYNC),
    (DescriptorFlags::DATA_INTEGRITY_SYNC, earlier::DescriptorFlags::DATA_INTEGRITY_SYNC),
    (DescriptorFlags::REQUESTED_WRITE_SYNC, earlier::DescriptorFlags::REQUESTED_WRITE_SYNC),
    (DescriptorFlags::MUTATE_DIRECTORY, earlier::DescriptorFlags::MUTATE_DIRECTORY),
];

pub(super) fn descriptor_flags(flags: DescriptorFlags) -> earlier::DescriptorFlags {
    let set = DESCRIPTOR_FLAGS.into_iter().filter(|(later, _)| flags.contains(*later));
    set.fold(earlier::DescriptorFlags::empty(), |flags, (_, flag)| flags | flag)
}

pub(super) fn flags(flags: earlier::DescriptorFlags) -> DescriptorFlags {
    let set = DESCRIPTOR_FLAGS.into_iter().filter(|(_, earlier)| flags.contains(*earlier));
    set.fold(DescriptorFlags::empty(), |flags, (flag, _)| flags | flag)
}
