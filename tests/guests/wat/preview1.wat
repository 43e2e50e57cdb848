;; A core module for WASI preview 1, written by hand: copies standard input to standard output, 1 KiB at a time.
(module
  (import "wasi_snapshot_preview1" "fd_read" (func $fd_read (param i32 i32 i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "fd_write" (func $fd_write (param i32 i32 i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "proc_exit" (func $proc_exit (param i32)))
  (memory (export "memory") 1)
  (func (export "_start")
    (local $at i32)
    (loop $more
      ;; One vector at 0: 1,024 bytes at 0x1000. What was read is counted at 8.
      (i32.store (i32.const 0) (i32.const 0x1000))
      (i32.store (i32.const 4) (i32.const 1024))
      (if (call $fd_read (i32.const 0) (i32.const 0) (i32.const 1) (i32.const 8)) (then (call $proc_exit (i32.const 1))))
      (if (i32.eqz (i32.load (i32.const 8))) (then (return)))
      (local.set $at (i32.const 0x1000))
      (loop $rest
        (i32.store (i32.const 0) (local.get $at))
        (i32.store (i32.const 4) (i32.sub (i32.add (i32.const 0x1000) (i32.load (i32.const 8))) (local.get $at)))
        (if (call $fd_write (i32.const 1) (i32.const 0) (i32.const 1) (i32.const 12)) (then (call $proc_exit (i32.const 2))))
        (local.set $at (i32.add (local.get $at) (i32.load (i32.const 12))))
        (br_if $rest (i32.lt_u (local.get $at) (i32.add (i32.const 0x1000) (i32.load (i32.const 8))))))
      (br $more)))
)
