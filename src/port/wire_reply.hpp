/// A command's reply as bytes, in the protocol that the session has then.
#pragma once

#include <string>
#include <string_view>

#include "engine/core/context.hpp"
#include "engine/core/reply.hpp"
#include "resp/writer.hpp"

namespace sluice::port {

class WireReply final : public engine::Reply {
 public:
  WireReply(std::string& out, const engine::Session& session)
      : out_(out), session_(session), begin_(out.size()) {}

  /// The next reply begins here.
  void begin() noexcept { begin_ = out_.size(); }
  std::string_view text() const noexcept { return std::string_view{out_}.substr(begin_); }
  bool is_error() const noexcept { return text().starts_with('-'); }
  resp::ReplyWriter writer() { return resp::ReplyWriter{out_, session_.protocol}; }

  void restart() override { out_.resize(begin_); }
  void null() override { writer().null(); }
  void null_array() override { writer().null_array(); }
  void integer(std::int64_t value) override { writer().integer(value); }
  void number(double value) override { writer().number(value); }
  void boolean(bool value) override { writer().boolean(value); }
  void simple(std::string_view text) override { writer().simple(text); }
  void bulk(std::string_view text) override { writer().bulk(text); }
  void verbatim(std::string_view text) override { writer().verbatim(text); }
  void big_number(std::string_view text) override { writer().big_number(text); }
  void error(std::string_view text) override { writer().error(text); }
  void array(std::size_t size) override { writer().array(size); }
  void set(std::size_t size) override { writer().set(size); }
  void map(std::size_t pairs) override { writer().map(pairs); }

 private:
  std::string& out_;
  const engine::Session& session_;
  std::size_t begin_;
};

}  // namespace sluice::port
