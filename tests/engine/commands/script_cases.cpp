// EVAL, EVALSHA, SCRIPT: what goes in, what comes out, what is refused.
#include "engine/commands/command_cases.hpp"

namespace sluice::engine {
namespace {

constexpr CommandCase script_results[] = {
    {R"(EVAL "return true" 0)", "(integer) 1"},
    {R"(EVAL "return false" 0)", "(nil)"},
    {R"(EVAL "return nil" 0)", "(nil)"},
    {R"(EVAL "redis.setresp(3) return true" 0)", "true"},
    {R"(EVAL "redis.setresp(3) return false" 0)", "false"},
    {R"(EVAL "redis.setresp(3) return nil" 0)", "(nil)"},
    {R"(EVAL "return {1,true,false,3}" 0)", "[(integer) 1, (integer) 1, (nil), (integer) 3]"},
    {R"(EVAL "redis.setresp(3) return {1,true,false,3}" 0)",
     "[(integer) 1, true, false, (integer) 3]"},
    {R"(EVAL "return {double=3.5}" 0)", "(double) 3.5"},
    {R"(EVAL "return {double=3}" 0)", "(double) 3"},
    {R"(EVAL "return {double='x'}" 0)", "[]"},
    {R"(EVAL "return {map={a=1}}" 0)", R"(map["a", (integer) 1])"},
    {R"(EVAL "return {map={a=1,b={map={c=2}}}}" 0)",
     R"(map["a", (integer) 1, "b", map["c", (integer) 2]])"},
    {R"(EVAL "return {map=1}" 0)", "[]"},
    {R"(EVAL "return {set={a=true}}" 0)", R"(set["a"])"},
    {R"(EVAL "return {set={a=1}}" 0)", R"(set["a"])"},
    {R"(EVAL "return {big_number='123'}" 0)", R"("123")"},
    {R"(EVAL "return {big_number=123}" 0)", "[]"},
    {R"(EVAL "return {big_number='1\\r\\n2'}" 0)", R"("1  2")"},
    {R"(EVAL "return {verbatim_string={format='txt',string='hi'}}" 0)", R"("hi")"},
    {R"(EVAL "return {verbatim_string={format='toolong',string='hi'}}" 0)", R"("hi")"},
    {R"(EVAL "return {verbatim_string={string='hi'}}" 0)", "[]"},
    {R"(EVAL "return {null=1}" 0)", "[]"},
    {R"x(EVAL "redis.call('hset','h','a','1') redis.setresp(3) local )x"
     R"x(x=redis.call('hgetall','h') return cjson.encode(x)" 0)x",
     R"("{\"map\":{\"a\":\"1\"}}")", "hset h a 1"},
    {R"x(EVAL "redis.setresp(3) return redis.call('hgetall','h')" 0)x", R"(map["a", "1"])"},
    {R"x(EVAL "redis.call('sadd','set','a') redis.setresp(3) return )x"
     R"x(cjson.encode(redis.call('smembers','set'))" 0)x",
     R"("{\"set\":{\"a\":true}}")", "sadd set a"},
    {R"x(EVAL "redis.setresp(3) return redis.call('smembers','set')" 0)x", R"(set["a"])"},
    {R"x(EVAL "redis.call('zadd','z',1.5,'a') redis.setresp(3) return )x"
     R"x(cjson.encode(redis.call('zscore','z','a'))" 0)x",
     R"("{\"double\":1.5}")", "zadd z 1.5 a"},
    {R"x(EVAL "redis.setresp(3) return redis.call('zscore','z','a')" 0)x", "(double) 1.5"},
    {R"x(EVAL "return redis.call('zscore','z','a')" 0)x", R"("1.5")"},
    {R"x(EVAL "redis.setresp(3) return tostring(redis.call('get','nosuchkey'))" 0)x", R"("nil")"},
    {R"x(EVAL "return tostring(redis.call('get','nosuchkey'))" 0)x", R"("false")"},
    {R"x(EVAL "redis.setresp(3) return tostring(redis.call('blpop','nosuchkey',0))" 0)x",
     "(error) ERR This Redis command is not allowed from script script: "
     "a9382e69c8c5c6485b74e25955bd2256988f4338, on @user_script:1."},
    {R"(EVAL "redis.setresp(3) return {redis.call('get','nosuchkey'),1}" 0)", "[]"},
    {R"(EVAL "return {1,{2,{3,'a'}},{ok='x'},{err='E y'}}" 0)",
     R"([(integer) 1, [(integer) 2, [(integer) 3, "a"]], x, (error) E y])"},
    {R"(EVAL "return {1,redis.pcall('nosuch')}" 0)",
     "[(integer) 1, (error) ERR Unknown Redis command called from script]"},
    {R"x(EVAL "redis.setresp(3) return redis.call('hgetall','nosuch')" 0)x", "map[]"},
    {R"x(EVAL "redis.setresp(3) redis.setresp(2) return )x"
     R"x(cjson.encode(redis.call('hgetall','h'))" 0)x",
     R"("[\"a\",\"1\"]")"},
    {R"(EVAL "local t={1} local c=t for i=1,20 do c[2]={1} c=c[2] end return t" 0)",
     "[(integer) 1, [(integer) 1, [(integer) 1, [(integer) 1, [(integer) 1, [(integer) 1, "
     "[(integer) 1, [(integer) 1, [(integer) 1, [(integer) 1, [(integer) 1, [(integer) 1, "
     "[(integer) 1, [(integer) 1, [(integer) 1, [(integer) 1, [(integer) 1, [(integer) 1, "
     "[(integer) 1, [(integer) 1, [(integer) 1]]]]]]]]]]]]]]]]]]]]]"},
    {R"(EVAL "return {{err='x'},{err='y z'}}" 0)", "[(error) x, (error) y z]"},
    {R"(EVAL "local a={} setmetatable(a,{__index=function() return 1 end}) return a" 0)", "[]"},
    {R"(EVAL "local a={} setmetatable(a,{__index={ok='x'}}) return a" 0)", "[]"},
};

constexpr CommandCase script_errors[] = {
    {R"(EVAL "local ok,e=pcall(redis.call,'get') return {tostring(ok),type(e),e}" 0)",
     R"(["false", "string", "ERR Wrong number of args calling Redis command from script"])"},
    {R"(EVAL "local ok,e=pcall(error,{err='MY x',a=1}) return )"
     R"({tostring(ok),type(e),tostring(e.err)}" 0)",
     R"(["false", "string", "nil"])"},
    {R"(EVAL "local ok,e=pcall(function() error({err='MY x',a=1}) end) return )"
     R"({tostring(ok),type(e),tostring(e)}" 0)",
     R"(["false", "string", "MY x"])"},
    {R"(EVAL "local ok,e=pcall(error,{1}) return {tostring(ok),type(e)}" 0)",
     R"(["false", "table"])"},
    {R"x(EVAL "local ok,e=xpcall(function() redis.call('get') end, function(x) return x end) )x"
     R"x(local t={} for k,v in pairs(e) do t[#t+1]=k..'='..tostring(v) end table.sort(t) )x"
     R"x(return table.concat(t,';')" 0)x",
     R"("err=ERR Wrong number of args calling Redis command from )"
     R"(script;ignore_error_stats_update=true")"},
    {"EVAL error() 0",
     "(error) ERR nil script: aca90d914519fdb9825352bdc0befb59f7c8510f, on @user_script:1."},
    {"EVAL error(nil) 0",
     "(error) ERR nil script: c402aa49952c86c38f35fb311d54977d08f3bf01, on @user_script:1."},
    {"EVAL error(12) 0",
     "(error) ERR user_script:1: 12 script: 531d78cb0a3022f46aa8fcca247caa61d303b321, on "
     "@user_script:1."},
    {R"x(EVAL "error('MY code',0)" 0)x",
     "(error) ERR MY code script: fa53c9d96734de552fb3db0c50664fe9063bed1b, on @user_script:1."},
    {R"(EVAL "return {err='E bad'}" 0)", "(error) E bad"},
    {R"(EVAL "return {err='bad'}" 0)", "(error) bad"},
    {R"(EVAL "return {err='-E bad'}" 0)", "(error) -E bad"},
    {R"(EVAL "return {err=''}" 0)", "(error) "},
    {R"(EVAL "return {err=12}" 0)", "[]"},
    {R"(EVAL "return {ok='fine'}" 0)", "fine"},
    {R"(EVAL "return {ok=1}" 0)", "[]"},
    {R"x(EVAL "return redis.error_reply('bad thing')" 0)x", "(error) bad thing"},
    {R"x(EVAL "return redis.error_reply('-MY thing')" 0)x", "(error) MY thing"},
    {R"x(EVAL "return redis.error_reply('MY')" 0)x", "(error) ERR MY"},
    {R"x(EVAL "return redis.error_reply('-MY')" 0)x", "(error) ERR MY"},
    {R"x(EVAL "return redis.error_reply('')" 0)x", "(error) ERR "},
    {R"x(EVAL "return redis.error_reply(1)" 0)x", "(error) ERR wrong number or type of arguments"},
    {R"x(EVAL "return redis.error_reply()" 0)x", "(error) ERR wrong number or type of arguments"},
    {R"x(EVAL "return redis.error_reply('a','b')" 0)x",
     "(error) ERR wrong number or type of arguments"},
    {R"x(EVAL "return redis.status_reply('ok')" 0)x", "ok"},
    {R"x(EVAL "return redis.status_reply(1)" 0)x", "(error) ERR wrong number or type of arguments"},
    {R"x(EVAL "return redis.sha1hex('')" 0)x", R"("da39a3ee5e6b4b0d3255bfef95601890afd80709")"},
    {R"x(EVAL "return redis.sha1hex()" 0)x",
     "(error) ERR wrong number of arguments script: 3c7ce947ae74a835cc575b6ee87fb27503cb7ba4, on "
     "@user_script:1."},
    {R"x(EVAL "return redis.sha1hex(1)" 0)x", R"("356a192b7913b04c54574d18c28d46e6395428ab")"},
    {R"x(EVAL "return redis.sha1hex({})" 0)x", R"("da39a3ee5e6b4b0d3255bfef95601890afd80709")"},
    {R"x(EVAL "return redis.sha1hex('a','b')" 0)x",
     "(error) ERR wrong number of arguments script: edf6261c570172733db1a1733deb85dff3d07a94, on "
     "@user_script:1."},
    {R"x(EVAL "return redis.log(1)" 0)x",
     "(error) ERR redis.log() requires two arguments or more. script: "
     "f5438245431406aa19fc387d93c6d03a0d5bcb0f, on @user_script:1."},
    {R"x(EVAL "return redis.log(9,'a')" 0)x",
     "(error) ERR Invalid debug level. script: 59b71523a4263e356caa07e100ea617888678853, on "
     "@user_script:1."},
    {R"x(EVAL "return redis.log(redis.LOG_NOTICE,'a','b')" 0)x", "(nil)"},
    {R"x(EVAL "return redis.log('a','b')" 0)x",
     "(error) ERR First argument must be a number (log level). script: "
     "0b33418de8f38b54c447ba6772ee3d6d6309b011, on @user_script:1."},
    {R"x(EVAL "return redis.setresp(4)" 0)x",
     "(error) ERR RESP version must be 2 or 3. script: 921c0a48021d97dfd5884aeea41875972c7804d9, "
     "on @user_script:1."},
    {R"x(EVAL "return redis.setresp()" 0)x",
     "(error) ERR redis.setresp() requires one argument. script: "
     "76da64e28014e7c9ad76db33c3918c53d81a3d7e, on @user_script:1."},
    {R"x(EVAL "return redis.setresp('x')" 0)x",
     "(error) ERR RESP version must be 2 or 3. script: 832d0a243114b515e35cb3f65c28e22af06cd822, "
     "on @user_script:1."},
    {R"x(EVAL "return redis.setresp(3)" 0)x", "(nil)"},
    {R"x(EVAL "return redis.set_repl(1)" 0)x", "(nil)"},
    {R"x(EVAL "return redis.set_repl()" 0)x",
     "(error) ERR redis.set_repl() requires two arguments. script: "
     "9504533b41060c143a92eb2f8878e77d33b6dc33, on @user_script:1."},
    {R"x(EVAL "return redis.set_repl(9)" 0)x",
     "(error) ERR Invalid replication flags. Use REPL_AOF, REPL_REPLICA, REPL_ALL or REPL_NONE. "
     "script: f43d522179aeb2c4dadb59b026d11ed249ca02e0, on @user_script:1."},
    {R"x(EVAL "return tostring(redis.replicate_commands())" 0)x", R"("true")"},
    {R"x(EVAL "return tostring(redis.breakpoint())" 0)x", R"("false")"},
    {R"x(EVAL "return tostring(redis.acl_check_cmd('get','a'))" 0)x", R"("true")"},
    {R"x(EVAL "return tostring(redis.acl_check_cmd('nosuch','a'))" 0)x",
     "(error) ERR Invalid command passed to redis.acl_check_cmd() script: "
     "3115badec103a1ec45247aff2a477c2595ef890d, on @user_script:1."},
    {R"x(EVAL "return redis.acl_check_cmd()" 0)x",
     "(error) ERR Please specify at least one argument for this redis lib call script: "
     "1124f33ad66e7866b4e0c1499a4c20fb5eb9c180, on @user_script:1."},
    {R"(EVAL "return {1,2,nil,4}" 0)", "[(integer) 1, (integer) 2]"},
    {R"(EVAL "return 3.99" 0)", "(integer) 3"},
    {R"(EVAL "return 1e30" 0)", "(integer) -9223372036854775808"},
    {R"(EVAL "return -1e30" 0)", "(integer) -9223372036854775808"},
    {R"(EVAL "return 0/0" 0)", "(integer) -9223372036854775808"},
    {R"(EVAL "return function() end" 0)", "(nil)"},
    {R"x(EVAL "return coroutine.create(function() end)" 0)x", "(nil)"},
    {R"(EVAL "this is wrong" 0)",
     "(error) ERR Error compiling script (new function): user_script:1: '=' expected near 'is'"},
    {R"(EVAL "return 'a' .." 0)",
     "(error) ERR Error compiling script (new function): user_script:1: unexpected symbol near "
     "'<eof>'"},
    {R"x(EVAL "return unpack({1,2,3})" 0)x", "(integer) 1"},
    {R"x(EVAL "local function f() error('deep') end f()" 0)x",
     "(error) ERR user_script:1: deep script: 6e55e4c7eeab6079f3ae18f9557aa936b9ac4ec8, on "
     "@user_script:1."},
    {R"x(EVAL "local function f() redis.call('nosuch') end f()" 0)x",
     "(error) ERR Unknown Redis command called from script script: "
     "beb7ff855feeffbeef0b366f5f15c6b3537832e6, on @user_script:1."},
    {"EVAL assert(false) 0",
     "(error) ERR user_script:1: assertion failed! script: "
     "2878c2ae3cafd05c022d4f19e4b521d97df409a2, on @user_script:1."},
    {"EVAL assert(false,'why') 0",
     "(error) ERR user_script:1: why script: 36917b2596d14481324de4c7cc4410739d6cb263, on "
     "@user_script:1."},
    {R"x(EVAL "assert(nil,{err='X y'})" 0)x",
     "(error) ERR user_script:1: bad argument #2 to 'assert' (string expected, got table) script: "
     "6b67ce5434e56e6630092b3f215d12739d1eb410, on @user_script:1."},
    {R"(EVAL "return {loadstring('\\27Lua')}" 0)", "[]"},
    {R"(EVAL "return {loadstring('return ==')}" 0)", "[]"},
    {R"(EVAL "return {pcall(load, function() return nil end)}" 0)", "[(integer) 1, (nil)]"},
    {R"(EVAL "return {ok='a\\r\\nb'}" 0)", "a  b"},
    {R"(EVAL "return {err='a\\r\\nb'}" 0)", "(error) a  b"},
    {R"(EVAL "return {err='X a\\r\\n'}" 0)", "(error) X a"},
    {R"x(EVAL "return os.time()" 0)x",
     "(error) ERR user_script:1: Script attempted to access nonexistent global variable 'os' "
     "script: 13dea82ee9da896aebcd10f5e36f4a1eeb839b48, on @user_script:1."},
    {R"x(EVAL "return string.rep('a',-1)" 0)x", R"("")"},
    {R"x(EVAL "redis.call('set','s',3.5) return redis.call('get','s')" 0)x", R"("3.5")",
     "set s 3.5"},
    {R"x(EVAL "redis.call('set','s',1e20) return redis.call('get','s')" 0)x", R"("1e+20")",
     "set s 1e+20"},
    {R"(EVAL "local a = KEYS[1] + 1" 0)",
     "(error) ERR user_script:1: attempt to perform arithmetic on field '?' (a nil value) script: "
     "4281e1328923f8feb6cadba1eff8cbabae874541, on @user_script:1."},
    {R"(EVAL "local a = nil + 1" 0)",
     "(error) ERR user_script:1: attempt to perform arithmetic on a nil value script: "
     "b077f1b8df8640265d919efadd6350982031d6bf, on @user_script:1."},
    {R"(EVAL "local a = {} .. 'x'" 0)",
     "(error) ERR user_script:1: attempt to concatenate a table value script: "
     "81b7565a916e0fbb470638c79dd81d5e1589c0b3, on @user_script:1."},
    {R"(EVAL "KEYS.foo.bar = 1" 0)",
     "(error) ERR user_script:1: attempt to index field 'foo' (a nil value) script: "
     "408b528bd420290162cc3afff5f6f44d98d9077c, on @user_script:1."},
    {R"(EVAL "return redis.nosuch" 0)", "(nil)"},
    {R"x(EVAL "return redis.nosuch()" 0)x",
     "(error) ERR user_script:1: attempt to call field 'nosuch' (a nil value) script: "
     "064c0d38ec6d45fb37cd950fd37e609359986738, on @user_script:1."},
    {R"(EVAL "return getmetatable('').x" 0)", "(nil)"},
    {R"x(EVAL "return tostring(getmetatable(redis))" 0)x", R"("nil")"},
    {R"(EVAL "return #redis" 0)", "(integer) 0"},
    {R"(EVAL "return next(redis) ~= nil" 0)", "(integer) 1"},
    {R"x(EVAL "return rawget(_G,'nosuch')" 0)x", "(nil)"},
    {R"x(EVAL "return rawget(_G,'KEYS')" 0)x", "[]"},
    {R"(EVAL "return _G.nosuch" 0)",
     "(error) ERR user_script:1: Script attempted to access nonexistent global variable 'nosuch' "
     "script: 434fa3e610ec2fb3c76472bda5965a75eef9cde8, on @user_script:1."},
    {R"(EVAL "for i,v in ipairs(KEYS) do end return ipairs" 0)", "(nil)"},
    {R"x(EVAL "return tostring(ARGV.x)" 0)x", R"("nil")"},
    {R"(EVAL "table.insert(KEYS,'a') return KEYS" 0)", R"(["a"])"},
    {R"x(EVAL "return coroutine.wrap(function() return redis.call('get','x') end)()" 0)x", "(nil)"},
    {R"x(EVAL "return coroutine.wrap(function() error('in co') end)()" 0)x",
     "(error) ERR user_script:1: user_script:1: in co script: "
     "088901c0683486eee1d11ff380a68bb1d820fdce, on @user_script:1."},
    {R"x(EVAL "return coroutine.wrap(function() redis.call('nosuch') end)()" 0)x",
     "(error) ERR Unknown Redis command called from script script: "
     "4a762dc67b7051adf96c6b9f1441922508ff8058, on @user_script:1."},
    {R"x(EVAL "return select('#', redis.pcall('set','a','b'))" 0)x", "(integer) 1", "set a b"},
    {"EVAL redis.call('set','a','b','c') 0",
     "(error) ERR syntax error script: d5b4dc91a8907c9f5452588949b9dcd406cb8670, on "
     "@user_script:1."},
    {"EVAL redis.call('lpush','a','b') 0",
     "(error) WRONGTYPE Operation against a key holding the wrong kind of value script: "
     "dd05d3ac0b0bcd094c64f5690a13172452eb9823, on @user_script:1."},
    {R"x(EVAL "return redis.pcall('lpush','a','b')" 0)x",
     "(error) WRONGTYPE Operation against a key holding the wrong kind of value"},
    {R"x(EVAL "local e=redis.pcall('lpush','a','b') local t={} for k,v in pairs(e) do )x"
     R"x(t[#t+1]=k..'='..tostring(v) end table.sort(t) return table.concat(t,';')" 0)x",
     R"("err=WRONGTYPE Operation against a key holding the wrong kind of )"
     R"(value;ignore_error_stats_update=true")"},
    {R"(EVAL "return redis.call('SET','a','b').ok" 0)", R"("OK")", "SET a b"},
    {R"x(EVAL "return redis.call('set','a','b')" 0)x", "OK", "set a b"},
    {R"(EVAL "return {redis.call('set','a','b'),redis.pcall('lpush','a','b')}" 0)",
     "[OK, (error) WRONGTYPE Operation against a key holding the wrong kind of value]", "set a b"},
    {R"x(EVAL "return redis.call('multi')" 0)x",
     "(error) ERR This Redis command is not allowed from script script: "
     "c329a1a294be6bf95b44144f7502610661ae925a, on @user_script:1."},
    {R"(EVAL "return redis.call('time') ~= nil" 0)", "(integer) 1"},
    {R"x(EVAL "return redis.call('select',1)" 0)x", "OK"},
    {R"x(EVAL "return redis.call('script','flush')" 0)x",
     "(error) ERR This Redis command is not allowed from script script: "
     "2e2db287d48c36431e8437bb7077dc6af3cae3d6, on @user_script:1."},
    {R"x(EVAL "return redis.call('blpop','nolist',0)" 0)x",
     "(error) ERR This Redis command is not allowed from script script: "
     "abca6f0af300bbde50e15c9226201a7d087652cf, on @user_script:1."},
    {R"x(EVAL "return redis.call('xread','block',0,'streams','nostr','$')" 0)x",
     "(error) ERR xread command is not allowed with BLOCK option from scripts script: "
     "2ea93533aca13b0795e6bae6bda80b0c6a4821a4, on @user_script:1."},
    {R"x(EVAL "return redis.call('publish','a','b')" 0)x", "(integer) 0"},
    {R"x(EVAL "return redis.call(1)" 0)x",
     "(error) ERR Unknown Redis command called from script script: "
     "9bdfc0557e68d76a6a10c85f455de0f93ee495a7, on @user_script:1."},
    {R"x(EVAL "return redis.call(nil)" 0)x",
     "(error) ERR Lua redis lib command arguments must be strings or integers script: "
     "99304b0aecba6a93ad3911cc253cf22c84ab4d15, on @user_script:1."},
    {R"x(EVAL "return redis.call('get',nil)" 0)x",
     "(error) ERR Lua redis lib command arguments must be strings or integers script: "
     "c4f0508352db6a351553146ea055b37d9498876d, on @user_script:1."},
    {R"x(EVAL "return redis.call('set','a',1,2,3,{})" 0)x",
     "(error) ERR Lua redis lib command arguments must be strings or integers script: "
     "bb73711c2dc8b313f40e8568a057093c60309ce7, on @user_script:1."},
};

constexpr CommandCase script_commands[] = {
    {"EVALSHA abc 0", "(error) NOSCRIPT No matching script. Please use EVAL."},
    {"EVALSHA 0123456789012345678901234567890123456789 0",
     "(error) NOSCRIPT No matching script. Please use EVAL."},
    {"EVALSHA e0e1f9fabfc9d4800c877a703b823ac0578ff8db",
     "(error) ERR wrong number of arguments for 'evalsha' command"},
    {R"(EVAL "return 1")", "(error) ERR wrong number of arguments for 'eval' command"},
    {R"(EVAL "return 1" a)", "(error) ERR value is not an integer or out of range"},
    {R"(EVAL "return 1" 2 a)", "(error) ERR Number of keys can't be greater than number of args"},
    {R"(EVAL "return 1" -1)", "(error) ERR Number of keys can't be negative"},
    {R"x(EVAL_RO "return redis.call(\"set\",\"a\",\"b\")" 0)x",
     "(error) ERR Write commands are not allowed from read-only scripts. script: "
     "554a95710d45ea243cdf37846a5028cfac292109, on @user_script:1."},
    {R"x(EVAL_RO "return redis.pcall(\"set\",\"a\",\"b\")" 0)x",
     "(error) ERR Write commands are not allowed from read-only scripts."},
    {R"x(EVAL_RO "return redis.call(\"publish\",\"a\",\"b\")" 0)x",
     "(error) ERR Write commands are not allowed from read-only scripts. script: "
     "1909236aa354c2e9c7136daca55205c3a87ce93c, on @user_script:1."},
    {R"x(EVAL_RO "return redis.call(\"get\",\"a\")" 0)x", "(nil)"},
    {R"x(EVAL "#!lua flags=no-writes\nreturn redis.call(\"set\",\"a\",\"b\")" 0)x",
     "(error) ERR Write commands are not allowed from read-only scripts. script: "
     "fd62e2d5b0fa7f778ebeeae125841af41328b852, on @user_script:2."},
    {R"(EVAL "#!lua flags=xx\nreturn 1" 0)", "(error) ERR Unexpected flag in script shebang: xx"},
    {R"(EVAL "#!js\nreturn 1" 0)", "(error) ERR Unexpected engine in script shebang: #!js"},
    {R"(EVAL "#!lua name=x\nreturn 1" 0)", "(error) ERR Unknown lua shebang option: name=x"},
    {"EVAL #!lua 0", "(error) ERR Invalid script shebang"},
    {R"x(EVAL "#!lua\nerror(\"x\")" 0)x",
     "(error) ERR user_script:2: x script: 23ade40b599317f18975e8cce62f1fabc797480f, on "
     "@user_script:2."},
    {R"(EVAL "#!lua flags=\nreturn 2" 0)", "(integer) 2"},
    {R"(EVAL "#!lua flags=no-writes,allow-oom,allow-stale,no-cluster\nreturn 2" 0)", "(integer) 2"},
    {R"(EVAL_RO "#!lua\nreturn 2" 0)",
     "(error) ERR Can not execute a script with write flag using *_ro command."},
    {R"(EVAL_RO "#!lua flags=no-writes\nreturn 2" 0)", "(integer) 2"},
    {R"(EVAL "return 1" 0 x)", "(integer) 1"},
    {"SCRIPT", "(error) ERR wrong number of arguments for 'script' command"},
    {"SCRIPT LOAD", "(error) ERR wrong number of arguments for 'script|load' command"},
    {R"(SCRIPT LOAD "return 1")", R"("e0e1f9fabfc9d4800c877a703b823ac0578ff8db")"},
    {R"(SCRIPT LOAD "bad bad")",
     "(error) ERR Error compiling script (new function): user_script:1: '=' expected near 'bad'"},
    {"SCRIPT EXISTS", "(error) ERR wrong number of arguments for 'script|exists' command"},
    {"SCRIPT EXISTS abc e0e1f9fabfc9d4800c877a703b823ac0578ff8db "
     "E0E1F9FABFC9D4800C877A703B823AC0578FF8DB",
     "[(integer) 0, (integer) 1, (integer) 1]"},
    {"EVALSHA E0E1F9FABFC9D4800C877A703B823AC0578FF8DB 0", "(integer) 1"},
    {"SCRIPT KILL", "(error) NOTBUSY No scripts in execution right now."},
    {"SCRIPT FLUSH", "OK"},
    {"SCRIPT FLUSH async", "OK"},
    {"SCRIPT FLUSH SYNC", "OK"},
    {"SCRIPT FLUSH bad", "(error) ERR SCRIPT FLUSH only support SYNC|ASYNC option"},
    {"SCRIPT NOSUCH", "(error) ERR unknown subcommand 'NOSUCH'. Try SCRIPT HELP."},
    {"SCRIPT FLUSH a b", "(error) ERR SCRIPT FLUSH only support SYNC|ASYNC option"},
    {"SCRIPT DEBUG no", "OK"},
    {"SCRIPT DEBUG bad", "(error) ERR Use SCRIPT DEBUG YES/SYNC/NO"},
    {"EVALSHA_RO 0123456789012345678901234567890123456789 0",
     "(error) NOSCRIPT No matching script. Please use EVAL."},
};

constexpr CommandCase functions[] = {
    {"FUNCTION LOAD \"#!lua name=lib\\nredis.register_function('put', function(keys, args) "
     "redis.call('SET', keys[1], args[1]) return #args end)\"",
     "\"lib\"", "="},
    {"FCALL put 1 k v", "(integer) 1", "SET k v"},
    {"FCALL PUT 1 k v", "(integer) 1", "SET k v"},
    {"FCALL_RO put 1 k v",
     "(error) ERR Can not execute a script with write flag using *_ro command."},
    {"FCALL nothing 0", "(error) ERR Function not found"},
    {"FCALL put x", "(error) ERR Bad number of keys provided"},
    {"FUNCTION LOAD \"#!lua name=lib\\nredis.register_function('a', function() end)\"",
     "(error) ERR Library 'lib' already exists"},
    {"FUNCTION LOAD \"#!lua name=other\\nredis.register_function('put', function() end)\"",
     "(error) ERR Function put already exists"},
    {"FUNCTION LOAD REPLACE \"#!lua name=lib\\nredis.register_function{function_name='get', "
     "callback=function(k) return redis.call('GET', k[1]) end, flags={'no-writes'}, "
     "description='what it holds'}\"",
     "\"lib\"", "="},
    {"FCALL put 1 k v", "(error) ERR Function not found"},
    {"FCALL_RO get 1 k", "\"v\""},
    {"FUNCTION LIST",
     "[map[\"library_name\", \"lib\", \"engine\", \"LUA\", \"functions\", "
     "[map[\"name\", \"get\", \"description\", \"what it holds\", \"flags\", "
     "set[no-writes]]]]]"},
    {"FUNCTION LIST LIBRARYNAME x*", "[]"},
    {"FUNCTION STATS",
     "map[\"running_script\", (nil), \"engines\", map[\"LUA\", "
     "map[\"libraries_count\", (integer) 1, \"functions_count\", (integer) 1]]]"},
    {"EVAL \"return redis.call('FCALL', 'get', 1, 'k')\" 0",
     "(error) ERR This Redis command is not allowed from script script: "
     "97784dbe671e92f4a0e96803f914d516a5e0a1cc, on @user_script:1."},
    {"FUNCTION DELETE lib", "OK", "="},
    {"FUNCTION DELETE lib", "(error) ERR Library not found"},
    {"FUNCTION FLUSH SYNC", "OK", "="},
    {"FUNCTION KILL", "(error) NOTBUSY No scripts in execution right now."},
};

}  // namespace

std::span<const CommandTable> script_tables() {
  static constexpr CommandTable tables[] = {
      {"script_results", script_results},
      {"script_errors", script_errors},
      {"script_commands", script_commands},
      {"functions", functions},
  };
  return tables;
}

}  // namespace sluice::engine
