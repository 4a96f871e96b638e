#include "http/responder.hpp"

#include <utility>

#include "http/mailbox.hpp"
#include "sluice/error.hpp"

namespace sluice::http {
namespace {

void tell_gone(Mailbox::Letter& letter) {
  if (auto* const watch = std::get_if<Mailbox::Watch>(&letter.content)) watch->gone.request_stop();
}

}  // namespace

void Mailbox::post(Letter letter) {
  if (thread_.load(std::memory_order_relaxed) == std::this_thread::get_id()) {
    if (owner_) return owner_->deliver(std::move(letter));
    return tell_gone(letter);
  }
  {
    const std::lock_guard lock{mutex_};
    if (owner_) {
      letters_.push_back(std::move(letter));
      if (letters_.size() == 1) owner_->wake();
      return;
    }
  }
  tell_gone(letter);
}

void Mailbox::collect() {
  std::vector<Letter> letters;
  {
    const std::lock_guard lock{mutex_};
    letters.swap(letters_);
  }
  for (auto& letter : letters)
    if (owner_) owner_->deliver(std::move(letter));
}

void Mailbox::close() noexcept {
  std::vector<Letter> undelivered;  // dropped without the lock: what it holds may post
  {
    const std::lock_guard lock{mutex_};
    owner_ = nullptr;
    undelivered.swap(letters_);
  }
  for (auto& letter : undelivered) tell_gone(letter);
}

Responder::Responder(std::shared_ptr<Mailbox> mailbox, std::uint64_t connection,
                     std::uint64_t request) noexcept
    : mailbox_(std::move(mailbox)), connection_(connection), request_(request) {}

Responder::~Responder() {
  if (!mailbox_) return;
  try {
    send(problem(problems::internal_error, "the request was dropped without an answer"));
  } catch (...) {  // no memory: the client sees its connection time out
  }
}

void Responder::send(Response response) {
  if (const auto mailbox = std::exchange(mailbox_, nullptr))
    mailbox->post({connection_, request_, std::move(response)});
}

std::stop_token Responder::gone() {
  std::stop_source gone;
  if (mailbox_)
    mailbox_->post({connection_, request_, Mailbox::Watch{gone}});
  else
    gone.request_stop();
  return gone.get_token();
}

EventStream Responder::stream() {
  auto mailbox = std::exchange(mailbox_, nullptr);
  if (!mailbox) throw Error{Errc::bad_argument, "the request was answered before"};
  auto state = std::make_shared<EventStream::State>(mailbox, connection_, true);
  mailbox->post({connection_, request_, Mailbox::Begin{state}});
  return EventStream{std::move(state)};
}

void Responder::at_end_of_turn(std::function<void()> call) {
  mailbox_->at_end_of_turn(std::move(call));
}

EventStream::~EventStream() {
  if (!state_) return;
  try {
    state_->mailbox->post({state_->connection, 0, Mailbox::End{}});
  } catch (...) {  // no memory: it ends with the client or the server
  }
}

bool EventStream::is_open() const noexcept {
  return state_ && state_->is_open.load(std::memory_order_acquire);
}

void EventStream::pause_before_return(std::chrono::milliseconds pause) {
  state_->mailbox->post(
      {state_->connection, 0, Mailbox::Bytes{"retry: " + std::to_string(pause.count()) + "\n\n"}});
}

bool EventStream::send(const StreamEvent& event) {
  const auto is_line = [](std::string_view text) {
    return text.find_first_of(std::string_view{"\r\n\0", 3}) == std::string_view::npos;
  };
  if (!is_line(event.id) || !is_line(event.event))
    throw Error{Errc::bad_argument, "the id and the type of an event are one line each"};
  if (!is_open()) return false;
  std::string text;
  if (!event.id.empty()) ((text += "id: ") += event.id) += '\n';
  if (!event.event.empty()) ((text += "event: ") += event.event) += '\n';
  std::string_view rest = event.data;
  for (;;) {
    const auto end = rest.find_first_of("\r\n");
    ((text += "data: ") += rest.substr(0, end)) += '\n';
    if (end == std::string_view::npos) break;
    rest.remove_prefix(rest.substr(end).starts_with("\r\n") ? end + 2 : end + 1);
  }
  state_->mailbox->post({state_->connection, 0, Mailbox::Bytes{text + '\n'}});
  return is_open();
}

}  // namespace sluice::http
