#include "runner/launch/last_words.h"

#include <catch2/catch.hpp>

namespace runner::launch {

TEST_CASE("what a process said last comes to one line that says something", "[launch][last_words]") {
  CHECK(in_one_line("").empty());
  CHECK(in_one_line(last_words("all is well\nrecipe.yaml:3:8: error: no such key\n  hint: another")) == "no such key");
  CHECK(in_one_line(last_words("one\ntwo\nroux: undefined symbol\n")) == "it said last: roux: undefined symbol");
  CHECK(last_words("one\ntwo\n") == "it said last:\n  one\n  two");
  CHECK(in_one_line(last_words("one")) == "it said last: one");
}

}  // namespace runner::launch
