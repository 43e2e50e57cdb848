git init -q -b main .; git config user.name Ada; git config user.email ada@example.com
git config core.fileMode false
n=1700000000
c() { n=$((n+60)); echo "$1" > "$1.txt"; git add .; GIT_AUTHOR_DATE="$n +0000" GIT_COMMITTER_DATE="$n +0000" git commit -q -m "$1"; }
m() { n=$((n+60)); GIT_AUTHOR_DATE="$n +0000" GIT_COMMITTER_DATE="$n +0000" git merge -q --no-ff -m "merge $*" "$@"; }
c base; c two; git branch old
git checkout -q -b feature; c f1; c f2
git checkout -q main; c m1
git checkout -q -b fix; c x1
git checkout -q main; m fix; c m2
git checkout -q feature; m main; c f3
git checkout -q old; c o1; git checkout -q -b older HEAD~1; c oo1
git checkout -q main; m feature; m old older; git tag v1
git checkout -q -b a v1~1; c a1; git checkout -q -b b v1~1; c b1; git checkout -q -b d v1~1; c d1
git checkout -q main; c m3; m a b d; c m4; git checkout -q -b loose; c l1; git checkout -q main; c last
for o in "--oneline" "--oneline --all" "--oneline --all --decorate" "" "--all" "--stat" "--oneline --all -p" "--oneline --name-status" "--format=%h" "--format='%h%n%s'" "--pretty=format:%h%n%s" "--oneline -5" "--oneline --first-parent" "--oneline v1..main" "--oneline --no-merges" "--oneline --merges" "--oneline -- f1.txt m1.txt" "--oneline --date-order --all" "--oneline --author-date-order --all" "--oneline --topo-order" "--oneline --reverse" "--oneline a b d" "--decorate --all -3" "--oneline --left-right a...b" "--format=format:%h --name-only -4" "--abbrev-commit --decorate --date=relative --format=%h%d -4" "--oneline --skip=3 --all" "--oneline --grep=m --all" "--oneline main loose old" "--oneline --since=2023-11-14T22:20:00Z --all" "-m --oneline -p -3" "--cc -3"; do
  echo "=== $o"; eval "git log --graph $o"; echo "<< $?"
done
