git init -q -b main .; git config user.name Ada; git config user.email ada@example.com
git config core.fileMode false
mkdir -p lib/core src; seq 1 100 > lib/core/a.txt; seq 200 260 > src/b.txt; seq 300 330 > c.txt; echo tiny > tiny.txt; seq 1 50 > dup1; cp dup1 dup2; : > empty; seq 400 480 > 'sp ace.txt'; seq 500 540 > same.txt
git add .; git commit -q -m one
git mv lib/core/a.txt lib/a.txt; git mv src/b.txt src/renamed.txt; sed -i 1,5d src/renamed.txt; git mv c.txt src/c.txt; sed -i 's/^31/x/' src/c.txt; git mv tiny.txt small.txt; echo x >> small.txt; git mv dup1 lib/dup1; git mv dup2 other; git mv empty void; git mv 'sp ace.txt' 'new name.txt'; cp same.txt copy.txt; echo z >> same.txt; git add .
for o in "--cached" "--cached --stat" "--cached --name-status" "--cached --name-only" "--cached --summary" "--cached --numstat" "--cached --numstat -z" "--cached --name-status -z" "--cached --raw" "--cached --no-renames --stat" "--cached -M90% --name-status" "--cached -M100% --name-status" "--cached --find-renames=30 --name-status" "--cached -C --name-status" "--cached -C --stat -p" "--cached --find-copies-harder --name-status" "--cached --diff-filter=R --name-status" "--cached --diff-filter=r --name-status" "--cached -R --name-status" "--cached -R --stat" "--cached -- src" "--cached --name-status -- lib" "--cached --shortstat" "--cached --compact-summary" "HEAD --name-status" "HEAD -M --stat" "HEAD"; do
  echo "=== $o"; git diff $o | tr '\0' '|'; echo "<<"
done
git commit -q -m two; git show --stat; git show --name-status --oneline; git log --follow --oneline -- src/c.txt; git log --oneline --follow --stat -- lib/a.txt; git log --stat --oneline; git diff-tree -r HEAD; git diff-tree -r -M HEAD; git diff-tree --no-commit-id --name-status -r -M HEAD
