#include "proxy/storm/shrink.hpp"

#include <algorithm>
#include <utility>

namespace sluice::test {
namespace {

using Case = std::vector<Round>;

class Shrinking {
 public:
  Shrinking(Case rounds, const std::function<bool(const Case&)>& fails, std::size_t most)
      : rounds_(std::move(rounds)), fails_(fails), left_(most) {}

  Case run() {
    for (std::size_t size = rounds_.size() / 2; size > 0; size /= 2)
      for (std::size_t at = 0; at < rounds_.size();)
        if (!attempt([&](Case& smaller) { drop(smaller, at, size); })) at += size;
    for (std::size_t round = 0; round < rounds_.size(); ++round)
      for (std::size_t client = 0; client < rounds_[round].size(); ++client) shrink(round, client);
    return std::move(rounds_);
  }

 private:
  template <class Sequence>
  static void drop(Sequence& sequence, std::size_t at, std::size_t size) {
    const auto begin = sequence.begin() + static_cast<std::ptrdiff_t>(at);
    sequence.erase(begin,
                   begin + static_cast<std::ptrdiff_t>(std::min(size, sequence.size() - at)));
  }

  template <class Change>
  bool attempt(Change change) {
    if (left_ == 0) return false;
    auto smaller = rounds_;
    change(smaller);
    --left_;
    if (!fails_(smaller)) return false;
    rounds_ = std::move(smaller);
    return true;
  }

  void shrink(std::size_t round, std::size_t client) {
    const auto its = [round, client](Case& all) -> Batch& { return all[round][client]; };
    if (its(rounds_).requests.empty()) return;
    if (attempt([&](Case& smaller) { its(smaller) = {}; })) return;
    if (its(rounds_).vanishes) attempt([&](Case& smaller) { its(smaller).vanishes = false; });
    if (!its(rounds_).writes.empty()) attempt([&](Case& smaller) { its(smaller).writes.clear(); });
    for (std::size_t size = its(rounds_).requests.size(); size > 0; size /= 2)
      for (std::size_t at = 0; at < its(rounds_).requests.size();)
        if (!attempt([&](Case& smaller) { drop(its(smaller).requests, at, size); })) at += size;
    for (std::size_t place = 0; place < its(rounds_).requests.size(); ++place) {
      const auto text = [&](Case& all) -> std::string& { return its(all).requests[place]; };
      for (std::size_t size = text(rounds_).size() / 2; size > 0; size /= 2)
        for (std::size_t at = 0; at < text(rounds_).size();)
          if (!attempt([&](Case& smaller) { drop(text(smaller), at, size); })) at += size;
    }
  }

  Case rounds_;
  const std::function<bool(const Case&)>& fails_;
  std::size_t left_;
};

}  // namespace

Case shrink(Case rounds, const std::function<bool(const Case&)>& fails, std::size_t most) {
  return Shrinking{std::move(rounds), fails, most}.run();
}

}  // namespace sluice::test
