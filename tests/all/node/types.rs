//! TypeScript in `node`: types are removed, and lines and columns stay the same.

use super::{home, shell};

#[test]
fn types_are_left_out() {
    let home = home(&[
        (
            "main.ts",
            "import { type Shape, area } from './shapes.ts';\n\
             import type { Nothing } from './nowhere.ts';\n\
             interface Named<T> { name: string; value?: T }\n\
             type Pair<A, B = A> = [A, B];\n\
             declare const missing: Nothing;\n\
             const shape: Shape = { kind: 'square', side: 3 };\n\
             function first<T extends unknown[]>(this: void, list: T, otherwise?: T[0]): T[0] { return list[0] ?? otherwise! }\n\
             abstract class Base<T> { protected abstract id(): T; static count: number = 0; constructor(value: T) { this.value = value }\n\
               private readonly value!: T; get shown(): string { return `${this.id()}:${this.value as unknown as string}` } }\n\
             class Item extends Base<number> implements Named<number> { name: string = 'item'; override id() { return 7 } }\n\
             const wait = async <T,>(value: T): Promise<T> => value satisfies T\n\
             const pair: Pair<number, string> = [1, 'two'];\n\
             console.log(area(shape), first([5]), new Item(4).shown, await wait<string>('done'), pair, process.argv[2]);\n\
             try { throw new Error('x') } catch (error: unknown) { console.log((error as Error).stack!.split('\\n')[1].trim()) }\n",
        ),
        (
            "shapes.ts",
            "export type Shape = { kind: string, side: number };\nexport const area = (shape: Shape): number => shape.side ** 2;",
        ),
        (
            "old.cts",
            "const { area }: { area: Function } = require('./plain.ts'); const fs = require('fs') as any;\nmodule.exports = area({ side: 2 } as any); console.log(module.exports, typeof fs.readFileSync)",
        ),
        ("plain.ts", "exports.area = (shape: { side: number }): number => shape.side ** 2"),
        (
            "new.mts",
            "import old from './old.cts';\nexport {}; let n: number = old; console.log(n + 1, import.meta.filename)",
        ),
        (
            "thrown.ts",
            "type A = {\n  x: number\n};\nfunction f(a: A): never {\n  const y: string = 'é'; throw new RangeError(y)\n}\nf({ x: 1 } as A)",
        ),
        ("enum.ts", "let a: number = 1;\nexport enum Color { Red }"),
        ("property.ts", "class A { constructor(private x: number) {} }"),
        ("broken.ts", "let a: number = 1;\nlet b: = 2"),
        ("hint.ts", "import { area } from './shapes.js'"),
        ("view.tsx", "export const a = 1"),
        ("node_modules/typed/package.json", "{\"main\": \"index.ts\"}"),
        ("node_modules/typed/index.ts", "module.exports = 1"),
    ]);
    let ran = shell(&home, "node main.ts word");
    ran.ok().prints(&["9 5 7:4 done [ 1, 'two' ] word\n", "(/work/main.ts:14:13)"]);
    shell(&home, "node old.cts && node new.mts").ok().prints(&["4 function\n", "5 /work/new.mts\n"]);
    shell(&home, "node thrown.ts").exit(1).says(&[
        "Uncaught RangeError: é",
        "at f (/work/thrown.ts:5:",
        "at <anonymous> (/work/thrown.ts:7:2)",
    ]);
    for (file, code, words) in [
        (
            "enum.ts",
            "ERR_UNSUPPORTED_TYPESCRIPT_SYNTAX",
            "TypeScript enum is not supported in strip-only mode (/work/enum.ts:2:8)",
        ),
        (
            "property.ts",
            "ERR_UNSUPPORTED_TYPESCRIPT_SYNTAX",
            "TypeScript parameter property is not supported in strip-only mode (/work/property.ts:1:23)",
        ),
        ("broken.ts", "ERR_INVALID_TYPESCRIPT_SYNTAX", "(/work/broken.ts:2:8)"),
        ("hint.ts", "ERR_MODULE_NOT_FOUND", "the whole name is needed, such as 'shapes.ts'"),
        ("view.tsx", "ERR_UNKNOWN_FILE_EXTENSION", "Unknown file extension \".tsx\" for /work/view.tsx"),
    ] {
        shell(&home, &format!("node {file}")).exit(1).says(&[code, words]);
    }
    shell(&home, "node -e \"require('typed')\"").exit(1).says(&["ERR_UNSUPPORTED_NODE_MODULES_TYPE_STRIPPING"]);
    let code = "const a: number = 1; console.log(a as any, typeof require)";
    shell(&home, &format!("node --experimental-strip-types --input-type=commonjs-typescript -e '{code}'"))
        .ok()
        .prints(&["1 function"]);
    shell(&home, &format!("echo '{code}' | node --input-type module-typescript")).ok().prints(&["1 undefined"]);
    shell(&home, &format!("node -e '{code}'")).exit(1).says(&["SyntaxError"]);
}
