;; A component for WASI preview 2 that exits with status 7. Its version of the interface had the function as an unstable one.
(component
  (import "wasi:cli/exit@0.2.3" (instance $exit
    (export "exit-with-code" (func (param "status-code" u8)))))
  (alias export $exit "exit-with-code" (func $exit-with-code))
  (core func $end (canon lower (func $exit-with-code)))
  (core module $program
    (import "host" "end" (func $end (param i32)))
    (func (export "run") (result i32) (call $end (i32.const 7)) (i32.const 0)))
  (core instance $running (instantiate $program (with "host" (instance (export "end" (func $end))))))
  (func $run (result (result)) (canon lift (core func $running "run")))
  (component $runs
    (import "run" (func $run (result (result))))
    (export "run" (func $run)))
  (instance $command (instantiate $runs (with "run" (func $run))))
  (export "wasi:cli/run@0.2.3" (instance $command))
)
