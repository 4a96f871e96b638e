#include "cli/demo/tally.hpp"

#include <algorithm>
#include <sstream>
#include <stdexcept>

namespace sluice::cli {

void Tally::add(const Tally& more) {
  for (const auto count : counts) this->*count += more.*count;
  if (first_failure.empty()) first_failure = more.first_failure;
  latencies += more.latencies;
  numbers.insert(numbers.end(), more.numbers.begin(), more.numbers.end());
}

std::string line_of(const Tally& tally) {
  std::ostringstream line;
  for (const auto count : Tally::counts) line << tally.*count << ' ';
  line << tally.latencies.sum_us << ' ' << tally.latencies.buckets.size() << ' ';
  for (const auto count : tally.latencies.buckets) line << count << ' ';
  line << tally.numbers.size() << ' ';
  for (const auto& number : tally.numbers) line << number << ' ';
  line << '.' << tally.first_failure;
  auto text = line.str();
  std::ranges::replace(text, '\n', ' ');
  return text;
}

Tally tally_of(const std::string& text) {
  std::istringstream line{text};
  Tally tally;
  for (const auto count : Tally::counts) line >> tally.*count;
  std::size_t buckets = 0, numbers = 0;
  line >> tally.latencies.sum_us >> buckets;
  tally.latencies.buckets.resize(std::min(buckets, LatencyBuckets::count));
  for (auto& count : tally.latencies.buckets) line >> count;
  line >> numbers;
  for (std::string number; tally.numbers.size() < numbers && line >> number;)
    tally.numbers.push_back(number);
  char dot = 0;
  line >> dot;
  if (dot != '.') throw std::runtime_error{"an instance of the demo reported nonsense: " + text};
  std::getline(line, tally.first_failure);
  return tally;
}

}  // namespace sluice::cli
