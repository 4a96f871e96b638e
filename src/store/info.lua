-- What the server says of itself that has the slot of a key.
-- KEYS[1] the key   ARGV[1] section of INFO
-- Goes on while its slot moves: it asks for no key.
-- Reply: as INFO
return redis.call('INFO', ARGV[1])
