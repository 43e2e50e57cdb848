git init -q -b main .; git config user.name Ada; git config user.email ada@example.com
git config core.fileMode false
mkdir -p d/e; echo a > a.txt; echo f > d/e/f.txt; printf 'x\000y' > d/b.bin; git add .; git commit -q -m one
echo b > b.txt; git add .; git commit -q -m two; git tag v2
for o in HEAD HEAD~1 v2 "HEAD d" "HEAD a.txt d/e" "--prefix=x/ HEAD" "--prefix=x/y- HEAD a.txt" "HEAD^{tree}" "--format=tar HEAD:d"; do
  echo "=== archive $o"; git archive $o > o.tar; echo "code $?"; tar tf o.tar
done
mkdir out; git archive --prefix=p/ HEAD | tar xf - -C out; find out -type f | sort; cat out/p/d/e/f.txt; cmp d/b.bin out/p/d/b.bin && echo same
git archive -o o.zip HEAD; unzip -p o.zip d/e/f.txt; git archive --output=o.tar.gz HEAD a.txt; gzip -dc o.tar.gz | tar tf -
git archive --format=tgz HEAD | gzip -dc | tar tf -
(cd d; git archive HEAD | tar tf -)
git archive nothing; echo $?; git archive HEAD none; echo $?; git archive --format=rar HEAD; echo $?
