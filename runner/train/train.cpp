#include "runner/train/train.h"

#include <ATen/Context.h>
#include <ATen/Parallel.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <utility>

#include "components/ops/kernel_policy.h"
#include "components/tensor/tensors.h"
#include "generated/section/capture.h"
#include "generated/section/init_from.h"
#include "generated/section/launch.h"
#include "generated/section/precision.h"
#include "generated/section/training.h"
#include "runner/artifact/provenance/provenance.h"
#include "runner/artifact/provenance/secrets.h"
#include "runner/artifact/tensor_set.h"
#include "runner/checkpoint/adapter_weights.h"
#include "runner/checkpoint/base_weights.h"
#include "runner/checkpoint/checkpoint_prefetch.h"
#include "runner/checkpoint/init_from.h"
#include "runner/core/build_info.h"
#include "runner/core/clock.h"
#include "runner/core/deferred_log.h"
#include "runner/core/error.h"
#include "runner/core/log.h"
#include "runner/core/platform/files.h"
#include "runner/core/platform/machine.h"
#include "runner/core/text/text.h"
#include "runner/core/text/utf8.h"
#include "runner/core/units.h"
#include "runner/distributed/process_group.h"
#include "runner/resolve/consistency.h"
#include "runner/store/run_reader.h"
#include "runner/store/run_writer.h"
#include "runner/train/experiment/experiment.h"
#include "runner/train/experiment/memory/memory_limits.h"
#include "runner/train/experiment/out_of_memory.h"
#include "runner/train/experiment/precision.h"
#include "runner/train/experiment/training_device.h"
#include "runner/train/loop.h"
#include "runner/train/observe/signals.h"
#include "runner/train/placement/block_places.h"
#include "runner/train/placement/travelling_weights.h"
#include "runner/train/rank_consistency.h"
#include "runner/train/reference/reference.h"
#include "runner/train/save/provenance_recorder.h"
#include "runner/train/save/resume.h"
#include "runner/train/save/save_plan.h"
#include "runner/train/save/tensor_memory.h"
#include "runner/train/strategy/block_units.h"
#include "runner/train/strategy/make_strategy.h"

namespace runner::train {
namespace {

using core::Node;

constexpr std::int64_t kNoLimit = std::numeric_limits<std::int64_t>::max();
constexpr std::int64_t kCapsulePatience_ms = 30'000;  ///< for data still being read when training is over

/// `resolved`: the recipe as stored.
std::unique_ptr<store::RunWriter> open_run(const resolve::Recipe& recipe, const std::string& resolved,
                                           const Start& start, const TrainRequest& request, const core::Clock& clock) {
  if (start.resume) {
    auto run = store::RunWriter::resume(*start.resume, clock);
    if (!run) {
      const core::Failure& failure = run.failure();
      const bool is_full = failure.exit_code == core::kExitResumable;
      throw core::RunError(failure.message, failure.hint, is_full ? failure.exit_code : core::kExitUsage);
    }
    // What this branch resumes with, for the next resume to compare with.
    const std::string folder = store::branch_folder(start.resume->run_dir, run.value()->branch());
    core::make_folders(folder).value();
    core::write_file_atomic(folder + "/resolved.json", resolved).value();
    return std::move(run).value();
  }
  store::NewRun fresh;
  fresh.output_dir = recipe.output_dir;
  fresh.run_name = recipe.run_name;
  fresh.smoke = request.smoke;
  fresh.id = request.run_id;
  fresh.light = request.light;
  fresh.recipe_hash = recipe.hash();
  fresh.resolved_json = resolved;
  fresh.command_line = request.command_line;
  for (std::size_t i = 0; i < recipe.sources.size(); ++i) {
    const auto name = std::filesystem::path(recipe.sources[i]->name);
    fresh.recipe_files.emplace_back(
        i == 0 ? "recipe" + name.extension().string() : "recipe/" + std::to_string(i) + "-" + name.filename().string(),
        recipe.sources[i]->text);
  }
  return store::RunWriter::create(fresh, clock).value();
}

/// `init_from`: how the weights of another model fill this one. Nothing without an `init_from` in the recipe.
std::optional<checkpoint::InitWeights> init_weights(const resolve::Recipe& recipe,
                                                    const components::model::Model& model,
                                                    core::Diagnostics& diagnostics) {
  return checkpoint::plan_init_from(*recipe.init_from, recipe.at("init_from"), recipe.root, model, recipe.output_dir,
                                    diagnostics);
}

/// Adapters that begin as a folder of PEFT has them.
void load_adapters(const Experiment& experiment) {
  const resolve::Recipe& recipe = experiment.recipe;
  checkpoint::load_adapters(recipe.adapters, experiment.adapters, *experiment.model, recipe.model,
                            weight_access(experiment));
}

void record_changes(store::RunWriter& run, const Start& start) {
  if (start.differences.empty()) return;
  Node data = Node::mapping();
  data.set("checkpoint", Node::string(start.checkpoint));
  Node changes = Node::sequence();
  for (const Difference& difference : start.differences) {
    Node change = Node::mapping();
    change.set("key", Node::string(difference.key));
    change.set("before", Node::string(difference.before));
    change.set("after", Node::string(difference.after));
    change.set("effect", Node::string(std::string(to_text(difference.effect))));
    changes.items().push_back(std::move(change));
  }
  data.set("changes", std::move(changes));
  run.event("changes", start.resume ? start.resume->step : 0, std::move(data));
}

/// The requested variables, and those that affect the arithmetic. The recipe names the variables of its secrets.
std::map<std::string, std::string> environment_of(const resolve::Recipe& recipe, const std::string& resolved) {
  std::map<std::string, std::string> variables = artifact::arithmetic_environment();
  variables.merge(artifact::chosen_environment(recipe.capture->environment));
  for (auto& [name, value] : variables) {
    if (resolved.find("${env:" + name) != std::string::npos) value = artifact::kHiddenValue;
  }
  return variables;
}

/// `init`: the weights that the run starts with, if loaded.
artifact::Provenance provenance_of(const resolve::Recipe& recipe, const std::string& resolved,
                                   const Experiment& experiment, const TrainRequest& request,
                                   const checkpoint::InitWeights* init) {
  const ArithmeticEnvironment environment = current_environment();
  artifact::Provenance provenance;
  provenance.version = core::program_version();
  provenance.source = core::source_hash();
  provenance.libtorch = environment.libtorch;
  provenance.cpu_capability = environment.cpu_capability;
  provenance.threads = environment.threads;
  provenance.total_steps = experiment.total_steps;
  provenance.build = core::program_build();
  provenance.environment = environment_of(recipe, resolved);
  std::error_code ignored;
  provenance.folder = std::filesystem::current_path(ignored).string();
  provenance.recipe = recipe.path;
  provenance.command_line = request.command_line;
  provenance.labels = experiment.class_names;
  const auto add = [&provenance](const std::string& set, const components::data::Dataset& data) {
    for (const std::string& path : data.files()) provenance.data.push_back({set, path, 0, 0, ""});
  };
  add("train", *experiment.train_data);
  for (const NamedDataset& set : experiment.eval_data) add(set.name, *set.data);
  if (init != nullptr) {
    const std::vector<std::string> files = artifact::files_of_set(init->source).value();
    for (const std::string& path : files) provenance.data.push_back({artifact::kInitFromSet, path, 0, 0, ""});
  }
  return provenance;
}

double figure(const Node& summary, const char* name) {
  const Node* value = summary.find(name);
  return value != nullptr && value->is_number() ? value->as_double() : std::nan("");
}

void print_figure(const std::string& name, double value) {
  if (std::isnan(value)) {
    std::printf("  %-18s nan\n", name.c_str());  // without its sign, which means nothing
  } else if (std::fabs(value) < 1e9) {
    std::printf("  %-18s %.4f\n", name.c_str(), value);
  } else {
    std::printf("  %-18s %.4g\n", name.c_str(), value);  // it ran away: its digits say nothing
  }
}

/// Steps that were skipped, and what followed for a schedule that counts the others.
void print_left_out_steps(const Experiment& experiment, const LoopResult& result) {
  const auto count = [&](const char* name) {
    const Node* value = result.summary.find(name);
    return value != nullptr && value->is_integer() ? value->as_integer() : 0;
  };
  const std::int64_t overflows = count("overflows"), others = count("skipped_steps"), step = count("step");
  if (overflows > 0) {
    std::printf("  %-18s %s, as gradients overflowed float16\n", "skipped",
                core::counted(overflows, "step", "steps").c_str());
  }
  if (others > 0) {
    std::printf("  %-18s %s, as faults.on_nan says\n", "skipped", core::counted(others, "step", "steps").c_str());
  }
  if (overflows + others == 0 || is_resumable(result.ending) || experiment.total_steps <= step) return;
  std::printf("  %-18s at step %lld of %lld, learning rate %.4g\n", "schedule", static_cast<long long>(step),
              static_cast<long long>(experiment.total_steps), figure(result.summary, "lr"));
}

/// A training that took no step is not finished: its model is as random as before.
void refuse_no_step(const LoopResult& result) {
  const Node *step = result.summary.find("step"), *overflows = result.summary.find("overflows"),
             *skipped = result.summary.find("skipped_steps");
  if (is_resumable(result.ending) || step == nullptr || step->as_integer() > 0) return;
  if (overflows != nullptr) {
    throw core::RunError("no step was taken: gradients overflowed float16 in all " +
                             core::counted(overflows->as_integer(), "step", "steps"),
                         "lower precision.scaler.init_scale, or train longer: each overflow lowers the loss scale");
  }
  if (skipped != nullptr) {
    throw core::RunError(
        "no step was taken: all " + core::counted(skipped->as_integer(), "step", "steps") + " were skipped",
        "lower the learning rate, or look at the data: faults.on_nan skipped what was not finite");
  }
}

void print_summary(const Experiment& experiment, const store::RunWriter& run, const LoopResult& result) {
  const Node& summary = result.summary;
  std::printf("\n%s: %s, ", core::escape_for_terminal(result.reason).c_str(),
              core::counted(summary.find("step")->as_integer(), "step", "steps").c_str());
  if (!experiment.train_data->is_stream()) std::printf("%.2f epochs, ", figure(summary, "epoch"));
  std::printf("%s (%.4g steps/s)\n", core::format_duration(figure(summary, "train_seconds")).c_str(),
              figure(summary, "steps_per_s"));
  if (const Node* loss = summary.find("loss"); loss != nullptr && loss->is_number()) {
    print_figure("loss", loss->as_double());
  }
  for (const auto& set : experiment.eval_data) {
    for (const auto& entry : summary.entries()) {
      if (!entry.key.starts_with(set.name + "/")) continue;
      print_figure(entry.key, entry.value.as_double());
      const Node* best = summary.find("best_" + entry.key);
      if (best == nullptr) continue;
      std::printf("  %-18s %.4f  (step %lld)\n", ("best " + entry.key).c_str(), best->as_double(),
                  static_cast<long long>(figure(summary, "best_step")));
    }
    const double loss = figure(summary, (set.name + "/loss").c_str());
    const double entropy = set.data->unigram_entropy();
    if (std::isfinite(entropy) && std::isfinite(loss)) {
      std::printf("  %-18s %.4f  (%s/loss is %.2f of it)\n", "unigram entropy", entropy,
                  core::escape_for_terminal(set.name).c_str(), loss / entropy);
    }
  }
  print_left_out_steps(experiment, result);
  std::printf("  %-18s %s\n", "run", core::escape_for_terminal(run.run_dir()).c_str());
  if (!result.last_checkpoint.empty())
    std::printf("  %-18s %s\n", "checkpoint", core::escape_for_terminal(result.last_checkpoint).c_str());
  std::printf("  %-18s roux runs show %s\n", "show it", run.run_id().c_str());
  if (is_resumable(result.ending)) {
    std::printf("  %-18s the same command, or roux resume %s\n", "resume it", run.run_id().c_str());
  }
  std::fflush(stdout);
}

void write_summary_json(const std::string& path, const store::RunWriter& run, const LoopResult& result) {
  if (path.empty()) return;
  Node node = result.summary;
  node.set("steps", *result.summary.find("step"));
  node.set("run_dir", Node::string(run.run_dir()));
  node.set("run_id", Node::string(run.run_id()));
  node.set("reason", Node::string(result.reason));
  core::write_output(path, core::to_json(node, -1) + "\n").value();
}

int finish(store::RunWriter& run, const LoopResult& result) {
  run.set_summary(result.summary);
  const bool interrupted = is_resumable(result.ending);
  const bool whole = run.finish(interrupted ? store::RunStatus::kStopped : store::RunStatus::kFinished, result.reason);
  if (!whole) run.throw_if_failed();
  return interrupted || !whole ? core::kExitResumable : core::kExitDone;
}

int train_into(Experiment& experiment, store::RunWriter& run, std::optional<ProvenanceRecorder>& recorder,
               const TrainRequest& request, const LoopRequest& loop, const core::Clock& clock) {
  const SignalWatch until_recorded;  // a signal after the last step must not keep the end of the run from being written
  try {
    if (needs_reference(experiment)) {
      const SignalWatch signals(request.signal);
      prepare_reference(experiment, {.run_dir = run.run_dir(), .checkpoint = loop.checkpoint, .signals = &signals});
    }
    const LoopResult result = run_loop(experiment, run, loop, clock);
    if (recorder) recorder->finish(is_resumable(result.ending) ? 0 : kCapsulePatience_ms);
    recorder.reset();  // its records belong before the end of the run
    refuse_no_step(result);
    if (experiment.is_first() && !is_resumable(result.ending) && request.on_trained) request.on_trained(run.run_dir());
    const int status = finish(run, result);
    if (!experiment.is_first()) return status;
    if (!request.quiet) print_summary(experiment, run, result);
    write_summary_json(request.summary_json, run, result);
    return status;
  } catch (const core::RunError& error) {
    // A checkpoint that failed to load leaves the run as resumable as before; so does a disk that stayed full. And
    // another process's failure says nothing about this run.
    const bool resumable = error.exit_code() == core::kExitResumable || error.exit_code() == core::kExitUsage;
    const bool lost = error.exit_code() == core::kExitPeerLost;
    recorder.reset();
    run.finish(lost        ? store::RunStatus::kCrashed
               : resumable ? store::RunStatus::kStopped
                           : store::RunStatus::kFailed,
               error.what());
    throw;
  } catch (const std::exception& error) {
    const core::RunError clear = as_run_error(error);
    recorder.reset();
    run.finish(store::RunStatus::kFailed, clear.what());
    throw clear;
  }
}

std::unique_ptr<Experiment> build_or_explain(const resolve::Recipe& recipe, const BuildOptions& options,
                                             core::Diagnostics& diagnostics) {
  try {
    return build_experiment(recipe, options, diagnostics);
  } catch (const std::exception& error) {
    if (!is_out_of_memory(error)) throw;
    throw core::RunError("the model and the data do not fit into memory: " + plain_text(error),
                         "use a smaller model, a larger training.max_memory, or more memory");
  }
}

/// One training, phase by phase: preview the start, build the experiment, open the run, run the loop. When a phase
/// returns false, `diagnostics` has the reason, and nothing was written.
class Training {
 public:
  Training(const resolve::Recipe& recipe, const TrainRequest& request, core::Diagnostics& diagnostics)
      : recipe_(recipe), request_(request), diagnostics_(diagnostics), resolved_(request.resolved_json) {}

  /// Runs the checks that need no data, and starts prefetching the checkpoint.
  bool look_ahead() {
    configure_torch(recipe_);
    ranks_ = join_process_group(recipe_, request_.rank, request_.auto_device);
    is_first_ = ranks_ == nullptr || ranks_->rank() == 0;
    if (!agree([&] { return preview_start(recipe_, request_, clock_, diagnostics_); })) return false;
    keep_former_values();
    if (!settle_device() || !fits_gpu() || !settle_backend()) return false;
    if (resolved_.empty()) resolved_ = recipe_.resolved_json();
    const bool on_cpu = device_of(recipe_).is_cpu();  // the program limits the memory of a GPU
    const auto max_memory = on_cpu ? recipe_.training->max_memory : std::nullopt;
    if (max_memory) limit_tensor_memory(*max_memory);
    if (is_first_ && !start_.checkpoint.empty()) {
      prefetched_ = checkpoint::CheckpointPrefetch::begin(start_.checkpoint,
                                                          std::min(max_memory.value_or(kNoLimit), core::free_memory()));
    }
    return true;
  }

  bool build() {
    BuildOptions options{.make_strategy = make_strategy, .local_rank = local_rank(), .ranks = ranks_};
    // Before weights are drawn for nothing, and before a file is written.
    options.check_model = [this](const components::model::Model& on_meta, const std::set<std::string>& replicated) {
      check_unit_blocks(recipe_, on_meta, replicated, diagnostics_);
      if (start_.checkpoint.empty()) init_ = init_weights(recipe_, on_meta, diagnostics_);
      return !diagnostics_.has_errors();
    };
    if (ranks_ != nullptr) options.kept_rows = rows_to_keep(recipe_, ranks_->rank());
    options.in_bf16 = [this](const components::model::Model& on_meta) -> std::set<std::string> {
      if (init_) return checkpoint::bf16_in_source(init_->base ? init_->base->fills() : init_->fills, on_meta);
      const auto base = start_.checkpoint.empty() ? nullptr : checkpoint::BaseWeights::of_checkpoint(start_.checkpoint);
      return base != nullptr ? checkpoint::bf16_in_source(base->fills(), on_meta) : std::set<std::string>();
    };
    experiment_ = build_or_explain(recipe_, options, diagnostics_);
    if (experiment_ == nullptr) return false;
    if (start_.checkpoint.empty()) plan_reference(*experiment_, diagnostics_);
    if (diagnostics_.has_errors()) return false;
    if (!experiment_->device.is_cpu()) experiment_->new_graph = request_.new_graph;
    // The weights are drawn: from here on each process has its own random numbers.
    if (!is_first_) at::manual_seed(static_cast<std::uint64_t>(recipe_.seed + ranks_->rank()));
    return true;
  }

  bool open() {
    // Two programs that start at the same instant must not both find nothing to resume.
    std::optional<store::StartLock> lock;
    if (is_first_) lock.emplace(recipe_.output_dir);
    const std::int64_t begin_ns = clock_.monotonic_ns();
    if (!agree(
            [&] { return choose_start(recipe_, request_, *experiment_, prefetched_.get(), clock_, diagnostics_); })) {
      return false;
    }
    verify_seconds_ = static_cast<double>(clock_.monotonic_ns() - begin_ns) * 1e-9;
    if (prefetched_ != nullptr && prefetched_->checkpoint() != start_.checkpoint) prefetched_.reset();
    if (!start_.checkpoint.empty()) {
      init_.reset();
    } else if (!init_) {
      init_ = init_weights(recipe_, *experiment_->model, diagnostics_);  // the checkpoint of the preview is gone
    }
    if (diagnostics_.has_errors()) return false;
    if (init_) {
      checkpoint::load_init_weights(*init_, *experiment_->model, weight_access(*experiment_));
      experiment_->base = checkpoint::base_of(*init_, *experiment_->model);
      if (is_first_ && experiment_->base != nullptr) experiment_->base->checksum();  // of what was read now
    }
    if (!is_placed()) return false;
    start_.checkpoint.empty() ? load_adapters(*experiment_) : check_teacher(*experiment_, start_.checkpoint);
    if (is_first_) {
      const std::string there = start_.resume ? start_.resume->run_dir + "/checkpoints" : "";
      check_room(*experiment_, there.empty() ? recipe_.output_dir : there, there, request_.smoke);
    }
    run_ = open_run_on_rank_0(ranks_.get(), [&] { return open_run(recipe_, resolved_, start_, request_, clock_); });
    return true;
  }

  int run(double cpu_peak_flops) {
    record_start();
    LoopRequest loop;
    loop.smoke = request_.smoke;
    loop.progress_bar = request_.progress_bar;
    loop.quiet = request_.quiet;
    loop.checkpoint = start_.checkpoint;
    loop.prefetched = std::move(prefetched_);
    loop.verify_seconds = verify_seconds_;
    const c10::Device device = experiment_->device;
    loop.peak_flops = device.is_cpu() ? cpu_peak_flops : peak_of_gpu(recipe_, device, request_.gpu_names);
    loop.process_age_s = request_.signal == nullptr ? core::process_age_s() : 0.0;
    loop.signal = request_.signal;
    loop.light = request_.light != nullptr;
    const auto gpu = static_cast<unsigned char>(experiment_->device.index());
    if (!experiment_->device.is_cpu() && gpu < request_.gpu_addresses.size()) loop.gpu = request_.gpu_addresses[gpu];
    return train_into(*experiment_, *run_, recorder_, request_, loop, clock_);
  }

 private:
  int local_rank() const { return request_.rank ? request_.rank->local_rank : 0; }

  /// A run that is resumed keeps what an earlier version took for keys that are unset.
  void keep_former_values() {
    if (start_.former_values.entries().empty()) return;
    recipe_.take_values(start_.former_values);
    resolved_.clear();
  }

  /// A run that is resumed stays on its device.
  bool settle_device() {
    const bool is_open = recipe_.device == "auto";
    if (is_open) {
      if (start_.device.starts_with("cuda") && request_.auto_device == "cpu") {
        throw core::RunError("the run was trained on " + start_.device + ", but only the CPU is available here",
                             "resume it where it can use a GPU, or with --set device=cpu --allow-change device",
                             core::kExitUsage);
      }
      recipe_.settle_device(start_.device.empty() ? request_.auto_device : start_.device);
      resolve::check_device(recipe_.root, diagnostics_);
      if (diagnostics_.has_errors()) return false;
      if (!device_of(recipe_).is_cpu()) configure_torch(recipe_);
    }
    prepare_device(recipe_, local_rank());
    if (is_open) resolved_.clear();
    return true;
  }

  /// Whether what travels can be read whenever it is needed, and need not be saved.
  bool is_placed() {
    if (experiment_->placement == nullptr || !experiment_->places->any_travels()) return true;
    const core::Location& at = recipe_.at("placement").location();
    std::vector<std::string> missing = experiment_->placement->unfilled(), held;
    for (const std::string& name : experiment_->places->travelling) {
      if (experiment_->base == nullptr || !experiment_->base->holds(name)) held.push_back(name);
    }
    constexpr std::size_t kShown = 3;
    if (!start_.checkpoint.empty()) return true;  // its base is known when it is loaded
    if (!missing.empty()) {
      diagnostics_.error(
          at, "placement has weights elsewhere that init_from does not give: " + core::joined_first(missing, kShown),
          "give their blocks a device with more room");
    } else if (!held.empty()) {
      diagnostics_.error(at,
                         "placement leaves weights in a file that may be removed, a checkpoint of a run: " +
                             core::joined_first(held, kShown),
                         "export it with `roux export` and name that folder in init_from");
    }
    return missing.empty() && held.empty();
  }

  bool settle_backend() {
    if (ranks_ == nullptr) return true;
    const auto backend = agree_on_backend(*ranks_, recipe_, request_, start_, diagnostics_);
    if (!backend) return false;
    if (*backend != to_text(recipe_.launch->backend)) resolved_.clear();
    recipe_.settle_backend(*backend);
    return true;
  }

  /// What a GPU cannot hold is known before anything is loaded.
  bool fits_gpu() {
    if (request_.gpu_memory_bytes == 0 || device_of(recipe_).is_cpu()) return true;
    core::Diagnostics told_by_build;
    const auto planned = build_experiment(recipe_, {.meta = true, .make_strategy = make_strategy}, told_by_build);
    if (planned != nullptr) {
      const std::int64_t of_reference = plan_reference(*planned, told_by_build).held_bytes;
      check_gpu_memory(*planned, estimate_memory(*planned, of_reference), request_.gpu_memory_bytes, diagnostics_);
    }
    return !diagnostics_.has_errors();
  }

  /// Rank 0 decides for all.
  bool agree(const std::function<Start()>& choose) {
    std::optional<Start> found = choose_start_on_rank_0(ranks_.get(), diagnostics_, choose);
    if (!found) return false;
    start_ = *std::move(found);
    return true;
  }

  /// Records in log, events and provenance how the run begins.
  void record_start() {
    if (is_first_ && request_.on_opened) request_.on_opened(run_->run_dir());
    const std::string log_file = run_->run_dir() + "/logs/rank-" + std::to_string(experiment_->rank()) + ".log";
    request_.light != nullptr ? core::defer_log_file(log_file) : core::set_log_file(log_file);
    for (const std::string& note : start_.notes) core::log_warning(note);
    for (const Difference& difference : start_.differences) {
      if (difference.effect == Effect::kHarmless) {
        core::log_info(to_text(difference) + " (harmless)");
      } else {
        core::log_warning(to_text(difference) + " (changes the results, allowed)");
      }
    }
    record_changes(*run_, start_);
    if (is_first_) {
      recorder_.emplace(provenance_of(recipe_, resolved_, *experiment_, request_, init_ ? &*init_ : nullptr), *run_,
                        start_.resume ? start_.resume->step : 0, request_.code, request_.light != nullptr);
    }
    tell_start();
    if (init_) {
      run_->event("init_from", 0, init_->to_node());
      core::log_info("initial weights: " + init_->text());
    }
    tell_frozen();
  }

  /// The last output of another process is what went wrong there.
  void tell_start() const {
    if (!is_first_) return;
    if (start_.resume) {
      core::log_info("resuming " + run_->run_dir() + " from " +
                     (start_.checkpoint.empty() ? "step 0: it has no checkpoint" : start_.checkpoint));
    } else {
      core::log_info("run " + core::escape_for_terminal(run_->run_dir()));
    }
  }

  void tell_frozen() const {
    std::int64_t trained = 0;
    for (const auto& parameter : experiment_->model->trained_parameters()) trained += parameter.tensor.numel();
    const std::int64_t all = experiment_->model->parameter_count();
    if (trained == all) return;
    if (!init_ && !start_.resume)
      core::log_warning("frozen parameters keep their random values: there is no init_from");
    core::log_info("training " + core::format_count(static_cast<double>(trained)) + " of " +
                   core::format_count(static_cast<double>(all)) + " parameters; the others are frozen");
  }

  resolve::Recipe recipe_;  ///< with its device and its backend, once they are settled
  const TrainRequest& request_;
  core::Diagnostics& diagnostics_;
  std::string resolved_;  ///< the recipe as stored
  const core::Clock& clock_ = core::system_clock();
  std::shared_ptr<distributed::ProcessGroup> ranks_;
  bool is_first_ = true;
  Start start_;
  std::shared_ptr<checkpoint::CheckpointPrefetch> prefetched_;
  double verify_seconds_ = 0;
  std::unique_ptr<Experiment> experiment_;
  std::optional<checkpoint::InitWeights> init_;
  std::unique_ptr<store::RunWriter> run_;
  std::optional<ProvenanceRecorder> recorder_;
};

}  // namespace

void configure_torch(const resolve::Recipe& recipe) {
  const auto& threads = recipe.launch->num_cpu_threads_per_process;
  if (threads) at::set_num_threads(static_cast<int>(*threads));
  set_matmul_precision(*recipe.precision);
  components::set_fused_kernels(recipe.training->fused_kernels && device_of(recipe).is_cpu());
  at::globalContext().setDeterministicAlgorithms(recipe.deterministic, false);
}

int train(const resolve::Recipe& recipe, const TrainRequest& request, double cpu_peak_flops,
          core::Diagnostics& diagnostics) {
  Training training(recipe, request, diagnostics);
  if (!training.look_ahead() || !training.build() || !training.open()) return core::kExitUsage;
  return training.run(cpu_peak_flops);
}

}  // namespace runner::train
