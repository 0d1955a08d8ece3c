#include "runner/artifact/retention.h"

#include <catch2/catch.hpp>

#include <filesystem>
#include <fstream>

#include "runner/artifact/io/io.h"
#include "tests/support/checkpoints.h"
#include "tests/support/temp_dir.h"

namespace runner::artifact {
namespace {

namespace fs = std::filesystem;
using tests::names_in;
using tests::save_checkpoint;
using tests::TempDir;

void overwrite(const std::string& path, const std::string& text) {
  std::ofstream(path, std::ios::binary | std::ios::trunc) << text;
}

constexpr const char* kAll[] = {"step-000100", "step-000200", "step-000300", "step-000400", "step-000500"};

TEST_CASE("rotation keeps what the policy says", "[artifact]") {
  struct Case {
    const char* name;
    RetentionPolicy policy;
    std::int64_t pinned;
    std::vector<std::string> left;
  };
  // Each holds 10 bytes and was saved after as many seconds of training as its step.
  const Case cases[] = {
      {"no limit", {}, 0, {std::begin(kAll), std::end(kAll)}},
      {"the newest", {.save_total_limit = 1}, 0, {"step-000500"}},
      {"the newest two", {.save_total_limit = 2}, 0, {"step-000400", "step-000500"}},
      {"the best counts", {.save_total_limit = 2, .best_steps = {200}}, 0, {"step-000200", "step-000500"}},
      {"the best stays even when one is too many",
       {.save_total_limit = 1, .best_steps = {200}},
       0,
       {"step-000200", "step-000500"}},
      {"pinned ones do not count", {.save_total_limit = 2}, 100, {"step-000100", "step-000400", "step-000500"}},
      {"every 200th stays and does not count",
       {.save_total_limit = 2, .keep_every = 200},
       0,
       {"step-000200", "step-000300", "step-000400", "step-000500"}},
      {"more than there are", {.save_total_limit = 9}, 0, {std::begin(kAll), std::end(kAll)}},
      {"as many as fit", {.keep_bytes = 35}, 0, {"step-000300", "step-000400", "step-000500"}},
      {"the newest stays when none fits", {.keep_bytes = 5}, 0, {"step-000500"}},
      {"the best takes its room", {.keep_bytes = 25, .best_steps = {100}}, 0, {"step-000100", "step-000500"}},
      {"pinned ones take no room", {.keep_bytes = 10}, 100, {"step-000100", "step-000500"}},
      {"age", {.keep_age_s = 200, .trained_s = 500}, 0, {"step-000300", "step-000400", "step-000500"}},
      {"the newest has no age", {.keep_age_s = 1, .trained_s = 9e9}, 0, {"step-000500"}},
      {"the two best stay beside the newest",
       {.save_total_limit = 2, .best_steps = {100, 300}},
       0,
       {"step-000100", "step-000300", "step-000500"}},
      {"only the best and the newest", {.best_steps = {300}, .best_only = true}, 0, {"step-000300", "step-000500"}},
      {"the best has no age",
       {.keep_age_s = 1, .trained_s = 500, .best_steps = {300}},
       0,
       {"step-000300", "step-000500"}},
      {"what was saved later than now is not old",
       {.keep_age_s = 50, .trained_s = 0},
       0,
       {std::begin(kAll), std::end(kAll)}},
      {"the strictest limit counts",
       {.save_total_limit = 4, .keep_bytes = 25, .keep_age_s = 300, .trained_s = 500},
       0,
       {"step-000400", "step-000500"}},
  };
  for (const Case& c : cases) {
    DYNAMIC_SECTION(c.name) {
      const TempDir dir(TempDir::On::kMemory);
      for (const std::int64_t step : {300, 100, 500, 200, 400}) {
        save_checkpoint(dir.path(), {.step = step, .trained_s = static_cast<double>(step)}, "ten bytes.");
      }
      if (c.pinned > 0) pin(dir / ("step-000" + std::to_string(c.pinned))).value();
      rotate(dir.path(), c.policy);
      CHECK(names_in(dir.path()) == c.left);
    }
  }
}

TEST_CASE("rotation touches only whole checkpoints of the run", "[artifact]") {
  const TempDir dir(TempDir::On::kMemory);
  fs::create_directories(dir / "step-000001/mine");
  fs::create_directory(dir / "notes");
  overwrite(dir / "notes/manifest.json", "{\"name\": \"an extension\"}");
  overwrite(dir / "step-000002", "a file");
  for (const std::int64_t step : {100, 110, 120, 130, 140, 200}) {
    save_checkpoint(dir.path(), {.step = step, .run_id = step == 140 ? "other" : "mine"});
  }
  fs::remove(dir / "step-000110/trainer.json");
  overwrite(dir / "step-000120/manifest.json", "{");
  overwrite(dir / "step-000130/thesis.txt", "the only copy");
  fs::create_directory_symlink("step-000100", dir / "latest");
  CHECK(rotate(dir.path(), {.run_id = "mine", .save_total_limit = 1}) == std::vector<std::string>{dir / "step-000100"});
  CHECK(names_in(dir.path()) == std::vector<std::string>{"latest", "notes", "step-000001", "step-000002", "step-000110",
                                                         "step-000120", "step-000130", "step-000140", "step-000200"});
}

TEST_CASE("nothing is removed when none of those that stay verifies", "[artifact]") {
  const TempDir dir(TempDir::On::kMemory);
  for (const std::int64_t step : {100, 200, 300}) save_checkpoint(dir.path(), {.step = step}, "ten bytes.");
  overwrite(dir / "step-000300/trainer.json", "ten Bytes.");
  CHECK(rotate(dir.path(), {.save_total_limit = 1}).empty());
  CHECK(rotate(dir.path(), {.save_total_limit = 2}) == std::vector<std::string>{dir / "step-000100"});
}

TEST_CASE("a checkpoint pinned while it is being removed is restored", "[artifact]") {
  /// A user pins a checkpoint between rotation's look at it and its rename.
  class Racing final : public Io {
   public:
    void rename(const std::string& from, const std::string& to) override {
      if (!raced_) pin(from).value();
      raced_ = true;
      Io::rename(from, to);
    }

   private:
    bool raced_ = false;
  } io;
  const TempDir dir(TempDir::On::kMemory);
  for (const std::int64_t step : {100, 200}) save_checkpoint(dir.path(), {.step = step});
  CHECK(rotate(dir.path(), {.save_total_limit = 1}, io).empty());
  CHECK(names_in(dir.path()) == std::vector<std::string>{"step-000100", "step-000200"});
  CHECK(verify_checkpoint(dir / "step-000100").ok());
}

TEST_CASE("a pin is made once and taken away", "[artifact]") {
  const TempDir dir(TempDir::On::kMemory);
  const std::string path = save_checkpoint(dir.path(), {.step = 100});
  pin(path).value();
  pin(path).value();
  CHECK(is_pinned(path));
  CHECK(verify_checkpoint(path).ok());
  unpin(path).value();
  unpin(path).value();
  CHECK_FALSE(is_pinned(path));
  const auto gone = pin(dir / "step-000999");
  REQUIRE_FALSE(gone.ok());
  CHECK(gone.failure().message == "cannot create " + (dir / "step-000999/pinned") + ": no such file or directory");
}

}  // namespace
}  // namespace runner::artifact
