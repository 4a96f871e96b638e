/// A crowd of clients of one HTTP server, on one thread: keep-alive connections, one request at a
/// time on each.
#pragma once

#include <sys/epoll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "../http/load.hpp"

namespace sluice::bench {

using namespace std::chrono_literals;

struct ClickFigures {
  std::size_t answers = 0;
  double seconds = 0;
  double p50_us = 0;
  double p99_us = 0;

  double rate() const { return static_cast<double>(answers) / seconds; }
};

class Crowd {
 public:
  using Time = std::chrono::steady_clock;  // of a program that measures
  /// Bytes of the next request.
  using Make = std::function<std::string()>;

  /// `expected`: the status that each answer must have.
  Crowd(std::uint16_t port, std::size_t clients, Make make, std::string expected)
      : make_(std::move(make)), expected_("HTTP/1.1 " + expected), clients_(clients) {
    for (std::size_t i = 0; i < clients; ++i) {
      clients_[i].socket = connect(port);
      epoll_event event{.events = EPOLLIN, .data = {.u64 = i}};
      ::epoll_ctl(epoll_.number(), EPOLL_CTL_ADD, clients_[i].socket.number(), &event);
    }
  }

  /// Each asks once.
  void once() {
    for (std::size_t i = 0; i < clients_.size(); ++i) ask(i, Time::now());
    hear_the_rest();
  }

  /// Each asks again as soon as it is answered.
  ClickFigures as_fast_as_answered(std::chrono::milliseconds duration) {
    const auto start = Time::now();
    const auto end = start + duration;
    for (std::size_t i = 0; i < clients_.size(); ++i) ask(i, Time::now());
    while (Time::now() < end) hear(1ms, [&](std::size_t client) { ask(client, Time::now()); });
    auto figures = figures_since(start);
    hear_the_rest();
    return figures;
  }

  /// So many a second come, whether the ones before are answered or not; a request's time counts
  /// from when it should have been sent.
  ClickFigures at_rate(double rate, std::chrono::milliseconds duration) {
    std::deque<std::size_t> free;
    for (std::size_t i = 0; i < clients_.size(); ++i) free.push_back(i);
    const auto start = Time::now();
    const auto end = start + duration;
    const std::chrono::duration<double> between{1 / rate};
    std::size_t sent = 0;
    const auto next_due = [&] {
      return start +
             std::chrono::duration_cast<Time::duration>(between * static_cast<double>(sent));
    };
    for (auto now = start; now < end; now = Time::now()) {
      for (; next_due() <= now && !free.empty(); ++sent) {
        ask(free.front(), next_due());
        free.pop_front();
      }
      // Asleep, not asking again and again: the server's processes need this core, too.
      const auto wait = free.empty() ? 1ms : std::max(next_due() - Time::now(), Time::duration{0});
      hear(wait, [&](std::size_t client) { free.push_back(client); });
    }
    auto figures = figures_since(start);
    hear_the_rest();
    return figures;
  }

 private:
  struct Client {
    Descriptor socket;
    Time::time_point since;
    std::string answer;
    bool waits = false;
  };

  void ask(std::size_t i, Time::time_point since) {
    auto& client = clients_[i];
    client.since = since;
    client.waits = true;
    ++waiting_;
    const auto request = make_();
    if (::send(client.socket.number(), request.data(), request.size(), MSG_NOSIGNAL) !=
        static_cast<ssize_t>(request.size()))
      throw std::runtime_error{"a request was not sent"};
  }

  template <class Next>
  void hear(Time::duration most, Next next) {
    std::array<epoll_event, 256> events;
    std::array<char, 4096> bytes;
    const auto seconds = std::chrono::floor<std::chrono::seconds>(most);
    const timespec wait{.tv_sec = seconds.count(), .tv_nsec = (most - seconds) / 1ns};
    const int ready = ::epoll_pwait2(epoll_.number(), events.data(),
                                     static_cast<int>(events.size()), &wait, nullptr);
    for (int i = 0; i < ready; ++i) {
      const auto number = events[static_cast<std::size_t>(i)].data.u64;
      auto& client = clients_[number];
      const auto got = ::recv(client.socket.number(), bytes.data(), bytes.size(), 0);
      if (got <= 0) throw std::runtime_error{"a client was not answered"};
      client.answer.append(bytes.data(), static_cast<std::size_t>(got));
      if (!is_whole(client.answer)) continue;
      if (!client.answer.starts_with(expected_))
        throw std::runtime_error{"not " + expected_ + " but " + client.answer};
      client.answer.clear();
      client.waits = false;
      --waiting_;
      times_.push_back(
          std::chrono::duration<double, std::micro>(Time::now() - client.since).count());
      next(number);
    }
  }

  static bool is_whole(std::string_view answer) {
    constexpr std::string_view length = "Content-Length: ";
    const auto end = answer.find("\r\n\r\n");
    if (end == answer.npos) return false;
    const auto at = answer.find(length);
    std::size_t body = 0;
    if (at < end) std::from_chars(answer.data() + at + length.size(), answer.data() + end, body);
    return answer.size() >= end + 4 + body;
  }

  void hear_the_rest() {
    while (waiting_ > 0) hear(1s, [](std::size_t) {});
    times_.clear();
  }

  ClickFigures figures_since(Time::time_point start) {
    ClickFigures figures{.answers = times_.size(),
                         .seconds = std::chrono::duration<double>(Time::now() - start).count()};
    const auto at = [&](std::size_t percent) {
      const auto place =
          times_.begin() + static_cast<std::ptrdiff_t>(times_.size() * percent / 100);
      std::ranges::nth_element(times_, place);
      return *place;
    };
    if (times_.empty()) throw std::runtime_error{"nobody was answered"};
    figures.p50_us = at(50);
    figures.p99_us = at(99);
    return figures;
  }

  Make make_;
  const std::string expected_;
  const Descriptor epoll_{::epoll_create1(EPOLL_CLOEXEC), "epoll_create1"};
  std::vector<Client> clients_;
  std::size_t waiting_ = 0;
  std::vector<double> times_;
};

}  // namespace sluice::bench
