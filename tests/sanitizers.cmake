# Which cases of which test program the sanitizers' trees have, and why. The plain tree has all of every program; a program without
# a row is an error.
#
#   program | AddressSanitizer and UndefinedBehaviorSanitizer | ThreadSanitizer | why the others are left out
#   all               every case
#   none              the program is not built
#   but FILTER ...    every case but those that match (patterns of GoogleTest)
#   in FILE ...       the program is built of these of its sources alone
#
# The rule: a sanitizer runs what it can find something in. AddressSanitizer's tree has what reads bytes from outside, keeps memory by
# hand, or passes coroutines and callbacks from one owner to another, each on the Store that does most itself; comparisons of tables and
# of another program's answers are left out, and so are processes that die, whose code runs in other tests. Simulations of decisions
# play their many seeds in the plain tree and a fifth of them here (test::rounds). ThreadSanitizer's tree has what runs on several threads.
set(sluice_sanitizer_table
  # base
  "base_test | all | all | "
  # bloom
  "bloom_test | but GuavaFilter.Has*FalsePositives* | in blocked_test.cpp threads_test.cpp | a chance is counted; the rest has one thread"
  "bloom_redistest | all | none | one thread; the client's threads are in redis_redistest"
  # cache
  "cache_test | all | all | "
  "cache_simtest | all | none | virtual time: one thread"
  "cache_redistest | all | all | "
  # cli
  "command_line_test | all | none | one thread"
  "child_test | all | none | one thread"
  "cli_redistest | none | none | it starts programs and reads what they print: what they call has tests of its own, words and options are in command_line_test"
  "load_test | all | none | one thread"
  "loadtest_redistest | none | none | it starts programs; the reader of responses is in load_test and response_fuzz"
  "move_redistest | none | none | it starts programs and compares what servers have"
  "programs_test | none | none | it starts programs and reads what they print"
  # contract
  "contract_redistest | but */embedded_folder */redis */secure */sentinel */proxied */served */kept | none | primitives on memory and on the Store that has most to do itself; each Store has tests of its own, with its threads"
  "moving_slot_redistest | none | none | what servers do with scripts is shown, and no code of ours"
  "scarcity_redistest | none | none | its functions take the place of libc's, as a sanitizer's do"
  "foreign_keys_redistest | none | none | what scripts do with keys of another type, and no code of ours"
  "late_copies_redistest | none | none | what servers do with late copies is shown, and no code of ours"
  # docs_test, floors_test: of texts
  "docs_test | none | none | reads texts"
  "recipes_redistest | none | none | it starts programs and reads what they print"
  "rights_redistest | none | none | each primitive's own tests run its verbs"
  "floors_test | none | none | reads texts"
  # engine
  "engine_differential_redistest | all | none | one thread"
  "engine_test | but ScriptAttacks.E03_CommandsOnLargeKeys* HostileKeys.E07_* | none | a cost is counted; one thread"
  "engine_redistest | all | none | one thread"
  "embedded_store_test | but TimeTest.OfTenThousandKeys* | but TimeTest.OfTenThousandKeys* | a cost is counted"
  "append_log_test | all | but AppendLog.E09_* AppendLog.LoadsAPrefix* | one thread in these"
  "append_log_redistest | all | none | one thread"
  "snapshot_redistest | all | none | one thread"
  # http
  "http_test | all | in proxy_protocol_test.cpp server_test.cpp stream_test.cpp | one thread in the others"
  "http_idle_test | all | none | one thread"
  # lock
  "lock_test | all | none | one thread"
  "lock_simtest | but ManyNames.* Waiting.PatienceWithoutEnd* FairOrder.F02_* FairOrder.F03_* QuorumStorm.Q05_* | in fair/owner_simtest.cpp hold/suspended_simtest.cpp hold/watchdog_simtest.cpp mutex/lockable_simtest.cpp | many seeds of decisions; virtual time: one thread in the others"
  "lock_simulation_simtest | but Seed.WhatWasFoundBefore Of/Strangers.* All/Mutated.* Branch.* | none | many seeds of decisions; virtual time: one thread"
  "shared_mutex_simtest | all | in shared/standard_simtest.cpp | virtual time: one thread in the others"
  "shared_mutex_redistest | none | none | its waits and threads are those of lock_redistest, its decisions are in shared_mutex_simtest"
  "lock_journals_test | none | none | a checker of histories, with one thread"
  "lock_redistest | but Chaos.NoPromiseIsBrokenInACluster* DurableWithAReplica.K28_* | but Chaos.NoPromiseIsBrokenInACluster* DurableWithAReplica.K28_* | how long servers take is a part of what these show"
  "lock_cluster_redistest | in wait/cluster_redistest.cpp | in wait/cluster_redistest.cpp | the servers' time, not ours, is what a cut shows"
  # loop, net
  "loop_test | all | none | one thread"
  "net_test | all | none | one thread"
  # number
  "number_test | all | none | one thread"
  "number_simtest | all | all | "
  "number_redistest | none | none | the Store beneath is tested by redis_redistest, the rest by number_simtest"
  # open
  "open_test | all | none | one thread"
  "open_redistest | all | none | one thread"
  # port
  "port_test | all | all | "
  "port_program_test | none | none | a program that is killed: what it calls is in port_test"
  "port_settings_test | all | none | one thread"
  # proxy
  "proxy_libraries_redistest | none | none | other people's clients and what they say; what the proxy does then is in the tests of flow"
  "proxy_config_test | all | none | one thread"
  "proxy_config_redistest | none | none | it compares decisions with nutcracker's"
  "proxy_strict_redis_redistest | all | none | one thread"
  "proxy_strict_memcached_redistest | all | none | one thread"
  "proxy_failures_redistest | but Ways/Failures.*three_connections Ways/Failures.*_strict Ways/Failures.*/*fail | but Ways/Failures.*three_connections Ways/Failures.*_strict Ways/Failures.*/*fail | the same ways with other settings"
  "proxy_clients_redistest | all | all | "
  "proxy_hostile_redistest | all | all | "
  "proxy_session_redistest | all | all | "
  "proxy_session_table_redistest | none | none | sessions are in proxy_session_redistest and proxy_strangers_redistest; programs are started"
  "proxy_strangers_redistest | all | all | "
  "proxy_flow_test | but AddressAccounts.AFloodOfAddresses* | none | a cost is counted; one thread"
  "proxy_scripts_redistest | all | all | "
  "proxy_addresses_redistest | all | all | "
  "proxy_hash_test | all | none | one thread"
  "proxy_memcached_test | all | none | one thread"
  "proxy_memcached_redistest | none | none | it compares answers with nutcracker's"
  "proxy_move_redistest | but RingMove.T60_ALargeKey* RingMove.PausedItServes* RingMove.WithoutTheBarrier* | none | processes: how long servers take; each has one thread that moves"
  "proxy_process_test | all | none | one thread"
  "proxy_process_redistest | all | none | it starts programs: ThreadSanitizer has the proxy inside the tests of flow"
  "proxy_redis_test | all | none | one thread"
  "proxy_redis_redistest | none | none | it compares answers with nutcracker's"
  "proxy_ring_test | all | none | one thread"
  "proxy_ring_redistest | none | none | it compares decisions with nutcracker's"
  "proxy_storm_redistest | all | all | "
  "proxy_watch_test | all | none | one thread"
  # redis
  "redis_test | all | all | "
  "cluster_redistest | all | all | "
  "redis_redistest | all | all | "
  # resp
  "resp_test | all | none | one thread"
  "resp_redistest | none | none | it compares tables with a server's"
  # room
  "room_test | but RoomDraw.V33_* | none | a chance is counted; one thread"
  "room_simtest | but RoomCrowd.V33_* RoomCrowd.V34_* RoomCrowd.V37_ACrowd* RoomCrowd.V38_* RoomCrowd.NoMore* RoomCrowd.AWaiter* Room.Eta* | none | many seeds of decisions; virtual time: one thread"
  "room_redistest | all | none | one thread"
  # sale
  "sale_test | all | in database_sqlite.cpp order_payments_suite.cpp order_store_suite.cpp | one thread in the others"
  "sale_sqltest | all | in database_servers.cpp order_payments_suite.cpp order_store_suite.cpp | one thread in the others"
  "sale_simtest | but SaleLife.V06_* SaleEnds.*AnyStep* RecoveryMishap.MayBeOvertaken* | in audit_test.cpp healing_simtest.cpp | many seeds of decisions; virtual time: one thread in the others"
  "sale_redistest | all | all | "
  "sale_crash_redistest | none | none | processes that are killed: what they call is in sale_redistest"
  "sale_failover_redistest | none | none | processes and servers that are killed: what they call is in sale_redistest and cluster_redistest"
  # server
  "server_test | all | all | "
  "server_pages_test | all | none | one thread"
  "server_redistest | all | none | it starts the program: ThreadSanitizer has the service inside server_test"
  "server_storm_redistest | none | none | processes that are killed: what they call is in server_test and server_redistest"
  "server_standstill_sqltest | none | none | servers that stand still: what they meet is in server_test and sale_sqltest"
  # store
  "store_test | all | all | "
  # support: what the tests themselves stand on
  "support_test | none | none | tools of the tests: the sanitizers see them in the tests that use them"
  "support_redistest | none | none | tools of the tests: the sanitizers see them in the tests that use them"
  # token
  "token_test | all | none | one thread"
  # topology
  "topology_simtest | all | none | virtual time: one thread"
  "topology_test | all | none | one thread"
  "topology_redistest | none | none | it compares maps with a server's"
)

# sluice_sanitized(NAME SOURCES APART): cuts the list that SOURCES names down to what this tree has of the program NAME, and sets
# APART to the filters of the cases that it leaves out.
function(sluice_sanitized name sources apart)
  set(row ${sluice_sanitizer_table})
  list(FILTER row INCLUDE REGEX "^${name} ")
  if(NOT row)
    message(FATAL_ERROR "tests/sanitizers.cmake has no row for ${name}: say what each sanitizer runs of it, and why")
  endif()
  set(${apart} "" PARENT_SCOPE)
  if(NOT SLUICE_SANITIZE)
    return()
  endif()
  string(REPLACE " | " ";" row "${row}")
  if(SLUICE_SANITIZE MATCHES "address")
    list(GET row 1 what)
  else()
    list(GET row 2 what)
  endif()
  separate_arguments(what UNIX_COMMAND "${what}")
  list(POP_FRONT what word)
  if(word STREQUAL "none")
    set(${sources} "" PARENT_SCOPE)
  elseif(word STREQUAL "in")
    set(${sources} ${what} PARENT_SCOPE)
  elseif(word STREQUAL "but")
    set(${apart} ${what} PARENT_SCOPE)
  elseif(NOT word STREQUAL "all")
    message(FATAL_ERROR "tests/sanitizers.cmake, ${name}: '${word}' is none of all, none, but, in")
  endif()
endfunction()
