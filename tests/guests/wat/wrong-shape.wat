;; Exports `kiso:skill/skill.run`, but of another type: a string to a string. `kiso skill add` must say what it expected.
(component
  (core module $core
    (memory (export "memory") 1)
    (func (export "realloc") (param i32 i32 i32 i32) (result i32) (i32.const 1024))
    (func (export "run") (param i32 i32) (result i32) (i32.const 0x08))
    (data (i32.const 0x08) "\40\00\00\00\02\00\00\00")
    (data (i32.const 0x40) "ok")
  )
  (core instance $i (instantiate $core))
  (alias core export $i "memory" (core memory $memory))
  (alias core export $i "realloc" (core func $realloc))
  (alias core export $i "run" (core func $run'))
  (func $run (param "call" string) (result string)
    (canon lift (core func $run') (memory $memory) (realloc $realloc)))
  (instance $skill (export "run" (func $run)))
  (export "kiso:skill/skill@0.1.0" (instance $skill))
)
