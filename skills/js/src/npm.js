// `npm` and `npx`: scripts of package.json, and packages of pure JavaScript from a registry that may be reached. No script of a package
// runs while it is installed.
"use strict";
const fs = require("fs"), path = require("path"), crypto = require("crypto"), os = require("os");
const { spawnSync } = require("child_process");
const VERSION = "10.9.0";
const MOST_PACKAGES = 1000, MOST_BYTES = 64 * 1024 * 1024;

class Failure extends Error {}
const say = (line) => console.log(line);
const warn = (line) => console.error(`npm warn ${line}`);
const readJson = (file) => {
  if (!fs.existsSync(file)) return undefined;
  try {
    return JSON.parse(fs.readFileSync(file, "utf8"));
  } catch (error) {
    throw new Failure(`${file}: ${error.message}`);
  }
};
const writeJson = (file, value) => fs.writeFileSync(file, JSON.stringify(value, null, 2) + "\n");

// Versions.

const parse = (text) => {
  const found = /^[v=\s]*(\d+)\.(\d+)\.(\d+)(?:-([0-9A-Za-z.-]+))?(?:\+[0-9A-Za-z.-]+)?$/.exec(text);
  return found && { numbers: found.slice(1, 4).map(Number), pre: found[4] ? found[4].split(".") : [], text };
};
const compareParts = (a, b) => {
  const [x, y] = [/^\d+$/.test(a), /^\d+$/.test(b)];
  if (x && y) return Number(a) - Number(b);
  return x !== y ? (x ? -1 : 1) : a < b ? -1 : a > b ? 1 : 0;
};
const compare = (a, b) => {
  for (let n = 0; n < 3; n++) if (a.numbers[n] !== b.numbers[n]) return a.numbers[n] - b.numbers[n];
  if (!a.pre.length || !b.pre.length) return b.pre.length - a.pre.length;
  for (let n = 0; n < Math.max(a.pre.length, b.pre.length); n++) {
    if (a.pre[n] === undefined || b.pre[n] === undefined) return a.pre[n] === undefined ? -1 : 1;
    const order = compareParts(a.pre[n], b.pre[n]);
    if (order) return order;
  }
  return 0;
};
const made = (numbers, pre = []) => ({ numbers, pre });
const above = (numbers, place) => made(numbers.map((number, n) => (n < place ? number : n === place ? number + 1 : 0)), ["0"]);
// One word of a range, as bounds: [operator, version].
const bounds = (word) => {
  const found = /^(>=|<=|>|<|=|\^|~>?)?\s*v?([0-9xX*]+)?(?:\.([0-9xX*]+))?(?:\.([0-9xX*]+))?(?:-([0-9A-Za-z.-]+))?(?:\+[0-9A-Za-z.-]+)?$/.exec(word);
  if (!found) return undefined;
  const given = [found[2], found[3], found[4]].map((part) => (part === undefined || /[xX*]/.test(part) ? undefined : Number(part)));
  const length = given.indexOf(undefined) < 0 ? 3 : given.indexOf(undefined);
  const numbers = given.map((part, n) => (n < length ? part : 0));
  const from = made(numbers, length === 3 && found[5] ? found[5].split(".") : []);
  const operator = found[1] || "";
  if (length === 0) return operator === "<" || operator === ">" ? [["<", made([0, 0, 0], ["0"])]] : [];
  if (operator === "^") {
    const first = numbers.findIndex((number) => number !== 0);
    return [[">=", from], ["<", above(numbers, first < 0 || first >= length ? length - 1 : first)]];
  }
  if (operator.startsWith("~")) return [[">=", from], ["<", above(numbers, Math.min(1, length - 1))]];
  if (length === 3) return [[operator || "=", from]];
  if (operator === ">") return [[">=", made(above(numbers, length - 1).numbers)]];
  if (operator === "<=") return [["<", above(numbers, length - 1)]];
  if (operator === ">=" || operator === "<") return [[operator, operator === "<" ? made(numbers, ["0"]) : from]];
  return [[">=", from], ["<", above(numbers, length - 1)]];
};
const rangeOf = (text) => {
  const ways = [];
  for (const way of text.split("||")) {
    const hyphen = /^\s*(\S+)\s+-\s+(\S+)\s*$/.exec(way);
    const words = hyphen ? [`>=${hyphen[1]}`, `<=${hyphen[2]}`] : way.trim().replace(/([<>=~^])\s+/g, "$1").split(/\s+/).filter(Boolean);
    const all = words.map(bounds);
    if (all.includes(undefined)) return undefined;
    ways.push(all.flat());
  }
  return ways;
};
const satisfies = (version, ways) =>
  ways.some((way) => {
    const fits = way.every(([operator, bound]) => {
      const order = compare(version, bound);
      return { ">=": order >= 0, ">": order > 0, "<": order < 0, "<=": order <= 0, "=": order === 0 }[operator];
    });
    // A version before a release is meant only where one of the same release is named.
    const named = ([, bound]) => bound.pre.length && bound.pre[0] !== "0" && String(bound.numbers) === String(version.numbers);
    return fits && (!version.pre.length || way.some(named));
  });

// The registry.

const settings = () => {
  const found = {};
  for (const file of [path.join(os.homedir(), ".npmrc"), path.resolve(".npmrc")]) {
    if (!fs.existsSync(file)) continue;
    for (const line of fs.readFileSync(file, "utf8").split("\n")) {
      const [, key, value] = /^\s*([^#;=\s][^=]*?)\s*=\s*(.*?)\s*$/.exec(line) || [];
      if (key) found[key] = value.replace(/\$\{(\w+)\}/g, (whole, name) => process.env[name] ?? whole);
    }
  }
  for (const [name, value] of Object.entries(process.env)) {
    const key = /^npm_config_(.+)$/i.exec(name);
    if (key) found[key[1].toLowerCase().replace(/_/g, "-")] = value;
  }
  return found;
};
const registryFor = (name, set) => {
  const scope = name.startsWith("@") ? set[`${name.split("/")[0]}:registry`] : undefined;
  return (scope || set.registry || "https://registry.npmjs.org/").replace(/\/*$/, "/");
};
const get = async (url, set, accept) => {
  const headers = { accept };
  const { host, pathname } = new URL(url);
  for (const [key, value] of Object.entries(set)) {
    const [, place] = /^\/\/(.+?)\/?:_authToken$/.exec(key) || [];
    if (place && `${host}${pathname}`.startsWith(`${place}/`)) headers.authorization = `Bearer ${value}`;
  }
  let answer;
  try {
    answer = await fetch(url, { headers });
  } catch (error) {
    throw new Failure(`${url}: ${(error.cause && error.cause.message) || error.message}`);
  }
  return answer;
};
const documents = new Map();
const documentOf = async (name, set) => {
  if (documents.has(name)) return documents.get(name);
  const url = registryFor(name, set) + name.replace("/", "%2f");
  const answer = await get(url, set, "application/vnd.npm.install-v1+json; q=1.0, application/json; q=0.8");
  if (answer.status === 404) throw new Failure(`404 Not Found - GET ${url}\nnpm error 404  '${name}' is not in this registry.`);
  if (!answer.ok) throw new Failure(`${answer.status} - GET ${url}`);
  const document = await answer.json();
  documents.set(name, document);
  return document;
};
// The manifest that a name and what is asked of its version lead to.
const manifestOf = async (name, asked, set) => {
  const alias = /^npm:(@?[^@]+)(?:@(.*))?$/.exec(asked);
  if (alias) return manifestOf(alias[1], alias[2] || "", set);
  if (/[:/]/.test(asked)) throw new Failure(`${name}@${asked}: packages are installed from a registry only`);
  const document = await documentOf(name, set);
  const versions = document.versions || {}, tags = document["dist-tags"] || {};
  const tag = asked === "" || asked === "*" ? "latest" : asked;
  if (tags[tag] && versions[tags[tag]]) return versions[tags[tag]];
  const range = rangeOf(asked);
  const fitting = range ? Object.keys(versions).map(parse).filter((version) => version && satisfies(version, range)) : [];
  // Those that are not deprecated, and what is installed by default, come first.
  const latest = fitting.find((version) => version.text === tags.latest);
  const good = fitting.filter((version) => !versions[version.text].deprecated);
  const best = latest || (good.length ? good : fitting).sort(compare).pop();
  if (!best) throw new Failure(`notarget No matching version found for ${name}@${asked}.`);
  return versions[best.text];
};

// Installing.

const nameOk = (name) => /^(@[a-z0-9~_-][a-z0-9._~-]*\/)?[a-z0-9~_-][a-z0-9._~-]*$/i.test(name);
const place = (parent, name) => path.join(parent, "node_modules", name);
const installedAt = (folder) => {
  const manifest = readJson(path.join(folder, "package.json"));
  return manifest && manifest.version ? manifest : undefined;
};
const checksum = (bytes, dist) => {
  const ways = String(dist.integrity || "").split(/\s+/).filter((way) => /^sha(512|384|256|1)-/.test(way)).sort();
  const way = ways.pop() || (dist.shasum && `sha1-${Buffer.from(dist.shasum, "hex").toString("base64")}`);
  if (!way) throw new Failure("the registry gives no checksum");
  const [algorithm, wanted] = [way.slice(0, way.indexOf("-")), way.slice(way.indexOf("-") + 1)];
  const found = crypto.createHash(algorithm).update(bytes).digest("base64");
  if (found !== wanted) throw new Failure(`EINTEGRITY ${way} integrity checksum failed when using ${algorithm}: wanted ${way} but got ${algorithm}-${found}. (${bytes.length} bytes)`);
};
const unpack = async (name, dist, folder, set) => {
  const url = new URL(dist.tarball, registryFor(name, set)).href;
  const answer = await get(url, set, "application/octet-stream");
  if (!answer.ok) throw new Failure(`${answer.status} - GET ${url}`);
  const bytes = Buffer.from(await answer.arrayBuffer());
  if (bytes.length > MOST_BYTES) throw new Failure(`${name}: its archive has ${bytes.length} bytes; the limit is ${MOST_BYTES}`);
  checksum(bytes, dist);
  fs.rmSync(folder, { recursive: true, force: true });
  fs.mkdirSync(folder, { recursive: true });
  const archive = `${folder}/.package.tgz`;
  fs.writeFileSync(archive, bytes);
  const done = spawnSync("tar", ["-xzf", archive, "-C", folder, "--strip-components=1", "--no-same-owner"], { encoding: "utf8" });
  fs.rmSync(archive, { force: true });
  if (done.status !== 0) throw new Failure(`${name}: its archive cannot be unpacked: ${done.stderr || done.error}`);
};
const linkCommands = (root, folder, manifest) => {
  const own = manifest.name.split("/").pop();
  const commands = typeof manifest.bin === "string" ? { [own]: manifest.bin } : manifest.bin || {};
  for (const [command, file] of Object.entries(commands)) {
    if (!/^[\w.-]+$/.test(command) || command.startsWith(".")) continue;
    const bin = path.join(root, "node_modules", ".bin");
    fs.mkdirSync(bin, { recursive: true });
    const target = path.resolve(folder, file);
    if (!target.startsWith(folder + "/")) continue;
    fs.writeFileSync(path.join(bin, command), `#!/bin/sh\nexec node ${quote(target)} "$@"\n`, { mode: 0o755 });
    fs.chmodSync(path.join(bin, command), 0o755);
  }
};
// Puts what is wanted, and what that needs, below a folder. Each as far up as nothing else of its name is.
const install = async (root, wanted, set, skipsOptional) => {
  const queue = wanted.map(([name, asked]) => ({ parent: root, name, asked, direct: true }));
  const added = [], placed = new Map();
  const present = (folder) => {
    if (!placed.has(folder)) placed.set(folder, installedAt(folder));
    return placed.get(folder);
  };
  const fits = (manifest, asked) => {
    const range = rangeOf(asked.replace(/^npm:@?[^@]+@?/, ""));
    const version = parse(manifest.version);
    return !range || (version !== null && satisfies(version, range));
  };
  for (let n = 0; n < queue.length; n++) {
    const { parent, name, asked, optional, direct } = queue[n];
    if (!nameOk(name)) throw new Failure(`EINVALIDPACKAGENAME Invalid package name "${name}"`);
    // Where it would be found from there.
    let at = parent, found;
    for (; !(found = present(place(at, name))) && at !== root; at = owner(at, root));
    if (found && fits(found, asked) && !(direct && asked !== "" && !rangeOf(asked))) {
      if (direct) added.push([name, found, false]);
      continue;
    }
    let manifest;
    try {
      manifest = await manifestOf(name, asked, set);
    } catch (error) {
      if (optional && error instanceof Failure) continue;
      throw error;
    }
    // What is made for one kind of machine is not for this one.
    if (optional && (manifest.os || manifest.cpu)) continue;
    const folder = direct || !present(place(root, name)) ? place(root, name) : place(parent, name);
    if (added.length >= MOST_PACKAGES) throw new Failure(`more than ${MOST_PACKAGES} packages would be installed`);
    if (manifest.deprecated) warn(`deprecated ${name}@${manifest.version}: ${manifest.deprecated}`);
    await unpack(name, manifest.dist, folder, set);
    if (manifest.hasInstallScript) warn(`${name}@${manifest.version} has a script that would run when it is installed; scripts of packages do not run here`);
    placed.set(folder, manifest);
    added.push([name, manifest, direct, true]);
    linkCommands(root, folder, manifest);
    const needs = { ...manifest.dependencies };
    for (const [peer, range] of Object.entries(manifest.peerDependencies || {})) {
      if (!(manifest.peerDependenciesMeta && manifest.peerDependenciesMeta[peer] && manifest.peerDependenciesMeta[peer].optional)) needs[peer] ??= range;
    }
    for (const [need, range] of Object.entries(needs)) {
      if (!(manifest.optionalDependencies && need in manifest.optionalDependencies)) queue.push({ parent: folder, name: need, asked: range });
    }
    if (skipsOptional) continue;
    for (const [need, range] of Object.entries(manifest.optionalDependencies || {})) queue.push({ parent: folder, name: need, asked: range, optional: true });
  }
  return added;
};
// The package that a package lies in.
const owner = (folder, root) => {
  const cut = folder.lastIndexOf("/node_modules/");
  const above = cut < 0 ? root : folder.slice(0, cut);
  return above.length < root.length ? root : above;
};
// Installs the packages of package-lock.json at their places. Those of the project itself, which lie elsewhere, are there.
const installLocked = async (root, lock, set, omitsDev) => {
  let count = 0;
  for (const [at, entry] of Object.entries(lock.packages || {})) {
    if (!/(^|\/)node_modules\//.test(at) || entry.link || (omitsDev && entry.dev)) continue;
    if ((entry.optional || entry.devOptional) && (entry.os || entry.cpu)) continue;
    const name = at.slice(at.lastIndexOf("node_modules/") + 13);
    if (at.split("/").includes("..") || !nameOk(name)) throw new Failure(`package-lock.json: \`${at}\` is not a place of a package`);
    const folder = path.join(root, at);
    const there = installedAt(folder);
    if (there && there.version === entry.version) continue;
    if (++count > MOST_PACKAGES) throw new Failure(`more than ${MOST_PACKAGES} packages would be installed`);
    const usual = entry.resolved && entry.resolved.startsWith("https://registry.npmjs.org/");
    const tarball = usual ? registryFor(name, set) + entry.resolved.slice(27) : entry.resolved;
    await unpack(name, { tarball, integrity: entry.integrity }, folder, set);
    linkCommands(root, folder, { name, bin: entry.bin });
  }
  return count;
};
const split = (word) => {
  const at = word.indexOf("@", 1);
  return at < 0 ? [word, ""] : [word.slice(0, at), word.slice(at + 1)];
};
const commandInstall = async (words, options, locked) => {
  const root = options.global ? os.homedir() : process.cwd();
  const set = settings();
  if (options.registry) set.registry = options.registry;
  const file = path.join(root, "package.json");
  const project = options.global ? undefined : readJson(file);
  const omitsDev = options.omit === "dev" || options.production || process.env.NODE_ENV === "production";
  let wanted = words.map(split);
  const lock = options.global || words.length ? undefined : readJson(path.join(root, "package-lock.json"));
  if (locked && !lock) throw new Failure("The `npm ci` command can only install with an existing package-lock.json");
  if (locked && !lock.packages) throw new Failure("package-lock.json is of lockfileVersion 1, which is not read here; `npm install` reads package.json instead");
  if (locked) fs.rmSync(path.join(root, "node_modules"), { recursive: true, force: true });
  let locks = 0;
  if (lock && lock.packages) {
    locks = await installLocked(root, lock, set, omitsDev);
    if (locked || !project) return say(`\nadded ${locks} packages`);
  }
  if (!words.length) {
    if (!project) throw new Failure(`enoent Could not read package.json: ${file}`);
    wanted = Object.entries({ ...project.dependencies, ...(omitsDev ? {} : project.devDependencies) });
  }
  const added = await install(root, wanted, set, options.omit === "optional");
  if (words.length && !options.global && options.save !== false) {
    const into = project || {};
    const [key, other] = options["save-dev"] ? ["devDependencies", "dependencies"] : ["dependencies", "devDependencies"];
    for (const [name, asked] of wanted) {
      const [, manifest] = added.find(([known]) => known === name) || [];
      const isNamed = [key, other].some((one) => into[one] && name in into[one]);
      if (!manifest || (isNamed && asked === "" && !options["save-dev"])) continue;
      if (into[other]) delete into[other][name];
      into[key] = { ...into[key], [name]: asked !== "" && rangeOf(asked) && !parse(asked) ? asked : (options["save-exact"] ? "" : "^") + manifest.version };
    }
    writeJson(file, into);
  }
  const count = locks + added.filter(([, , , isNew]) => isNew).length;
  say(count ? `\nadded ${count} package${count === 1 ? "" : "s"}` : "\nup to date");
};

// Scripts.

const quote = (word) => (/^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replace(/'/g, "'\\''")}'`);
const projectAbove = () => {
  for (let folder = process.cwd(); ; folder = path.dirname(folder)) {
    const manifest = readJson(path.join(folder, "package.json"));
    if (manifest) return [folder, manifest];
    if (folder === "/") throw new Failure(`enoent Could not read package.json: ${path.resolve("package.json")}`);
  }
};
const binPath = (folder) => {
  const found = [];
  for (let at = folder; ; at = path.dirname(at)) {
    found.push(path.join(at, "node_modules", ".bin"));
    if (at === "/") return [...found, process.env.PATH || "/usr/bin:/bin"].join(":");
  }
};
const commandRun = (name, words, options) => {
  const [folder, manifest] = projectAbove();
  const scripts = { ...manifest.scripts };
  if (name === undefined) {
    for (const [script, line] of Object.entries(scripts)) say(`  ${script}\n    ${line}`);
    return 0;
  }
  if (scripts.start === undefined && fs.existsSync(path.join(folder, "server.js"))) scripts.start = "node server.js";
  if (scripts[name] === undefined) {
    if (options["if-present"]) return 0;
    throw new Failure(`Missing script: "${name}"\nnpm error\nnpm error To see a list of scripts, run:\nnpm error   npm run`);
  }
  for (const script of [`pre${name}`, name, `post${name}`]) {
    if (scripts[script] === undefined) continue;
    const line = script === name ? [scripts[script], ...words.map(quote)].join(" ") : scripts[script];
    // What the script prints comes behind it.
    const title = [[manifest.name, manifest.version].filter(Boolean).join("@"), script].filter(Boolean).join(" ");
    const head = options.silent ? "" : `printf '%s\\n' '' ${quote(`> ${title}`)} ${quote(`> ${line}`)} ''\n`;
    const env = { ...process.env, PATH: binPath(folder), INIT_CWD: process.cwd(), npm_lifecycle_event: script, npm_package_name: manifest.name, npm_package_version: manifest.version, npm_package_json: path.join(folder, "package.json"), npm_execpath: "npm" };
    const done = spawnSync("sh", ["-c", head + line], { cwd: folder, env, stdio: "inherit" });
    if (done.error) throw new Failure(done.error.message);
    if (done.status !== 0) return done.status === null ? 137 : done.status;
  }
  return 0;
};
const commandExec = (words) => {
  const [command, ...rest] = words;
  if (command === undefined) throw new Failure("a command is needed");
  const found = binPath(process.cwd()).split(":").map((folder) => path.join(folder, command)).find((file) => file.includes("/node_modules/.bin/") && fs.existsSync(file));
  const argv = found ? ["sh", found, ...rest] : [split(command)[0], ...rest];
  const done = spawnSync(argv[0], argv.slice(1), { stdio: "inherit" });
  if (done.error) throw new Failure(`could not determine executable to run: ${command} is neither a command nor one of a package in node_modules; \`npm install\` installs packages of pure JavaScript`);
  return done.status === null ? 137 : done.status;
};

// The rest.

const commandList = (options) => {
  const root = options.global ? os.homedir() : process.cwd();
  const manifest = options.global ? {} : readJson(path.join(root, "package.json")) || {};
  say(`${[manifest.name, manifest.version].filter(Boolean).join("@")}${manifest.name ? " " : ""}${root}`);
  const base = path.join(root, "node_modules");
  const folders = fs.existsSync(base) ? fs.readdirSync(base).flatMap((name) => (name.startsWith("@") ? fs.readdirSync(path.join(base, name)).map((inner) => `${name}/${inner}`) : name.startsWith(".") ? [] : [name])) : [];
  const direct = { ...manifest.dependencies, ...manifest.devDependencies };
  const shown = folders.filter((name) => options.all || options.global || name in direct).sort().map((name) => [name, installedAt(path.join(base, name))]).filter(([, found]) => found);
  const missing = Object.keys(direct).filter((name) => !folders.includes(name));
  shown.forEach(([name, found], n) => say(`${n + 1 === shown.length && !missing.length ? "└──" : "├──"} ${name}@${found.version}`));
  missing.forEach((name) => say(`├── UNMET DEPENDENCY ${name}@${direct[name]}`));
  if (!shown.length && !missing.length) say("└── (empty)");
  return missing.length ? 1 : 0;
};
const commandRemove = (words, options) => {
  const root = options.global ? os.homedir() : process.cwd();
  const file = path.join(root, "package.json");
  const manifest = readJson(file);
  let count = 0;
  for (const name of words) {
    if (!nameOk(name)) throw new Failure(`EINVALIDPACKAGENAME Invalid package name "${name}"`);
    if (fs.existsSync(place(root, name))) count++;
    fs.rmSync(place(root, name), { recursive: true, force: true });
    for (const key of ["dependencies", "devDependencies", "optionalDependencies"]) if (manifest && manifest[key]) delete manifest[key][name];
  }
  if (manifest && !options.global) writeJson(file, manifest);
  say(count ? `\nremoved ${count} package${count === 1 ? "" : "s"}` : "\nup to date");
};
const commandInit = () => {
  const file = path.resolve("package.json");
  if (!fs.existsSync(file)) {
    const name = path.basename(process.cwd()).toLowerCase().replace(/[^a-z0-9._~-]+/g, "-");
    writeJson(file, { name, version: "1.0.0", description: "", main: "index.js", scripts: { test: 'echo "Error: no test specified" && exit 1' }, keywords: [], author: "", license: "ISC" });
  }
  say(`Wrote to ${file}:\n\n${fs.readFileSync(file, "utf8")}`);
};
const commandView = async (words, options) => {
  const [name, asked] = split(words[0] || "");
  if (!nameOk(name)) throw new Failure("a package is needed");
  const set = settings();
  if (options.registry) set.registry = options.registry;
  const manifest = await manifestOf(name, asked, set);
  const document = await documentOf(name, set);
  const all = { ...manifest, versions: Object.keys(document.versions || {}), "dist-tags": document["dist-tags"] };
  const value = words[1] ? words[1].split(".").reduce((value, key) => (value === undefined || value === null ? undefined : value[key]), all) : undefined;
  if (words[1]) return value === undefined ? undefined : say(typeof value === "string" && !options.json ? value : JSON.stringify(value, null, 2));
  say(`${manifest.name}@${manifest.version}${manifest.license ? ` | ${manifest.license}` : ""} | deps: ${Object.keys(manifest.dependencies || {}).length} | versions: ${all.versions.length}\n${manifest.description || ""}\n\ndist\n.tarball: ${manifest.dist.tarball}\n.integrity: ${manifest.dist.integrity || manifest.dist.shasum}`);
};

const USAGE = `Usage: npm <command>

  npm install             packages of package.json, or of package-lock.json
  npm install PACKAGE...  packages of pure JavaScript, with what they need (-D, -E, -g, --no-save, --omit=dev, --registry URL)
  npm ci                  those of package-lock.json
  npm uninstall PACKAGE   removes them
  npm test, npm start     scripts of package.json
  npm run SCRIPT [-- ARG...]
  npx COMMAND [ARG...]    a command of a package in node_modules
  npm ls, npm view PACKAGE [FIELD], npm init -y, npm root, npm pkg get NAME, npm config get NAME
  --prefix DIR            runs the command in a directory

Scripts of packages do not run when they are installed, and nothing is built. \`kiso network allow registry.npmjs.org\` allows the registry.`;
const FLAGS = { D: "save-dev", E: "save-exact", g: "global", S: "save", s: "silent", y: "yes", a: "all", f: "force", P: "save-prod" };
const WITH_VALUE = ["omit", "include", "registry", "prefix", "loglevel", "depth", "tag", "workspace", "package", "call"];

const read = (all) => {
  const words = [], options = {};
  for (let n = 0; n < all.length; n++) {
    const word = all[n];
    if (word === "--") return [words, options, all.slice(n + 1)];
    const long = /^--(no-)?([a-z-]+)(?:=(.*))?$/.exec(word);
    if (long) options[long[2]] = long[1] ? false : long[3] !== undefined ? long[3] : WITH_VALUE.includes(long[2]) ? all[++n] : true;
    else if (word === "-C" || word === "-w") options[word === "-C" ? "prefix" : "workspace"] = all[++n];
    else if (/^-[A-Za-z]+$/.test(word)) for (const letter of word.slice(1)) options[FLAGS[letter] || letter] = true;
    else words.push(word);
  }
  return [words, options, []];
};

const main = async () => {
  const [name, ...given] = process.argv.slice(1);
  if (name === "npx") {
    const rest = [...given];
    while (rest.length && rest[0].startsWith("-")) rest.shift();
    return commandExec(rest);
  }
  const [[command, ...words], options, behind] = read(given);
  if (options.version || options.v) return say(VERSION);
  if (options.help || options.h) return say(USAGE);
  if (options.workspace !== undefined || options.workspaces) throw new Failure("workspaces are not available here; `--prefix DIR` runs a command in the directory of one");
  if (typeof options.prefix === "string") {
    if (options.global) throw new Failure("--prefix and -g do not go together here");
    if (!fs.existsSync(options.prefix)) throw new Failure(`enoent ${options.prefix}: there is no such directory`);
    process.chdir(options.prefix);
  }
  switch (command) {
    case undefined: case "help": say(USAGE); return command === undefined ? 1 : 0;
    case "install": case "i": case "add": case "in": return commandInstall(words, options, false);
    case "ci": case "clean-install": return commandInstall([], options, true);
    case "uninstall": case "remove": case "rm": case "un": case "r": return commandRemove(words, options);
    case "run": case "run-script": return commandRun(words[0], [...words.slice(1), ...behind], options);
    case "test": case "t": case "tst": return commandRun("test", [...words, ...behind], options);
    case "start": case "stop": case "restart": return commandRun(command, [...words, ...behind], options);
    case "exec": case "x": return commandExec([...words, ...behind]);
    case "ls": case "list": case "la": case "ll": return commandList(options);
    case "view": case "info": case "show": return commandView(words, options);
    case "init": case "create":
      if (words.length) throw new Failure(`${command} ${words[0]}: programs that make projects do not run here`);
      return commandInit();
    case "root": return say(path.join(options.global ? os.homedir() : process.cwd(), "node_modules"));
    case "prefix": return say(options.global ? os.homedir() : process.cwd());
    case "config": case "c": case "get":
      if (command !== "get" && words.shift() !== "get") throw new Failure("only `npm config get NAME` is available here; a setting is a line NAME=VALUE in .npmrc");
      return say(settings()[words[0]] ?? "undefined");
    case "pkg":
      if (words[0] !== "get") throw new Failure("only `npm pkg get NAME` is available here; change package.json instead");
      return say(JSON.stringify((projectAbove()[1])[words[1]] ?? {}, null, 2));
    case "audit": case "fund": case "cache": case "dedupe": case "update": return say(`npm ${command} has no effect here`);
    default: throw new Failure(`Unknown command: "${command}"\n\nTo see a list of supported npm commands, run:\n  npm help`);
  }
};
main().then(
  (code) => { process.exitCode = code || 0; },
  (error) => {
    if (!(error instanceof Failure)) throw error;
    console.error(`npm error ${error.message}`);
    process.exitCode = 1;
  },
);
