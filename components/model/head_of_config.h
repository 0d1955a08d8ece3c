#pragma once

#include <optional>
#include <string>

#include "components/model/stack.h"
#include "generated/model/transformers.h"  // Config
#include "runner/core/node.h"
#include "runner/pretrained/facts.h"
#include "runner/pretrained/model_type.h"

namespace components::model::transformers {

/// What the model ends with, in `head`. False, and an error, when recipe, configuration and data do not fit together.
/// `checked`: the configuration.
bool settle_head(const Config& config, const runner::pretrained::ModelType& type,
                 const runner::pretrained::Facts& facts, const runner::core::Node& checked, const Inputs& inputs,
                 HeadOptions& head);

/// Of that role. Nothing, and an error, when roux does not compute what the configuration names.
std::optional<part::Activation> activation_of(const runner::pretrained::Facts& facts, const std::string& role,
                                              const Inputs& inputs);

}  // namespace components::model::transformers
