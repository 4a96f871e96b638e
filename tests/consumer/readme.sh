#!/bin/sh
# Builds and runs README.md's program by README.md's own commands, in a folder outside of the repository, as a user does who
# has installed Sluice. What it prints is compared with the page; other digits are fine.
# Usage: readme.sh REPOSITORY FOLDER, with CMAKE_PREFIX_PATH, PKG_CONFIG_PATH and LD_LIBRARY_PATH for the install tree
set -eu

repository=$1
rm -rf "$2" && mkdir -p "$2" && cd "$2"
ln -s "$repository/examples" examples

block() { awk -v first='```'"$1" '$0 == first { on = 1; next } /^```/ { on = 0 } on' "$repository/README.md"; }
without_digits() { sed 's/[0-9][0-9]*/9/g'; }

block cpp >shop.cpp
block cmake >CMakeLists.txt
block text | without_digits >wanted
block sh | grep -E '^(cmake -G|c\+\+) ' >commands
test "$(wc -l <commands)" = 3 && test "$(wc -l <wanted)" = 3

while IFS= read -r command; do
  echo "\$ $command"
  sh -ec "$command" >output 2>&1 || { cat output; exit 1; }
  case $command in
    *shop*) tail -n 3 output | without_digits | diff wanted - ;;
    *) ./example ;;
  esac
done <commands
