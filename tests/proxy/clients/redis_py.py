"""redis-py through the proxy, or at an engine's port. The environment says where: PORT, ADMIN (its socket), CONFIG (its file)."""

import os
import socket
import threading
import time
import unittest

import redis

PORT = int(os.environ["PORT"])
IS_PROXY = "ADMIN" in os.environ  # the engine at a port has one server and no administration
PATIENCE = 60


def client(**more):
    chosen = {"username": "ann", "password": "sesame", "socket_timeout": PATIENCE, "decode_responses": True}
    return redis.Redis("127.0.0.1", PORT, **{**chosen, **more})


def administer(command):
    with socket.socket(socket.AF_UNIX) as admin:
        admin.settimeout(PATIENCE)
        admin.connect(os.environ["ADMIN"])
        admin.sendall(command.encode() + b"\r\n")
        reply = admin.recv(1000)
    assert reply[:1] in b"+$", reply


def comes(messages):
    until = time.monotonic() + PATIENCE
    while time.monotonic() < until:
        message = messages.get_message(timeout=1)
        if message is not None:
            return message
    raise TimeoutError


class RedisPy(unittest.TestCase):
    def setUp(self):
        self.redis = client()
        self.addCleanup(self.redis.close)

    def test_login(self):
        self.assertTrue(self.redis.ping())
        with self.assertRaises(redis.AuthenticationError):
            client(username=None, password=None).get("k")
        with self.assertRaisesRegex(redis.ResponseError, "WRONGPASS"):
            client(password="wrong").ping()

    def test_user_who_may_only_read(self):
        self.redis.set("shown", "to all")
        reader = client(username="eve", password="look")
        self.assertEqual(reader.get("shown"), "to all")
        with self.assertRaises(redis.exceptions.NoPermissionError):
            reader.set("shown", "x")

    def test_database(self):
        other = client(db=3)
        other.set("where", "three")
        self.redis.set("where", "none")
        self.assertEqual((other.get("where"), self.redis.get("where")), ("three", "none"))

    def test_pipeline(self):
        with self.redis.pipeline(transaction=False) as pipe:
            for i in range(500):
                pipe.set(f"p:{i}", i)
            for i in range(500):
                pipe.get(f"p:{i}")
            pipe.lpush("p:0", "x")
            replies = pipe.execute(raise_on_error=False)
        self.assertEqual(replies[500:1000], [str(i) for i in range(500)])
        self.assertIn("WRONGTYPE", str(replies[1000]))
        self.assertEqual(self.redis.mget([f"p:{i}" for i in range(3)]), ["0", "1", "2"])

    def test_transaction(self):
        self.redis.set("{t}n", 1)
        with self.redis.pipeline() as pipe:
            pipe.watch("{t}n")
            n = int(pipe.get("{t}n"))
            pipe.multi()
            pipe.set("{t}n", n + 1).incr("{t}m")
            self.assertEqual(pipe.execute(), [True, 1])
            pipe.watch("{t}n")
            self.redis.set("{t}n", "other")
            pipe.multi()
            pipe.set("{t}n", "lost")
            with self.assertRaises(redis.WatchError):
                pipe.execute()
        self.assertEqual(self.redis.get("{t}n"), "other")

    @unittest.skipUnless(IS_PROXY, "one server")
    def test_transaction_over_servers_is_refused(self):
        with self.redis.pipeline() as pipe:
            for i in range(20):
                pipe.set(f"{i * 7919} spread", i)
            with self.assertRaises(redis.ResponseError):
                pipe.execute()
        self.assertTrue(self.redis.ping())

    def test_subscribe(self):
        with self.redis.pubsub(ignore_subscribe_messages=True) as listener:
            listener.subscribe("news")
            listener.psubscribe("news.*")
            until = time.monotonic() + PATIENCE
            while self.redis.publish("news", "ready?") == 0 or self.redis.publish("news.local", "ready?") == 0:
                self.assertLess(time.monotonic(), until)
            self.redis.publish("news", "a")
            self.redis.publish("news.local", "b")
            seen = []
            while len(seen) < 2:
                message = comes(listener)
                if message["data"] != "ready?":
                    seen.append((message["type"], message["channel"], message["data"]))
            self.assertEqual(sorted(seen), [("message", "news", "a"), ("pmessage", "news.local", "b")])
            listener.unsubscribe()
            listener.punsubscribe()

    def test_script(self):
        text = f"return {{KEYS[1], ARGV[1], '{os.getpid()}'}}"
        script = self.redis.register_script(text)  # EVALSHA, and SCRIPT LOAD where it is not known
        for key in ("s:1", "s:2", "s:3", "s:4"):
            self.assertEqual(script(keys=[key], args=["v"]), [key, "v", str(os.getpid())])
        self.assertEqual(self.redis.eval(text, 1, "s:5", "w")[1], "w")
        with self.assertRaises(redis.exceptions.NoScriptError):
            self.redis.evalsha("0" * 40, 1, "s:1")
        with self.assertRaisesRegex(redis.ResponseError, "on purpose"):
            self.redis.eval("return redis.error_reply('on purpose')", 1, "s:1")

    def test_lock(self):
        with self.redis.lock("a lock", timeout=PATIENCE, blocking_timeout=PATIENCE):
            self.assertFalse(self.redis.lock("a lock").acquire(blocking=False))

    def test_scan(self):
        names = {f"scan:{i}" for i in range(300)}
        for name in names:
            self.redis.set(name, 1)
        self.assertEqual(set(self.redis.scan_iter("scan:*", count=20)), names)
        self.redis.hset("h", mapping={f"f{i}": i for i in range(700)})
        self.assertEqual(len(dict(self.redis.hscan_iter("h"))), 700)

    def test_blocking(self):
        got = []
        waiter = threading.Thread(target=lambda: got.append(client().blpop("queue", timeout=PATIENCE)))
        waiter.start()
        self.redis.rpush("queue", "job")
        waiter.join()
        self.assertEqual(got, [("queue", "job")])
        self.assertIsNone(self.redis.blpop("empty", timeout=0.01))

    def test_big_values(self):
        value = os.urandom(5_000_000)
        plain = client(decode_responses=False)
        for key in ("big:1", "big:2"):
            plain.set(key, value)
        self.assertEqual(plain.mget("big:1", "big:2"), [value, value])

    def test_errors(self):
        self.redis.set("text", "x")
        with self.assertRaises(redis.ResponseError):
            self.redis.lpush("text", "x")
        with self.assertRaises(redis.ResponseError):
            self.redis.execute_command("NOSUCH", "x")
        self.assertEqual(self.redis.get("text"), "x")

    @unittest.skipUnless(IS_PROXY, "no administration")
    def test_z_reload_and_upgrade(self):
        pool = [client() for _ in range(3)]
        for number, one in enumerate(pool):
            one.set(f"stays:{number}", number)
        with open(os.environ["CONFIG"]) as file:
            text = file.read()
        for command, timeout in (("RELOAD", "9000"), ("UPGRADE", "9001")):
            with open(os.environ["CONFIG"], "w") as file:
                file.write(text.replace("timeout: 10000", f"timeout: {timeout}"))
            administer(command)
            for number, one in enumerate(pool):
                self.assertEqual(one.get(f"stays:{number}"), str(number))
                with one.pipeline() as pipe:
                    self.assertEqual(pipe.get(f"stays:{number}").execute(), [str(number)])


if __name__ == "__main__":
    unittest.main(verbosity=2)
