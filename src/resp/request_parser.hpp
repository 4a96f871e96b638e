/// Requests as a server or proxy reads them: arrays of bulk strings, or a typed line. The words are
/// views into the caller's buffer; nothing is copied but words of a typed line.
///
///     while (parser.parse(buffer) == RequestParser::State::complete) {
///       if (!parser.words().empty()) execute(parser.words());
///       buffer.remove_prefix(parser.size());
///     }
///     if (parser.state() == RequestParser::State::bad) reply_and_close("ERR " + parser.error());
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace sluice::resp {

/// Splits a line as a person types it the way Redis does: blanks, "double quotes" with
/// \n \r \t \b \a \xhh, 'single quotes' with \'. Appends the words to `words`; they lie in `text`,
/// which is overwritten. False: a quote is not closed, or closed in the middle of a word. A NUL
/// ends the line, as in Redis.
bool split_inline(std::string_view line, std::string& text, std::vector<std::string_view>& words);

/// Redis's own limits. Each protects the memory of the server.
struct RequestLimits {
  std::size_t bulk = 512 << 20;              ///< bytes of one word (proto-max-bulk-len)
  std::size_t words = 1 << 20;               ///< words of one request
  std::size_t line = 64 << 10;               ///< bytes of a typed line, or of a length
  std::size_t whole = std::size_t{1} << 30;  ///< bytes of one request (client-query-buffer-limit)
  std::size_t unauthenticated_bulk = 16 << 10;
  std::size_t unauthenticated_words = 10;
  bool authenticated = true;  ///< false: the two above hold as well
  /// As twemproxy reads: the first byte of a length that is no digit is an error at once, and too
  /// many words are one when they come, not when they are announced.
  bool by_bytes = false;
};

class RequestParser {
 public:
  enum class State : std::uint8_t { incomplete, complete, bad };

  explicit RequestParser(RequestLimits limits = {}) : limits_(limits) {}

  /// `buffer` begins with the first byte of the request in hand and holds at least what it held at
  /// the last call; it may have moved. The bytes that were seen before are not read again. After
  /// `complete` the caller drops size() bytes, and the next call begins a new request; after `bad`
  /// there is no next call.
  State parse(std::string_view buffer);

  State state() const noexcept { return state_; }
  /// Of a complete request; good until the buffer changes or parse() is called. Empty: an empty
  /// line or array, to be ignored.
  std::span<const std::string_view> words() const noexcept { return {words_.data(), count_}; }
  /// Bytes of the complete request.
  std::size_t size() const noexcept { return at_; }
  /// At least so many bytes are still missing; lets a server make room at once for a long word.
  std::size_t missing() const noexcept { return missing_; }
  /// "Protocol error: invalid bulk length"; Redis's own words. The byte of the request is
  /// error_at().
  /// Bytes that it keeps beside the buffer.
  std::size_t memory() const noexcept {
    return places_.capacity() * sizeof(Place) + words_.capacity() * sizeof words_[0] +
           text_.capacity();
  }
  const std::string& error() const noexcept { return error_; }
  std::size_t error_at() const noexcept { return at_; }

  void set_authenticated(bool value) noexcept { limits_.authenticated = value; }
  void set_by_bytes(bool value) noexcept { limits_.by_bytes = value; }

 private:
  struct Place {
    std::size_t begin;
    std::size_t size;
  };
  enum class Step : std::uint8_t { begin, line, bulk_length, bulk };

  void start();
  bool take_whole(std::string_view buffer);
  State typed_line(std::string_view buffer);
  State count(std::string_view buffer);
  State words_of_array(std::string_view buffer);
  bool take_length(std::string_view buffer, std::string_view too_big, std::string_view& digits);
  bool take_bulk_length(std::string_view buffer);
  bool take_bulk(std::string_view buffer);
  State wait_for(std::size_t bytes) noexcept;
  State finish() noexcept { return state_ = State::complete; }
  State refuse(std::string_view what);

  RequestLimits limits_;
  State state_ = State::incomplete;
  Step step_ = Step::begin;
  std::size_t at_ = 0;       // all before is done
  std::size_t scanned_ = 0;  // no line end up to here
  std::size_t words_left_ = 0;
  std::size_t bulk_size_ = 0;
  std::size_t missing_ = 1;
  std::vector<Place> places_;
  std::vector<std::string_view> words_;  // the first count_ of them; it never gets shorter
  std::size_t count_ = 0;
  std::string text_;  // of a typed line
  std::string error_;
};

}  // namespace sluice::resp
