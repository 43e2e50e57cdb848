git init -q -b main .
git config user.name Ada
git config user.email ada@example.com
git config core.fileMode false
mkdir -p build src/gen docs
printf '# comment\n*.log\nbuild/\n!keep.log\n/top\nsrc/gen/*\n!src/gen/keep\n\\#hash\ntrail  \n**/deep/x\nfoo[0-9].txt\n' > .gitignore
printf '*.tmp\n!important.log\n' > src/.gitignore
echo info > .git/info/exclude
echo '*.bak' > ../home-ignore
for f in a.log keep.log build/x top src/top src/gen/a src/gen/keep src/a.tmp src/important.log src/b.log docs/a.log '#hash' trail foo1.txt foox.txt info x.bak; do echo x > "$f"; done
mkdir -p p/q/deep
echo x > p/q/deep/x
git status -s -uall
git status -s --ignored
git status -s --ignored -uall
git check-ignore a.log
git check-ignore -v a.log keep.log build/x top src/top src/gen/a src/gen/keep src/a.tmp src/important.log
git check-ignore -v -n a.log foox.txt
git check-ignore -n a.log
git check-ignore foox.txt
git check-ignore -q a.log
git check-ignore -q foox.txt
git check-ignore build
git check-ignore -v build/ build/x/y/z
git check-ignore nosuch.log nosuch/build/x
printf 'a.log\nfoox.txt\nbuild/x\n' | git check-ignore --stdin
printf 'a.log\nfoox.txt\nbuild/x\n' | git check-ignore --stdin -v -n
git check-ignore
git check-ignore --stdin x
git check-ignore -v info x.bak p/q/deep/x '#hash' trail foo1.txt
git -c core.excludesFile=../home-ignore status -s
git -c core.excludesFile=../home-ignore check-ignore x.bak
cd src
git check-ignore -v a.tmp gen/a ../a.log
git status -s --ignored
cd ..
git add .
git status -s
git add a.log
git add build
git add build/x
git add src/gen
git add src/gen/a a.log docs
git add -f a.log
git check-ignore a.log
git check-ignore --no-index a.log
git status -s
git ls-files
git rm -q --cached a.log
git ls-files -i -c --exclude-standard
git ls-files -o --exclude-standard
git ls-files -o -x '*.bak'
git add '*.log'
git add 'a.*'
rm ../home-ignore
