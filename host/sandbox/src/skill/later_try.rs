use super::digest::Digest;
use super::*;
use kiso_base::config::Config;
use kiso_store::secret::Secrets;
use serde_json::json;
use std::path::Path;
use std::time::Instant;

struct Try {
    _dir: tempfile::TempDir,
    skills: Skills,
}

impl Try {
    fn new(config: &str) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let home = Home::open(&dir.path().join("home")).unwrap();
        let store = Store::open(&home.store_path()).unwrap();
        let config = Config::parse(config.as_bytes()).unwrap();
        let skills = Skills::with_compiler(home, config, store, Arc::new(Quiet), "/bin/false".into());
        Self { _dir: dir, skills }
    }

    async fn add(&self, name: &str, manifest: Option<&str>) -> Result<(), SkillError> {
        let file = Path::new("/tmp/gt/wasm32-wasip2/release").join(format!("{name}.wasm"));
        let wasm = std::fs::read(&file).unwrap();
        let sandbox = self.skills.sandbox().unwrap();
        if let Some(pool) = sandbox.concurrent().unwrap() {
            let started = Instant::now();
            let code = pool.engine().precompile_component(&wasm).unwrap();
            eprintln!("compiled {name} in {:?}", started.elapsed());
            pool.code().keep(&Digest::of(&wasm), code).unwrap();
        }
        let candidate = self.skills.examine(&file, manifest.map(Path::new), None)?;
        self.skills.install(candidate, GrantChoice::All).await.map(|_| ())
    }

    async fn call(&self, tool: &str, session: &str, args: Value) -> String {
        let session = SessionName::parse(session).unwrap();
        let secrets = Secrets::default();
        let started = Instant::now();
        let ended = self.skills.call(tool, &args, Caller::by_hand(&session, &secrets)).await;
        let shown = match ended.result {
            Ok(answer) => format!("OK {:.100} {:.200}", answer.text, answer.data.unwrap_or_default().to_string()),
            Err(error) => format!("ERR {:?} {} {}", error.limit.as_ref().map(|l| l.limit), error.code.as_str(), error),
        };
        format!(
            "{:>5} ms, {} calls, {} KiB written: {shown} [stderr {:.200}]",
            started.elapsed().as_millis(),
            ended.used.host_calls,
            ended.used.written_bytes >> 10,
            ended.stderr
        )
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn try_later() {
    let lab = Try::new("[engine]\nmax_files = 1_000\n");
    lab.add("later", Some("/work/w3/tests/guests/later/kiso.toml")).await.unwrap();
    lab.add("flow", None).await.unwrap();
    for (tool, args) in [
        ("flow.add", json!({"a": 2, "b": 40})),
        ("flow.later", json!({"text": "x"})),
        ("flow.divide", json!({"a": 1, "b": 8})),
        ("flow.divide", json!({"a": 1, "b": 0})),
        ("flow.spell", json!({"text": "abc", "times": 3})),
        ("flow.rows", json!({"count": 3})),
        ("flow.value", json!({"text": "v"})),
        ("flow.ended", json!({"fails": false})),
        ("flow.ended", json!({"fails": true})),
        ("flow.endless", json!({})),
    ] {
        eprintln!("{tool} {args}: {}", lab.call(tool, "flow", args.clone()).await);
    }
    for mode in [
        "echo", "list", "copy", "exit7", "fail", "behind", "held", "http", "allocate", "print", "write", "append",
        "length", "dirs", "open", "listings", "streams", "futures", "calls", "stuck", "spin", "wait",
    ] {
        eprintln!(
            "later {mode}: {}",
            lab.call("later", mode, json!({"mode": mode, "path": if mode == "http" { "example.org" } else {"a.txt"}}))
                .await
        );
    }
    eprintln!(
        "flow.never: {}",
        tokio::time::timeout(std::time::Duration::from_secs(40), lab.call("flow.never", "flow", json!({})))
            .await
            .unwrap_or_default()
    );
    let off = Try::new("[engine]\nwasi_0_3 = false\n");
    eprintln!("off: {:?}", off.add("flow", None).await.map_err(|e| e.to_string()));
}
