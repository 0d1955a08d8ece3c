#include "runner/train/bad_step_policy.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <limits>
#include <system_error>

#include "components/tensor/device.h"
#include "generated/section/faults.h"
#include "generated/section/training.h"
#include "runner/artifact/checkpoint_dir.h"
#include "runner/artifact/draft_names.h"
#include "runner/core/error.h"
#include "runner/core/log.h"
#include "runner/core/text/text.h"
#include "runner/core/units.h"
#include "runner/distributed/process_group.h"
#include "runner/train/experiment/gradient_strategy.h"
#include "runner/train/save/lineage_checkpoints.h"
#include "runner/train/save/saver.h"

namespace runner::train {
namespace {

using core::counted;
using core::Node;
using sections::faults::OnNan;
using sections::faults::OnSpike;

constexpr std::size_t kSamplesShown = 6;     // in a log line
constexpr std::size_t kSamplesKept = 4096;   // in an event
constexpr std::size_t kWindowsMax = 10'000;  // number of recent steps that a rollback can cover
constexpr std::int64_t kDoublingsMax = 20;
constexpr std::size_t kUnreadStepsMax = 256;  // of a device; each keeps 5 kB of random state
constexpr const char* kNanHint = "lower the learning rate, clip gradients, or skip such steps with faults.on_nan: skip";
// The smallest float16: gradients that overflow at this loss scale overflow at every scale.
constexpr double kLossScaleMin = 0x1p-24;

Node position_node(const Loader::Position& position) {
  Node node = Node::mapping();
  node.set("epoch", Node::integer(position.epoch));
  node.set("sample", Node::integer(position.sample));
  return node;
}

}  // namespace

BadStepPolicy::BadStepPolicy(const Experiment& experiment, Stepper& stepper, store::RunWriter& run, Console& console)
    : experiment_(experiment),
      stepper_(stepper),
      run_(run),
      console_(console),
      config_(*experiment.recipe.faults),
      micro_batches_(experiment.recipe.training->auto_micro_batch.value_or("")),
      losses_(config_.spike_window),
      norms_(config_.spike_window) {}

bool BadStepPolicy::may_roll_back() const {
  return config_.on_nan == OnNan::kRollback || config_.on_spike == OnSpike::kRollback;
}

void BadStepPolicy::note_checkpoint() {
  checkpoint_step_ = stepper_.progress().step;
  rollbacks_there_ = 0;
  windows_.clear();
}

BadStepPolicy::Outcome BadStepPolicy::step(bool reads, Saver& saver, StepResult& result) {
  if (stepper_.can_enqueue()) {
    result = step_that_fits([&] { return stepper_.enqueue_step(reads); }, saver);
    if (reads || stepper_.unread_steps() >= kUnreadStepsMax) read_steps(saver, result);
    return Outcome::kStepped;
  }
  const bool cares = config_.on_nan == OnNan::kSkip || config_.on_nan == OnNan::kRollback;
  const bool wants_norm = reads || cares || config_.spike_grad_z_score.has_value();
  const StepGuard guard = [this](const StepResult& made) {
    trouble_ = judge(made);
    find_bad_rank(made);
    return !trouble_ || trouble_->action == Action::kIgnore;
  };
  result = step_that_fits([&] { return stepper_.step(wants_norm, guard); }, saver);
  if (may_roll_back()) windows_.push_back({failed_step() - (result.stepped ? 1 : 0), stepper_.window_start()});
  if (windows_.size() > kWindowsMax) windows_.pop_front();
  if (result.stepped) {
    remember(result);
    return Outcome::kStepped;
  }
  if (result.overflowed) trouble_ = overflow(result);
  if (!trouble_ || trouble_->action == Action::kIgnore) return Outcome::kSkipped;
  const Trouble trouble = *trouble_;
  if (trouble.action == Action::kStop) {
    stop(trouble, trouble.kind == "nan"
                      ? kNanHint
                      : "lower the learning rate, clip gradients, or skip such steps with faults.on_spike: skip");
  }
  check_budget(trouble);
  if (trouble.action == Action::kSkip) {
    skip(trouble);
    return Outcome::kSkipped;
  }
  roll_back(trouble, saver);
  return Outcome::kRolledBack;
}

void BadStepPolicy::read_steps(Saver& saver, StepResult& last) {
  std::vector<EnqueuedStep> steps = stepper_.read_steps();
  for (const EnqueuedStep& step : steps) {
    const std::optional<Trouble> trouble = judge(step.result);
    if (!trouble || trouble->action == Action::kIgnore) continue;
    // Once more, for its batches and gradients, which the report looks at.
    stepper_.return_to(step.start);
    step_that_fits([&] { return stepper_.step(false, [](const StepResult&) { return false; }); }, saver);
    stop(*trouble, kNanHint);
  }
  if (!steps.empty()) last = std::move(steps.back().result);
}

StepResult BadStepPolicy::step_that_fits(const std::function<StepResult()>& make, Saver& saver) {
  while (true) {
    try {
      return make();
    } catch (const std::exception& error) {
      if (!is_out_of_memory(error)) throw;
      std::int64_t size = stepper_.micro_batch_size();
      const std::string what = "step " + std::to_string(failed_step());
      if (stepper_.optimizer_began()) {
        throw core::RunError(what + " does not fit into memory: " +
                                 (experiment_.optimizer->steps_in_backward()
                                      ? "the backward pass failed after some parameters had been updated; "
                                      : "there is no room for the optimizer state; ") +
                                 plain_text(error),
                             "smaller micro-batches do not help: use a smaller model, an optimizer with less state "
                             "(sgd), or more memory");
      }
      if (experiment_.ranks != nullptr && !is_shared(error)) throw;  // the other ranks are elsewhere in the step
      if (!stepper_.can_rewind() || !switch_to_sync_saves(saver)) shrink_or_refuse(error, size, what);
      stepper_.rewind();
      components::empty_cache(experiment_.device);
      stepper_.set_micro_batch_size(size);
    }
  }
}

// Only rank 0 saves. If the memory it frees does not help the other ranks, they come here again.
bool BadStepPolicy::switch_to_sync_saves(Saver& saver) const {
  const bool given = saver.switch_to_sync_saves();
  if (experiment_.ranks == nullptr) return given;
  return !experiment_.ranks->from_rank_0(given ? "given" : "", "copies of the state").empty();
}

void BadStepPolicy::shrink_or_refuse(const std::exception& error, std::int64_t& size, const std::string& what) {
  std::int64_t fixed = experiment_.optimizer->state_bytes();
  for (const auto& parameter : experiment_.model->parameters()) {
    fixed += (parameter.tensor.requires_grad() ? 2 : 1) * static_cast<std::int64_t>(parameter.tensor.nbytes());
  }
  const std::string with = what + " does not fit into memory with micro-batches of " +
                           counted(size, "sample", "samples") + ": " + plain_text(error);
  if (!micro_batches_.shrinks()) {
    throw core::RunError(
        with, "a smaller micro_batch_size at the same global_batch_size, or training.auto_micro_batch: halve");
  }
  const std::int64_t next = micro_batches_.next(size);
  if (next < 1) {
    throw core::RunError(with + "; weights, gradients and optimizer state need " + core::format_bytes(fixed) +
                             " at any micro-batch size, and auto_micro_batch has no smaller one to try",
                         size > 1
                             ? "auto_micro_batch: halve stops at one sample"
                             : "use a smaller model, shorter sequences, precision: {mode: bf16-mixed}, or more memory");
  }
  Node data = Node::mapping();
  data.set("what", Node::string(what));
  data.set("from", Node::integer(size));
  data.set("to", Node::integer(next));
  data.set("error", Node::string(plain_text(error)));
  run_.event("out_of_memory", stepper_.progress().step, std::move(data));
  console_.line(what + " does not fit into memory with micro-batches of " + std::to_string(size) + ", trying " +
                std::to_string(next) + ": " + plain_text(error));
  size = next;
  ++shrinks_;
}

std::optional<EvalResult> BadStepPolicy::evaluate(const NamedDataset& set, EvalOptions options, Saver& saver) {
  while (true) {
    if (eval_batch_ > 0) options.micro_batch_size = std::min(options.micro_batch_size, eval_batch_);
    try {
      return train::evaluate(experiment_, set.name, *set.data, options);
    } catch (const std::exception& error) {
      if (!is_out_of_memory(error)) throw;
      if (experiment_.ranks != nullptr && !is_shared(error)) throw;
      components::empty_cache(experiment_.device);
      if (switch_to_sync_saves(saver)) continue;
      std::int64_t size = options.micro_batch_size;
      shrink_or_refuse(
          error, size,
          "the evaluation of data." + set.name + " after step " + std::to_string(stepper_.progress().step));
      eval_batch_ = size;
    }
  }
}

BadStepPolicy::Action BadStepPolicy::on_nan() const {
  switch (config_.on_nan) {
    case OnNan::kStop: return Action::kStop;
    case OnNan::kSkip: return Action::kSkip;
    case OnNan::kRollback: return Action::kRollback;
    case OnNan::kIgnore: return Action::kIgnore;
  }
  return Action::kStop;
}

std::optional<BadStepPolicy::Trouble> BadStepPolicy::overflow(const StepResult& result) {
  const double before = *result.loss_scale, now = stepper_.scaler().scale();
  Node data = Node::mapping();
  data.set("loss_scale", Node::floating(before));
  data.set("next_loss_scale", Node::floating(now));
  run_.event("overflow", failed_step(), std::move(data));
  ++overflows_;
  const std::string what = "gradients overflow float16 at the loss scale " + core::short_number(before, 4);
  console_.line("step " + std::to_string(failed_step()) + " skipped: " + what + ", continuing with " +
                core::short_number(now, 4));
  if (before >= kLossScaleMin && !stepper_.scaler().is_stuck()) return std::nullopt;
  return Trouble{"nan", what, on_nan()};
}

std::optional<BadStepPolicy::Trouble> BadStepPolicy::judge(const StepResult& result) const {
  if (!std::isfinite(result.loss) || !std::isfinite(result.grad_norm.value_or(0.0))) {
    const std::string what = !std::isfinite(result.loss)
                                 ? "the loss is " + core::short_number(result.loss, 4)
                                 : "the gradient norm is " + core::short_number(*result.grad_norm, 4);
    return Trouble{"nan", what, on_nan()};
  }
  if (config_.on_spike == OnSpike::kIgnore) return std::nullopt;
  const auto above = [](const SpikeDetector& detector, double value, double limit) -> std::optional<double> {
    const std::optional<double> z = detector.z_score(value);
    return z && *z > limit ? z : std::nullopt;
  };
  const auto text = [this](const char* name, double value, double z) {
    return std::string(name) + " is " + core::short_number(value, 4) + ", " + core::short_number(z, 4) +
           " deviations above the mean of the last " + counted(config_.spike_window, "step", "steps");
  };
  Trouble trouble{"spike", "", Action::kStop};
  if (config_.on_spike == OnSpike::kSkip) trouble.action = Action::kSkip;
  if (config_.on_spike == OnSpike::kRollback) trouble.action = Action::kRollback;
  if (const auto z = above(losses_, result.loss, config_.spike_z_score)) {
    trouble.what = text("the loss", result.loss, *z);
    return trouble;
  }
  if (config_.spike_grad_z_score && result.grad_norm) {
    if (const auto z = above(norms_, *result.grad_norm, *config_.spike_grad_z_score)) {
      trouble.what = text("the gradient norm", *result.grad_norm, *z);
      return trouble;
    }
  }
  return std::nullopt;
}

void BadStepPolicy::remember(const StepResult& result) {
  if (config_.on_spike == OnSpike::kIgnore) return;
  if (std::isfinite(result.loss)) losses_.add(result.loss);
  if (config_.spike_grad_z_score && std::isfinite(result.grad_norm.value_or(NAN))) norms_.add(*result.grad_norm);
}

void BadStepPolicy::find_bad_rank(const StepResult& result) {
  const auto bad = std::find_if(result.rank_losses.begin(), result.rank_losses.end(),
                                [](double loss) { return !std::isfinite(loss); });
  bad_rank_.reset();
  if (bad != result.rank_losses.end()) bad_rank_ = static_cast<int>(bad - result.rank_losses.begin());
}

std::vector<std::int64_t> BadStepPolicy::bad_samples() const {
  return bad_rank_ ? stepper_.window_samples_of(*bad_rank_) : stepper_.window_samples();
}

// Each rank inspects its own last batch; all of them found the same trouble.
std::string BadStepPolicy::first_bad_tensor() {
  experiment_.strategy->hold_weights();
  const std::string own = stepper_.first_bad_tensor();
  if (experiment_.ranks == nullptr) return own;
  const auto rank = static_cast<std::size_t>(bad_rank_.value_or(0));
  return experiment_.ranks->all_gather(own, "the first bad tensor").at(rank);
}

std::string BadStepPolicy::samples_text() const {
  const std::vector<std::int64_t> samples = bad_samples();
  const std::string text =
      (samples.size() == 1 ? "sample " : "samples ") + core::joined_first(samples, kSamplesShown) + " of data.train";
  return bad_rank_ ? text + " on rank " + std::to_string(*bad_rank_) : text;
}

Node BadStepPolicy::report(const Trouble& trouble) {
  Node data = Node::mapping();
  data.set("cause", Node::string(trouble.kind));
  data.set("what", Node::string(trouble.what));
  if (trouble.kind == "nan") data.set("tensor", Node::string(first_bad_tensor()));
  if (bad_rank_) data.set("rank", Node::integer(*bad_rank_));
  const std::vector<std::int64_t> samples = bad_samples();
  Node list = Node::sequence();
  for (std::size_t i = 0; i < std::min(samples.size(), kSamplesKept); ++i) {
    list.items().push_back(Node::integer(samples[i]));
  }
  data.set("samples", std::move(list));
  data.set("sample_count", Node::integer(static_cast<std::int64_t>(samples.size())));
  data.set("from", position_node(stepper_.window_start()));
  data.set("to", position_node(stepper_.loader().position()));
  return data;
}

void BadStepPolicy::stop(const Trouble& trouble, const std::string& hint) {
  Node data = report(trouble);
  std::string message = trouble.what + " at step " + std::to_string(failed_step());
  if (const Node* tensor = data.find("tensor")) {
    message += "; the first tensor that is not finite: " + tensor->as_string();
  }
  message += "; it saw " + samples_text();
  run_.event(trouble.kind, failed_step(), std::move(data));
  throw core::RunError(message, hint);
}

void BadStepPolicy::check_budget(const Trouble& trouble) {
  const std::int64_t from =
      config_.budget_steps ? failed_step() - *config_.budget_steps : std::numeric_limits<std::int64_t>::min();
  const auto used = std::count_if(bad_steps_.begin(), bad_steps_.end(), [from](std::int64_t s) { return s > from; });
  if (used < config_.budget) return;
  Trouble last = trouble;
  last.what += ", and faults.budget, " + counted(config_.budget, "skip or rollback", "skips and rollbacks") +
               (config_.budget_steps ? " in " + counted(*config_.budget_steps, "step", "steps") : "") + ", is used up";
  stop(last,
       "the problem persists: check the learning rate and the samples that the "
       "run's events name");
}

void BadStepPolicy::skip(const Trouble& trouble) {
  Node data = report(trouble);
  run_.event("skip", failed_step(), std::move(data));
  console_.line("step " + std::to_string(failed_step()) + " skipped: " + trouble.what + "; it saw " + samples_text());
  bad_steps_.push_back(failed_step());
  ++skips_;
  stepper_.drop_window();
}

std::string BadStepPolicy::rollback_checkpoint(const Saver& saver, std::vector<std::string>& skipped) const {
  std::vector<std::string> looked_at;
  const auto is_whole = [&](const std::string& path) {
    if (path.empty() || std::find(looked_at.begin(), looked_at.end(), path) != looked_at.end()) return false;
    looked_at.push_back(path);
    const auto verdict = artifact::verify_checkpoint(path);
    if (!verdict) skipped.push_back(verdict.failure().message);
    return verdict.ok();
  };
  const std::string planned = run_.run_dir() + "/checkpoints/" + artifact::checkpoint_name(checkpoint_step_);
  std::error_code ignored;  // rotation may have deleted it after a stopped run saved a newer one
  if (std::filesystem::exists(planned, ignored) && is_whole(planned)) return planned;
  run_.flush_durable();  // the branch of the previous rollback
  const auto own = lineage_checkpoints(run_.run_dir(), run_.run_id());
  for (auto info = own.rbegin(); info != own.rend(); ++info) {
    if (is_whole(info->path)) return info->path;
  }
  // The run may have started from another run's checkpoint.
  return is_whole(saver.last_checkpoint()) ? saver.last_checkpoint() : "";
}

void BadStepPolicy::roll_back(const Trouble& trouble, Saver& saver) {
  const std::int64_t bad_step = failed_step();
  saver.finish();  // a save in progress is a rollback target, too
  // They were verified when saved; the disk may have lost them since.
  std::vector<std::string> skipped;
  std::string checkpoint = experiment_.is_first() ? rollback_checkpoint(saver, skipped) : "";
  if (experiment_.ranks != nullptr) checkpoint = experiment_.ranks->from_rank_0(checkpoint, "where to go back to");
  for (const std::string& what : skipped) core::log_warning("skipped " + what);
  if (checkpoint.empty()) {
    Trouble last = trouble;
    last.what += ", and there is nothing to roll back to" + (skipped.empty() ? "" : ": " + skipped.front());
    stop(last, "start a new run with --new, or name a checkpoint of another run with --checkpoint");
  }
  Node data = report(trouble);
  const std::string samples = samples_text();
  const Loader::Position behind = stepper_.loader().position();
  std::vector<DataJump> jumps = stepper_.jumps();
  // The load restores older state: what happened since has to survive it.
  std::vector<std::int64_t> bad_steps = bad_steps_;
  const std::deque<AccumulationWindow> windows = windows_;
  const std::int64_t skips = skips_, rollbacks = rollbacks_, overflows = overflows_,
                     micro = stepper_.micro_batch_size();
  const std::int64_t eval_batch = eval_batch_, shrinks = shrinks_, rollbacks_there = rollbacks_there_ + 1;
  saver.restore(checkpoint, {});
  const std::int64_t back = stepper_.progress().step;
  checkpoint_step_ = back;
  rollbacks_there_ = rollbacks_there;

  const std::int64_t reach = config_.rollback_skip_steps << std::min<std::int64_t>(rollbacks_there_ - 1, kDoublingsMax);
  Loader::Position from = windows.back().start;
  std::int64_t left_out = 0;
  for (auto window = windows.rbegin(); window != windows.rend() && window->step > back && left_out < reach; ++window) {
    from = window->start;
    ++left_out;
  }
  jumps.push_back({from, behind});
  stepper_.set_jumps(std::move(jumps));
  stepper_.set_micro_batch_size(micro);
  eval_batch_ = eval_batch;
  shrinks_ = shrinks;
  bad_steps_ = std::move(bad_steps);
  bad_steps_.push_back(bad_step);
  skips_ = skips;
  overflows_ = overflows;
  rollbacks_ = rollbacks + 1;

  data.set("checkpoint", Node::string(checkpoint));
  Node passed_over = Node::sequence();
  for (const std::string& what : skipped) passed_over.items().push_back(Node::string(what));
  if (!skipped.empty()) data.set("skipped", std::move(passed_over));
  data.set("left_out_from", position_node(from));
  data.set("left_out_steps", Node::integer(left_out));
  run_.event("rollback", bad_step, std::move(data));
  run_.rewind(back);
  console_.line("step " + std::to_string(bad_step) + ": " + trouble.what + "; resuming from " + checkpoint +
                " without " + samples +
                (left_out > 1 ? " and those of " + counted(left_out - 1, "step", "steps") + " before it" : ""));
}

void BadStepPolicy::add_to_summary(Node& summary) const {
  if (skips_ > 0) summary.set("skipped_steps", Node::integer(skips_));
  if (overflows_ > 0) summary.set("overflows", Node::integer(overflows_));
  if (rollbacks_ > 0) summary.set("rollbacks", Node::integer(rollbacks_));
  if (shrinks_ > 0) summary.set("micro_batch_size", Node::integer(stepper_.micro_batch_size()));
}

void BadStepPolicy::save_state(core::StateWriter& writer) const {
  Node steps = Node::sequence();
  for (const std::int64_t step : bad_steps_) steps.items().push_back(Node::integer(step));
  writer.value("bad_steps", std::move(steps));
  writer.value("skips", Node::integer(skips_));
  writer.value("rollbacks", Node::integer(rollbacks_));
  writer.value("overflows", Node::integer(overflows_));
  writer.value("shrinks", Node::integer(shrinks_));
  writer.value("eval_batch", Node::integer(eval_batch_));
  writer.value("checkpoint_step", Node::integer(checkpoint_step_));
  writer.value("rollbacks_there", Node::integer(rollbacks_there_));
  Node windows = Node::sequence();
  for (const AccumulationWindow& window : windows_) {
    Node row = Node::sequence();
    for (const std::int64_t value : {window.step, window.start.epoch, window.start.sample}) {
      row.items().push_back(Node::integer(value));
    }
    windows.items().push_back(std::move(row));
  }
  writer.value("windows", std::move(windows));
  writer.value("losses", losses_.state());
  writer.value("norms", norms_.state());
}

void BadStepPolicy::load_state(const core::StateReader& reader) {
  bad_steps_.clear();
  for (const Node& step : reader.value("bad_steps").items()) bad_steps_.push_back(step.as_integer());
  skips_ = reader.value("skips").as_integer();
  rollbacks_ = reader.value("rollbacks").as_integer();
  overflows_ = reader.has("overflows") ? reader.value("overflows").as_integer() : 0;  // younger than the others
  shrinks_ = reader.value("shrinks").as_integer();
  eval_batch_ = reader.value("eval_batch").as_integer();
  losses_.restore(reader.value("losses"));
  norms_.restore(reader.value("norms"));
  checkpoint_step_ = reader.value("checkpoint_step").as_integer();
  rollbacks_there_ = reader.value("rollbacks_there").as_integer();
  windows_.clear();
  for (const Node& row : reader.value("windows").items()) {
    const auto at = [&row](std::size_t i) { return row.items().at(i).as_integer(); };
    windows_.push_back({at(0), {at(1), at(2)}});
  }
}

}  // namespace runner::train
