#include "base/callback.hpp"

#include <atomic>

#include "sluice/log.hpp"

namespace sluice {

std::string text_of(const std::exception_ptr& error) {
  try {
    std::rethrow_exception(error);
  } catch (const std::exception& failure) {
    return failure.what();
  } catch (...) {
    return "something that is no std::exception";
  }
}

void report_thrown(std::string_view what, const std::exception_ptr& error) noexcept try {
  log(LogLevel::error, std::string{what} + " threw: " + text_of(error));
} catch (...) {  // no memory for a message
}

std::uint64_t this_thread_number() noexcept {
  static std::atomic<std::uint64_t> last{0};
  thread_local std::uint64_t mine = 0;  // trivial: it is there as long as the thread
  if (mine == 0) mine = last.fetch_add(1, std::memory_order_relaxed) + 1;
  return mine;
}

}  // namespace sluice
