/// The primitives that all workers use, and what they have agreed on.
#pragma once

#include <chrono>
#include <string>

#include "lock/chaos/findings.hpp"

namespace sluice::chaos {

inline constexpr std::chrono::seconds lease{1};
inline constexpr std::chrono::milliseconds replicated_within{300};

inline Rules agreed_rules() {
  return {.names = {{"mutex", {}},
                    {"mutex-2", {}},
                    {"fair", {.fair = true}},
                    {"shared", {}},
                    {"durable", {.durable = true}},
                    {"durable-2", {.durable = true}},
                    {"durable-fair", {.durable = true, .fair = true}},
                    {"durable-shared", {.durable = true}},
                    {"desks", {.permits = 3, .most = 2}},
                    {"permits", {.permits = 2, .most = 1}},
                    {"quorum", {.apart = true}},
                    {"rate", {.rate = 20}},
                    {"latch", {.count = 3}},
                    {"numbers", {.numbers = true}},
                    {"durable-numbers", {.durable = true, .numbers = true}},
                    {"ids", {.numbers = true}},
                    {"sale", {.orders = true}}},
          .lease = lease};
}

/// Some buyers have many orders.
inline std::string buyer_of(const std::string& request) {
  return "buyer" + request.substr(request.size() - 1);
}

}  // namespace sluice::chaos
