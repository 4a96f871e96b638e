// What a user's first program does: it compiles with the installed headers and runs with the installed library alone.
#include <cstdio>
#include <sluice/sluice.hpp>
#include <vector>

namespace {

sluice::Task<int> number(int value) { co_return value; }

}  // namespace

int main() {
  std::vector<sluice::Task<int>> tasks;
  for (int i = 1; i <= 3; ++i) tasks.push_back(number(i));
  int sum = 0;
  for (const int value : sluice::when_all(std::move(tasks)).get()) sum += value;

  try {
    sluice::open("nowhere://");
  } catch (const sluice::Error& error) {
    std::printf("%s; %d\n", error.what(), sum);
    return error.errc() == sluice::Errc::bad_argument && sum == 6 ? 0 : 1;
  }
  return 1;
}
