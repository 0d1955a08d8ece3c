#pragma once

#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "runner/core/node.h"
#include "runner/engine/engine.h"

namespace runner::cli {

/// What `predict` writes: one row a sample, as JSON lines, one JSON array, or CSV. A regular file appears under its
/// name when it is complete, so that an error leaves the earlier one as it was.
class PredictionFile final : public engine::PredictionSink {
 public:
  /// `path` "" is standard output. RunError when it cannot be written.
  PredictionFile(const std::string& path, const std::string& format);
  ~PredictionFile() override;
  PredictionFile(const PredictionFile&) = delete;
  PredictionFile& operator=(const PredictionFile&) = delete;

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
  void add_class(core::Node& row, const engine::Prediction& prediction) const;
  core::Node values_of(const std::vector<double>& values) const;
  bool is_target(const std::string& name) const;
  void put(const std::string& text);
  [[noreturn]] void fail(const std::string& why) const;

  std::string path_, written_path_;  ///< `written_path_`: what is renamed to `path_`; the same for a device
  std::string format_;
  std::unique_ptr<std::FILE, int (*)(std::FILE*)> owned_;
  std::FILE* file_ = nullptr;
  std::int64_t rows_ = 0;
  engine::PredictionNames names_;
  std::vector<core::Node> labels_;  ///< of the classes, as they are written
};

}  // namespace runner::cli
