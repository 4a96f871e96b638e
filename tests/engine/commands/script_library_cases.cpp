// The libraries of scripts.
#include "engine/commands/command_cases.hpp"

namespace sluice::engine {
namespace {

constexpr CommandCase script_json[] = {
    {R"x(EVAL "return cjson.encode({})" 0)x", R"("{}")"},
    {R"x(EVAL "return cjson.encode({1,2,3})" 0)x", R"("[1,2,3]")"},
    {R"x(EVAL "return cjson.encode({a=1})" 0)x", R"("{\"a\":1}")"},
    {R"x(EVAL "return cjson.encode({[1]=1,[3]=3})" 0)x", R"("[1,null,3]")"},
    {R"x(EVAL "return cjson.encode({[1]=1,[100]=3})" 0)x",
     "(error) ERR user_script:1: Cannot serialise table: excessively sparse array script: "
     "323b44c965f482c5cb1b8085cce9cdcd6ab884fd, on @user_script:1."},
    {R"x(EVAL "return cjson.encode(cjson.null)" 0)x", R"("null")"},
    {R"x(EVAL "return cjson.encode(nil)" 0)x", R"("null")"},
    {R"x(EVAL "return cjson.encode(1/0)" 0)x",
     "(error) ERR user_script:1: Cannot serialise number: must not be NaN or Inf script: "
     "08ffdaa5e7f117332da21c3b5222c2ede9492c60, on @user_script:1."},
    {R"x(EVAL "return cjson.encode(0/0)" 0)x",
     "(error) ERR user_script:1: Cannot serialise number: must not be NaN or Inf script: "
     "d3f8d4e745d6587b04e9dd216e0d4631f0a306d9, on @user_script:1."},
    {R"x(EVAL "return cjson.encode(0.1)" 0)x", R"("0.1")"},
    {R"x(EVAL "return cjson.encode(12345678901234567)" 0)x", R"("1.2345678901235e+16")"},
    {R"x(EVAL "return cjson.encode('a/b\"c\\\\\\n\\127\\1\\b\\f\\t\\r\\233')" 0)x",
     R"("\"a\\/b\\\"c\\\\\\n\\u007f\\u0001\\b\\f\\t\\r\xe9\"")"},
    {R"x(EVAL "return cjson.encode(true)" 0)x", R"("true")"},
    {R"x(EVAL "return cjson.encode(function() end)" 0)x",
     "(error) ERR user_script:1: Cannot serialise function: type not supported script: "
     "c6600573aa08cdf0af5da6e0ef682db69a3acc00, on @user_script:1."},
    {R"x(EVAL "return cjson.encode({function() end})" 0)x",
     "(error) ERR user_script:1: Cannot serialise function: type not supported script: "
     "aa74f3bc7cb17d535a3d8aaf56c746488fba7b39, on @user_script:1."},
    {R"x(EVAL "return cjson.encode({[true]=1})" 0)x",
     "(error) ERR user_script:1: Cannot serialise boolean: table key must be a number or string "
     "script: 376a640005c8509c694166527ca834359bf69aa8, on @user_script:1."},
    {R"x(EVAL "return cjson.encode({[1.5]=1})" 0)x", R"("{\"1.5\":1}")"},
    {R"x(EVAL "return cjson.encode()" 0)x",
     "(error) ERR user_script:1: bad argument #1 to 'encode' (expected 1 argument) script: "
     "fc593ea31f478c7ed65c77495cc63edeb9153530, on @user_script:1."},
    {R"x(EVAL "return cjson.encode(1,2)" 0)x",
     "(error) ERR user_script:1: bad argument #1 to 'encode' (expected 1 argument) script: "
     "9796fc0f4acc8ba1f9133e705bfd4aa24561765a, on @user_script:1."},
    {R"x(EVAL "local t={} t[1]=t return cjson.encode(t)" 0)x",
     "(error) ERR user_script:1: Cannot serialise, excessive nesting (1001) script: "
     "a506053e74ab4b60484b77ae0b676d988172bc86, on @user_script:1."},
    {R"(EVAL "return cjson.decode('[1,2,null,{\"a\":\"b\\\\u00e9\\\\ud83d\\\\ude00\"}]')[4].a" 0)",
     R"("b\xc3\xa9\xf0\x9f\x98\x80")"},
    {R"x(EVAL "return tostring(cjson.decode('null'))" 0)x", R"x("userdata: (nil)")x"},
    {R"x(EVAL "return tostring(cjson.decode('[null]')[1] == cjson.null)" 0)x", R"("true")"},
    {R"x(EVAL "return cjson.decode('[1,2')" 0)x",
     "(error) ERR user_script:1: Expected comma or array end but found T_END at character 5 "
     "script: c107001b5ba2ff860ee2557f64da37c4767ef4bd, on @user_script:1."},
    {R"x(EVAL "return cjson.decode('{\"a\"}')" 0)x",
     "(error) ERR user_script:1: Expected colon but found T_OBJ_END at character 5 script: "
     "f0a9c953b5de2269fefed17badeddc57357e2c25, on @user_script:1."},
    {R"x(EVAL "return cjson.decode('')" 0)x",
     "(error) ERR user_script:1: Expected value but found T_END at character 1 script: "
     "7ff8cf86abed928f4d61a01dcc9713f0117b180a, on @user_script:1."},
    {R"x(EVAL "return cjson.decode('nul')" 0)x",
     "(error) ERR user_script:1: Expected value but found invalid token at character 1 script: "
     "5586fdf8c512d9c8a68678c91a0de23617e84e25, on @user_script:1."},
    {R"x(EVAL "return cjson.decode('[1,2] x')" 0)x",
     "(error) ERR user_script:1: Expected the end but found invalid token at character 7 script: "
     "cef1b12d60faaebf258ea79f382ebf246e902bf2, on @user_script:1."},
    {R"x(EVAL "return cjson.decode('\"\\\\x\"')" 0)x",
     "(error) ERR user_script:1: Expected value but found invalid escape code at character 2 "
     "script: e15fa517a0e30bc5ba472a9403d98fe6c88ca8e5, on @user_script:1."},
    {R"x(EVAL "return cjson.decode('\"\\\\ud83d\"')" 0)x",
     "(error) ERR user_script:1: Expected value but found invalid unicode escape code at character "
     "2 script: a6c52b6928b77ab585254f4aad3a29c682736f38, on @user_script:1."},
    {R"x(EVAL "return cjson.decode('\"\\\\ude00\"')" 0)x",
     "(error) ERR user_script:1: Expected value but found invalid unicode escape code at character "
     "2 script: 8f5a5d0c62f864810e9d6f8da1941b32dfb7516e, on @user_script:1."},
    {R"x(EVAL "return cjson.decode('\"\\\\u12\"')" 0)x",
     "(error) ERR user_script:1: Expected value but found invalid unicode escape code at character "
     "2 script: abf3d7a6907669d8b3a294456e4dca885645512f, on @user_script:1."},
    {R"x(EVAL "return cjson.decode('\"abc')" 0)x",
     "(error) ERR user_script:1: Expected value but found unexpected end of string at character 5 "
     "script: 30d67c6fb8e066eef4796bfcc59cee500c381744, on @user_script:1."},
    {R"x(EVAL "return cjson.decode('0x10')" 0)x", "(integer) 16"},
    {R"x(EVAL "return tostring(cjson.decode('1e5'))" 0)x", R"("100000")"},
    {R"x(EVAL "return tostring(cjson.decode('1.'))" 0)x", R"("1")"},
    {R"x(EVAL "return tostring(cjson.decode('+1'))" 0)x", R"("1")"},
    {R"x(EVAL "return cjson.decode('-')" 0)x",
     "(error) ERR user_script:1: Expected value but found invalid number at character 1 script: "
     "a968c762a4638482bd9ef50dcecdc4504214d87d, on @user_script:1."},
    {R"x(EVAL "return cjson.decode('.5')" 0)x",
     "(error) ERR user_script:1: Expected value but found invalid token at character 1 script: "
     "121c0b0f2d2ad62de9456ed953ed7b854d2ec58d, on @user_script:1."},
    {R"x(EVAL "return tostring(cjson.decode('nan'))" 0)x", R"("nan")"},
    {R"x(EVAL "return tostring(cjson.decode('Infinity'))" 0)x", R"("inf")"},
    {R"x(EVAL "return tostring(cjson.decode('-inf'))" 0)x", R"("-inf")"},
    {R"x(EVAL "return cjson.decode('01')" 0)x", "(integer) 1"},
    {R"x(EVAL "return cjson.decode('[1,]')" 0)x",
     "(error) ERR user_script:1: Expected value but found T_ARR_END at character 4 script: "
     "d31ab1dd313d99d4ad3dac6e48cdff283bea270c, on @user_script:1."},
    {R"x(EVAL "return cjson.decode('[,1]')" 0)x",
     "(error) ERR user_script:1: Expected value but found T_COMMA at character 2 script: "
     "8d3eede6798b7c83d6ad51ebefaafbf000bdd35a, on @user_script:1."},
    {R"x(EVAL "return cjson.decode('[1 2]')" 0)x",
     "(error) ERR user_script:1: Expected comma or array end but found T_NUMBER at character 4 "
     "script: cae89247ef27d42d411c61ae44ff3af6ab258d99, on @user_script:1."},
    {R"x(EVAL "return cjson.decode('{\"a\":1,}')" 0)x",
     "(error) ERR user_script:1: Expected object key string but found T_OBJ_END at character 8 "
     "script: 7e3659dd873275ff5047e436b0cc31cc91d160e4, on @user_script:1."},
    {R"x(EVAL "return cjson.decode('{a:1}')" 0)x",
     "(error) ERR user_script:1: Expected object key string but found invalid token at character 2 "
     "script: aa371bc362872c9711669b4bae40d03d5d8403ab, on @user_script:1."},
    {R"x(EVAL "return cjson.decode('{1:1}')" 0)x",
     "(error) ERR user_script:1: Expected object key string but found T_NUMBER at character 2 "
     "script: 39975652284445c0a4461fbe58b0a4a1cd6aebc9, on @user_script:1."},
    {R"x(EVAL "return cjson.decode('{\"a\" 1}')" 0)x",
     "(error) ERR user_script:1: Expected colon but found T_NUMBER at character 6 script: "
     "3486ee24bfdfc100c738c73355e99954ef01d92f, on @user_script:1."},
    {R"x(EVAL "return cjson.decode('{\"a\":1 \"b\"}')" 0)x",
     "(error) ERR user_script:1: Expected comma or object end but found T_STRING at character 8 "
     "script: ed604cfa816fcbf85760ca2c8a390a51415cd1aa, on @user_script:1."},
    {R"x(EVAL "return cjson.decode('}')" 0)x",
     "(error) ERR user_script:1: Expected value but found T_OBJ_END at character 1 script: "
     "624d1d3b539e5bc974f8121606306b1c4e403f7e, on @user_script:1."},
    {R"x(EVAL "return cjson.decode('\"a\x09b\"')" 0)x", R"("a\x09b")"},
    {R"x(EVAL "return cjson.decode('\"a\\nb\"')" 0)x", R"("a\x0ab")"},
    {R"x(EVAL "return cjson.decode()" 0)x",
     "(error) ERR user_script:1: bad argument #1 to 'decode' (expected 1 argument) script: "
     "5378278d59343caf5c3375a655dfea5e69ab8a74, on @user_script:1."},
    {R"x(EVAL "return cjson.decode({})" 0)x",
     "(error) ERR user_script:1: bad argument #1 to 'decode' (string expected, got table) script: "
     "10c706d54b3ae7d2bcc169d647405abd961145fa, on @user_script:1."},
    {R"x(EVAL "return cjson.decode(1)" 0)x", "(integer) 1"},
    {R"x(EVAL "return cjson.decode('1','2')" 0)x",
     "(error) ERR user_script:1: bad argument #1 to 'decode' (expected 1 argument) script: "
     "ea77a2c79708aa847c05d68e6a33b8aa514a74f1, on @user_script:1."},
    {R"x(EVAL "return cjson.decode('\\0')" 0)x",
     "(error) ERR user_script:1: Expected value but found T_END at character 1 script: "
     "415c2ca45509b359c98e03d445d505048ec768e3, on @user_script:1."},
    {R"x(EVAL "return cjson.decode('[1\\0]')" 0)x",
     "(error) ERR user_script:1: Expected comma or array end but found T_END at character 3 "
     "script: f565bae8b748e5fc09709f478cd80505f962b6b2, on @user_script:1."},
    {R"x(EVAL "return cjson.decode(' [ 1 , 2 ]\\n')" 0)x", "[(integer) 1, (integer) 2]"},
    {R"x(EVAL "return cjson.decode(string.rep('[',1001))" 0)x",
     "(error) ERR user_script:1: Found too many nested data structures (1001) at character 1001 "
     "script: 3f9e99ea360e5a68adf972ec047746d5b9bda33e, on @user_script:1."},
    {R"x(EVAL "return #cjson.encode(cjson.decode(string.rep('[',1000)..string.rep(']',1000)))" 0)x",
     "(integer) 2000"},
    {R"x(EVAL "local t={} for i=1,1001 do t={t} end return cjson.encode(t)" 0)x",
     "(error) ERR user_script:1: Cannot serialise, excessive nesting (1001) script: "
     "5c8c63936d4978f4e934e84e103ab09f606f8ac2, on @user_script:1."},
    {R"x(EVAL "local t={} for i=1,999 do t={t} end return #cjson.encode(t)" 0)x", "(integer) 2000"},
    {R"x(EVAL "local t={} for i=1,1000 do t={t} end return #cjson.encode(t)" 0)x",
     "(error) ERR user_script:1: Cannot serialise, excessive nesting (1001) script: "
     "ee4f9b316c65e6f6ecc640301e56f42c0ea43608, on @user_script:1."},
    {R"(EVAL "return cjson._VERSION" 0)", R"("2.1.0")"},
    {R"x(EVAL "return cjson.encode({[0]=1})" 0)x", R"("{\"0\":1}")"},
    {R"x(EVAL "return cjson.encode({[-1]=1})" 0)x", R"("{\"-1\":1}")"},
    {R"x(EVAL "return cjson.encode({[1]=1,[12]=3})" 0)x",
     "(error) ERR user_script:1: Cannot serialise table: excessively sparse array script: "
     "3e3efb2b344ca8164fbe64c5b409c85a7a80d9c9, on @user_script:1."},
    {R"x(EVAL "return cjson.encode({[1]=1,[11]=3})" 0)x",
     "(error) ERR user_script:1: Cannot serialise table: excessively sparse array script: "
     "cd4aed161aa9a8ef41d2d775acf3af0b261b2533, on @user_script:1."},
    {R"x(EVAL "return cjson.encode({[1]=1,[10]=3})" 0)x",
     R"("[1,null,null,null,null,null,null,null,null,3]")"},
    {R"x(EVAL "return cjson.encode({[1]=1,[2]=2,[12]=3})" 0)x",
     "(error) ERR user_script:1: Cannot serialise table: excessively sparse array script: "
     "9d8654afee68062f1c5f39462d6d2a4500828f8d, on @user_script:1."},
    {R"x(EVAL "return cjson.encode({[2]=1})" 0)x", R"("[null,1]")"},
    {R"x(EVAL "return cjson.encode({1,2,nil,4})" 0)x", R"("[1,2,null,4]")"},
    {R"x(EVAL "return cjson.encode({1,2,a=4})" 0)x", R"("{\"1\":1,\"2\":2,\"a\":4}")"},
    {R"x(EVAL "return cjson.encode('\\0')" 0)x", R"("\"\\u0000\"")"},
    {R"(EVAL "return cjson.decode('[\"\\\\u0000a\"]')[1]" 0)", R"("\x00a")"},
    {R"x(EVAL "return cjson.encode(-0)" 0)x", R"("-0")"},
    {R"x(EVAL "return cjson.encode(1e15)" 0)x", R"("1e+15")"},
    {R"x(EVAL "return cjson.encode(1e14)" 0)x", R"("1e+14")"},
    {R"x(EVAL "return cjson.encode(1e13)" 0)x", R"("10000000000000")"},
    {R"x(EVAL "return cjson.encode(-1.5e-7)" 0)x", R"("-1.5e-07")"},
    {R"(EVAL "return {tostring(cjson.encode_sparse_array()),tostring(cjson.encode_max_depth()),t)"
     R"(ostring(cjson.decode_max_depth()),tostring(cjson.encode_number_precision()),tostring(cjs)"
     R"(on.encode_keep_buffer()),tostring(cjson.encode_invalid_numbers()),tostring(cjson.decode_)"
     R"(invalid_numbers())}" 0)",
     R"(["false", "1000", "1000", "14", "true", "false", "true"])"},
    {R"x(EVAL "cjson.encode_sparse_array(true) return cjson.encode({[1]=1,[100]=3})" 0)x",
     R"("{\"1\":1,\"100\":3}")"},
    {R"(EVAL "return {cjson.encode_number_precision(3), cjson.encode(3.14159)}" 0)",
     R"([(integer) 3, "3.14"])"},
    {R"x(EVAL "return cjson.encode_number_precision(15)" 0)x",
     "(error) ERR user_script:1: bad argument #1 to 'encode_number_precision' (expected integer "
     "between 1 and 14) script: bbd9450de606b026b51b67e7b961ff09397ea6dd, on @user_script:1."},
    {R"(EVAL "return {cjson.encode_invalid_numbers(true), cjson.encode(1/0), cjson.encode(0/0), )"
     R"(cjson.encode(-1/0)}" 0)",
     R"([(integer) 1, "inf", "nan", "-inf"])"},
    {R"(EVAL "return {cjson.encode_invalid_numbers('null'), cjson.encode(1/0)}" 0)",
     R"(["null", "null"])"},
    {R"x(EVAL "return cjson.encode_invalid_numbers('x')" 0)x",
     "(error) ERR user_script:1: bad argument #1 to 'encode_invalid_numbers' (invalid option 'x') "
     "script: d0919eb606ab1137a838c04117daa31f83784e6f, on @user_script:1."},
    {R"x(EVAL "return tostring(cjson.decode_invalid_numbers(false))" 0)x", R"("false")"},
    {R"x(EVAL "cjson.decode_invalid_numbers(false) return cjson.decode('nan')" 0)x",
     "(error) ERR user_script:1: Expected value but found invalid token at character 1 script: "
     "00a63b082b8bcb56b4db5aa3481440c110ee2a35, on @user_script:1."},
    {R"x(EVAL "return type(cjson.new())" 0)x", R"("table")"},
};

constexpr CommandCase script_bits_and_bytes[] = {
    {R"(EVAL "return {bit.tobit(0xffffffff), bit.tohex(255), bit.tohex(255,4), )"
     R"(bit.tohex(255,-4), bit.tohex(-1,-8), bit.band(12,10,8), bit.bor(1,2,4), bit.bxor(5,1), )"
     R"(bit.bnot(0), bit.lshift(1,31), bit.rshift(-1,28), bit.arshift(-16,2), )"
     R"(bit.rol(0x12345678,12), bit.ror(0x12345678,12), bit.bswap(0x12345678)}" 0)",
     R"([(integer) -1, "000000ff", "00ff", "00FF", "FFFFFFFF", (integer) 8, (integer) 7, )"
     R"((integer) 4, (integer) -1, (integer) -2147483648, (integer) 15, (integer) -4, (integer) )"
     R"(1164411171, (integer) 1736516421, (integer) 2018915346])"},
    {R"(EVAL "return {bit.tobit(1e10), bit.tobit(-1.5), bit.tobit(2^40+5), bit.tobit(1.5), )"
     R"(bit.tobit(2.5),bit.lshift(1,33), bit.band(1)}" 0)",
     "[(integer) 1410065408, (integer) -2, (integer) 5, (integer) 2, (integer) 2, (integer) 2, "
     "(integer) 1]"},
    {R"x(EVAL "return bit.band()" 0)x",
     "(error) ERR user_script:1: bad argument #1 to 'band' (number expected, got no value) script: "
     "5cf53f885283a4f44a8fe7ad7e7fccaed4113e62, on @user_script:1."},
    {R"x(EVAL "return bit.band('a')" 0)x",
     "(error) ERR user_script:1: bad argument #1 to 'band' (number expected, got string) script: "
     "7cc2768d648bc7d97d8aa0cc459bb2186cb828f4, on @user_script:1."},
    {R"x(EVAL "return bit.band('5')" 0)x", "(integer) 5"},
    {R"x(EVAL "return bit.tobit({})" 0)x",
     "(error) ERR user_script:1: bad argument #1 to 'tobit' (number expected, got table) script: "
     "c9c355caabcd207bb2074ae3fd5cc71de2ef4e3e, on @user_script:1."},
    {R"x(EVAL "return bit.tohex(255,0)" 0)x", R"("")"},
    {R"x(EVAL "return bit.tohex(255,20)" 0)x", R"("000000ff")"},
    {R"x(EVAL "return bit.tohex(0x1234,2)" 0)x", R"("34")"},
    {R"x(EVAL "return struct.pack('>I2h','1','2')" 0)x", R"("\x00\x01\x00\x02")"},
    {R"(EVAL "return {struct.unpack('>I2', '\\1\\2')}" 0)", "[(integer) 258, (integer) 3]"},
    {R"(EVAL "return {struct.unpack('<I4 b', '\\1\\2\\3\\4\\255')}" 0)",
     "[(integer) 67305985, (integer) -1, (integer) 6]"},
    {R"(EVAL "return {struct.size('<i8 b h d f')}" 0)", "[(integer) 23]"},
    {R"(EVAL "return {struct.size('!8 b i8')}" 0)", "[(integer) 16]"},
    {R"(EVAL "return {struct.size('!4 b d b i')}" 0)", "[(integer) 20]"},
    {R"x(EVAL "return struct.size('bd')" 0)x", "(integer) 9"},
    {R"x(EVAL "return struct.size('!bd')" 0)x", "(integer) 16"},
    {R"x(EVAL "return struct.size('lLTfdhHiI')" 0)x", "(integer) 48"},
    {R"(EVAL "return struct.pack('s','ab')..'|'" 0)", R"("ab\x00|")"},
    {R"(EVAL "return {struct.unpack('s','ab\\0c')}" 0)", R"(["ab", (integer) 4])"},
    {R"(EVAL "return {struct.unpack('s','ab')}" 0)",
     "(error) ERR user_script:1: unfinished string in data script: "
     "cc67239586c090e3fd2334cf46827290ac7ecc71, on @user_script:1."},
    {R"(EVAL "return {struct.unpack('Bc0','\\3abc')}" 0)", R"(["abc", (integer) 5])"},
    {R"(EVAL "return {struct.unpack('Bc0','\\3ab')}" 0)",
     "(error) ERR user_script:1: bad argument #2 to 'unpack' (data string too short) script: "
     "254223c535003d6b6506a4c8f7bdce5971ac3bcb, on @user_script:1."},
    {R"(EVAL "return {struct.unpack('c5','ab')}" 0)",
     "(error) ERR user_script:1: bad argument #2 to 'unpack' (data string too short) script: "
     "843e1f27bf874f29e6158da84a7a0f00b493ca97, on @user_script:1."},
    {R"x(EVAL "return struct.pack('c5','ab')" 0)x",
     "(error) ERR user_script:1: bad argument #3 to 'pack' (string too short) script: "
     "b916690fc9a740092944345811c3302adec3cc65, on @user_script:1."},
    {R"x(EVAL "return struct.pack('c2','abc')" 0)x", R"("ab")"},
    {R"x(EVAL "return struct.pack('c0','abc')" 0)x", R"("abc")"},
    {R"x(EVAL "return struct.pack('c','abc')" 0)x", R"("a")"},
    {R"x(EVAL "return struct.pack('I3',70000)" 0)x", R"("p\x11\x01")"},
    {R"x(EVAL "return struct.pack('i33',1)" 0)x",
     "(error) ERR user_script:1: integral size 33 is larger than limit of 32 script: "
     "4b5c165af2e6891884809860ebfa9b6c33a178b8, on @user_script:1."},
    {R"x(EVAL "return struct.pack('q',1)" 0)x",
     "(error) ERR user_script:1: bad argument #1 to 'pack' (invalid format option 'q') script: "
     "1b5cc12c9373f0c88806e2dfc2bf83162eb3a0a1, on @user_script:1."},
    {R"x(EVAL "return struct.pack('I',-1)" 0)x", R"("\xff\xff\xff\xff")"},
    {R"x(EVAL "return struct.pack('I',2^33+7)" 0)x", R"("\x07\x00\x00\x00")"},
    {R"x(EVAL "return struct.pack('I8',2^63)" 0)x", R"("\x00\x00\x00\x00\x00\x00\x00\x80")"},
    {R"x(EVAL "return struct.pack('i8',-2^63)" 0)x", R"("\x00\x00\x00\x00\x00\x00\x00\x80")"},
    {R"x(EVAL "return struct.pack('>d',1.5)" 0)x", R"("?\xf8\x00\x00\x00\x00\x00\x00")"},
    {R"x(EVAL "return struct.pack('<f',1.5)" 0)x", R"("\x00\x00\xc0?")"},
    {R"x(EVAL "return struct.pack('x')" 0)x", R"("\x00")"},
    {R"x(EVAL "return struct.pack('bxb',1,2)" 0)x", R"("\x01\x00\x02")"},
    {R"x(EVAL "return struct.pack('!3',1)" 0)x",
     "(error) ERR user_script:1: alignment 3 is not a power of 2 script: "
     "c37713babf277a406c2e6b7c13365e8ccd706fd4, on @user_script:1."},
    {R"x(EVAL "return struct.pack('!16 b d',1,2)" 0)x",
     R"("\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00@")"},
    {R"x(EVAL "return struct.pack('i',nil)" 0)x",
     "(error) ERR user_script:1: bad argument #2 to 'pack' (number expected, got nil) script: "
     "fec4d097381c8a9ee7592da8ed300dd845efff48, on @user_script:1."},
    {R"x(EVAL "return struct.pack()" 0)x",
     "(error) ERR user_script:1: bad argument #1 to 'pack' (string expected, got no value) script: "
     "c9b8aed4f0633591e6252db264bf8b86b82828d5, on @user_script:1."},
    {R"x(EVAL "return struct.pack('i')" 0)x",
     "(error) ERR user_script:1: bad argument #2 to 'pack' (number expected, got nil) script: "
     "63b299178a495d059d925846f3a5f58587cb30c9, on @user_script:1."},
    {R"x(EVAL "return struct.pack('','a')" 0)x", R"("")"},
    {R"(EVAL "return {struct.unpack('i','abc')}" 0)",
     "(error) ERR user_script:1: bad argument #2 to 'unpack' (data string too short) script: "
     "af759e306439362260dcb8b2d945712cef11a4fb, on @user_script:1."},
    {R"(EVAL "return {struct.unpack('b','abc',2)}" 0)", "[(integer) 98, (integer) 3]"},
    {R"(EVAL "return {struct.unpack('b','abc',4)}" 0)",
     "(error) ERR user_script:1: bad argument #2 to 'unpack' (data string too short) script: "
     "97043ef6234e7f554c0a32807ae12ce1ceae1214, on @user_script:1."},
    {R"(EVAL "return {struct.unpack('b','abc',5)}" 0)",
     "(error) ERR user_script:1: bad argument #2 to 'unpack' (data string too short) script: "
     "95345e92fb83a1984ff7faa68eafe642eb742642, on @user_script:1."},
    {R"(EVAL "return {struct.unpack('b','abc',0)}" 0)",
     "(error) ERR user_script:1: bad argument #3 to 'unpack' (offset must be 1 or greater) script: "
     "810c9ab37cef2b13b35eef6a8b839dfacfcde291, on @user_script:1."},
    {R"(EVAL "return {struct.unpack('b','abc',-1)}" 0)",
     "(error) ERR user_script:1: bad argument #2 to 'unpack' (data string too short) script: "
     "4f33b344571d1b3e38bb9f78b07c30540eddb4e0, on @user_script:1."},
    {R"x(EVAL "return struct.size('s')" 0)x",
     "(error) ERR user_script:1: bad argument #1 to 'size' (option 's' has no fixed size) script: "
     "a2a0525826ab7939ccd3f54427a862205642f28f, on @user_script:1."},
    {R"x(EVAL "return struct.size('c0')" 0)x",
     "(error) ERR user_script:1: bad argument #1 to 'size' (option 'c0' has no fixed size) script: "
     "18f217e7d560de92703dc71e9797e043b536e0e6, on @user_script:1."},
    {R"x(EVAL "return struct.size('c2147483647')" 0)x", "(integer) 2147483647"},
    {R"x(EVAL "return struct.size('c2147483648')" 0)x",
     "(error) ERR user_script:1: integral size overflow script: "
     "292a304409e9de38cfc7b4873d7ee2977fbb25fe, on @user_script:1."},
    {R"x(EVAL "return struct.size('c2147483640 c2147483640')" 0)x", "(integer) 4294967280"},
    {R"(EVAL "return {struct.unpack('i8','\\255\\255\\255\\255\\255\\255\\255\\255')}" 0)",
     "[(integer) -1, (integer) 9]"},
    {R"(EVAL "return {tostring(select(1,struct.unpack('I8',')"
     R"(\\255\\255\\255\\255\\255\\255\\255\\255')))}" 0)",
     R"(["1.844674407371e+19"])"},
    {R"(EVAL "return {struct.unpack('c0','abc')}" 0)",
     "(error) ERR user_script:1: format 'c0' needs a previous size script: "
     "d7fcde18cf5d973da02562f3589334c292e7700c, on @user_script:1."},
    {R"(EVAL "return {struct.unpack('=b','a')}" 0)",
     "(error) ERR user_script:1: bad argument #1 to 'unpack' (invalid format option '=') script: "
     "63d140d4869a42ba7c364f7462694744d2d3a4ef, on @user_script:1."},
    {R"(EVAL "return {struct.unpack('Xb','a')}" 0)",
     "(error) ERR user_script:1: bad argument #1 to 'unpack' (invalid format option 'X') script: "
     "a966e2517cb7f7f6e330fbb29479646550ae7292, on @user_script:1."},
    {R"(EVAL "return {struct.unpack('bc0','\\255abc')}" 0)",
     "(error) ERR user_script:1: bad argument #2 to 'unpack' (data string too short) script: "
     "dce4e3334cf59b5a7a83528e7ceb3be6e6afd101, on @user_script:1."},
    {R"(EVAL "return {struct.unpack('b c0 c0','\\1abc')}" 0)",
     "(error) ERR user_script:1: format 'c0' needs a previous size script: "
     "d3b4c11bcab7abd1784126c1214fe487062c4cfb, on @user_script:1."},
    {R"(EVAL "return {struct.unpack('sc0','a\\0bcd')}" 0)",
     "(error) ERR user_script:1: format 'c0' needs a previous size script: "
     "cdaf8d95d44dbb91604983f9657ac87d91237b51, on @user_script:1."},
    {R"(EVAL "return {struct.unpack('>!4 b i','\\1\\0\\0\\0\\0\\0\\0\\2')}" 0)",
     "[(integer) 1, (integer) 2, (integer) 9]"},
    {R"(EVAL "return {struct.unpack('i16',string.rep('\\1',16))}" 0)",
     "[(integer) 72340172838076672, (integer) 17]"},
    {R"x(EVAL "return struct.pack('i16',-2)" 0)x",
     R"("\xfe\xff\xff\xff\xff\xff\xff\xff\x00\x00\x00\x00\x00\x00\x00\x00")"},
    {R"x(EVAL "return cmsgpack.pack(1)" 0)x", R"("\x01")"},
    {R"x(EVAL "return cmsgpack.pack({1,2,3})" 0)x", R"("\x93\x01\x02\x03")"},
    {R"x(EVAL "return cmsgpack.pack({a=1})" 0)x", R"("\x81\xa1a\x01")"},
    {R"x(EVAL "return cmsgpack.pack('abc', 1.5, -1, true, nil)" 0)x",
     R"("\xa3abc\xca?\xc0\x00\x00\xff\xc3\xc0")"},
    {R"(EVAL "return {cmsgpack.unpack(cmsgpack.pack('abc', 1.5, -1, true, nil, {1,{2}}))}" 0)",
     R"(["abc", (integer) 1, (integer) -1, (integer) 1])"},
    {R"x(EVAL "return cmsgpack.unpack('\\255')" 0)x", "(integer) -1"},
    {R"x(EVAL "return cmsgpack.unpack('\\193')" 0)x",
     "(error) ERR user_script:1: Bad data format in input. script: "
     "dc135bd7bc2955014f03280e151acf74360378e7, on @user_script:1."},
    {R"x(EVAL "return cmsgpack.unpack('\\146\\1')" 0)x",
     "(error) ERR user_script:1: Missing bytes in input. script: "
     "a554dbe54e9b5e6d26753c722e2cef5aded0e5e2, on @user_script:1."},
    {R"x(EVAL "return cmsgpack.unpack('')" 0)x", "(nil)"},
    {R"x(EVAL "return cmsgpack.pack()" 0)x",
     "(error) ERR user_script:1: bad argument #0 to 'pack' (MessagePack pack needs input.) script: "
     "6bc235afa55de88253e203cc5fe5844792e25209, on @user_script:1."},
    {R"(EVAL "return {cmsgpack.unpack_one(cmsgpack.pack(1,2,3))}" 0)",
     "[(integer) 1, (integer) 1]"},
    {R"(EVAL "return {cmsgpack.unpack_one(cmsgpack.pack(1,2,3),1)}" 0)",
     "[(integer) 2, (integer) 2]"},
    {R"(EVAL "return {cmsgpack.unpack_one(cmsgpack.pack(1,2,3),2)}" 0)",
     "[(integer) -1, (integer) 3]"},
    {R"(EVAL "return {cmsgpack.unpack_one(cmsgpack.pack(1,2,3),9)}" 0)",
     "(error) ERR user_script:1: Start offset 9 greater than input length 3. script: "
     "4310903e019902fa95e8fb6161e09b118f870d91, on @user_script:1."},
    {R"(EVAL "return {cmsgpack.unpack_limit(cmsgpack.pack(1,2,3),2)}" 0)",
     "[(integer) 2, (integer) 1, (integer) 2]"},
    {R"(EVAL "return {cmsgpack.unpack_limit(cmsgpack.pack(1,2,3),1,1)}" 0)",
     "[(integer) 2, (integer) 2]"},
    {R"(EVAL "return {cmsgpack.unpack_limit(cmsgpack.pack(1,2,3),2,-1)}" 0)",
     "(error) ERR user_script:1: Invalid request to unpack with offset of -1 and limit of 3. "
     "script: 7688a641d430a0c267ec4129909dbecde2c9ead1, on @user_script:1."},
    {R"x(EVAL "return cmsgpack.pack(2^40) .. cmsgpack.pack(-2^40)..cmsgpack.pack(0.1)..cmsgpack)x"
     R"x(.pack(70000)..cmsgpack.pack(-200)" 0)x",
     R"("\xcf\x00\x00\x01\x00\x00\x00\x00\x00\xd3\xff\xff\xff\x00\x00\x00\x00\x00\xcb?)"
     R"(\xb9\x99\x99\x99\x99\x99\x9a\xce\x00\x01\x11p\xd1\xff8")"},
    {R"x(EVAL "return cmsgpack.pack(2^63)..cmsgpack.pack(-2^63)..cmsgpack.pack(2^64)..cmsgpack.)x"
     R"x(pack(1/0)..cmsgpack.pack(3.14159)" 0)x",
     R"("\xca_\x00\x00\x00\xd3\x80\x00\x00\x00\x00\x00\x00\x00\xca_)"
     R"(\x80\x00\x00\xca\x7f\x80\x00\x00\xcb@\x09!\xf9\xf0\x1b\x86n")"},
    {R"x(EVAL "return cmsgpack.pack(127)..cmsgpack.pack(128)..cmsgpack.pack(255)..cmsgpack.pack)x"
     R"x((256)..cmsgpack.pack(65535)..cmsgpack.pack(65536)..cmsgpack.pack(2^32-1)..cmsgpack.pac)x"
     R"x(k(2^32)" 0)x",
     R"(")"
     R"(\x7f\xcc\x80\xcc\xff\xcd\x01\x00\xcd\xff\xff\xce\x00\x01\x00\x00\xce\xff\xff\xff\xff\xcf)"
     R"(\x00\x00\x00\x01\x00\x00\x00\x00")"},
    {R"x(EVAL "return cmsgpack.pack(-32)..cmsgpack.pack(-33)..cmsgpack.pack(-128)..cmsgpack.pac)x"
     R"x(k(-129)..cmsgpack.pack(-32768)..cmsgpack.pack(-32769)..cmsgpack.pack(-2^31)..cmsgpack.)x"
     R"x(pack(-2^31-1)" 0)x",
     R"(")"
     R"(\xe0\xd0\xdf\xd0\x80\xd1\xff\x7f\xd1\x80\x00\xd2\xff\xff\x7f\xff\xd2\x80\x00\x00\x00\xd3)"
     R"(\xff\xff\xff\xff\x7f\xff\xff\xff")"},
    {R"x(EVAL "return cmsgpack.pack({[1]=1,[3]=2})" 0)x", R"("\x82\x01\x01\x03\x02")"},
    {R"x(EVAL "return cmsgpack.pack({[0]=1})" 0)x", R"("\x81\x00\x01")"},
    {R"x(EVAL "return cmsgpack.pack({})" 0)x", R"("\x90")"},
    {R"x(EVAL "return cmsgpack.pack({1,2,nil,4})" 0)x", R"("\x83\x01\x01\x02\x02\x04\x04")"},
    {R"(EVAL "local a={} a[1]=a return cmsgpack.unpack(cmsgpack.pack(a)) and 1" 0)", "(integer) 1"},
    {R"x(EVAL "local a={} a[1]=a return cmsgpack.pack(a)" 0)x",
     R"("\x91\x91\x91\x91\x91\x91\x91\x91\x91\x91\x91\x91\x91\x91\x91\x91\xc0")"},
    {R"x(EVAL "return cmsgpack.pack(function() end)" 0)x", R"("\xc0")"},
    {R"x(EVAL "return cmsgpack.unpack(1)" 0)x", "(integer) 49"},
    {R"x(EVAL "return cmsgpack.unpack({})" 0)x",
     "(error) ERR user_script:1: bad argument #1 to 'unpack' (string expected, got table) script: "
     "1bf8d78c3e2298775df6934cb05254905d2c8ddc, on @user_script:1."},
    {R"(EVAL "return {cmsgpack.unpack('\\196\\1a')}" 0)",
     "(error) ERR user_script:1: Bad data format in input. script: "
     "91d63a26ef3fef676ccafbf87a95e18c4408141e, on @user_script:1."},
    {R"(EVAL "return {cmsgpack.unpack('\\202\\63\\128\\0\\0')}" 0)", "[(integer) 1]"},
    {R"(EVAL "return {cmsgpack.unpack('\\221\\255\\255\\255\\255')}" 0)",
     "(error) ERR user_script:1: Missing bytes in input. script: "
     "83ad060e58969dd54d41947fa1f0bcfa2a843d61, on @user_script:1."},
    {R"(EVAL "return {cmsgpack.unpack('\\223\\0\\0\\0\\1\\1')}" 0)",
     "(error) ERR user_script:1: Missing bytes in input. script: "
     "d4609eeff2152399a49e1b11a6b086260b717456, on @user_script:1."},
    {R"(EVAL "return {cmsgpack.unpack('\\192')}" 0)", "[]"},
    {R"(EVAL "return {cmsgpack.unpack('\\129\\192\\1')}" 0)",
     "(error) ERR table index is nil script: b57640c96e3674704b8e4c9127630b3cf5524843, on "
     "@user_script:1."},
    {R"(EVAL "return #cmsgpack.pack(string.rep('a',31)) + )"
     R"(#cmsgpack.pack(string.rep('a',32))*100+ #cmsgpack.pack(string.rep('a',256))*10000" 0)",
     "(integer) 2593432"},
};

constexpr CommandCase script_base_and_string[] = {
    {R"(EVAL "return {string.find('hello world','o w')}" 0)", "[(integer) 5, (integer) 7]"},
    {R"(EVAL "return {string.find('a.b','.',1,true)}" 0)", "[(integer) 2, (integer) 2]"},
    {R"(EVAL "return {string.find('a.b','%.')}" 0)", "[(integer) 2, (integer) 2]"},
    {R"(EVAL "return {string.find('','^$')}" 0)", "[(integer) 1, (integer) 0]"},
    {R"(EVAL "return {string.match('key = value','(%w+)%s*=%s*(%w+)')}" 0)", R"(["key", "value"])"},
    {R"(EVAL "return {string.match('2024-01-02','(%d+)-(%d+)-(%d+)')}" 0)",
     R"(["2024", "01", "02"])"},
    {R"(EVAL "return {string.match('  trim  ','^%s*(.-)%s*$')}" 0)", R"(["trim"])"},
    {R"(EVAL "return {string.match('[[x]]','%[(%b[])%]')}" 0)", R"(["[x]"])"},
    {R"(EVAL "return {string.match('f(a(b)c)d','%b()')}" 0)", R"x(["(a(b)c)"])x"},
    {R"(EVAL "return {string.match('THE (quick) fox','%f[%a]%a+%f[%A]')}" 0)", R"(["THE"])"},
    {R"(EVAL "return {string.match('aa','(a)%1')}" 0)", R"(["a"])"},
    {R"(EVAL "return {string.match('ab','(a)%1')}" 0)", "[]"},
    {R"(EVAL "return {string.match('\"x\"',\"([\\\"'])(.-)%1\")}" 0)", R"(["\"", "x"])"},
    {R"(EVAL "return {string.match('a-b]c','[]%-]+')}" 0)", R"(["-"])"},
    {R"(EVAL "return {string.match('abc','[^a]+')}" 0)", R"(["bc"])"},
    {R"(EVAL "return {string.match('abc123','[a-c1-2]+')}" 0)", R"(["abc12"])"},
    {R"(EVAL "return {string.match('x','[a-]')}" 0)", "[]"},
    {R"(EVAL "return {string.match('-','[a-]')}" 0)", R"(["-"])"},
    {R"(EVAL "return {string.match('abc','a?b?c?d?')}" 0)", R"(["abc"])"},
    {R"(EVAL "return {string.match('aaa','a-b')}" 0)", "[]"},
    {R"(EVAL "return {string.match('aaab','a-b')}" 0)", R"(["aaab"])"},
    {R"(EVAL "return {string.gsub('hello world','(%w+)','<%1>')}" 0)",
     R"(["<hello> <world>", (integer) 2])"},
    {R"(EVAL "return {string.gsub('abc','%w','%0%0')}" 0)", R"(["aabbcc", (integer) 3])"},
    {R"(EVAL "return {string.gsub('abc','b',{b='X'})}" 0)", R"(["aXc", (integer) 1])"},
    {R"(EVAL "return {string.gsub('abc','%w',function(c) if c=='b' then return 'Y' end end)}" 0)",
     R"(["aYc", (integer) 3])"},
    {R"(EVAL "return {string.gsub('abc','^a','x')}" 0)", R"(["xbc", (integer) 1])"},
    {R"(EVAL "return {string.gsub('aaa','^a','x')}" 0)", R"(["xaa", (integer) 1])"},
    {R"(EVAL "return {string.gsub('abc','b',{b=true})}" 0)",
     "(error) ERR user_script:1: invalid replacement value (a boolean) script: "
     "06fea72a9e307ec20067e5648a48796f4a3cfa8e, on @user_script:1."},
    {R"(EVAL "return {string.gsub('abc','b',{b={}})}" 0)",
     "(error) ERR user_script:1: invalid replacement value (a table) script: "
     "e317434d271203caf64a39d10368c65ed691a078, on @user_script:1."},
    {R"(EVAL "return {string.gsub('abc','(b)','%2')}" 0)",
     "(error) ERR user_script:1: invalid capture index script: "
     "8c21aec22a73ed644dd0cb251f015bde730d38dd, on @user_script:1."},
    {R"(EVAL "return {string.gsub('abc','b')}" 0)",
     "(error) ERR user_script:1: bad argument #3 to 'gsub' (string/function/table expected) "
     "script: 14b046bbe2adcbac4dd3b96bf505ad29142de05e, on @user_script:1."},
    {R"(EVAL "return {string.gsub('abc','b',true)}" 0)",
     "(error) ERR user_script:1: bad argument #3 to 'gsub' (string/function/table expected) "
     "script: b6283df8d0ddfc729b950ffba0fe1f20a4cbd62c, on @user_script:1."},
    {R"(EVAL "return {string.gsub('a b','%s',7)}" 0)", R"(["a7b", (integer) 1])"},
    {R"(EVAL "return {string.gsub('abc','.','%')}" 0)", R"(["\x00\x00\x00", (integer) 3])"},
    {R"(EVAL "return {string.gsub('abc d','%w*','x')}" 0)", R"(["xx xx", (integer) 4])"},
    {R"(EVAL "local t={} for w in string.gmatch('one two three','%a+') do t[#t+1]=w end return )"
     R"(t" 0)",
     R"(["one", "two", "three"])"},
    {R"(EVAL "local t={} for k,v in string.gmatch('a=1, b=2','(%w+)=(%w+)') do t[#t+1]=k..v end )"
     R"(return t" 0)",
     R"(["a1", "b2"])"},
    {R"(EVAL "local t={} for w in string.gmatch('abc','') do t[#t+1]=w..'|' end return t" 0)",
     R"(["|", "|", "|", "|"])"},
    {R"(EVAL "local t={} for w in string.gmatch('^a^b','^%a') do t[#t+1]=w end return t" 0)",
     R"(["^a", "^b"])"},
    {R"(EVAL "local t={} for p in string.gmatch('abc','()') do t[#t+1]=p end return t" 0)",
     "[(integer) 1, (integer) 2, (integer) 3, (integer) 4]"},
    {R"(EVAL "return {string.find('a','[')}" 0)",
     "(error) ERR user_script:1: malformed pattern (missing ']') script: "
     "7bb8432fde51b97804bc41a1af4adee9c69b6d18, on @user_script:1."},
    {R"(EVAL "return {string.find('a','[a')}" 0)",
     "(error) ERR user_script:1: malformed pattern (missing ']') script: "
     "6d5d69bf6a312bc4ebaf5b465c842aa1c7c7fd76, on @user_script:1."},
    {R"(EVAL "return {string.find('a','%')}" 0)",
     "(error) ERR user_script:1: malformed pattern (ends with '%') script: "
     "1e723c1cb1b48bc0d413712471330dcaabbf5e20, on @user_script:1."},
    {R"(EVAL "return {string.find('a','(')}" 0)",
     "(error) ERR user_script:1: unfinished capture script: "
     "e1949a0c7888a22d6246d8388bef38875784fa37, on @user_script:1."},
    {R"(EVAL "return {string.find('a',')')}" 0)", "[]"},
    {R"(EVAL "return {string.find('a','(a')}" 0)",
     "(error) ERR user_script:1: unfinished capture script: "
     "9be9152681bdf99de8006f714a8a756ea59c8561, on @user_script:1."},
    {R"(EVAL "return {string.find('a','a)')}" 0)", "[]"},
    {R"(EVAL "return {string.find('a','%1')}" 0)",
     "(error) ERR user_script:1: invalid capture index script: "
     "0a1a18e079a3d425fc3ac2082383c85402600db7, on @user_script:1."},
    {R"(EVAL "return {string.find('a','(a%1)')}" 0)",
     "(error) ERR user_script:1: invalid capture index script: "
     "a1967e3032eaf8eacc863deca967b41629dd1874, on @user_script:1."},
    {R"(EVAL "return {string.find('a','%b')}" 0)",
     "(error) ERR user_script:1: unbalanced pattern script: "
     "f4702e7d29043d26ba3395c23d23984d145656b9, on @user_script:1."},
    {R"(EVAL "return {string.find('a','%f')}" 0)",
     "(error) ERR user_script:1: missing '[' after '%f' in pattern script: "
     "71c0ca2e86df17bca5c07b4e4414e6e26fdbd415, on @user_script:1."},
    {R"(EVAL "return {string.find('a','%bx')}" 0)",
     "(error) ERR user_script:1: unbalanced pattern script: "
     "2aec4c53beb784e269df5d8f1475ea37f4c70ad2, on @user_script:1."},
    {R"(EVAL "return {string.find('a',string.rep('(',33))}" 0)",
     "(error) ERR user_script:1: too many captures script: "
     "84230e1be2822e8798462fdff32525ae69ab39a4, on @user_script:1."},
    {R"(EVAL "return {string.find('a\\0b','\\0')}" 0)", "[(integer) 2, (integer) 2]"},
    {R"(EVAL "return {string.find('a\\0b','%z')}" 0)", "[(integer) 2, (integer) 2]"},
    {R"(EVAL "return {string.match('a\\0b','a(.)b')}" 0)", R"(["\x00"])"},
    {R"(EVAL "return {string.match('ab\\0cd','b\\0c')}" 0)", R"(["b"])"},
    {R"x(EVAL "return string.find('a')" 0)x",
     "(error) ERR user_script:1: bad argument #2 to 'find' (string expected, got no value) script: "
     "45008d5bc0693cefe91491e8cade4a4bf0387d6a, on @user_script:1."},
    {R"x(EVAL "return string.find()" 0)x",
     "(error) ERR user_script:1: bad argument #1 to 'find' (string expected, got no value) script: "
     "3f53f20323d231aa85a831bc5d4c28773a02e5cc, on @user_script:1."},
    {R"x(EVAL "return string.find({}, 'a')" 0)x",
     "(error) ERR user_script:1: bad argument #1 to 'find' (string expected, got table) script: "
     "ef5b545ebdd95513560dcc02374cfb241e446300, on @user_script:1."},
    {R"x(EVAL "return string.match('a')" 0)x",
     "(error) ERR user_script:1: bad argument #2 to 'match' (string expected, got no value) "
     "script: 75499b5a3318deb9b5fe9567772d4a983260ae00, on @user_script:1."},
    {R"x(EVAL "return string.gmatch('a')" 0)x",
     "(error) ERR user_script:1: bad argument #2 to 'gmatch' (string expected, got no value) "
     "script: 9550944ee92598808346f4c8c84a848f7cf81991, on @user_script:1."},
    {R"(EVAL "return {string.match(123,'%d')}" 0)", R"(["1"])"},
    {R"x(EVAL "return ('x'):rep(3)" 0)x", R"("xxx")"},
    {R"x(EVAL "return ('x'):rep(2.9)" 0)x", R"("xx")"},
    {R"x(EVAL "return ('abc'):find('b',1,true)" 0)x", "(integer) 2"},
    {R"(EVAL "return {string.match('0x1F','%x+')}" 0)", R"(["0"])"},
    {R"(EVAL "return {string.match('a,b',',')}" 0)", R"([","])"},
    {R"(EVAL "return {string.match('tab\x09x','%c')}" 0)", R"(["\x09"])"},
    {R"(EVAL "return {string.match('p!q','%p')}" 0)", R"(["!"])"},
    {R"(EVAL "return {string.match('AbC','%u%l%U*')}" 0)", R"(["Ab"])"},
    {R"(EVAL "return {string.match('a+b','a+b')}" 0)", "[]"},
    {R"(EVAL "return {string.match('a+b','a%+b')}" 0)", R"(["a+b"])"},
    {R"(EVAL "return {string.match('$','$')}" 0)", R"([""])"},
    {R"(EVAL "return {string.match('a$b','a$b')}" 0)", R"(["a$b"])"},
    {R"(EVAL "return {string.match('abc','()b()')}" 0)", "[(integer) 2, (integer) 3]"},
    {R"x(EVAL "return table.concat({1,2,3},',')" 0)x", R"("1,2,3")"},
    {R"(EVAL "return {table.maxn({1,2,[5]=1})}" 0)", "[(integer) 5]"},
    {R"(EVAL "return {table.getn({1,2})}" 0)", "[(integer) 2]"},
    {R"(EVAL "return {unpack({1,2,3},2,3)}" 0)", "[(integer) 2, (integer) 3]"},
    {R"(EVAL "return {select('#',1,nil,3),select(2,'a','b','c')}" 0)",
     R"([(integer) 3, "b", "c"])"},
    {R"(EVAL "return {tonumber('0x10'),tonumber('10',2),tostring(tonumber('z')),tonumber(' 5 )"
     R"(')}" 0)",
     R"([(integer) 16, (integer) 2, "nil", (integer) 5])"},
    {R"(EVAL "local t={3,1,2} table.sort(t) return t" 0)",
     "[(integer) 1, (integer) 2, (integer) 3]"},
    {R"(EVAL "local t={3,1,2} table.sort(t,function(a,b) return a>b end) return t" 0)",
     "[(integer) 3, (integer) 2, (integer) 1]"},
    {R"(EVAL "return {math.floor(3.7),math.ceil(3.2),math.max(1,5,3),math.min(4,2),math.abs(-3),)"
     R"(math.fmod(7,3),math.huge>1e308 and 1 or 0}" 0)",
     "[(integer) 3, (integer) 4, (integer) 5, (integer) 2, (integer) 3, (integer) 1, (integer) 1]"},
    {R"x(EVAL "return string.format('%d %s %5.2f %x %q',5,'a',3.14159,255,'q\"')" 0)x",
     R"("5 a  3.14 ff \"q\\\"\"")"},
    {R"(EVAL "return string.format('%s',{})==nil" 0)",
     "(error) ERR user_script:1: bad argument #2 to 'format' (string expected, got table) script: "
     "beb68e12ba912e2eefbad160ddcdda78147ed67b, on @user_script:1."},
    {R"(EVAL "return {tostring(1e15),tostring(2^53),tostring(0.1),tostring(-0)}" 0)",
     R"(["1e+15", "9.007199254741e+15", "0.1", "-0"])"},
    {R"(EVAL "return {pcall(error)}" 0)", "[(nil)]"},
    {R"(EVAL "return {pcall(error,nil)}" 0)", "[(nil)]"},
    {R"(EVAL "return {pcall(function() return 1,2,3 end)}" 0)",
     "[(integer) 1, (integer) 1, (integer) 2, (integer) 3]"},
    {R"(EVAL "return {xpcall(function() error('a') end,function(e) return 'H:'..e end)}" 0)",
     R"([(nil), "H:user_script:1: a"])"},
    {R"(EVAL "return {type(coroutine.create(function() )"
     R"(end)),coroutine.status(coroutine.create(function() end))}" 0)",
     R"(["thread", "suspended"])"},
    {R"(EVAL "local c=coroutine.create(function(a) local b=coroutine.yield(a+1) return b*2 end) )"
     R"(local _,x=coroutine.resume(c,1) local _,y=coroutine.resume(c,5) return )"
     R"({x,y,coroutine.status(c)}" 0)",
     R"([(integer) 2, (integer) 10, "dead"])"},
    {R"(EVAL "return {assert(1,'x'),assert('a')}" 0)", R"([(integer) 1, "a"])"},
    {R"(EVAL "return #{1,2,3}" 0)", "(integer) 3"},
    {R"(EVAL "local s=0 for i=10,1,-3 do s=s+i end return s" 0)", "(integer) 22"},
    {R"(EVAL "return {1==1.0,'a'<'b',not nil}" 0)", "[(integer) 1, (integer) 1, (integer) 1]"},
    {R"(EVAL "return ({...})[1]" 0)", "(nil)"},
    {R"(EVAL "local t=setmetatable({},{__index=function(t,k) return k..'!' end}) return t.abc" 0)",
     R"("abc!")"},
    {R"x(EVAL "local t=setmetatable({},{__call=function(self,x) return x+1 end}) return t(4)" 0)x",
     "(integer) 5"},
    {R"x(EVAL "return tostring(setmetatable({},{__tostring=function() return 'T' end}))" 0)x",
     R"("T")"},
    {R"(EVAL "return {rawequal('a','a'),rawget({a=1},'a')}" 0)", "[(integer) 1, (integer) 1]"},
    {R"x(EVAL "return type(next)" 0)x", R"("function")"},
    {R"(EVAL "return {next({},nil)}" 0)", "[]"},
    {R"(EVAL "for k,v in pairs(nil) do end" 0)",
     "(error) ERR user_script:1: bad argument #1 to 'pairs' (table expected, got nil) script: "
     "c024f2a8f430d92532d36a376d4c8527fbb42cef, on @user_script:1."},
    {R"(EVAL "for k,v in next,{1} do return v end" 0)", "(integer) 1"},
    {R"x(EVAL "return loadstring('return 1+1')()" 0)x", "(integer) 2"},
    {R"x(EVAL "return loadstring('return KEYS')()" 0)x", "[]"},
    {R"x(EVAL "return load((function() local n=0 return function() n=n+1 return ({'return )x"
     R"x(','7',nil})[n] end end)())()" 0)x",
     "(integer) 7"},
    {R"(EVAL "return collectgarbage('count') > 0" 0)", "(integer) 1"},
};

}  // namespace

std::span<const CommandTable> script_library_tables() {
  static constexpr CommandTable tables[] = {
      {"script_json", script_json},
      {"script_bits_and_bytes", script_bits_and_bytes},
      {"script_base_and_string", script_base_and_string},
  };
  return tables;
}

}  // namespace sluice::engine
