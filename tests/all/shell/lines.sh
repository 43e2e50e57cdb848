Command lines for which `kiso shell` and bash must give the same result: the same bytes on standard output, the same exit code.
Each runs in a fresh copy of `files/` with an empty directory `pub`, LC_ALL=C, and nothing on standard input; `bash -c` gets the
text below `### name` unchanged. `(needs X)` after a name: only if the host has the command X. `## ` starts a group. No line may
depend on time, user, host, directory order, or on the path of the directory.

## Everyday jobs

### rename by pattern with parameter expansion
cd photos
for f in *.JPG; do mv -- "$f" "holiday-${f#IMG_}"; done
ls

### rename extensions to lower case
cd photos
for f in *; do
  ext=${f##*.}
  mv "$f" "${f%.*}.$(printf %s "$ext" | tr A-Z a-z)"
done
ls

### rename with sed and a read loop
ls photos | sed -n 's/^IMG_\(.*\)\.JPG$/mv photos\/& photos\/pic-\1.jpg/p' | while read -r cmd from to; do
  echo "$cmd $from $to"
  "$cmd" "$from" "$to"
done
ls photos

### replace spaces in names
for f in *\ *; do mv "$f" "${f// /_}"; done
ls | grep _

### number files with padding
i=0
for f in photos/*; do
  i=$((i + 1))
  printf '%03d %s\n' "$i" "${f##*/}"
done

### move files by extension into directories
cd photos
for f in *.*; do
  mkdir -p "by/${f##*.}"
  mv "$f" "by/${f##*.}/"
done
find . -type f | sort

### biggest files
find . -type f -exec wc -c {} + | grep -v ' total$' | sort -k1,1nr -k2 | head -n 3 | awk '{print $1, $2}'

### biggest files by ls
ls -S tree/src/*.c tree/src/*.h tree/big.txt | head -n 2

### biggest file by a loop
max=0
for f in *; do
  [ -f "$f" ] || continue
  n=$(wc -c < "$f")
  if [ "$n" -gt "$max" ]; then max=$n; name=$f; fi
done
echo "$name $max"

### sum of sizes
find tree -type f -print0 | xargs -0 cat | wc -c

### files per extension
find . -type f -name '*.*' | sed 's/.*\.//' | sort | uniq -c | sort -k1,1nr -k2 | sed 's/^ *//'

### empty files
find . -type f -empty

### count lines in a tree
find tree -name '*.[ch]' | sort | xargs wc -l

### todo list over a tree
grep -rn 'TODO' tree | sort

### files that hold a word
grep -rl TODO . | sort

### files that do not hold a word
grep -L TODO tree/src/*.*

### column of a csv
cut -d, -f2,4 people.csv

### column of a csv without header
tail -n +2 people.csv | cut -d, -f3 | sort | uniq -c | sort -rn -k1,1 -s | sed 's/^ *//'

### csv column by name
col=$(head -1 people.csv | tr , '\n' | grep -n '^city$' | cut -d: -f1)
cut -d, -f"$col" people.csv | tail -n +2 | sort -u

### csv sum with awk
awk -F, 'NR > 1 { s += $4 } END { printf "%.2f\n", s }' orders.csv

### csv group with awk
awk -F, 'NR > 1 { n[$3]++; s[$3] += $4 } END { for (k in n) print k, n[k], s[k] }' orders.csv | sort

### csv mean with read
sum=0 n=0
while IFS=, read -r id name city age; do
  [ "$id" = id ] && continue
  sum=$((sum + age)) n=$((n + 1))
done < people.csv
echo "$n people, mean age $((sum / n))"

### csv filter rows
awk -F, '$3 == "Oslo" && $4 > 30 { print $2 }' people.csv

### csv filter with grep
grep -c ',Oslo,' people.csv

### csv to tsv
tr ',' '\t' < cities.csv

### csv to json by loop
tail -n +2 cities.csv | while IFS=, read -r c k p; do
  printf '{"city":"%s","country":"%s","population":%d}\n' "$c" "$k" "$p"
done

### join two csvs
join -t, -1 3 -2 1 -o 1.2,1.3,2.2 <(tail -n +2 people.csv | sort -t, -k3,3) <(tail -n +2 cities.csv | sort -t, -k1,1)

### join csvs with unmatched rows
tail -n +2 people.csv | sort -t, -k1,1 > p
tail -n +2 orders.csv | sort -t, -k2,2 > o
join -t, -1 1 -2 2 -a 1 -e NONE -o 1.2,2.3,2.4 p o

### join by an associative array
declare -A country
while IFS=, read -r city land _; do country[$city]=$land; done < cities.csv
while IFS=, read -r _ name city _; do
  echo "$name: ${country[$city]:-unknown}"
done < <(tail -n +2 people.csv)

### sort csv by number keeping the header
(head -n 1 people.csv; tail -n +2 people.csv | sort -t, -k4,4n -k2,2)

### top word
tr -cs 'A-Za-z' '\n' < poem.txt | tr A-Z a-z | sort | uniq -c | sort -k1,1nr -k2 | head -n 5 | sed 's/^ *//'

### word count of several files
wc poem.txt words.txt numbers.txt

### longest line
awk '{ if (length($0) > m) { m = length($0); l = $0 } } END { print m ": " l }' poem.txt

### letters by frequency
fold -w1 words.txt | sort | uniq -c | sort -k1,1nr -k2 | head -n 3 | sed 's/^ *//'

### duplicate lines
sort words.txt | uniq -d

### unique lines in order
awk '!seen[$0]++' words.txt

### edit in place with sed
sed -i 's/^debug = false$/debug = true/; s/8080/9090/' settings.ini
grep -nE 'debug|port' settings.ini

### edit in place with backup
sed -i.bak '/^#/d;/^;/d;/^$/d' settings.ini
wc -l < settings.ini
wc -l < settings.ini.bak

### edit several files
grep -rl twice tree | sort | xargs sed -i 's/twice/two_times/g'
grep -rho 'two_times' tree | wc -l

### lines before and after, with escapes
printf 'middle\n' | sed '1i one\ntwo\tcolumns\\n
a\after\nall\d065\o102\x43'
printf 'a\n' | sed '1c\tab'

### value from an ini section
sed -n '/^\[server\]/,/^\[/{s/^port *= *//p}' settings.ini

### value from an ini file with awk
awk -F' *= *' '$1 == "timeout" { print $2 }' settings.ini

### insert a line after a match
sed '/^\[general\]/a\
version = 2' settings.ini | head -n 4

### strip comments and blank lines
grep -vE '^([;#]|$)' settings.ini

### carriage returns
tr -d '\r' < crlf.txt | od -c | head -n 1

### log levels counted
awk '{ print $2 }' app.log | sort | uniq -c | sed 's/^ *//'

### errors of a day
grep '^2024-03-01' app.log | grep ERROR | cut -d' ' -f3-

### log between times
sed -n '/08:01:10/,/08:02:05/p' app.log | wc -l

### requests by address
cut -d' ' -f1 access.log | sort | uniq -c | sort -k1,1nr -k2 | awk '{ print $2 "\t" $1 }'

### status codes
grep -oE '" [0-9]{3} ' access.log | tr -d '" ' | sort | uniq -c | awk '{ print $2 "=" $1 }'

### bytes served
awk '{ s += $NF } END { print s }' access.log

### paths that failed
awk '$8 >= 400 { print $8, $6 }' access.log | sort -u

### checksum and verify
sha256sum words.txt people.csv > sums
sha256sum -c sums
echo x >> words.txt
sha256sum -c sums 2> /dev/null
echo $?

### md5 of a stream
printf 'hello' | md5sum | cut -d' ' -f1

### sha1 and cksum
sha1sum < empty.txt
cksum poem.txt

### same content twice
cp words.txt copy.txt
md5sum words.txt copy.txt poem.txt | sort | uniq -w32 -D | cut -c35-

### pack and unpack
tar -czf src.tgz -C tree src
mkdir out
tar -xzf src.tgz -C out
diff -r tree/src out/src && echo same

### list an archive
tar -cf a.tar photos
tar -tf a.tar | grep -v '/$' | sort

### extract one file to the output
tar -cf a.tar tree/doc
tar -xOf a.tar tree/doc/index.md

### tar through a pipe
mkdir copy
tar -cf - photos | (cd copy && tar -xf -)
ls copy/photos

### gzip and back
gzip -k poem.txt
gunzip -c poem.txt.gz | cmp - poem.txt && echo equal
rm poem.txt
gzip -d poem.txt.gz
wc -l poem.txt

### gzip in a pipe
cat poem.txt | gzip -9 | gzip -dc | tail -n 1

### zcat
gzip words.txt
zcat words.txt.gz | head -n 2

### zip and unzip (needs zip)
zip -q -r t.zip tree/src
mkdir out
unzip -q t.zip -d out
find out -type f | sort

### base64 there and back
base64 < bytes.bin | base64 -d | cmp - bytes.bin && echo same
printf 'kiso rules' | base64

### diff of two files
diff old.conf new.conf

### unified diff without names
diff -u old.conf new.conf | tail -n +3

### quiet diff
diff -q old.conf new.conf > /dev/null
echo $?

### common lines
comm -12 <(sort old.conf) <(sort new.conf)

### lines only here
comm -23 <(sort old.conf) <(sort new.conf)

### backup loop
mkdir -p backup
for f in *.conf; do cp "$f" "backup/$f.bak"; done
ls backup

### retry until it works
n=0
until [ "$n" -ge 3 ]; do
  n=$((n + 1))
  echo "attempt $n"
  [ "$n" -eq 3 ] && break
done

### schedule-like loop
for day in Mon Tue Wed; do
  for hour in 08 12 16; do
    [ "$day$hour" = Tue12 ] && continue
    printf '%s %s:00\n' "$day" "$hour"
  done
done

### table with printf
printf '%-10s|%6s\n' name price
tail -n +2 fruit.tsv | while IFS=$'\t' read -r name _ price; do printf '%-10s|%6.2f\n' "$name" "$price"; done

### table with column (needs column)
column -t -s, cities.csv

### paste columns
paste -d: <(cut -d, -f1 cities.csv) <(cut -d, -f3 cities.csv)

### transpose a line
paste -sd+ numbers.txt

### sum with arithmetic expansion
echo $(( $(paste -sd+ numbers.txt) ))

### minimum and maximum
sort -n numbers.txt | sed -n '1p;$p'

### every second line
sed -n '1~2p' numbers.txt

### reverse lines
tac numbers.txt | head -n 3

### reverse characters (needs rev)
printf 'abc\nhello\n' | rev

### split and put together
split -l 50 tree/big.txt part-
ls part-*
cat part-* | cmp - tree/big.txt && echo whole

### first and last lines
head -n 2 tree/big.txt
tail -n 2 tree/big.txt

### all but the last lines
head -n -198 tree/big.txt

### lines in a range
sed -n '10,12p' tree/big.txt

### make a script and run its functions
. tree/lib.sh
shout "$greeting"

### generate config from a template
name=demo port=99
cat > out.conf <<EOF
name=$name
port=$((port + 1))
literal=\$HOME
EOF
cat out.conf

### extract urls
grep -oE 'https?://[^ ]+' notes.txt

### numbers in text
grep -oE '[0-9]+' notes.txt | paste -sd' '

### fixed string with special characters
grep -nF '$dollar' notes.txt | cut -d: -f1

### unicode passes through
grep 'Zoë' notes.txt users.json | cut -d: -f1

### nul separated names
find . -maxdepth 1 -name '* *' -print0 | sort -z | tr '\0' '\n'

### hex of bytes
od -An -tx1 -N8 bytes.bin

### hex dump (needs xxd)
printf 'kiso\n' | xxd -p

### sequence and filter
seq 1 20 | grep -v '[13579]$' | tr '\n' ' '

### fizzbuzz
for ((i = 1; i <= 15; i++)); do
  s=
  ((i % 3 == 0)) && s=fizz
  ((i % 5 == 0)) && s+=buzz
  echo "${s:-$i}"
done

### primes with factor
seq 2 30 | factor | awk 'NF == 2 { print $2 }' | paste -sd,

### directory tree made and removed
mkdir -p a/b/c && touch a/b/c/f && rmdir a 2> /dev/null || echo "not empty"
rm -r a
[ -e a ] || echo gone

### copy a tree
cp -r tree copy
diff -r tree copy && find copy | wc -l

### symbolic link read
ln -s words.txt link
readlink link
cat link | head -n 1
[ -L link ] && echo link

## JSON

### jq field (needs jq)
jq -r .name config.json

### jq nested (needs jq)
jq '.server.port + 1' config.json

### jq array to lines (needs jq)
jq -r '.[] | select(.active) | .name' users.json

### jq compact objects (needs jq)
jq -c '.[] | {id, n: (.tags | length)}' users.json

### jq pretty (needs jq)
jq .server config.json

### jq to csv (needs jq)
jq -r '.[] | [.id, .name, .score] | @csv' users.json

### jq to tsv (needs jq)
jq -r 'map([.id, .name]) | .[] | @tsv' users.json

### jq keys and length (needs jq)
jq -c 'keys, length' config.json

### jq sum over lines (needs jq)
jq -s 'map(.n) | add' events.jsonl

### jq group (needs jq)
jq -s -c 'group_by(.type) | map({type: .[0].type, total: (map(.n) | add)})' events.jsonl

### jq with an argument (needs jq)
jq -r --arg who ada 'select(.user == $who) | .type' events.jsonl

### jq with a json argument (needs jq)
jq -n -c --argjson n 3 '{n: $n, twice: ($n * 2)}'

### jq exit status (needs jq)
jq -e .missing config.json; echo $?

### jq raw input (needs jq)
printf 'a\nb\n' | jq -R .

### jq slurped raw lines to an array (needs jq)
jq -R -s -c 'split("\n") | map(select(. != ""))' words.txt

### jq entries (needs jq)
jq -r '.features | to_entries[] | "\(.key)=\(.value)"' config.json

### jq edits (needs jq)
jq -c '.server.port = 9 | del(.features) | .paths |= map(ascii_upcase)' config.json

### jq sort and pick (needs jq)
jq -c 'sort_by(.score) | reverse | .[0:2] | map(.name)' users.json

### jq alternatives (needs jq)
jq -c 'map(.score // 0)' users.json

### jq reduce (needs jq)
jq -n 'reduce range(1; 6) as $i (1; . * $i)'

### jq conditional (needs jq)
jq -r '.[] | if .score == null then "none" elif .score > 8 then "high" else "low" end' users.json

### jq test and capture (needs jq)
jq -c '.version | capture("(?<major>[0-9]+)\\.(?<minor>[0-9]+)")' config.json

### jq bad input code (needs jq)
echo '{' | jq . 2> /dev/null || echo failed; jq '.[' config.json 2> /dev/null; echo $?; jq . none 2> /dev/null; echo $?

### jq in a loop (needs jq)
jq -c '.[]' users.json | while read -r row; do
  name=$(jq -r .name <<< "$row")
  echo "hi $name"
done

### jq into shell variables (needs jq)
read -r host port < <(jq -r '.server | "\(.host) \(.port)"' config.json)
echo "$host:$port"

## Quoting

### single and double quotes
a=1; echo '$a' "$a" \$a

### quotes next to each other
a=x; echo 'one'"$a"'two'$a"three"

### backslashes in double quotes
echo "a\b \" \$ \\ \` \n"

### backslash newline
echo one\
two "three\
four"

### single quote inside single quotes
echo 'it'\''s' "it's"

### dollar single quotes
printf '%s|' $'a\tb' $'\x41\102' $'it\'s' $'\u0041' $'\e[0m' | od -An -c

### empty arguments stay
set -- "" '' x; echo $#; printf '<%s>' "$@"

### unset unquoted vanishes
unset u; set -- $u "$u"; echo $#

### adjacent empty strings
a=; set -- $a"" x$a; echo $#; printf '<%s>' "$@"

### a lone dollar
echo $ "$" a$ "a$ b"

### hash inside words
echo a#b '#c' # a comment
echo "#d"

### semicolons and ampersands quoted
echo "a;b&c|d<e>f(g)h"

### newline in quotes
x='one
two'; echo "$x"; echo $x

### tilde
HOME=/h; echo ~ ~/a "~" '~' a~ ~/"b c"

### tilde in assignment
HOME=/h; a=~/x:~/y; echo "$a"

### quoted glob characters
echo '*' "?" \[a\] "[a]"

### escaped spaces in a name
cat two\ words.txt

### a quote in a name
cat "it's here.txt" | wc -l

### quotes in command substitution
echo "$(echo "inner $(echo "deep 'q'")")"

### backquotes
echo `echo one \`echo two\``

### eval
cmd='echo "a  b" | tr a z'; eval "$cmd"

### eval joins its arguments
eval echo 'x;' echo y

## Words and expansion

### defaults
unset a; b=; echo "${a-one}" "${a:-two}" "${b-three}" "${b:-four}"

### assign defaults
unset a; : "${a:=set}"; echo "$a"

### alternatives
unset a; b=; c=x; echo "[${a+1}]" "[${b+2}]" "[${b:+3}]" "[${c:+4}]"

### error when unset
(unset a; : "${a:?not set}"; echo never) 2> /dev/null; echo $?

### length
a=hello; echo ${#a}; set -- 1 2 3; echo ${#} ${#@}

### prefixes and suffixes
p=a/b/c.tar.gz; echo "${p#*/}" "${p##*/}" "${p%.*}" "${p%%.*}"

### patterns in prefixes
v=aaab; echo "${v#a*}" "${v##a*b}" "${v#[!a]}" "${v%[b-z]}"

### quoted pattern is literal
v='*x'; echo "${v#\*}" "${v#"*"}"

### substring
v=abcdefgh; echo "${v:2}" "${v:2:3}" "${v: -3}" "${v: -3:2}" "${v:1:-2}" "${v:20}"

### substring with arithmetic
v=abcdefgh n=2; echo "${v:n+1:n*2}" "${v:$n:1}"

### replace
v=a.b.c; echo "${v/./-}" "${v//./-}" "${v/#a/X}" "${v/%c/Y}" "${v//.}"

### replace with patterns
v=foo123bar; echo "${v//[0-9]/#}" "${v/[0-9]*/}" "${v//o/00}"

### replace with slash and variable
v=a/b/c r='\&'; echo "${v//\//:}" "${v//'/'/-}" "${v/b/$r}" "${v/b/[&]}" "${v/b/"&"}"

### case conversion
v='hello World'; echo "${v^}" "${v^^}" "${v,,}" "${v^^[lo]}"

### indirection
a=b b=c; echo "${!a}"

### names by prefix
pre_a=1 pre_b=2; echo "${!pre_@}"

### transform quoting
v="it's a  b"; echo "${v@Q}"

### nested defaults
unset a b; c=deep; echo "${a:-${b:-$c}}"

### default with quotes and spaces
unset a; printf '<%s>' ${a:-x "y z" w}; echo; printf '<%s>' "${a:-x "y z" w}"

### default holds a command
unset a; echo "${a:-$(echo computed)}"

### brace in default
unset a; echo "${a:-\}}" "${a:-'}'}"

### word splitting
v='  a  b	c
d '; set -- $v; echo $#; printf '<%s>' "$@"

### splitting by another separator
IFS=:; v=a:b::c:; set -- $v; echo $#; printf '<%s>' "$@"

### splitting by space and comma
IFS=' ,'; v='a , b,c  d,,e'; printf '<%s>' $v

### no splitting when IFS is empty
IFS=; v='a b'; printf '<%s>' $v

### no splitting in assignments
a='x  y'; b=$a; c=$(echo "p  q"); echo "$b|$c"

### positional parameters
set -- a 'b c' d; printf '<%s>' $*; echo; printf '<%s>' "$*"; echo; printf '<%s>' $@; echo; printf '<%s>' "$@"

### star joins by IFS
set -- a b c; IFS=-; echo "$*" "$@"

### at inside a word
set -- a b; printf '<%s>' "x$@y"; echo; set --; printf '<%s>' "x$@y"

### no arguments for quoted at
set --; printf '<%s>' "$@" end

### ten and more
set -- a b c d e f g h i j k; echo ${10} ${11} $10

### shift
set -- a b c d; shift; shift 2; echo "$1" $#

### shift too far
set -- a; shift 2; echo $? $#

### slices of positional parameters
set -- a b c d e; echo "${@:2}" "${@:2:2}" "${@: -1}"

### command substitution drops newlines
v=$(printf 'a\n\n\n'); echo "[$v]"

### command substitution keeps inner newlines
printf '[%s]' "$(printf 'a\n\nb\n')"

### command substitution of a file
echo "$(< words.txt)" | head -n 2

### code of a substitution
v=$(exit 3); echo $?; v=$(false) || echo failed

### substitution with case inside
echo $(case x in x) echo match ;; esac)

### substitution with comment and quotes
echo "$(
  # a ) comment
  echo "a)b"
)"

### brace list
echo a{b,c,d}e {x,y}{1,2} {a,{b,c}}

### brace sequences
echo {1..5} {5..1} {a..e} {01..10..3} {10..1..4} {-2..2}

### brace sequence of letters with step
echo {a..k..3} x{1..3}y

### not braces
echo {a} {} {a,b a,b} "{a,b}" \{a,b\} {1..} {a..5}

### braces before variables
a=1 b=2; echo {$a,$b} $a{x,y}

### braces with empty parts
echo a{,b} {,x}y; mkdir d{1..3}; ls -d d*; cp old.conf{,.bak}; ls old*

### glob star
echo *.csv

### glob question and class
echo ?????.txt photos/IMG_000[1-2].* photos/*[!G]

### glob without match stays
echo nothing*.here

### glob in directories
echo tree/*/*.c tree/*/ */*.md

### hidden files
cd tree; echo *; echo .h*

### glob does not match in quotes
v='*.csv'; echo "$v"; echo $v

### glob from a variable with spaces
for f in *\ *; do echo "<$f>"; done

### glob character classes
echo [[:lower:]][[:lower:]].* photos/*[[:digit:]].RAW *[[:space:]]*

### noglob
set -f; echo *.csv; set +f; echo *.csv

### nullglob
shopt -s nullglob; set -- nothing*.here; echo $#

### failglob off and dotglob
cd tree; shopt -s dotglob; echo *

### globstar
shopt -s globstar; echo tree/**/*.md; cd tree/src; printf '%s\n' **

### extended globs
shopt -s extglob
echo !(*.txt|*.csv|*.json*|*.log|*.conf|*.ini|*.bin|*.tsv)
echo @(old|new).conf *.+(csv|tsv) ?(o)ld.conf

### nocaseglob
shopt -s nocaseglob; cd photos; echo *.jpg

### extended patterns in expansion
shopt -s extglob; v=xxxyzz; echo "${v##+(x)}" "${v%%+(z)}" "${v//@(x|z)/-}"

## Arithmetic

### operators
echo $((1 + 2 * 3)) $(((1 + 2) * 3)) $((7 / 2)) $((7 % 3)) $((-7 / 2)) $((-7 % 3)) $((2 ** 10))

### comparison and logic
echo $((1 < 2)) $((2 <= 1)) $((1 == 1)) $((1 != 1)) $((1 && 0)) $((1 || 0)) $((!5)) $((~5))

### bits
echo $((5 & 3)) $((5 | 3)) $((5 ^ 3)) $((1 << 10)) $((-16 >> 2))

### ternary and comma
a=5; echo $((a > 3 ? 10 : 20)) $((a = 2, a + 1)) $a

### increments
a=5; echo $((a++)) $((++a)) $((a--)) $((--a)) $a

### assignment operators
a=10; ((a += 5)); ((a *= 2)); ((a -= 3)); ((a /= 4)); ((a %= 4)); ((a <<= 3)); ((a |= 1)); echo $a

### bases
echo $((0x1f)) $((017)) $((2#1011)) $((16#ff)) $((36#z)) $((10#08))

### variables without dollar
x=3 y=x; echo $((x * x)) $((y + 1)) $((unset_var + 1))

### wraps at 64 bits
echo $((9223372036854775807 + 1)) $((-9223372036854775807 - 1))

### precedence
echo $((2 + 3 * 4 ** 2 / 8 - 1)) $((2 ** 3 ** 2)) $((-2 ** 2)) $((1 << 2 + 1)) $((1 | 2 ^ 3 & 4))

### division by zero
(echo $((1 / 0)); echo never) 2> /dev/null; echo $?

### let
let a=3+4 'b = a * 2'; echo $a $b; let 0; echo $?

### code of an arithmetic command
((5 > 3)); echo $?; ((0)); echo $?

### arithmetic for
for ((i = 0, j = 10; i < j; i += 3, j--)); do echo "$i $j"; done

### arithmetic with substitutions
echo $(( $(wc -l < words.txt) * ${#IFS} + $((2 + 3)) ))

### arithmetic in subscripts
a=(10 20 30); i=1; echo ${a[i + 1]} ${a[$i]} $((a[0] + a[i]))

### octal trap in date-like numbers
h=08; (echo $((h + 1))) 2> /dev/null || echo bad; echo $((10#$h + 1))

### declared integer
declare -i n; n=3+4; echo $n; n+=2; echo $n

### expr
expr 3 + 4; expr 10 / 3; expr length hello; expr hello : 'h\(.*\)o'; expr 1 = 2; echo $?

### floats with awk
awk 'BEGIN { printf "%.3f\n", 22 / 7 }'

### greatest common divisor
gcd() { local a=$1 b=$2; while ((b)); do ((t = b, b = a % b, a = t)); done; echo $a; }
gcd 1071 462

## Arrays

### make and read
a=(one 'two words' three); echo "${a[0]}" "${a[1]}" ${#a[@]} "$a"

### all elements
a=(x 'y z'); printf '<%s>' "${a[@]}"; echo; printf '<%s>' "${a[*]}"; echo; printf '<%s>' ${a[@]}

### append
a=(1); a+=(2 3); a[5]=6; echo "${a[@]}" ${#a[@]} "${!a[@]}"

### append to an element
a=(x y); a[1]+=z; a+=w; echo "${a[@]}"; s=ab; s+=cd; echo $s

### unset an element
a=(a b c d); unset 'a[1]'; echo "${a[@]}" "${!a[@]}"; unset a; echo "${#a[@]}"

### slices
a=(a b c d e); echo "${a[@]:1:3}" "${a[@]: -2}" "${a[@]:3}"

### negative subscripts
a=(a b c); echo "${a[-1]}" "${a[-3]}"

### operations on each element
a=(x.c y.c z.h); echo "${a[@]%.c}" "${a[@]/./_}" "${a[@]^^}" "${a[@]#?}"

### length of an element
a=(one three); echo ${#a[0]} ${#a[1]}

### loop over indices
a=(a b c); for i in "${!a[@]}"; do echo "$i=${a[i]}"; done

### explicit subscripts
a=([2]=c [0]=a d); echo "${!a[@]}" "${a[@]}"

### array from a command
mapfile -t lines < words.txt; echo ${#lines[@]} "${lines[1]}" "${lines[-1]}"

### array from a substitution
a=($(cut -d, -f1 cities.csv | tail -n +2)); echo ${#a[@]} ${a[3]}

### readarray with separators
readarray -d , -t a < <(printf 'x,y,z'); printf '<%s>' "${a[@]}"

### mapfile skips and counts
mapfile -t -s 1 -n 2 a < words.txt; echo "${a[*]}"

### array of globs
a=(*.csv); echo ${#a[@]} "${a[0]}"

### associative
declare -A m=([one]=1 [two]=2); m[three]=3; echo "${m[two]}" ${#m[@]}; for k in $(printf '%s\n' "${!m[@]}" | sort); do echo "$k=${m[$k]}"; done

### associative keys with spaces
declare -A m; m["a b"]=1; m[c]=2; k='a b'; echo "${m[$k]}" "${m["a b"]}" "${m[none]-no}"

### associative counting
declare -A n; while read -r w; do ((n[$w]++)); done < words.txt; for w in apple banana cherry; do echo "$w ${n[$w]}"; done

### key exists
declare -A m=([x]=); [[ -v m[x] ]] && echo yes; [[ -v m[y] ]] || echo no

### array to function and back
f() { local -a copy=("$@"); printf '%s\n' "${copy[@]}" | sort -r; }
a=(b c a); mapfile -t r < <(f "${a[@]}"); echo "${r[*]}"

### name reference
f() { local -n ref=$1; ref+=(new); }
arr=(old); f arr; echo "${arr[@]}"

### join by comma
a=(a b c); (IFS=,; echo "${a[*]}")

### bubble sort
a=(5 3 9 1)
n=${#a[@]}
for ((i = 0; i < n; i++)); do for ((j = 0; j < n - i - 1; j++)); do
  if ((a[j] > a[j + 1])); then t=${a[j]}; a[j]=${a[j + 1]}; a[j + 1]=$t; fi
done; done
echo "${a[@]}"

### stack
s=(); s+=(a); s+=(b); echo "${s[-1]}"; unset 's[-1]'; echo "${s[@]}"

### declare prints
declare -a a=(1 "b c"); declare -p a; x='it is'; declare -p x

## Tests

### files
for t in -e -f -d -s; do for f in words.txt empty.txt tree none; do [ $t $f ] && echo "$t $f"; done; done; true

### strings
[ a = a ] && echo 1; [ a != b ] && echo 2; [ -z "" ] && echo 3; [ -n x ] && echo 4; [ x ] && echo 5; [ "" ] || echo 6

### numbers
[ 3 -gt 2 ] && [ 3 -ge 3 ] && [ 2 -lt 3 ] && [ 2 -le 2 ] && [ 1 -eq 01 ] && [ 1 -ne 2 ] && echo all

### and, or, not
[ ! -e none -a -e tree ] && echo and; [ -e none -o -e tree ] && echo or; ! [ -e none ] && echo not; [ \( a = b \) -o x ] && echo par

### test command
test -f words.txt && echo file; test 1 -eq 2; echo $?

### bad test is code 2
[ 1 -eq x ] 2> /dev/null; echo $?; [ a b ] 2> /dev/null; echo $?

### operators as operands
[ -f = -f ] && echo same; [ "(" = ")" ] || echo different; [ ! ] && echo one; [ ! "" ] && echo empty

### double brackets do not split
v='a b'; e=; [[ $v = 'a b' && -z $e ]] && echo ok

### double bracket patterns
[[ file.txt == *.txt ]] && echo glob; [[ file.txt == "*.txt" ]] || echo literal; p='f*'; [[ foo == $p ]] && echo var; [[ foo == "$p" ]] || echo quoted

### double bracket logic
[[ a < b && ( 1 -lt 2 || x = y ) && ! -e none ]] && echo yes

### double bracket arithmetic
a=5; [[ a -eq 5 && $a -gt 2+2 ]] && echo yes

### regular expressions
[[ 2024-03-15 =~ ^([0-9]{4})-([0-9]{2})-([0-9]{2})$ ]] && echo "${BASH_REMATCH[1]}/${BASH_REMATCH[2]}/${BASH_REMATCH[3]}" "${#BASH_REMATCH[@]}"

### regular expression in a variable
re='^[a-z]+@[a-z]+\.(org|com)$'; for m in ada@example.org x@y; do [[ $m =~ $re ]] && echo "$m ${BASH_REMATCH[1]}" || echo "$m no"; done

### regular expression quoted part is literal
[[ 'a.c' =~ a"."c ]] && echo 1; [[ abc =~ a"."c ]] || echo 2; [[ 'a b' =~ a\ b ]] && echo 3

### regular expression classes
[[ 'x = 42;' =~ [[:space:]]*=[[:space:]]*([[:digit:]]+) ]] && echo "${BASH_REMATCH[1]}"

### variable is set
a=; [[ -v a ]] && echo set; [[ -v b ]] || echo unset

### newer and older
touch -d '2020-01-01 00:00:00' o; touch -d '2021-01-01 00:00:00' n; [ n -nt o ] && echo newer; [ o -ot n ] && echo older; [ o -nt n ] || echo not

### same file
ln -s words.txt l; [ l -ef words.txt ] && echo same; [ words.txt -ef poem.txt ] || echo other

### files in double brackets
[[ -f words.txt && -d tree && ! -s empty.txt && -r words.txt ]] && echo ok

## Control flow

### if elif else
for n in 1 5 9; do if [ $n -lt 3 ]; then echo low; elif [ $n -lt 7 ]; then echo mid; else echo high; fi; done

### code of if without branch
if false; then :; fi; echo $?

### while with break and continue
i=0; while :; do i=$((i + 1)); [ $i = 2 ] && continue; [ $i = 5 ] && break; echo $i; done

### until
n=3; until ((n == 0)); do echo $n; ((n--)); done

### break two levels
for a in 1 2; do for b in x y; do [ $a$b = 1y ] && break 2; echo $a$b; done; done; echo out

### continue two levels
for a in 1 2; do for b in x y; do [ $b = y ] && continue 2; echo $a$b; done; echo never; done

### for without in
f() { for x; do echo "<$x>"; done; }; f a 'b c'

### for over nothing
for x in; do echo never; done; echo $?

### loop variable stays
for x in a b; do :; done; echo $x

### case patterns
for w in apple b7 '' 42 -v --help xyz; do
  case $w in
    a*) echo a ;;
    [a-c][0-9]) echo letter-digit ;;
    '') echo empty ;;
    -v | --verbose) echo verbose ;;
    --*) echo long ;;
    *[!0-9]*) echo word ;;
    *) echo number ;;
  esac
done

### case fall through
case a in a) echo 1 ;& b) echo 2 ;; c) echo 3 ;; esac; case a in a) echo 4 ;;& [a-z]) echo 5 ;;& b) echo 6 ;; *) echo 7 ;; esac

### case quoted pattern
v='*'; case abc in "$v") echo literal ;; $v) echo glob ;; esac

### case with opening parentheses
case x in (a|b) echo ab ;; (x) echo x ;; esac

### case without match
case x in a) echo a ;; esac; echo $?

### nocasematch
shopt -s nocasematch; case HeLLo in hello) echo yes ;; esac; [[ ABC == abc ]] && echo same

### and or lists
true && echo 1 || echo 2; false && echo 3 || echo 4; false || true && echo 5

### negation
! true; echo $?; ! false; echo $?; if ! grep -q zzz words.txt; then echo none; fi

### groups
{ echo a; echo b; } | wc -l; { echo c; }; { false; } || echo d

### select by number
PS3='> '; select x in red green; do echo "got $x"; break; done <<< 2 2> /dev/null

### redirected loop
while read -r a; do echo "[$a]"; done < old.conf > out; cat out

### loop in a pipeline is a subshell
n=0; cat words.txt | while read -r _; do n=$((n + 1)); done; echo $n; while read -r _; do n=$((n + 1)); done < words.txt; echo $n

### lastpipe
shopt -s lastpipe; n=0; cat words.txt | while read -r _; do n=$((n + 1)); done; echo $n

### nested functions and recursion
fact() { if (($1 <= 1)); then echo 1; else echo $(($1 * $(fact $(($1 - 1))))); fi; }; fact 6

### one-line bodies
f() if true; then echo yes; fi
g() (echo sub)
h() for i in 1 2; do echo $i; done
f; g; h

### reserved words as arguments
echo if then else fi do done while for case esac { } ! in

### assignment before a command
X=1 sh_var=2; X=5 printenv X; echo $X; Y=3 true; echo "[${Y-unset}]"

### assignment before a function
f() { echo "$V"; }; V=in f; echo "[${V-unset}]"

### code of an assignment
a=$(false); echo $?; a=x; echo $?

### exit code of the line
(exit 42)

### exit 0
exit 0

### exit 255
exit 255

### exit wraps
(exit 256); echo $?; (exit 257); echo $?; (exit -1); echo $?

### exit with last code
false; exit

### every code
for c in 0 1 2 63 64 125 126 127 128 130 137 141 200 254 255; do (exit $c); printf '%s ' $?; done

### command not found
nosuchcommand_x 2> /dev/null; echo $?

### command not found ends the line
nosuchcommand_x

### a directory is no command
./tree 2> /dev/null; echo $?

### no such file is 127
./none 2> /dev/null; echo $?

### true and false ignore arguments
true x y; echo $?; false x; echo $?; : anything; echo $?

## Functions

### arguments and return
f() { echo "$# $1 $2"; return 7; }; f a b; echo $?

### return without code
f() { false; return; }; f; echo $?

### both spellings
function f { echo f; }
function g() { echo g; }
h () { echo h; }
f; g; h

### local
x=outer; f() { local x=inner y; echo "$x [${y-unset}]"; x=changed; }; f; echo $x

### dynamic scope
f() { local v=f; g; }; g() { echo $v; v=g; }; v=top; f; echo $v

### local keeps the code
f() { local v=$(false); echo $?; local w; w=$(false); echo $?; }; f

### positional parameters come back
f() { set -- x y; echo $1; }; set -- a b; f q; echo $1

### redirect a function
f() { echo out; echo err >&2; }; f 2> /dev/null; f > /dev/null 2>&1; f 2>&1 > /dev/null

### redirection in the definition
f() { echo in-file; } > out; f; cat out

### function in a pipeline
upper() { tr a-z A-Z; }; echo hello | upper | cut -c1-3

### function shadows a command
ls() { echo mine; }; ls; command ls photos | head -n 1; unset -f ls; ls photos | wc -l

### function calls a builtin of its name
cd() { builtin cd "$@" && echo "now in ${PWD##*/}"; }; cd tree; cd src

### type
f() { :; }; type -t f cd if ls; type -t nosuch; echo $?

### command -v
command -v cd; command -v if; command -v nosuch_x; echo $?

### FUNCNAME
outer() { inner; }; inner() { echo "${FUNCNAME[0]} ${FUNCNAME[1]}"; }; outer

### getopts
f() {
  local OPTIND=1 o
  while getopts 'ab:c' o; do
    case $o in
      a | c) echo "flag $o" ;;
      b) echo "b=$OPTARG" ;;
    esac
  done
  shift $((OPTIND - 1))
  echo "rest: $*"
}
f -a -b val -c x y; f -acbz -- -q

### getopts errors
while getopts ':x:' o -y -x; do echo "$o $OPTARG"; done

### options by a loop
set -- --name=ada -v file --out dir
while [ $# -gt 0 ]; do
  case $1 in
    --name=*) echo "name ${1#*=}" ;;
    --out) echo "out $2"; shift ;;
    -v) echo verbose ;;
    *) echo "arg $1" ;;
  esac
  shift
done

### export -f is not needed in subshells
f() { echo sub $1; }; (f 1); echo $(f 2); f 3 | cat

### readonly
readonly r=1; (r=2) 2> /dev/null; echo $? $r

### unset
a=1; unset a; echo "${a-gone}"; unset -v nothing; echo $?

### source with arguments
echo 'echo "$# $1"; v=set; return 3; echo never' > s.sh; . ./s.sh x y; echo "$? $v"

### recursion deep enough
f() { (($1 == 0)) && { echo bottom; return; }; f $(($1 - 1)); }; f 100

## Redirections

### output and append
echo a > f; echo b >> f; cat f; echo c > f; cat f

### input
wc -l < words.txt; < words.txt head -n 1

### order matters
{ echo o; echo e >&2; } 2>&1 > /dev/null | cat; { echo o; echo e >&2; } > both 2>&1; cat both

### both at once
{ echo o; echo e >&2; } &> f; cat f; { echo o2; echo e2 >&2; } &>> f; wc -l < f

### pipe both
{ echo o; echo e >&2; } |& sort

### swap
{ { echo o; echo e >&2; } 3>&1 1>&2 2>&3 | sed 's/^/piped /'; } 2> /dev/null

### several redirections
echo x > a > b; wc -c < a; cat b; cat < poem.txt < words.txt | head -n 1

### anywhere in the command
> f echo hello world; cat f; echo a > f b; cat f

### redirect only
> made; [ -e made ] && wc -c < made

### here-document
cat <<EOF
one
  two "quoted" 'single'
EOF

### here-document expands
a=val; cat <<EOF
$a ${a}x \$a $(echo sub) $((1 + 1)) \\ \n `echo old`
EOF

### quoted here-document
a=val; cat <<'EOF'
$a $(echo sub) \$ \\
EOF

### here-document strips tabs
cat <<-EOF
	indented
		twice
	EOF

### two here-documents
cat <<A - <<B; echo after
first
A
second
B

### here-document in a pipeline
cat <<EOF | tr a-z A-Z | sort
b
a
EOF

### here-document in a loop
for i in 1 2; do cat <<EOF
number $i
EOF
done

### here-document in a function
f() { cat <<EOF
hello $1
EOF
}
f ada

### here-document into while
while read -r a b; do echo "$b-$a"; done <<EOF
1 one
2 two words
EOF

### here-document keeps spaces and backslash newline
cat <<EOF
  a   b
joined \
line
EOF

### here-string
cat <<< "a  b"; v='x y'; cat <<< $v; wc -c <<< ''; tr a-z A-Z <<< hello

### open, write and read a channel
exec 3> f; echo one >&3; echo two >&3; exec 3>&-; cat f

### read line by line from a channel
exec 4< words.txt; read -r a <&4; read -r b <&4; exec 4<&-; echo "$a $b"

### read from two files at once
while read -r a <&3 && read -r b <&4; do echo "$a+$b"; done 3< old.conf 4< words.txt

### read -u
exec 5< cities.csv; read -r -u 5 head; read -r -u 5 first; echo "$head / $first"

### read and write
exec 3<> f; echo hello >&3; exec 3>&-; cat f

### close output
(echo x >&-) 2> /dev/null; echo $?

### closed channel is an error
(echo x >&7) 2> /dev/null; echo $?

### save and restore standard output
exec 3>&1 > f; echo hidden; exec 1>&3 3>&-; echo shown; cat f

### named channel
exec {fd}> f; echo text >&$fd; exec {fd}>&-; cat f; [ "$fd" -ge 10 ] && echo high

### missing input file
cat < none 2> /dev/null; echo $?; echo still here

### failed redirection skips the command
{ echo no > none/dir/f; } 2> /dev/null || echo failed

### noclobber
set -C; echo a > f; (echo b > f) 2> /dev/null; echo $?; echo c >| f; cat f; echo d >> f; cat f

### redirect a group and a subshell
{ echo a; echo b; } > f; (echo c; echo d) >> f; paste -sd, f

### redirect a loop's error
for i in 1 2; do echo $i; echo e$i >&2; done 2> err; cat err

### redirect if and case
if true; then echo in; fi > f; case x in x) echo case ;; esac >> f; cat f

### file names from variables
n=f; echo x > "$n.out"; echo y > $n.out2; cat f.out f.out2

### discard
echo gone > /dev/null; cat /dev/null; echo ok

### truncated by its own reader
sort words.txt -o words.txt; head -n 1 words.txt

### tee
echo a | tee f g; echo b | tee -a f > /dev/null; cat f g

### exec with redirection keeps going
exec 2> err; echo message >&2; echo out; cat err

### process substitution as a file
cat <(echo a) <(echo b); diff <(sort words.txt) <(sort -r words.txt | sort) && echo same

### process substitution as input
while read -r l; do n=$((${n:-0} + 1)); done < <(cat words.txt); echo $n

### output substitution
echo data | tee >(tr a-z A-Z > up) > /dev/null; for i in {1..50}; do [ -s up ] && break; sleep 0.02; done; cat up

### standard input is empty
cat; read -r x; echo $?

## Pipelines

### three stages
cat words.txt | sort | uniq -c | sed 's/^ *//'

### code of the last
false | true; echo $?; true | false; echo $?

### pipefail
set -o pipefail; false | true; echo $?; (exit 3) | (exit 4) | true; echo $?; true | true; echo $?

### PIPESTATUS
true | false | (exit 3); echo "${PIPESTATUS[@]}"; echo "${PIPESTATUS[0]}"

### PIPESTATUS kept
false | true; s=("${PIPESTATUS[@]}"); echo ${s[0]} ${s[1]} ${#s[@]}

### early end of the reader
yes | head -n 2

### endless writer under pipefail
set -o pipefail; yes | head -n 1; echo $?

### reader that reads nothing
seq 1 100000 | true; echo $?

### large data flows
seq 1 100000 | tail -n 1; seq 1 100000 | wc -c

### newline after a pipe
echo abc |
  tr a-z A-Z |

  cat

### negated pipeline
! echo x | grep -q y; echo $?

### builtins in stages
printf '%s\n' c a b | { read -r x; echo "first $x"; sort; }

### a stage cannot change the parent
echo x | read -r v; echo "[${v-unset}]"

### grouped stage with several readers
seq 1 5 | { head -n 1 > /dev/null; echo done; }

### ten stages
echo 0 | sed s/0/1/ | sed s/1/2/ | sed s/2/3/ | sed s/3/4/ | sed s/4/5/ | sed s/5/6/ | sed s/6/7/ | sed s/7/8/ | cat

### binary passes through
cat bytes.bin | cat | od -An -tx1 | head -n 2

### binary to the output
cat bytes.bin

### nul bytes and the last missing newline
printf 'a\0b' | tr '\0' '\n'; cat no-newline.txt

### code of a killed writer
{ yes; echo "yes: $?" >&2; } 2> f | head -n 1 > /dev/null; [ -e f ] && echo ended

## Subshells and background

### isolation
a=1; (a=2; b=3; echo $a); echo "$a ${b-unset}"

### directory comes back
(cd tree && ls | head -n 1); [ -d tree ] && echo back

### functions and options do not leak
(f() { :; }; set -f); type -t f || echo none; echo *.csv

### exit only leaves the subshell
(echo a; exit 3; echo b); echo $?

### nested
(echo 1; (echo 2; (echo 3)); echo 4) | paste -sd' '

### BASH_SUBSHELL
echo $BASH_SUBSHELL; (echo $BASH_SUBSHELL; (echo $BASH_SUBSHELL))

### background and wait
(exit 3) & wait $!; echo $?

### several in the background
for i in 3 1 2; do (echo $i > "out$i") & done; wait; cat out1 out2 out3

### codes of several
(exit 1) & a=$!; (exit 2) & b=$!; wait $b; echo $?; wait $a; echo $?

### wait for all is 0
false & wait; echo $?

### background group with output
{ echo one; echo two; } > f & wait; cat f

### background reads nothing
cat & wait $!; echo $?

### wait for a stranger
wait 999999 2> /dev/null; echo $?

### wait -n
(exit 5) & wait -n; echo $?

### background inherits variables
a=5; (echo $((a * 2)) > f) & wait; cat f

### kill a sleeper
sleep 5 & p=$!; kill $p; wait $p 2> /dev/null; echo $?

### kill 0 tells whether it lives
sleep 5 & p=$!; kill -0 $p && echo alive; kill -9 $p; wait $p 2> /dev/null; echo $?; kill -0 $p 2> /dev/null || echo gone

### background loop over a file
mkdir q; seq 1 3 > q/in; while read -r n; do echo $((n * n)); done < q/in > q/out & wait; cat q/out

### sleep takes fractions
sleep 0.01 && echo woke

## Options and traps

### errexit
set -e; echo a; false; echo b

### errexit leaves conditions alone
set -e; if false; then :; fi; false || true; ! true; while false; do :; done; false && true; echo alive

### errexit in the last of an and-list
set -e; true && false; echo never

### errexit in a function under if
set -e; f() { false; echo went on; }; if f; then echo yes; fi

### errexit in a function
set -e; f() { false; echo never; }; f; echo never

### errexit and substitution
set -e; a=$(false; echo x); echo "[$a]"; b=$(false); echo never

### errexit and subshell
set -e; (echo a; false; echo b); echo never

### errexit set in a subshell that is asked
(set -e; false; echo on) || echo failed; if (set -e; false; echo on); then echo yes; fi; (set -e; false; echo never); echo $?; x=$(set -e; false; echo never); echo "$? $x"
if sh -c 'set -e; false; echo never'; then :; else echo own; fi

### errexit and pipelines
set -e; false | true; echo alive; set -o pipefail; false | true; echo never

### errexit off again
set -e; set +e; false; echo alive

### errexit and local
set -e; f() { local a=$(false); echo hidden; }; f

### inherit_errexit
set -e; shopt -s inherit_errexit; a=$(false; echo x); echo "never $a"

### nounset
set -u; (echo "$nothing"; echo never) 2> /dev/null; echo $?; echo "${nothing-default}" "${nothing:+x}" ok

### nounset and positional parameters
set -u; set --; echo "$@" $# ok; (echo $1) 2> /dev/null; echo $?

### xtrace
exec 2>&1; set -x; a='x y'; echo "$a" b; set +x; echo quiet

### xtrace of loops and tests
exec 2>&1; set -x; for i in 1 2; do [ $i = 2 ] && echo two; done

### xtrace of double brackets, arithmetic and case
exec 2>&1; set -x; [[ a == a* ]] && ((1 + 1)); case x in x) : ;; esac

### xtrace with its own prompt
exec 2>&1; PS4='> '; set -x; echo $(echo in)

### verbose options in one word
set -euo pipefail; echo $-  | tr -cd eu; echo; set +eu; echo $- | tr -cd eu; shopt -qo pipefail && echo on

### dollar minus and set -o
set -f; case $- in *f*) echo f ;; esac; set -o | grep -c noglob

### allexport
set -a; A=exported; set +a; B=not; printenv A; printenv B; echo $?

### noexec
set -n; echo never

### trap EXIT
trap 'echo bye' EXIT; echo hi

### trap EXIT keeps the code
trap 'echo "code $?"' EXIT; exit 7

### trap EXIT may change the code
trap 'exit 9' EXIT; exit 7

### trap EXIT under errexit
set -e; trap 'echo cleanup' EXIT; false; echo never

### trap EXIT in a subshell
(trap 'echo inner' EXIT; echo body); trap 'echo outer' EXIT; (:); echo end

### trap removed
trap 'echo never' EXIT; trap - EXIT; echo end

### trap ERR
trap 'echo "err $?"' ERR; false; (exit 4); true; if false; then :; fi; false || true

### trap printed
trap 'echo x' EXIT; trap -p EXIT; trap - EXIT

### trap cleans up
t=$(mktemp -d); trap 'rm -rf "$t"; [ -e "$t" ] || echo removed' EXIT; echo data > "$t/f"; cat "$t/f"

### trap on a signal of its own
trap 'echo caught' USR1; kill -USR1 $$; echo after

### trap RETURN
f() { trap 'echo returning' RETURN; echo body; }; f

### trap DEBUG
trap 'n=$((n + 1))' DEBUG; n=0; :; :; trap - DEBUG; [ $n -ge 2 ] && echo counted

### set without arguments lists
v_one=1; set | grep '^v_one='

### set replaces parameters
set -- -a b; echo "$@"; set - x; echo "$@"; set -- ; echo $#

### line number
echo $LINENO
echo $LINENO

## read, printf, echo and other builtins

### read splits
read -r a b c <<< 'one two three four'; echo "$a|$b|$c"

### read strips and keeps
read -r a <<< '  x  y  '; echo "[$a]"; IFS= read -r a <<< '  x  y  '; echo "[$a]"

### read with backslashes
read a <<< 'a\tb\\c'; echo "$a"; read -r a <<< 'a\tb\\c'; echo "$a"

### read with a separator
IFS=: read -r u p _ h <<< 'root:x:0:home:rest'; echo "$u $p $h"

### read keeps empty fields
IFS=, read -r a b c <<< 'x,,z'; echo "[$a][$b][$c]"; IFS=$'\t' read -r a b c <<< $'x\t\tz'; echo "[$a][$b][$c]"

### read into an array
read -r -a w <<< 'a b c'; echo ${#w[@]} ${w[2]}; IFS=- read -ra d <<< 2024-03-15; echo "${d[@]}"

### read up to a delimiter
while IFS= read -r -d '' f; do echo "<$f>"; done < <(printf 'a b\0c\nd\0'); read -r -d ';' x <<< 'one;two'; echo $x

### read some characters
read -r -n 3 a <<< abcdef; echo $a; read -r -N 2 b <<< xyz; echo $b

### read without a final newline
while read -r l; do echo "[$l]"; done < no-newline.txt; while read -r l || [ -n "$l" ]; do echo "[$l]"; done < no-newline.txt

### read at the end
read -r a < empty.txt; echo "$? [$a]"

### read into REPLY
read -r <<< '  kept  '; echo "[$REPLY]"

### read leaves the rest
{ read -r first; cat; } < old.conf; echo $first

### printf formats
printf '%d|%5d|%-5d|%05d|%+d|%x|%X|%o|%#x\n' 42 42 42 42 42 255 255 8 255

### printf strings
printf '%s|%10s|%-10s|%.3s|%c\n' abc abc abc abcdef xyz

### printf floats
printf '%f|%.2f|%8.3f|%e|%g|%g\n' 3.14159 2.5 2.5 12345.678 0.0001 1000000

### printf reuses its format
printf '%s=%d\n' a 1 b 2 c; printf '%s\n'; printf 'no arguments\n'

### printf escapes
printf 'a\tb\\n\x41\101\n'; printf '%b|%s\n' 'x\ty' 'x\ty'; printf '%%|%5%|\n' 2> /dev/null | head -c 2

### printf quoted
printf '%q\n' 'a b' "it's" '$x' plain ''

### printf into a variable
printf -v v '%03d' 7; echo $v; printf -v 'a[1]' x; echo ${a[1]}

### printf width from arguments
printf '%*d|%-*s|%.*f\n' 5 42 6 ab 1 2.55

### printf character codes
printf '%d %d\n' "'A" '"a'; printf "\\x$(printf %x 65)\\$(printf %03o 66)\n"

### printf bad number
printf '%d\n' abc 2> /dev/null; echo $?; printf '%d\n' 0x1f 010

### printf without newline and dash
printf -- '-x\n'; printf '%s' a b; echo

### echo options
echo -n a; echo b; echo -e 'x\ty\n'; echo -E 'x\ty'; echo -x; echo -- -n; echo -en 'a\\b\c'; echo

### pwd and cd
cd tree/src; echo ${PWD##*/}; cd ..; echo ${PWD##*/}; cd src/inner; cd ../../doc; basename "$(pwd)"; echo ${OLDPWD##*/}; cd - > /dev/null; echo ${PWD##*/}

### cd fails
cd none 2> /dev/null; echo $?; cd words.txt 2> /dev/null; echo $?

### CDPATH
CDPATH=tree; cd src > /dev/null; ls | head -n 1

### pushd and popd
pushd tree > /dev/null; pushd src > /dev/null; echo ${PWD##*/}; popd > /dev/null; echo ${PWD##*/}; popd > /dev/null; [ -d tree ] && echo back

### export and environment
A=1; export B=2; env | grep -E '^[AB]='; export A; printenv A

### unexport
export A=1; export -n A; printenv A; echo "$? $A"

### env with changes
env A=1 B=2 printenv A B; env -i X=y env; env -u A A=3 printenv A

### env runs a command
env FOO=bar sh -c 'echo $FOO' 2> /dev/null || env FOO=bar bash -c 'echo $FOO'

### sh -c with arguments
sh -c 'echo "$0 $1 $#"' name a b; bash -c 'exit 9'; echo $?

### script by sh
sh tree/greet.sh one 'two three'

### exec replaces the shell
exec echo last; echo never

### aliases
shopt -s expand_aliases
alias hi='echo hello'
hi there
unalias hi; alias hi 2> /dev/null || echo none

### special builtins are builtins
for c in : . [ cd echo eval exec exit export printf read set shift test trap unset wait; do type -t -- "$c"; done | sort | uniq -c | sed 's/^ *//'

### umask
umask 027; umask

### hash and ulimit
hash -r; echo $?; ulimit -c 0; echo ok

### let and test in conditions
if let 'x = 5 > 3'; then echo $x; fi

### dirname and basename
dirname a/b/c; basename a/b/c.txt .txt; basename -a x/y z/w; dirname file

### SECONDS
SECONDS=0; [ "$SECONDS" -lt 5 ] && echo soon

### RANDOM
a=$RANDOM; [ "$a" -ge 0 ] && [ "$a" -le 32767 ] && echo range

### underscore and dollar dollar
: a b last; echo $_; [ -n "$$" ] && echo pid

### code of echo
true; echo $?; false; echo $?; echo $?

### read timeout not reached
read -t 1 x <<< quick; echo $x

## Commands

### xargs
printf 'a b\nc\n' | xargs; printf 'a b\nc\n' | xargs -n 1; printf 'a\nb\n' | xargs -I{} echo '<{}>'

### xargs with quotes
printf '"a b" c\\ d\n' | xargs -n 1 printf '<%s>\n'

### xargs by lines and nulls
printf 'a b\nc d\n' | xargs -d '\n' -n 1 printf '<%s>'; printf 'x y\0z' | xargs -0 printf '[%s]'

### xargs nothing
xargs echo none < empty.txt; xargs -r echo none < empty.txt

### xargs code
printf '1\n' | xargs false; echo $?; echo x | xargs nosuch_x 2> /dev/null; echo $?

### xargs with a shell
printf 'a\nb\n' | xargs -I% sh -c 'echo "got %"'

### xargs in groups
seq 6 | xargs -n 3 echo row; seq 4 | xargs -L 2

### find by name and type
find tree -name '*.c' | sort; find tree -type d | sort; find . -maxdepth 1 -iname '*.LOG' | sort

### find with logic
find tree \( -name '*.h' -o -name '*.md' \) ! -name 'index*' | sort

### find -exec
find tree -name '*.md' -exec head -n 1 {} \; | sort; find photos -type f -exec echo {} + | tr ' ' '\n' | sort

### find by size
find . -maxdepth 1 -size -1c -type f; find tree -size +300c -type f

### find prune and depth
find tree -name src -prune -o -type f -print | sort; find tree -mindepth 2 -maxdepth 2 -type f | sort

### find delete
find photos -name '*.JPG' -delete; ls photos

### find by path and regex
find tree -path '*inner*' | sort; find tree -regex '.*\.[ch]' | sort

### find printf
find tree/src -maxdepth 1 -type f -printf '%f %s\n' | sort

### find in a loop with nulls
find . -name '* *' -type f -print0 | sort -z | while IFS= read -r -d '' f; do echo "<${f#./}>"; done

### find missing
find none 2> /dev/null; echo $?

### grep basics
grep apple words.txt; grep -c apple words.txt; grep -n cherry words.txt; grep -v a words.txt; echo $?

### grep codes
grep -q apple words.txt; echo $?; grep -q zzz words.txt; echo $?; grep x none 2> /dev/null; echo $?

### grep context
grep -A1 -B1 WARN app.log | head -n 4; grep -C1 disk app.log

### grep options
grep -i THE poem.txt | wc -l; grep -w the poem.txt | wc -l; grep -x 'Riding, riding,' poem.txt; grep -m1 apple words.txt; grep -o 'r[a-z]*ing' poem.txt | sort | uniq -c | sed 's/^ *//'

### grep several patterns
grep -e WARN -e ERROR app.log | wc -l; printf 'banana\ncherry\n' > pats; grep -f pats words.txt; grep -Ff pats -c words.txt

### grep basic and extended
grep 'a\{1\}p\+' words.txt | sort -u; grep -E 'an{1}a|ch?' words.txt | sort -u; grep 'a|b' words.txt; echo $?

### grep back-reference
printf 'abca\nabc\n' | grep '^\(.\).*\1$'

### grep perl classes
grep -P '^\d{2,}$' numbers.txt

### grep perl lookbehind
grep -oP '(?<=user":")[a-z]+' events.jsonl | sort -u

### grep over files
grep -c a words.txt poem.txt; grep -h '^b' old.conf new.conf; grep -H '^c' old.conf; grep -l apple *.txt

### grep recursive with include
grep -rn --include='*.c' int tree | sort; grep -r --exclude-dir=src -l . tree | sort

### grep binary
grep -c kiso bytes.bin; grep -a -o kiso bytes.bin

### grep standard input with names
echo abc | grep -H b; echo abc | grep -n b -; grep -s x none; echo $?

### grep byte offsets and only matching numbers
grep -b -o apple words.txt; grep -on 'an' words.txt

### sed substitute
sed 's/a/A/' words.txt | head -n 2; sed 's/a/A/g;s/p\(p\)/[\1]/' words.txt | sed -n 2p; sed 's/a/A/2' words.txt | head -n 1; sed 's|a|/|' words.txt | head -n 1

### sed flags
echo 'Hello hello' | sed 's/hello/x/I'; echo aaa | sed 's/a/b/2g'; echo abc | sed -n 's/b/X/p'; echo 'a.b' | sed 's/\./&&/'

### sed extended
sed -E 's/^([0-9]+),([^,]+).*/\2 (\1)/' people.csv | tail -n 2; echo abc123 | sed -E 's/[a-z]+([0-9]+)/\1/'

### sed addresses
sed -n '2p;$p' words.txt; sed '2,4d' words.txt; sed -n '/cherry/,$p' words.txt; sed '/apple/!d' words.txt; sed -n '2,+1p' words.txt

### sed commands
printf 'a\nb\n' | sed 'a after' ; printf 'a\nb\n' | sed '1i before'; printf 'a\nb\n' | sed '2c changed'; printf 'abc\n' | sed 'y/abc/xyz/'; printf 'a\nb\n' | sed '='

### sed hold space
sed -n '1!G;h;$p' old.conf; printf 'a\nb\n' | sed 'N;s/\n/+/'; printf 'a\nb\nc\n' | sed '$!N;P;D'

### sed branches
printf 'a,b,c\n' | sed ':x;s/,/;/;tx'; printf 'x\ny\n' | sed '/x/{s/x/1/;b};s/$/!/'

### sed several scripts
sed -e 's/a/1/' -e 's/b/2/' <<< ab; printf 's/x/y/\n' > s.sed; sed -f s.sed <<< x; sed q words.txt; sed -n '2{p;q}' words.txt

### sed case conversion
echo 'hello world' | sed 's/\w\+/\u&/g'; echo abc | sed 's/.*/\U&/'

### sed quit code and empty regex
sed '2q5' words.txt; echo $?; echo foo | sed '/foo/s//bar/'

### sed reads and writes files
sed -n '/apple/w out' words.txt; wc -l < out; sed '1r old.conf' words.txt | head -n 3

### chmod and a script
printf '#!/bin/sh\necho "got $#"\n' > s.sh; chmod +x s.sh && ./s.sh a b; chmod 644 old.conf new.conf; chmod -R u=rwX,go-w tree; chmod -x s.sh; echo $?; chmod 999 old.conf 2> /dev/null; echo $?; chmod +x none 2> /dev/null; echo $?

### install
install -d a/b; install -m 755 old.conf a/b/; install -D new.conf x/y/z.conf; ls a/b x/y; install -t a old.conf new.conf; ls a; install old.conf 2> /dev/null; echo $?

### sed hexadecimal characters
printf 'a.b\033[31mred\n' | sed 's/\x1b\[[0-9]*m//; s/\x2e/-/; s/b/\x41\x42/'; echo a | sed 's/a/\x1b[1m&\x1b[0m/' | od -An -tx1; echo 'a&b' | sed 's/\x26/+/; s/b/\x42/'

### awk fields
awk -F, '{ print $2, $NF }' cities.csv; awk 'NR == 2 { print NF, $1 }' poem.txt

### awk begin and end
awk 'BEGIN { OFS = "-" } { $1 = $1; print } END { print NR }' fruit.tsv

### awk variables and functions
awk -v min=40 -F, 'function f(s) { return toupper(substr(s, 1, 3)) } NR > 1 && $4 > min { print f($2) }' people.csv

### awk strings
awk 'BEGIN { s = "a:b:c"; n = split(s, p, ":"); print n, p[3], length(s), index(s, "b"); gsub(/:/, "+", s); print s; print match("foobar", /o+/), RSTART, RLENGTH; print tolower("ABC"), sprintf("%03d", 7) }'

### awk arrays and loops
awk 'BEGIN { for (i = 1; i <= 3; i++) a[i] = i * i; delete a[2]; for (i = 1; i <= 3; i++) if (i in a) print i, a[i]; while (j < 2) print "j" j++ }'

### awk patterns
awk '/ERROR/,/INFO/ { print NR }' app.log; awk 'length > 40 { n++ } END { print n + 0 }' app.log; awk '$2 ~ /^E/ && !/mail/ { print $3 }' app.log

### awk two files
awk -F, 'NR == FNR { c[$1] = $2; next } FNR > 1 { print $2, ($3 in c ? c[$3] : "?") }' cities.csv people.csv

### awk getline and pipes of its own
awk 'BEGIN { while ((getline l < "old.conf") > 0) n++; print n }'; awk '{ print > "out" } END { close("out") }' old.conf; cat out

### awk assignments of the command line (needs gawk)
gawk -F, -v OFS=';' 'NR < 3 { print $1, $2 }' cities.csv; gawk -vOFS='\t' '{ $1 = $1 } 1' old.conf new.conf | head -n 2
gawk '{ print x, $0 }' x=1 old.conf x=two new.conf; gawk -F= '{ print $2 }' old.conf

### awk rules on one line
awk -F= '{ n += $2 }; END { print n }; function f(x) { return x }' old.conf; awk 'BEGIN { x = 1; if (x) print "a"; else print "b" }; END { print NR }' words.txt

### awk columns by name
awk -F, 'NR == 1 { for (i = 1; i <= NF; i++) h[$i] = i; next } $h["age"] > 50 { print $h["name"], $(h["age"] + 0) }' people.csv

### awk runs commands
awk 'BEGIN { system("echo one; exit 3"); code = system("exit 3"); print code; system("cat old.conf | head -n 1"); print "two" }'

### awk reads from commands (needs gawk)
gawk 'BEGIN { while (("sort -u words.txt" | getline line) > 0) n++; print n, line; close("sort -u words.txt"); "echo a b c" | getline; print $2, NR; "date +%Y" | getline y; print (y > 2000) }'

### awk prints to commands
awk -F, 'NR > 1 { print $4 | "sort -n | head -n 2" } END { close("sort -n | head -n 2"); print "end" }' people.csv
awk 'BEGIN { print "b\na" | "sort"; print "first" > "/dev/stderr" }' 2> /dev/null; seq 3 | awk '{ print > ("out" $1) } END { close("out2"); while ((getline l < "out2") > 0) print "read " l }'

### awk getline in all forms
awk 'NR == 1 { getline; print "after", $0, NR; getline x; print x, NR, $0; r = getline y < "none"; print r; getline < "old.conf"; print $0, NR }' words.txt
awk 'BEGIN { while ((getline line < ARGV[1]) > 0) n += length(line); print n }' poem.txt

### awk gensub (needs gawk)
gawk 'BEGIN { print gensub(/([a-z]+) ([a-z]+)/, "\\2 \\1", "g", "ab cd ef gh"); print gensub(/o/, "0", 2, "foo boo"); print gensub("b", "[&]", 1, "abab") }'; echo 'k=v; x=y' | gawk '{ print gensub(/(\w)=(\w)/, "\\2:\\1", "g") }'

### awk functions of gawk (needs gawk)
gawk 'BEGIN { print strftime("%Y-%m-%d %H:%M:%S", 86400, 1), mktime("1970 01 02 00 00 00"); print and(12, 10), or(12, 10), xor(12, 10), lshift(1, 4), rshift(16, 2); print strtonum("0x1F"), strtonum("017"); print toupper("abc") tolower("ABC"); n = split("c a b", p); asort(p); print p[1] p[2] p[3], n }'
gawk 'BEGIN { if (match("2024-03-15", /([0-9]+)-([0-9]+)/, m)) print m[1], m[2], RSTART, RLENGTH; a["x"]["y"] = 1; print isarray(a["x"]), length(a); n = patsplit("a1b22", q, /[0-9]+/); print n, q[2] }'

### awk sorted arrays (needs gawk)
gawk -F, 'NR > 1 { s[$3] += $4 } END { PROCINFO["sorted_in"] = "@ind_str_asc"; for (k in s) print k, s[k]; PROCINFO["sorted_in"] = "@val_num_desc"; for (k in s) { print k; break } }' orders.csv
gawk 'function by(i, a, j, b) { return b - a } BEGIN { split("3 1 2", a); PROCINFO["sorted_in"] = "by"; for (i in a) print a[i]; n = asorti(a, b); print n, b[1] }'

### awk switch and fields by content (needs gawk)
echo 'a,"b,c",d' | gawk -v FPAT='[^,]*|"[^"]*"' '{ print NF, $2 }'; echo 'abcdef' | gawk 'BEGIN { FIELDWIDTHS = "2 3 1" } { print $1, $2, $3 }'
gawk 'BEGIN { for (i = 1; i < 5; i++) switch (i) { case 1: print "one"; break; case /[23]/: print "few"; break; default: print "many" } }'

### awk inplace (needs gawk)
gawk -i inplace '{ gsub(/a/, "A") } 1' old.conf new.conf; cat old.conf new.conf

### awk ignores case (needs gawk)
printf 'Foo\nBAR\n' | gawk 'BEGIN { IGNORECASE = 1 } /bar/ { print "r", $0 } $1 == "foo" { print "s", $0 }'

### awk values without a value (needs gawk)
gawk 'BEGIN { if (!x && x == 0 && x == "") print "both"; print x + 0, length(x), (y in a), length(a); f(z); print length(z) } function f(p) { p["k"] = 1 }' && gawk '{ print ($1 == 10), ($1 < 9), ($1 "" < 9) }' <<< '10.0'

### awk numbers and texts (needs gawk)
printf '10\n9\nabc\n1e1\n' | gawk '{ print ($1 > 9.5), ($1 == 10), $1 + 0, -$1 }'; gawk 'BEGIN { print 1e6, 1e20, 0.1 + 0.2, 1 / 3, 100000 * 100000, -0, 1e-5; CONVFMT = "%.2g"; a[0.123] = 1; for (k in a) print k; OFMT = "%.1f"; print 3.14159, 3.14159 "" }'

### awk printf (needs gawk)
gawk 'BEGIN { printf "%5.2f|%-5s|%05d|%x|%o|%e|%g|%c|%c|%i|%%|%+d|% d|%.3s|%*d\n", 3.14159, "ab", 42, 255, 8, 12345.678, 0.0001, 65, "hello", 3.9, 5, 5, "abcdef", 6, 7; printf("%s %s\n", "a", "b"); printf "%s\n", 1e300 * 10; printf "%d %s\n", "12abc", 0.1 }'

### awk field separators
echo 'a1b22c' | awk -F'[0-9]+' '{ print $1 $2 $3, NF }'; echo 'a|b|c' | awk -F'|' '{ print $2 }'; printf 'a\t\tb c\n' | awk -F'\t' '{ print NF, $3 }'; echo abc | awk 'BEGIN { FS = "" } { print $2, NF }'; echo ' a  b ' | awk '{ print $2, NF }'; echo 'a.b.c' | awk -F. '{ print $3 }'; echo 'a::b' | awk -F:: '{ print $2 }'

### awk record separators (needs gawk)
printf 'a b\nc\n\n\nd\ne\n' | gawk 'BEGIN { RS = "" } { print NR ": " $1 "," $NF, NF }'; printf 'a b\nc:d\n\ne:f\n' | gawk 'BEGIN { RS = ""; FS = ":" } { print $1 "/" $2 "/" $3 }'; printf 'a;b;c' | gawk 'BEGIN { RS = ";" } { print NR, $0 }'; printf 'a12b345c\n' | gawk 'BEGIN { RS = "[0-9]+" } { print NR, $1 }'

### awk changes fields
echo 'a b c' | awk '{ $2 = "x"; print; print NF; $5 = "e"; print; NF = 2; print; $0 = "p q r"; print $3, NF; $NF = ""; print; print NF }' OFS=-; echo 'a b' | awk '{ $3 = $1; $1 = ""; print; print $3 }'

### awk sub and gsub
echo 'hello world' | awk '{ n = gsub(/o/, "[&]"); print n, $0; sub("l+", "\\&"); print; gsub(/x*/, "-", $2); print $2; s = "aaa"; print gsub(/^a/, "b", s), s; t = "a.b.c"; gsub(/\./, "", t); print t; u = "path/to"; gsub("/", "\\", u); print u }'

### awk keeps the last record
awk 'END { print NR, NF, $0, $1 }' poem.txt; awk '{ n = split($0, c, "") } END { print n, c[1], $0 }' old.conf; awk 'END { while ((getline l < "new.conf") > 0) n++; print n, $0 }' old.conf; echo abc | awk '{ print split($0, x, //), x[3] }'

### awk regular expressions (needs gawk)
printf 'ab12\nfoo bar\na+b\n[x]\n' | gawk '/^[[:alpha:]]+[[:digit:]]{2}$/ { print "class", $0 } /\+/ { print "plus", $0 } /[]x]/ { print "bracket", $0 } $0 ~ "o+ b" { print "text", $0 } match($0, /o|oo/) { print RSTART, RLENGTH }'

### awk functions (needs gawk)
gawk 'function fact(n) { return n <= 1 ? 1 : n * fact(n - 1) } function fill(a, n,  i) { for (i = 1; i <= n; i++) a[i] = i * i } function none() { return } BEGIN { print fact(10); fill(sq, 5); print sq[5], length(sq); print none() "x"; print deep(900) } function deep(n) { return n ? 1 + deep(n - 1) : 0 }'

### awk subscripts
awk 'BEGIN { a[1, 2] = 3; for (k in a) { split(k, p, SUBSEP); print p[1], p[2] }; print ((1, 2) in a), ((2, 1) in a); delete a[1, 2]; print length(a); b["x"]; if ("x" in b) print "there"; delete b; print length(b); SUBSEP = ":"; c["p", "q"] = 1; for (k in c) print k }'

### awk control flow
awk 'BEGIN { do { i++; if (i == 2) continue; if (i > 4) break; printf "%d ", i } while (1); print ""; for (;;) if (++j > 3) break; print j; while (k < 2) k++; print k; exit 7 } END { print "end" }'; echo $?; awk '/a/ { next } { print } NR == 5 { exit }' words.txt; awk 'FNR == 2 { nextfile } { print FILENAME, FNR, NR }' old.conf new.conf

### awk ranges
awk 'NR == 2, NR == 4' poem.txt | wc -l; seq 10 | awk '/2/, /4/ { print "r" $0 } /9/, /nothing/'

### awk precedence
awk 'BEGIN { print 1 " " -1; print 2 ^ 3 ^ 2, -2 ^ 2, !0 + 1, 1 + 2 "3" 4 * 2; print 1 == 1 ? "y" : "n", 5 % 3 * 2; x = y = 3; x += y -= 1; print x, y, x++ + ++x, x--; $0 = "3 4"; i = 1; print $i++, i, $NF - 1 }'

### awk environment and arguments
KEY=value awk 'BEGIN { print ENVIRON["KEY"], ARGC, ARGV[1], ARGV[2]; ARGV[1] = ""; } { print FILENAME, $0; exit }' nothing old.conf

### awk programs in files
printf 'function twice(x) {\n  return x * 2  # a comment\n}\n' > lib.awk; printf 'BEGIN { print twice(21),\n  "and" \\\n  " on" }\n' > main.awk; awk -f lib.awk -f main.awk

### awk mistakes (needs gawk)
gawk 'BEGIN { print "before"; x = 0; print 1 / x }' 2> /dev/null; echo $?; gawk 'BEGIN { print "a" ' 2> /dev/null || echo syntax; gawk '{ print }' none 2> /dev/null; echo $?; gawk 'BEGIN { nothing(1) }' 2> /dev/null || echo unknown; gawk 'BEGIN { print > "" }' 2> /dev/null; echo $?

### awk long texts
awk 'BEGIN { for (i = 0; i < 100000; i++) s = s "x"; print length(s); for (i = 0; i < 50000; i++) a[i] = i; for (k in a) t += a[k]; print t }'

### awk uuoc
awk 'END { print NR }' < words.txt; awk 'NR % 2' old.conf; awk '{ print length }' old.conf; awk 'length' old.conf | wc -l; awk '{ $1 = $1 }; 1' fruit.tsv | head -n 1; awk '{ print NF ? $NF : "-" }' poem.txt | head -n 1; awk 'NF { $1 = ""; print substr($0, 2) }' poem.txt | head -n 1

### awk exit code
awk 'BEGIN { exit 3 }'; echo $?

### awk separators
printf 'a;b c\n' | awk -F'[; ]' '{ print $3 }'; printf 'x\n\ny z\n' | awk 'BEGIN { RS = "" } { print NR ": " $1 }'

### cut
cut -c1-3 words.txt | head -n 1; cut -d= -f2- settings.ini | head -n 3; echo a:b:c | cut -d: -f1,3 --output-delimiter=-; echo abc | cut -b2; echo 'no delimiter' | cut -d, -f2 -s

### tr
echo hello | tr a-y b-z; echo 'a  b' | tr -s ' '; echo a1b2 | tr -d 0-9; echo abc | tr -c 'a\n' x; echo 'A b' | tr '[:upper:] ' '[:lower:]_'

### sort
sort -n numbers.txt | paste -sd' '; sort -rn numbers.txt | head -n 1; sort -u words.txt; sort -t, -k4,4n -k2,2r people.csv | head -n 3

### sort more
printf '10K\n2M\n1G\n5\n' | sort -h; printf 'v1.10\nv1.9\n' | sort -V; printf 'b\nA\na\nB\n' | sort -f -s; sort -c words.txt 2> /dev/null; echo $?

### uniq
uniq words.txt; sort words.txt | uniq -u; sort words.txt | uniq -c | awk '{ print $1 }' | paste -sd,; printf 'a\nA\n' | uniq -i

### head and tail
head -c 5 poem.txt; echo; tail -c 5 poem.txt; tail -n +5 words.txt; head -n 1 old.conf new.conf

### wc
wc -l < poem.txt; wc -w < poem.txt; wc -c < bytes.bin; wc -l empty.txt no-newline.txt; wc -L words.txt

### nl and cat
nl -ba old.conf; cat -n old.conf; cat -A fruit.tsv | head -n 1; cat -s notes.txt | wc -l; cat -b notes.txt | tail -n 1 | cut -f1

### paste and fold
paste old.conf new.conf; paste -d, -s old.conf; echo abcdefgh | fold -w 3; fold -s -w 20 poem.txt | head -n 3

### seq
seq 3; seq 2 4; seq 10 -5 0; seq -w 8 11; seq -s, 5; seq -f '%03g' 2

### date of a fixed moment
date -u -d @0 +%Y-%m-%d; date -u -d '2024-02-29 12:30' '+%d.%m.%y %H:%M %j %a'

### date arithmetic
date -u -d '2024-03-01 +1 day' +%F; date -u -d '2024-03-01 12:00:00 UTC' +%s

### cp, mv, rm
cp words.txt w2; cp -r photos p2; mv w2 p2/; ls p2; rm p2/w2; rm -r p2; rm none 2> /dev/null; echo $?; rm -f none; echo $?

### mkdir and rmdir
mkdir a; mkdir a 2> /dev/null; echo $?; mkdir -p a/b/c x/y; rmdir a/b/c; rmdir a/b; ls -d a x/y

### cp into directories
mkdir d; cp old.conf new.conf d; ls d; cp -n words.txt d/old.conf 2> /dev/null; head -n 1 d/old.conf; mv -t d numbers.txt; ls d

### touch and truncate
touch t; wc -c < t; truncate -s 10 t; wc -c < t; truncate -s 3 words.txt; cat words.txt

### ls
ls photos; ls -1 tree; ls -a tree | head -n 3; ls -d */; ls -r photos | head -n 1; ls none 2> /dev/null; echo $?

### ls classify and recursive
ls -F tree; ls -R tree/src; ls -p | grep /

### stat
stat -c '%s %F %n' words.txt empty.txt; stat -c %F tree

### du
du -b words.txt poem.txt | cut -f1

### du of files with several names
printf 0123456789 > a; ln a b; printf x > c; du -b a b c; du -bl a b c; du -bc a a b | tail -n 1

### realpath and readlink
cd tree; realpath --relative-to=. src/../doc/index.md; ln -s src l; readlink l; basename "$(realpath l)"

### mktemp
f=$(mktemp); echo data > "$f"; cat "$f"; rm "$f"; d=$(mktemp -d); [ -d "$d" ] && echo dir; rmdir "$d"; mktemp -u local.XXXXXX | wc -c

### comm and join of the same files
comm old.conf new.conf; join -t= old.conf new.conf

### od and friends
printf 'AB\n' | od -An -tx1; printf 'AB' | od -An -tu1; printf '\377' | od -An -to1; echo hi | od -c

### numfmt and factor
numfmt --to=iec 1048576; numfmt --from=si 2K; factor 360

### expand and unexpand
printf 'a\tb\n' | expand -t 4 | cat -A; printf '        x\n' | unexpand | cat -A

### fmt and pr
printf 'one two three four five six\n' | fmt -w 12

### shuf keeps all
seq 10 | shuf | sort -n | paste -sd,

### tsort
printf 'a b\nb c\na c\n' | tsort

### csplit
csplit -s settings.ini '/^\[server\]/' && head -n 1 xx01

### split by bytes with suffixes
split -b 100 -d tree/big.txt n. ; ls n.* | wc -l; wc -c < n.00

### dd
dd if=poem.txt bs=10 count=2 skip=1 2> /dev/null; echo

### cmp
cmp words.txt words.txt; echo $?; cmp old.conf new.conf | sed 's/char/byte/'; cmp old.conf new.conf > /dev/null; echo $?; cmp -s old.conf new.conf; echo $?

### diff side by side
diff -y -W 20 old.conf old.conf | head -n 1

### diff options
diff --brief old.conf new.conf; diff -i <(echo A) <(echo a); echo $?; diff -w <(echo 'a  b') <(echo 'a b'); echo $?

### diff of directories
cp -r tree t2; echo more >> t2/doc/index.md; rm t2/src/lib.h; diff -rq tree t2; echo $?

### timeout
timeout 0.1 sleep 5; echo $?; timeout 5 echo fine; echo $?; timeout 5 sh -c 'exit 3'; echo $?

### which
which nosuch_x > /dev/null 2>&1; echo $?; which cat > /dev/null; echo $?

### endless input, few lines
yes no | head -n 3 | uniq -c | sed 's/^ *//'

### base32 and b2sum
printf kiso | base32; printf kiso | b2sum | cut -c1-16; printf kiso | sha512sum | cut -c1-16

### sha256sum of binary and spaces in names
sha256sum bytes.bin 'two words.txt' | cut -c1-8,65-

### bc-like sums by awk
echo '2.5 4' | awk '{ print $1 * $2 }'

### unlink and link
ln -s tree/doc d; ls d/; unlink d; [ -e d ] || echo gone

### wc of many
find tree -name '*.md' -print0 | sort -z | xargs -0 wc -l

### install-like copy with parents
mkdir -p out/etc && cp settings.ini out/etc/app.ini && find out -type f

### tail follows nothing
tail -n 1 app.log | cut -c1-10; tail -n 0 app.log; tail -q -n 1 old.conf new.conf

### sort by month and ignoring blanks
printf 'Mar\nJan\nFeb\n' | sort -M; printf '  b\na\n' | sort -b; printf '3 x\n1 y\n' | sort -k2 -r

### printenv of an unset name
printenv NOT_SET_X; echo $?

### pathchk and tty
pathchk words.txt; echo $?; tty > /dev/null; echo $?

### nproc is a number
[ "$(nproc)" -ge 1 ] && echo some

### tar with exclusion and other directory
tar -cf t.tar --exclude='*.md' tree; tar -tf t.tar | grep -c md; mkdir o; tar -xf t.tar -C o --strip-components=1; ls o

### tar appends and lists long names
tar -cf t.tar words.txt; tar -rf t.tar poem.txt; tar -tf t.tar

### tar says what it is told of each file
tar --sort=name --mtime='2020-02-03 04:05Z' --owner=0 --group=0 --numeric-owner --mode=600 -cf a.tar words.txt tree/doc
TZ=UTC tar --numeric-owner -tvf a.tar; cat a.tar | md5sum > first; touch words.txt tree/doc/*
tar --sort=name --mtime=./a.tar --owner=ann:7 --group=crew:8 -cf b.tar poem.txt; [ "$(TZ=UTC tar -tvf b.tar | cut -d' ' -f2)" = ann/crew ] && echo ann
mkdir o; tar -xf a.tar -C o; TZ=UTC date -r o/words.txt +%F; tar -xmf a.tar -C o; [ o/words.txt -nt tree/doc/index.md ] || [ "$(date -r o/words.txt +%Y)" -gt 2020 ] && echo now

### gzip keeps codes
gzip -t words.txt 2> /dev/null; echo $?; printf x | gzip | gzip -l > /dev/null 2>&1; gzip < words.txt > w.gz; gzip -t w.gz; echo $?

### ten thousand arguments
set -- $(seq 10000); echo $#; printf '%s\n' "$@" | tail -n 1; echo "$@" | wc -w

### long loop
i=0; while ((i < 5000)); do ((i++)); done; echo $i

### long string
s=; for i in {1..1000}; do s+=abc; done; echo ${#s}

## Syntax

### unfinished if is code 2
if true; then echo x

### stray parenthesis is code 2
echo a )

### stray done is code 2
done

### unfinished quote is code 2
echo "never

### error in eval
eval 'if' 2> /dev/null; echo $?

### error in a sub-shell's line
sh -c 'fi' 2> /dev/null; echo $?

### only a comment
# nothing

### semicolons and newlines
echo a; echo b;
echo c &&

echo d

### here-document in a substitution
v=$(cat <<EOF
in $((1 + 1))
EOF
); echo "[$v]"

### here-document as the condition of if
if grep -q b <<EOF
abc
EOF
then echo found; fi

### compound commands in one line
if true; then for i in 1 2; do case $i in 1) { echo one; } ;; *) (echo two) ;; esac; done; fi | cat

### continuation in a pipeline
printf 'b\na\n' \
  | sort \
  | head -n 1

### comments between
for i in 1 2; do # first
  # second
  echo $i # third
done # fourth

### keywords quoted are commands
'if' 2> /dev/null; echo $?; \for 2> /dev/null; echo $?

### assignment or word
a=1b=2 eval 'echo $a'; x = 1 2> /dev/null; echo $?; echo a=b

### substitution is a command name
c=echo; $c word; $(echo printf) '%s\n' x; "$c" y; e=; $e echo z

### empty command keeps the code
false; e=; $e; echo $?; $(exit 3); echo $?

### double parentheses that are subshells
( (echo a) ); ((1 > 0)) && echo b

### negated group and subshell
! { true; } && ! (true) || echo c

### exec of an unknown command
(exec nosuch_x) 2> /dev/null; echo $?

### function names with dashes and dots
my-func() { echo dash; }; my.func() { echo dot; }; my-func; my.func

### upper and lower variables
declare -u up=abc; declare -l low=ABC; up+=x; echo $up $low; v=aBc; echo ${v@U} ${v@L}

### declared constants and exports
declare -r c=1; declare -x E=env; printenv E; (c=2) 2> /dev/null; echo $?; local x 2> /dev/null; echo $?

### declare -f shows that it is one
f() { :; }; declare -F f; declare -F none_x; echo $?

### local separator
f() { local IFS=,; echo "$*"; }; f a b; set -- c d; echo "$*"

### prefix each element
a=(x y); echo "${a[@]/#/p-}" "${a[@]/%/.s}"; set -- x y; echo "${@/#/q}"

### ignored signal
trap '' USR1; kill -USR1 $$; echo alive

### code of a line killed by itself
kill -9 $$

### terminated by itself
(kill -TERM $BASHPID; echo never); echo $?

### test of a terminal
[ -t 0 ] || echo no-input; [ -t 1 ] || echo no-output

### same channel twice
exec 3> f; echo a >&3; echo b >> f; echo c >&3; exec 3>&-; wc -l < f

### child reads where the shell stopped
{ read -r a; head -n 1; read -r b; echo "$a $b"; } < <(seq 3) | head -n 1

### unset and set of IFS
unset IFS; set -- $(printf 'a b\tc\nd'); echo $#; IFS=; echo $(echo 'a b')

### dollar at in double quotes with nothing
set --; for a in "$@"; do echo never; done; for a in "${none[@]}"; do echo never; done; echo ok

### default of at
set --; echo "${@:-none}" "${1:-first}"; set -- x; echo "${@:-none}" "${*:+some}"

### arithmetic on array by name
declare -A t=([x]=1); ((t[x] += 4)); echo ${t[x]}; a[2]=5; ((a[2]++)); echo ${a[2]}

### parameter length of special ones
set -- a bb; echo ${#1} ${#2} ${#*} ${#?}

### pattern with brackets and dashes
for w in a-b a_b a]b; do case $w in *[]_]*) echo "$w yes" ;; *[-]*) echo "$w dash" ;; esac; done

### backslash at the end of a pattern
v='a\b'; echo "${v%\\*}" "${v//\\/\/}"

### comparison of versions
v() { [ "$1" = "$(printf '%s\n%s\n' "$1" "$2" | sort -V | head -n 1)" ]; }; v 1.9 1.10 && echo older; v 2.0 1.10 || echo newer

### trim spaces
s='  in the middle  '; s=${s#"${s%%[![:space:]]*}"}; s=${s%"${s##*[![:space:]]}"}; echo "[$s]"

### repeat a string
printf -v line '%*s' 10 ''; echo "${line// /=}"

### split a string into an array
IFS=';' read -ra parts <<< 'a;b c;;d'; printf '<%s>' "${parts[@]}"; echo ${#parts[@]}

### walk over characters
s=abc; for ((i = 0; i < ${#s}; i++)); do printf '%s.' "${s:i:1}"; done

### bytes that are not characters in a variable
v=$(printf 'a\351b'); printf %s "$v" | od -An -tx1; read -r w < <(printf '\377\n'); printf %s "$w" | od -An -tx1

### bytes that are not characters in an argument
printf '%s' $'\xe9\xff' | od -An -tx1; echo -e '\0351' | od -An -tx1

### five hundred calls deep
f() { if (($1 > 0)); then f $(($1 - 1)); else echo bottom; fi; }; f 500

## Names and the shell's own properties

### the root is no workspace
cd /
pwd
ls words.txt 2> /dev/null || echo 'not here'
[ -e words.txt ] || echo 'nor for test'
echo words.tx? *.csv
cat < words.txt 2> /dev/null || echo 'nor for a redirection'
cd - > /dev/null
ls words.txt
ls / | grep -c '^words.txt$'

### relative paths through the root
here=$PWD
cd /; cd ..; echo "$PWD"
ls -d tmp ./tmp /tmp ../tmp
[ -d tmp ] && [ -d ./tmp/. ] && echo both
cd tmp; echo "$PWD"; cd ../tmp/..; echo "$PWD"
cd "$here"; [ "$PWD" = "$here" ] && ls poem.txt

### a path from one directory to another
f=$(mktemp -d)
echo inside > "$f/x"
cd "$f"
cat ../"${f##*/}"/x
cp ./../../"${f#/}"/x y 2> /dev/null || cp x y
cat < ../"${f##*/}"/y; ls ../"${f##*/}"; echo ../"${f##*/}"/*  | tr ' ' '\n' | wc -l

### cd without a way there
cd none/..; echo $?
cd words.txt 2> /dev/null; echo $?
cd tree photos 2> /dev/null; echo $?
cd -x 2> /dev/null; echo $?
cd -- tree; echo "${PWD##*/}"

### cd and its dash
cd tree; cd ../photos; cd - | sed 's/.*\///'
echo "${OLDPWD##*/}"; unset OLDPWD; cd - 2> /dev/null; echo $?

### CDPATH finds a directory elsewhere
CDPATH=tree:photos
cd src | sed 's/.*\///'; cd src > /dev/null; echo "${PWD##*/}"
cd ./src 2> /dev/null; echo $?

### pwd and links
ln -s tree link; cd link/src
pwd | sed 's/.*link/link/'; pwd -P | sed 's/.*tree/tree/'; pwd -L | sed 's/.*link/link/'
cd ..; pwd | sed 's/.*link/link/'; cd -P src; pwd | sed 's/.*tree/tree/'
pwd -x 2> /dev/null; echo $?

### the stack of directories
top=$PWD; show() { dirs "$@" | sed "s|$top|top|g; s|~|top|g"; }
pushd tree > /dev/null; pushd src > /dev/null; show -l; show -v
pushd +1 > /dev/null; show -l; popd -n > /dev/null; show -p
pushd -n photos > /dev/null; show +1; popd +1 > /dev/null; show
pushd a b 2> /dev/null; echo $?; popd x 2> /dev/null; echo $?; dirs x 2> /dev/null; echo $?; dirs -c; popd 2> /dev/null; echo $?

### type of everything
f() { echo one; }; type -t f if cd sort nothing; echo $?
type f cd if; type -a pwd | head -n 1; type nothing 2> /dev/null; echo $?
type -p cd; echo $?; type -P cd; echo $?; type -P sort | sed 's/.*\///'
sort() { :; }; type -t sort; type -ft sort; type -z x 2> /dev/null; echo $?

### functions are laid out
f() { local x=1; if [ $x = 1 ]; then echo a; elif b; then c; else d; fi; for i in 1 2; do echo $i; done > o
while a; b; do c & d; done; case $x in a | b) echo a; echo b ;; *) c ;& esac; (a; b) | c && { d; }; }
declare -f f; type f | head -n 2; declare -F; declare -F f; declare -F none; echo $?

### command and its flags
f() { echo mine; }; command -v f cd if; command -V cd; command -v none; echo $?
command -v none cd; echo $?; command -p echo plain; command -x 2> /dev/null; echo $?; command; echo $?

### names along PATH
mkdir one two; echo 'echo one $1' > one/tool; echo 'echo two $1' > two/tool
[ -n "$BASH_VERSION" ] && chmod +x one/tool two/tool
PATH=$PWD/one:$PWD/two:$PATH; tool x; hash -r; rm one/tool; hash -r; tool y
type -t tool; type -P tool | sed 's/.*two/two/'; command -v tool | sed 's/.*two/two/'
command -p tool 2> /dev/null; echo $?

### PATH without the commands
keep=$PATH; PATH=$PWD/tree; ls 2> /dev/null; echo $?; command -v ls; echo $?; echo builtin; PATH=$keep; ls words.txt

### what hash remembers
hash -r; hash; sort words.txt > /dev/null; hash sort; echo $?; hash -t sort | sed 's/.*\///'; hash none 2> /dev/null; echo $?
hash | sed 's/\t.*\//\t/'

### source along PATH
mkdir lib; echo 'echo from lib $1' > lib/part; echo 'echo from here' > part
PATH=$PWD/lib:$PATH; . part x; source ./part; source -- part; source 2> /dev/null; echo $?
rm lib/part; . part; mkdir lib/part; . part

### declare -p and flags
declare -i n=1; declare -r c=x; declare -x e=y; declare -lx low=ABC; declare -u up=abc; declare -a l=(1 'b c'); declare -A m=([k]=v)
declare -p n c e low up l m; declare -irx all=3; declare -p all; declare -p none 2> /dev/null; echo $?
declare -n r=n; declare -p r; readonly -p | grep ' c='; export -p | grep ' e='

### declare without -p lists values
f() { local one=1 two='b c'; local; }; f; t='x y'; declare | grep '^t='; set | grep '^t='

### declare of a wrong kind
declare -a l=(1 2); declare -A l 2> /dev/null; echo $?; declare -A m=([a]=1); declare -a m 2> /dev/null; echo $?
declare 1x=2 2> /dev/null; echo $?; declare -z 2> /dev/null; echo $?; declare -n q='#' 2> /dev/null; echo $?

### control characters in declare -p
v=$'one\ntwo\tthree'; declare -p v; declare -a w=("$v" plain); declare -p w

### attributes of variables
declare -r a=1; declare -ax l=(1 2); echo "${a@a} ${l@a} ${l[0]@a} ${l[@]@a}"; echo "${a@A}"; echo "${l[@]@A}"
declare -A m=([x]=1); echo "${m@a}" "${m[@]@k}"; v="it's"; echo "${v@Q}" "${v@K}" "${none@Q}"

### associative arrays come in the order of bash
declare -A m=([one]=1 [two]=2 [three]=3 [four]=4 [five]=5); echo "${!m[@]}"; echo "${m[@]}"; declare -p m
for i in {1..40}; do m[key$i]=$i; done; unset 'm[two]'; m[two]=again; echo "${!m[*]}"

### options as they are listed
set -o | head -n 5; shopt | wc -l; shopt -p xpg_echo nullglob; shopt -po errexit; shopt -o nounset; echo $?
set -e; shopt -qo errexit && echo on; set +e; set +o | grep -c '^set'; shopt -s none 2> /dev/null; echo $?

### letters of options
set -eux; echo "$-" | tr -d c; set +eux; set -C -f -a; case $- in *C*) echo C ;; esac; [[ -o noglob ]] && [ -o allexport ] && echo both
echo "$SHELLOPTS" | tr : '\n' | grep -c noglob; bash -c 'case $- in *c*) echo c ;; esac'

### readonly options
SHELLOPTS=x
echo $?
set -o none 2> /dev/null; echo $?; set -Z 2> /dev/null; echo $?

### set and dashes
set -- -a b; echo "$@"; set -v -x 2> /dev/null; set - c d; echo "$@"; case $- in *[xv]*) echo still ;; esac; set -- ; echo $#; set + ; echo $#

### braces off and on
set +B; echo {1,2}; set -B; echo {1,2}

### an error ends its line
echo $((1 / 0)); echo same line
echo next $?
for i in 1 2; do x=abc; echo "${x:1:-5}"; done; echo same line
echo next $?
f() { echo "${none!}"; echo in f; }; f; echo same line
echo next $?
(echo $((1 / 0)); echo in the subshell); echo on $?
eval 'echo $((1 / 0)); echo same
echo next in eval'; echo on $?

### a readonly variable ends its line
readonly r=1
r=2; echo same line
echo next $? $r
r=3 echo runs; read -r r <<< x; echo $?; declare r=4; echo $?; ((r = 5)); echo $?
for r in a b; do echo turn; done; echo $?
unset r; echo $?

### set -u ends the shell
set -u
echo before
echo "$none"
echo never

### no match ends its line
shopt -s failglob
echo *.none; echo same line
echo next $?

### test of wrong words
[ a -foo b ] 2> /dev/null; echo $?; [ a b ] 2> /dev/null; echo $?; [ a = ] 2> /dev/null; echo $?; [ 1 -eq x ] 2> /dev/null; echo $?
[ 'a' 2> /dev/null; echo $?; test 1 -lt 2 -a x; echo $?; [ \( a \) ]; echo $?; [ 08 -eq 8 ]; echo $?; [[ 1/0 -eq 1 ]] 2> /dev/null; echo $?

### expressions that are none
[[ a =~ $'(' ]] 2> /dev/null; echo $?; p='a{2'; [[ aa =~ $p ]] 2> /dev/null; echo $?; p='[x'; [[ x =~ $p ]] 2> /dev/null; echo $?; [[ ab =~ a(.) ]]; echo "$? ${BASH_REMATCH[1]}"

### printf of times
printf '%(%Y-%m-%d %H:%M:%S)T\n' 0 1700000000; printf '[%12(%F)T|%-12(%F)T|%.4(%F)T]\n' 0 0 0; printf '%(%j %a %b %e %I %p %u %w %U %W %V %G %s %%)T\n' 1709251199
printf -v now '%(%s)T' -1; [ "$now" -gt 1700000000 ] && echo now; printf '%(%Y)T\n' | grep -c '^2'

### printf with a hash
printf '%#o %#x %#X %#o %#x|%#.0f|%#g|%#.3g\n' 8 255 255 0 0 3 3 3

### printf of large numbers and characters
printf '%u %d %u\n' 18446744073709551615 9223372036854775807 -1; printf '%d %u\n' 99999999999999999999 99999999999999999999 2> /dev/null; printf '%d\n' "'" "'A" '"'

### tildes
HOME=/h; x=~/a:~/b; echo $x; y=a:~:~/c; echo $y; echo ~/z a=~ b=c:~; v=/h/x; echo "${v/#~/T}" ${v/x/~} "${none:-~}" ${none:-~}; export e=~:~; echo $e
z=~:${none-~:~}; echo $z; [[ ~ == /h ]] && echo test; case ~ in /h) echo case ;; esac; a=(~ ~/b); echo "${a[@]}"; echo \~ "~" '~' ~none

### slashes in replacements
v=/a/b/; echo "${v////:}" "${v/\//:}" "${v//\//}" "${v///}" "${v/%\//!}"; shopt -u patsub_replacement; w=x; echo "${w/x/[&]}"

### traps know their line
trap 'echo line $LINENO' ERR
true
false
f() {
  false
}
f
trap - ERR

### debug traps
trap 'echo "do $LINENO"' DEBUG
for i in 1 2; do :; done
case x in x) : ;; esac
((1)); [[ a ]]
trap - DEBUG

### traps of a fork are shown and do not run
trap 'echo bye' EXIT
(trap -p EXIT); echo "$(trap -p)"; trap | cat
(trap 'echo own' EXIT; trap -p)
trap 'echo usr' USR1; trap -p; kill -USR1 $$; trap - USR1; trap -- '' INT; trap -p INT; trap 1 2> /dev/null; echo $?; trap x NONE 2> /dev/null; echo $?

### names of signals
kill -l 1 15 137 INT SIGTERM 0; kill -l 128 2> /dev/null; echo $?; trap -l | head -n 1 | tr -s ' \t' ' '

### where a function was called
f() { echo "${FUNCNAME[@]}" "${BASH_LINENO[0]}"; }
g() {
  f
}
f
g
echo 'h() { echo "${BASH_SOURCE[0]##*/}" "${FUNCNAME[0]}"; }; h' > lib.sh; . ./lib.sh; echo 'f() { echo "${FUNCNAME[*]}"; }; f' > s.sh; bash s.sh

### wait of wrong jobs
wait %9 2> /dev/null; echo $?; wait x 2> /dev/null; echo $?; wait 99999 2> /dev/null; echo $?; (exit 4) & wait -n; echo $?; wait -z 2> /dev/null; echo $?
(exit 5) & p=$!; wait "$p"; echo $?; jobs; (exit 3) & wait %1; echo $?

### eval, exec and their dashes
eval -- 'echo a'; eval -x 2> /dev/null; echo $?; exec -a named sh -c 'echo $0'

### exit and break with wrong numbers
(exit 1 2 2> /dev/null; echo same); echo $?; (exit x 2> /dev/null); echo $?; (while :; do break x 2> /dev/null; done; echo never); echo $?
(shift 1 2 2> /dev/null); echo $?; f() { return 300; }; f; echo $?

### loops over nothing
set -- a b; for x in; do echo $x; done; for x in ; do echo $x; done; for x; do echo $x; done; for x
do echo $x; done; for x in
do echo never; done; for 1x in a; do echo never; done 2> /dev/null; echo $?

### redirections that fail
set -e
{ echo never; } < none || echo group; while read -r l; do echo never; done < none || echo loop
{ echo never; } < none
echo never

### trace and redirections
{ set -x; echo a > f 2>&1; set +x; } 2> trace; cat f; head -n 1 trace
{ set -x; printf %s b 2> g; set +x; } 2> /dev/null; cat g; x=$(echo e >&2) 2> h; cat h

### what GLOBIGNORE leaves out
touch a.md .hidden; GLOBIGNORE='*.txt:*.c*'; echo *.*; GLOBIGNORE=; echo *.md; GLOBIGNORE='tree/doc'; echo tree/d*

### symbolic masks
umask 022; umask u=rwx,g=rx,o=; umask; umask -S; umask -p; umask a+r,g-w; umask; umask u-r,,x 2> /dev/null; echo $?; umask 9 2> /dev/null; echo $?

### aliases are listed
alias a=b 2> /dev/null; alias c='d e' 2> /dev/null; alias; alias a; alias none 2> /dev/null; echo $?; unalias a; alias a 2> /dev/null; echo $?; unalias -a; alias; unalias 2> /dev/null; echo $?

### unset of locals and references
f() { local v=inner; g; echo "f ${v-none}"; unset v; echo "f ${v-none}"; }; g() { unset v; echo "g ${v-none}"; }; v=outer; f; echo "$v"
unset -x 2> /dev/null; echo $?; h() { :; }; unset h; type -t h; echo $?

### read of counted characters
echo 'a\b\c\d\e' | { read -n 3 x; echo "$x"; }; echo 'äöü' | { read -rn 2 x; echo "${#x}"; }; read -n x 2> /dev/null; echo $?; read -N 3 x <<< 'ab cd'; echo "$x"

### builtin words
x='a b'; builtin export y=$x 2> /dev/null; echo "$y"; export z=$x; echo "$z"; builtin -- echo hi; builtin none 2> /dev/null; echo $?; getopts a 1x 2> /dev/null; echo $?

## Long scripts

### report over a log
set -euo pipefail
declare -A count
while read -r _ level rest; do
  count[$level]=$((${count[$level]:-0} + 1))
  if [[ $level == ERROR && $rest =~ ^([a-z]+): ]]; then
    failed+=("${BASH_REMATCH[1]}")
  fi
done < app.log
for level in DEBUG INFO WARN ERROR; do
  printf '%-6s%3d\n' "$level" "${count[$level]:-0}"
done
printf '%s\n' "${failed[@]}" | sort | uniq -c | while read -r n what; do echo "$what failed $n times"; done

### build a static site
mkdir -p pub/pages
for f in tree/doc/*.md; do
  title=$(sed -n 's/^# //p;1q' "$f")
  out=pub/pages/$(basename "${f%.md}").html
  {
    echo "<h1>$title</h1>"
    sed '1,2d' "$f" | sed 's/&/\&amp;/g; s/</\&lt;/g'
  } > "$out"
done
cat pub/pages/*.html

### orders with names
tail -n +2 people.csv | cut -d, -f1,2 | sort -t, -k1,1 > names
tail -n +2 orders.csv | sort -t, -k2,2 | join -t, -1 2 -2 1 -o 2.2,1.3,1.4 - names |
  awk -F, '{ s[$1] += $3 } END { for (n in s) printf "%s %.2f\n", n, s[n] }' | sort -k2,2nr

### sync two directories
mkdir -p dst && cp old.conf dst/
for f in *.conf; do
  if [ ! -e "dst/$f" ]; then cp "$f" dst/ && echo "new $f"
  elif ! cmp -s "$f" "dst/$f"; then cp "$f" dst/ && echo "changed $f"
  else echo "same $f"
  fi
done

### state machine
state=start
for token in begin a b end x; do
  case $state:$token in
    start:begin) state=in ;;
    in:end) state=done ;;
    in:*) seen=${seen:+$seen,}$token ;;
    done:*) echo "after the end: $token" ;;
  esac
done
echo "$state $seen"

### tiny test framework
pass=0 fail=0
check() {
  local name=$1 expected=$2 actual=$3
  if [[ "$actual" == "$expected" ]]; then ((++pass)); else ((++fail)); echo "FAIL $name: $actual"; fi
}
check upper ABC "$(tr a-z A-Z <<< abc)"
check sum 6 $((1 + 2 + 3))
check lines 6 "$(wc -l < words.txt)"
echo "$pass passed, $fail failed"
[ "$fail" -eq 0 ]

### key value store
db=kv; : > "$db"
put() { del "$1"; printf '%s\t%s\n' "$1" "$2" >> "$db"; }
del() { grep -v "^$1	" "$db" > "$db.new" || true; mv "$db.new" "$db"; }
get() { sed -n "s/^$1	//p" "$db"; }
put a 1; put b 2; put a 3; get a; get b; del b; get b; wc -l < "$db"

### queue with workers
mkdir queue done
for i in 1 2 3 4; do echo "$((i * i))" > "queue/$i"; done
worker() { local f; for f in queue/*; do mv "$f" done/ 2> /dev/null || continue; done; }
worker & worker & wait
cat done/*

### text menu driven by input
while read -r cmd arg; do
  case $cmd in
    add) total=$((${total:-0} + arg)) ;;
    show) echo "total ${total:-0}" ;;
    quit) break ;;
    *) echo "unknown: $cmd" ;;
  esac
done <<'EOF'
add 5
add 7
show
fly
quit
show
EOF

### roman numbers
roman() {
  local n=$1 out= i
  local -a v=(1000 900 500 400 100 90 50 40 10 9 5 4 1) s=(M CM D CD C XC L XL X IX V IV I)
  for i in "${!v[@]}"; do while ((n >= v[i])); do out+=${s[i]}; ((n -= v[i])); done; done
  echo "$out"
}
for y in 4 9 1999 2024; do roman $y; done

### url decoding
decode() { local s=${1//+/ }; printf '%b\n' "${s//%/\\x}"; }
decode 'a%20b+c%21'

### histogram
sort words.txt | uniq -c | sort -k1,1nr -k2 | while read -r n w; do
  printf '%-8s' "$w"; printf '#%.0s' $(seq "$n"); echo
done

## Calculating with bc

### bc: numbers (needs bc)
printf '%s\n' '1+2*3' '2^100' '10/3' '-10/3' 'scale=4' '10/3' '-7%3' '1.23*4.56' 'sqrt(2)' '.5' '0.00' '-.5' '2^-2' 'length(0.001)' 'scale(1.250)' | bc

### bc: with the library (needs bc)
printf '%s\n' 'e(1)' 'l(2)' '4*a(1)' 's(1)' 'c(1)' 'e(-3.5)' 'l(123.456)' 'a(-20)' 's(100)' 'j(0,1)' 'j(2,3.5)' 'scale=40' 'e(2.5)' 'a(.2)' | bc -l

### bc: bases (needs bc)
printf '%s\n' 'obase=2' '10' '-5' 'obase=16' '255.5' 'ibase=16' 'FF+A' 'ibase=A' 'obase=100' '12345.678' 'obase=10' 'FF' '1.F' | bc

### bc: a program (needs bc)
bc <<'EOF'
define f(n) {
  if (n < 2) return (1)
  return (n * f(n - 1))
}
define p(a[], n) {
  auto i, s
  for (i = 0; i < n; i++) s += a[i]
  return (s)
}
f(25)
x[0] = 3; x[1] = 4; p(x[], 2)
i = 5; i++; ++i; i--; i
a = b = 7; a + b
while (1) { n += 1; if (n > 3) break; if (n == 2) continue; print "n is ", n, "\n" }
if (n > 3 && !0) "large
" else "small
"
1 < 2; 2 == 3; !1; 5 > 3 || 1 / 0
last + 1
EOF

### bc: long numbers are broken (needs bc)
printf '%s\n' '2^400' 'scale=100; 1/7' '2^225' | bc; echo '2^400' | BC_LINE_LENGTH=0 bc

### bc: sums from a pipe (needs bc)
cut -d, -f4 orders.csv | tail -n +2 | paste -sd+ | bc; seq 1 2000 | paste -sd+ | bc

### bc: quit, comments and registers (needs bc)
printf '1 /* one\ntwo */ + 1\n# three\nscale=2\nx = 5; x /= 2; x\n"a\\n"; print "b\\t", 3/7, "\\n"\n1; quit\n2\n' | bc

## Kinds of files

### file: the kinds of many files (needs file)
file *.csv *.json *.jsonl *.txt *.bin *.conf photos
file -b poem.txt notes.txt; file --mime-type -b poem.txt users.json people.csv photos empty.txt
file -i poem.txt notes.txt bytes.bin; file - < poem.txt; file none.txt; echo $?

### file: archives and pictures (needs file)
printf 'text\n' > t; tar -cf t.tar t; xz -k t; bzip2 -k t
file t.tar t.xz t.bz2; gzip t; file -b --mime-type t.gz
printf '\211PNG\r\n\032\n\0\0\0\rIHDR\0\0\0\020\0\0\0\040\b\006\0\0\0' > p.png; file p.png
printf 'GIF89a\002\0\003\0\0' > p.gif; file -b p.gif; ln -s p.gif l; file l

### file: scripts and markup (needs file)
printf '#!/bin/sh\necho\n' > a; printf '#!/bin/bash\necho\n' > b
printf '<?xml version="1.0"?>\n<a/>\n' > d; printf '<!DOCTYPE html>\n<p>x\n' > e; printf 'a\r\nb\r\n' > f
file a b e f; file -b --mime-type a d e

## Patches

### patch: what diff says is applied and taken back (needs patch)
cp old.conf a.conf
diff -u old.conf new.conf > p; patch a.conf < p; cat a.conf; patch -R a.conf p; diff a.conf old.conf && echo same

### patch: lines have moved (needs patch)
seq 30 > a; sed 's/^20$/twenty/; s/^5$/five/' a > b; diff -u a b > p
{ echo zero; echo half; cat a; } > c; patch c p; echo $?; diff b c

### patch: context differs (needs patch)
seq 10 > a; sed 's/^5$/five/' a > b; diff -u a b > p; sed -i 's/^2$/two/' a; patch a < p; echo $?; cat a; ls

### patch: what has no place is rejected (needs patch)
seq 10 > a; sed 's/^5$/five/' a > b; diff -u a b > p; seq 11 20 > a; patch a < p; echo $?; tail -n +3 a.rej; ls

### patch: it is applied already (needs patch)
seq 10 > a; sed 's/^5$/five/' a > b; diff -u a b > p; patch -s a p; patch -N a p; echo $?; patch -t a p; diff a b > /dev/null; echo $?

### patch: trees, new files and files that go (needs patch)
cp -r tree one; cp -r tree two; echo new > two/new.txt; rm two/greet.sh; sed -i 's/return/give/' two/src/main.c
diff -ruN one two > p
cd one; patch -p1 --dry-run < ../p; patch -p1 < ../p; cd ..; diff -r one two && echo same; patch -R -d one -p1 -s -i ../p; diff -r one tree && echo back

### patch: no newline at the end (needs patch)
printf 'a\nb' > a; printf 'a\nc' > b; diff -u a b > p; patch a p; cmp a b && echo same

### patch: what is no patch (needs patch)
echo garbage | patch; echo $?; patch -p1 < /dev/null; echo $?

## Encodings

### iconv: there and back (needs iconv)
printf 'gr\303\274n \342\202\254\n' > u
for e in UTF-16LE UTF-16BE UTF-16 UTF-32LE ISO-8859-15 CP1252; do iconv -f UTF-8 -t $e u | tee x | od -An -tx1; iconv -f $e -t UTF-8 x; done
printf '\374\n' | iconv -f latin1 -t UTF-8; printf '\223\372\n' | iconv -f SHIFT_JIS -t UTF-8

### iconv: what cannot be converted (needs iconv)
printf 'a\303\274b\n' | iconv -f UTF-8 -t ASCII; echo $?; printf 'a\303\274b\n' | iconv -c -f UTF-8 -t ASCII
printf 'a\377b\n' | iconv -f UTF-8 -t UTF-16LE | od -An -tx1; iconv -f nonsense -t UTF-8 poem.txt; echo $?

## Compressed files

### xz and bzip2: there and back (needs xz)
for c in xz bzip2; do
  seq 3000 > a; $c a; ls a*; $c -t a.*; $c -dc a.* | cksum; $c -d a.*; cksum a; $c -k a; $c -cd < a.?z* | tail -n 1; rm a.*
done
seq 9 > b; xz -c b | unxz; bzip2 -c b | bunzip2 | tail -n 2; xz b; xzcat b.xz | head -n 1; bzip2 -k9 a; bzcat a.bz2 | wc -l

### xz and bzip2: what is broken (needs xz)
seq 3000 > a; xz -k a; bzip2 -k a
head -c 100 a.xz > c.xz; xz -t c.xz; echo $?; head -c 100 a.bz2 | bzip2 -dc > /dev/null; [ $? -gt 0 ] && echo failed
xz -dc poem.txt; echo $?; unxz poem.txt; [ $? -gt 0 ] && echo failed; ls poem.txt

### tar with xz and bzip2 (needs xz)
tar -cJf a.tar.xz tree/src; tar -cjf a.tar.bz2 tree/src; tar -caf b.tar.xz tree/doc
for a in a.tar.xz a.tar.bz2 b.tar.xz; do tar -tf $a | sort | tail -n 1; done; xz -dc a.tar.xz | tar -t | wc -l
mkdir o; tar -xJf a.tar.xz -C o; diff -r tree/src o/tree/src && echo same

## Digests

### openssl: digests (needs openssl)
openssl dgst -sha256 poem.txt; openssl dgst -md5 -r poem.txt words.txt; openssl sha1 < poem.txt; openssl dgst -sha256 -hmac key poem.txt
openssl dgst -c -md5 poem.txt; openssl md5 -binary poem.txt | od -An -tx1; openssl dgst -sha3-256 poem.txt; openssl dgst -blake2b512 poem.txt
openssl dgst none.txt; echo $?; openssl dgst -nonsense poem.txt; echo $?; openssl rand -hex 8 | wc -c

## rg

### rg: a tree (needs rg)
rg -n --sort path TODO tree; rg -l --sort path TODO; rg -c TODO --sort path tree; rg -w the poem.txt; rg -i -o THE poem.txt | sort -u
rg --files --sort path tree; rg -v -c . poem.txt; rg nothing-at-all; echo $?; rg '(' poem.txt; echo $?; cat poem.txt | rg -n wind

## Hard links, and links to files

### a file is not copied onto itself through a link
ln -s words.txt l; ln -s l m
cp l words.txt 2> /dev/null; echo $?
cp words.txt l 2> /dev/null; echo $?
cp -f m words.txt 2> /dev/null; echo $?
cp -a words.txt ./words.txt 2> /dev/null; echo $?
wc -l < words.txt

### a second name is the same file
ln words.txt h; cp h words.txt 2> /dev/null; echo $?; cmp h words.txt && echo same

### install puts a new file in a link's place
echo keep > kept; echo new > s; ln -s kept l; install s l; cat kept l; [ -L l ] || echo file

### ln over itself
echo a > f; ln -sf f f 2> /dev/null; echo $?; cat f

### a slash behind a link asks for the directory
ln -s photos p
find p/ -type f | wc -l; ls p/ | wc -l
cp -r p/ q; ls q | wc -l
[ -d p/ ] && echo directory
du -a p/ > /dev/null && echo measured
tar cf - p/ | tar tf - | wc -l

### a directory is copied through a link
mkdir a; echo 1 > a/x; ln -s a la; cp -rL la b; cat b/x; cp -r la/. c; cat c/x

### links that lead nowhere
ln -s nowhere broken; ln -s words.txt whole
find . -xtype l; find -L . -type l; find whole -xtype f

### a link by its whole path
echo 1 > f; ln -s "$PWD/f" l; cat l; mkdir -p a/b; ln -s "$PWD/f" a/b/l; cat a/b/l

## Accepted options have an effect

### split with a filter
seq 4 | split -l 2 --filter='paste -sd+' -; seq 3 | split -l 1 --filter='cat > $FILE.out' - n.; cat n.a?.out; ls x* 2> /dev/null; echo $?

### split into parts of whole lines
seq 10 > f; split -n l/2 f r.; wc -l < r.aa; split -n l/3 -d f s.; cat s.00 | tail -n 1; ls s.*

### comm of one input twice
printf 'a\nb\n' | comm - - > /dev/null 2>&1; echo $(( $? == 134 ))

### dates with words
date -u -d 'Sat, 15 Mar 2024 10:00:00 +0000' +%F; date -u -d 'WEDNESDAY August 17 2026' +%F
date -u -d '2026-01-01 2 months' +%F; date -u -d @0 +%f; date -u -d @0 '+%Y %%f'

### numbers in hexadecimal with an exponent
printf '%a %a %a\n' 1 255.5 0; printf '%.2a\n' 1

### names with a backslash in an archive
mkdir s; echo 1 > 's/a\b'; echo 2 > s/z; tar cf t.tar s; echo $?; tar tf t.tar | wc -l; rm -r s; tar xf t.tar; ls s | wc -l

### the names in an archive (needs zip)
mkdir z; echo a > z/a.txt; zip -qr z.zip z; unzip -Z1 z.zip; zip -qrD y.zip z; unzip -Z1 y.zip

### an archive on standard output (needs zip)
echo a > f; zip -q - f > s.zip; unzip -p s.zip

## Rare names and times

### checks of digests print names as they are
echo 1 > 'a b'; echo 2 > "it's"; echo 3 > 'q"'; echo 5 > 'x: y'; echo 6 > é; echo 7 > '$(a)'; printf 8 > "$(printf 't\tb')"
for tool in md5sum sha1sum sha256sum b2sum; do $tool 'a b' "it's" 'q"' 'x: y' é '$(a)' t* > sums; $tool -c sums; $tool --check --quiet sums; echo $?; done
rm 'a b' "it's"; echo other > é; md5sum -c sums 2> /dev/null; md5sum *.txt > m; md5sum -c m; sha256sum --tag 'q"' > s; sha256sum -wc s

### times beyond the year 9999
for when in @253402300739 @253402207200 @253402300800 @999999999999 9999-12-31 '9999-12-31 23:59' '9999-12-31 +1 day' 10000-01-01; do
  date -u -d "$when"; date -ud "$when" '+%Y-%m-%d %H:%M:%S %s %G-W%V %C %y %j %%'; date -u --date="$when" +%F
done

### options of files that were taken and did nothing
mkdir d; ln -s ../words.txt d/l; ln -s d ld; du -L d > a; du d > b; cmp -s a b; echo $?; du -D ld | cut -f2; du -P ld | cut -f2
sed -i --follow-symlinks 1d d/l; [ -L d/l ] && wc -l < words.txt; sed -i 1d d/l; [ -L d/l ]; echo $?
touch -d 2020-01-02 words.txt; install -p words.txt new; stat -c %y new | cut -c1-10; install -T words.txt d 2> /dev/null; echo $?
printf 'a\0b\n' > x; printf 'a\0c\n' > y; diff -a x y | wc -l; diff x y
timeout -v 0.1 sleep 5 2>&1; echo $?
grep --color=never -c a numbers.txt
ls -s words.txt; ls -l words.txt | grep -c total; mkdir one; echo 1 > one/f; ls -l one | head -n 1

## Permissions are kept

### chmod in octal and in words
umask 022; echo 1 > f; chmod 755 f; stat -c '%a %A' f; chmod go-rx f; stat -c %a f; chmod g=u,o= f 2> /dev/null; chmod u=rw,go=r f; stat -c %A f
chmod a+X f; stat -c %a f; chmod u+x,a+X f; stat -c %a f; chmod -v 600 f; chmod -v 600 f; chmod -c 600 f; chmod -c 644 f
chmod 888 f 2> /dev/null; echo $?; chmod +x none 2> /dev/null; echo $?; chmod --reference=f words.txt; stat -c %a words.txt

### permissions of trees and of links
umask 022; mkdir -p d/e; echo 1 > d/a; echo 2 > d/e/b; chmod -R u+x,go-r d 2> /dev/null; chmod -R a+rX d; find d -type f -perm 755 | sort; ln -s d/a l; chmod 644 l; stat -c %a d/a; stat -Lc %a l
find . -name a -perm -u=r; find d -perm /111 -type f; find d -executable -type f; find d/e -printf '%m %M %y\n' | sort

### permissions as ls has them
umask 022; mkdir 'a b'; echo 1 > 'a b/c d'; echo 2 > run; chmod +x run; chmod 640 'a b/c d'; ln -s run l
ls -l run | cut -c -10; ls -l 'a b' | tail -n 1 | cut -c -10; ls -ld 'a b' | cut -c -10; ls -l l | cut -c -10; ls -lR . | grep 'c d' | cut -c -10; ls -lh run l | cut -c -10; ls -goL l | cut -c -10

### what copies, moves and packs keeps permissions
umask 022; echo 'echo hi' > s; chmod 750 s; cp s t; mv s u; stat -c %a t u; echo 2 > v; cp u v; stat -c %a v; cp -p u v; stat -c %a v; mkdir d e; cp u d; cp -r d f; stat -c %a f/u
tar cf t.tar d; tar xf t.tar -C e; stat -c %a e/d/u; sed -i s/hi/ho/ u; stat -c %a u; install -m 700 u w; install u x; stat -c %a w x

### an archive keeps them (needs zip)
umask 022; echo 1 > s; chmod 750 s; zip -q a.zip s; rm s; unzip -q a.zip; stat -c %a s

### what may be run
echo 1 > f; [ -x f ]; echo $?; chmod +x f; [ -x f ] && test -w f && echo runs
