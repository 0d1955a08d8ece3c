// What a training does to its run's folder, without a training: metrics, a save, a rotation, through the real store and
// the real artifacts. Tests run it under a tracer that counts, kills and refuses; the window that they look at is
// bracketed. The steps and values are always the same.
//
//   save_and_rotate OUTPUT_DIR new STEPS     makes a run: metrics, and a save after each 10 steps
//   save_and_rotate OUTPUT_DIR go-on STEPS   resumes from the newest checkpoint in the same way
//   save_and_rotate OUTPUT_DIR again STEPS   resumes from the oldest one, so that the newer ones are saved over
//   save_and_rotate ... shared               the same where run.db keeps a rollback journal (journal_mode=DELETE)
//
// The last save is the window; with `new 10`, everything from the making of the run on.

#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "runner/artifact/retention.h"
#include "runner/core/error.h"
#include "runner/store/run_reader.h"
#include "runner/store/run_writer.h"
#include "tests/support/disk/tracer.h"

namespace {
bool on_shared_file_system = false;
}

/// In the place of the C library's, for the store too: the folder of the run may pass for one of NFS.
extern "C" int statfs(const char* path, struct statfs* info) noexcept {
  const auto status = static_cast<int>(::syscall(SYS_statfs, path, info));
  if (on_shared_file_system) info->f_type = 0x6969;
  return status;
}

namespace {

namespace artifact = runner::artifact;
namespace store = runner::store;

/// The heartbeat of a lease, which comes every ten seconds, would be a call more in one run and not in the next.
class StillClock final : public runner::core::Clock {
 public:
  std::int64_t wall_ms() const override { return 1'800'000'000'000; }
  std::int64_t monotonic_ns() const override { return 1; }
};

void mark(const char* name) { (void)::access(name, F_OK); }

class Training {
 public:
  Training(const std::string& output_dir, const std::string& how) {
    if (how == "new") {
      begin(output_dir);
    } else {
      go_on(output_dir, how == "again");
    }
    settle();  // else its first commit has the series in it in one run, and not in the next
    loss_ = run_->metric("loss");
  }

  void train(std::int64_t until) {
    while (step_ < until) {
      const store::MetricValue value{loss_, 1.0 / static_cast<double>(++step_)};
      run_->log(step_, {&value, 1});
    }
  }

  /// Waits until the store's thread is idle: what it did for earlier steps belongs to no later save.
  void settle() { run_->flush_durable(); }

  /// As the loop does it. Once more when the disk refused: what strikes in these tests strikes once.
  void save() {
    try {
      save_once();
    } catch (const runner::core::RunError& error) {
      std::printf("save refused: %s\n", error.what());
      save_once();
    }
  }

  std::int64_t step() const { return step_; }
  void finish() { run_->finish(store::RunStatus::kFinished, "max_steps"); }

 private:
  void begin(const std::string& output_dir) {
    store::NewRun run;
    run.output_dir = output_dir;
    run.run_name = "sim";
    run.recipe_hash = "0123456789abcdef";
    run.resolved_json = "{}";
    run.recipe_files = {{"recipe.yaml", "run_name: sim\n"}};
    run.command_line = {"save_and_rotate"};
    run_ = store::RunWriter::create(run, clock_).value();
  }

  void go_on(const std::string& output_dir, bool from_oldest) {
    const store::RunSummary run = store::find_run(output_dir, "last", clock_).value();
    const std::string folder = run.run_dir + "/checkpoints";
    std::vector<std::string> skipped;
    std::optional<artifact::CheckpointInfo> from = artifact::newest_verified(folder, skipped, run.id);
    if (from_oldest) from = artifact::list_checkpoints(folder).at(0);
    store::ResumePoint point{run.run_dir};
    if (from) {
      point.step = from->step;
      point.branch = from->manifest.fields.branch;
    }
    for (const std::string& line : skipped) std::printf("skipped %s\n", line.c_str());
    step_ = point.step;
    run_ = store::RunWriter::resume(point, clock_).value();
  }

  void save_once() {
    const std::string folder = run_->run_dir() + "/checkpoints";
    // Larger than what one write of the draft takes at most, so that a save is more than one of them.
    const std::vector<float> weights(300'000, static_cast<float>(step_));
    const std::vector<float> bias(7, static_cast<float>(step_));
    auto draft = artifact::CheckpointWriter::begin(folder, step_, 1 << 20).value();
    draft
        ->add_safetensors(
            "model.safetensors",
            {{"weight", "F32", {300'000}, weights.data(), 1'200'000}, {"bias", "F32", {7}, bias.data(), 28}}, {})
        .value();
    draft->add_text("trainer.json", "{\"step\": " + std::to_string(step_) + "}\n").value();
    artifact::ManifestFields fields;
    fields.branch = run_->branch();
    fields.run_id = run_->run_id();
    fields.trained_s = static_cast<double>(step_);
    const std::string path = draft
                                 ->commit(
                                     fields, [this] { return run_->flush_durable(); }, clock_.wall_ms())
                                 .value();
    mark(tests::kWindowMark);  // from here on the new one counts
    run_->event("checkpoint", step_, runner::core::Node::mapping());
    artifact::rotate(folder, {.run_id = run_->run_id(), .save_total_limit = 2, .verified = path});
  }

  StillClock clock_;
  std::unique_ptr<store::RunWriter> run_;
  store::MetricId loss_ = 0;
  std::int64_t step_ = 0;
};

int run(const std::string& output_dir, const std::string& how, std::int64_t last) {
  const bool all_of_it = how == "new" && last == 10;
  if (all_of_it) mark(tests::kWindowBegin);
  Training training(output_dir, how);
  for (std::int64_t step = training.step() + 10; step <= last; step += 10) {
    if (step == last && !all_of_it) {
      training.settle();
      mark(tests::kWindowBegin);
    }
    training.train(step);
    training.save();
  }
  mark(tests::kWindowEnd);
  training.finish();
  std::printf("done\n");
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4 && argc != 5) return 2;
  on_shared_file_system = argc == 5 && std::strcmp(argv[4], "shared") == 0;
  try {
    return run(argv[1], argv[2], std::atoll(argv[3]));
  } catch (const runner::core::RunError& error) {
    std::printf("error: %s\n", error.what());
    return error.exit_code();
  }
}
