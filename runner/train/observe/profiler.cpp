#include "runner/train/observe/profiler.h"

#include <ATen/SequenceNumber.h>
#include <ATen/record_function.h>
#include <c10/util/Logging.h>
#include <kineto/ActivityType.h>
#include <torch/csrc/autograd/profiler_kineto.h>

#include <algorithm>
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

#include "components/tensor/device.h"
#include "generated/section/profiler.h"
#include "runner/core/log.h"
#include "runner/core/platform/files.h"
#include "runner/distributed/process_group.h"
#include "runner/store/profile/profile.h"
#include "runner/train/experiment/training_device.h"
#include "runner/train/observe/key_averages.h"
#include "runner/train/observe/profile_schedule.h"

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

/// A range that may end in another function than the one that began it.
class Range {
 public:
  explicit Range(const std::string& name) : function_(at::RecordScope::USER_SCOPE) {
    if (function_.isActive()) function_.before(name);
  }

 private:
  at::RecordFunction function_;
};

/// Kineto says on standard error that it found no GPU, and LibTorch that a tensor from before the window was freed. A
/// level set by the user stays.
void silence() {
  setenv("KINETO_LOG_LEVEL", "5", 0);
  if (std::getenv("TORCH_CPP_LOG_LEVEL") == nullptr) FLAGS_caffe2_log_level = 2;
}

/// The recorded steps of a cycle.
struct AccumulationWindow {
  std::int64_t first_step = 0, steps = 0;
  std::int64_t samples_before = 0;
};

std::string shapes_text(const kineto::KinetoEvent& event) {
  std::string text = "[";
  for (const std::vector<std::int64_t>& shape : event.shapes()) {
    text += text.size() > 1 ? ", [" : "[";
    for (std::size_t i = 0; i < shape.size(); ++i) text += (i > 0 ? ", " : "") + std::to_string(shape[i]);
    text += "]";
  }
  return text + "]";
}

/// What Kineto shows of a range among the kernels.
bool is_range_of_gpu(const kineto::KinetoEvent& event) {
  return event.activityType() == static_cast<std::uint8_t>(libkineto::ActivityType::GPU_USER_ANNOTATION);
}

struct TracedParts {
  bool shapes = false, gpu = false;
};

std::vector<TracedEvent> traced(const kineto::ProfilerResult& result, TracedParts with) {
  std::vector<TracedEvent> events;
  events.reserve(result.events().size());
  for (const kineto::KinetoEvent& event : result.events()) {
    if (event.isHiddenEvent() || is_range_of_gpu(event)) continue;
    TracedEvent one;
    one.on_gpu = event.deviceType() != c10::DeviceType::CPU;
    if (one.on_gpu && !with.gpu) continue;
    one.name = event.name();
    one.start_ns = static_cast<std::int64_t>(event.startNs());
    one.end_ns = static_cast<std::int64_t>(event.endNs());
    one.thread = event.startThreadId();
    one.end_thread = event.endThreadId();
    one.is_range = !one.on_gpu && event.scope() == static_cast<std::uint8_t>(at::RecordScope::USER_SCOPE);
    if (with.shapes && !one.on_gpu) one.shapes = shapes_text(event);
    one.flops = static_cast<std::int64_t>(event.flops());
    one.sequence = event.sequenceNr();
    one.bytes = event.nBytes();
    one.id = event.correlationId();
    one.started_by = event.linkedCorrelationId();
    events.push_back(std::move(one));
  }
  return events;
}

}  // namespace

class Profiler::Recorder {
 public:
  Recorder(Experiment& experiment, ProfilerOptions options, const core::Clock& clock)
      : experiment_(experiment),
        config_(*experiment.recipe.profiler),
        options_(std::move(options)),
        clock_(clock),
        schedule_{config_.schedule.skip_first, config_.schedule.wait, config_.schedule.warmup, config_.schedule.active,
                  config_.schedule.repeat} {
    silence();
    if (wants_gpu() && !experiment_.device.is_cuda()) {
      core::log_warning("kernels are not profiled: the device is " + components::to_text(experiment_.device) +
                        ", and CUPTI supports NVIDIA GPUs only");
    }
    for (const auto& block : experiment_.model->blocks()) names_.push_back(block->name());
    experiment_.model->add_hooks({
        .before_forward =
            [this](const components::block::Block& block, components::TensorMap&) {
              if (recording_) enter(block);
            },
        .after_forward =
            [this](const components::block::Block&, components::TensorMap&) {
              if (!open_.empty()) leave();
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

  void advance(const Progress& progress) {
    close_ranges();
    const ProfileAction action = schedule_.action(count_++);
    if (last_ == ProfileAction::kSave) stop_and_write(progress);
    if (action == ProfileAction::kWarmup && last_ != ProfileAction::kWarmup) prepare();
    if (action == ProfileAction::kRecord || action == ProfileAction::kSave) {
      if (!recording_) start(progress);
      ++window_.steps;
      step_ = std::make_unique<Range>("ProfilerStep#" + std::to_string(progress.step));
    }
    last_ = action;
  }

  void finish(const Progress& progress) {
    close_ranges();
    if (recording_) stop_and_write(progress);
    if (!started_) {
      core::log_warning("no profile was written: its first step would have been number " +
                        std::to_string(schedule_.skip_first + schedule_.wait + schedule_.warmup + 1) +
                        " since the start of this process, which made " + std::to_string(count_));
    }
    // Only a start and a stop undo the preparation.
    if (prepared_) {
      start(progress);
      recording_ = false;
      kineto::disableProfiler();
    }
    last_ = ProfileAction::kNone;
  }

 private:
  /// The forward pass of a block in progress.
  struct Open {
    std::unique_ptr<Range> range;
    BlockPass pass;
  };

  void enter(const components::block::Block& block) {
    const auto found = std::find(names_.begin(), names_.end(), block.name());
    const auto number = static_cast<std::int64_t>(at::sequence_number::peek());
    open_.push_back(
        {std::make_unique<Range>(block.name()), {static_cast<std::size_t>(found - names_.begin()), number, number}});
  }

  void leave() {
    open_.back().pass.end = static_cast<std::int64_t>(at::sequence_number::peek());
    if (config_.with_modules) passes_.push_back(open_.back().pass);
    open_.pop_back();
  }

  // FLOPs are computed from shapes; torch.profiler also records shapes then.
  bool sees_shapes() const { return config_.record_shapes || config_.with_flops; }

  ProfilerConfig kineto_config() const {
    return ProfilerConfig(ProfilerState::KINETO, sees_shapes(), config_.profile_memory, config_.with_stack,
                          config_.with_flops, config_.with_modules, {}, trace_id_);
  }

  bool wants_gpu() const {
    const auto& wanted = *config_.activities;
    return std::find(wanted.begin(), wanted.end(), sections::profiler::Activities::kCuda) != wanted.end();
  }
  bool records_kernels() const { return wants_gpu() && experiment_.device.is_cuda(); }

  std::set<ActivityType> activities() const {
    std::set<ActivityType> recorded = {ActivityType::CPU};
    if (records_kernels()) recorded.insert(ActivityType::CUDA);
    return recorded;
  }

  void prepare() {
    char id[33];
    std::snprintf(id, sizeof id, "%016llX%016llX", static_cast<unsigned long long>(clock_.wall_ms()),
                  static_cast<unsigned long long>(clock_.monotonic_ns()));
    trace_id_ = id;
    kineto::prepareProfiler(kineto_config(), activities());
    prepared_ = true;
  }

  void start(const Progress& progress) {
    if (!prepared_) prepare();
    kineto::enableProfiler(kineto_config(), activities());
    prepared_ = false;
    recording_ = started_ = true;
    window_ = {progress.step, 0, progress.samples};
    passes_.clear();
    // The same text that torch.profiler writes into a trace.
    const auto note = [](bool given, const char* name) {
      if (given) kineto::addMetadataJson(name, "1");
    };
    note(config_.profile_memory, "profile_memory");
    note(config_.with_stack, "with_stack");
    note(config_.record_shapes, "record_shapes");
    note(config_.with_modules, "with_modules");
    note(config_.with_flops, "with_flops");
  }

  /// A profile must not fail the training: a failed write is a warning.
  void stop_and_write(const Progress& progress) {
    try {
      if (records_kernels()) components::synchronize(experiment_.device);  // else it lacks kernels that are under way
      recording_ = false;
      const auto result = kineto::disableProfiler();
      write(*result, progress);
    } catch (const std::exception& error) {
      core::log_warning(std::string("no profile was written: ") + error.what());
    }
  }

  void write(kineto::ProfilerResult& result, const Progress& progress) {
    const std::string folder = config_.output_trace_dir.value_or(options_.folder);
    core::make_folders(folder).value();
    const std::string stem =
        folder + "/rank-" + std::to_string(experiment_.rank()) + "." + std::to_string(clock_.wall_ms() * 1'000'000);
    const std::string trace = stem + ".pt.trace.json";
    result.save(trace);
    std::error_code missing;
    if (!std::filesystem::exists(trace, missing)) {
      core::log_warning("the profile's trace could not be written to " + trace);
      return;
    }
    const std::string summary = stem + ".key_averages.json";
    write_summary(result, progress, stem, std::filesystem::path(trace).filename().string());
    if (options_.written) options_.written({trace, summary, window_.first_step, window_.steps, progress.step});
  }

  void write_summary(const kineto::ProfilerResult& result, const Progress& progress, const std::string& stem,
                     const std::string& trace) {
    const std::vector<TracedEvent> events = traced(result, {.shapes = sees_shapes(), .gpu = wants_gpu()});
    KeyAverages averages = key_averages(events);
    store::Profile profile;
    profile.trace = trace;
    profile.with_shapes = sees_shapes();
    profile.with_memory = config_.profile_memory;
    profile.with_flops = config_.with_flops;
    profile.with_cuda = std::any_of(events.begin(), events.end(), [](const TracedEvent& one) { return one.on_gpu; });
    const std::int64_t ranks = experiment_.ranks != nullptr ? experiment_.ranks->size() : 1;
    const std::int64_t samples = std::max<std::int64_t>(0, progress.samples - window_.samples_before) / ranks;
    profile.model_flops = options_.flops_per_sample * static_cast<double>(samples);
    profile.peak_flops = options_.peak_flops;
    if (options_.peak_flops > 0) profile.peak_of = product_format(experiment_.recipe, experiment_.device);
    profile.rows = std::move(averages.rows);
    profile.steps = std::move(averages.steps);
    profile.memory = std::move(averages.memory);
    if (config_.with_modules) profile.blocks = block_averages(events, names_, passes_);
    profile.table = {std::string(to_text(config_.sort_by)), config_.row_limit, config_.group_by_input_shape};
    core::write_file_atomic(stem + ".key_averages.json", core::to_json(store::to_node(profile), -1) + "\n").value();
    core::write_file_atomic(stem + ".key_averages.txt", store::profile_text(profile, profile.table)).value();
    if (records_kernels() && profile.total_cuda_us() == 0.0 && !std::exchange(told_of_none_, true)) {
      core::log_warning(
          "the profile holds no kernels: CUPTI recorded none; another profiler may be using it, and "
          "KINETO_LOG_LEVEL=1 shows its messages");
    }
    if (config_.with_stack) core::write_file_atomic(stem + ".stacks.txt", averages.stacks).value();
  }

  // An exception leaves unfinished blocks; ranges end in reverse order.
  void close_ranges() {
    while (!open_.empty()) open_.pop_back();
    step_.reset();
  }

  Experiment& experiment_;
  const sections::profiler::Config& config_;
  const ProfilerOptions options_;
  const core::Clock& clock_;
  const ProfileSchedule schedule_;
  std::int64_t count_ = 0;
  ProfileAction last_ = ProfileAction::kNone;
  bool prepared_ = false, recording_ = false, started_ = false;
  bool told_of_none_ = false;  // that there were no kernels
  std::string trace_id_;
  AccumulationWindow window_;
  std::unique_ptr<Range> step_;
  std::vector<std::string> names_;  // of the model's blocks
  std::vector<Open> open_;          // a recomputed block nests in the backward pass
  std::vector<BlockPass> passes_;   // of the cycle
};

Profiler::Profiler(Experiment& experiment, ProfilerOptions options, const core::Clock& clock) {
  if (!experiment.recipe.profiler->activities) return;
  recorder_ = std::make_unique<Recorder>(experiment, std::move(options), clock);
}

Profiler::~Profiler() = default;

void Profiler::advance(const Progress& progress) { recorder_->advance(progress); }

void Profiler::finish(const Progress& progress) {
  if (recorder_ != nullptr) recorder_->finish(progress);
}

}  // namespace runner::train
