#include "runner/train/profiler.h"

#include <ATen/record_function.h>
#include <c10/util/Logging.h>
#include <torch/csrc/autograd/profiler_kineto.h>

#include <cstdio>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <memory>
#include <set>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "generated/section/profiler.h"
#include "runner/core/log.h"
#include "runner/train/profile_schedule.h"

// From torch/csrc/profiler/kineto_shim.h, which wants Kineto's own headers and their folder for it.
namespace torch::autograd::profiler {
void addMetadataJson(const std::string& key, const std::string& value);
}

C10_DECLARE_int(caffe2_log_level);

namespace runner::train {
namespace {

namespace kineto = torch::autograd::profiler;
using torch::profiler::impl::ActivityType;
using torch::profiler::impl::ProfilerConfig;
using torch::profiler::impl::ProfilerState;

/// A range that may end in another function than it began in.
class Range {
 public:
  explicit Range(const std::string& name) : function_(at::RecordScope::USER_SCOPE) {
    if (function_.isActive()) function_.before(name);
  }

 private:
  at::RecordFunction function_;
};

/// Kineto says on standard error that it found no GPU, and LibTorch that a tensor from before the window was freed. A
/// level that the user has chosen stays.
void silence() {
  setenv("KINETO_LOG_LEVEL", "5", 0);
  if (std::getenv("TORCH_CPP_LOG_LEVEL") == nullptr) FLAGS_caffe2_log_level = 2;
}

/// A cycle's steps that were recorded.
struct Window {
  std::int64_t first_step = 0, steps = 0;
};

}  // namespace

class Profiler::Recorder {
 public:
  Recorder(Experiment& experiment, store::RunWriter& run, sections::profiler::Config config, double peak_flops,
           const core::Clock& clock)
      : experiment_(experiment),
        run_(run),
        config_(std::move(config)),
        peak_flops_(peak_flops),
        clock_(clock),
        schedule_{config_.schedule.skip_first, config_.schedule.wait, config_.schedule.warmup, config_.schedule.active,
                  config_.schedule.repeat} {
    silence();
    experiment_.model->add_hooks({
        .before_forward =
            [this](const components::model::Block& block, components::TensorMap&) {
              if (recording_) blocks_.push_back(std::make_unique<Range>(block.name()));
            },
        .after_forward =
            [this](const components::model::Block&, components::TensorMap&) {
              if (!blocks_.empty()) blocks_.pop_back();
            },
    });
  }

  ~Recorder() {
    close_ranges();
    try {
      if (recording_) kineto::disableProfiler();
    } catch (const std::exception& error) {
      core::log_warning(std::string("the profiler could not be stopped: ") + error.what());
    }
  }

  void advance(std::int64_t step) {
    close_ranges();
    const ProfileAction action = schedule_.action(count_++);
    if (last_ == ProfileAction::kSave) stop_and_write(step);
    if (action == ProfileAction::kWarmup && last_ != ProfileAction::kWarmup) prepare();
    if (action == ProfileAction::kRecord || action == ProfileAction::kSave) {
      if (!recording_) start(step);
      ++window_.steps;
      step_ = std::make_unique<Range>("ProfilerStep#" + std::to_string(step));
    }
    last_ = action;
  }

  void finish() {
    close_ranges();
    if (recording_) stop_and_write(window_.first_step + window_.steps);
    // What was prepared can only be taken back by a start and a stop.
    if (prepared_) {
      start(window_.first_step);
      kineto::disableProfiler();
      recording_ = false;
    }
    last_ = ProfileAction::kNone;
  }

 private:
  ProfilerConfig kineto_config() const {
    return ProfilerConfig(ProfilerState::KINETO, config_.record_shapes, config_.profile_memory, config_.with_stack,
                          config_.with_flops, config_.with_modules, {}, trace_id_);
  }

  static std::set<ActivityType> activities() { return {ActivityType::CPU}; }

  void prepare() {
    char id[33];
    std::snprintf(id, sizeof id, "%016llX%016llX", static_cast<unsigned long long>(clock_.wall_ms()),
                  static_cast<unsigned long long>(clock_.monotonic_ns()));
    trace_id_ = id;
    kineto::prepareProfiler(kineto_config(), activities());
    prepared_ = true;
  }

  void start(std::int64_t step) {
    if (!prepared_) prepare();
    kineto::enableProfiler(kineto_config(), activities());
    prepared_ = false;
    recording_ = true;
    window_ = {step, 0};
    // The same words that torch.profiler leaves in a trace.
    const auto note = [](bool given, const char* name) {
      if (given) kineto::addMetadataJson(name, "1");
    };
    note(config_.profile_memory, "profile_memory");
    note(config_.with_stack, "with_stack");
    note(config_.record_shapes, "record_shapes");
    note(config_.with_modules, "with_modules");
    note(config_.with_flops, "with_flops");
  }

  /// A profile is worth less than the training it looks at: what cannot be written is a warning.
  void stop_and_write(std::int64_t step) {
    recording_ = false;
    try {
      const auto result = kineto::disableProfiler();
      write(*result, step);
    } catch (const std::exception& error) {
      core::log_warning(std::string("no profile was written: ") + error.what());
    }
  }

  void write(kineto::ProfilerResult& result, std::int64_t step) {
    const std::string folder = config_.output_trace_dir.value_or(run_.run_dir() + "/profile");
    std::filesystem::create_directories(folder);
    const std::string stem = folder + "/rank-0." + std::to_string(clock_.wall_ms() * 1'000'000);
    const std::string trace = stem + ".pt.trace.json";
    result.save(trace);
    std::error_code missing;
    if (!std::filesystem::exists(trace, missing)) {
      core::log_warning("the profile's trace could not be written to " + trace);
      return;
    }
    core::Node data = core::Node::mapping();
    data.set("first_step", core::Node::integer(window_.first_step));
    data.set("steps", core::Node::integer(window_.steps));
    data.set("trace", core::Node::string(trace));
    run_.event("profile", step, std::move(data));
    core::log_info("profile of " + std::to_string(window_.steps) + " steps: " + trace);
  }

  // An exception leaves blocks that never ended; ranges end in the reverse order of their beginning.
  void close_ranges() {
    while (!blocks_.empty()) blocks_.pop_back();
    step_.reset();
  }

  Experiment& experiment_;
  store::RunWriter& run_;
  const sections::profiler::Config config_;
  const double peak_flops_;
  const core::Clock& clock_;
  const ProfileSchedule schedule_;
  std::int64_t count_ = 0;
  ProfileAction last_ = ProfileAction::kNone;
  bool prepared_ = false, recording_ = false;
  std::string trace_id_;
  Window window_;
  std::unique_ptr<Range> step_;
  std::vector<std::unique_ptr<Range>> blocks_;  // a block that is run again in the backward pass nests
};

Profiler::Profiler(Experiment& experiment, store::RunWriter& run, double peak_flops, const core::Clock& clock) {
  auto config = sections::profiler::parse_config(*experiment.recipe.find("profiler"));
  if (config.activities) {
    recorder_ = std::make_unique<Recorder>(experiment, run, std::move(config), peak_flops, clock);
  }
}

Profiler::~Profiler() = default;

void Profiler::advance(std::int64_t step) { recorder_->advance(step); }

void Profiler::finish() {
  if (recorder_ != nullptr) recorder_->finish();
}

}  // namespace runner::train
