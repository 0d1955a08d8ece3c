#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "runner/core/node.h"
#include "runner/words/reader.h"

// What the rules for arguments of Transformers' Trainer share.

namespace runner::cli {

/// Which program reads the arguments, and what it trains.
struct TrainerMethod {
  enum class Tool { kTrainer, kTrl, kFactory, kFactoryV1 };
  Tool tool = Tool::kTrainer;
  bool is_of_pairs = false;
  std::string pair_loss = "dpo";  ///< with is_of_pairs: the type of roux's loss
  bool is_pretraining = false;    ///< LLaMA-Factory's stage pt
  core::Node sets = {};           ///< of LLaMA-Factory's version 1, see factory_v1_sets()
  const core::Node* script = nullptr;

  /// Whether the pairs train a model that tells rewards.
  bool is_reward() const { return is_of_pairs && pair_loss == "reward"; }
  bool is_trl() const { return tool == Tool::kTrl; }
  /// Of either version.
  bool is_factory() const { return tool == Tool::kFactory || is_factory_v1(); }
  bool is_factory_v1() const { return tool == Tool::kFactoryV1; }
};

/// The name of the table of words.
std::string_view words_of(const TrainerMethod& method);

/// `config.find(key)` where it is a boolean `value`.
bool says(const core::Node& config, std::string_view key, bool value);

/// What the table makes of a value; nothing where it is not taken.
std::optional<core::Node> taken(const words::Reader& reader, const TrainerMethod& method, std::string_view key,
                                const core::Node& value);

}  // namespace runner::cli
