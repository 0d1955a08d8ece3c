#include "runner/cli/prediction/returned_tensors.h"

#include <cstdio>
#include <utility>

#include "runner/artifact/io/io.h"
#include "runner/artifact/io/output_draft.h"
#include "runner/artifact/safetensors_writer.h"
#include "runner/cli/prediction/work_signals.h"
#include "runner/core/error.h"
#include "runner/core/platform/files.h"

namespace runner::cli {
namespace {

constexpr const char* kSafetensors = "safetensors";

std::string line_of(const engine::Prediction& prediction) {
  std::string line = "{\"index\": " + std::to_string(prediction.index) + ", \"shape\": [";
  for (std::size_t i = 0; i < prediction.shape.size(); ++i) {
    line += (i == 0 ? "" : ", ") + std::to_string(prediction.shape[i]);
  }
  line += "], \"values\": [";
  char number[32];
  for (std::size_t i = 0; i < prediction.values.size(); ++i) {
    const double value = prediction.values[i];
    if (prediction.whole) {
      std::snprintf(number, sizeof number, "%lld", static_cast<long long>(value));
    } else if (value == value && value - value == 0) {
      std::snprintf(number, sizeof number, "%.9g", value);
    } else {
      std::snprintf(number, sizeof number, "\"%s\"", value != value ? "nan" : value > 0 ? "inf" : "-inf");
    }
    if (i > 0) line += ", ";
    line += number;
  }
  return line + "]}";
}

}  // namespace

ReturnedTensors::ReturnedTensors(const std::string& path, const std::string& format) : path_(path), format_(format) {}

void ReturnedTensors::keep(const engine::Prediction& prediction) {
  Tensor tensor{std::to_string(prediction.index), prediction.shape, {}, {}};
  for (const double value : prediction.values) {
    if (prediction.whole) {
      tensor.integers.push_back(static_cast<std::int64_t>(value));
    } else {
      tensor.floats.push_back(static_cast<float>(value));
    }
  }
  tensors_.push_back(std::move(tensor));
}

void ReturnedTensors::add(const engine::Prediction& prediction) {
  ++rows_;
  if (format_ == kSafetensors || format_.empty()) keep(prediction);
  if (format_ == kSafetensors) return;
  const char* before = format_ != "json" ? "" : rows_ == 1 ? "[\n" : ",\n";
  text_ += before + line_of(prediction) + (format_ == "json" ? "" : "\n");
  if (format_.empty() && static_cast<std::int64_t>(text_.size()) > kTextBytesMax) {
    if (path_.empty()) {
      throw core::RunError("the values would be more than 1 MB of text on standard output",
                           "add --output FILE.safetensors, or --format jsonl", core::kExitUsage);
    }
    format_ = kSafetensors;
    text_.clear();
  } else if (path_.empty() && !format_.empty()) {
    if (std::fwrite(text_.data(), 1, text_.size(), stdout) != text_.size()) {
      throw core::RunError("cannot write to standard output: write failed");
    }
    text_.clear();
  }
}

void ReturnedTensors::write_tensors() const {
  std::vector<artifact::TensorBytes> all;
  for (const Tensor& tensor : tensors_) {
    const bool whole = !tensor.integers.empty();
    const void* data = whole ? static_cast<const void*>(tensor.integers.data()) : tensor.floats.data();
    const std::size_t bytes =
        whole ? tensor.integers.size() * sizeof(std::int64_t) : tensor.floats.size() * sizeof(float);
    all.push_back({tensor.name, whole ? "I64" : "F32", tensor.shape, data, static_cast<std::int64_t>(bytes)});
  }
  artifact::Io& io = artifact::system_io();
  artifact::OutputDraft draft(io, path_);
  const DraftGuard guard(draft.path());
  artifact::write_safetensors(io, draft.path(), std::move(all), {}, {});
  draft.publish();
}

void ReturnedTensors::finish() {
  if (format_ == kSafetensors) return write_tensors();
  if (format_ == "json") text_ += rows_ == 0 ? "[]\n" : "\n]\n";
  if (!path_.empty()) {
    core::write_output(path_, text_).value();
  } else if (std::fwrite(text_.data(), 1, text_.size(), stdout) != text_.size() || std::fflush(stdout) != 0) {
    throw core::RunError("cannot write to standard output: write failed");
  }
}

}  // namespace runner::cli
