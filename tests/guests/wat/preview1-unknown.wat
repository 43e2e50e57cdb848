;; A core module with an import that is neither WASI nor known. `kiso skill add` must refuse it and name the import.
(module
  (import "env" "emscripten_resize_heap" (func (param i32) (result i32)))
  (import "wasi_snapshot_preview1" "sock_connect" (func (param i32 i32 i32) (result i32)))
  (memory (export "memory") 1)
  (func (export "_start"))
)
