#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "trackers/io/tracker_data.h"

namespace trackers {

/// `{"columns":["a"],"data":[[1]]}`.
std::string json_text(const Table& table);

/// Writes an object key by key: `{"step":3,"name":"loss"}`.
class JsonObject {
 public:
  JsonObject& json(const char* key, std::string_view value);
  JsonObject& text(const char* key, std::string_view value);
  JsonObject& integer(const char* key, std::int64_t value);
  JsonObject& flag(const char* key, bool value) { return json(key, value ? "true" : "false"); }
  std::string str() const { return "{" + text_ + "}"; }

 private:
  std::string text_;
};

}  // namespace trackers
