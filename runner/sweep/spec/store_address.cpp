#include "runner/sweep/spec/store_address.h"

namespace runner::sweep {
namespace {

bool has_password(std::string_view address) {
  const std::string_view rest = address.substr(address.find("://") + 3);
  const std::string_view place = rest.substr(0, rest.find_first_of("/?"));
  const std::size_t at = place.rfind('@');
  if (at != std::string_view::npos && place.substr(0, at).find(':') != std::string_view::npos) return true;
  const std::size_t question = rest.find('?');
  if (question == std::string_view::npos) return false;
  const std::string_view query = rest.substr(question);
  return query.find("?password=") != std::string_view::npos || query.find("&password=") != std::string_view::npos ||
         query.find("sslpassword=") != std::string_view::npos;
}

}  // namespace

bool is_store_address(std::string_view text) {
  return text.starts_with("postgresql://") || text.starts_with("postgres://");
}

core::Result<StoreAddress> read_store_address(const std::string& text) {
  if (!is_store_address(text)) {
    return core::Failure{"\"" + text + "\" is not the address of a store", "write postgresql://HOST/DATABASE",
                         core::kExitUsage};
  }
  if (has_password(text)) {
    return core::Failure{"the address of the store has a password in it",
                         "remove it: use PGPASSWORD, ~/.pgpass or a service file", core::kExitUsage};
  }
  const std::size_t hash = text.find('#');
  if (hash == std::string::npos) return StoreAddress{text, ""};
  return StoreAddress{text.substr(0, hash), text.substr(hash + 1)};
}

}  // namespace runner::sweep
