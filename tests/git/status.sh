git init -q -b main .
git config user.name Ada
git config user.email ada@example.com
git config core.fileMode false
git status
echo one > a.txt
mkdir -p src/deep
echo x > src/deep/x.c
git status
git add a.txt
git status
git commit -q -m first
git status
echo two >> a.txt
git status
git add -A
git status
echo three >> a.txt
git status
git commit -qam second
git mv a.txt b.txt
git status
rm src/deep/x.c
git status
git status -uno
git commit -qam third
git status
echo '*.o' > .gitignore
echo o > k.o
mkdir build
echo o > build/k.o
git status --ignored
git add .gitignore
git commit -qm ignore
cd src
git status
echo new > 'na me'
printf x > 'tab	x'
git status
git status ..
git status -s
git add .
git status
cd ..
git -c advice.statusHints=false status
git status build
git status src
rm b.txt
git status
ln -s nowhere b.txt
git status
git checkout -q --detach
git status
git commit -qam detached
git status
git checkout -q main
git tag v1
git checkout -q v1
git status
