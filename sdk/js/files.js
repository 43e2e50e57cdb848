// Files of the workspace. Paths are under /work, with or without that in front.

import { getDirectories } from "wasi:filesystem/preopens@0.2.12";
import { Failure } from "./failure.js";

// Bytes of one call of the host.
const CHUNK = 1 << 20;

const FOLLOW = { symlinkFollow: true };

export function readBytes(path) {
  const file = opened(path, {}, { read: true });
  const parts = [];
  let length = 0;
  for (;;) {
    const [bytes, ended] = told(path, () => file.read(CHUNK, length));
    parts.push(bytes);
    length += bytes.length;
    if (ended || bytes.length === 0) break;
  }
  const whole = new Uint8Array(length);
  let at = 0;
  for (const part of parts) {
    whole.set(part, at);
    at += part.length;
  }
  return whole;
}

export function readText(path) {
  const bytes = readBytes(path);
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(bytes);
  } catch {
    throw new Failure("bad-file", `${path}: is not UTF-8 text`);
  }
}

export function writeBytes(path, bytes) {
  makeDirectory(directoryOf(path));
  const file = opened(path, { create: true, truncate: true }, { write: true });
  for (let at = 0; at < bytes.length; ) {
    const written = told(path, () => file.write(bytes.slice(at, at + CHUNK), at));
    if (written === 0) throw new Failure("failed", `${path}: nothing more can be written`);
    at += written;
  }
}

export function writeText(path, text) {
  writeBytes(path, new TextEncoder().encode(text));
}

export function list(path = ".") {
  const inside = below(path);
  const directory = inside === "." ? workspace(path) : opened(path, { directory: true }, { read: true });
  const stream = told(path, () => directory.readDirectory());
  const entries = [];
  for (;;) {
    const entry = told(path, () => stream.readDirectoryEntry());
    if (entry == null) break;
    entries.push({ name: entry.name, isDirectory: kind(entry.type) === "directory" });
  }
  return entries.sort((a, b) => (a.name < b.name ? -1 : a.name > b.name ? 1 : 0));
}

export function exists(path) {
  try {
    workspace(path).statAt(FOLLOW, below(path));
    return true;
  } catch (error) {
    if (["no-entry", "not-directory"].includes(error?.payload)) return false;
    throw failure(path, error);
  }
}

export function makeDirectory(path) {
  const parts = below(path).split("/");
  parts.forEach((_, depth) => {
    const part = parts.slice(0, depth + 1).join("/");
    if (part !== "." && !exists(part)) told(part, () => workspace(path).createDirectoryAt(part));
  });
}

export function remove(path) {
  told(path, () => workspace(path).unlinkFileAt(below(path)));
}

function opened(path, how, rights) {
  return told(path, () => workspace(path).openAt(FOLLOW, below(path), how, rights));
}

function workspace(path) {
  const found = getDirectories().find(([, name]) => name === "/work");
  if (found === undefined) throw new Failure("denied", `${path}: the skill has no workspace; kiso.toml asks for it with workspace = "read" or "write"`);
  return found[0];
}

// The path from /work on.
function below(path) {
  const parts = [];
  for (const part of String(path).replace(/^\/work(?=\/|$)/, "").split("/")) {
    if (part === "..") parts.pop();
    else if (part !== "" && part !== ".") parts.push(part);
  }
  return parts.join("/") || ".";
}

function directoryOf(path) {
  return below(path).split("/").slice(0, -1).join("/") || ".";
}

// The tag of a variant without a value, in either form that toolchains give it.
function kind(type) {
  return typeof type === "string" ? type : type?.tag;
}

function told(path, call) {
  try {
    return call();
  } catch (error) {
    throw failure(path, error);
  }
}

const SAID = {
  "no-entry": ["not-found", "there is no such file"],
  "is-directory": ["bad-file", "is a directory"],
  "not-directory": ["bad-file", "is not a directory"],
  "read-only": ["denied", "the skill may read files, but not write them"],
  "not-permitted": ["denied", "is not permitted"],
  access: ["denied", "is not permitted"],
  exist: ["failed", "exists already"],
  "not-empty": ["failed", "the directory is not empty"],
};

function failure(path, error) {
  if (typeof error?.payload !== "string") return error;
  const [code, message] = SAID[error.payload] ?? ["failed", error.payload];
  return new Failure(code, `${path}: ${message}`);
}
