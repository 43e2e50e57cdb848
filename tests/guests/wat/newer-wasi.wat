;; Imports a function of a WASI interface that this version does not have: the interface is known, the function is not.
(component
  (import "kiso:skill/types@0.1.0" (instance $types
    (type $call' (record (field "tool" string) (field "args" string) (field "session" string) (field "locale" string)))
    (export "call" (type $call (eq $call')))
    (type $file' (record (field "path" string) (field "media-type" (option string)) (field "title" (option string))))
    (export "file" (type $file (eq $file')))
    (type $reply' (record (field "text" string) (field "data" (option string)) (field "files" (list $file))))
    (export "reply" (type $reply (eq $reply')))
    (type $failure' (record (field "code" string) (field "message" string) (field "retryable" bool)))
    (export "failure" (type $failure (eq $failure')))
  ))
  (alias export $types "call" (type $call))
  (alias export $types "reply" (type $reply))
  (alias export $types "failure" (type $failure))
  (import "wasi:clocks/monotonic-clock@0.2.12" (instance
    (export "now-in-stardate" (func (result u64)))))
  (core module $core
    (memory (export "memory") 1)
    (func (export "realloc") (param i32 i32 i32 i32) (result i32) (i32.const 1024))
    (func (export "run") (param i32 i32 i32 i32 i32 i32 i32 i32) (result i32) (i32.const 0x08))
    (data (i32.const 0x08) "\00\00\00\00\40\00\00\00\02\00\00\00") ;; ok, text: 2 bytes at 0x40
    (data (i32.const 0x40) "ok")
  )
  (core instance $i (instantiate $core))
  (alias core export $i "memory" (core memory $memory))
  (alias core export $i "realloc" (core func $realloc))
  (alias core export $i "run" (core func $run'))
  (func $run (param "call" $call) (result (result $reply (error $failure)))
    (canon lift (core func $run') (memory $memory) (realloc $realloc)))
  (instance $skill
    (export "call" (type $call)) (export "reply" (type $reply)) (export "failure" (type $failure))
    (export "run" (func $run)))
  (export "kiso:skill/skill@0.1.0" (instance $skill))
)
