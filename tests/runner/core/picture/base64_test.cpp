#include "runner/core/picture/base64.h"

#include <catch2/catch.hpp>

#include <string>

using runner::core::base64;
using runner::core::base64_bytes;

TEST_CASE("bytes are written in base64 and read from it", "[base64]") {
  // RFC 4648, section 10.
  const char* const cases[][2] = {{"", ""},
                                  {"f", "Zg=="},
                                  {"fo", "Zm8="},
                                  {"foo", "Zm9v"},
                                  {"foob", "Zm9vYg=="},
                                  {"fooba", "Zm9vYmE="},
                                  {"foobar", "Zm9vYmFy"}};
  for (const auto& [bytes, text] : cases) {
    CHECK(base64(bytes) == text);
    CHECK(base64_bytes(text) == std::string(bytes));
  }
  CHECK(base64_bytes("AP/+") == std::string("\0\xFF\xFE", 3));
}

TEST_CASE("a text that is not base64 is refused", "[base64]") {
  for (const char* text : {"Z", "Zg", "Zg=", "Z===", "====", "Zm9v!m8=", "Zg==Zg==", "Zm 9", "\xC3\xA9\xC3\xA9"}) {
    INFO(text);
    CHECK_FALSE(base64_bytes(text).has_value());
  }
}
