;; Built for a candidate of WASI 0.3, which is compatible with nothing.
(component
  (import "wasi:cli/environment@0.3.0-rc-2025-09-16" (instance))
  (core module $m (func (export "run")))
  (core instance $i (instantiate $m))
  (func (export "run") (canon lift (core func $i "run"))))
