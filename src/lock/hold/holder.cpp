#include "lock/hold/holder.hpp"

#include <unistd.h>

#include <algorithm>
#include <charconv>

#include "base/fork.hpp"
#include "lock/words.hpp"

namespace sluice::lock {
namespace {

std::string host_name() {
  std::string name(256, '\0');
  if (::gethostname(name.data(), name.size() - 1) != 0) return "?";
  name.resize(name.find('\0'));
  std::ranges::replace(name, ' ', '_');
  return name.empty() ? "?" : name;
}

/// "HOST PID t<thread> ", made once for each thread of each process.
const std::string& this_thread() {
  thread_local std::string text;
  thread_local unsigned forks = 0;
  if (text.empty() || forks != fork_count()) {
    forks = fork_count();
    text = host_name() + ' ' + std::to_string(::getpid()) + " t" + std::to_string(::gettid()) + ' ';
  }
  return text;
}

}  // namespace

const std::string& program_name() {
  static const std::string name = ::program_invocation_short_name;
  return name;
}

std::string holder_text(bool is_owner, std::string_view label) {
  const std::string_view here = this_thread();
  const auto actor = here.substr(0, here.rfind(" t") + 1);
  std::string text;
  text.reserve(here.size() + label.size());
  if (is_owner) {
    text.append(actor).append("- ");
  } else {
    text.append(here);
  }
  return text.append(label);
}

HolderData holder_data(std::string_view text) {
  std::string_view rest = text;
  const auto host = take_word(rest);
  const auto pid = take_word(rest);
  const auto actor = take_word(rest);
  HolderData data;
  const auto [end, error] = std::from_chars(pid.data(), pid.data() + pid.size(), data.pid);
  if (error != std::errc{} || end != pid.data() + pid.size() || actor.empty()) {
    data.label = text;
    return data;
  }
  data.host = host;
  data.actor = actor;
  data.label = rest;
  return data;
}

}  // namespace sluice::lock
