#include "server/pages/html.hpp"

namespace sluice::server {

Html& Html::operator<<(std::string_view text) {
  for (const char c : text) switch (c) {
      case '&': text_ += "&amp;"; break;
      case '<': text_ += "&lt;"; break;
      case '>': text_ += "&gt;"; break;
      case '"': text_ += "&quot;"; break;
      case '\'': text_ += "&#39;"; break;
      case '\0': text_ += "\xEF\xBF\xBD"; break;  // HTML has none
      default: text_ += c;
    }
  return *this;
}

}  // namespace sluice::server
