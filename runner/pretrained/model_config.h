#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "runner/core/node.h"
#include "runner/core/result.h"

namespace runner::pretrained {

/// Shape of a tensor of the trained model; empty when it has none of that name.
using ShapeOf = std::function<std::vector<std::int64_t>(const std::string& name)>;

/// The configuration of Transformers (as version 5 writes it) that computes what the model of a resolved recipe
/// computes: the recorded one of a `transformers` model; `gpt` as gpt2; `llama` as llama, mistral or qwen2.
/// `labels`: names of the classes of a head, where they are others than the configuration's.
/// Failure: Transformers has no such model; the hint names the key.
core::Result<core::Node> config_of_recipe(const core::Node& resolved, const ShapeOf& shape_of,
                                          const std::vector<std::string>& labels = {});

/// Gives a configuration the names of the classes of its head: those given, the configuration's where it has as many,
/// or Transformers' own.
void set_labels(std::int64_t count, std::vector<std::string> labels, core::Node& config);

}  // namespace runner::pretrained
