# Lines of pip that behave as in pip itself: the same exit code, and the same text except for paths, sizes and times. `$U` is an
# index on loopback. Each `## name` starts without installed packages.
## install, list, freeze
pip install alpha && pip list && pip freeze
## a version
pip install alpha==1.0 && pip freeze
## a version that there is not
pip install alpha==9
## a package that there is not
pip install nowhere
## what it needs
pip install beta && pip freeze
## without what it needs
pip install --no-deps beta && pip freeze && pip check
## an extra
pip install 'beta[more]' && pip freeze
## an extra that there is not
pip install 'beta[other]' && pip freeze
## a file of requirements
printf 'alpha<1.1  # old\n-c limits.txt\nbeta\n' > r.txt; echo 'gamma==1.0' > limits.txt; pip install -r r.txt && pip freeze
## a newer one
pip install alpha==1.0 && pip install alpha && pip freeze && pip install -U alpha && pip freeze
## a yanked version
pip install alpha==2.0 && pip freeze
## a version for another Python
pip install future
## hashes that fit
printf 'gamma==1.0 --hash=sha256:%s\n' "$(cat $H/gamma)" > h.txt; pip install --require-hashes -r h.txt && pip freeze
## hashes that do not
printf 'gamma==1.0 --hash=sha256:%064d\n' 0 > h.txt; pip install --require-hashes -r h.txt
## hashes that are missing
echo gamma==1.0 > h.txt; pip install --require-hashes -r h.txt
## what a package is
pip install beta && pip show beta alpha nowhere
## its files
pip install gamma && pip show -f gamma
## uninstall
pip install beta && pip uninstall -y beta nowhere && pip list
## download
pip download -d d beta && ls d && pip install --no-index --find-links d beta && pip freeze
## into a directory
pip install --target t gamma && ls t && python3 -c 'import sys; sys.path.insert(0, "t"); import gamma; print(gamma.__name__)'
## two that do not agree
pip install 'alpha<1.1' clash
## a dry run
pip install --dry-run beta && pip freeze
## as JSON
pip install gamma && pip list --format json && pip list --format freeze
## outdated
pip install alpha==1.0 && pip list --outdated
## a wheel by its address, and by its path
pip install $U/files/gamma-1.0-py3-none-any.whl && pip download -q -d d alpha==1.0 && pip install d/alpha-1.0-py3-none-any.whl && pip freeze
## a wheel that is damaged
printf broken > broken-1.0-py3-none-any.whl; pip install ./broken-1.0-py3-none-any.whl
## an option that there is not
pip install --nothing alpha
## versions that there are
pip index versions alpha
## its own version
pip --version | cut -d ' ' -f 1-2
