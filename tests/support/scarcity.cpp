#include "support/scarcity.hpp"

#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/timerfd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdarg>
#include <cstdlib>
#include <new>

namespace sluice::test {
namespace {

std::atomic<int> lacking{-1};
std::atomic<std::size_t> requested{0};
std::atomic<std::size_t> refusals{0};
std::atomic<std::size_t> bytes_asked{0};
std::size_t first = 0;
std::size_t behind = 0;
thread_local bool lacks_memory = false;

bool is_refused(Lack what) noexcept {
  if (lacking.load(std::memory_order_acquire) != static_cast<int>(what)) return false;
  if (what == Lack::memory && !lacks_memory) return false;
  const auto number = requested.fetch_add(1);
  if (number < first || number >= behind) return false;
  ++refusals;
  return true;
}

template <class Function>
Function* libc(const char* name) {
  return reinterpret_cast<Function*>(::dlsym(RTLD_NEXT, name));
}

int no_descriptor() noexcept {
  errno = EMFILE;
  return -1;
}

void* allocate(std::size_t bytes, std::size_t alignment) {
  if (lacks_memory) bytes_asked += bytes;
  if (is_refused(Lack::memory)) throw std::bad_alloc{};
  void* const got =
      alignment == 0
          ? std::malloc(std::max<std::size_t>(bytes, 1))
          : std::aligned_alloc(alignment, (bytes + alignment - 1) / alignment * alignment);
  if (!got) throw std::bad_alloc{};
  return got;
}

}  // namespace

Scarcity::Scarcity(Lack what, std::size_t from, std::size_t count) {
  first = from;
  behind = from + count;
  requested = refusals = bytes_asked = 0;
  lacks_memory = what == Lack::memory;
  lacking.store(static_cast<int>(what), std::memory_order_release);
}

Scarcity::~Scarcity() {
  lacking = -1;
  lacks_memory = false;
}

std::size_t Scarcity::requests() const noexcept { return requested; }
std::size_t Scarcity::refused() const noexcept { return refusals; }
std::size_t Scarcity::bytes() const noexcept { return bytes_asked; }

}  // namespace sluice::test

using sluice::test::Lack;
using namespace sluice::test;  // NOLINT(google-build-using-namespace): libc's names are global

extern "C" {

int eventfd(unsigned count, int flags) noexcept {
  static const auto real = libc<int(unsigned, int)>("eventfd");
  return is_refused(Lack::descriptors) ? no_descriptor() : real(count, flags);
}
int timerfd_create(clockid_t clock, int flags) noexcept {
  static const auto real = libc<int(clockid_t, int)>("timerfd_create");
  return is_refused(Lack::descriptors) ? no_descriptor() : real(clock, flags);
}
int epoll_create1(int flags) noexcept {
  static const auto real = libc<int(int)>("epoll_create1");
  return is_refused(Lack::descriptors) ? no_descriptor() : real(flags);
}
int socket(int domain, int type, int protocol) noexcept {
  static const auto real = libc<int(int, int, int)>("socket");
  return is_refused(Lack::descriptors) ? no_descriptor() : real(domain, type, protocol);
}
int openat(int folder, const char* path, int flags, ...) {
  static const auto real = libc<int(int, const char*, int, ...)>("openat");
  va_list more;
  va_start(more, flags);
  const auto mode = (flags & (O_CREAT | O_TMPFILE)) != 0 ? va_arg(more, mode_t) : mode_t{0};
  va_end(more);
  return is_refused(Lack::descriptors) ? no_descriptor() : real(folder, path, flags, mode);
}
int open(const char* path, int flags, ...) {
  static const auto real = libc<int(const char*, int, ...)>("open");
  va_list more;
  va_start(more, flags);
  const auto mode = (flags & (O_CREAT | O_TMPFILE)) != 0 ? va_arg(more, mode_t) : mode_t{0};
  va_end(more);
  return is_refused(Lack::descriptors) ? no_descriptor() : real(path, flags, mode);
}
int pthread_create(pthread_t* thread, const pthread_attr_t* attributes, void* (*body)(void*),
                   void* argument) noexcept {
  static const auto real =
      libc<int(pthread_t*, const pthread_attr_t*, void* (*)(void*), void*)>("pthread_create");
  return is_refused(Lack::threads) ? EAGAIN : real(thread, attributes, body, argument);
}
}

void* operator new(std::size_t bytes) { return sluice::test::allocate(bytes, 0); }
void* operator new(std::size_t bytes, std::align_val_t alignment) {
  return sluice::test::allocate(bytes, static_cast<std::size_t>(alignment));
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::align_val_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t, std::align_val_t) noexcept { std::free(memory); }
