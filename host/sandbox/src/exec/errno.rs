//! Errors of a process's requests that it can handle.

/// As in `wit/exec`, where each is described.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Errno {
    NotFound,
    NotADirectory,
    IsADirectory,
    Exists,
    Denied,
    ReadOnly,
    NameTooLong,
    TooManyLinks,
    NoSpace,
    NotPlain,
    Closed,
    BadChannel,
    Invalid,
    Io,
}

impl Errno {
    /// The name for programs.
    pub fn name(self) -> &'static str {
        match self {
            Self::NotFound => "ENOENT",
            Self::NotADirectory => "ENOTDIR",
            Self::IsADirectory => "EISDIR",
            Self::Exists => "EEXIST",
            Self::Denied | Self::NotPlain => "EACCES",
            Self::ReadOnly => "EROFS",
            Self::NameTooLong => "ENAMETOOLONG",
            Self::TooManyLinks => "ELOOP",
            Self::NoSpace => "ENOSPC",
            Self::Closed => "EPIPE",
            Self::BadChannel => "EBADF",
            Self::Invalid => "EINVAL",
            Self::Io => "EIO",
        }
    }

    /// The text for people.
    pub fn in_words(self) -> &'static str {
        match self {
            Self::NotFound => "No such file or directory",
            Self::NotADirectory => "Not a directory",
            Self::IsADirectory => "Is a directory",
            Self::Exists => "File exists",
            Self::Denied => "Permission denied",
            Self::ReadOnly => "Read-only file system",
            Self::NameTooLong => "File name too long",
            Self::TooManyLinks => "Too many levels of symbolic links",
            Self::NoSpace => "No space left on device",
            Self::NotPlain => "Not a regular file",
            Self::Closed => "Broken pipe",
            Self::BadChannel => "Bad file descriptor",
            Self::Invalid => "Invalid argument",
            Self::Io => "Input/output error",
        }
    }
}

/// The error for a guest that corresponds to an error of this machine.
impl From<&std::io::Error> for Errno {
    fn from(error: &std::io::Error) -> Self {
        use std::io::ErrorKind as Kind;
        match error.kind() {
            Kind::NotFound => Self::NotFound,
            Kind::NotADirectory => Self::NotADirectory,
            Kind::IsADirectory => Self::IsADirectory,
            Kind::AlreadyExists => Self::Exists,
            Kind::PermissionDenied => Self::Denied,
            Kind::ReadOnlyFilesystem => Self::ReadOnly,
            Kind::InvalidFilename => Self::NameTooLong,
            Kind::StorageFull | Kind::QuotaExceeded | Kind::FileTooLarge => Self::NoSpace,
            Kind::BrokenPipe => Self::Closed,
            Kind::InvalidInput => Self::Invalid,
            _ if error.raw_os_error() == Some(rustix::io::Errno::LOOP.raw_os_error()) => Self::TooManyLinks,
            _ => Self::Io,
        }
    }
}
