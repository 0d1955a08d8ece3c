#include "runner/checkpoint/checkpoint_prefetch.h"

#include <ATen/Functions.h>
#include <ATen/core/Tensor.h>

#include <algorithm>
#include <exception>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

#include "runner/artifact/file_check.h"
#include "runner/artifact/manifest.h"
#include "runner/artifact/safetensors_header.h"
#include "runner/artifact/tensor_set.h"
#include "runner/checkpoint/tensor_file.h"
#include "runner/core/clock.h"
#include "runner/core/error.h"
#include "runner/core/platform/run_async.h"

namespace runner::checkpoint {

/// The tensors of one safetensors file, each in memory of its own.
struct HeldFile {
  struct Held {
    at::Tensor tensor;
    bool taken = false;
  };
  artifact::SafetensorsHeader header;
  std::unordered_map<std::string, Held> tensors;  ///< tensors that are not empty
};

namespace {

/// Length, header, then the tensors in file order.
class TensorSink final : public artifact::FileSink {
 public:
  TensorSink(std::string path, std::int64_t file_bytes, HeldFile& file, const std::atomic<bool>& cancelled)
      : path_(std::move(path)), file_bytes_(file_bytes), file_(file), cancelled_(cancelled) {}

  std::span<char> buffer_for(std::int64_t left) override {
    if (cancelled_) throw core::RunError("reading " + path_ + " was cancelled");
    if (left == file_bytes_) {
      length_.resize(static_cast<std::size_t>(std::min(left, artifact::kHeaderLengthBytes)));
      return length_;
    }
    if (text_.empty()) {
      text_.resize(static_cast<std::size_t>(artifact::safetensors_header_bytes(length_, file_bytes_, path_)));
      if (!text_.empty()) return text_;
    }
    parse();
    while (order_.at(next_)->tensor.bytes == 0) ++next_;
    const artifact::TensorBytes& bytes = order_[next_++]->tensor;
    const at::Tensor tensor = new_tensor(bytes, path_);
    file_.tensors[bytes.name].tensor = tensor;
    return {static_cast<char*>(tensor.data_ptr()), tensor.nbytes()};
  }

  /// If all tensors are empty their offsets were not requested.
  void parse() {
    if (!order_.empty()) return;
    const std::int64_t before_data = artifact::kHeaderLengthBytes + static_cast<std::int64_t>(text_.size());
    file_.header = artifact::parse_safetensors_header(text_, file_bytes_ - before_data, path_);
    order_ = file_.header.by_offset();
  }

 private:
  const std::string path_;
  const std::int64_t file_bytes_;
  HeldFile& file_;
  const std::atomic<bool>& cancelled_;
  std::string length_, text_;
  std::vector<const artifact::SafetensorsHeader::Entry*> order_;
  std::size_t next_ = 0;
};

class HeldReader final : public artifact::TensorList {
 public:
  explicit HeldReader(std::shared_ptr<const HeldFile> file) : file_(std::move(file)) {
    metadata_ = file_->header.metadata;
    for (const artifact::SafetensorsHeader::Entry& entry : file_->header.entries) {
      artifact::TensorBytes bytes = entry.tensor;
      const auto prefetched = file_->tensors.find(bytes.name);
      if (prefetched != file_->tensors.end()) bytes.data = prefetched->second.tensor.const_data_ptr();
      add(std::move(bytes));
    }
  }

 private:
  std::shared_ptr<const HeldFile> file_;
};

}  // namespace

std::unique_ptr<CheckpointPrefetch> CheckpointPrefetch::begin(const std::string& checkpoint,
                                                              std::int64_t memory_bytes) {
  if (checkpoint.empty()) return nullptr;
  const auto manifest = artifact::read_manifest(checkpoint);
  if (!manifest || artifact::bytes_of(manifest.value()) > memory_bytes / 2) return nullptr;
  // Each process of several reads its rows alone, and the whole may fit into none.
  if (!manifest.value().pieces.empty()) return nullptr;
  return std::make_unique<CheckpointPrefetch>(checkpoint);
}

CheckpointPrefetch::CheckpointPrefetch(std::string checkpoint)
    : checkpoint_(std::move(checkpoint)), verification_(core::run_async([this] { return read(); })) {}

CheckpointPrefetch::~CheckpointPrefetch() {
  cancelled_ = true;
  verification_.wait();
}

double CheckpointPrefetch::seconds() const {
  verification_.wait();
  return seconds_;
}

core::Result<artifact::Manifest> CheckpointPrefetch::read() {
  const core::Clock& clock = core::system_clock();
  const std::int64_t begin_ns = clock.monotonic_ns();
  auto verification = artifact::verify_checkpoint(
      checkpoint_,
      [this](const std::string& path, const artifact::FileEntry& recorded) { return read_file(path, recorded); });
  seconds_ = static_cast<double>(clock.monotonic_ns() - begin_ns) * 1e-9;
  return verification;
}

core::Result<void> CheckpointPrefetch::read_file(const std::string& path, const artifact::FileEntry& recorded) {
  if (path.ends_with(artifact::kSafetensorsEnding)) {
    const auto file = std::make_shared<HeldFile>();
    try {
      TensorSink keeper(path, recorded.bytes, *file, cancelled_);
      if (artifact::read_verified(path, recorded, keeper)) {
        keeper.parse();
        const std::lock_guard lock(mutex_);
        files_.emplace(path, file);
        return {};
      }
    } catch (const std::exception&) {
      // No memory for a tensor, or a type unknown to LibTorch.
    }
    if (cancelled_) return core::Failure{"reading " + path + " was cancelled", ""};
  }
  // The file is not held; verification reports whether it is intact.
  return artifact::verify_file(path, recorded);
}

core::Result<std::unique_ptr<artifact::SafetensorsReader>> CheckpointPrefetch::open(const std::string& path) const {
  verification_.wait();
  const auto file = files_.find(path);
  if (file == files_.end()) return artifact::SafetensorsReader::open(path);
  return std::unique_ptr<artifact::SafetensorsReader>(std::make_unique<HeldReader>(file->second));
}

at::Tensor CheckpointPrefetch::take(const artifact::TensorBytes& bytes) {
  for (auto& [path, file] : files_) {
    const auto prefetched = file->tensors.find(bytes.name);
    if (prefetched == file->tensors.end() || prefetched->second.tensor.const_data_ptr() != bytes.data) continue;
    return std::exchange(prefetched->second.taken, true) ? at::Tensor() : prefetched->second.tensor;
  }
  return {};
}

void CheckpointPrefetch::release() {
  verification_.wait();
  files_.clear();
}

}  // namespace runner::checkpoint
