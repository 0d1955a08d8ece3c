#include "runner/artifact/checkpoint_name.h"

#include <catch2/catch.hpp>

#include <filesystem>
#include <fstream>

#include "tests/support/temp_dir.h"

namespace runner::artifact {
namespace {

using tests::TempDir;

void save(const std::string& folder, std::int64_t step, double loss) {
  const auto draft = CheckpointWriter::begin(folder, step, 0).value();
  draft->add_text("trainer.json", "{}").value();
  ManifestFields fields;
  fields.step = step;
  fields.metrics = core::Node::mapping();
  fields.metrics.set("val/loss", core::Node::floating(loss));
  draft->commit(std::move(fields), nullptr, step).value();
}

struct Run {
  TempDir dir;
  std::string folder = dir / "tiny-1a2b/checkpoints";
  std::vector<std::string> skipped;

  Run() {
    std::filesystem::create_directories(folder);
    for (const auto& [step, loss] : {std::pair(100, 2.0), std::pair(200, 1.0), std::pair(300, 1.5)}) {
      save(folder, step, loss);
    }
  }
  core::Result<std::string> find(const std::string& text, const std::string& monitor = "val/loss") {
    const auto find_run = [&](const std::string& name) -> core::Result<RunCheckpoints> {
      if (name == "tiny" || name == dir / "tiny-1a2b") return RunCheckpoints{folder, "", monitor, true};
      return core::Failure{"no run in runs is called \"" + name + "\"", "did you mean \"tiny\"?"};
    };
    return find_checkpoint(text, find_run, skipped);
  }
};

TEST_CASE("a checkpoint goes by its path, its run, or its name in the run", "[artifact][checkpoint_name]") {
  Run run;
  CHECK(run.find(run.folder + "/step-000100").value() == run.folder + "/step-000100");
  CHECK(run.find("tiny:step-000100").value() == run.folder + "/step-000100");
  CHECK(run.find("tiny:100").value() == run.folder + "/step-000100");
  CHECK(run.find("tiny:best").value() == run.folder + "/step-000200");
  CHECK(run.find("tiny:last").value() == run.folder + "/step-000300");
  CHECK(run.find("tiny").value() == run.folder + "/step-000300");
  CHECK(run.find(run.dir / "tiny-1a2b").value() == run.folder + "/step-000300");
  CHECK(run.find((run.dir / "tiny-1a2b") + ":best").value() == run.folder + "/step-000200");
}

TEST_CASE("the last one is the newest that verifies, and what was passed over is said", "[artifact][checkpoint_name]") {
  Run run;
  std::ofstream(run.folder + "/step-000300/trainer.json", std::ios::trunc) << "x}";
  CHECK(run.find("tiny").value() == run.folder + "/step-000200");
  REQUIRE(run.skipped.size() == 1);
}

TEST_CASE("a name that is none is refused with those there are", "[artifact][checkpoint_name]") {
  Run run;
  struct Case {
    std::string text, monitor, message, hint;
  };
  const Case cases[] = {
      {"tiny:step-00200", "val/loss", "there is no checkpoint \"step-00200\" in " + run.folder,
       "did you mean step-000200? there are step-000100, step-000200, step-000300; last and best are names too"},
      {"tiny:best", "", "there is no best checkpoint in " + run.folder + ": the run's recipe has no checkpoint.monitor",
       "use the last one, or name one by its step"},
      {"tiny:best", "val/accuracy",
       "no checkpoint in " + run.folder + " was saved with val/accuracy, so there is no best one",
       "use the last one, or name one by its step"},
      {"tony:best", "", "no run in runs is called \"tony\"", "did you mean \"tiny\"?"},
      {"runs/gone", "", "file not found: runs/gone",
       "give a checkpoint folder, or RUN:best, RUN:last, RUN:step-000500"},
  };
  for (const Case& c : cases) {
    CAPTURE(c.text);
    const auto found = run.find(c.text, c.monitor);
    REQUIRE_FALSE(found.ok());
    CHECK(found.failure().message == c.message);
    CHECK(found.failure().hint == c.hint);
    CHECK(found.failure().exit_code == core::kExitUsage);
  }
}

TEST_CASE("of equal ones the first is the best, and the last one is the run's own", "[artifact][checkpoint_name]") {
  Run run;
  save(run.folder, 400, 1.0);
  CHECK(run.find("tiny:best").value() == run.folder + "/step-000200");
  const RunCheckpoints other{run.folder, "another-run", "val/loss", true};
  CHECK_FALSE(find_checkpoint(other, "last", run.skipped).ok());
  CHECK(run.skipped.size() == 4);
}

}  // namespace
}  // namespace runner::artifact
