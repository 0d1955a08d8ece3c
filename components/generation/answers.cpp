#include "components/generation/answers.h"

#include <algorithm>
#include <utility>

#include "components/generation/generator.h"
#include "components/tensor/tensors.h"
#include "runner/core/error.h"

namespace components::generation {
namespace {

using Ids = std::vector<std::int32_t>;

/// What is generated behind each prompt, without the token that ends it.
class Told final : public Receiver {
 public:
  Told(std::size_t count, const Ids& end_ids, const std::function<bool()>& stops)
      : of(count), end_ids_(end_ids), stops_(stops) {}

  bool token(std::size_t sequence, std::int32_t id, float) override {
    if (std::find(end_ids_.begin(), end_ids_.end(), id) == end_ids_.end()) of[sequence].push_back(id);
    return true;
  }
  void ended(std::size_t, End) override {}
  bool interrupted() override { return stops_ && stops_(); }

  std::vector<Ids> of;

 private:
  const Ids& end_ids_;
  const std::function<bool()>& stops_;
};

}  // namespace

Answers::Answers(const model::Model& model, std::shared_ptr<const tokenizer::Tokenizer> tokenizer, Options options)
    : model_(model), tokenizer_(std::move(tokenizer)), options_(std::move(options)) {
  if (const auto end = tokenizer_->special().eos) end_ids_.push_back(*end);
}

Answers::Task Answers::task_of(const std::int64_t* ids, const std::int64_t* target, const bool* real,
                               std::int64_t length) {
  std::int64_t end = length;
  while (end > 0 && target[end - 1] == kPadTarget) --end;
  std::int64_t begin = end;
  while (begin > 0 && target[begin - 1] != kPadTarget) --begin;
  Task task;
  if (begin == end || begin == 0) return task;  // a text without a prompt is no answer
  // A position predicts the next one: the prompt ends where the first learnt position stands.
  for (std::int64_t i = 0; i <= begin; ++i) {
    if (real == nullptr || real[i]) task.prompt.push_back(static_cast<std::int32_t>(ids[i]));
  }
  task.right.assign(target + begin, target + end);
  return task;
}

Answers::Task Answers::task_of_source(const Places& source, const Places& target) {
  Task task;
  for (std::int64_t i = 0; i < source.length; ++i) {
    if (source.real == nullptr || source.real[i]) task.prompt.push_back(static_cast<std::int32_t>(source.ids[i]));
  }
  for (std::int64_t i = 0; i < target.length; ++i) {
    if (target.ids[i] != kPadTarget) task.right.push_back(static_cast<std::int32_t>(target.ids[i]));
  }
  return task;
}

std::vector<Answers::Task> Answers::tasks_of(const TensorMap& batch, std::int64_t rows) const {
  const at::Tensor ids = batch.at(kInput).to(at::kCPU).contiguous();
  const at::Tensor targets = batch.at(kTarget).to(at::kCPU).contiguous();
  const at::Tensor* mask = batch.find(kAttentionMask);
  const at::Tensor real = mask != nullptr ? mask->to(at::kCPU).to(at::kBool).contiguous() : at::Tensor();
  const std::int64_t length = ids.size(1), outputs = targets.size(1);
  std::vector<Task> tasks;
  for (std::int64_t row = 0; row < std::min(ids.size(0), rows); ++row) {
    const auto* const of_row = ids.const_data_ptr<std::int64_t>() + row * length;
    const auto* const target = targets.const_data_ptr<std::int64_t>() + row * outputs;
    const bool* const is_real = real.defined() ? real.const_data_ptr<bool>() + row * length : nullptr;
    Task task = model_.decoder_start() ? task_of_source({of_row, is_real, length}, {target, nullptr, outputs})
                                       : task_of(of_row, target, is_real, length);
    if (!task.right.empty()) tasks.push_back(std::move(task));
  }
  return tasks;
}

void Answers::judge(const TensorMap& batch, std::int64_t rows, const Judge& judge) {
  const std::vector<Task> tasks = tasks_of(batch, rows);
  for (const Task& task : tasks) {
    // A turn of a conversation ends with a token of its own.
    const std::int32_t last = task.right.back();
    const bool is_known = std::find(end_ids_.begin(), end_ids_.end(), last) != end_ids_.end();
    if (tokenizer_->is_special(last) && !is_known) end_ids_.push_back(last);
  }
  const std::vector<Ids> told = answers_to(tasks);
  for (std::size_t i = 0; i < tasks.size(); ++i) judge(decoded(told[i]), decoded(tasks[i].right));
}

std::vector<Ids> Answers::answers_to(const std::vector<Task>& tasks) const {
  std::vector<Ids> answers(tasks.size()), prompts;
  std::vector<std::size_t> places;
  for (std::size_t i = 0; i < tasks.size(); ++i) {
    const auto length = static_cast<std::int64_t>(tasks[i].prompt.size());
    if (options_.positions > 0 && length >= options_.positions) continue;  // nothing can follow
    prompts.push_back(tasks[i].prompt);
    places.push_back(i);
  }
  if (prompts.empty()) return answers;
  generation::Options options;
  options.max_new_tokens = options_.max_new_tokens;
  options.left_out = options_.left_out;
  options.beams = options_.beams;
  options.end_ids = end_ids_;
  options.batch = static_cast<std::int64_t>(prompts.size()) * options_.beams.count;
  options.positions = options_.positions;
  options.autocast = options_.autocast;
  Told told(prompts.size(), end_ids_, options_.interrupted);
  Generator(model_, options).generate(prompts, told);
  for (std::size_t i = 0; i < places.size(); ++i) answers[places[i]] = std::move(told.of[i]);
  return answers;
}

std::string Answers::decoded(const Ids& ids) const {
  auto text = tokenizer_->decode(ids, /*skip_special_tokens=*/true);
  if (!text) throw runner::core::RunError(text.failure().message, text.failure().hint);
  return std::move(text).value();
}

}  // namespace components::generation
