#!/bin/sh
# Runs a command while it holds a lock of `sluice serve`: one at a time, on however many machines.
# Usage: lock_by_curl.sh URL NAME COMMAND [ARGUMENT...]
#   SLUICE_KEY  a key of the shop with the scope `tools`, where the service needs one
#   LEASE_MS    how long the lock stays when this script dies (30000)
# The command finds the fencing token in SLUICE_TOKEN. Exit code: the command's; 75 when the lock was lost meanwhile.
set -eu

[ $# -ge 3 ] || { sed -n '2,6s/^# //p' "$0" >&2; exit 2; }
lock=$1/v1/locks/$2
shift 2
lease_ms=${LEASE_MS:-30000}
wish=$(od -An -N16 -tx1 /dev/urandom | tr -d ' \n')  # names this wish: a repeat gets the same hold

# ask METHOD URL [JSON]: the body. Fails for a refusal. What may come right by itself (503, no connection) is asked again.
ask() {
  curl -sS --fail-with-body --retry 5 --retry-connrefused -X "$1" "$2" -H "Idempotency-Key: $wish" \
    ${SLUICE_KEY:+-H "Authorization: Bearer $SLUICE_KEY"} ${3:+-d "$3"}
}
text_of() { sed -n "s/.*\"$1\":\"\([^\"]*\)\".*/\1/p"; }

until hold=$(ask POST "$lock" "{\"wait_ms\":30000,\"lease_ms\":$lease_ms}" 2>/dev/null); do
  case $hold in *:held*) ;; *) echo "no lock: ${hold:-$1 does not answer}" >&2; exit 69 ;; esac
done
owner=$(echo "$hold" | text_of owner)
SLUICE_TOKEN=$(echo "$hold" | text_of token)
export SLUICE_TOKEN
trap 'ask DELETE "$lock/$owner" >/dev/null 2>&1 || true' EXIT

"$@" &
command=$!
(
  while sleep "$(awk "BEGIN { print $lease_ms / 4000 }")" >/dev/null 2>&1; do  # four times a lease, as the library does
    ask PUT "$lock/$owner" "{\"lease_ms\":$lease_ms}" >/dev/null 2>&1 && continue
    trap '' TERM  # the script, whose command ends now, is to hear of it
    echo "the lock is lost: the command is ended" >&2
    kill $command 2>/dev/null
    exit 75
  done
) &
renewal=$!
# Only now: a shell that was just forked with a trap might lose the signal that is to end it.
trap 'kill $command 2>/dev/null || true' INT TERM
status=0
wait $command || status=$?
kill $renewal 2>/dev/null || true
renewed=0
wait $renewal || renewed=$?
[ $renewed != 75 ] || status=75
exit $status
