/// The waiting room as a part of the page of its sale.
#pragma once

#include <string>

#include "server/pages/frame.hpp"
#include "sluice/waiting_room.hpp"

namespace sluice::server {

/// How a visitor stands who is not inside; the page comes back when his place says so.
void put_place(PageText& text, const RoomPlace& place, const PageReader& reader);
/// The form by which he comes in, or gives his place up.
void put_join_form(PageText& text, const std::string& page, const std::string& form_token,
                   const PageReader& reader);
void put_leave_form(PageText& text, const std::string& page, const std::string& form_token,
                    const PageReader& reader);

}  // namespace sluice::server
