/// A client's connection: requests in, answers out in their order.
#pragma once

#include <cstdint>
#include <list>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "http/mailbox.hpp"
#include "http/reader.hpp"
#include "http/response.hpp"
#include "loop/stream.hpp"

namespace sluice::http {

class Worker;

/// What a connection waits for; each has its time (Worker::time_of).
enum class Phase : std::uint8_t { idle, head, body, answering, sending, streaming, lingering };
inline constexpr std::size_t phases = 7;

class Connection final : public loop::Stream {
 public:
  /// `client`: its address without the port. `place`: what Places counted it as.
  Connection(Worker& worker, std::uint64_t id, std::unique_ptr<net::Transport> transport,
             std::string client, std::string place, bool tls);
  ~Connection() override;

  std::uint64_t id() const noexcept { return id_; }
  const std::string& place() const noexcept { return place_; }

  void answer(std::uint64_t request, Response response);
  void begin_stream(std::uint64_t request, std::shared_ptr<EventStream::State> state);
  void send_event(std::string_view bytes);
  void end_stream();
  /// The handler of a request is told when the client goes.
  void watch(std::uint64_t request, std::stop_source gone);
  /// Those who are to be told so, once.
  std::vector<std::stop_source> take_watches();

  /// The time of its phase is over.
  void overdue();
  /// Its descriptor is closed, and the worker forgets it.
  void close();
  void reset();

 private:
  friend class Worker;

  /// A request under way.
  struct Asked {
    std::optional<Response> response;  // waits for its turn
    std::shared_ptr<EventStream::State> stream;
    std::optional<std::stop_source> gone;  // somebody wants to know
    SteadyTime since{};
    std::uint32_t route = 0;
    bool is_head = false;
    bool is_http_1_0 = false;
    bool is_tls = false;
    bool keep_alive = true;
  };

  std::size_t consume(std::string_view bytes) override;
  void ended(int error) override;
  void flushed() override;

  void serve(Request request);
  void refuse(const ProblemType& problem, std::string_view detail);
  void send_answers();
  void send_answer(Asked asked);
  void end_behind_answer(bool lingers);
  void read_on();
  void settle();
  void drop_stream() noexcept;

  Worker& worker_;
  const std::uint64_t id_;
  std::uint64_t first_asked_ = 0;  // the number of asked_.front()
  std::vector<Asked> asked_;
  RequestReader reader_;
  std::string client_;
  std::string place_;
  std::shared_ptr<EventStream::State> stream_;
  // The worker's list for the phase.
  std::list<Connection*>::iterator in_list_;
  SteadyTime since_{};
  Phase phase_ = Phase::idle;
  bool tls_;
  bool is_deaf_ = false;       // what comes is dropped
  bool is_ending_ = false;     // closed when all is written
  bool lingers_ = false;       // until the client has read that, and closes
  bool has_said_all_ = false;  // the client: its side is closed
  bool was_stuck_ = false;     // an event stream at its last comment
};

}  // namespace sluice::http
