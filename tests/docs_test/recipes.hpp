/// The commands by which the pages change a store: how each is tried, or why it is not.
#pragma once

#include <string>
#include <vector>

namespace sluice::docs {

/// A command as a page has it. Shell commands go before it and behind it, and all that is printed
/// has `shows` in it.
struct Recipe {
  std::string command;
  std::string words;  // what stands for words of the page: "NAME=deploy|N=57"
  std::string before;
  std::string effect;
  std::string shows;
};

inline const std::vector<Recipe> recipes{
    // series.md
    {"sluice number INV --zone Europe/Berlin --digits 6 --count 3", "", "",
     "redis-cli hget '{INV}:s' taken", "\n3\n"},
    {"sluice number INV repair --dry-run", "",
     "day=$(redis-cli hget '{INV}:s' day); redis-cli hset '{INV}:s' $day 3 day 20990101 taken 7 "
     "last 4070952000000000",
     "redis-cli hget '{INV}:s' day", "\n20990101\n"},
    {"sluice number INV repair --why 'NTP of db1'", "", "", "redis-cli hget '{INV}:s' 20990101",
     "\n7\n"},
    {"redis-cli XRANGE '{INV}:repairs' - +", "", "", "", "NTP of db1"},
    {"sluice number INV repair --given N", "N=57", "", "redis-cli hget '{INV}:s' taken", "\n57\n"},
    // operations.md; that the numbers go on behind a restored backup has a test of its own
    {"sluice number INV repair --given 57", "", "redis-cli hset '{INV}:s' taken 3",
     "redis-cli hget '{INV}:s' taken", "\n57\n"},
    {"sluice --store embedded:/var/lib/app number INV repair --given 57", "/var/lib/app=$PWD/app",
     "sluice --store embedded:$PWD/app number INV -n 3",
     "sluice --store embedded:$PWD/app number INV repair --dry-run", "0058"},
    {"ACL SETUSER app on >secret ~app:* ~*{app:* ~sluice:* &redisson_*{app:* &sluice_*{app:* "
     "&sluice:* +@all -@dangerous +info",
     "", "",
     "sluice --store redis://app:secret@127.0.0.1:$PORT lock app:x -- echo held; redis-cli --user "
     "app --pass secret get other 2>&1 | grep -o NOPERM",
     "held\nNOPERM"},
    {"redis-cli --scan --pattern 'redisson_lock_token:{app:order:*' | while read -r key; do\n"
     "  name=${key#*\\{}; name=${name%\\}}\n"
     "  if [ \"$(redis-cli exists \"$name\")\" = 0 ]; then redis-cli unlink \"$key\"; fi\n"
     "done",
     "",
     "redis-cli mset 'redisson_lock_token:{app:order:1}' 5 'redisson_lock_token:{app:order:2}' 5 "
     "app:order:2 held",
     "echo left; redis-cli keys 'redisson_lock_token:{app:order*'",
     "left\nredisson_lock_token:{app:order:2}\n"},
    // embedded.md
    {"sluice engine move redis://127.0.0.1:6379 embedded:/var/lib/app --hold 10m",
     "127.0.0.1:6379=127.0.0.1:$PORT|/var/lib/app=$PWD/moved|10m=10ms", "redis-cli set moved yes",
     "sluice engine dump $PWD/moved", "\nyes\r\n"},
    // ids.md
    {"sluice id customer-id --count 3", "", "", "redis-cli exists customer-id", "\n1\n"},
    {"sluice id --explain ID", "ID=5733023744001", "", "", "issued"},
    // shared_bloom.md
    {"sluice bloom create users --expected 1000000 --error-rate 0.01", "", "",
     "redis-cli hget '{users}:config' expectedInsertions", "\n1000000\n"},
    {"sluice bloom contains users anna && echo 'ask the database'", "",
     "sluice bloom add users anna", "sluice bloom contains users bert || echo unknown",
     "ask the database\nunknown"},
    {"sluice bloom info users", "", "", "", "1000000"},
    // waiting_room.md
    {"sluice room create maotai --rate 50 --inside 500 --opens 2026-11-11T12:00Z",
     "2026-11-11=2025-11-11", "", "redis-cli hexists '{maotai}:room' definition", "\n1\n"},
    {"sluice room verify maotai 4711", "4711=", "", "", "as promised"},
    {"sluice room remove NAME", "NAME=maotai", "", "redis-cli exists '{maotai}:room'", "\n0\n"},
    // lock_watch.md
    {"sluice lock NAME -- CMD", "NAME=deploy|CMD=sh -c 'sluice locks deploy; echo $SLUICE_TOKEN'",
     "", "redis-cli exists deploy", "deploy"},
    {"sluice lock --fair NAME -- CMD", "NAME=printer|CMD=sluice locks printer", "", "", "printer"},
    {"sluice lock --shared NAME -- CMD", "NAME=prices|CMD=sluice locks prices", "", "", "prices"},
    {"sluice lock a -- sluice lock b -- CMD", "CMD=sluice locks", "", "", "b "},
    {"sluice semaphore NAME --permits 4 [--count 2] -- CMD",
     "NAME=desks|[--count 2]=--count 2|CMD=sluice locks desks", "", "redis-cli get desks", "\n4\n"},
    {"sluice latch NAME set 3", "NAME=import", "", "redis-cli get import", "\n3\n"},
    {"sluice latch NAME [wait] [--wait 1h] [-- CMD]",
     "NAME=import|[wait]=wait|[--wait 1h]=--wait 1h|[-- CMD]=-- echo open", "redis-cli del import",
     "", "open"},
};

/// How commands begin that are not tried here, and why not.
struct Untried {
  std::string begins;
  std::string why;
};

inline const std::vector<Untried> untried{
    {"sluice sale ", "they want a database: tests/cli/sale_redistest.cpp"},
    {"sluice lock --quorum ", "it wants several servers: tests/cli/locks_redistest.cpp"},
    {"CONFIG SET tls-cert-file", "it wants certificates: tests/redis/tls_redistest.cpp"},
    {"SET … GET", "a form of a command"},
    {"ACL SETUSER NAME", "the rules are those of the user: tests/proxy/move has them given back"},
    {"redis-cli --cluster reshard", "scripts/chaos --cluster does it"},
    {"redis-cli -p PORT ", "it asks a proxy: tests/proxy"},
    {"redis-cli --pipe", "what a dump is for: tests/cli/engine_redistest.cpp dumps and loads"},
    {"FAILOVER TO", "what a server was told, not what to tell it"},
};

}  // namespace sluice::docs
