// A save is stopped at each of its calls to the disk, by the death of the process, by the loss of power or by an error.
// Whatever happens, the newest checkpoint that verifies is the one before or the new one, and never one less than
// before can be restored.

#include <catch2/catch.hpp>

#include <filesystem>
#include <functional>
#include <optional>
#include <random>

#include "runner/artifact/retention.h"
#include "tests/support/disk/faulty_io.h"
#include "tests/support/temp_dir.h"

namespace {

namespace fs = std::filesystem;

using runner::artifact::CheckpointInfo;
using runner::artifact::CheckpointWriter;
using runner::artifact::Io;
using runner::artifact::ManifestFields;
using runner::artifact::TensorBytes;
using tests::Crash;
using tests::FaultyIo;
using tests::TempDir;
using Fault = FaultyIo::Fault;

/// Weights that tell which save they are from.
std::vector<float> weights_of(std::int64_t step, std::int64_t branch) {
  return std::vector<float>(1000, static_cast<float>(1000 * branch + step));
}

runner::core::Result<std::string> save(const std::string& dir, std::int64_t step, std::int64_t branch, Io& io) {
  auto draft = CheckpointWriter::begin(dir, step, 1 << 16, io);
  if (!draft) return draft.failure();
  const std::vector<float> weights = weights_of(step, branch);
  const TensorBytes tensor{"w", "F32", {1000}, weights.data(), 4000};
  if (auto added = draft.value()->add_safetensors("model.safetensors", {tensor}, {}); !added) return added.failure();
  if (auto added = draft.value()->add_text("trainer.json", "{}"); !added) return added.failure();
  ManifestFields fields;
  fields.branch = branch;
  return draft.value()->commit(
      fields, [] { return std::int64_t{7}; }, 1);
}

/// All that verify hold what their save wrote; how many there are.
int restorable(const std::string& dir) {
  int count = 0;
  for (const CheckpointInfo& info : runner::artifact::list_checkpoints(dir)) {
    if (!runner::artifact::verify_checkpoint(info.path)) continue;
    const auto file = runner::artifact::SafetensorsReader::open(info.path + "/model.safetensors");
    const float first = *static_cast<const float*>(file.value()->find("w")->data);
    CHECK(first == weights_of(info.step, info.manifest.fields.branch)[0]);
    ++count;
  }
  return count;
}

std::pair<std::int64_t, std::int64_t> newest(const std::string& dir) {
  std::vector<std::string> skipped;
  const auto found = runner::artifact::newest_verified(dir, skipped);
  return found ? std::pair(found->step, found->manifest.fields.branch) : std::pair<std::int64_t, std::int64_t>(-1, -1);
}

int hidden_entries(const std::string& dir) {
  int count = 0;
  for (const auto& entry : fs::directory_iterator(dir)) count += entry.path().filename().string().front() == '.';
  return count;
}

struct Scenario {
  const char* name;
  std::int64_t step, branch;  ///< what is saved over steps 100 and 200 of branch 0
  bool can_exchange;
};

constexpr Scenario kScenarios[] = {
    {"a new step", 300, 0, true},
    {"the newest step again, after a resume", 200, 1, true},
    {"the newest step again where folders cannot be swapped", 200, 1, false},
};

/// Runs one save and the rotation after it on a disk that strikes at `call`; false once there is no such call.
bool run_one(const Scenario& scenario, Fault fault, int call, std::optional<int> entries_lost) {
  const TempDir dir(TempDir::On::kMemory), stash(TempDir::On::kMemory), other_stash(TempDir::On::kMemory);
  FaultyIo sound(other_stash.path(), Fault::kNone, 0);
  save(dir.path(), 100, 0, sound).value();
  save(dir.path(), 200, 0, sound).value();
  FaultyIo io(stash.path(), fault, call);
  io.can_exchange = scenario.can_exchange;
  bool committed = false;
  try {
    committed = save(dir.path(), scenario.step, scenario.branch, io).ok();
    runner::artifact::rotate(dir.path(), {.save_total_limit = 2}, io);
  } catch (const Crash&) {
  }
  const unsigned seed = static_cast<unsigned>(1000 * call + entries_lost.value_or(0));
  std::mt19937 random(seed);
  if (entries_lost) io.lose_power(random, *entries_lost);

  CAPTURE(scenario.name, call, seed, entries_lost.value_or(-1), committed);
  const std::pair<std::int64_t, std::int64_t> before(200, 0), after(scenario.step, scenario.branch);
  const auto found = newest(dir.path());
  CHECK((found == after || (!committed && found == before)));
  CHECK(restorable(dir.path()) >= 2);

  // The next save finds its way and tidies up.
  save(dir.path(), 400, 1, sound).value();
  CHECK(newest(dir.path()) == std::pair<std::int64_t, std::int64_t>(400, 1));
  CHECK(hidden_entries(dir.path()) == 0);
  return io.injected();
}

TEST_CASE("a process that dies at any call to the disk loses no checkpoint", "[sim][artifact]") {
  for (const Scenario& scenario : kScenarios) {
    for (const Fault fault : {Fault::kCrashBefore, Fault::kCrashAfter}) {
      int call = 1;
      while (run_one(scenario, fault, call, std::nullopt)) ++call;
      CHECK(call > 20);
    }
  }
}

TEST_CASE("a machine that loses power at any call to the disk loses no checkpoint", "[sim][artifact]") {
  for (const Scenario& scenario : kScenarios) {
    for (int entries_lost = 0; entries_lost <= 8; ++entries_lost) {
      int call = 1;
      while (run_one(scenario, Fault::kCrashAfter, call, entries_lost)) ++call;
    }
  }
}

TEST_CASE("a disk that refuses any call leaves the old or the new checkpoint and no draft", "[sim][artifact]") {
  for (const Scenario& scenario : kScenarios) {
    int call = 1;
    while (run_one(scenario, Fault::kDiskError, call, std::nullopt)) ++call;
    CHECK(call > 20);
  }
}

}  // namespace
