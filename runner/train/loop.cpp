#include "runner/train/loop.h"

#include <ATen/ops/scalar_tensor.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <map>
#include <optional>
#include <span>
#include <utility>

#include "generated/section/eval.h"
#include "generated/section/launch.h"
#include "generated/section/system_metrics.h"
#include "runner/artifact/checkpoint_dir.h"
#include "runner/core/error.h"
#include "runner/core/log.h"
#include "runner/core/text/text.h"
#include "runner/core/text/utf8.h"
#include "runner/distributed/process_group.h"
#include "runner/store/system_metrics.h"
#include "runner/train/bad_step_policy.h"
#include "runner/train/experiment/bf16_master_weights.h"
#include "runner/train/experiment/eval_weights.h"
#include "runner/train/experiment/gradient_strategy.h"
#include "runner/train/experiment/weight_average.h"
#include "runner/train/observe/console.h"
#include "runner/train/observe/evaluator.h"
#include "runner/train/observe/logged_steps.h"
#include "runner/train/observe/media.h"
#include "runner/train/observe/profiler.h"
#include "runner/train/observe/program_queue.h"
#include "runner/train/observe/signals.h"
#include "runner/train/observe/step_metrics.h"
#include "runner/train/observe/time_limit.h"
#include "runner/train/rank_consistency.h"
#include "runner/train/save/saver.h"
#include "runner/train/save/tensor_memory.h"
#include "runner/train/step/batch_norm_update.h"
#include "runner/train/step/stepper.h"

namespace runner::train {
namespace {

using components::callback::Context;
using core::Node;

class Loop final : public Context, public core::Stateful {
 public:
  Loop(Experiment& experiment, store::RunWriter& run, const LoopRequest& request, const core::Clock& clock)
      : experiment_(experiment),
        run_(run),
        request_(request),
        clock_(clock),
        eval_(*experiment.recipe.eval),
        logging_steps_(experiment.recipe.logging_steps),
        options_(stepper_options(experiment.recipe)),
        signals_(request.signal),
        // Not by the interval of the readings: what is exchanged beside the gradients may change how they are added up.
        gpu_notes_(experiment.device.is_cpu() ? 0 : store::SystemMetrics::kMessage),
        stepper_(experiment, options_, {kNotes + gpu_notes_, [this] { return notes(); }}),
        metrics_(run, experiment, request.peak_flops),
        media_(run),
        console_({request.progress_bar, request.quiet, request.smoke ? kSmokeSteps : experiment.total_steps}, clock),
        bad_step_policy_(experiment, stepper_, run, console_),
        saver_(experiment, stepper_, bad_step_policy_, run, console_, signals_, clock),
        time_limit_(*experiment.recipe.launch, request.process_age_s, clock),
        profiler_(experiment, profiler_options(), clock),
        system_metrics_(run,
                        {.interval_s = experiment.recipe.system_metrics->interval,
                         .begins_late = request.light,
                         .rank = experiment.rank(),
                         .gpu = request.gpu},
                        clock),
        programs_(run, experiment.recipe.root) {
    saver_.tell_saves([this](const components::callback::SavedCheckpoint& saved) {
      for (const BuiltCallback& one : experiment_.callbacks) one.callback->on_save(*this, saved);
    });
    saver_.add_state("loop", *this);
    if (options_.scaler.enabled) saver_.add_state("scaler", stepper_.scaler());
    if (experiment_.master_weights) saver_.add_state("rounded_weights", *experiment_.master_weights);
    for (const auto& [name, part] : stepper_.strategy().rank_states()) saver_.add_rank_state(name, *part);
    if (request_.smoke) {
      experiment_.limits.max_steps = std::min(experiment_.limits.max_steps.value_or(kSmokeSteps), kSmokeSteps);
    }
  }

  LoopResult train() {
    if (!request_.checkpoint.empty()) {
      restore();
      call_on_load();
    }
    system_metrics_.at_step(stepper_.progress().step);
    // Of rows each process has others.
    if (experiment_.ranks != nullptr && !experiment_.strategy->holds_rows_alone()) {
      check_equal_weights(*experiment_.ranks, *experiment_.model);
    }
    saver_.prepare();
    started_ns_ = clock_.monotonic_ns();
    seconds_before_ = stepper_.progress().seconds;
    first_step_ = stepper_.progress().step;
    metrics_.start_at(seconds_before_);
    if (stopped_early_) {
      finish_cut_short();
    } else if (eval_.eval_on_start && first_step_ == 0 && evaluated_step_ != 0) {
      eval_due_ = true;
      evaluate_all();
    }
    if (bad_step_policy_.may_roll_back() && saver_.last_checkpoint().empty()) save_as_planned();
    while (!ended()) {
      const Progress before = stepper_.progress();
      if (!one_step()) continue;
      while (!stepper_.strategy().weights_in_sync() && !work_is_done()) one_step();
      const Progress& now = stepper_.progress();
      call_on_step_end();
      const bool eval_due = eval_.eval_steps && due(*eval_.eval_steps, before, now, experiment_.total_steps);
      log_end();
      save_due_ = saver_.due(before, now);
      // The last evaluation comes before the last save, so that the save includes its results.
      eval_due_ = eval_due || (evaluates_at_end() && work_is_done());
      update_batch_norm();
      if (eval_due_ && !stopped_early_) evaluate_all();
      update_batch_norm();  // the evaluation may have ended the work
      saver_.poll();
      if (save_due_ && !stopped_early_) save_as_planned();
    }
    return finish();
  }

  std::int64_t step() const override { return stepper_.progress().step; }
  double epoch() const override { return stepper_.progress().epoch; }
  const double* metric(const std::string& name) const override {
    const auto found = latest_.find(name);
    return found == latest_.end() ? nullptr : &found->second;
  }
  std::map<std::string, double> eval_metrics() const override {
    std::map<std::string, double> found;
    if (evaluated_step_ != step()) return found;
    for (const auto& [name, value] : latest_) {
      if (name.find('/') != std::string::npos) found.emplace(name, value);
    }
    return found;
  }
  const components::model::Model& model() const override { return *experiment_.model; }
  const components::data::Dataset& train_data() const override { return *experiment_.train_data; }
  std::uint64_t seed() const override { return static_cast<std::uint64_t>(experiment_.recipe.seed); }
  void request_stop(const std::string& reason) override {
    if (stop_reason_.empty()) stop_reason_ = reason;
  }
  void start_program(components::callback::Program program) override {
    if (is_logging_rank()) programs_.start(std::move(program));
  }
  void log_metric(const std::string& name, double value) override {
    latest_[name] = value;
    const store::MetricValue point{run_.metric(name), value};
    run_.log(step(), {&point, 1});
  }
  void log_text(const std::string& name, const std::string& text) override {
    Node data = Node::mapping();
    data.set("name", Node::string(name));
    data.set("text", Node::string(text));
    run_.event("text", step(), std::move(data));
    if (request_.quiet) return;
    console_.line(name + " at step " + std::to_string(step()) + ":");
    std::istringstream lines(core::printable(text));
    for (std::string line; std::getline(lines, line);) console_.line(line);
  }

  void log_data(const std::string& kind, const std::string& name, Node data) override {
    data.set("name", Node::string(name));
    run_.event(kind, step(), std::move(data));
  }

  void log_table(const std::string& name, const components::callback::Table& table) override {
    if (is_logging_rank()) media_.add(step(), name, table);
  }
  void log_image(const std::string& name, const std::string& caption, const core::Canvas& image) override {
    if (is_logging_rank()) media_.add(step(), name, caption, image);
  }
  bool is_logging_rank() const override { return experiment_.is_first(); }
  std::vector<std::string> gather(const std::string& mine) override {
    return experiment_.ranks == nullptr ? std::vector{mine}
                                        : experiment_.ranks->all_gather(mine, "a callback's findings");
  }

  // Feeds callbacks and console, and handles a stop requested at the very step of a checkpoint.
  void save_state(core::StateWriter& writer) const override {
    Node latest = Node::mapping();
    for (const auto& [name, value] : latest_) latest.set(name, Node::floating(value));
    writer.value("latest", std::move(latest));
    writer.value("evaluated_step", Node::integer(evaluated_step_));
    writer.value("stop_reason", Node::string(stop_reason_));
    writer.value("updated_step", Node::integer(updated_step_));
    writer.value("cut_short", Node::boolean(stopped_early_));
    writer.value("eval_due", Node::boolean(stopped_early_ && eval_due_));
    writer.value("save_due", Node::boolean(stopped_early_ && save_due_));
  }
  void load_state(const core::StateReader& reader) override {
    latest_.clear();
    for (const auto& entry : reader.value("latest").entries()) latest_[entry.key] = entry.value.as_double();
    evaluated_step_ = reader.value("evaluated_step").as_integer();
    stop_reason_ = reader.value("stop_reason").as_string();
    stopped_early_ = reader.has("cut_short") && reader.value("cut_short").as_bool();  // younger than the others
    save_due_ = stopped_early_ && reader.value("save_due").as_bool();
    eval_due_ = stopped_early_ && (!reader.has("eval_due") || reader.value("eval_due").as_bool());
    updated_step_ = reader.has("updated_step") ? reader.value("updated_step").as_integer() : -1;
  }

 private:
  static constexpr std::int64_t kSmokeSteps = 2;
  static constexpr std::optional<std::int64_t> kSmokeBatches = 1;  ///< of a pass over a data set
  enum Note : std::size_t { kSignalNote, kTimeIsUpNote, kSecondsNote, kNotes };

  // Exit status 2: nothing happened yet, the run is as before.
  void restore() {
    try {
      saver_.restore(request_.checkpoint, {request_.prefetched.get(), request_.verify_seconds});
    } catch (const core::RunError& error) {
      if (artifact::verify_checkpoint(request_.checkpoint)) {
        throw core::RunError(error.what(), error.hint(), core::kExitUsage);
      }
      throw core::RunError(error.what(),
                           "it changed while being loaded; the same command resumes from the newest intact one",
                           core::kExitResumable);
    }
  }

  bool ended() {
    if (stopped_early_) {  // even after the last step: the evaluation is still due
      end_by_signal();
    } else if (std::string limit = experiment_.limits.reached(stepper_.progress()); !limit.empty()) {
      result_.ending = Ending::kLimit;
      result_.reason = std::move(limit);
    } else if (!stop_reason_.empty()) {
      result_.ending = Ending::kCallback;
      result_.reason = stop_reason_;
    } else if (signal() != 0) {
      end_by_signal();
    } else if (stepped_) {  // at least one step, or a limit that is too short would stop every resume
      result_.ending = Ending::kTimeLimit;
      result_.reason = experiment_.ranks == nullptr ? time_is_up() : agreed_time_is_up_;
    }
    return !result_.reason.empty();
  }

  void end_by_signal() {
    result_.ending = Ending::kSignal;
    result_.reason = SignalWatch::name_of(signal());
  }

  std::string time_is_up() const { return time_limit_.reached(seconds_to_next_look(), saver_.seconds_to_end()); }

  /// The signal in effect: the one received, or the one that the ranks agreed on.
  int signal() const { return experiment_.ranks == nullptr ? signals_.number() : agreed_signal_; }

  /// What one rank knows and all ranks must decide by: sent with every step.
  std::vector<double> notes() {
    const bool first = experiment_.is_first();  // its clock counts
    own_time_is_up_ = first && stepped_ ? time_is_up() : "";
    std::vector<double> notes(kNotes);
    notes[kSignalNote] = signals_.number();
    notes[kTimeIsUpNote] = own_time_is_up_.empty() ? 0.0 : 1.0;
    notes[kSecondsNote] = first ? seconds_trained() : 0.0;
    if (gpu_notes_ > 0) {
      const auto message = system_metrics_.gpu_message();
      notes.insert(notes.end(), message.begin(), message.end());
    }
    return notes;
  }

  void agree(const std::vector<std::vector<double>>& notes) {
    if (notes.empty()) return;
    for (const auto& rank : notes) agreed_signal_ = std::max(agreed_signal_, static_cast<int>(rank[kSignalNote]));
    if (notes.front()[kTimeIsUpNote] != 0.0) {
      agreed_time_is_up_ = own_time_is_up_.empty() ? "time_limit" : own_time_is_up_;
    }
    stepper_.progress().seconds = notes.front()[kSecondsNote];
  }

  void log_gpus_of_others(const std::vector<std::vector<double>>& notes) {
    for (std::size_t rank = 1; rank < notes.size(); ++rank) {
      system_metrics_.log_gpu(static_cast<int>(rank), std::span(notes[rank]).subspan(kNotes));
    }
  }

  /// After an evaluation that a signal interrupted on some rank.
  void agree_on_signal() {
    if (experiment_.ranks == nullptr) return;
    const at::Tensor number = at::scalar_tensor(signals_.number(), at::kLong);
    experiment_.ranks->begin_all_reduce(number, "signals", distributed::ReduceOp::kMax)->wait();
    agreed_signal_ = std::max(agreed_signal_, static_cast<int>(number.item<std::int64_t>()));
  }

  ProfilerOptions profiler_options() {
    const auto written = [this](const ProfileFiles& files) {
      for (const std::string& file : {files.trace, files.key_averages}) {
        run_.artefact("profile", files.step, file, Node::mapping());
      }
      Node data = Node::mapping();
      data.set("first_step", Node::integer(files.first_step));
      data.set("steps", Node::integer(files.steps));
      data.set("trace", Node::string(files.trace));
      data.set("key_averages", Node::string(files.key_averages));
      run_.event("profile", files.step, std::move(data));
      core::log_info("profile of " + std::to_string(files.steps) + (files.steps == 1 ? " step: " : " steps: ") +
                     files.trace + "; `roux profile show " + run_.run_id() + "` shows it");
    };
    return {run_.run_dir() + "/profile", training_flops(experiment_), request_.peak_flops, written};
  }

  double seconds_trained() const {
    return seconds_before_ + static_cast<double>(clock_.monotonic_ns() - started_ns_) * 1e-9;
  }

  bool work_is_done() const {
    return !stop_reason_.empty() || !experiment_.limits.reached(stepper_.progress()).empty();
  }
  // The final figures are those of the last step, not of the last one logged by logging_steps; logged before each save,
  // so that no resume loses them. Not for a run stopped by a signal: resumed, it would have a point that an undisturbed
  // run lacks.
  void log_end() {
    if (work_is_done() && last_ && logged_step_ != step()) log_step(*last_);
  }
  bool evaluates_at_end() const { return eval_.eval_on_end || request_.smoke; }

  /// The longest recent step, plus the longest evaluation if one is due after it.
  double seconds_to_next_look() const {
    Progress next = stepper_.progress();
    const Progress now = next;
    ++next.step;
    const bool evaluates = eval_.eval_steps && due(*eval_.eval_steps, now, next, experiment_.total_steps);
    return step_s_ + (evaluates ? longest_eval_s_ : 0.0);
  }

  /// False when the step was dropped: callbacks, evaluations and saves do not see it.
  bool one_step() {
    profiler_.next_step(stepper_.progress());
    const std::int64_t next = stepper_.progress().step + 1;
    const bool logged = is_logged(next, logging_steps_);
    const std::int64_t begin_ns = clock_.monotonic_ns();
    StepResult result;
    const BadStepPolicy::Outcome outcome = bad_step_policy_.step(logged, saver_, result);
    const std::int64_t end_ns = clock_.monotonic_ns();
    stepper_.progress().seconds = seconds_before_ + static_cast<double>(end_ns - started_ns_) * 1e-9;
    agree(result.notes);
    step_s_ = std::max(static_cast<double>(end_ns - begin_ns) * 1e-9, 0.9 * step_s_);
    stepped_ = true;
    if (outcome != BadStepPolicy::Outcome::kStepped) {
      if (outcome == BadStepPolicy::Outcome::kRolledBack) {
        forget_abandoned();
        call_on_load();
        system_metrics_.at_step(stepper_.progress().step);  // not one that the new branch has yet to reach
      }
      return false;
    }
    metrics_.count(result);
    system_metrics_.at_step(next);
    if (experiment_.is_first() && gpu_notes_ > 0) log_gpus_of_others(result.notes);
    if (next == first_step_ + 1) mark_first_step();
    if (traced_) core::log_debug("trained step " + std::to_string(next));
    if (logged) log_step(result);
    if (console_.wants_update()) show_progress(result);
    last_ = std::move(result);
    return true;
  }

  void call_on_step_end() {
    const auto acts = [this](const BuiltCallback& one) { return one.callback->acts_on_step(*this); };
    if (std::any_of(experiment_.callbacks.begin(), experiment_.callbacks.end(), acts)) {
      sync_weights();
    } else if (work_is_done()) {
      sync_rows();
    }
    for (const BuiltCallback& one : experiment_.callbacks) {
      if (acts(one)) one.callback->on_step_end(*this);
    }
  }

  void call_on_load() {
    for (const BuiltCallback& one : experiment_.callbacks) one.callback->on_load(*this, saver_.last_checkpoint());
  }

  /// Call before anything reads the weights between two steps, and before `last_` is read.
  void sync_weights() {
    read_steps();
    stepper_.strategy().sync_weights();
  }
  /// The same, where whole parameters are not needed: for a pass or a save, or at the end.
  void sync_rows() {
    read_steps();
    if (!stepper_.strategy().holds_rows_alone()) stepper_.strategy().sync_weights();
  }
  void read_steps() {
    if (last_) bad_step_policy_.read_steps(saver_, *last_);
  }

  void log_step(const StepResult& result) {
    metrics_.log(step(), result, stepper_.progress().seconds);
    latest_["loss"] = result.loss;
    latest_["lr"] = result.lr;
    if (result.grad_norm) latest_["grad_norm"] = *result.grad_norm;
    logged_step_ = step();
  }

  /// After a rollback the last step is on an abandoned branch; the figures come from the checkpoint.
  void forget_abandoned() {
    last_.reset();
    logged_step_ = -1;
  }

  // tests/bench reads this line: the clock of the first completed optimizer step.
  void mark_first_step() {
    if (std::getenv("ROUX_MARK_FIRST_STEP") == nullptr) return;
    std::printf("first_step_ns %lld\n", static_cast<long long>(clock_.monotonic_ns()));
    std::fflush(stdout);
  }

  void show_progress(const StepResult& result) {
    const Progress& now = stepper_.progress();
    const double elapsed = now.seconds - seconds_before_;
    double share = 0;
    if (experiment_.total_steps > 0) {
      share = static_cast<double>(now.step) / static_cast<double>(experiment_.total_steps);
    } else if (experiment_.limits.max_time_s) {
      share = now.seconds / *experiment_.limits.max_time_s;
    }
    const double done_here = static_cast<double>(now.step - first_step_);
    const double left_steps = static_cast<double>(experiment_.total_steps - now.step);
    const double eta = done_here <= 0                  ? std::numeric_limits<double>::infinity()
                       : experiment_.total_steps > 0   ? elapsed / done_here * left_steps
                       : experiment_.limits.max_time_s ? *experiment_.limits.max_time_s - now.seconds
                                                       : std::numeric_limits<double>::infinity();
    const double* loss = result.is_read ? &result.loss : metric("loss");
    std::string figures = loss != nullptr ? "loss " + core::short_number(*loss, 4) : "";
    for (const auto& [name, value] : latest_) {
      if (name.ends_with("/loss")) figures += "  " + name + " " + core::short_number(value, 4);
    }
    if (const std::string rate = metrics_.rate_text(); !rate.empty()) figures += "  " + rate;
    console_.update(now.step, share, eta, figures);
  }

  /// Does what was left to do at the checkpoint's step when a signal ended the run.
  void finish_cut_short() {
    stopped_early_ = false;
    update_batch_norm();
    if (eval_due_ && !stopped_early_) evaluate_all();
    if (save_due_ && !stopped_early_) save_as_planned();
  }

  /// Measures the running statistics of the averaged weights, once at the end; with `stopped_early_` nothing changed.
  void update_batch_norm() {
    const bool wanted = experiment_.weight_average->updates_bn_stats() && !experiment_.model->buffers().empty();
    if (!wanted || stopped_early_ || !work_is_done() || updated_step_ == step()) return;
    BatchNormUpdateOptions options;
    options.loader = options_.loader;
    options.batch_size = bn_batch(experiment_.recipe);
    options.tell = [this](const std::string& line) { console_.line(line); };
    if (request_.smoke) options.max_batches = kSmokeBatches;
    options.autocast = options_.autocast;
    // Every rank measures on its own, and none may leave the others waiting.
    if (experiment_.ranks == nullptr) options.interrupted = [this] { return signals_.received() != nullptr; };
    sync_weights();
    stopped_early_ = !train::update_batch_norm(experiment_, options);
    if (stopped_early_) return;
    updated_step_ = step();
    saver_.note_change();
    console_.line("step " + std::to_string(step()) + ": measured the running statistics of the average");
  }

  /// All data sets or, with `stopped_early_`, nothing visible: a signal does not wait for a long evaluation.
  void evaluate_all() {
    if (experiment_.eval_data.empty()) return;
    options_.loader.rank_0_reads ? sync_weights() : sync_rows();
    EvalOptions options;
    options.micro_batch_size = eval_micro_batch(experiment_.recipe);
    if (const auto most = request_.smoke ? kSmokeBatches : eval_.max_batches)
      options.max_samples = counted_samples(experiment_.recipe, *most);
    options.autocast = options_.autocast;
    options.num_workers = options_.loader.num_workers;
    options.prefetch_factor = options_.loader.prefetch_factor;
    options.rank_0_reads = options_.loader.rank_0_reads;
    options.interrupted = [this] { return signals_.received() != nullptr; };
    const std::int64_t begin_ns = clock_.monotonic_ns();
    std::vector<EvalResult> results;
    for (const auto& set : experiment_.eval_data) {
      if (traced_) core::log_debug("evaluating " + set.name + " at step " + std::to_string(step()));
      auto result = bad_step_policy_.evaluate(set, options, saver_);
      stopped_early_ = !result;
      if (stopped_early_) return agree_on_signal();
      results.push_back(*std::move(result));
    }
    std::string shown;
    for (const EvalResult& result : results) {
      for (const auto& [name, value] : result.values) {
        log_metric(result.data_set + "/" + name, value);
        shown += "  " + result.data_set + "/" + name + " " + core::short_number(value, 4);
      }
    }
    longest_eval_s_ = std::max(longest_eval_s_, static_cast<double>(clock_.monotonic_ns() - begin_ns) * 1e-9);
    evaluated_step_ = step();
    eval_due_ = false;
    console_.line("step " + std::to_string(step()) + shown);
    const bool improved = saver_.note_best(latest_, step());
    stepper_.note_evaluation([this](const std::string& name) { return metric(name); });
    if (!experiment_.callbacks.empty()) {
      sync_weights();
      const EvalWeights eval_weights(experiment_);
      for (const auto& one : experiment_.callbacks) one.callback->on_eval_end(*this);
    }
    log_end();
    if (improved && saver_.config().save_best) save_as_planned();  // after the callbacks: their state is of this step
  }

  /// At a point set by the recipe alone.
  void save_as_planned() {
    bad_step_policy_.note_checkpoint();
    save();
  }

  void save(Saver::When when = Saver::When::kBetweenSteps) {
    sync_rows();
    saver_.save(eval_metrics(), when);
  }

  LoopResult finish() {
    read_steps();
    profiler_.finish(stepper_.progress());
    // Only due when a run resumes from a checkpoint of its last step.
    if (!is_resumable(result_.ending)) {
      eval_due_ = evaluates_at_end() && evaluated_step_ != step();
      update_batch_norm();
      if (eval_due_ && !stopped_early_) evaluate_all();
    }
    if (stopped_early_) end_by_signal();
    const bool interrupted = is_resumable(result_.ending);
    if (result_.ending == Ending::kSignal) {
      console_.line(result_.reason + ": saving, then exiting; send SIGINT (Ctrl-C) to exit at once");
    }
    if (interrupted || saver_.config().save_at_end || request_.smoke) save(Saver::When::kAtTheEnd);
    saver_.finish();
    result_.last_checkpoint = saver_.last_checkpoint();
    if (!interrupted && !experiment_.callbacks.empty()) {
      sync_weights();
      for (const auto& one : experiment_.callbacks) one.callback->on_train_end(*this);
    }
    console_.clear();
    programs_.finish(interrupted ? ProgramQueue::Patience::kShort : ProgramQueue::Patience::kTimeouts,
                     [this] { return signals_.received() != nullptr; });
    result_.summary = summary();
    add_left_out_records(result_.summary);
    return std::move(result_);
  }

  /// What a stream leaves out is known when it was read; other sets say it before the training.
  void add_left_out_records(Node& summary) const {
    if (!experiment_.train_data->is_stream() || !experiment_.is_first()) return;
    const auto account = stepper_.loader().stream_account();
    if (account.skipped > 0) summary.set("skipped_records", Node::integer(account.skipped));
    if (account.dropped > 0) summary.set("dropped_records", Node::integer(account.dropped));
    const std::string read = " of " + core::counted_large(account.records, "record", "records") + " that were read";
    if (account.skipped > 0) core::log_warning("data.train: skipped " + core::with_commas(account.skipped) + read);
    if (account.dropped > 0) {
      core::log_info("data.train: dropped " + core::with_commas(account.dropped) + read + ", as too long");
    }
    if (const std::string unread = stepper_.loader().stream_unread(); !unread.empty()) {
      core::log_warning("data.train: " + unread);
    }
  }

  Node summary() const {
    const Progress& now = stepper_.progress();
    Node node = now.to_node();
    node.set("train_seconds", Node::floating(now.seconds));
    node.set("steps_per_s", Node::floating(now.seconds > 0 ? static_cast<double>(now.step) / now.seconds : 0.0));
    node.set("peak_memory_bytes", Node::integer(peak_memory_bytes()));
    if (tensor_memory_peak_bytes() > 0) node.set("peak_tensor_bytes", Node::integer(tensor_memory_peak_bytes()));
    bad_step_policy_.add_to_summary(node);
    for (const auto& [name, value] : latest_) node.set(name, Node::floating(value));
    if (!saver_.bests().empty()) {
      node.set("best_" + *saver_.config().monitor, Node::floating(saver_.bests().front().value));
      node.set("best_step", Node::integer(saver_.bests().front().step));
    }
    const double entropy = experiment_.eval_data.empty() ? std::numeric_limits<double>::quiet_NaN()
                                                         : experiment_.eval_data.front().data->unigram_entropy();
    if (std::isfinite(entropy)) node.set("unigram_entropy", Node::floating(entropy));
    return node;
  }

  Experiment& experiment_;
  store::RunWriter& run_;
  const LoopRequest& request_;
  const core::Clock& clock_;
  const sections::eval::Config& eval_;
  const std::optional<std::int64_t> logging_steps_;
  const StepperOptions options_;
  SignalWatch signals_;
  const std::size_t gpu_notes_;  ///< numbers of a reading of a GPU among the notes
  Stepper stepper_;
  StepMetrics metrics_;
  Media media_;
  Console console_;
  BadStepPolicy bad_step_policy_;
  Saver saver_;
  TimeLimit time_limit_;
  Profiler profiler_;
  store::SystemMetrics system_metrics_;
  ProgramQueue programs_;
  LoopResult result_;
  std::map<std::string, double> latest_;
  std::string stop_reason_;
  int agreed_signal_ = 0;  ///< by all ranks
  std::string own_time_is_up_, agreed_time_is_up_;
  std::optional<StepResult> last_;  ///< of the latest step; none before the first one of this process
  const bool traced_ = core::log_options().level == core::LogLevel::kDebug;
  std::int64_t logged_step_ = -1, evaluated_step_ = -1, updated_step_ = -1, first_step_ = 0, started_ns_ = 0;
  bool stepped_ = false;
  bool stopped_early_ = false;  ///< a signal interrupted what is due at this step; done when the run resumes
  bool eval_due_ = false, save_due_ = false;  ///< at this step, in this order
  double seconds_before_ = 0, step_s_ = 0, longest_eval_s_ = 0;
};

}  // namespace

LoopResult run_loop(Experiment& experiment, store::RunWriter& run, const LoopRequest& request,
                    const core::Clock& clock) {
  return Loop(experiment, run, request, clock).train();
}

}  // namespace runner::train
