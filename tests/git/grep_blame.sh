r() { echo "\$ $*"; "$@" 2>"$HOME/err"; c=$?; sed "s/^/! /" "$HOME/err"; echo "= $c"; }
git init -q -b main .; git config user.name Ada; git config user.email ada@example.com; git config core.fileMode false
mkdir d; printf 'hello world\nfoo bar\nHELLO again\n\nend foo\n' >a.txt; printf 'int main(void) {\n  foo(1);\n  return 0;\n}\n' >d/b.c; printf 'foo\0bin' >bin; git add .; git commit -qm one
printf 'hello world\nfoo baz\nHELLO again\nmore\n\nend foo\n' >a.txt; GIT_AUTHOR_NAME='Bob Builder' GIT_AUTHOR_EMAIL=bob@x GIT_AUTHOR_DATE='1700001000 +0200' GIT_COMMITTER_DATE='1700001000 +0200' git commit -qam two
git mv a.txt c.txt; echo tail >>c.txt; GIT_COMMITTER_DATE='1700002000 +0000' git commit -qam three
r git grep foo
r git grep -n foo
r git grep -i hello
r git grep -l foo
r git grep -L foo
r git grep -c foo
r git grep -w fo
r git grep -w foo
r git grep -v foo c.txt
r git grep -h foo
r git grep -e foo -e more
r git grep -E 'foo|more'
r git grep 'foo\|more'
r git grep 'foo|more'
r git grep -F 'foo('
r git grep -E 'foo('
r git grep '^end'
r git grep -n 'foo' HEAD~1
r git grep foo HEAD~1 -- d
r git grep -n foo -- '*.c'
r git grep foo d
r git grep nothing
r git grep -q foo
r git grep
r git grep foo nope
r git grep -A1 -n baz
r git grep -B1 -C1 more
r git grep -o 'fo*'
r git grep --cached tail
r git grep -I foo
r git grep --count foo
r git grep -n --column foo
cd d; r git grep foo; r git grep foo -- ..; r git grep --full-name foo; cd ..
r git blame c.txt
r git blame -s c.txt
r git blame -e c.txt
r git blame -L 2,3 c.txt
r git blame -L 2,+1 c.txt
r git blame -L 5 c.txt
r git blame -L '/more/,/end/' c.txt
r git blame HEAD~1 -- a.txt
r git blame HEAD~2 a.txt
r git blame nope.txt
r git blame -L 99 c.txt
r git blame --porcelain c.txt
r git blame --line-porcelain -L1,2 c.txt
r git blame --date=short c.txt
r git blame -l d/b.c
r git blame --root d/b.c
echo x >>c.txt
r git blame -s -L6, c.txt
