def IN(s): any(s == .; .);
def IN(source; s): any(source == s; .);
def INDEX(stream; f): reduce stream as $row ({}; . + {($row | f | tostring): $row});
def INDEX(f): INDEX(.[]; f);
def ascii: [.] | implode;
def toarray: if isarray then . else [.] end;
def leaf_paths: paths(scalars);
def input_line_number: 0;
def have_literal_numbers: true;
def number_text: if isfinite and floor == . then floor | tojson elif isnan then "" else tojson end;
def tostring: if isstring then . elif isnumber then number_text else tojson end;
def join($s):
  reduce .[] as $x (null; (if . == null then "" else . + $s end) + (if $x == null then "" else $x | tostring end)) // "";
def @csv: [.[] | if . == null then "" elif isnumber then number_text elif isboolean then tojson
  elif isstring then "\"" + (. / "\"" | join("\"\"")) + "\""
  else error("\(type) (\(tojson)) is not valid in a csv row") end] | join(",");
def @tsv: [.[] | if . == null then "" elif isnumber then number_text elif isboolean then tojson
  elif isstring then . / "\\" | join("\\\\") | . / "\t" | join("\\t") | . / "\n" | join("\\n") | . / "\r" | join("\\r")
  else error("\(type) (\(tojson)) is not valid in a tsv row") end] | join("\t");
def entry_key: if isobject then
    [.key, .k, .name, .Name, .Key, .K | select(. != null)] | first(.[], null)
    | if . == null then "null" else tostring end
  else error("cannot index \(type) with \"key\"") end;
def entry_value: if has("value") then .value elif has("v") then .v else .Value end;
def from_entries: reduce .[] as $x ({}; . + {($x | entry_key): ($x | entry_value)});
def with_entries(f): to_entries | map(f) | from_entries;
def stream_of($p): if isarray and length > 0 or isobject and . != {} then
    (keys_unsorted as $keys | ($keys[] as $k | .[$k] | stream_of($p + [$k])), [$p + [$keys[-1]]])
  else [$p, .] end;
def tostream: stream_of([]);
def truncate_stream(stream): . as $n | null | stream | if (.[0] | length) > $n then .[0] |= .[$n:] else empty end;
def put($p; $x): if $p == [] then $x else $p[0] as $k |
    if . == null then (if $k | isnumber then [] else {} end) else . end
    | if isobject then . + {($k): (.[$k] | put($p[1:]; $x))}
      elif isarray and ($k | isnumber) and $k >= length then
        . + [range($k - length) | null] + [null | put($p[1:]; $x)]
      else .[$k] |= put($p[1:]; $x) end end;
def setpath($p; $x): put($p; $x);
def fromstream(f): foreach f as $i ({x: null, done: false};
    (if .done then {x: null, done: false} else . end)
    | if $i | length == 2 then {x: (.x | put($i[0]; $i[1])), done: ($i[0] == [])}
      else .done = ($i[0] | length == 1) end;
    if .done then .x else empty end);
def delpaths($paths): reduce ($paths | sort | reverse[]) as $p (.;
  if getpath($p[:-1]) == null then . else getpath($p) |= empty end);
def del(f): delpaths([path(f)]);
