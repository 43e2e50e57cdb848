git init -q -b main .; git config user.name Ada; git config user.email ada@example.com
git config core.fileMode false
mkdir d; seq 1 20 > n.txt; echo d > d/f.txt; git add .; git commit -q -m "First

Body"
git tag light; git tag -a full -m "A tag
with lines"
git checkout -q -b topic; sed -i '3s/$/ topic/; 10s/$/ topic/' n.txt; echo t > t.txt; git add .; git commit -q -m "On topic"
git checkout -q main; sed -i '3s/$/ main/; 18s/$/ main/' n.txt; git commit -q -a -m "On main"
git merge -q topic >/dev/null 2>&1; git diff; git diff --stat; git diff --name-only; git diff --name-status; git diff --ours; git diff --theirs n.txt; git diff --base; git diff HEAD; git diff --cached; git diff --raw; git diff --check
sed -i '/^<<<<<<<\|^=======\|^>>>>>>>/d' n.txt; sed -i '3,4d; 2a 3 both' n.txt; git add .; git commit -q -m "Merge topic"
git checkout -q -b clean light; echo z > z.txt; git add .; git commit -q -m z; git checkout -q main; git merge -q --no-edit clean
: > e.txt; ln -s n.txt link; printf 'a\0b' > bin; git add .; git commit -q -m "kinds"; rm link; echo now > link; git rm -q e.txt; git add .; git commit -q -m "change type"
for o in "" "HEAD" "HEAD~1" "HEAD~2" "HEAD~3" "HEAD~3 --stat" "HEAD~3 --name-only" "HEAD~3 --name-status" "HEAD~3 --raw" "HEAD~3 -m" "HEAD~3 -c" "HEAD~3 --first-parent" "HEAD~3 -s" "HEAD~3 --oneline" "HEAD~2 --oneline" "HEAD~2 --format=%h" "HEAD~2 --stat" "HEAD~3 --stat -p" "HEAD~3 --diff-merges=off" "light" "full" "full light" "full --stat" "full -s" "full -s --format=%h" "HEAD:n.txt" "HEAD:d/f.txt" "HEAD:d" "HEAD^{tree}" "HEAD:" "light:n.txt HEAD:d/f.txt" "HEAD:nothing" "nothing" "HEAD --stat" "HEAD --shortstat" "HEAD --numstat" "HEAD --oneline" "-s HEAD" "-s --format=%s HEAD" "--no-patch HEAD" "--name-only HEAD" "--name-status --format= HEAD" "--pretty=fuller HEAD~1" "HEAD -- bin" "HEAD~1 -- link" "HEAD~1 HEAD" "--oneline HEAD~1 HEAD" "light..HEAD --oneline -s" "HEAD^!" "--summary HEAD~1" "--stat --oneline HEAD~1 HEAD" "--format=%B -s HEAD~4" "HEAD^2" "main~2^2 --stat" "-U0 topic" "--color=never topic" "-w topic" "HEAD:../x" "--quiet HEAD" "--pretty=raw topic" "--date=short -s" "--abbrev-commit -s"; do
  echo "=== $o"; git show $o; echo "<< $?"
done
