#include "runner/review/checkpoint/keep.h"

#include <catch2/catch.hpp>

#include <filesystem>
#include <fstream>

#include "runner/artifact/checkpoint_dir.h"
#include "tests/runner/store/fixture.h"
#include "tests/support/checkpoints.h"

namespace runner::review {
namespace {

namespace fs = std::filesystem;
using tests::names_in;

/// A finished run with steps 100, 200 and 300, of which 200 has the least val/loss.
struct Run {
  explicit Run(bool finished = true) {
    store::NewRun made = store_test::new_run(output);
    made.resolved_json = R"({"checkpoint": {"monitor": "val/loss", "mode": "min"}})";
    writer = store_test::create(made, clock);
    folder = writer->run_dir() + "/checkpoints";
    for (const std::int64_t step : {100, 200, 300}) {
      artifact::ManifestFields fields{.step = step, .run_id = writer->run_id()};
      fields.metrics = core::Node::mapping();
      fields.metrics.set("val/loss", core::Node::floating(step == 200 ? 1.0 : 2.0));
      tests::save_checkpoint(folder, fields);
    }
    if (finished) writer->finish(store::RunStatus::kFinished, "max_steps");
  }
  std::string at(const char* name) const { return folder + "/" + name; }
  core::Result<std::string> rm(KeepRequest request) const {
    return checkpoints_rm(output.path, request, clock, [](const std::string&) { return false; });
  }

  store_test::OutputDir output;
  store_test::FixedClock clock;
  std::unique_ptr<store::RunWriter> writer;
  std::string folder;
};

TEST_CASE("a checkpoint is pinned by each of its names", "[review][checkpoints]") {
  const Run run;
  struct Case {
    std::string text;
    const char* name;
  };
  const Case cases[] = {{"step-000100", "step-000100"}, {"100", "step-000100"},
                        {"best", "step-000200"},        {"last", "step-000300"},
                        {"tiny:best", "step-000200"},   {run.at("step-000100"), "step-000100"}};
  for (const Case& c : cases) {
    CAPTURE(c.text);
    CHECK(checkpoints_pin(run.output.path, {.checkpoints = {c.text}}).value() == std::string(c.name) + ": pinned\n");
    CHECK(artifact::is_pinned(run.at(c.name)));
    CHECK(artifact::verify_checkpoint(run.at(c.name)).ok());
    CHECK(checkpoints_pin(run.output.path, {.checkpoints = {c.text}}).value() ==
          std::string(c.name) + ": already pinned\n");
    CHECK(checkpoints_unpin(run.output.path, {.checkpoints = {c.text}}).value() ==
          std::string(c.name) + ": unpinned\n");
    CHECK_FALSE(artifact::is_pinned(run.at(c.name)));
  }
}

TEST_CASE("what rm refuses, it refuses for all, and --force does not", "[review][checkpoints]") {
  struct Case {
    const char* name;
    std::vector<std::string> checkpoints;
    std::function<void(const Run&)> before;
    const char* message;  ///< `@` stands for the folder
  };
  const auto nothing = [](const Run&) {};
  const Case cases[] = {
      {"pinned",
       {"100", "best"},
       [](const Run& run) { checkpoints_pin(run.output.path, {.checkpoints = {"best"}}).value(); },
       "step-000200 is pinned"},
      {"all of them",
       {"100", "200", "300"},
       nothing,
       "step-000100 is the only checkpoint that its run can resume from"},
      {"the only whole one",
       {"100"},
       [](const Run& run) {
         fs::remove(run.at("step-000200/trainer.json"));
         fs::remove(run.at("step-000300/trainer.json"));
       },
       "step-000100 is the only checkpoint that its run can resume from"},
      {"a damaged manifest",
       {"step-000100"},
       [](const Run& run) { std::ofstream(run.at("step-000100/manifest.json")) << "{"; },
       "@/step-000100/manifest.json cannot be read: it is not valid JSON from byte 2 on"},
  };
  for (const Case& c : cases) {
    DYNAMIC_SECTION(c.name) {
      const Run run;
      c.before(run);
      const auto refused = run.rm({.checkpoints = c.checkpoints, .yes = true});
      REQUIRE_FALSE(refused.ok());
      std::string message = c.message;
      if (message.front() == '@') message.replace(0, 1, fs::canonical(run.folder).string());
      CHECK(refused.failure().message == message);
      CHECK(refused.failure().exit_code == core::kExitUsage);
      CHECK(names_in(run.folder).size() == 3);
      CHECK(run.rm({.checkpoints = c.checkpoints, .yes = true, .force = true}).ok());
      CHECK(names_in(run.folder).size() == 3 - c.checkpoints.size());
    }
  }
}

TEST_CASE("a run that is being trained keeps its checkpoints", "[review][checkpoints]") {
  const Run run(false);
  const auto refused = run.rm({.checkpoints = {"100"}, .yes = true});
  REQUIRE_FALSE(refused.ok());
  CHECK(refused.failure().message.starts_with("step-000100 belongs to a run in use by process "));
  CHECK(checkpoints_pin(run.output.path, {.checkpoints = {"100"}}).ok());
}

TEST_CASE("rm asks, removes what was named, and reports the size", "[review][checkpoints]") {
  const Run run;
  std::string asked;
  const auto answer = [&](bool yes) {
    return checkpoints_rm(run.output.path, {.checkpoints = {"100", "step-000100"}}, run.clock,
                          [&, yes](const std::string& question) { return asked = question, yes; });
  };
  CHECK(answer(false).value() == "nothing was removed\n");
  CHECK(asked == "remove " + fs::canonical(run.at("step-000100")).string() + " (2 B)?");
  CHECK(names_in(run.folder).size() == 3);
  CHECK(answer(true).value() == "step-000100: removed, 2 B\n");
  CHECK(names_in(run.folder) == std::vector<std::string>{"step-000200", "step-000300"});
}

TEST_CASE("rm warns before it removes the best checkpoint", "[review][checkpoints]") {
  const Run run;
  std::string asked;
  const auto rm = [&](std::vector<std::string> checkpoints) {
    return checkpoints_rm(run.output.path, {.checkpoints = std::move(checkpoints)}, run.clock,
                          [&](const std::string& question) { return asked = question, true; });
  };
  CHECK(rm({"100", "best"}).value() ==
        "step-000100: removed, 2 B\nstep-000200: removed, 2 B; it was the best by val/loss\n");
  CHECK(asked.ends_with("/step-000200 (2 B, the best by val/loss)?"));
}

TEST_CASE("a name that there is not, and a folder that is none", "[review][checkpoints]") {
  const Run run;
  const auto unknown = checkpoints_pin(run.output.path, {.checkpoints = {"step-000301"}});
  REQUIRE_FALSE(unknown.ok());
  CHECK(unknown.failure().message == "there is no checkpoint \"step-000301\" in " + run.folder);
  CHECK(unknown.failure().hint.starts_with("did you mean step-000300?"));
  fs::create_directory(run.at("notes"));
  const auto foreign = run.rm({.checkpoints = {run.at("notes")}, .yes = true, .force = true});
  REQUIRE_FALSE(foreign.ok());
  CHECK(foreign.failure().message == run.at("notes") + " is not a checkpoint: it has no manifest.json");
}

}  // namespace
}  // namespace runner::review
