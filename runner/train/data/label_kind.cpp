#include "runner/train/data/label_kind.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "components/tensor/tensor_spec.h"
#include "generated/section/init_from.h"
#include "runner/core/language/name_map.h"
#include "runner/registry/config_parse.h"
#include "runner/registry/registry.h"
#include "runner/resolve/model_head.h"
#include "runner/train/data/transformed_data.h"

namespace runner::train {

using components::data::LabelKind;

LabelKind label_kind(const resolve::Recipe& recipe) {
  const registry::Fragment* loss = registry::Registry::builtin().find("loss", registry::type_of(recipe.loss));
  if (loss != nullptr && loss->records == "labelled") return LabelKind::kDesirable;
  const std::string head = resolve::label_head_of(recipe.model), problem = resolve::problem_type_of(recipe.model);
  if (loss != nullptr && loss->records == "pairs") return head.empty() ? LabelKind::kNone : LabelKind::kRewards;
  if (resolve::head_of(recipe.model) == "question_answering") return LabelKind::kSpans;
  if (resolve::head_of(recipe.model) == "multiple_choice") return LabelKind::kChoices;
  if (resolve::head_of(recipe.model) == "embedding") {
    return loss != nullptr && loss->records == "scores" ? LabelKind::kScores : LabelKind::kTexts;
  }
  if (resolve::head_of(recipe.model) == "masked_lm") return LabelKind::kMasked;
  if (resolve::head_of(recipe.model) == "seq2seq_lm") return LabelKind::kWritten;
  if (head.empty()) return LabelKind::kNone;
  if (head == "token_classification") return LabelKind::kTags;
  return problem == "regression"                   ? LabelKind::kValues
         : problem == "multi_label_classification" ? LabelKind::kClasses
                                                   : LabelKind::kClass;
}

LabelKind label_kind(const resolve::Recipe& recipe, const core::Node& block) {
  const LabelKind kind = label_kind(recipe);
  const bool may_be_made = kind == LabelKind::kMasked || kind == LabelKind::kWritten;
  return may_be_made && has_transforms(block) ? LabelKind::kUnmasked : kind;
}

components::data::DecoderIds decoder_ids(const resolve::Recipe& recipe) {
  const resolve::DecoderStart ids = resolve::decoder_start_of(recipe.model);
  return {ids.start, ids.padding};
}

std::vector<std::string> label_names(const resolve::Recipe& recipe) {
  const core::Node* config = recipe.model.is_mapping() ? recipe.model.find("config") : nullptr;
  const LabelKind kind = label_kind(recipe);
  if (config == nullptr || !are_targets(kind) || are_numbers(kind) || kind == LabelKind::kScores) return {};
  return resolve::label_names_of(*config);
}

components::data::ModelClasses model_classes(const resolve::Recipe& recipe) {
  const std::vector<std::string>& excluded = recipe.init_from->exclude;
  const bool is_new = std::any_of(excluded.begin(), excluded.end(), [](const std::string& pattern) {
    return core::matches_wildcard(pattern, "head.weight");
  });
  const LabelKind kind = label_kind(recipe);
  const bool is_numbered = kind == LabelKind::kClass || kind == LabelKind::kTags;
  return {label_names(recipe), is_numbered && !is_new ? resolve::label_count_of(recipe.model) : 0, is_new};
}

std::vector<std::string> class_names(const components::data::Dataset& data) {
  const components::TensorSpec* target = data.signature().find(components::kTarget);
  std::vector<std::string> names;
  for (std::int64_t i = 0; target != nullptr && i < target->num_classes; ++i) names.push_back(data.class_name(i));
  return names;
}

std::vector<std::string> names_of_several(const components::data::Dataset& data) {
  std::vector<std::string> names = data.target_names();
  if (!names.empty()) return names;
  const std::int64_t count = data.signature().at(components::kTarget).shape.back();
  for (std::int64_t i = 0; i < count; ++i) names.push_back(std::to_string(i));
  return names;
}

std::vector<std::string> names_of_classes(const resolve::Recipe& recipe, const components::data::Dataset& data) {
  const LabelKind kind = label_kind(recipe);
  if (!are_targets(kind) || are_numbers(kind) || kind == LabelKind::kValues || kind == LabelKind::kScores) return {};
  std::vector<std::string> names = kind == LabelKind::kClasses ? data.target_names() : class_names(data);
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (names[i] != std::to_string(i)) return names;
  }
  return {};
}

}  // namespace runner::train
