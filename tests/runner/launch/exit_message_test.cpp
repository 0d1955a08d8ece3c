#include "runner/launch/exit_message.h"

#include <catch2/catch.hpp>

namespace runner::launch {

TEST_CASE("what a process said last comes to one line that says something", "[launch][exit_message]") {
  CHECK(in_one_line("").empty());
  CHECK(in_one_line(exit_message("all is well\nrecipe.yaml:3:8: error: no such key\n  hint: another")) ==
        "no such key");
  CHECK(in_one_line(exit_message("one\ntwo\nroux: undefined symbol\n")) == "last output: roux: undefined symbol");
  CHECK(exit_message("one\ntwo\n") == "last output:\n  one\n  two");
  CHECK(in_one_line(exit_message("one")) == "last output: one");
}

}  // namespace runner::launch
