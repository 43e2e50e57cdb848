;; Exports only functions over a resource, which have no plain form in JSON. `kiso skill add` must refuse them by name.
(component
  (core module $core (func (export "open") (result i32) (i32.const 1)))
  (core instance $i (instantiate $core))
  (alias core export $i "open" (core func $open'))
  (type $handle' (resource (rep i32)))
  (export $handle "handle" (type $handle'))
  (core func $new (canon resource.new $handle'))
  (func $open (result (own $handle)) (canon lift (core func $open')))
  (export "open" (func $open))
)
