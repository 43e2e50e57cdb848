git init -q -b main .; git config user.name Ada; git config user.email ada@example.com
git config core.fileMode false
git log; echo $?
git log --oneline nothing; echo $?
n=1700000000
commit() { n=$((n+3600)); GIT_AUTHOR_DATE="$n +0100" GIT_COMMITTER_DATE="$n +0100" git commit -q -m "$1" ; }
echo a > a.txt; mkdir d; echo d > d/f.txt; git add .; commit "First commit

With a body.

  indented line
Last line"
echo b >> a.txt; git add .; commit "fix: second"
git tag v1
git checkout -q -b topic
echo t > t.txt; git add .; commit "topic work"
echo t2 >> t.txt; echo e >> d/f.txt; git add .; GIT_AUTHOR_NAME=Bob GIT_AUTHOR_EMAIL=bob@example.com commit "More TOPIC work (#12)"
git checkout -q main
echo m > m.txt; git add .; commit "main work"
n=$((n+3600)); GIT_AUTHOR_DATE="$n +0100" GIT_COMMITTER_DATE="$n +0100" git merge -q --no-ff -m "Merge branch 'topic'" topic
git rm -q m.txt; git mv t.txt u.txt; commit "remove and rename"
git tag -a v2 -m "Version two"
for o in "" --oneline "-1" "-n 2" "-n2 --oneline" "--max-count=1" "--skip=2 --oneline" "-2 --skip 1 --oneline" "--reverse --oneline" \
  "--oneline --merges" "--oneline --no-merges" "--oneline --first-parent" "--oneline main topic" "--oneline v1..main" "--oneline topic..main" "--oneline main...topic" \
  "--oneline ^topic main" "--oneline main --not topic" "--oneline --all" "--oneline --branches" "--oneline --tags" "--oneline v1" "--oneline HEAD~2" "--oneline HEAD^2" \
  "--oneline --decorate" "--oneline --decorate=full" "--decorate -1" "--oneline --decorate --all --no-decorate" "--oneline --author=Bob" "--oneline --author=nobody" "--oneline --committer=ada" \
  "--oneline --grep=topic" "--oneline --grep=topic -i" "--oneline --grep=topic --grep=main" "--oneline --grep=work --invert-grep" "--oneline -E --grep=(fix|rename)" "--oneline --grep=topic --grep=work --all-match" \
  "--stat" "-p -1" "-2 -p --stat" "--oneline --stat -2" "--name-only --oneline" "--name-status" "--oneline -p -2" "--numstat --oneline" "--shortstat --oneline" "--summary --oneline" "--oneline --raw -2" "--raw -1" \
  "--oneline -- a.txt" "--oneline a.txt" "--oneline d" "--oneline -- t.txt" "--oneline --follow u.txt" "--follow --name-status --oneline -- u.txt" "--follow -p --format=%h u.txt" "--oneline u.txt" "--oneline -S t2" "--oneline -Gt2" "-S t2 -p --oneline" \
  "--since=2023-11-15T02:00:00Z --oneline" "--until=2023-11-15T01:00:00Z --oneline" "--after=2023-11-15T00:00:00Z --before=2023-11-15T02:30:00Z --oneline" "--topo-order --oneline" "--date-order --oneline" \
  "--left-right --oneline main...v1" "--left-right --oneline topic...main" "-1 --no-patch" "-1 -s -p" "-s -1" "-1 --abbrev-commit" "--abbrev=12 --oneline -1" "-m -p --oneline -3" "--cc -2" "-c --oneline -2" "--first-parent -p --oneline -2" \
  "--oneline -0" "-1 --oneline --no-abbrev-commit" "--oneline --parents" "-1 main -- d" "--bogus" "-1 nothing" "nothing --" "--oneline -1 --name-only --name-status" "--format=%h --stat -2" "--oneline --color=always --decorate -3" "--color=always -1 --decorate" "--oneline --diff-filter=D --name-status" "--oneline --simplify-by-decoration" "--oneline --full-history -- t.txt"; do
  echo "=== log $o"; git log $o; echo "code $?"
done
for o in "HEAD" "--count HEAD" "--count --all" "--all -n 2" "-3 main" "--max-count=1 HEAD -- a.txt" "--left-right --count main...topic" "--count main..topic" "--count topic..main" "--parents -2 HEAD" "--no-merges --count HEAD" "--reverse HEAD" "--oneline -2 HEAD" "--format=%s -2 HEAD" "--abbrev-commit -1 HEAD" "" "nothing" "--first-parent main" "HEAD ^v1" "--timestamp -1 HEAD" "--pretty=oneline -1 HEAD"; do
  echo "=== rev-list $o"; [ -z "$o" ] || git rev-list $o 2>&1 | grep -v "^   *--\|^ *$" | head -20
done
git shortlog HEAD; git shortlog -s HEAD; git shortlog -sn HEAD; git shortlog -sne --all; git log | git shortlog; git shortlog -s -n v1..main; git shortlog -sc HEAD; git shortlog -n --no-merges HEAD
git reflog; git reflog -2; git reflog show main; git reflog --date=iso; git reflog topic; git log -g --oneline -2; git log -g -1; git reflog --format='%h %gd %gs %gD %gn'; git reflog show HEAD@{2}; git reflog exists refs/heads/main; echo $?; git reflog nothing; echo $?
git whatchanged -2; git whatchanged --oneline -2
mkdir -p sub; cd d; git log --oneline .; git log --oneline -- f.txt; git log --oneline -1 --name-only; git log --oneline --name-only --relative .; cd ..
