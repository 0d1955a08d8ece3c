#include "components/data/language/head_records.h"

#include <utility>
#include <vector>

#include "components/data/block_location.h"
#include "components/data/language/choice_text.h"
#include "components/data/language/labelled_text.h"
#include "components/data/language/question_windows.h"
#include "components/data/language/several_texts.h"

namespace components::data::jsonl {
namespace {

constexpr std::int64_t kStride = 128;  ///< where the key `stride` is left out

/// What the head does, and the columns that its records have, for messages.
struct OfHead {
  const char *does, *columns;
};

OfHead of_head(LabelKind kind) {
  switch (kind) {
    case LabelKind::kTexts: return {"gives vectors of texts", "name text, text_pair and negative"};
    case LabelKind::kScores: return {"gives vectors of texts", "name text, text_pair and label"};
    case LabelKind::kSpans:
      return {"answers questions", "name the question as text, its context as text_pair, and the answers as label"};
    case LabelKind::kChoices:
      return {"chooses among texts", "name the question as text, and the right choice as label"};
    default: return {"tells labels of texts", "name text, text_pair and label"};
  }
}

class HeadKeys {
 public:
  HeadKeys(const Config& config, const Inputs& inputs) : config_(config), inputs_(inputs) {}

  bool fit() {
    if (config_.loss_on != LossOn::kCompletion) refuse("loss_on", "");
    if (config_.train_on_eos != TrainOnEos::kTurn) refuse("train_on_eos", "");
    if (!config_.train_on_thinking) refuse("train_on_thinking", "");
    if (config_.chat_format && !config_.chat_format->is_null()) refuse("chat_format", "");
    if (config_.roles) refuse("roles", "");
    if (config_.streaming && !inputs_.new_rows) {
      const bool has_classes = are_targets(inputs_.labels) && !are_numbers(inputs_.labels);
      refuse("streaming", has_classes ? ", whose classes are known when all are read" : ", which are read into memory");
    }
    if (config_.packing) refuse("packing", ", each of which is a row of its own");
    if (config_.stride && inputs_.labels != LabelKind::kSpans) refuse("stride", ", of which there are no windows");
    if (config_.columns) check_columns(*config_.columns);
    return fits_;
  }

 private:
  void check_columns(const Columns& columns) {
    for (const auto& [name, column] :
         {std::pair{"prompt", &columns.prompt}, std::pair{"completion", &columns.completion},
          std::pair{"chosen", &columns.chosen}, std::pair{"rejected", &columns.rejected},
          std::pair{"messages", &columns.messages}, std::pair{"role", &columns.role},
          std::pair{"content", &columns.content}, std::pair{"system", &columns.system},
          std::pair{"tools", &columns.tools}, std::pair{"instruction", &columns.instruction},
          std::pair{"input", &columns.input}, std::pair{"output", &columns.output}}) {
      if (*column) refuse_column(name, told(), named());
    }
    if (inputs_.labels == LabelKind::kTags && columns.text_pair) {
      refuse_column("text_pair", "the model's head tells tags of words",
                    "name the field of the words as text, and that of the tags as label");
    }
    if (inputs_.labels == LabelKind::kChoices && columns.text_pair) refuse_column("text_pair", told(), named());
    if (columns.negative && inputs_.labels != LabelKind::kTexts) {
      const bool has_scores = inputs_.labels == LabelKind::kScores;
      refuse_column("negative", has_scores ? "the loss compares two texts with their score" : told(), named());
    }
    if (columns.label && inputs_.labels == LabelKind::kTexts) {
      refuse_column("label", "the loss reads no scores", "use loss: cosine_similarity, or remove label");
    }
  }

  std::string told() const { return std::string("the model's head ") + of_head(inputs_.labels).does; }
  std::string named() const { return of_head(inputs_.labels).columns; }

  void refuse(const std::string& key, const std::string& why) {
    fits_ = false;
    inputs_.diagnostics.error(location_of(inputs_.block, key),
                              "data." + inputs_.name + "." + key + " is set, but " + told() + why, "remove " + key);
  }
  void refuse_column(const std::string& name, const std::string& why, const std::string& hint) {
    fits_ = false;
    inputs_.diagnostics.error(location_of(*inputs_.block.find("columns"), name),
                              "data." + inputs_.name + ".columns." + name + " is set, but " + why, hint);
  }

  const Config& config_;
  const Inputs& inputs_;
  bool fits_ = true;
};

}  // namespace

bool fits_head(const Config& config, const Inputs& inputs) { return HeadKeys(config, inputs).fit(); }

bool fits_no_head(const Config& config, const Inputs& inputs) {
  if (config.stride) {
    inputs.diagnostics.error(location_of(inputs.block, "stride"),
                             "data." + inputs.name + ".stride is set, but the model's head does not answer questions",
                             "remove stride, or use init_from: {path: FOLDER, head: question_answering}");
    return false;
  }
  if (!config.columns) return true;
  const auto refuse = [&](const char* key, const char* what, const char* head) {
    inputs.diagnostics.error(
        location_of(*inputs.block.find("columns"), key),
        "data." + inputs.name + ".columns." + key + " is set, but the model has no head that reads " + what,
        std::string("add one, init_from: {path: FOLDER, head: ") + head + "}, or remove " + key);
    return false;
  };
  if (config.columns->text_pair) return refuse("text_pair", "two texts", "sequence_classification");
  if (config.columns->negative) return refuse("negative", "three texts", "embedding");
  return true;
}

std::function<runner::core::Result<Sequence>(const std::string& record, std::int64_t vocab_size)> encoder_of_head(
    const Config& config, const Inputs& inputs, std::shared_ptr<const tokenizer::Tokenizer> tokenizer,
    std::optional<std::int64_t> max_length) {
  const auto name = [](const std::optional<std::string>& field) { return field.value_or(""); };
  const Columns columns = config.columns.value_or(Columns{});
  if (have_vectors(inputs.labels)) {
    return SeveralTextsEncoder(
        std::move(tokenizer),
        {name(columns.text), name(columns.text_pair), name(columns.negative), name(columns.label)}, inputs.labels,
        max_length, !inputs.new_rows);
  }
  if (inputs.labels == LabelKind::kSpans) {
    return QuestionEncoder(std::move(tokenizer), {name(columns.text), name(columns.text_pair), name(columns.label)},
                           {max_length, config.stride.value_or(kStride), !inputs.new_rows});
  }
  if (inputs.labels == LabelKind::kChoices) {
    return ChoiceEncoder(std::move(tokenizer), {name(columns.text), name(columns.label)}, max_length, !inputs.new_rows);
  }
  return LabelledTextEncoder(std::move(tokenizer), {name(columns.text), name(columns.text_pair), name(columns.label)},
                             inputs.labels, max_length, !inputs.new_rows);
}

}  // namespace components::data::jsonl
