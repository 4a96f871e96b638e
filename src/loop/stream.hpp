/// A connection, to a client or to a server: bytes in, whole messages consumed from their front;
/// bytes out, written once at the end of a turn.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>

#include "loop/buffer.hpp"
#include "loop/loop.hpp"
#include "net/transport.hpp"

namespace sluice::loop {

class Stream : public EventHandler {
 public:
  ~Stream() override;

  void ready(Readiness readiness) final;
  void flush() final;

  bool closed() const noexcept { return transport_ == nullptr; }
  /// What waits to be written.
  std::size_t unsent() const noexcept { return out_.size(); }
  /// What was read and not consumed.
  std::string_view unread() const noexcept { return in_.view(); }
  std::size_t memory() const noexcept { return in_.size() + out_.size(); }
  int descriptor() const noexcept { return transport_ ? transport_->descriptor() : -1; }

 protected:
  explicit Stream(Loop& loop) : loop_(loop), in_(loop.blocks()), out_(loop.blocks()) {}

  /// Throws std::system_error when epoll takes no more.
  void attach(std::unique_ptr<net::Transport> transport);
  /// Closes the descriptor and forgets what was to be written; the derived class buries the object.
  void detach() noexcept;

  /// It is consumed before what comes from the connection. REQUIRES: nothing was read.
  void set_unread(std::string_view bytes);
  /// Nothing of the connection lies behind its descriptor, as TLS does: another process could go on
  /// with it.
  bool is_bare() const noexcept { return transport_ && transport_->short_read_drains(); }

  /// Another connection in place of one that failed to connect; what is to be written stays.
  /// Throws as attach().
  void replace(std::unique_ptr<net::Transport> transport);

  void write(std::string_view bytes) {
    append(out_, bytes);
    loop_.flush_later(*this);
  }
  /// All of a buffer, which is empty then.
  void write(Buffer& bytes) {
    if (!out_.take_over(bytes, bytes.view())) out_.append(bytes.view());
    bytes.release();
    loop_.flush_later(*this);
  }
  /// To the end of a buffer of this loop; not copied, if they are huge and all that another stream
  /// has in hand.
  void append(Buffer& buffer, std::string_view bytes) {
    if (bytes.size() < huge || !loop_.in_hand() || !buffer.take_over(*loop_.in_hand(), bytes))
      buffer.append(bytes);
  }
  /// Reading stops after the message in hand, until resume().
  void pause() noexcept { paused_ = true; }
  bool paused() const noexcept { return paused_; }
  bool has_hung_up() const noexcept { return hung_up_; }
  void resume();

  /// Whole messages from the front of `bytes`; gives how many bytes they were. What is left comes
  /// again with more behind it. While paused it consumes nothing.
  virtual std::size_t consume(std::string_view bytes) = 0;
  /// At least so many bytes of the message in hand are missing.
  virtual std::size_t missing() const noexcept { return 1; }
  /// The peer closed its side (0), or the connection failed (an errno). Called once; detach() is
  /// the answer.
  virtual void ended(int error) = 0;
  /// The connection can be written to for the first time, or again.
  virtual void writable() {}
  /// The peer will send no more; what it has sent may still have to be read. Also while paused;
  /// called once.
  virtual void hung_up() {}
  /// All is written.
  virtual void flushed() {}
  /// Whether what the peer said last matters when it takes no more: a server's replies, and why it
  /// refuses. Else a refused write is the end.
  virtual bool heeds_last_words() const noexcept { return false; }
  /// Called when memory is short. True: it pauses, and calls resume() when it may be read again.
  virtual bool gives_way() { return false; }

  /// Changes when the connection is closed: a caller sees by it whether a callback closed it.
  std::uint32_t generation() const noexcept { return generation_; }
  bool is_established() const noexcept { return transport_ && transport_->is_established(); }
  /// Memory for what has been read and not consumed.
  std::size_t input_memory() const noexcept { return in_.capacity(); }

  Loop& loop_;

 private:
  // From here on a message is worth the trouble of handing its memory on.
  static constexpr std::size_t huge = std::size_t{1} << 20;

  void read();
  void heed_room(bool heeds) noexcept;
  bool take_leftovers();

  std::unique_ptr<net::Transport> transport_;
  Buffer in_;  // the beginning of a message whose end has not come, or what came while paused
  Buffer out_;
  std::uint32_t generation_ = 0;
  bool readable_ : 1 = false;
  bool writable_ : 1 = false;
  bool hung_up_ = false;
  bool paused_ : 1 = false;
  bool is_unix_ : 1 = false;
};

}  // namespace sluice::loop
