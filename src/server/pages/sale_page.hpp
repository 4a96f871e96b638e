/// The page of a sale: what is sold, how it stands, and what its visitor can do now.
#pragma once

#include <optional>
#include <string>

#include "server/pages/frame.hpp"
#include "sluice/sale.hpp"
#include "sluice/waiting_room.hpp"

namespace sluice::server {

struct SaleView {
  const SaleDefinition& sale;
  SaleStatus status;
  WallTime now{};                        ///< by the clock of this machine
  bool is_known = false;                 ///< it is known who looks; else he can only look
  std::string who = {};                  ///< as the shop's login calls him; empty: it does not
  std::optional<SaleOrder> latest = {};  ///< his
  bool has_room = false;
  std::optional<RoomPlace> place = {};  ///< his in the room
  std::string form_token = {};
  std::string wish = {};  ///< the Idempotency-Key of a purchase from this page
};

/// The line on what is sold, which all pages of a sale begin with.
Html headline(const SaleDefinition& sale, const PageReader& reader);

http::Response sale_page(const SaleView& view, const PageReader& reader);

}  // namespace sluice::server
