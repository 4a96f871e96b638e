#include "cli/progress.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include "sluice/clock.hpp"

namespace sluice::cli {

Progress::Progress(bool silent, std::FILE* output)
    : output_(output), silent_(silent), terminal_(::isatty(::fileno(output)) == 1) {}

Progress::~Progress() {
  if (drawn_ && terminal_) fmt::print(output_, "\n");
}

void Progress::show(const std::string& line) {
  const auto now = system_clock().steady();
  const auto pause = terminal_ ? std::chrono::milliseconds{50} : std::chrono::milliseconds{1000};
  if (silent_ || now - last_ < pause) return;
  last_ = now;
  drawn_ = true;
  fmt::print(output_, "{}{}{}", terminal_ ? "\r\033[K" : "", line, terminal_ ? "" : "\n");
  std::fflush(output_);
}

void Progress::finish(const std::string& line) {
  if (silent_) return;
  fmt::print(output_, "{}{}\n", terminal_ ? "\r\033[K" : "", line);
  std::fflush(output_);
  drawn_ = false;
}

}  // namespace sluice::cli
