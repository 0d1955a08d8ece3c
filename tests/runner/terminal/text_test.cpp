#include "runner/terminal/text.h"

#include <catch2/catch.hpp>
#include <cmath>

using runner::terminal::ago_text;
using runner::terminal::number_text;

TEST_CASE("times and numbers are short", "[terminal][text]") {
  CHECK(number_text(0.123456789) == "0.12346");
  CHECK(number_text(12000) == "12000");
  CHECK(number_text(3e-5) == "3e-05");
  CHECK(number_text(std::nan("")) == "nan");
  CHECK(ago_text(0, 4'000) == "just now");
  CHECK(ago_text(0, 42'000) == "42 s ago");
  CHECK(ago_text(0, 180'000) == "3 min ago");
  CHECK(ago_text(0, 7'200'000) == "2 h ago");
  CHECK(ago_text(0, 432'000'000) == "5 days ago");
}
