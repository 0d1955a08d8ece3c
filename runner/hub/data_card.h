#pragma once

#include <string>
#include <utility>
#include <vector>

#include "runner/core/result.h"

namespace runner::hub {

/// The files that a repository keeps its card in, and, where the card is not to be changed, settings that count more.
inline constexpr const char* kCard = "README.md";
inline constexpr const char* kCardSettings = ".huggingface.yaml";

/// A subset of a data set, as its card describes it.
struct CardSubset {
  std::string name;
  bool is_default = false;
  std::string folder = {};  ///< patterns are relative to it; "" for the repository
  /// Patterns by split, in their order. Empty: files are found by their names.
  std::vector<std::pair<std::string, std::vector<std::string>>> files = {};
};

/// `configs` of the front matter of a card. Empty without front matter, or where it has no `configs`. The Failure's
/// message follows the name of the file.
core::Result<std::vector<CardSubset>> subsets_of_card(const std::string& card);
/// The same of kCardSettings, which is YAML as a whole.
core::Result<std::vector<CardSubset>> subsets_of_settings(const std::string& yaml);

}  // namespace runner::hub
