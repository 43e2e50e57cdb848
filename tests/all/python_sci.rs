//! Python with scientific libraries: refused if it could not be compiled, and used by programs.

use crate::harness::Home;
use crate::python::kept::different_when_started;
use crate::python::{different, wheel};
use std::sync::OnceLock;

/// Limits that are high enough to compile it.
const LIMITS: &str = "[engine]\ncompile_memory_mib = 3072\ncompile_timeout_s = 600\n";

/// A home with it installed. Compiling takes minutes, so these tests run in `.ci/long`.
fn home() -> Option<&'static Home> {
    static HOME: OnceLock<Home> = OnceLock::new();
    let wheel = wheel("python-sci")?;
    Some(HOME.get_or_init(|| {
        let home = Home::new();
        home.config(LIMITS);
        let added = home.kiso(&["skill", "add", "python-sci", "--from", wheel.to_str().unwrap()]);
        added
            .ok()
            .prints(&["installed python-sci 3.15.0+2: python3-sci, python3, python, python3.15 in every command line"]);
        home
    }))
}

#[test]
fn what_could_not_be_compiled_is_not_fetched() {
    let home = Home::new();
    let add = || home.kiso(&["skill", "add", "python-sci", "--from", "/nowhere"]);
    add()
        .exit(4)
        .says(&["takes up to 3072 MiB of memory and 600 seconds", "1024 MiB and 120 seconds are allowed here"]);
    // The message contains lines to copy.
    add().exit(4).says(&LIMITS.lines().collect::<Vec<_>>());
    home.config(LIMITS);
    add().exit(2).says(&["cannot read /nowhere"]);
    home.kiso(&["shell", "-c", "python3-sci -V"]).exit(127);
    let found = home.kiso(&["skill", "search", "python3-sci"]);
    found.ok().prints(&["python-sci", "3.15.0+2", "package"]);
    assert!(!found.stdout.contains("installed"), "{found:?}");
}

#[test]
#[ignore = "compiles for minutes"]
fn libraries_do_what_they_are_for() {
    let Some(home) = home() else { return };
    let run = |line: &str| home.kiso(&["shell", "--session", "science", "-c", line]);
    run("python3 -c 'import numpy; print(numpy.linalg.solve([[2, 1], [1, 3]], [3, 5]))'").ok().prints(&["[0.8 1.4]"]);
    run("printf 'city,t\\nBern,3\\nBern,5\\nRome,14\\n' > t.csv && python3 -c '
import pandas
print(pandas.read_csv(\"t.csv\").groupby(\"city\").t.mean().to_json())'")
    .ok()
    .prints(&[r#"{"Bern":4.0,"Rome":14.0}"#]);
    run("mkdir -p pub && python3 -c '
import matplotlib.pyplot as plt
plt.plot([1, 4, 9]); plt.title(\"Squares\"); plt.savefig(\"/work/pub/squares.png\"); plt.savefig(\"/work/pub/squares.svg\")'
python3 -c 'from PIL import Image; print(Image.open(\"pub/squares.png\").size)' && grep -c '<svg' pub/squares.svg")
    .ok()
    .prints(&["(640, 480)\n1\n"]);
    run("python3 -c '
from PIL import Image
image = Image.new(\"RGB\", (40, 30), \"red\")
image.save(\"red.jpg\", quality=90); image.save(\"red.webp\")
print(Image.open(\"red.jpg\").getpixel((9, 9))[0] > 250, Image.open(\"red.webp\").getpixel((9, 9)))
small = Image.open(\"red.jpg\"); small.thumbnail((8, 8)); print(small.size)
exif = Image.Exif(); exif[274] = 6; image.save(\"turned.jpg\", exif=exif, comment=\"hello\", dpi=(200, 200))
turned = Image.open(\"turned.jpg\"); print(turned.getexif()[274], turned.info[\"comment\"], turned.info[\"dpi\"])
open(\"cut.jpg\", \"wb\").write(open(\"red.jpg\", \"rb\").read()[:-20])
try: Image.open(\"cut.jpg\").load()
except OSError as error: print(error)'")
    .ok()
    .prints(&["True (255, 0, 0)\n(8, 6)\n6 b'hello' (200, 200)\nimage file is truncated\n"]);
    run("python3 -c '
from scipy.optimize import brentq
from sklearn.linear_model import LinearRegression
import sympy, networkx
print(round(brentq(lambda x: x * x - 2, 0, 2), 6), LinearRegression().fit([[0], [1]], [1, 3]).coef_)
print(sympy.factor(\"x**2 - 1\"), networkx.shortest_path(networkx.path_graph(3), 0, 2))'")
    .ok()
    .prints(&["1.414214 [2.]\n(x - 1)*(x + 1) [0, 1, 2]\n"]);
    // C++ exceptions and C jumps become errors.
    run("python3 -c '
from lxml import etree
from PIL import Image
try: etree.fromstring(\"<a><b></a>\")
except etree.XMLSyntaxError as error: print(\"xml\", error.lineno)
open(\"bad.png\", \"wb\").write(b\"\\x89PNG\\r\\n\\x1a\\n\" + b\"x\" * 50)
try: Image.open(\"bad.png\").load()
except OSError: print(\"image\")'")
    .ok()
    .prints(&["xml 1\nimage\n"]);
    run("python3 -c '
import openpyxl, pypdf, io
from reportlab.pdfgen import canvas
book = openpyxl.Workbook(); book.active[\"A1\"] = 7; book.save(\"a.xlsx\")
print(openpyxl.load_workbook(\"a.xlsx\").active[\"A1\"].value)
page = canvas.Canvas(\"a.pdf\"); page.drawString(50, 700, \"Hello\"); page.save()
print(pypdf.PdfReader(\"a.pdf\").pages[0].extract_text())'")
    .ok()
    .prints(&["7\nHello\n"]);
}

#[test]
#[ignore = "compiles for minutes"]
fn it_is_python3_like_the_other() {
    let Some(home) = home() else { return };
    let run = |line: &str| home.kiso(&["shell", "--session", "command", "-c", line]);
    run("python3 --version; python3 -V; python3-sci -V")
        .ok()
        .prints(&["Python 3.15.0\nPython 3.15.0\nPython 3.15.0\n"]);
    run("python3 --help").ok().prints(&["usage: python3 [-u]"]);
    run("mkdir -p a/b && cd a/b && echo 'X = 5' > near.py && printf 'import os, sys, near\\nprint(os.getcwd(), __file__, sys.argv, near.X)' > here.py
python3 here.py one; cd .. && python3 -u b/here.py; python3 ./b/here.py; PYTHONPATH=b python3 -c 'import near; print(near.X)'")
    .ok()
    .prints(&[
        "/work/a/b /work/a/b/here.py ['here.py', 'one'] 5\n",
        "/work/a /work/a/b/here.py ['b/here.py'] 5\n/work/a /work/a/./b/here.py ['./b/here.py'] 5\n5\n",
    ]);
    run("cd a/b && python3 -m near && python3 -c 'import near, sys; print(sys.argv)' x -y && echo 'print(__name__)' | python3 - z").ok().prints(&[
        "['-c', 'x', '-y']\n__main__\n",
    ]);
    run("printf '#!/usr/bin/env python3\\nimport sys; print(sys.argv)\\n' > s.py && chmod +x s.py && ./s.py one two")
        .ok()
        .prints(&["['./s.py', 'one', 'two']"]);
    run("python3 -c 'import sys; sys.exit(3)'; echo $?; python3 -c 'import sys; sys.exit(-1)'; echo $?; python3 -c 'import os; os._exit(7)'; echo $?")
        .ok()
        .prints(&["3\n255\n7\n"]);
    run("printf 'def f():\\n    1/0\\nf()\\n' > bad.py && python3 bad.py")
        .exit(1)
        .says(&["File \"/work/bad.py\", line 2, in f", "ZeroDivisionError: division by zero"]);
    run("python3 none.py").exit(2).says(&["can't open file '/work/none.py'"]);
    run("python3 -Z").exit(2).says(&["unknown option -Z"]);
    run("python3 -c 'import subprocess; print(subprocess.check_output([\"sort\"], input=b\"b\\na\\n\"))'")
        .ok()
        .prints(&["b'a\\nb\\n'"]);
    run("python3 -c 'import os; os.system(\"echo from the shell\")'").ok().prints(&["from the shell"]);
    run("python3 -c 'import asyncio\nasync def f():\n    p = await asyncio.create_subprocess_exec(\"echo\", \"hello\", stdout=-1)\n    print(await p.communicate())\nasyncio.run(f())'")
        .ok()
        .prints(&["(b'hello\\n', None)"]);
    run("python3 -c 'import threading; threading.Thread(target=print, args=[5]).start()'").ok().prints(&["5\n"]);
    run("python3 -c 'import random; print(random.random())' > one; python3 -c 'import random; print(random.random())' > two; cmp one two")
        .exit(1);
    run("timeout 1 python3 -c 'while True: pass'").exit(124);
    run("python3 -c 'x = bytearray(600 << 20)'").exit(137).says(&["more memory than its 512 MiB"]);
    run("python3 -c 'def f(n): return f(n + 1)\nf(0)'").exit(1).says(&["RecursionError"]);
    run("python3 -c 'open(\"/usr/local/lib/python315.zip\", \"w\")'").exit(1);
    home.kiso(&["run", "$ python3 -c 'import numpy; print(numpy.arange(4).sum())'"]).ok().prints(&["6"]);
}

#[test]
#[ignore = "compiles for minutes"]
fn programs_do_what_they_do_on_the_host() {
    let Some(home) = home() else { return };
    // Two print something else in CPython 3.15 than in older versions: `str | None` for `Optional[str]`, and the position of JSON
    // errors.
    let different = different(home);
    let newer = ["p_enum_typing.py", "p_json_round.py"];
    let others: Vec<_> = different.iter().filter(|(name, _)| !newer.contains(&name.as_str())).collect();
    assert!(others.is_empty(), "{others:#?}");
}

/// Programs that use the libraries in the snapshot. All but the last ones have files beside them with the names of library
/// modules.
const LIBRARY_LINES: &[&str] = &[
    "python3 -c 'import sys, numpy; print([name in sys.modules for name in (\"numpy.linalg\", \"pandas\", \"scipy\", \"json\", \"__mp_main__\")])'",
    "python3 -c 'import sys; print(sorted(name for name in sys.modules if name.startswith((\"numpy\", \"scipy\", \"PIL\"))))'",
    "python3 -c 'import numpy; print(numpy.__spec__, numpy.__file__, numpy.linalg.__spec__.name)'",
    "python3 -c 'import warnings; print(len(warnings.filters)); import numpy; print(len(warnings.filters), warnings.filters[0][1])'",
    "python3 -c 'import pandas as p; p.DataFrame({\"a\": [1, 2]}).to_excel(\"a.xlsx\"); print(p.read_excel(\"a.xlsx\").a.sum())'",
    "python3 -c 'import decimal; print(decimal.Decimal(1) / 3, decimal.__name__)'; python3 -c 'import torch'",
    "python3 -c 'import scipy.stats as s; print(s.norm.cdf(1), s.ttest_ind([1, 2, 3], [2, 3, 5]).pvalue)'",
    "python3 -c 'from sklearn.ensemble import RandomForestClassifier as R; print(R(random_state=0).fit([[0], [1]], [0, 1]).predict([[1]]))'",
    "python3 -c 'import pickle, numpy, pandas; print(pickle.loads(pickle.dumps(pandas.Series(numpy.arange(3)))).sum())'",
    "python3 -c 'import statsmodels.api as sm; print(sm.add_constant([1, 2]))'; python3 -c 'import seaborn, sympy; print(sympy.sqrt(8))'",
    "MPLBACKEND=svg python3 -c 'import matplotlib.pyplot as p; p.plot([1, 2]); p.savefig(\"a\"); print(p.get_backend())'; ls a.*",
    "echo 'lines.linewidth: 7' > matplotlibrc; python3 -c 'import matplotlib as m; print(m.rcParams[\"lines.linewidth\"])'; rm matplotlibrc",
    "python3 -c 'import matplotlib; print(matplotlib.get_cachedir() == matplotlib.get_configdir())' 2> /dev/null",
    "python3 -c 'import os; os.environ[\"MPLCONFIGDIR\"] = \"/work/own\"; import matplotlib; print(matplotlib.get_configdir())'",
    "echo 'X = 1' > scipy.py; echo 'Y = 2' > six.py; python3 -c 'import scipy, six; print(scipy.X, six.Y)'; rm scipy.py six.py",
    "SKLEARN_WORKING_MEMORY=5 python3 -c 'import sklearn; print(sklearn.get_config()[\"working_memory\"])'",
    "SCIPY_ARRAY_API=1 python3 -c 'from scipy._lib._array_api import SCIPY_ARRAY_API; print(SCIPY_ARRAY_API)'",
];

#[test]
#[ignore = "compiles for minutes"]
fn what_is_kept_with_its_interpreter_is_as_if_it_were_imported() {
    let Some(home) = home() else { return };
    let different = different_when_started(home, "apart", LIBRARY_LINES);
    assert!(different.is_empty(), "{different}");
    let run = |line: &str| home.kiso(&["shell", "--session", "seeds", "-c", line]);
    for code in ["import numpy; print(numpy.random.rand())", "import scipy.stats as s; print(s.norm.rvs())"] {
        let two = run(&format!("for i in 1 2; do python3 -c '{code}'; done")).ok().stdout.clone();
        let (one, other) = two.trim().split_once('\n').unwrap();
        assert_ne!(one, other, "{code}");
    }
    // A folder at another place starts the interpreter normally, and its program is found.
    let folder = home
        .file("desk/module.py", "import numpy, sys\nprint(numpy.arange(3).sum(), sys.argv)\n")
        .parent()
        .unwrap()
        .to_owned();
    let line = "$ python3 module.py x";
    let there = ["run", "--session", "desk", "--dir", folder.to_str().unwrap(), "--at", "/desk", line];
    home.kiso(&there).ok().prints(&["3 ['module.py', 'x']"]);
    // By the package's name, and by the command that selects it.
    let info = home.kiso(&["skill", "info", "python-sci"]);
    info.ok().prints(&["commands: python3-sci, python3, python, python3.15\n"]);
    run("python3.15 -c 'import sys; print(sys.version_info[:2])'").ok().prints(&["(3, 15)"]);
}
