#pragma once

#include <string>
#include <vector>

#include "runner/core/node.h"
#include "runner/core/result.h"

namespace runner::pretrained {

/// What Transformers calls the problems of a head that tells labels of a text.
inline constexpr const char *kOneLabel = "single_label_classification", *kSeveralLabels = "multi_label_classification",
                            *kRegression = "regression";

/// The head of a recipe's model, a value of `model.head`; "" for a model without one, or without a model type.
std::string head_of(const core::Node& model);

/// Whether a type has that head, or with "" the class that a checked configuration names has one. Failure (exit status
/// 2) says which there are.
core::Result<void> check_head(const core::Node& config, const std::string& head);

/// The problem of a recipe's model with a head for classes: its own `problem_type`, else its configuration's, else
/// kRegression where it tells one value, and kOneLabel. A head of tokens has kOneLabel. "" for a model without one.
std::string problem_type_of(const core::Node& model);

/// Names of the classes that a configuration has, in order; empty where it has none but Transformers' `LABEL_0`.
std::vector<std::string> label_names_of(const core::Node& config);

}  // namespace runner::pretrained
