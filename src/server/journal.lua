-- script end_entry
-- The outcome of what was begun: its entry is written anew, and the old one goes.
-- Goes on while its slot moves: it has one key, and leaves it there.
-- KEYS[1] journal   ARGV[1] id of the entry that began   ARGV[2] most entries
-- ARGV[3..] fields and values
-- Reply: the id of the entry
redis.call('xdel', KEYS[1], ARGV[1])
return redis.call('xadd', KEYS[1], 'MAXLEN', ARGV[2], '*', 'begun', ARGV[1], unpack(ARGV, 3))
