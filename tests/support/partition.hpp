/// A network of a test's own, in which places can be cut off from each other: packets between them
/// are lost both ways, also those of connections that stand.
#pragma once

#include <cstddef>
#include <functional>
#include <string>

#include "base/descriptor.hpp"

namespace sluice::test {

class Partition {
 public:
  /// Takes this thread, and what it starts from then on, into a network namespace where it is
  /// alone. Why not: an empty text, it is there. Needs the program `ip` (iproute2), and the right
  /// to make a namespace: root's, or anybody's on most systems.
  static std::string enter();

  /// The address of one of 254 places, from 1. Who connects to it from this network and names no
  /// address of his own comes from the place itself.
  static std::string place(int number);
  /// It is there from then on, besides 127.0.0.1. Once for each.
  static void add_place(int number);
  static void cut(const std::string& one, const std::string& other);
  /// All cuts end.
  static void heal();
};

/// Clients in a network of their own, who reach the places from `address`.
class Outpost {
 public:
  static constexpr const char* address = "10.78.0.2";

  /// REQUIRES: this thread is inside of a Partition. One at a time.
  Outpost();
  ~Outpost();
  Outpost(const Outpost&) = delete;
  Outpost& operator=(const Outpost&) = delete;

  /// Runs it on a thread that is there, and waits. The threads that it starts stay there.
  void run(const std::function<void()>& body) const;

 private:
  Descriptor network_;
};

}  // namespace sluice::test
