//! A `wasi:cli/command` of WASI 0.3: reads `{"args": {"mode": …}}` on standard input and prints. Most modes try what the hostile guest
//! tries, through the interfaces of 0.3. The standard library that it is built with imports those of 0.2.

use std::hint::black_box;
use wasip3::cli::{environment, exit, stdin, stdout};
use wasip3::clocks::monotonic_clock::wait_for;
use wasip3::filesystem::preopens::get_directories;
use wasip3::filesystem::types::{Descriptor, DescriptorFlags, ErrorCode, OpenFlags, PathFlags};
use wasip3::http::client;
use wasip3::http::types::{ErrorCode as HttpError, Fields, Request, Response, Scheme};
use wasip3::sockets::types::{IpAddressFamily, IpSocketAddress, Ipv4SocketAddress, TcpSocket};
use wasip3::{spawn_local, wit_future, wit_stream};

wasip3::cli::command::export!(Hostile);

struct Hostile;

impl wasip3::exports::cli::run::Guest for Hostile {
    async fn run() -> Result<(), ()> {
        let (input, end) = stdin::read_via_stream();
        let input = input.collect().await;
        end.await.expect("standard input has an end");
        let call: serde_json::Value = serde_json::from_slice(&input).expect("standard input is one JSON object");
        let arg = |name: &str| call["args"][name].as_str().unwrap_or_default().to_owned();
        let (path, text) = (arg("path"), arg("text"));
        match arg("mode").as_str() {
            "echo" => print(input).await,
            "list" => list().await,
            // A file is written, copied and read.
            "copy" => {
                let work = work();
                write(&open(&work, &path, OpenFlags::CREATE).await.expect("it is made"), text.into_bytes())
                    .await
                    .expect("it is written");
                let copied = read(&open(&work, &path, OpenFlags::empty()).await.expect("it is there"))
                    .await
                    .expect("it is read");
                print(copied).await;
            }
            "change" => change(&path).await.expect("each change is made"),
            // Error: the exit code.
            "exit7" => exit::exit_with_code(7),
            "fail" => {
                print(b"before the end".to_vec()).await;
                return Err(());
            }
            // Output that is written after the function has returned.
            "behind" => {
                spawn_local(async move {
                    wait_for(20_000_000).await;
                    print(text.into_bytes()).await;
                });
            }
            "http" => print(get(&path, &text).await.unwrap_or_else(|error| format!("{error:?}").into_bytes())).await,
            "held" => held().await,
            "paths" => paths().await,
            "abandon" => abandon(&path).await,
            // Limit: the deadline, for a guest that computes, for one that sleeps, and for one that waits for itself.
            "spin" => loop {
                black_box(());
            },
            "wait" => wait_for(u64::MAX).await,
            "stuck" => {
                let (writer, reader) = wit_stream::new::<u8>();
                reader.collect().await;
                drop(writer);
            }
            // Limit: memory.
            "allocate" => {
                let mut all = Vec::new();
                loop {
                    all.push(vec![1_u8; 1 << 20]);
                    black_box(&all);
                }
            }
            // Limit: standard output.
            "print" => loop {
                print(vec![b'.'; 64 << 10]).await;
            },
            // Limit: the bytes that a call may write.
            "write" => flood(&open(&work(), "full", OpenFlags::CREATE).await.expect("it is made"), false).await,
            "append" => flood(&open(&work(), "full", OpenFlags::CREATE).await.expect("it is made"), true).await,
            "length" => {
                let file = open(&work(), "long", OpenFlags::CREATE).await.expect("it is made");
                file.set_size(1 << 40).await.expect("it ends before");
            }
            // Limit: the entries of a workspace.
            "dirs" => {
                for number in 0_u64.. {
                    work().create_directory_at(number.to_string()).await.expect("it ends before");
                }
            }
            // Limit: handles.
            "open" => {
                let (work, mut all) = (work(), Vec::new());
                loop {
                    all.push(open(&work, ".", OpenFlags::DIRECTORY).await.expect("it ends before"));
                }
            }
            "listings" => {
                let (work, mut all) = (work(), Vec::new());
                work.create_directory_at("entry".to_owned()).await.expect("it is made");
                loop {
                    let (mut entries, end) = work.read_directory();
                    black_box(entries.next().await);
                    all.push((entries, end));
                }
            }
            "streams" => {
                let mut all = Vec::new();
                loop {
                    all.push(wit_stream::new::<u8>());
                }
            }
            "futures" => {
                let mut all = Vec::new();
                loop {
                    all.push(wit_future::new::<Result<(), ErrorCode>>(|| Ok(())));
                }
            }
            "calls" => loop {
                spawn_local(wait_for(u64::MAX));
                wait_for(1).await;
            },
            other => panic!("no mode {other:?}"),
        }
        Ok(())
    }
}

async fn print(bytes: Vec<u8>) {
    let (mut writer, reader) = wit_stream::new();
    let end = stdout::write_via_stream(reader);
    writer.write_all(bytes).await;
    drop(writer);
    end.await.expect("standard output takes bytes");
}

/// The environment, the arguments, and the entries of the workspace.
async fn list() {
    let (mut entries, end) = work().read_directory();
    let mut names = Vec::new();
    while let Some(entry) = entries.next().await {
        names.push(entry.name);
    }
    end.await.expect("the directory has an end");
    let shown = format!("{:?} {:?} {names:?}\n", environment::get_environment(), environment::get_arguments());
    print(shown.into_bytes()).await;
}

fn work() -> Descriptor {
    get_directories().into_iter().find(|(_, at)| at == "/work").expect("it has a workspace").0
}

async fn open(dir: &Descriptor, path: &str, open: OpenFlags) -> Result<Descriptor, ErrorCode> {
    let flags = match open.contains(OpenFlags::CREATE) {
        true => DescriptorFlags::READ | DescriptorFlags::WRITE,
        false => DescriptorFlags::READ,
    };
    dir.open_at(PathFlags::SYMLINK_FOLLOW, path.to_owned(), open, flags).await
}

async fn read(file: &Descriptor) -> Result<Vec<u8>, ErrorCode> {
    let (bytes, end) = file.read_via_stream(0);
    let bytes = bytes.collect().await;
    end.await?;
    Ok(bytes)
}

async fn write(file: &Descriptor, bytes: Vec<u8>) -> Result<(), ErrorCode> {
    let (mut writer, reader) = wit_stream::new();
    let end = file.write_via_stream(reader, 0);
    writer.write_all(bytes).await;
    drop(writer);
    end.await
}

async fn flood(file: &Descriptor, appends: bool) {
    let (mut writer, reader) = wit_stream::new();
    let _end = if appends { file.append_via_stream(reader) } else { file.write_via_stream(reader, 0) };
    loop {
        writer.write_all(vec![b'x'; 64 << 10]).await;
    }
}

/// Makes a change of each kind, after it has read a file.
async fn change(path: &str) -> Result<(), ErrorCode> {
    let work = work();
    let bytes = read(&open(&work, path, OpenFlags::empty()).await?).await?;
    write(&open(&work, "copy.txt", OpenFlags::CREATE).await?, bytes).await?;
    work.create_directory_at("dir".to_owned()).await?;
    let dir = open(&work, "dir", OpenFlags::DIRECTORY).await?;
    work.rename_at("copy.txt".to_owned(), &dir, "moved.txt".to_owned()).await?;
    work.link_at(PathFlags::empty(), "dir/moved.txt".to_owned(), &work, "second.txt".to_owned()).await?;
    work.symlink_at("dir/moved.txt".to_owned(), "link".to_owned()).await?;
    open(&work, path, OpenFlags::CREATE).await?.set_size(1).await?;
    work.unlink_file_at("gone.txt".to_owned()).await?;
    work.remove_directory_at("empty".to_owned()).await
}

async fn get(host: &str, path: &str) -> Result<Vec<u8>, HttpError> {
    let (_, trailers) = wit_future::new(|| Ok(None));
    let (request, _sent) = Request::new(Fields::new(), None, trailers, None);
    request.set_scheme(Some(&Scheme::Http)).expect("it is a scheme");
    request.set_authority(Some(host)).expect("it is a host");
    request.set_path_with_query(Some(path)).expect("it is a path");
    let response = client::send(request).await?;
    let (_, taken) = wit_future::new(|| Ok(()));
    let (body, end) = Response::consume_body(response, taken);
    let body = body.collect().await;
    end.await?;
    Ok(body)
}

/// Ends while reads and writes of files are under way.
async fn abandon(path: &str) {
    let work = work();
    write(&open(&work, path, OpenFlags::CREATE).await.expect("it is made"), vec![b'x'; 1 << 20])
        .await
        .expect("it is written");
    for number in 0..16 {
        let file = open(&work, path, OpenFlags::empty()).await.expect("it is there");
        spawn_local(async move { drop(read(&file).await) });
        let file = open(&work, &format!("{path}{number}"), OpenFlags::CREATE).await.expect("it is made");
        spawn_local(async move { drop(write(&file, vec![b'y'; 1 << 20]).await) });
    }
    wait_for(1).await;
    exit::exit_with_code(7);
}

/// Passes a path of 8 MiB in hundreds of calls at once, each of which would keep a copy in the host. Prints what the first is told.
async fn paths() {
    let path = "a/".repeat(4 << 20);
    for _ in 0..200 {
        let path = path.clone();
        spawn_local(async move { drop(work().stat_at(PathFlags::empty(), path).await) });
        wait_for(1).await;
    }
    let told = work().stat_at(PathFlags::empty(), path).await.expect_err("it is too long");
    print(format!("{told:?}").into_bytes()).await;
}

/// Tries to leave the workspace in each way. Prints "held" if no way leads out.
async fn held() {
    let work = work();
    for path in ["../secret", "/etc/passwd", "a/../../secret", "..", "/"] {
        assert!(open(&work, path, OpenFlags::empty()).await.is_err(), "{path} was opened");
        assert!(open(&work, path, OpenFlags::CREATE).await.is_err(), "{path} was made");
        assert!(work.stat_at(PathFlags::SYMLINK_FOLLOW, path.to_owned()).await.is_err(), "{path} was seen");
    }
    for target in ["/etc/passwd", "../secret", "../../../../../../etc/passwd"] {
        let link = format!("link-{}", target.len());
        let made = work.symlink_at(target.to_owned(), link.clone()).await;
        assert!(made.is_err(), "a link to {target} was made");
        assert!(open(&work, &link, OpenFlags::empty()).await.is_err(), "a link to {target} was followed");
    }
    work.create_directory_at("below".to_owned()).await.expect("it is made");
    let below = open(&work, "below", OpenFlags::DIRECTORY).await.expect("it is there");
    assert!(work.rename_at("below".to_owned(), &below, "../../out".to_owned()).await.is_err(), "it was moved out");
    assert!(
        work.link_at(PathFlags::empty(), "below".to_owned(), &work, "../out".to_owned()).await.is_err(),
        "it was linked out"
    );
    if let Ok(socket) = TcpSocket::create(IpAddressFamily::Ipv4) {
        let at = IpSocketAddress::Ipv4(Ipv4SocketAddress { port: 80, address: (127, 0, 0, 1) });
        assert!(socket.connect(at).await.is_err(), "a host was reached past the gate");
    }
    assert!(get("example.org", "/").await.is_err(), "a host was reached that nobody granted");
    print(b"held".to_vec()).await;
}
