/// The shop for people: pages that need no script.
///
///   GET  /                                      the sales, and where programs and operators go
///   GET  /sales/{sale}                          how it stands, and what one can do
///   POST /sales/{sale}/buyer                        goes on as the buyer that a link brings
///   POST /sales/{sale}/queue, /queue/leave      a place in the waiting room
///   POST /sales/{sale}/orders                   buys
///   GET  /sales/{sale}/orders/{order}
///   POST /sales/{sale}/orders/{order}/cancel
///
/// Each form is answered by 303 to a page, so that a reload repeats nothing. A purchase has the
/// Idempotency-Key that its page was made with: sent twice, it buys once.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "http/routes.hpp"
#include "server/blocking_threads.hpp"
#include "server/counter.hpp"
#include "server/pages/form.hpp"
#include "server/pages/reader.hpp"
#include "server/pages/visitors.hpp"
#include "server/queue_api.hpp"
#include "server/sales_text.hpp"
#include "server/shop.hpp"

namespace sluice::server {

/// Threads: any. REQUIRES: what it is made of lives longer, and it longer than the server of its
/// routes.
class BuyersPages {
 public:
  /// `keys` sign forms, and the names of browsers where buyers have no tokens.
  BuyersPages(Shop& shop, const Buyers& buyers, BlockingThreads& threads, QueueApi& queue,
              const TokenKeys& keys, PagesOptions options)
      : shop_(shop),
        threads_(threads),
        queue_(queue),
        visitors_(buyers, keys),
        keys_(keys),
        options_(std::move(options)) {}

  void add_routes(http::Routes& routes);

 private:
  struct Look {
    std::shared_ptr<Offer> offer;
    http::Request request;
    Visitors::Visitor visitor;
    PageReader reader;
  };
  /// A form that was sent by who may.
  struct Sent {
    std::shared_ptr<Offer> offer;
    http::Request request;
    BuyerId buyer;
    Form form;
    PageReader reader;
  };

  void show_root(http::Request&& request, http::Responder&& respond);
  void show_sale(http::Request&& request, http::Responder&& respond);
  void change_buyer(http::Request&& request, http::Responder&& respond);
  void join(http::Request&& request, http::Responder&& respond);
  void leave(http::Request&& request, http::Responder&& respond);
  void buy(http::Request&& request, http::Responder&& respond);
  void show_order(http::Request&& request, http::Responder&& respond);
  void cancel(http::Request&& request, http::Responder&& respond);
  void show_picture(http::Request&& request, http::Responder&& respond);
  void show_colours(http::Request&& request, http::Responder&& respond);
  void add_files(http::Routes& routes);

  http::Response greeted(const http::Request& request, const std::string& sale,
                         const std::string& token, const PageReader& reader) const;
  Expected<Sent, http::Response> sent_of(http::Request&& request) const;
  std::string pay_at(const SaleDefinition& sale, const ShownOrder& shown) const;
  Task<http::Response> sale_shown(Look look);
  Task<std::optional<RoomPlace>> place_of(const Look& look, WaitingRoom& room);
  Task<http::Response> joined(Sent sent);
  Task<http::Response> left(Sent sent);
  Task<http::Response> bought(Sent sent, Purchase purchase);

  Shop& shop_;
  BlockingThreads& threads_;
  QueueApi& queue_;
  const Visitors visitors_;
  const TokenKeys keys_;
  const PagesOptions options_;
};

}  // namespace sluice::server
