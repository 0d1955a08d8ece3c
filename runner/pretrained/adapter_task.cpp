#include "runner/pretrained/adapter_task.h"

#include <algorithm>
#include <iterator>
#include <string_view>

#include "runner/pretrained/model_type.h"

namespace runner::pretrained {
namespace {

/// PEFT's TaskType, and the head that it stands for.
struct Task {
  std::string_view name, head;
};
constexpr Task kTasks[] = {{"CAUSAL_LM", kCausalLm},
                           {"SEQ_2_SEQ_LM", kSeq2SeqLm},
                           {"SEQ_CLS", kSequenceClassification},
                           {"TOKEN_CLS", kTokenClassification},
                           {"QUESTION_ANS", kQuestionAnswering},
                           {"FEATURE_EXTRACTION", kEmbedding}};

}  // namespace

std::string task_of_head(const std::string& head) {
  const auto* const task =
      std::find_if(std::begin(kTasks), std::end(kTasks), [&](const Task& t) { return t.head == head; });
  return task != std::end(kTasks) ? std::string(task->name) : "";
}

std::string head_of_task(const std::string& task) {
  const auto* const found =
      std::find_if(std::begin(kTasks), std::end(kTasks), [&](const Task& t) { return t.name == task; });
  return found != std::end(kTasks) ? std::string(found->head) : "";
}

std::vector<std::string> task_names() {
  std::vector<std::string> names;
  for (const Task& task : kTasks) names.emplace_back(task.name);
  return names;
}

}  // namespace runner::pretrained
