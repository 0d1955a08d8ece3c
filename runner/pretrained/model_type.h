#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "runner/core/node.h"
#include "runner/core/result.h"

namespace runner::pretrained {

/// A field of a configuration, as Transformers has it.
struct Field {
  enum class Use { kRead, kNone, kOnly };
  std::string name;
  Use use = Use::kNone;            ///< the model is made by it, it changes nothing, or it may only be its `value`
  std::vector<std::string> types;  ///< JSON's: "integer", "number", "string", "boolean", "object", "array", "null"
  std::optional<double> minimum, maximum, exclusive_minimum, exclusive_maximum;
  core::Node value;                    ///< its default; of kOnly the one that is taken
  bool optional = false;               ///< of kRead: a configuration without it is left so
  std::vector<std::string> also = {};  ///< other names that Transformers takes for it
};

/// One tensor of the model and what it is made of in Transformers: one tensor, or several that are joined along their
/// first dimension. `{i}` stands for the number of a block. With `{e}`, the number of an expert, they are the matrices
/// of one expert, and the model's tensor is a stack of all experts: those of the first one joined, then the next.
struct WeightRule {
  std::string name;
  std::vector<std::string> from;
  bool transposed = false;    ///< stored as inputs by outputs
  bool else_zeros = false;    ///< a bias that Transformers always has: zeros for a model without it
  std::optional<bool> gated;  ///< it is of models whose MLP has a gate, or has none; nothing: of all
  bool else_new = false;      ///< of a head that is trained: drawn where a file has none, or one of another shape
  std::string stacked = {};   ///< of experts: the name that Transformers has for the whole stack in memory
  std::optional<bool> mixture = {};  ///< it is of blocks with a mixture of experts, or of the others; nothing: of all

  bool is_of_experts() const { return !stacked.empty(); }
  /// The names of its parts in Transformers, in order, in block `number` of a model with that many experts.
  std::vector<std::string> parts(std::int64_t number, std::int64_t experts) const;
};

/// What a class of Transformers holds beside the weights that roux reads: sizes are roles of the configuration
/// (runner/pretrained/facts.h).
struct UnreadTensor {
  std::string name;                ///< of a buffer its module alone
  std::vector<std::string> sizes;  ///< factors of its number of elements
  std::int64_t item_bytes = 4;
};

/// The kinds of layers that `layer_types` of a configuration names.
inline constexpr const char *kFullAttention = "full_attention", *kSlidingAttention = "sliding_attention";

/// What a model of a type may end with, by the name that `model.head` has for it, and the class with that head.
struct HeadName {
  std::string name, architecture;
};

/// The names that code has to know.
inline constexpr const char *kCausalLm = "causal_lm", *kMaskedLm = "masked_lm", *kSeq2SeqLm = "seq2seq_lm",
                            *kSequenceClassification = "sequence_classification",
                            *kTokenClassification = "token_classification", *kEmbedding = "embedding",
                            *kQuestionAnswering = "question_answering", *kMultipleChoice = "multiple_choice";

/// What Transformers calls the problems of a head that tells labels of a text.
inline constexpr const char *kOneLabel = "single_label_classification", *kSeveralLabels = "multi_label_classification",
                            *kRegression = "regression";

/// What roux knows of a `model_type` with one of its heads: components/model/types/<model_type>.json, with the fields
/// of common.json, which every configuration may have.
struct ModelType {
  std::string name;
  std::string head;             ///< `causal_lm`; "" for the base model without one
  std::string architecture;     ///< the class with that head
  std::vector<HeadName> heads;  ///< all that the type has
  std::string prefix;           ///< of the base model's names, which files saved without the head lack
  core::Node roles;  ///< the field of the configuration or a value, by role (runner/pretrained/facts.h); `output.*`: of
                     ///< the head
  std::vector<std::string> adapter_targets;  ///< layers that LoRA adapts where none are named, as PEFT has them
  std::vector<std::string> not_quantized;    ///< last parts of layers that keep their type there (Transformers)
  std::vector<WeightRule> weights;
  std::vector<std::string> undivided;  ///< modules that count as one layer, with `{i}` in place of a number
  std::vector<UnreadTensor> buffers;   ///< of the class, by module
  std::vector<UnreadTensor> unread;    ///< weights of the base model's class alone
  std::vector<std::pair<std::string, std::string>> old_ends;  ///< of names, now and in older files
  std::vector<std::pair<std::string, std::string>>
      memory_ends;                   ///< of names, in files and in memory where these differ
  std::vector<std::string> ignored;  ///< tensors of a file that are not taken: roux computes them
  std::vector<Field> fields;
  std::vector<std::string> metadata;  ///< fields that say nothing of the model; `*` stands for any text

  const Field* field(std::string_view name) const;
  /// The one that this is another name of; null: of none.
  const Field* field_also_called(std::string_view name) const;
  /// The rule of that tensor of the model; null where Transformers has none.
  const WeightRule* rule_of(std::string_view tensor) const;
  bool has_head(std::string_view name) const;
  /// The head of that class; "" for a class of another kind, and for the base model's: files of it say nothing of what
  /// the model is to end with.
  std::string head_of_class(std::string_view architecture) const;
  bool is_language_model() const { return head == kCausalLm || head == kMaskedLm || head == kSeq2SeqLm; }
  /// Whether it ends with classes or values, of a text or of each token.
  bool tells_labels() const { return head == kSequenceClassification || head == kTokenClassification; }
  /// Whether it ends with weights that are trained for a task, and that a file of another head does not have.
  bool has_own_head() const { return !head.empty() && !is_language_model() && head != kEmbedding; }
  /// The name that the class has for a tensor of a file, which was saved with the head or without it.
  std::string own_name(std::string_view name) const;
  /// What the class calls a tensor of a file in memory, an expert's aside.
  std::string memory_name(const std::string& name) const;
};

/// Null for a type that roux does not know, or without that head. Without a name it is the head that a configuration
/// means which names no class: `causal_lm` where the type has that, and else none.
const ModelType* find_model_type(std::string_view name, std::string_view head = "");
/// Of a checked configuration, with the head that its `architectures` name.
const ModelType& model_type_of_config(const core::Node& config);
/// Of a recipe's model: that of a `transformers` model's configuration, with its `head`; `gpt` has the names of gpt2
/// and `llama` those of llama. Null for another model.
const ModelType* model_type_of(const core::Node& model);
/// What a type needs that roux does not compute; "" for one that it knows, or knows nothing of.
std::string why_refused(std::string_view name);
/// Whether a type has that head, or with "" the class that a checked configuration names has one. Failure (exit status
/// 2) says which there are.
core::Result<void> check_head(const core::Node& config, const std::string& head);
/// Those it knows, sorted.
std::vector<std::string> model_types();

/// `h.{i}.ln_1.weight` with a number in place of `{i}`. `{e}` stays.
std::string with_number(const std::string& pattern, std::int64_t number);
/// Whether `name` is the pattern with some number, and which; -1 for a pattern without one. `{e}` stands for any
/// number.
std::optional<std::int64_t> number_in(std::string_view pattern, std::string_view name);
/// The number in place of `{e}` in such a name; nothing where the name is not the pattern, or the pattern has none.
std::optional<std::int64_t> expert_in(std::string_view pattern, std::string_view name);

}  // namespace runner::pretrained
