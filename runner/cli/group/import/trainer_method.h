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
  enum class Tool { kTrainer, kTrl, kFactory };
  Tool tool = Tool::kTrainer;
  bool is_of_pairs = false;
  std::string pair_loss = "dpo";  ///< with is_of_pairs: the type of roux's loss
  bool is_pretraining = false;    ///< LLaMA-Factory's stage pt
  const core::Node* script = nullptr;

  bool is_trl() const { return tool == Tool::kTrl; }
  bool is_factory() const { return tool == Tool::kFactory; }
};

/// The name of the table of words.
std::string_view words_of(const TrainerMethod& method);

/// `config.find(key)` where it is a boolean `value`.
bool says(const core::Node& config, std::string_view key, bool value);

/// What the table makes of a value; nothing where it is not taken.
std::optional<core::Node> taken(const words::Reader& reader, const TrainerMethod& method, std::string_view key,
                                const core::Node& value);

}  // namespace runner::cli
