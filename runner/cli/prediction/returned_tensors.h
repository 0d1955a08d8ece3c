#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "runner/cli/prediction/prediction_file.h"
#include "runner/engine/engine.h"

namespace runner::cli {

/// What `predict --return` writes: JSON lines `{"index": 0, "shape": [5, 64], "values": [...]}` with 9 digits, which
/// identify a float32, one array of them, or a safetensors file with a tensor for each sample, named by its number.
class ReturnedTensors final : public engine::PredictionSink {
 public:
  /// `format`: "jsonl", "json", "safetensors", or "" for lines up to kTextBytesMax and safetensors beyond. `path` ""
  /// is standard output, which takes text only.
  ReturnedTensors(const std::string& path, const std::string& format);

  void begin(const engine::PredictionNames&) override {}
  /// RunError (exit status 2) when more text than kTextBytesMax would go to standard output unasked.
  void add(const engine::Prediction& prediction) override;
  /// RunError when the disk is full or the reader is gone.
  void finish();
  std::int64_t rows() const { return rows_; }

  static constexpr std::int64_t kTextBytesMax = 1'000'000;

 private:
  struct Tensor {
    std::string name;
    std::vector<std::int64_t> shape, integers;
    std::vector<float> floats;
  };

  void keep(const engine::Prediction& prediction);
  void write_tensors() const;

  std::string path_, format_;
  std::int64_t rows_ = 0;
  std::string text_;             ///< while the format is open, and of what is written at the end
  std::vector<Tensor> tensors_;  ///< while it may become safetensors
};

}  // namespace runner::cli
