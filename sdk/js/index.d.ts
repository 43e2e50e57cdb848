/** What a kiso skill in JavaScript or TypeScript works with. */

/** One call, as `wit/skill.wit` describes it. */
export interface Call {
  /** Name of the tool that is called; the skill's name where it has one tool. */
  tool: string;
  /** The arguments as JSON, checked against kiso.toml, with defaults filled in. */
  args: string;
  session: string;
  /** BCP 47 language tag of the user, such as "en". */
  locale: string;
}

/** A file under /work that the call made and that the user should be told about. */
export interface File {
  path: string;
  mediaType?: string;
  title?: string;
}

export interface Reply {
  text: string;
  data?: string;
  files: File[];
}

/** What the module exports: `export const skill = defineSkill((args, call) => reply("…"))`. */
export function defineSkill<Args = Record<string, unknown>>(run: (args: Args, call: Call) => Reply): { run(call: Call): Reply };

/** A reply. `data` is the same for programs: anything that JSON can hold. A file may be given by its path alone. */
export function reply(text: string, more?: { data?: unknown; files?: (string | File)[] }): Reply;

/** Throw it for what the user should read. Codes are short words with dashes; `retryable` says that the same call may work later. */
export class Failure extends Error {
  constructor(code: string, message: string, more?: { retryable?: boolean; cause?: unknown });
}

/** Lines for the run's trace; `console.log` writes "info". */
export const log: Record<"error" | "warn" | "info" | "debug", (message: string) => void>;

/** How far the call has come: a share from 0 to 1, or undefined where that is not known, and a few words. */
export function progress(share: number | undefined, note?: string): void;

/** A secret that kiso.toml names and that was granted. */
export function secret(name: string): string;

/** Publishes a file under /work and returns its link. */
export function publish(path: string, title?: string): string;

/** Small texts that outlive the call, for this session and skill. */
export const kv: {
  get(key: string): string | undefined;
  set(key: string, text: string): void;
  delete(key: string): boolean;
  keys(prefix?: string): string[];
};

/** Files of the workspace. Paths are under /work, with or without that in front. What goes wrong is thrown as a `Failure`. */
export const files: {
  readText(path: string): string;
  readBytes(path: string): Uint8Array;
  /** Directories on the way are made. */
  writeText(path: string, text: string): void;
  writeBytes(path: string, bytes: Uint8Array): void;
  /** The entries of a directory, sorted by name; of /work without a path. */
  list(path?: string): { name: string; isDirectory: boolean }[];
  exists(path: string): boolean;
  makeDirectory(path: string): void;
  /** Removes a file. */
  remove(path: string): void;
};
