/// A value, or why there is none: what std::expected is in C++23, for programs in C++20.
#pragma once

#include <concepts>
#include <optional>
#include <utility>
#include <variant>

namespace sluice {

template <class E>
class Unexpected {
 public:
  explicit Unexpected(E error) : error_(std::move(error)) {}
  E& error() noexcept { return error_; }
  const E& error() const noexcept { return error_; }

 private:
  E error_;
};

/// REQUIRES of `*`, `->` and error(): has_value() says that there is one.
template <class T, class E>
class Expected {
 public:
  // NOLINTBEGIN(*-explicit-constructor): as std's
  template <std::convertible_to<T> U = T>
  Expected(U&& value) : content_(std::in_place_index<0>, std::forward<U>(value)) {}
  Expected(Unexpected<E> none) : content_(std::in_place_index<1>, std::move(none.error())) {}
  // NOLINTEND(*-explicit-constructor)

  bool has_value() const noexcept { return content_.index() == 0; }
  explicit operator bool() const noexcept { return has_value(); }
  T& operator*() & noexcept { return *std::get_if<0>(&content_); }
  const T& operator*() const& noexcept { return *std::get_if<0>(&content_); }
  T&& operator*() && noexcept { return std::move(*std::get_if<0>(&content_)); }
  T* operator->() noexcept { return std::get_if<0>(&content_); }
  const T* operator->() const noexcept { return std::get_if<0>(&content_); }
  /// Throws std::bad_variant_access where there is none.
  T& value() & { return std::get<0>(content_); }
  const T& value() const& { return std::get<0>(content_); }
  T&& value() && { return std::get<0>(std::move(content_)); }
  const E& error() const noexcept { return *std::get_if<1>(&content_); }

  friend bool operator==(const Expected& one, const Expected& other) {
    return one.content_ == other.content_;
  }
  friend bool operator==(const Expected& one, const Unexpected<E>& none) {
    return !one.has_value() && one.error() == none.error();
  }

 private:
  std::variant<T, E> content_;
};

template <class E>
class Expected<void, E> {
 public:
  Expected() = default;
  // NOLINTNEXTLINE(*-explicit-constructor): as std's
  Expected(Unexpected<E> none) : error_(std::move(none.error())) {}

  bool has_value() const noexcept { return !error_; }
  explicit operator bool() const noexcept { return has_value(); }
  const E& error() const noexcept { return *error_; }

  friend bool operator==(const Expected&, const Expected&) = default;
  friend bool operator==(const Expected& one, const Unexpected<E>& none) {
    return !one.has_value() && one.error() == none.error();
  }

 private:
  std::optional<E> error_;
};

}  // namespace sluice
