# The examples of public headers as one source. A block of a comment that is set in by five spaces is an example, and becomes a
# function of its own; one that specializes a template stands by itself. A compiler names the line of the header. Text that is
# no code stands between ``` lines in a comment.
# Usage: awk -f examples.awk include/sluice/*.hpp

function end_example() {
  if (code == "") return
  type = code ~ /co_await/ ? "sluice::Task<void>" : "Anything"
  printf "\n"
  if (code ~ /^ *template/) printf "%s%s", place, code
  else printf "namespace reader {\n%s example_%d() {\n%s%s}\n}\n", type, ++count, place, code
  code = ""
}

BEGIN { print "#include \"headers/examples.hpp\"" }
FNR == 1 { end_example(); fenced = 0 }
/^ *\/\/\/ ```/ { fenced = !fenced }
/^ *\/\/\/     / && !fenced {
  if (code == "") place = sprintf("#line %d \"%s\"\n", FNR, FILENAME)
  sub(/^ *\/\/\/     /, "")
  code = code $0 "\n"
  next
}
/^ *\/\/\/$/ && code != "" { code = code "\n"; next }
{ end_example() }
END {
  end_example()
  exit count < 20  # then it has not understood the headers
}
