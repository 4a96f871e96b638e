/// Answers that wait for a database.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "http/responder.hpp"
#include "server/blocking_threads.hpp"

namespace sluice::server {

/// What a refusal looks like: a page, say. Empty: as it is.
using ShowRefusal = std::function<http::Response(const http::Response&)>;

/// Answers with what `work` returns, done by a thread that may block, or with why it was not done,
/// or not within BlockingLimits::answer.
/// Of one subject one piece of work is done at a time, so that it holds up nobody else; `sale` and
/// `most_waiting` are as BlockingThreads::run() has them. Of work that `only_reads` no effect is
/// unknown.
void in_background(BlockingThreads& threads, const std::string& subject, http::Responder&& respond,
                   std::function<http::Response(OrderStore&)> work, const std::string& sale = {},
                   std::optional<std::size_t> most_waiting = {}, ShowRefusal show_refusal = {},
                   bool only_reads = false);

/// The same of work that may do without the database, and may take longer where `within` says so.
void in_background_lazily(BlockingThreads& threads, const std::string& subject,
                          http::Responder&& respond,
                          std::function<http::Response(const BlockingThreads::Orders&)> work,
                          const std::string& sale = {},
                          std::optional<std::size_t> most_waiting = {},
                          std::optional<std::chrono::milliseconds> within = {},
                          ShowRefusal show_refusal = {}, bool only_reads = false);

}  // namespace sluice::server
