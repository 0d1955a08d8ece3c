#include "runner/query/filter.h"

#include <catch2/catch.hpp>
#include <limits>

#include "runner/core/json.h"
#include "tests/runner/store/fixture.h"

namespace {

using namespace runner::query;
using namespace runner::store;

RunSummary example() {
  RunSummary run;
  run.id = "1abc";
  run.name = "tiny-gpt";
  run.status = RunStatus::kFinished;
  run.step = 200;
  run.created_ms = 1'800'000'000'000 - 7'200'000;
  run.ended_ms = run.created_ms + 90'000;
  run.metrics = {{"loss", 1.5}, {"val/loss", 2.0}, {"grad_norm", std::numeric_limits<double>::quiet_NaN()}};
  run.resolved = runner::core::parse_json(R"({"optimizer": {"type": "adamw", "lr": 3e-4, "betas": [0.9, 0.95]},
                                 "deterministic": true, "loader": {"count_repeated_samples": true}, "compat": null, "run_name": "tiny-gpt"})")
                     .value();
  run.tags = {"exp-7", "keep", "two words"};
  run.notes = {"the rate is too high"};
  run.summary = runner::core::parse_json(R"({"steps_per_s": 12.5})").value();
  return run;
}

}  // namespace

TEST_CASE("a filter takes runs by status, metrics and recipe", "[store][filter]") {
  struct Case {
    const char* text;
    bool accepted;
  };
  static constexpr Case cases[] = {
      {"val/loss < 2.5 and optimizer.type == \"adamw\" and status == finished", true},
      {"val/loss < 2", false},
      {"val/loss <= 2", true},
      {"train/loss == 1.5", true},
      {"loss > 1 and loss < 1.2 or step >= 200", true},
      {"loss > 1 and (loss < 1.2 or step > 200)", false},
      {"not status == failed", true},
      {"not not deterministic", true},
      {"loader.count_repeated_samples", true},
      {"loader.pad_in_loss == true", true},  // its name in earlier versions
      {"loader.pad_in_loss == null", false},
      {"name ~ GPT", true},
      {"name ~ 'gpt' and not name ~ bert", true},
      {"optimizer == adamw", true},
      {"optimizer.lr == 3e-4", true},
      {"optimizer.lr < 0.001", true},
      {"optimizer.betas[1] == .95", true},
      {"summary.steps_per_s > +12", true},
      {"grad_norm < 1", false},
      {"grad_norm != 1", true},
      {"compat == null", true},
      {"compat is null and optimizer.lr is not null and nowhere is null", true},
      {"loss is null or nowhere is not null", false},
      {"status in [failed, finished] and optimizer.betas[0] in [.9] and optimizer.betas[1] not in [.9]", true},
      {"status not in ()", true},
      {"optimizer.lr != null", true},
      {"nowhere == null", true},
      {"nowhere != 3", false},
      {"nowhere", false},
      {"`val/loss` == 2", true},
      {"smoke == false", true},
      {"age < 3h and duration > 1min", true},
      {"loss == inf", false},
      {"loss < 1e999 and loss > -1e999 and loss > 1e-999", true},
      {"grad_norm == nan and not grad_norm != nan and loss != nan", true},
      {"grad_norm >= nan or loss < nan", false},
      {"optimizer.type > 0 or optimizer.type < 0 or deterministic > 0", false},
      {"optimizer.type != 0", true},
      {"tag:keep and not tag:drop", true},
      {"tag:exp-*", true},
      {"tag:kee", false},
      {"tag:\"two words\" and `tag:two words`", true},
      {"status in (failed, finished)", true},
      {"status not in (failed, \"finished\")", false},
      {"step in (100, 200.0)", true},
      {"nowhere in (1) or nowhere not in (1)", false},
      {"name =~ '^tiny-(gpt|mlp)$'", true},
      {"name =~ gpt2", false},
      {"notes ~ 'RATE' and not archived", true},
      {"created >= 2027-01-15", true},
      {"created == 2027-01-15 and created == 2027-01 and created == 2027", true},
      {"created > 2027-01-15", false},
      {"created > 2027-01-15T05:59 and created < \"2027-01-15 06:01\"", true},
      {"created == today and created > yesterday and ended == 2027-01-15T06:01:30Z", true},
  };
  const store_test::FixedClock clock;
  for (const Case& c : cases) {
    DYNAMIC_SECTION(c.text) {
      runner::core::Diagnostics diagnostics;
      const auto filter = Filter::parse(c.text, diagnostics);
      REQUIRE(filter);
      CHECK(filter->accepts(example(), clock) == c.accepted);
    }
  }
}

TEST_CASE("a wrong filter is pointed at", "[store][filter]") {
  struct Case {
    const char* text;
    const char* message;
  };
  static constexpr Case cases[] = {
      {"", "--filter:1:1: error: the filter needs a name where it ends\n"},
      {"loss <", "--filter:1:7: error: the filter needs a number, a word or \"text\" where it ends\n"},
      {"loss < < 2", "--filter:1:8: error: the filter needs a number, a word or \"text\" where there is `<`\n"},
      {"2 < loss", "--filter:1:1: error: the filter needs a name where there is `2`\n"},
      {"loss < 2 status == x",
       "--filter:1:10: error: the filter needs `and`, `or` or the end where there is `status`\n"},
      {"(loss < 2", "--filter:1:10: error: the filter needs `)` where it ends\n"},
      {"name == \"x", "--filter:1:9: error: the filter needs a number, a word or \"text\" where there is `\"x`\n"},
      {"loss & 2", "--filter:1:6: error: the filter needs `and`, `or` or the end where there is `&`\n"},
      {"loss < and", "--filter:1:8: error: the filter needs a number, a word or \"text\" where there is `and`\n"},
      {"step in 3", "--filter:1:9: error: the filter needs `(` and a list where there is `3`\n"},
      {"step in (3", "--filter:1:11: error: the filter needs `,` or `)` where it ends\n"},
      {"step not 3", "--filter:1:10: error: the filter needs `in` after `not` where there is `3`\n"},
      {"name =~ 3", "--filter:1:9: error: the filter needs a \"pattern\" where there is `3`\n"},
      {"loss is 3", "--filter:1:9: error: the filter needs `null` where there is `3`\n"},
      {"step in [3", "--filter:1:11: error: the filter needs `,` or `]` where it ends\n"},
      {"tag: and", "--filter:1:6: error: the filter needs a tag where there is `and`\n"},
      {"\xf0\x9f\x94\xa5/loss < \u0645 and\n  \u0645) == 3",
       "--filter:2:4: error: the filter needs `and`, `or` or the end where there is `)`\n"},
      {"and", "--filter:1:1: error: the filter needs a name where there is `and`\n"},
  };
  for (const Case& c : cases) {
    DYNAMIC_SECTION(c.text) {
      runner::core::Diagnostics diagnostics;
      CHECK_FALSE(Filter::parse(c.text, diagnostics));
      const bool other_sign = std::string(c.text) == "loss & 2";  // of another language
      const std::string hint =
          other_sign ? "  hint: write `and`\n"
                     : "  hint: for example: val/loss < 2 and optimizer.type == \"adamw\" and status == finished\n";
      CHECK(render(diagnostics, {.color = false, .excerpts = false}) == c.message + hint);
    }
  }
}

TEST_CASE("a filter on a name that no run knows suggests one", "[store][filter]") {
  const store_test::FixedClock clock;
  runner::core::Diagnostics diagnostics;
  const auto filter = Filter::parse("statsu == failed and optimizer.typ == sgd and compat == null", diagnostics);
  REQUIRE(filter);
  filter->check_names({example()}, clock, diagnostics);
  REQUIRE(diagnostics.error_count() == 2);
  CHECK(diagnostics.all()[0].message == "no run has a metric, a recipe key or a property called \"statsu\"");
  CHECK(diagnostics.all()[0].hint == "did you mean \"status\"?");
  CHECK(diagnostics.all()[1].hint == "did you mean \"optimizer.type\"?");
}

TEST_CASE("a metric is compared with numbers only", "[store][filter]") {
  struct Case {
    const char* text;
    const char* message;  // "" where nothing is wrong
  };
  static constexpr Case cases[] = {
      {"loss < val/loss", "the metric loss is a number, but \"val/loss\" is not"},
      {"val/loss in (1, two)", "the metric val/loss is a number, but \"two\" is not"},
      {"loss < 2h and loss ~ 1 and loss =~ '^1' and loss != null and optimizer.lr != auto", ""},
  };
  const store_test::FixedClock clock;
  for (const Case& c : cases) {
    DYNAMIC_SECTION(c.text) {
      runner::core::Diagnostics diagnostics;
      const auto filter = Filter::parse(c.text, diagnostics);
      REQUIRE(filter);
      filter->check_names({example()}, clock, diagnostics);
      CHECK((diagnostics.all().empty() ? "" : diagnostics.all()[0].message) == c.message);
    }
  }
}

TEST_CASE("a filter on what a name never is says what it can be", "[store][filter]") {
  struct Case {
    const char* text;
    const char* message;
    const char* hint;
  };
  static constexpr Case cases[] = {
      {"status == finishd", "no run has the status \"finishd\"", "did you mean \"finished\"?"},
      {"status in (3)", "no run has the status \"3\"",
       "it is one of running, finished, failed, stopped, crashed, unreadable"},
      {"created > 2026-13-01", "\"2026-13-01\" is not a date",
       "write 2026-11-21, 2026-11-21T08:30 (UTC), today or yesterday; `age < 2h` counts from now"},
      {"age < 1y", "\"1y\" is not a duration",
       "write seconds or an amount with its unit: 90s, 30min, 1.5h, 2d, 1h30min"},
      {"step > last", "step is a number, but \"last\" is not", "for example: step >= 100"},
      {"'a b' == 2", "the filter needs a name instead of the text \"a b\"",
       "put a name with blanks or other characters into back quotes: `my metric` < 2"},
      {"name =~ 'a(b'", "\"a(b\" is not a regular expression: missing ) at \"a(b\"",
       "write \\( or \\) for a literal parenthesis"},
      {"name =~ '\\d'", "\"\\d\" uses \\d, which POSIX extended expressions do not support",
       "write [0-9] for \\d, [A-Za-z0-9_] for \\w"},
  };
  for (const Case& c : cases) {
    DYNAMIC_SECTION(c.text) {
      runner::core::Diagnostics diagnostics;
      CHECK_FALSE(Filter::parse(c.text, diagnostics));
      REQUIRE(diagnostics.error_count() == 1);
      CHECK(diagnostics.all()[0].message == c.message);
      CHECK(diagnostics.all()[0].hint == c.hint);
    }
  }
}
