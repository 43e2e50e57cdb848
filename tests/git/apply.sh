r() { echo "\$ $*"; "$@" 2>"$HOME/err"; c=$?; sed "s/^/! /" "$HOME/err"; echo "= $c"; }
git init -q -b main .; git config user.name Ada; git config user.email ada@example.com; git config core.fileMode false
seq 1 30 >a.txt; echo b >b.txt; mkdir d; seq 5 >d/c.txt; seq 40 60 >ren.txt; git add .; git commit -qm one
sed -i 's/^5$/five/;s/^25$/twentyfive/' a.txt; rm b.txt; echo n >new.txt; git mv ren.txt moved.txt; sed -i 's/^50$/fifty/' moved.txt; printf 'no end' >d/c.txt; git add -A
P="$HOME/p.patch"; git diff --cached -M >"$P"; git reset -q --hard
r git apply --check "$P"
r git apply --stat "$P"
r git apply --numstat "$P"
r git apply --summary "$P"
r git apply --stat --summary --apply "$P"
r git status --short
r git apply "$P"
r git apply -R "$P"
r git status --short
r git apply --index "$P"
r git status --short
r git apply -R --index "$P"
r git status --short
r git apply --cached "$P"
r git status --short
git reset -q --hard
r git apply -v "$P"
git reset -q --hard; git clean -qfd
sed -i 's/^5$/other/' a.txt
r git apply "$P"
r git apply --index "$P"
git checkout -q .; printf 'x\ny\n' >h; cat h a.txt >a2; mv a2 a.txt; rm h
r git apply -v --include=a.txt "$P"
r git diff --stat
git reset -q --hard; git clean -qfd
r git apply --exclude='*.txt' "$P"
r git apply nope.patch
echo 'not a patch' | git apply; echo $?
printf 'diff --git a/../x b/../x\nnew file mode 100644\n--- /dev/null\n+++ b/../x\n@@ -0,0 +1 @@\n+x\n' >"$HOME/bad"; r git apply "$HOME/bad"
printf -- '--- a.txt\n+++ a.txt\n@@ -1,3 +1,3 @@\n-1\n+uno\n 2\n 3\n' >"$HOME/p0"; r git apply -p0 "$HOME/p0"; r head -2 a.txt
printf -- '--- a/a.txt\n+++ b/a.txt\n@@ -1,3 +1,3 @@\n-1\n+uno\n 2\n' >"$HOME/short"; r git apply "$HOME/short"
cd d; r git apply "$HOME/p0"; cd ..
printf 'a\0b' >bin; git add bin; git commit -qm bin; printf 'a\0c\0d' >bin; git diff --binary >"$HOME/bin.patch"; git checkout -q bin
r git apply "$HOME/bin.patch"; r git status --short
git checkout -q .
git diff --no-index /dev/null a.txt | git apply --check; echo $?
cat "$P" | git apply --check -; echo $?
