;; A core module without WASI and without `_start`: a library, not a program. There is nothing to run.
(module (func (export "add") (param i32 i32) (result i32) (i32.add (local.get 0) (local.get 1))))
