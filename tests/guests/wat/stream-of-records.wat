;; A function whose result is a stream of records, which the host cannot read.
(component
  (type $named (record (field "name" string)))
  (export $row "row" (type $named))
  (type $rows (stream $row))
  (core module $m (func (export "rows") (result i32) unreachable))
  (core instance $i (instantiate $m))
  (func $rows (result $rows) (canon lift (core func $i "rows")))
  (export "rows" (func $rows)))
