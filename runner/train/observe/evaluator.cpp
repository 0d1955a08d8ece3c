#include "runner/train/observe/evaluator.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/full.h>
#include <ATen/ops/tensor.h>

#include <algorithm>
#include <cmath>
#include <exception>
#include <optional>
#include <span>
#include <utility>

#include "components/generation/answers.h"
#include "components/tensor/questions.h"
#include "components/tensor/tensors.h"
#include "generated/section/eval.h"
#include "runner/core/clock.h"
#include "runner/core/error.h"
#include "runner/core/log.h"
#include "runner/distributed/process_group.h"
#include "runner/train/data/batch_dispatch.h"
#include "runner/train/data/loader.h"
#include "runner/train/experiment/eval_weights.h"
#include "runner/train/experiment/gradient_strategy.h"
#include "runner/train/experiment/out_of_memory.h"
#include "runner/train/observe/span_answers.h"
#include "runner/train/step/step_reference.h"

namespace runner::train {

namespace {

/// The model is in evaluation mode while this lives, and back in training mode after it, also on exceptions.
class Judging {
 public:
  explicit Judging(const Experiment& experiment) : weights_(experiment), experiment_(experiment) {
    experiment_.model->set_training(false);
  }
  ~Judging() { experiment_.model->set_training(true); }
  Judging(const Judging&) = delete;
  Judging& operator=(const Judging&) = delete;

 private:
  EvalWeights weights_;
  const Experiment& experiment_;
};

using Judge = std::function<void(std::int64_t, components::TensorMap&)>;

/// Rank 0 reads a batch for each rank, round by round, and tells whether there is another round.
bool predict_dispatched(const Experiment& experiment, const EvalOptions& options, Loader& loader, std::int64_t batches,
                        const Judge& judge) {
  distributed::ProcessGroup& ranks = *experiment.ranks;
  for (std::int64_t begun = 0; begun < batches; begun += ranks.size()) {
    const bool stops = options.interrupted && options.interrupted();
    if (ranks.from_rank_0(stops ? "stop" : "", "the evaluation's end") == "stop") return false;
    std::vector<int> owners;
    std::vector<std::int64_t> firsts, counts;
    std::vector<components::TensorMap> round;
    for (std::int64_t i = begun; i < std::min(begun + ranks.size(), batches); ++i) {
      const std::int64_t first = loader.position().sample, count = loader.batch_at(first);
      owners.push_back(loader.owner());
      firsts.push_back(first);
      counts.push_back(count);
      if (loader.is_mine()) {
        loader.next(count, round.emplace_back());
      } else {
        loader.skip(count);
      }
    }
    dispatch_batches(ranks, owners, round);
    auto mine = round.begin();
    for (std::size_t i = 0; i < owners.size(); ++i) {
      if (owners[i] == ranks.rank()) {
        judge(firsts[i], *mine++);
      } else if (options.other_batch) {
        options.other_batch(owners[i], counts[i]);
      }
    }
  }
  return true;
}

/// Passes that the ranks make together, because each holds its rows of the parameters alone: as many on every rank, and
/// none goes on when one cannot.
class JointPasses {
 public:
  JointPasses(const Experiment& experiment, const EvalOptions& options, std::int64_t batches)
      : experiment_(experiment),
        options_(options),
        rounds_((batches + experiment.world_size() - 1) / experiment.world_size()) {}

  /// False where a rank was interrupted or has failed; no rank makes another pass then.
  bool may_begin() {
    const bool stops = options_.interrupted && options_.interrupted();
    const at::Tensor stop = at::full({1}, stops ? 1.0F : 0.0F, at::kFloat);
    experiment_.ranks->begin_all_reduce(stop, "the evaluation's end", distributed::ReduceOp::kMax)->wait();
    ++made_;
    return stop.item<float>() == 0.0F;
  }

  template <typename Step>
  void pass(const Step& step) {
    experiment_.strategy->begin_forward();
    try {
      step();
    } catch (...) {
      experiment_.strategy->end_forward();
      if (made_ < rounds_) tell_failure();
      throw;
    }
    experiment_.strategy->end_forward();
  }

  /// Those for which this rank has no batch.
  bool make_the_rest() {
    while (made_ < rounds_) {
      if (!may_begin()) return false;
      pass([] {});
    }
    return true;
  }

 private:
  void tell_failure() const {
    const at::Tensor stop = at::full({1}, 1.0F, at::kFloat);
    experiment_.ranks->begin_all_reduce(stop, "the evaluation's end", distributed::ReduceOp::kMax)->wait();
  }

  const Experiment& experiment_;
  const EvalOptions& options_;
  const std::int64_t rounds_;
  std::int64_t made_ = 0;
};

}  // namespace

bool predict(const Experiment& experiment, const components::data::Dataset& data, const EvalOptions& options,
             const std::function<void(std::int64_t, const components::TensorMap&)>& consume) {
  const at::NoGradGuard no_grad;
  const Judging judging(experiment);
  const bool dispatches = options.rank_0_reads && experiment.ranks != nullptr;
  components::TensorMap batch;
  Loader loader(data, {.micro_batch_size = options.micro_batch_size,
                       .num_samples = std::min(data.size(), options.max_samples.value_or(data.size())),
                       .num_workers = options.num_workers,
                       .prefetch_factor = options.prefetch_factor,
                       .rank = experiment.rank(),
                       .ranks = experiment.ranks != nullptr ? experiment.ranks->size() : 1,
                       .rank_0_reads = dispatches});
  const std::int64_t batches = loader.batches_per_epoch();
  const auto judge = [&](std::int64_t first, components::TensorMap& read) {
    if (options.begin_batch) options.begin_batch();
    read = experiment.upload(read);
    {
      const components::Autocast autocast(options.autocast);
      if (options.with_hidden || options.loss_alone) experiment.model->forward_for_loss(read);
      const at::Tensor* hidden = read.find(components::kHidden);
      const at::Tensor kept = hidden != nullptr ? *hidden : at::Tensor();
      const bool needs_output = !options.loss_alone && read.find(components::kOutput) == nullptr;
      if (needs_output) experiment.model->forward(read);
      if (kept.defined()) read.set(components::kHidden, kept);
    }
    consume(first, read);
  };
  if (dispatches) return predict_dispatched(experiment, options, loader, batches, judge);
  std::optional<JointPasses> joint;
  if (experiment.strategy != nullptr && experiment.strategy->holds_rows_alone()) {
    RUNNER_ASSERT(!options.with_hidden, "a training's evaluation makes one pass for each batch");
    joint.emplace(experiment, options, batches);
  }
  for (std::int64_t i = 0; i < batches; ++i) {
    if (!joint && options.interrupted && options.interrupted()) return false;
    const std::int64_t first = loader.position().sample;
    if (!loader.is_mine()) {
      const std::int64_t count = loader.batch_at(first);
      if (options.other_batch) options.other_batch(loader.owner(), count);
      loader.skip(count);
      continue;
    }
    if (joint && !joint->may_begin()) return false;
    loader.next(loader.batch_at(first), batch);
    joint ? joint->pass([&] { judge(first, batch); }) : judge(first, batch);
  }
  return !joint || joint->make_the_rest();
}

namespace {

/// One collective for all; false when a rank was interrupted.
bool join(const Experiment& experiment, bool complete, components::loss::Figures& loss,
          components::loss::Figures& figures, EvalResult& result) {
  if (experiment.ranks == nullptr) return complete;
  std::vector<double> sums = {complete ? 0.0 : 1.0, static_cast<double>(result.samples)};
  for (const components::loss::Figures* all : {&loss, &figures}) {
    sums.insert(sums.end(), all->sums.begin(), all->sums.end());
    sums.insert(sums.end(), all->counts.begin(), all->counts.end());
  }
  for (const auto& metric : experiment.metrics) {
    for (const double sum : metric->sums()) sums.push_back(sum);
  }
  // The same bits on each of them. Whole numbers stay exact below 2^53.
  const at::Tensor flat = at::from_blob(sums.data(), {static_cast<std::int64_t>(sums.size())}, at::kDouble);
  experiment.ranks->begin_all_reduce(flat, "the evaluation's sums")->wait();
  result.samples = static_cast<std::int64_t>(sums[1]);
  std::span<const double> rest = std::span(sums).subspan(2);
  for (components::loss::Figures* all : {&loss, &figures}) {
    for (double& sum : all->sums) {
      sum = rest.front();
      rest = rest.subspan(1);
    }
    for (std::int64_t& count : all->counts) {
      count = static_cast<std::int64_t>(rest.front());
      rest = rest.subspan(1);
    }
  }
  for (const auto& metric : experiment.metrics) {
    const std::size_t count = metric->sums().size();
    metric->set_sums(rest.first(count));
    rest = rest.subspan(count);
  }
  return sums[0] == 0.0;
}

/// Gives metrics that keep rows those of all ranks, in the order of these.
void join_rows(const Experiment& experiment) {
  if (experiment.ranks == nullptr) return;
  constexpr const char* kSite = "the evaluation's rows";
  for (const auto& metric : experiment.metrics) {
    if (metric->row_width() == 0) continue;
    const std::vector<float> mine = metric->rows();
    const auto size = static_cast<std::int64_t>(mine.size());
    std::vector<std::int64_t> counts;
    for (const at::Tensor& count : experiment.ranks->all_gather(at::full({1}, size, at::kLong), kSite))
      counts.push_back(count.item<std::int64_t>());
    const std::int64_t longest = *std::max_element(counts.begin(), counts.end());
    if (longest == 0) continue;
    const at::Tensor padded = at::full({longest}, 0.0F, at::kFloat);
    std::copy(mine.begin(), mine.end(), padded.data_ptr<float>());
    std::vector<float> all;
    const std::vector<at::Tensor> gathered = experiment.ranks->all_gather(padded, kSite);
    for (std::size_t rank = 0; rank < counts.size(); ++rank) {
      const float* first = gathered[rank].const_data_ptr<float>();
      all.insert(all.end(), first, first + counts[rank]);
    }
    metric->set_rows(std::move(all));
  }
}

/// The metric's values by name; the first time that one is undefined, a line says why.
void add_values(const Experiment& experiment, components::metric::Metric& metric, EvalResult& result) {
  const std::vector<std::string> names = metric.names();
  const std::vector<double> values = metric.values();
  RUNNER_ASSERT(names.size() == values.size(), "each value has a name");
  std::string undefined;
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (std::isnan(values[i]) && undefined.empty()) undefined = result.data_set + "/" + names[i];
    result.values.emplace_back(names[i], values[i]);
  }
  if (undefined.empty() || experiment.rank() != 0 || !metric.first_notice()) return;
  core::log_warning(undefined + " is undefined (NaN): " + metric.why_undefined());
}

/// Whether anything but the loss may look at the model's output. With formats by block the projection has its block's,
/// which the loss does not know.
bool reads_output(const Experiment& experiment, const EvalOptions& options) {
  return !experiment.callbacks.empty() || options.autocast.by_block ||
         std::any_of(experiment.metrics.begin(), experiment.metrics.end(), [](const auto& metric) {
           const std::vector<std::string> read = metric->reads();
           return std::find(read.begin(), read.end(), components::kOutput) != read.end();
         });
}

components::generation::BeamOptions::Stopping stopping_of(sections::eval::EarlyStopping when) {
  using Stopping = components::generation::BeamOptions::Stopping;
  switch (when) {
    case sections::eval::EarlyStopping::kFalse: return Stopping::kEstimate;
    case sections::eval::EarlyStopping::kTrue: return Stopping::kFull;
    case sections::eval::EarlyStopping::kNever: return Stopping::kNever;
  }
  return Stopping::kEstimate;
}

/// Gives texts of a batch, from sample `first` of the set on, to the metrics that judge them.
void judge_texts(const Experiment& experiment, components::generation::Answers& texts, std::int64_t first,
                 const components::TensorMap& batch) {
  const std::int64_t most = experiment.recipe.eval->generate->max_samples.value_or(components::data::kEndless);
  texts.judge(batch, std::max<std::int64_t>(0, most - first), [&](const std::string& told, const std::string& right) {
    for (const auto& metric : experiment.metrics) metric->judge_text(told, right);
  });
}

/// Gives the answers to the questions of a set to the metrics that judge texts.
void judge_answers(const Experiment& experiment, const components::data::Questions& questions,
                   const SpanAnswers& answers) {
  for (std::size_t i = 0; i < questions.all.size(); ++i) {
    const auto answer = answers.answer_to(i);
    if (!answer) continue;
    std::vector<std::string> right = questions.all[i].answers;
    if (right.empty()) right.emplace_back();
    for (const auto& metric : experiment.metrics) metric->judge_answer(answer->text, right);
  }
}

/// Those that metrics of texts judge; nothing where none does.
const components::data::Questions* judged_questions(const Experiment& experiment,
                                                    const components::data::Dataset& data) {
  const bool are_judged = std::any_of(experiment.metrics.begin(), experiment.metrics.end(),
                                      [](const auto& metric) { return metric->judges_answers(); });
  return are_judged ? data.questions() : nullptr;
}

/// Passes over a set; false when interrupted. Where memory runs out in one process, all throw.
bool make_passes(const Experiment& experiment, const EvalOptions& options, const std::function<bool()>& passes) {
  bool complete = false;
  std::exception_ptr out_of_memory;
  try {
    complete = passes();
  } catch (const std::exception& error) {
    // If rank 0 reads for all, it would keep sending batches that no rank takes.
    if (experiment.ranks == nullptr || options.rank_0_reads || !is_out_of_memory(error)) throw;
    out_of_memory = std::current_exception();
  }
  if (experiment.ranks != nullptr) share_out_of_memory(*experiment.ranks, out_of_memory);
  return complete;
}

/// What the loss has to know of the whole set, as a mean over it; nothing when interrupted.
std::optional<double> estimate_of(const Experiment& experiment, const components::data::Dataset& data,
                                  const EvalOptions& options) {
  double sum = 0;
  std::int64_t count = 0;
  const bool complete = make_passes(experiment, options, [&] {
    return predict(experiment, data, options, [&](std::int64_t, const components::TensorMap& batch) {
      const components::Autocast autocast(options.loss_alone ? options.autocast : components::AutocastOptions{});
      sum += experiment.loss->estimate_of(batch).item<double>();
      count += experiment.loss->count(batch);
    });
  });
  const at::Tensor sums = at::tensor({complete ? 0.0 : 1.0, sum, static_cast<double>(count)}, at::kDouble);
  if (experiment.ranks != nullptr) experiment.ranks->begin_all_reduce(sums, "the evaluation's estimate")->wait();
  const auto* values = sums.const_data_ptr<double>();
  if (values[0] != 0.0) return std::nullopt;
  return values[1] / std::max(1.0, values[2]);
}

}  // namespace

std::optional<EvalResult> evaluate(const Experiment& experiment, const std::string& name,
                                   const components::data::Dataset& data, const EvalOptions& options) {
  const auto& clock = core::system_clock();
  const std::int64_t begin_ns = clock.monotonic_ns();
  EvalResult result;
  result.data_set = name;
  const std::size_t means = 1 + experiment.loss->further_means();
  components::loss::Figures loss{std::vector<double>(means), std::vector<std::int64_t>(means)};
  const std::vector<std::string> figure_names = experiment.loss->figure_names();
  experiment.loss->take_figures();
  for (const auto& metric : experiment.metrics) metric->reset();
  for (const BuiltCallback& one : experiment.callbacks) one.callback->on_eval_begin(name, data);
  EvalOptions how = options;
  how.loss_alone = options.loss_alone && !reads_output(experiment, options);
  std::optional<components::generation::Answers> texts;
  if (const auto& generate = experiment.recipe.eval->generate) {
    texts.emplace(*experiment.model, data.tokenizer(),
                  components::generation::Answers::Options{
                      generate->max_new_tokens,
                      {generate->no_repeat_ngram_size, generate->min_new_tokens},
                      {generate->num_beams, generate->length_penalty, stopping_of(generate->early_stopping)},
                      experiment.model->positions(),
                      options.autocast,
                      options.interrupted});
  }
  const components::data::Questions* const questions = judged_questions(experiment, data);
  std::optional<SpanAnswers> answers;
  if (questions != nullptr) answers.emplace(*questions);
  std::optional<double> estimate;
  if (experiment.loss->needs_estimate()) {
    estimate = estimate_of(experiment, data, how);
    if (!estimate) return std::nullopt;
  }
  const auto losses_of = [&](const components::TensorMap& batch) {
    if (!how.loss_alone) return experiment.loss->sums(batch);
    const components::Autocast autocast(options.autocast);  // of the projection
    return experiment.loss->sums(batch);
  };
  const auto judge = [&](std::int64_t first, const components::TensorMap& read) {
    components::TensorMap batch = read;
    const std::int64_t samples = read.items().front().tensor.size(0);
    if (estimate) {
      const auto options_of_loss = at::TensorOptions(at::kFloat).device(experiment.device);
      batch.set(components::loss::kEstimate, at::full({samples}, *estimate, options_of_loss));
    }
    if (compares_outputs(experiment)) {
      experiment.step_reference->add_outputs(batch, options.autocast, !how.loss_alone);
    }
    const std::vector<double> sums = losses_of(batch);
    const std::vector<std::int64_t> counts = experiment.loss->counts(batch);
    for (std::size_t i = 0; i < means; ++i) {
      loss.sums[i] += sums[i];
      loss.counts[i] += counts[i];
    }
    result.samples += samples;
    for (const auto& metric : experiment.metrics) metric->update({batch, sums.front(), counts.front()});
    if (texts) judge_texts(experiment, *texts, first, batch);
    if (answers) answers->add(first, batch);
    for (const BuiltCallback& one : experiment.callbacks) {
      one.callback->on_eval_batch({first, batch, experiment.loss->of_samples()});
    }
  };
  const bool complete = make_passes(experiment, options, [&] { return predict(experiment, data, how, judge); });
  if (answers) {
    if (experiment.ranks != nullptr) answers->join(*experiment.ranks);
    // The windows of a question may lie with several ranks, and its answer counts once.
    if (experiment.rank() == 0) judge_answers(experiment, *questions, *answers);
  }
  components::loss::Figures figures = experiment.loss->take_figures();
  figures.sums.resize(figure_names.size());
  figures.counts.resize(figure_names.size());
  if (!join(experiment, complete, loss, figures, result)) return std::nullopt;
  join_rows(experiment);
  result.values.emplace_back("loss", components::loss::mean_of(loss.sums, loss.counts));
  for (const auto& metric : experiment.metrics) add_values(experiment, *metric, result);
  for (std::size_t i = 0; i < figure_names.size(); ++i) {
    result.values.emplace_back(figure_names[i], figures.sums[i] / static_cast<double>(figures.counts[i]));
  }
  result.seconds = static_cast<double>(clock.monotonic_ns() - begin_ns) * 1e-9;
  return result;
}

}  // namespace runner::train
