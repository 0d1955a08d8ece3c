#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "runner/cli/prediction/output_file.h"
#include "runner/core/node.h"
#include "runner/engine/engine.h"

namespace runner::cli {

/// What `predict` writes: one row a sample, as JSON lines, one JSON array, or CSV.
class PredictionFile final : public engine::PredictionSink {
 public:
  /// `path` "" is standard output. RunError when it cannot be written.
  PredictionFile(const std::string& path, const std::string& format);

  void begin(const engine::PredictionNames& names) override;
  /// In CSV, a value that is a list or a mapping takes one column an item; each row has the columns of the first one.
  void add(const engine::Prediction& prediction) override;
  /// RunError when the disk is full or the reader is gone.
  void finish();
  std::int64_t rows() const { return rows_; }

  /// The columns of a row in CSV, by name.
  static std::vector<std::pair<std::string, std::string>> columns(const core::Node& row);

 private:
  core::Node row_of(const engine::Prediction& prediction) const;
  void add_classes(core::Node& row, const engine::Prediction& prediction) const;
  core::Node probabilities_of(const engine::Prediction& prediction) const;
  void add_answer(core::Node& row, const engine::Prediction& prediction) const;
  void add_vectors(core::Node& row, const engine::Prediction& prediction) const;
  void add_class(core::Node& row, const engine::Prediction& prediction) const;
  core::Node values_of(const std::vector<double>& values) const;
  bool is_target(const std::string& name) const;

  OutputFile file_;
  std::string format_;
  std::int64_t rows_ = 0;
  engine::PredictionNames names_;
  std::vector<core::Node> labels_;  ///< of the classes, as they are written
};

}  // namespace runner::cli
