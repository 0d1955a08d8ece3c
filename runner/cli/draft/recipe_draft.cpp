#include "runner/cli/draft/recipe_draft.h"

#include <algorithm>
#include <utility>

#include "runner/cli/flags.h"
#include "runner/core/scalar.h"
#include "runner/core/text/text.h"

namespace runner::cli {
namespace {

using Kind = Task::Kind;

constexpr double kEncoderDecoderRate = 1e-4;  ///< T5 learns little at the rates of decoders
constexpr std::int64_t kCutWindow = 568;      ///< tokens of which 512 are left to read, as T5 was trained
constexpr std::int64_t kHeldOutMin = 20;      ///< records, of which a twentieth is one

/// What goes by the task.
struct Choices {
  const char* head;     ///< "": that of the folder
  const char* loss;     ///< "": that of the head
  const char* metrics;  ///< "": the loss alone
  double rate, adapter_rate;
  int epochs, global_batch;
};

Choices choices_of(const Task& task) {
  switch (task.kind) {
    case Kind::kChat:
    case Kind::kCompletion: return {"", "", "[perplexity]", 1e-5, 2e-4, 3, 16};
    case Kind::kText: return {"", "", "[perplexity]", 1e-5, 2e-4, 1, 16};
    case Kind::kMaskedText: return {"masked_lm", "", "[perplexity]", 5e-5, 2e-4, 3, 32};
    case Kind::kPreferences: return {"", "{type: dpo, beta: 0.1}", "", 1e-6, 1e-5, 1, 16};
    case Kind::kReward: return {"reward", "", "", 1e-5, 1e-4, 1, 16};
    case Kind::kFeedback: return {"", "{type: kto, beta: 0.1}", "", 1e-6, 1e-5, 1, 16};
    case Kind::kClass:
      return {"sequence_classification",
              "",
              task.classes > 2 ? "[accuracy, {type: f1, average: macro}]" : "[accuracy, f1]",
              2e-5,
              2e-4,
              3,
              16};
    case Kind::kClasses: return {"sequence_classification", "", "[{type: f1, average: macro}]", 2e-5, 2e-4, 3, 16};
    case Kind::kValue: return {"sequence_classification", "", "[rmse, pearson]", 2e-5, 2e-4, 3, 16};
    case Kind::kTags:
      return {"token_classification", "", task.has_entities ? "[entity_f1]" : "[accuracy]", 2e-5, 2e-4, 3, 16};
    case Kind::kAnswer: return {"question_answering", "", "[exact_match, squad_f1]", 3e-5, 2e-4, 2, 16};
    case Kind::kChoice: return {"multiple_choice", "", "[accuracy]", 2e-5, 2e-4, 3, 16};
    case Kind::kVector: return {"embedding", "", "", 2e-5, 2e-4, 1, 32};
  }
  return {};
}

std::string rate_text(double rate) {
  const int power = rate >= 1e-4 ? -4 : rate >= 1e-5 ? -5 : -6;
  double digits = rate;
  for (int i = 0; i < -power; ++i) digits *= 10;
  return core::short_number(digits, 2) + ".0e" + std::to_string(power);
}

/// As YAML: in quotes where it would be read as something else than a text.
std::string written(const std::string& text) {
  const auto is_plain = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-' ||
           c == '.' || c == '/';
  };
  const auto read = core::resolve_scalar(text);
  const bool is_word = !text.empty() && text.front() != '-' && std::all_of(text.begin(), text.end(), is_plain);
  return is_word && read.ok() && read.value().is_string() ? text : recipe_text(text);
}

std::string paths_text(const std::vector<std::string>& paths) {
  if (paths.size() == 1) return written(paths.front());
  return "[" + core::joined(paths, ", ", [](const std::string& path) { return written(path); }) + "]";
}

/// Lines with comments behind them.
class Lines {
 public:
  void add(std::string line, const std::string& comment = "") {
    if (!comment.empty()) line += "  # " + comment;
    text_ += line + "\n";
  }
  const std::string& text() const { return text_; }

 private:
  std::string text_;
};

std::string set_text(const RecipeDraft& draft, const std::vector<std::string>& paths, const std::string& split) {
  std::string text = draft.is_plain_text ? "{type: text, path: " : "{type: jsonl, path: ";
  text += paths_text(paths);
  if (!split.empty()) text += ", split: \"" + split + "\"";
  if (!draft.task.columns.empty()) {
    text += ", columns: {" +
            core::joined(draft.task.columns, ", ",
                         [](const auto& column) { return column.first + ": " + written(column.second); }) +
            "}";
  }
  if (!draft.chat_format.empty()) text += ", chat_format: " + draft.chat_format;
  const bool is_cut = draft.task.kind == Kind::kText && draft.is_encoder_decoder;
  const std::int64_t window = is_cut ? std::min(draft.window, kCutWindow) : draft.window;
  if (draft.is_plain_text || is_cut) text += ", max_seq_len: " + std::to_string(window);
  if (is_cut) text += ", transforms: [{type: span_corruption}]";
  if (draft.task.kind == Kind::kText && !draft.is_plain_text && !is_cut) text += ", packing: true";
  if (draft.task.kind == Kind::kMaskedText) text += ", transforms: [{type: mask_tokens}]";
  return text + "}";
}

bool holds_out(const RecipeDraft& draft) {
  return draft.val.empty() && !draft.is_whole_set && draft.records >= kHeldOutMin;
}

/// A part of each class: the split of a file that is sorted may have no record of one.
std::string fold_text(const RecipeDraft& draft) {
  return "{type: fold, folds: 20, of: " + set_text(draft, draft.train, "") + "}";
}

void add_data(Lines& lines, const RecipeDraft& draft) {
  lines.add("data:");
  const std::string of = word_of(draft.task.kind) + std::string(": ") + draft.task.of;
  if (holds_out(draft) && draft.task.is_sorted) {
    lines.add("  train: " + fold_text(draft), of);
    return lines.add("  val: " + fold_text(draft), "held out, some of each class: the file is sorted by it");
  }
  lines.add("  train: " + set_text(draft, draft.train,
                                   holds_out(draft)     ? ":95%"
                                   : draft.is_whole_set ? "train"
                                                        : ""),
            of);
  if (!draft.val.empty()) lines.add("  val: " + set_text(draft, draft.val, ""));
  if (holds_out(draft))
    lines.add("  val: " + set_text(draft, draft.train, "95%:"), "held out: there is no file for it");
}

}  // namespace

std::int64_t global_batch_of(const RecipeDraft& draft) { return choices_of(draft.task).global_batch; }

std::string text_of(const RecipeDraft& draft) {
  const Choices choices = choices_of(draft.task);
  const bool is_judged = !draft.val.empty() || holds_out(draft);
  Lines lines;
  lines.add("recipe_version: 1");
  lines.add("run_name: " + draft.run_name);
  const std::string path = written(draft.model), head = choices.head;
  const std::string loose = draft.has_new_tensors ? ", strict: false" : "";
  lines.add("init_from: " + (head.empty() ? path : "{path: " + path + ", head: " + head + loose + "}"),
            draft.model_type + (draft.has_new_tensors ? "; it has no such head, which begins at random" : ""));
  if (draft.task.kind == Kind::kValue) lines.add("model: {num_labels: 1}", "a number is told, and no class");
  if (draft.task.kind == Kind::kClasses)
    lines.add("model: {problem_type: multi_label_classification}", "a text has several classes");
  if (draft.is_adapter)
    lines.add("adapters: [{type: lora, r: 16, lora_alpha: 32, target_modules: all-linear}]", draft.why_adapter);
  add_data(lines, draft);
  if (*choices.loss != '\0') lines.add("loss: " + std::string(choices.loss));
  const double whole = draft.is_encoder_decoder ? kEncoderDecoderRate : choices.rate;
  lines.add("optimizer: {type: adamw, lr: " + rate_text(draft.is_adapter ? choices.adapter_rate : whole) + "}",
            draft.is_adapter ? "usual for LoRA" : "usual for all weights");
  lines.add("lr_scheduler: {type: linear, warmup_ratio: 0.1}");
  if (!draft.precision.empty()) lines.add("precision: " + draft.precision, "the fastest here");
  const std::int64_t global = choices.global_batch;
  lines.add("training: {max_epochs: " + std::to_string(choices.epochs) + ", global_batch_size: " +
                std::to_string(global) + ", micro_batch_size: " + std::to_string(draft.micro_batch_size) + "}",
            draft.why_micro);
  if (is_judged) {
    const std::string metrics = *choices.metrics == '\0' ? "" : ", metrics: " + std::string(choices.metrics);
    const std::string steps = choices.epochs > 1 ? "1ep" : "0.25ep";
    lines.add("eval: {eval_steps: " + steps + metrics + "}");
    lines.add("checkpoint: {save_steps: " + steps + ", save_total_limit: 2, save_best: true, monitor: val/loss}",
              "the best one stays");
  } else {
    lines.add("checkpoint: {save_steps: 1ep, save_total_limit: 2}",
              "nothing is held out, so none is known to be the best");
  }
  return lines.text();
}

}  // namespace runner::cli
