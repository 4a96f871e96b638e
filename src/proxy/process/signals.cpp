#include "proxy/process/signals.hpp"

#include <execinfo.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <pthread.h>
#include <sys/signalfd.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <iterator>
#include <memory>

namespace sluice::proxy::process {
namespace {

constexpr Signal signals[] = {
    {SIGINT, "SIGINT", SignalAction::quit, ", exiting"},
    {SIGTERM, "SIGTERM", SignalAction::drain, ", draining"},
    {SIGHUP, "SIGHUP", SignalAction::reopen, ", reopening log file"},
    {SIGTTIN, "SIGTTIN", SignalAction::louder, ", up logging level"},
    {SIGTTOU, "SIGTTOU", SignalAction::quieter, ", down logging level"},
    {SIGUSR1, "SIGUSR1", SignalAction::reload, ", reloading configuration"},
    {SIGUSR2, "SIGUSR2", SignalAction::nothing, ""},
};

/// What the handler of a crash needs, made beforehand: it may neither allocate nor lock.
struct CrashReport {
  std::string log_file;
  int descriptor = -1;
  std::array<std::string, std::size(signals)> lines;
};
std::atomic<const CrashReport*> crash_report{nullptr};

constexpr struct {
  int number;
  std::string_view line;
} deadly[] = {
    {SIGSEGV, "signal 11 (SIGSEGV) received, core dumping"},
    {SIGBUS, "signal 7 (SIGBUS) received, core dumping"},
    {SIGFPE, "signal 8 (SIGFPE) received, core dumping"},
    {SIGILL, "signal 4 (SIGILL) received, core dumping"},
    {SIGABRT, "signal 6 (SIGABRT) received, core dumping"},
};

/// Without the time: to format one takes a lock.
void write_line(int file, std::string_view severity, std::string_view line) noexcept {
  std::string_view parts[] = {"[.......................] ", severity, line, "\n"};
  iovec pieces[std::size(parts)];
  for (std::size_t i = 0; i < std::size(parts); ++i)
    pieces[i] = {const_cast<char*>(parts[i].data()), parts[i].size()};
  static_cast<void>(!::writev(file, pieces, static_cast<int>(std::size(pieces))));
}

extern "C" void tell_crash(int number) {
  const auto* const report = crash_report.load();
  int file = STDERR_FILENO;
  if (!report->log_file.empty()) {
    const int opened =
        ::open(report->log_file.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0644);
    if (opened >= 0) file = opened;
  }
  signalfd_siginfo came{};
  while (::read(report->descriptor, &came, sizeof came) == static_cast<ssize_t>(sizeof came))
    for (std::size_t i = 0; i < std::size(signals); ++i)
      if (signals[i].number == static_cast<int>(came.ssi_signo))
        write_line(file, "notice ", report->lines[i]);
  for (const auto& signal : deadly)
    if (signal.number == number) write_line(file, "alert ", signal.line);
  void* frames[64];
  ::backtrace_symbols_fd(frames, ::backtrace(frames, std::size(frames)), file);
  std::raise(number);  // its action is the default again
}

sigset_t watched() {
  sigset_t set;
  sigemptyset(&set);
  for (const auto& signal : signals) sigaddset(&set, signal.number);
  return set;
}

}  // namespace

Signals::Signals() {
  const sigset_t set = watched();
  ::pthread_sigmask(SIG_BLOCK, &set, &before_);
  std::signal(SIGPIPE, SIG_IGN);
  // A disposition of "ignore", which -d leaves for HUP, would drop the signal before the descriptor
  // tells it.
  std::signal(SIGHUP, SIG_DFL);
  descriptor_ = Descriptor{::signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC), "signalfd"};
}

Signals::~Signals() { ::pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

std::optional<Signal> Signals::next() {
  signalfd_siginfo came{};
  if (::read(descriptor(), &came, sizeof came) != static_cast<ssize_t>(sizeof came))
    return std::nullopt;
  const auto* const found =
      std::ranges::find(signals, static_cast<int>(came.ssi_signo), &Signal::number);
  return found == std::end(signals) ? std::nullopt : std::optional{*found};
}

void Signals::tell_crashes(const std::string& log_file) {
  auto report = std::make_unique<CrashReport>();
  report->log_file = log_file;
  report->descriptor = descriptor();
  for (std::size_t i = 0; i < std::size(signals); ++i) report->lines[i] = to_string(signals[i]);
  void* frame = nullptr;
  static_cast<void>(::backtrace(&frame, 1));  // the first call loads a library
  crash_report = report.release();            // for the life of the process
  struct sigaction action {};
  action.sa_handler = tell_crash;
  action.sa_flags = static_cast<int>(SA_RESETHAND) | SA_NODEFER;
  for (const auto& signal : deadly) ::sigaction(signal.number, &action, nullptr);
}

std::string to_string(const Signal& signal) {
  return fmt::format("signal {} ({}) received{}", signal.number, signal.name, signal.told);
}

}  // namespace sluice::proxy::process
