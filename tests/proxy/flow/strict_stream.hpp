/// Long random streams for both sides of TwoSides: the connection kept, and now and then ended by
/// what neither side takes.
#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "proxy/flow/request_stream.hpp"
#include "proxy/flow/two_sides.hpp"

namespace sluice::test {

template <class Server>
class StrictStream : public testing::Test {
 protected:
  using Sides = TwoSides<Server>;

  /// So many requests that are answered.
  virtual Batch batch(std::size_t requests) = 0;
  /// Some that are answered, one that ends the connection, and one behind it.
  virtual Batch ending() = 0;

  void compare(Sides& sides, std::size_t batches) {
    for (std::size_t i = 0; i < batches && !this->HasFatalFailure(); ++i) {
      compare(sides, [&] { sides.compare(batch(1 + up_to(random_, 120))); });
      if (i % 10 == 9 && !this->HasFatalFailure())
        compare(sides, [&] { sides.compare_ending(ending()); });
    }
  }
  /// The request with a byte too many, too few, or another, anywhere in it, and three behind it
  /// that show where it ended: both sides say the same, or ours closes the connection without a
  /// word where `is_refused` says that it may, since twemproxy passes on what has two meanings.
  template <class IsRefused>
  void compare_bytes(Sides& sides, std::string_view request, std::string_view behind,
                     IsRefused is_refused) {
    using namespace std::string_view_literals;
    const auto compare = [&](const std::string& bytes) {
      const auto all = fmt::format("{}{}{}{}", bytes, behind, behind, behind);
      const auto ours = sides.all_said_by_ours(all);
      if (ours.empty() && is_refused(bytes)) return;
      EXPECT_EQ(ours, sides.all_said_by_theirs(all, ours)) << shown(bytes);
    };
    for (std::size_t at = 0; at <= request.size(); ++at) {
      for (const char byte : "\r\n09-x \0"sv) {
        compare(std::string{request}.insert(at, 1, byte));
        if (at < request.size()) compare(std::string{request}.replace(at, 1, 1, byte));
      }
      if (at < request.size()) compare(std::string{request}.erase(at, 1));
    }
  }
  /// While server 0 hangs: few requests, so that it takes them all, and those of `more`.
  void compare_hung(Sides& sides, const std::vector<std::string>& more) {
    sides.stop(0);
    has_failed_server_ = true;
    for (std::size_t i = 0; i < longer(4) && !this->HasFatalFailure(); ++i)
      compare(sides, [&] {
        auto requests = batch(3);
        for (const auto& request : more) requests.add(request, true);
        sides.compare(requests);
      });
    sides.cont(0);
    has_failed_server_ = false;
  }

  /// A machine may be so slow that a server that is well takes longer than `timeout` on one side.
  /// Then both begin anew.
  template <class Comparison>
  static void compare(Sides& sides, Comparison comparison) {
    constexpr int patience = 20;
    for (int times = 0; times < patience; ++times) {
      comparison();
      if (!sides.was_late() || HasFatalFailure()) return;
      sides.empty();
    }
    FAIL() << "other requests time out on one side than on the other";
  }

  std::uint64_t seed_ = seed();
  testing::ScopedTrace trace_{__FILE__, __LINE__, fmt::format("SLUICE_SEED={}", seed_)};
  Random random_{seed_};
  /// A batch ends with a read that is cut up then: where a server has failed it ends the
  /// connection, and how much of what is behind it was done already is a matter of turns.
  bool has_failed_server_ = false;
};

}  // namespace sluice::test
