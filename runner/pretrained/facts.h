#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "runner/core/node.h"
#include "runner/pretrained/model_type.h"

namespace runner::pretrained {

/// What a configuration says of a model in the roles that the table of its type has for that (`layers`,
/// `window.size`): a value of the table, or that of the field which the table names; of a list the first that has one.
class Facts {
 public:
  /// `type` and `config` outlive it.
  Facts(const ModelType& type, const core::Node& config) : type_(type), config_(config) {}
  /// Of a checked configuration.
  explicit Facts(const core::Node& config);

  /// Null where the table says nothing, and where the configuration has null.
  const core::Node* find(std::string_view role) const;
  bool has(std::string_view role) const { return find(role) != nullptr; }
  /// The field that the table names, of a list the first; "" for none.
  std::string field(std::string_view role) const;

  std::int64_t integer(std::string_view role) const;  ///< the role has a value
  std::int64_t integer(std::string_view role, std::int64_t otherwise) const;
  double number(std::string_view role, double otherwise) const;
  bool flag(std::string_view role, bool otherwise = false) const;
  std::string text(std::string_view role) const;

  /// What `word` means where the table has other names under the role; the word itself otherwise.
  std::string meaning(std::string_view role, const std::string& word) const;

  /// Whether the MLP has a gate: by the role of that name, or by how the activation's name begins.
  bool gated() const;
  /// The activation of a role, as Transformers calls it where it has no gate.
  std::string activation(std::string_view role) const;

  /// Classes of a head for them that the configuration has; 2 where it says nothing, as in Transformers.
  std::int64_t labels() const;
  std::int64_t stated_labels() const;  ///< the same; 0 where it says nothing
  /// The most ids of a text, of a model with that many positions: fewer where they are counted from behind the
  /// padding's id.
  std::int64_t longest_text(std::int64_t positions) const;
  std::int64_t head() const;       ///< features of a head of attention
  double scale_of_scores() const;  ///< before anything that goes by the layer
  /// How many positions each block looks back at, 0: at all; empty when all do.
  std::vector<std::int64_t> windows() const;
  /// Whether each block has a mixture of experts; empty when none has.
  std::vector<bool> mixtures() const;
  /// Whether each block turns by positions; empty when all do.
  std::vector<bool> rotated() const;

 private:
  const ModelType& type_;
  const core::Node& config_;
};

/// Rows of each part of a joined tensor with that many rows.
std::vector<std::int64_t> rows_of_parts(const WeightRule& rule, std::int64_t rows, const Facts& facts);

}  // namespace runner::pretrained
