#include "cli/output.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "cli/command_line/exit_code.hpp"
#include "cli/command_line/streams.hpp"
#include "sluice/clock.hpp"

namespace sluice::cli {

void print(const Json& json) { print(true, json, {}); }

void print(bool as_json, const Json& json, const std::string& text) {
  const std::string& line = as_json ? json.text() : text;
  put("{}\n", line);
  // It may tell what cannot be had a second time: the order that was bought. A long one is a list.
  constexpr std::size_t most_told = 1000;
  if (!flush_output() && line.size() <= most_told) complain("not written: {}", line);
}

TakenList::TakenList(bool as_json, std::string_view name) : as_json_(as_json) {
  if (as_json_) put("{{{}:[", Json{name}.text());
  if (!can_write_output() || !flush_output())
    throw Error{Errc::out_of_space, "the output could not be written, so nothing was taken"};
}

void TakenList::add(std::string_view taken) {
  if (as_json_)
    put("{}{}", std::exchange(first_, false) ? "" : ",", Json{taken}.text());
  else
    put("{}\n", taken);
  if (flush_output()) return;
  throw Error{Errc::out_of_space, fmt::format("{} was taken, and is not in the output", taken),
              Effect::done};
}

void TakenList::end(const Json& members) {
  if (as_json_) put("],{}\n", members.text().substr(1));
  flush_output();  // before anything is said on stderr
}

Progress::Progress(bool silent, std::FILE* output)
    : output_(output), silent_(silent), terminal_(::isatty(::fileno(output)) == 1) {}

Progress::~Progress() {
  if (drawn_ && terminal_) std::fputc('\n', output_);
}

void Progress::show(const std::string& line) {
  const auto now = system_clock().steady();
  const auto pause = terminal_ ? std::chrono::milliseconds{50} : std::chrono::milliseconds{1000};
  if (silent_ || now - last_ < pause) return;
  last_ = now;
  drawn_ = true;
  draw(line, terminal_ ? "" : "\n");
}

void Progress::finish(const std::string& line) {
  if (silent_) return;
  draw(line, "\n");
  drawn_ = false;
}

void Progress::draw(const std::string& line, const char* end) {
  const auto text = fmt::format("{}{}{}", terminal_ ? "\r\033[K" : "", line, end);
  if (output_ == stdout) {
    put_text(text);
    flush_output();
  } else {
    std::fputs(text.c_str(), output_);
    std::fflush(output_);
  }
}

bool all_ok(const std::vector<AuditCheck>& checks) noexcept {
  return std::ranges::all_of(checks, &AuditCheck::ok);
}

Json json_of(const std::vector<AuditCheck>& checks) {
  Json rows = Json::array();
  for (const auto& check : checks)
    rows.add(Json::object({{"name", check.name},
                           {"ok", check.ok},
                           {"figure", check.figure},
                           {"expected", check.expected},
                           {"detail", check.detail}}));
  return rows;
}

void print_checks(const std::vector<AuditCheck>& checks) {
  for (const auto& check : checks) {
    const std::string expected = check.figure == check.expected
                                     ? std::string{}
                                     : fmt::format(" (expected {})", check.expected);
    put("  {:<7} {:<44} {:>8}{}{}{}\n", check.ok ? "ok" : "FAILED", check.name, check.figure,
        expected, check.detail.empty() ? "" : "  ", check.detail);
  }
}

}  // namespace sluice::cli
