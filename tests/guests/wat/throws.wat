;; Throws an exception that nothing catches. A core module for WASI preview 1.
(module
  (memory (export "memory") 1)
  (tag $exception (param i32))
  (func (export "_start") (throw $exception (i32.const 7))))
