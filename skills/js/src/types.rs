//! TypeScript without its types: they become spaces, so that every line and column keeps its place. As in Node, syntax that is more than
//! a type (enums, namespaces, parameter properties) is refused.

mod eraser;
mod text;

use oxc_allocator::Allocator;
use oxc_ast_visit::Visit;
use oxc_parser::{ParseOptions, Parser};
use oxc_span::SourceType;

use self::eraser::Eraser;
use self::text::Text;

/// Why there is no JavaScript in a source.
#[derive(Debug, PartialEq, Eq)]
pub struct Failure {
    /// Node's code.
    pub code: &'static str,
    pub message: String,
    /// The byte that the message is about.
    pub at: usize,
}

/// The JavaScript of a source. A module is one for `import`; without a word on that, its syntax decides.
pub fn erase(source: &str, is_module: Option<bool>) -> Result<String, Failure> {
    let kind = SourceType::ts();
    let kind = match is_module {
        Some(true) => kind.with_module(true),
        Some(false) => kind.with_commonjs(true),
        None => kind.with_unambiguous(true),
    };
    let allocator = Allocator::default();
    let options = ParseOptions { allow_return_outside_function: true, ..ParseOptions::default() };
    let parsed = Parser::new(&allocator, source, kind).with_options(options).parse();
    // The engine reports every other error when it parses the JavaScript.
    if parsed.panicked {
        let diagnostic = parsed.diagnostics.iter().next();
        let at = diagnostic.and_then(|diagnostic| diagnostic.labels.first()).map_or(0, |label| label.offset());
        let message = diagnostic.map_or_else(|| "Unexpected token".to_owned(), |found| found.message.to_string());
        return Err(Failure { code: "ERR_INVALID_TYPESCRIPT_SYNTAX", message, at: at as usize });
    }
    let mut eraser = Eraser::new(Text::new(source));
    eraser.visit_program(&parsed.program);
    eraser.finish()
}

/// The line and the column of a byte, from 1.
pub fn place(source: &str, at: usize) -> (usize, usize) {
    let before = &source[..source.floor_char_boundary(at)];
    let line = before.rfind('\n').map_or(0, |end| end + 1);
    (before.matches('\n').count() + 1, before[line..].encode_utf16().count() + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// With runs of spaces as one.
    fn squeezed(text: &str) -> String {
        let lines = text.lines().map(|line| {
            let words = line.split(' ').filter(|word| !word.is_empty());
            words.collect::<Vec<_>>().join(" ")
        });
        lines.collect::<Vec<_>>().join("\n")
    }

    /// The expected text may have fewer spaces in a row; each line must keep its number of UTF-16 units.
    #[track_caller]
    fn same(source: &str, expected: &str) {
        let erased = erase(source, None).expect(source);
        assert_eq!(squeezed(&erased), squeezed(expected), "{source}");
        let units = |text: &str| text.split('\n').map(|line| line.encode_utf16().count()).collect::<Vec<_>>();
        assert_eq!(units(&erased), units(source), "{source}\n{erased}");
    }

    #[test]
    fn types_become_spaces() {
        same("let x: number = 1;", "let x         = 1;");
        same("function f<T>(a: T, b?: T, ...c: T[]): void {}", "function f   (a   , b    , ...c     )       {}");
        same("const f = <T,>(x: T) => x as unknown as T;", "const f =     (x   ) => x                ;");
        same("x!.y!(); new A<B>(); f<C>`t`; (g<D>)", "x .y (); new A   (); f   `t`; (g   )");
        same("try {} catch (e: unknown) {}", "try {} catch (e         ) {}");
        same("let v!: string;", "let v         ;");
        same("for (const a of b as C[]) d satisfies E;", "for (const a of b       ) d            ;");
        same("let a: \"é\u{1d4b3}\" = 1", "let a         = 1");
        same(
            "function g(this: A, b: B) {} function h(this: A) {}",
            "function g(         b   ) {} function h(       ) {}",
        );
        same("function i(this /* , */ : A /* , */ , b) {}", "function i(                            b) {}");
    }

    #[test]
    fn declarations_go() {
        same("interface A { x: 1 }\nb", ";                   \nb");
        same("type A = {\n  x: 1;\n};\nb", ";         \n       \n  \nb");
        same(
            "declare const a: 1; declare function f(): void; declare class C {} b",
            ";                   ;                           ;                  b",
        );
        same(
            "declare enum E { A } declare global { var x: 1 } declare module 'm' {} b",
            ";                    ;                           ;                     b",
        );
        same(
            "namespace N { export type A = 1; interface B {} } b",
            ";                                                 b",
        );
        same(
            "function f(a: string): void;\nfunction f(a: any) {}",
            ";                           \nfunction f(a     ) {}",
        );
        same("export default interface A {}", ";                            ");
        same(
            "abstract class A<T> extends B<T> implements C, D<E> {}",
            "         class A    extends B                      {}",
        );
        same("export default abstract class {}", "export default          class {}");
        same("export abstract class A {}", "export          class A {}");
    }

    #[test]
    fn members_of_classes_lose_their_types() {
        same(
            "class A { private x: number = 1; static readonly y?: string; declare z: 1; abstract w: 2 }",
            "class A { ;       x         = 1; static          y         ; ;            ;           }",
        );
        same(
            "class A { public async *f?(): T { } [k: string]: any; g(a: 1): void; g(a) {} public() {} readonly = 1 }",
            "class A { ;      async *f ()    { } ;                 ;              g(a) {} public() {} readonly = 1 }",
        );
        same("class A { x = 1\n public [y] = 2 }", "class A { x = 1\n ;      [y] = 2 }");
        same("class A { constructor(a: 1); constructor(a?: 1) {} }", "class A { ; constructor(a ) {} }");
        same("class A { x: number\n [y] = 2 }", "class A { x       ;\n [y] = 2 }");
        same(
            "class A { override set x(v: 1) {} protected static #p?: 1 }",
            "class A { ;        set x(v   ) {} ;         static #p ; }",
        );
    }

    #[test]
    fn imports_and_exports_of_types_go() {
        same(
            "import type { A } from 'a';\nimport { type B, c } from 'b';",
            ";                          \nimport {         c } from 'b';",
        );
        same("import { type A } from 'a'", "import {        } from 'a'");
        same("import d, { e, type F } from 'a'", "import d, { e,        } from 'a'");
        same(
            "export type { A }; export { type B, c }; export type * from 'x'",
            ";                 export {         c }; ;                      ",
        );
        same(
            "export type A = 1; export interface B {} export declare const c: 1",
            ";                  ;                     ;                        ",
        );
        same(
            "import type X = require('x'); export as namespace Y;",
            ";                             ;                      ",
        );
    }

    /// A type between two statements, or on its own line, was part of the syntax.
    #[test]
    fn statements_do_not_run_together() {
        same("let x = 1\ntype A = string\n(foo)()", "let x = 1\n;              \n(foo)()");
        same("let y = x as any\n(foo)", "let y = x      ;\n(foo)");
        same("let z: number\n[a] = b", "let z       ;\n[a] = b");
        same("a!\n;[b]", "a \n;[b]");
        same("const f = (a\n): Promise<\nx> => 1", "const f = (a\n           \n ) => 1");
        same("const f = async <\nT\n>(x: T) => x", "const f = async (\n \n  x   ) => x");
        same("function f() { return <\nT,>(x: T) => x }", "function f() { return (\n    x   ) => x }");
        same("if (a) b as any\nelse c", "if (a) b      ;\nelse c");
        same("// x\nlet a /* : */ : /* = */ B = 1 // C", "// x\nlet a /* : */             = 1 // C");
    }

    #[test]
    fn syntax_that_is_more_than_a_type_is_refused() {
        let refused = |source: &str| erase(source, None).map_err(|failure| (failure.code, failure.message, failure.at));
        for (source, words, at) in [
            ("let a; enum A {}", "TypeScript enum is not supported in strip-only mode", 7),
            ("const enum A {}", "TypeScript enum is not supported in strip-only mode", 0),
            ("export enum A {}", "TypeScript enum is not supported in strip-only mode", 7),
            (
                "namespace N { export const a = 1 }",
                "TypeScript namespace declaration is not supported in strip-only mode",
                0,
            ),
            (
                "class A { constructor(public x: 1) {} }",
                "TypeScript parameter property is not supported in strip-only mode",
                22,
            ),
            ("export = 1", "TypeScript export assignment is not supported in strip-only mode", 0),
            ("import a = require('x')", "TypeScript import equals declaration is not supported in strip-only mode", 0),
        ] {
            assert_eq!(refused(source), Err(("ERR_UNSUPPORTED_TYPESCRIPT_SYNTAX", words.to_owned(), at)), "{source}");
        }
        assert!(refused("let x = <any>y").unwrap_err().1.contains("use the 'as' syntax"));
        assert_eq!(refused("let x: = 1").unwrap_err().0, "ERR_INVALID_TYPESCRIPT_SYNTAX");
        assert_eq!(place("a\né𝒳b", "a\né𝒳".len()), (2, 4));
    }
}
