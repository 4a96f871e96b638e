"""pymemcache through the proxy. The environment says where: PORT, ADMIN (its socket), CONFIG (its file)."""

import os
import socket
import unittest

from pymemcache import serde
from pymemcache.client.base import Client, PooledClient
from pymemcache.client.retrying import RetryingClient
from pymemcache.exceptions import MemcacheClientError, MemcacheError, MemcacheIllegalInputError

ADDRESS = ("127.0.0.1", int(os.environ["PORT"]))
PATIENCE = 60


def client(kind=Client, **more):
    return kind(ADDRESS, connect_timeout=PATIENCE, timeout=PATIENCE, **more)


def administer(command):
    with socket.socket(socket.AF_UNIX) as admin:
        admin.settimeout(PATIENCE)
        admin.connect(os.environ["ADMIN"])
        admin.sendall(command.encode() + b"\r\n")
        reply = admin.recv(1000)
    assert reply[:1] in b"+$", reply


class Pymemcache(unittest.TestCase):
    def setUp(self):
        self.memcache = client(default_noreply=False)
        self.addCleanup(self.memcache.close)

    def test_store(self):
        self.assertTrue(self.memcache.set("k", "v", expire=100))
        self.assertFalse(self.memcache.add("k", "w"))
        self.assertTrue(self.memcache.replace("k", "x"))
        self.assertTrue(self.memcache.append("k", "y"))
        self.assertTrue(self.memcache.prepend("k", "w"))
        self.assertEqual(self.memcache.get("k"), b"wxy")
        self.assertTrue(self.memcache.touch("k", 50))
        self.assertTrue(self.memcache.delete("k"))
        self.assertFalse(self.memcache.delete("k"))
        self.assertIsNone(self.memcache.get("k"))

    def test_many(self):
        values = {f"many:{i}": b"%d" % i for i in range(200)}
        self.assertEqual(self.memcache.set_many(values), [])
        self.assertEqual(self.memcache.get_many([*values, "many:none"]), values)
        self.assertTrue(self.memcache.delete_many(list(values)))
        self.assertEqual(self.memcache.get_many(values), {})

    def test_without_replies(self):
        quiet = client()  # its default is noreply
        self.addCleanup(quiet.close)
        for i in range(200):
            quiet.set(f"quiet:{i}", str(i))
        quiet.delete("quiet:7")
        quiet.set("n", "1")
        for _ in range(5):
            quiet.incr("n", 2, noreply=True)
        quiet.decr("n", 1, noreply=True)
        self.assertEqual(quiet.get("n"), b"10")
        kept = {f"quiet:{i}": b"%d" % i for i in range(200) if i != 7}
        self.assertEqual(quiet.get_many([f"quiet:{i}" for i in range(200)]), kept)

    def test_compare_and_swap(self):
        self.memcache.set("c", "1")
        value, mark = self.memcache.gets("c")
        self.assertEqual(value, b"1")
        self.assertTrue(self.memcache.cas("c", "2", mark))
        self.assertFalse(self.memcache.cas("c", "3", mark))
        self.assertIsNone(self.memcache.cas("none", "3", mark))
        self.assertEqual(set(self.memcache.gets_many(["c", "none"])), {"c"})

    def test_count(self):
        self.memcache.set("count", "10")
        self.assertEqual(self.memcache.incr("count", 5), 15)
        self.assertEqual(self.memcache.decr("count", 20), 0)
        self.assertIsNone(self.memcache.incr("none", 1))

    def test_objects_and_pool(self):
        pool = client(PooledClient, serde=serde.pickle_serde, max_pool_size=4)
        pool.set("object", {"a": [1, 2]}, noreply=False)
        self.assertEqual(pool.get("object"), {"a": [1, 2]})
        pool.close()

    def test_big_values(self):
        value = os.urandom(900_000)
        for key in ("big:1", "big:2"):
            self.assertTrue(self.memcache.set(key, value))
        self.assertEqual(self.memcache.get_many(["big:1", "big:2"]), {"big:1": value, "big:2": value})

    def test_errors(self):
        with self.assertRaises(MemcacheError):
            self.memcache.set("too big", b"x" * 2_000_000)
        self.assertTrue(self.memcache.set("word", "x"))
        with self.assertRaises(MemcacheClientError):
            self.memcache.incr("word", 1)
        with self.assertRaises(MemcacheIllegalInputError):
            self.memcache.get("k" * 251)
        self.assertEqual(self.memcache.get("word"), b"x")

    def test_version(self):
        self.assertRegex(self.memcache.version(), rb"^1\.")

    def test_z_reload_and_upgrade(self):
        steady = RetryingClient(client(), attempts=3, retry_for=[OSError, MemcacheError])
        steady.set("stays", "on", noreply=False)
        with open(os.environ["CONFIG"]) as file:
            text = file.read()
        for command, timeout in (("RELOAD", "9000"), ("UPGRADE", "9001")):
            with open(os.environ["CONFIG"], "w") as file:
                file.write(text.replace("timeout: 10000", f"timeout: {timeout}"))
            administer(command)
            self.assertEqual(steady.get("stays"), b"on")
        steady.close()


if __name__ == "__main__":
    unittest.main(verbosity=2)
