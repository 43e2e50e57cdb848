;; A failure whose message is not UTF-8; the code before it is.
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

  (core module $core
    (memory (export "memory") 1)
    (func (export "realloc") (param i32 i32 i32 i32) (result i32) (i32.const 1024))
    (func (export "run") (param i32 i32 i32 i32 i32 i32 i32 i32) (result i32) (i32.const 0x08))
    (data (i32.const 0x08) "\01\00\00\00\40\00\00\00\04\00\00\00\44\00\00\00\02\00\00\00") ;; error, code, message
    (data (i32.const 0x40) "fail\c3\28")
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
