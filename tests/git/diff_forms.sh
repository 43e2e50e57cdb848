git init -q -b main .; git config user.name Ada; git config user.email ada@example.com
git config core.fileMode false
mkdir -p src docs; seq 1 30 > src/a.py; echo d > docs/x.md; printf 'one two three\nfour\n' > w.txt; git add .; git commit -q -m one; git tag t1
sed -i 5d src/a.py; echo more >> docs/x.md; git add .; git commit -q -m two; git tag t2
git checkout -q -b side t1; echo side > s.txt; git add .; git commit -q -m side
git checkout -q main; sed -i 's/two/2/' w.txt; git rm -q docs/x.md; echo n > src/new.py; git add src
mkdir ../o1 ../o2; echo 1 > ../o1/f; echo 2 > ../o2/f; echo only > ../o2/g; echo same > ../o1/s; cp ../o1/s ../o2/s
for o in "diff t1 t2" "diff t1..t2" "diff t1...side" "diff side...t2" "diff main side" "diff t1" "diff t1 --stat" "diff t1 t2 -- src" "diff t1 t2 src" "diff t1:src/a.py t2:src/a.py" "diff t1:src/a.py src/a.py" "diff HEAD" "diff HEAD~1 HEAD --stat" "diff HEAD^ HEAD --name-only" "diff HEAD^!" "diff --cached t1" "diff --staged" "diff --cached HEAD~1 --stat" "diff --merge-base side main --stat" "diff nothing" "diff nothing..main" "diff t1 nothing" "diff -- nothing" "diff t1 -- nothing" "diff main -- w.txt" \
 "diff --no-index ../o1/f ../o2/f" "diff --no-index ../o1 ../o2" "diff --no-index --stat ../o1 ../o2" "diff --no-index ../o1/s ../o2/s" "diff --no-index /dev/null ../o2/g" "diff --no-index ../o1/f nothing" "diff ../o1/f ../o2/f" "diff --no-index --name-status ../o1 ../o2" "diff --no-index -U0 w.txt src/a.py" \
 "diff-tree HEAD" "diff-tree -r HEAD" "diff-tree --no-commit-id --name-only -r HEAD" "diff-tree -p HEAD" "diff-tree t1 t2" "diff-tree -r --name-status t1 t2" "diff-tree --root t1" "diff-tree t1" "diff-tree -r --root --stat t1" "diff-tree --stat -r t1 t2" "diff-tree -r t1 t2 -- docs" "diff-tree nothing" \
 "diff-index HEAD" "diff-index --cached HEAD" "diff-index --quiet HEAD" "diff-index --quiet --cached HEAD --" "diff-index --name-only HEAD" "diff-index -p HEAD -- w.txt" "diff-index --name-status t1" "diff-files" "diff-files --name-only" "diff-files -p" "diff-files --quiet" "diff-files --stat" \
 "diff --word-diff w.txt" "diff --no-renames t1 HEAD --stat" "diff --name-only HEAD --relative=src" "diff -M50% --stat t1" "diff --exit-code t1 t2 --stat" "diff --no-ext-diff --stat t1" "diff --no-color t1 t2 --minimal" "diff -U t1" "diff @ --stat" "diff @~1 @ --stat" "diff main@{0} --stat" "diff :w.txt w.txt" "diff --ignore-blank-lines t1 t2 --stat" "diff --inter-hunk-context=20 t1"; do
  echo "=== $o"; git $o; echo "<< $?"
done
