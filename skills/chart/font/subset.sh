#!/bin/sh
# Makes the fonts of this directory from Inter's: Latin, Greek and Cyrillic letters, figures, signs; no layout tables.
# usage: subset.sh DIRECTORY_OF_INTER    (needs pyftsubset of fonttools)
set -eu
letters=U+0020-007E,U+00A0-017F,U+0192,U+0218-021B,U+02C6,U+02DA,U+02DC,U+0384-038A,U+038C,U+038E-03A1,U+03A3-03CE
letters=$letters,U+0400-045F,U+0490-0491,U+1E9E
signs=U+2010-2015,U+2018-201E,U+2020-2022,U+2026,U+2030,U+2032-2033,U+2039-203A,U+2044,U+2070,U+2074-2079
signs=$signs,U+207A-207B,U+2080-2089,U+20AC,U+20B9,U+20BD,U+2103,U+2116,U+2122,U+2126,U+215B-215E,U+2190-2193
signs=$signs,U+2202,U+2206,U+220F,U+2211-2212,U+221A,U+221E,U+222B,U+2248,U+2260,U+2264-2265,U+25CF,U+FFFD
for weight in Regular SemiBold; do
    pyftsubset "$1/Inter-$weight.otf" --unicodes="$letters,$signs" --layout-features='' --no-hinting \
        --name-IDs='0,1,2,13,14' --notdef-outline --drop-tables+=GPOS,GSUB,GDEF,BASE,DSIG \
        --output-file="$(dirname "$0")/Inter-$weight.otf"
done
