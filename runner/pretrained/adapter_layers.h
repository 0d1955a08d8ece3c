#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runner/core/node.h"
#include "runner/core/result.h"
#include "runner/pretrained/model_type.h"

namespace runner::pretrained {

/// The adapter with the names of tensors and the folder that PEFT gives one adapter alone.
inline constexpr const char* kDefaultAdapter = "default";

/// A tensor of a roux checkpoint that an adapter has: `h.0.attn_qkv.q_proj.lora_A.weight`, of one that is called
/// `style` `h.0.attn_qkv.q_proj.lora_A.style.weight`.
struct AdapterTensor {
  enum class Part { kA, kB, kMagnitude };
  std::string layer;  ///< `h.0.attn_qkv.q_proj`
  Part part = Part::kA;
  std::string adapter;  ///< `default` or another name
};

/// Nothing for a tensor of the model itself.
std::optional<AdapterTensor> adapter_tensor(std::string_view name);
std::string name_of_tensor(const AdapterTensor& tensor);

/// The `name` in a block of the recipe; `default` where it says none, as runs of earlier versions.
std::string adapter_of_block(const core::Node& block);

/// Transformers' name of the layer that roux calls so, alone or joined with others; "" for none.
std::string module_of_layer(const ModelType& type, const std::string& layer);

/// Whether PEFT's modules_to_save, a list of texts or null, names a module that a tensor is of, `model.norm` or `model`
/// of `model.norm.weight`: as the end of the module's name.
bool is_saved_module(const core::Node* modules_to_save, std::string_view tensor);

/// Whether the head of a type tells labels, of texts or of their tokens.
bool has_head_of_labels(const ModelType& type);
/// Whether PEFT calls such a head so, of one type or another.
bool is_head_module(std::string_view name);
/// modules_to_save, a list of texts or null, with what PEFT adds where the head tells labels. `type`: null for a model
/// that Transformers does not have.
core::Node saved_modules(const core::Node* modules_to_save, const ModelType* type);

/// PEFT's names of all linear layers in the blocks of a model.
std::vector<std::string> linear_modules(const ModelType& type, const core::Node& config);

/// Which of these modules of a model the checked configuration of an adapter changes, as PEFT chooses them by
/// target_modules, exclude_modules and layers_to_transform. Nothing where it chooses by an expression of Python's that
/// is none here.
std::optional<std::vector<std::string>> adapted_modules(const core::Node& config,
                                                        const std::vector<std::string>& modules);

/// The shortest names by which PEFT finds these modules and no other linear layers of a model with `blocks` blocks.
core::Node target_modules(const ModelType& type, const core::Node& config, const std::vector<std::string>& modules);

/// Whether a folder of PEFT can hold all that a resolved recipe trains. Failure (exit status 2) names the key.
core::Result<void> check_adapter_export(const core::Node& resolved);

}  // namespace runner::pretrained
