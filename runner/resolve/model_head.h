#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "runner/core/node.h"

namespace runner::resolve {

/// The head of a recipe's model, a value of `model.head`; "" for a model without one, or without a model type.
std::string head_of(const core::Node& model);

/// The head of a recipe's model where it tells labels, as `model.head` names it; "" for another model.
std::string label_head_of(const core::Node& model);

/// How the decoder of a model with one reads what it is to write: the ids that begin it and that stand for what has no
/// part in the loss.
struct DecoderStart {
  std::int32_t start = 0, padding = 0;
};
DecoderStart decoder_start_of(const core::Node& model);

/// The problem of a model with such a head: its own `problem_type`, else its configuration's, else `regression` where
/// it tells one value, and `single_label_classification`, which a head of tokens has. "" for another model.
std::string problem_type_of(const core::Node& model);

/// Names of the classes that a configuration has, in order; empty where it has none but Transformers' `LABEL_0`.
std::vector<std::string> label_names_of(const core::Node& config);

/// How many classes the configuration of a recipe's model says that its head tells, where it is of the same head; 0: it
/// does not say, or the recipe does by `num_labels`.
std::int64_t label_count_of(const core::Node& model);

}  // namespace runner::resolve
