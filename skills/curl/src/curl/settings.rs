//! The settings that options change.

use crate::date::Seconds;
use crate::multipart::Part;
use std::time::Duration;

/// A URL, with where its body goes and what is sent.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Target {
    pub url: Option<String>,
    pub output: Option<Output>,
    pub upload: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Output {
    /// A name, in which `#1` is a part of the URL; `-` is standard output.
    Named(String),
    /// The last part of the URL's path.
    Remote,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Fail {
    #[default]
    Never,
    WithoutBody,
    WithBody,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Resume {
    At(u64),
    /// Where the file ends.
    Here,
}

/// The data of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Data {
    Bytes(Vec<u8>),
    /// Sent as it lies there.
    File(String),
}

/// The options of the URLs up to `--next`.
#[derive(Debug, Clone)]
pub struct Options {
    pub targets: Vec<Target>,
    pub method: Option<String>,
    pub headers: Vec<String>,
    pub data: Option<Data>,
    pub json: bool,
    pub form: Vec<Part>,
    pub form_escape: bool,
    pub get: bool,
    pub head: bool,
    pub url_query: Vec<String>,
    pub user: Option<String>,
    pub bearer: Option<String>,
    pub agent: Option<String>,
    pub referer: Option<String>,
    pub auto_referer: bool,
    pub cookies: Vec<String>,
    pub cookie_files: Vec<String>,
    pub cookie_jar: Option<String>,
    pub junk_session: bool,
    pub range: Option<String>,
    pub resume: Option<Resume>,
    pub since: Option<(bool, Seconds)>,
    pub etag_compare: Option<String>,
    pub etag_save: Option<String>,
    pub compressed: bool,
    pub location: bool,
    pub trusted: bool,
    pub max_redirects: u32,
    pub keep_post: [bool; 3],
    pub protocols: Vec<&'static str>,
    pub redirect_protocols: Vec<&'static str>,
    pub default_scheme: Option<String>,
    pub fail: Fail,
    pub include: bool,
    pub verbose: bool,
    pub dump_header: Option<String>,
    pub write_out: Option<String>,
    pub remote_header_name: bool,
    pub remote_name_all: bool,
    pub remote_time: bool,
    pub create_dirs: bool,
    pub output_dir: Option<String>,
    pub remove_on_error: bool,
    pub no_clobber: bool,
    pub skip_existing: bool,
    pub no_buffer: bool,
    pub ignore_length: bool,
    pub globoff: bool,
    pub max_filesize: Option<u64>,
    pub limit_rate: Option<u64>,
    pub max_time: Option<Duration>,
    pub connect_timeout: Option<Duration>,
    pub retries: u32,
    pub retry_delay: Duration,
    pub retry_max_time: Option<Duration>,
    pub retry_refused: bool,
    pub retry_all: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            targets: Vec::new(),
            method: None,
            headers: Vec::new(),
            data: None,
            json: false,
            form: Vec::new(),
            form_escape: false,
            get: false,
            head: false,
            url_query: Vec::new(),
            user: None,
            bearer: None,
            agent: None,
            referer: None,
            auto_referer: false,
            cookies: Vec::new(),
            cookie_files: Vec::new(),
            cookie_jar: None,
            junk_session: false,
            range: None,
            resume: None,
            since: None,
            etag_compare: None,
            etag_save: None,
            compressed: false,
            location: false,
            trusted: false,
            max_redirects: 50,
            keep_post: [false; 3],
            protocols: vec!["http", "https"],
            redirect_protocols: vec!["http", "https"],
            default_scheme: None,
            fail: Fail::Never,
            include: false,
            verbose: false,
            dump_header: None,
            write_out: None,
            remote_header_name: false,
            remote_name_all: false,
            remote_time: false,
            create_dirs: false,
            output_dir: None,
            remove_on_error: false,
            no_clobber: false,
            skip_existing: false,
            no_buffer: false,
            ignore_length: false,
            globoff: false,
            max_filesize: None,
            limit_rate: None,
            max_time: None,
            connect_timeout: None,
            retries: 0,
            retry_delay: Duration::ZERO,
            retry_max_time: None,
            retry_refused: false,
            retry_all: false,
        }
    }
}
