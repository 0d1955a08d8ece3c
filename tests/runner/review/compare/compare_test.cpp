#include "runner/review/runs.h"

#include <catch2/catch.hpp>
#include <string>

#include "tests/runner/review/fixture.h"

using namespace runner::review;
using review_test::FixedClock;
using review_test::kPlain;
using review_test::OutputDir;
using review_test::record_run;
using review_test::RecordedRun;
using review_test::replaced;
using runner::core::Diagnostics;

TEST_CASE("two runs are compared by what differs", "[review][compare]") {
  const OutputDir output;
  FixedClock clock;
  const RecordedRun a = record_run(output, clock, "alpha", R"({"run_name": "alpha", "seed": 1, "loss": {"type": "mse"},
      "optimizer": {"type": "sgd", "lr": 0.1}, "layers": [{"type": "relu"}, {"type": "linear", "out": 3}]})",
                                   1.5);
  const RecordedRun b = record_run(output, clock, "beta", R"({"run_name": "beta", "seed": 1, "loss": {"type": "mse"},
      "optimizer": {"type": "adamw", "lr": 0.1, "betas": [0.9, 0.95]},
      "layers": [{"type": "relu"}, {"type": "linear", "out": 4}]})",
                                   0.5);
  Diagnostics diagnostics;
  auto text = runs_compare({output.path, clock, kPlain}, {.runs = {"alpha", "beta"}}, diagnostics);
  REQUIRE(text);
  CHECK(replaced(replaced(*text, a.id, "IDENTIFIER1"), b.id, "IDENTIFIER2") ==
        "run                        IDENTIFIER1  IDENTIFIER2\n"
        "  name                           alpha         beta\n"
        "  status                      finished     finished\n"
        "  step                               3            3\n"
        "  duration                  1 min 30 s   1 min 30 s\n"
        "\n"
        "recipe, where it differs\n"
        "  optimizer.type                   sgd        adamw\n"
        "  layers[1].out                      3            4\n"
        "  optimizer.betas                    -  [0.9, 0.95]\n"
        "\n"
        "last value of each metric\n"
        "  loss                             1.5          0.5\n"
        "  lr                            0.0003       0.0003\n"
        "  val/accuracy                    0.25         0.25\n");
}
