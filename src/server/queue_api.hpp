/// The waiting rooms in front of sales. A room has the name of its sale.
///
///   POST   /v1/sales/{sale}/queue        comes in, or finds his place again: a ticket
///   GET    /v1/sales/{sale}/queue        how he stands; the ticket in Sluice-Ticket
///   DELETE /v1/sales/{sale}/queue        gives his place up
///   GET    /v1/sales/{sale}/queue/draw   what is published of the draw
#pragma once

#include <map>
#include <memory>
#include <shared_mutex>
#include <span>
#include <string>

#include "http/routes.hpp"
#include "server/buyers.hpp"
#include "server/entrance.hpp"
#include "server/shop.hpp"
#include "sluice/waiting_room.hpp"

namespace sluice::server {

/// Threads: any. REQUIRES: what it is made of lives longer.
class QueueApi final : public Entrance {
 public:
  /// `rooms` are made, or joined; and made again where the store has lost them. One without an
  /// opening has that of its sale. `keys` sign tickets.
  QueueApi(Store& store, Shop& shop, const Buyers& buyers, TokenKeys keys,
           std::vector<WaitingRoomDefinition> rooms);

  void add_routes(http::Routes& routes);

  /// Finds rooms that other processes made, and tells each what its sale has left. Blocks; one
  /// thread at a time. What fails is logged once, and does not hold up the other rooms.
  void look();

  /// Null: the sale has no room.
  std::shared_ptr<WaitingRoom> room_of(std::string_view sale) const;

  bool guards(const std::string& sale) const override { return find(sale) != nullptr; }
  Task<std::optional<http::Response>> stop(const std::string& ticket, const std::string& sale,
                                           const BuyerId& buyer) override;
  Task<void> served(const std::string& ticket, const std::string& sale,
                    const BuyerId& buyer) override;

 private:
  struct Room {
    explicit Room(WaitingRoom made) : room(std::move(made)) {}
    WaitingRoom room;
    // Of look() alone.
    std::optional<std::int64_t> told;  ///< units left
    bool is_over = false;              ///< with its sale
  };
  struct Asked {
    std::shared_ptr<Room> room;
    std::string buyer;
    std::string ticket;
  };

  std::shared_ptr<Room> find(std::string_view sale) const;
  WaitingRoom make(WaitingRoomDefinition definition) const;
  void look_at(const std::string& sale);
  Expected<Asked, http::Response> asked_of(const http::Request& request) const;

  void enter(http::Request&& request, http::Responder&& respond);
  void show(http::Request&& request, http::Responder&& respond);
  void leave(http::Request&& request, http::Responder&& respond);
  void show_draw(http::Request&& request, http::Responder&& respond);
  static Task<void> answer_entry(Asked asked, http::Responder respond);
  static Task<void> answer_place(Asked asked, http::Responder respond);
  static Task<void> answer_leave(Asked asked, http::Responder respond);
  static Task<void> answer_draw(Asked asked, http::Responder respond);

  Store& store_;
  Shop& shop_;
  const Buyers& buyers_;
  const TokenKeys keys_;
  const std::vector<WaitingRoomDefinition> definitions_;
  mutable std::shared_mutex mutex_;
  std::map<std::string, std::shared_ptr<Room>, std::less<>> rooms_;  // guarded by mutex_
  std::map<std::string, std::string, std::less<>> troubles_;         // of look() alone
};

}  // namespace sluice::server
