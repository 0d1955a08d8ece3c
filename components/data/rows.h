#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "components/data/data.h"

namespace components::data {

/// Samples that are rows of numbers in memory: tables and synthetic data.
class Rows : public Dataset {
 public:
  /// Either `values` or `classes` is the target; the signature says which. `inputs` is empty under `header_only`.
  struct Content {
    std::int64_t size = 0;              ///< N
    std::vector<float> inputs;          ///< [N, F]
    std::vector<float> values;          ///< [N, O]
    std::vector<std::int64_t> classes;  ///< [N]
  };

  Rows(BatchSpec signature, Content content, std::string description);

  const BatchSpec& signature() const override { return signature_; }
  std::int64_t size() const override { return content_.size; }
  void fetch(std::span<const std::int64_t> indices, TensorMap& batch) const override;
  std::string describe() const override { return description_; }
  std::int64_t memory_bytes() const override;
  /// `input 1`, `input 2`, ...; none if there are too many to show.
  std::vector<std::pair<std::string, runner::core::Node>> columns_of(std::int64_t index) const override;

  /// `input` float32 [batch, in_features]; `target` float32 [batch, out_features], or int64 [batch] below
  /// `num_classes`.
  static BatchSpec regression_signature(std::int64_t in_features, std::int64_t out_features);
  static BatchSpec classification_signature(std::int64_t in_features, std::int64_t num_classes);

 protected:
  std::span<const float> inputs_of(std::int64_t index) const;

 private:
  BatchSpec signature_;
  Content content_;
  std::string description_;
};

}  // namespace components::data
