#include "runner/train/save/saver.h"

#include <torch/version.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <exception>
#include <filesystem>
#include <system_error>
#include <utility>

#include "components/tensor/random_state.h"
#include "generated/section/checkpoint.h"
#include "generated/section/init_from.h"
#include "generated/section/launch.h"
#include "runner/artifact/draft_names.h"
#include "runner/artifact/joint_save.h"
#include "runner/artifact/probe.h"
#include "runner/artifact/retention.h"
#include "runner/checkpoint/checkpoint.h"
#include "runner/checkpoint/checkpoint_prefetch.h"
#include "runner/checkpoint/snapshot.h"
#include "runner/core/build_info.h"
#include "runner/core/error.h"
#include "runner/core/log.h"
#include "runner/core/platform/files.h"
#include "runner/core/platform/machine.h"
#include "runner/core/platform/run_async.h"
#include "runner/core/text/utf8.h"
#include "runner/core/units.h"
#include "runner/distributed/process_group.h"
#include "runner/registry/registry.h"
#include "runner/train/experiment/eval_weights.h"
#include "runner/train/experiment/gradient_strategy.h"
#include "runner/train/experiment/out_of_memory.h"
#include "runner/train/experiment/weight_average.h"
#include "runner/train/save/rank_states.h"
#include "runner/train/save/save_task.h"
#include "runner/train/save/tensor_memory.h"

namespace runner::train {
namespace {

using core::Node;

constexpr int kNice = 12;  // nice value of writer threads: steps come first, but a save must finish, too
constexpr double kPacedBytesPerSecondMin = 200e6;   // slower gains nothing and loses more in a crash
constexpr std::int64_t kMetricsPatienceMs = 2'000;  // on a full disk, before the whole save is retried

std::int64_t metrics_timeout_ms(const sections::checkpoint::Config& config) {
  const bool waits = config.on_full_disk == sections::checkpoint::OnFullDisk::kWait;
  return waits ? static_cast<std::int64_t>(config.full_disk_timeout * 1000.0) : 0;
}

/// A process may wait for another that waits for room on its disk.
double joint_timeout_s(const sections::checkpoint::Config& config, double timeout_s) {
  return timeout_s + static_cast<double>(metrics_timeout_ms(config)) / 1000.0;
}

Node node_of(const std::optional<std::string>& text) { return text ? Node::string(*text) : Node::null(); }

Node mode_of(const sections::checkpoint::Config& config) {
  return config.mode ? Node::string(std::string(to_text(*config.mode))) : Node::null();
}

}  // namespace

Saver::Saver(Experiment& experiment, Stepper& stepper, core::Stateful& bad_step_policy, store::RunWriter& run,
             Console& console, const SignalWatch& signals, const core::Clock& clock)
    : experiment_(experiment),
      stepper_(stepper),
      bad_step_policy_(bad_step_policy),
      run_(run),
      console_(console),
      signals_(signals),
      clock_(clock),
      config_(*experiment.recipe.checkpoint),
      checkpoints_dir_(run.run_dir() + "/checkpoints") {
  run_.set_disk_timeout({metrics_timeout_ms(config_), [this] { return signals_.received() != nullptr; }});
}

Saver::~Saver() {
  run_.set_disk_timeout({metrics_timeout_ms(config_)});  // signals are no longer handled
  abandoned_ = true;
  if (throttle_ != nullptr) throttle_->disable();
  if (prefault_.valid()) prefault_.wait();
  if (!under_way_.valid()) return;
  try {
    under_way_.get();
  } catch (const std::exception& error) {
    core::log_warning(plain_text(error));  // the run ends for another reason, reported elsewhere
  }
}

// If hosts share the folder, the run's files exist already.
bool Saver::saves_for_its_host() const {
  std::error_code ignored;
  return config_.save_on_each_node && experiment_.local_rank == 0 && !experiment_.is_first() &&
         !std::filesystem::exists(run_.run_dir() + "/run.db", ignored);
}

void Saver::add_rank_state(const std::string& name, core::Stateful& part) {
  rank_states_.push_back(std::make_unique<RankStates>(*experiment_.ranks, part));
  add_state(name, *rank_states_.back());
}

void Saver::prepare() {
  is_joint_ = experiment_.ranks != nullptr && agree_to_save_jointly();
  writes_ = is_joint_ || experiment_.is_first() || saves_for_its_host();
  if (!writes_) return;
  first_step_ = stepper_.progress().step;
  save_throttle_.note(first_step_, clock_.monotonic_ns());
  std::int64_t bytes =
      checkpoint::estimate_bytes(*experiment_.model, EvalWeights::saved_beside(experiment_), experiment_.base.get());
  const bool saves = config_.save_steps || config_.save_best || config_.save_at_end;
  if (saves && (!is_joint_ || experiment_.is_first())) {
    try {
      core::make_folders(checkpoints_dir_).value();
      artifact::probe_folder(checkpoints_dir_, bytes);  // before hours are spent on a result that cannot be saved
    } catch (const core::RunError&) {
      run_.flush_durable();  // of a folder that was moved in this moment it says so
      throw;
    }
  }
  if (is_joint_) bytes = static_cast<std::int64_t>(static_cast<double>(bytes) * saved_share());
  async_ = config_.async_save && (config_.save_steps || config_.save_best) && copies_fit(bytes);
  // What max_memory leaves for copies is known once steps have run.
  if (!async_ || tensor_memory_is_limited() || !experiment_.device.is_cpu()) return;
  // Page faults would cost the first save more than the copy itself.
  if (memory_.reserve(bytes)) prefault_ = core::run_async([this] { memory_.prefault(); }, kNice);
}

double Saver::saved_share() const {
  std::int64_t own = 0;
  for (const components::TensorRows& one : experiment_.strategy->saved_rows()) own += one.rows.numel();
  return static_cast<double>(own) / static_cast<double>(experiment_.model->parameter_count());
}

bool Saver::agree_to_save_jointly() {
  if (!experiment_.strategy->saves_rows() || config_.save_on_each_node || !config_.sharded.value_or(true)) return false;
  distributed::ProcessGroup& ranks = *experiment_.ranks;
  const std::string mark = checkpoints_dir_ + "/.ranks";
  if (experiment_.is_first()) {
    core::make_folders(checkpoints_dir_).value();
    core::write_file_atomic(mark, "").value();
  }
  const std::string here = core::host_name() + "/";
  processes_.clear();
  for (const std::string& process : ranks.all_gather(here + std::to_string(::getpid()), "the processes that save")) {
    const std::int64_t number = std::stoll(process.substr(process.rfind('/') + 1));
    if (processes_.empty()) first_process_ = number;
    // Of another container of the same name none is seen.
    const bool is_seen = process.starts_with(here) && artifact::is_process_alive(number);
    processes_.push_back(is_seen ? number : 0);
  }
  std::error_code ignored;
  const std::vector<std::string> found =
      ranks.all_gather(std::filesystem::exists(mark, ignored) ? "1" : "", "the folder of the checkpoints");
  if (experiment_.is_first()) std::filesystem::remove(mark, ignored);
  const auto missing = std::find(found.begin(), found.end(), "");
  if (missing == found.end()) return true;
  const std::string who = "process " + std::to_string(missing - found.begin()) + " does not see " + checkpoints_dir_;
  if (config_.sharded) {
    throw core::RunError(who + ", where process 0 saves: checkpoint.sharded needs a folder that all share",
                         "name one as output_dir, or remove checkpoint.sharded: process 0 then writes everything",
                         core::kExitUsage);
  }
  core::log_info(who + ": process 0 gathers and writes the checkpoints");
  return false;
}

bool Saver::copies_fit(std::int64_t bytes) const {
  const std::int64_t free = core::free_memory();
  // On the CPU gradients and optimizer state are not allocated yet and take about as much again.
  const std::int64_t room = experiment_.device.is_cpu() ? free / 2 : free;
  if (bytes <= room) return true;
  core::log_info("a checkpoint of " + core::format_bytes(bytes) + " is too large to be copied in " +
                 core::format_bytes(free) + " of free memory: saves are synchronous");
  return false;
}

bool Saver::due(const Progress& before, const Progress& now) const {
  return config_.save_steps && train::due(*config_.save_steps, before, now, experiment_.total_steps);
}

bool Saver::note_best(const std::map<std::string, double>& metrics, std::int64_t step) {
  note_change();  // what was saved at this step lacks the evaluation
  if (!config_.monitor) return false;
  const auto found = metrics.find(*config_.monitor);
  if (found == metrics.end() || !std::isfinite(found->second)) return false;
  const double value = found->second;
  const bool smaller_is_better = config_.mode != sections::checkpoint::Mode::kMax;
  // The earlier of equal ones comes first.
  const auto place = std::find_if(bests_.begin(), bests_.end(), [&](const Best& best) {
    return smaller_is_better ? value < best.value : value > best.value;
  });
  const auto count = static_cast<std::size_t>(config_.keep_best.value_or(1));
  if (place == bests_.end() && bests_.size() >= count) return false;
  bests_.insert(place, {value, step});
  bests_.resize(std::min(bests_.size(), count));
  return true;
}

Node Saver::counters() const {
  Node node = stepper_.state();
  Node best = Node::mapping();
  if (!bests_.empty()) {
    best.set("value", Node::floating(bests_.front().value));
    best.set("step", Node::integer(bests_.front().step));
    best.set("monitor", Node::string(*config_.monitor));
    best.set("mode", mode_of(config_));
  }
  Node others = Node::sequence();
  for (std::size_t i = 1; i < bests_.size(); ++i) {
    Node other = Node::mapping();
    other.set("value", Node::floating(bests_[i].value));
    other.set("step", Node::integer(bests_[i].step));
    others.items().push_back(std::move(other));
  }
  if (!others.items().empty()) best.set("others", std::move(others));
  node.set("best", std::move(best));
  return node;
}

checkpoint::TrainState Saver::train_state() const {
  checkpoint::TrainState state;
  state.rank = experiment_.rank();
  state.model = experiment_.model.get();
  state.base = experiment_.base;
  state.base_elsewhere = experiment_.recipe.init_from->path.value_or("");
  state.device = experiment_.device;
  state.stateful.emplace_back("optimizer", &experiment_.strategy->state_of(*experiment_.optimizer));
  state.stateful.emplace_back("weight_average", &experiment_.strategy->state_of(*experiment_.weight_average));
  state.stateful.emplace_back("lr_scheduler", experiment_.scheduler.get());
  state.stateful.emplace_back("faults", &bad_step_policy_);
  state.stateful.emplace_back("loss", experiment_.loss.get());
  state.stateful.emplace_back("data.train", experiment_.train_data.get());
  for (const NamedDataset& set : experiment_.eval_data) state.stateful.emplace_back("data." + set.name, set.data.get());
  for (const auto& block : experiment_.model->blocks()) {
    state.stateful.emplace_back("blocks." + block->name(), block.get());
  }
  // By type, not by position: adding or removing one must not give its state to its neighbour.
  std::map<std::string, int> seen;
  for (const BuiltCallback& one : experiment_.callbacks) {
    const int number = ++seen[one.type];
    state.stateful.emplace_back("callbacks." + one.type + (number > 1 ? "." + std::to_string(number) : ""),
                                one.callback.get());
  }
  state.stateful.insert(state.stateful.end(), more_state_.begin(), more_state_.end());
  state.counters = counters();
  return state;
}

void Saver::save(const std::map<std::string, double>& eval_metrics, When when) {
  if (saved_step_ == stepper_.progress().step) return;
  // Evaluation and export of the checkpoint know no optimizer.
  std::optional<EvalWeights> eval_weights;
  // The only state that differs between ranks.
  if (experiment_.ranks != nullptr) {
    for (const auto& states : rank_states_) states->gather("states of the ranks");
    if (!is_joint_) {
      random_states_ =
          experiment_.ranks->all_gather(components::RandomState::now(experiment_.device).bytes(), "random states");
      if (experiment_.strategy->saves_rows()) eval_weights.emplace(experiment_);
      experiment_.strategy->gather_state();
    }
  }
  if (!writes_) {
    saved_step_ = stepper_.progress().step;
    return;
  }
  const std::int64_t begin_ns = clock_.monotonic_ns();
  const bool waits = under_way_.valid() && under_way_.wait_for(std::chrono::seconds(0)) != std::future_status::ready;
  core::log_debug("saving step " + std::to_string(stepper_.progress().step));
  if (waits) save_throttle_.note_wait();
  save_throttle_.note(stepper_.progress().step, begin_ns);
  finish();
  // A short wait is no reason to change anything.
  constexpr double kSlowSeconds = 2;
  const double waited_s = static_cast<double>(clock_.monotonic_ns() - begin_ns) * 1e-9;
  if (waits && waited_s >= kSlowSeconds && !told_to_wait_ && !was_full_ && when == When::kBetweenSteps) {
    told_to_wait_ = true;
    console_.line("step " + std::to_string(stepper_.progress().step) + " waited " + core::format_duration(waited_s) +
                  " for the previous save: this disk is too slow for the save interval");
  }
  // Before the first step it is unknown what max_memory leaves for a copy.
  const bool known = !tensor_memory_is_limited() || stepper_.progress().step > first_step_;
  const bool copy = async_ && known && when == When::kBetweenSteps;
  if (!eval_weights) eval_weights.emplace(experiment_, EvalWeights::Have::kRows);
  const bool removed = (!is_joint_ || experiment_.is_first()) && earlier_ones_are_gone();
  auto task = snapshot_state(eval_metrics, copy && !removed);
  saved_step_ = task->step();
  start(std::move(task), {"", saved_step_, stepper_.progress().epoch, eval_metrics}, begin_ns,
        copy && !removed && async_);
  if (!removed) return;
  finish();
  throw core::RunError(checkpoints_dir_ + " was moved or removed during the run, with the checkpoints in it",
                       "step " + std::to_string(saved_step_) + " was saved there; `roux resume " + run_.run_dir() +
                           "` continues from it");
}

/// Whether the folder of the checkpoints was removed. A new one is there then. One checkpoint alone that is gone
/// is only reported: that may have been wanted.
bool Saver::earlier_ones_are_gone() {
  std::error_code ignored;
  const bool own = last_checkpoint_.starts_with(checkpoints_dir_ + "/");
  if (!own || std::filesystem::exists(last_checkpoint_, ignored)) return false;
  if (std::filesystem::exists(checkpoints_dir_, ignored)) {
    core::log_warning("the checkpoint " + last_checkpoint_ + " was moved or removed during the run");
    return false;
  }
  // Without its folder the run cannot be saved at all, which its database says.
  if (!std::filesystem::exists(run_.run_dir(), ignored)) return false;
  core::make_folders(checkpoints_dir_).value();
  return true;
}

std::unique_ptr<SaveTask> Saver::snapshot_state(const std::map<std::string, double>& eval_metrics, bool copy) {
  checkpoint::SaveOptions options;
  options.checkpoints_dir = checkpoints_dir_;
  options.fields.step = stepper_.progress().step;
  options.fields.branch = run_.branch();
  options.fields.trained_s = stepper_.progress().seconds;
  options.fields.run_id = run_.run_id();
  options.fields.recipe_hash = experiment_.recipe.hash();
  options.fields.model_sizes = experiment_.model->sizes_of_data();
  options.fields.program = Node::mapping();
  options.fields.program.set("roux", Node::string(core::program_version()));
  options.fields.program.set("source", Node::string(core::source_hash()));
  options.fields.program.set("libtorch", Node::string(TORCH_VERSION));
  checkpoint::TrainState state = train_state();
  state.random_states = random_states_;
  if (experiment_.ranks != nullptr) options.fields.world_size = experiment_.ranks->size();
  options.fields.data_position = *state.counters.find("data_position");
  Node values = Node::mapping();
  for (const auto& [name, value] : eval_metrics) values.set(name, Node::floating(value));
  options.fields.metrics = std::move(values);
  // Rows of later steps may be on disk by then; the checkpoint's end here.
  options.metrics_committed = [this, row = run_.last_row()] {
    run_.flush_durable(kMetricsPatienceMs);
    return row;
  };
  options.now_ms = clock_.wall_ms();
  options.shard_bytes_max = config_.max_shard_size;
  options.direct_io = config_.direct_io;

  artifact::RetentionPolicy retention;
  retention.run_id = run_.run_id();
  retention.save_total_limit = static_cast<int>(config_.save_total_limit.value_or(0));
  retention.keep_bytes = config_.keep_bytes.value_or(0);
  retention.keep_age_s = config_.keep_age.value_or(0);
  retention.trained_s = stepper_.progress().seconds;
  retention.keep_every = config_.keep_every.value_or(0);
  for (const Best& best : bests_) {
    if (config_.save_best) retention.best_steps.push_back(best.step);
  }
  retention.best_only = config_.keep_best && !config_.save_steps;

  FullDiskPolicy full_disk;
  full_disk.wait = config_.on_full_disk == sections::checkpoint::OnFullDisk::kWait;
  full_disk.timeout_s = config_.full_disk_timeout;
  full_disk.give_up = [this] { return abandoned_ || signals_.received() != nullptr; };

  if (is_joint_) {
    state.share = {experiment_.rank(), experiment_.strategy->saved_rows()};
    options.joint = std::make_shared<const artifact::JointSave>(artifact::JointSave{
        experiment_.rank(), experiment_.ranks->size(), ++joint_saves_, first_process_,
        joint_timeout_s(config_, experiment_.recipe.launch->timeout), [this] { return abandoned_.load(); },
        [this](int process) {
          const std::int64_t number = processes_[static_cast<std::size_t>(process)];
          return number != 0 && !artifact::is_process_alive(number);
        }});
  }
  checkpoint::Snapshot snapshot(state, config_.max_shard_size);
  if (copy && !copy_state(snapshot)) {
    drop_copies();
    console_.line("no memory for a copy of the state: saves are synchronous");
  }
  if (copy && async_) options.throttle = make_throttle(snapshot.bytes());
  return std::make_unique<SaveTask>(std::move(snapshot), std::move(options), std::move(retention), std::move(full_disk),
                                    run_, clock_);
}

bool Saver::copy_state(checkpoint::Snapshot& snapshot) {
  if (!snapshot.borrows()) return true;
  const std::int64_t bytes = snapshot.bytes();
  if (bytes > counted_bytes_) {
    if (!reserve_extra_memory(bytes - counted_bytes_)) return false;
    counted_bytes_ = bytes;
  }
  if (prefault_.valid() && bytes > memory_.size()) prefault_.wait();  // it is about to change
  return snapshot.copy_to(memory_);
}

bool Saver::switch_to_sync_saves() {
  if (!async_ || memory_.size() == 0) return false;
  finish();
  drop_copies();
  console_.line("out of memory: released the async-save buffers; saves are now synchronous");
  return true;
}

void Saver::drop_copies() {
  if (prefault_.valid()) prefault_.wait();
  memory_.release();
  release_extra_memory(std::exchange(counted_bytes_, 0));
  async_ = false;
}

/// Null when there is no time to spare.
std::shared_ptr<artifact::Throttle> Saver::make_throttle(std::int64_t bytes) const {
  const std::int64_t work = 2 * bytes;  // bytes written, then read back
  const double seconds =
      std::min(save_throttle_.seconds_for_save(), static_cast<double>(work) / kPacedBytesPerSecondMin);
  if (seconds <= 0) return nullptr;
  return std::make_shared<artifact::Throttle>(artifact::Throttle::Plan{work, seconds}, clock_);
}

/// The loop continues as soon as the state is no longer needed: when it is copied, or when it is written. A thread
/// verifies, commits and rotates either way.
void Saver::start(std::unique_ptr<SaveTask> task, components::callback::SavedCheckpoint checkpoint,
                  std::int64_t begin_ns, bool copied) {
  throttle_ = task->throttle();
  if (!copied) task->write();
  const double stall_seconds = seconds_since(begin_ns);
  under_way_ = core::run_async(
      [this, begin_ns, stall_seconds, copied, task = std::move(task), checkpoint = std::move(checkpoint)] {
        if (copied) task->write();
        Saved saved{checkpoint, 0, stall_seconds, 0, false};
        saved.checkpoint.path = task->commit();
        saved.waited_for_room = task->waited_for_room();
        saved.seconds = seconds_since(begin_ns);
        if (task->throttle() != nullptr) saved.paused_seconds = task->throttle()->paused_seconds();
        record(*task, saved);
        return saved;
      },
      kNice);
}

void Saver::record(const SaveTask& task, const Saved& saved) {
  Node data = Node::mapping();
  data.set("path", Node::string(saved.checkpoint.path));
  data.set("bytes", Node::integer(task.bytes()));
  data.set("seconds", Node::floating(saved.seconds));
  data.set("stall_seconds", Node::floating(saved.stall_seconds));
  data.set("rest_seconds", Node::floating(saved.paused_seconds));
  run_.artefact("checkpoint", task.step(), saved.checkpoint.path, Node::mapping());
  run_.event("checkpoint", task.step(), std::move(data));
  core::log_debug("committed step " + std::to_string(task.step()));
}

void Saver::note(const Saved& saved) {
  was_full_ = saved.waited_for_room;
  const std::string& path = saved.checkpoint.path;
  if (path.empty()) return;
  last_checkpoint_ = path;
  // The pauses of two writers add up: only half of them can safely be subtracted.
  longest_save_s_ = std::max(longest_save_s_, saved.seconds - saved.paused_seconds / 2);
  console_.line("saved " + core::escape_for_terminal(path) + " in " + core::format_duration(saved.seconds) +
                ", training paused for " + core::format_duration(saved.stall_seconds));
  if (tell_save_) tell_save_(saved.checkpoint);
}

void Saver::poll() {
  if (!under_way_.valid() || under_way_.wait_for(std::chrono::seconds(0)) != std::future_status::ready) return;
  note(under_way_.get());
}

void Saver::finish() {
  if (throttle_ != nullptr) throttle_->disable();
  if (under_way_.valid()) note(under_way_.get());
}

double Saver::seconds_to_end() const { return under_way_.valid() ? 2 * longest_save_s_ : longest_save_s_; }

double Saver::seconds_since(std::int64_t begin_ns) const {
  return static_cast<double>(clock_.monotonic_ns() - begin_ns) * 1e-9;
}

void Saver::restore(const std::string& checkpoint, const Found& found) {
  finish();
  const std::int64_t begin_ns = clock_.monotonic_ns();
  checkpoint::TrainState state = train_state();
  experiment_.weight_average->reset();  // a checkpoint from before the section existed has none
  state.loaded_rows = experiment_.strategy->rows_to_load();
  state.access = weight_access(experiment_);
  if (state.loaded_rows.empty()) experiment_.strategy->before_weights_loaded();
  const Node counters = checkpoint::load(checkpoint, state, found.prefetched);
  experiment_.base = state.base;
  EvalWeights::restore_trained(experiment_);
  stepper_.restore(counters);
  saved_step_ = stepper_.progress().step;
  last_checkpoint_ = checkpoint;
  bests_.clear();  // a rollback leaves a branch that may have had one
  // The best by another metric means nothing for this one.
  const auto same = [&](const char* recorded, const Node& present) {
    const Node* before = counters.at_path(recorded);
    return before != nullptr && before->same_value(present);
  };
  if (const Node* value = counters.at_path("best.value");
      value != nullptr && same("best.monitor", node_of(config_.monitor)) && same("best.mode", mode_of(config_))) {
    bests_.push_back({value->as_double(), counters.at_path("best.step")->as_integer()});
    const Node* others = counters.at_path("best.others");
    const auto count = static_cast<std::size_t>(config_.keep_best.value_or(1));
    for (std::size_t i = 0; others != nullptr && i < others->items().size() && bests_.size() < count; ++i) {
      const Node& other = others->items()[i];
      bests_.push_back({other.find("value")->as_double(), other.find("step")->as_integer()});
    }
  }
  Node data = Node::mapping();
  data.set("path", Node::string(checkpoint));
  data.set("seconds", Node::floating(found.verify_seconds + seconds_since(begin_ns)));
  if (found.prefetched != nullptr) {
    data.set("read_seconds", Node::floating(found.prefetched->seconds()));  // beside the building of model and data
    found.prefetched->release();
  }
  run_.event("restore", saved_step_, std::move(data));
}

}  // namespace runner::train
