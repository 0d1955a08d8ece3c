#include "runner/core/text/suggest.h"

#include <catch2/catch.hpp>

using runner::core::closest;

TEST_CASE("a slip of the finger finds its word", "[core][suggest]") {
  static const std::vector<std::string> words = {"max_steps", "max_epochs", "micro_batch_size", "lr", "adamw",
                                                 "sgd",       "cosine"};
  struct Case {
    const char* word;
    const char* answer;
  };
  static constexpr Case cases[] = {
      {"max_step", "max_steps"},
      {"max-steps", "max_steps"},
      {"MAX_STEPS", "max_steps"},
      {"mxa_steps", "max_steps"},
      {"max_epoch", "max_epochs"},
      {"adamW", "adamw"},
      {"asgd", "sgd"},
      {"cosin", "cosine"},
      {"micro_batchsize", "micro_batch_size"},
      {"rl", "lr"},
      {"micro_batch", "micro_batch_size"},
      {"mbsz", ""},
      {"x", ""},
      {"transformer", ""},
      {"", ""},
  };
  for (const Case& c : cases) {
    CAPTURE(c.word);
    CHECK(closest(c.word, words) == c.answer);
  }
}

TEST_CASE("where several words are as near, none is chosen", "[core][suggest]") {
  using runner::core::all_closest;
  using Words = std::vector<std::string>;
  const Words optimizers = {"adafactor", "adam", "adamw", "sgd"};
  CHECK(all_closest("adamv", optimizers) == Words{"adam", "adamw"});
  CHECK(closest("adamv", optimizers).empty());
  CHECK(closest("adamww", optimizers) == "adamw");
  CHECK(all_closest("sdg", optimizers) == Words{"sgd"});
  CHECK(all_closest("num_procs", {"num_processes", "num_pro_cases"}) == Words{"num_processes", "num_pro_cases"});
  CHECK(closest("num_procs", {"num_processes", "num-processes"}) == "num_processes");
}
