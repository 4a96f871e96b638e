// LCS: the longest common subsequence of two strings, and where it lies in them.
#include <cstdint>
#include <vector>

#include "engine/commands/families.hpp"
#include "engine/core/command.hpp"

namespace sluice::engine {
namespace {

struct LcsOptions {
  bool length = false;
  bool places = false;
  bool match_length = false;
  std::int64_t shortest = 0;  ///< of the matches whose places are told
};

LcsOptions read_lcs_options(Words words) {
  LcsOptions options;
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (is_word(words[i], "len"))
      options.length = true;
    else if (is_word(words[i], "idx"))
      options.places = true;
    else if (is_word(words[i], "withmatchlen"))
      options.match_length = true;
    else if (is_word(words[i], "minmatchlen") && i + 1 < words.size())
      options.shortest = read_integer(words[++i]);
    else
      refuse(syntax_error);
  }
  if (options.length && options.places)
    refuse("ERR If you want both the length and indexes, please just use IDX.");
  return options;
}

/// How long the longest common subsequence of each pair of beginnings is.
class CommonLengths {
 public:
  CommonLengths(Context& context, std::string_view one, std::string_view other)
      : width_(other.size() + 1) {
    constexpr std::size_t cells_a_step = 16;
    if ((one.size() + 1) > longest_string / sizeof(std::uint32_t) / width_)
      refuse("ERR Insufficient memory, transient memory for LCS exceeds proto-max-bulk-len");
    context.spend((one.size() + 1) * width_ / cells_a_step);
    lengths_.resize((one.size() + 1) * width_);
    for (std::size_t i = 1; i <= one.size(); ++i)
      for (std::size_t j = 1; j < width_; ++j)
        lengths_[i * width_ + j] = one[i - 1] == other[j - 1]
                                       ? of(i - 1, j - 1) + 1
                                       : std::max(of(i - 1, j), of(i, j - 1));
  }
  std::uint32_t of(std::size_t i, std::size_t j) const noexcept { return lengths_[i * width_ + j]; }

 private:
  std::size_t width_;
  std::vector<std::uint32_t> lengths_;
};

/// A common part that lies in one piece in both.
struct Match {
  std::size_t one, other, size;
};

/// From the last to the first.
std::vector<Match> matches_of(std::string_view one, std::string_view other,
                              const CommonLengths& lengths) {
  std::vector<Match> matches;
  bool extends = false;
  for (auto i = one.size(), j = other.size(); i > 0 && j > 0;) {
    if (one[i - 1] == other[j - 1]) {
      if (!extends) matches.push_back({i, j, 0});
      auto& match = matches.back();
      match = {--i, --j, match.size + 1};
      extends = true;
    } else {
      lengths.of(i - 1, j) > lengths.of(i, j - 1) ? --i : --j;
      extends = false;
    }
  }
  return matches;
}

void reply_places(std::vector<Match> matches, const LcsOptions& options, std::size_t length,
                  Reply& reply) {
  std::erase_if(matches, [&](const Match& match) {
    return static_cast<std::int64_t>(match.size) < options.shortest;
  });
  reply.map(2);
  reply.bulk("matches");
  reply.array(matches.size());
  for (const auto& match : matches) {
    reply.array(options.match_length ? 3 : 2);
    for (const auto first : {match.one, match.other}) {
      reply.array(2);
      reply.count(first);
      reply.count(first + match.size - 1);
    }
    if (options.match_length) reply.count(match.size);
  }
  reply.bulk("len");
  reply.count(length);
}

void lcs(Context& context, Words words, Reply& reply) {
  std::string_view texts[2];
  for (std::size_t i = 0; i < 2; ++i) {
    Object* object = find(context, words[i + 1]);
    const auto* text = object ? as<std::string>(*object) : nullptr;
    if (object && !text) refuse("ERR The specified keys must contain string values");
    if (text) texts[i] = *text;
  }
  const auto& [one, other] = texts;
  const auto options = read_lcs_options(words.subspan(3));
  const CommonLengths lengths{context, one, other};
  const auto length = lengths.of(one.size(), other.size());
  if (options.length) return reply.count(length);
  const auto matches = matches_of(one, other, lengths);
  if (options.places) return reply_places(matches, options, length, reply);
  std::string common;
  for (auto match = matches.rbegin(); match != matches.rend(); ++match)
    common += one.substr(match->one, match->size);
  reply.bulk(common);
}

}  // namespace

CommandRows lcs_commands() noexcept {
  static constexpr CommandRow rows[] = {{"lcs", lcs}};
  return rows;
}

}  // namespace sluice::engine
