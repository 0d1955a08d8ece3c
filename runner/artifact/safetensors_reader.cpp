#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <limits>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "runner/artifact/checkpoint_dir.h"
#include "runner/artifact/io.h"
#include "runner/artifact/safetensors_layout.h"
#include "runner/core/json.h"

namespace runner::artifact {
namespace {

using core::Node;
using core::RunError;

constexpr std::uint64_t kHeaderBytesMax = 100'000'000;  // the safetensors library's own limit
constexpr std::int64_t kLengthBytes = 8;
constexpr core::JsonLimits kHeaderLimits{4, 20'000'000};

class Reader final : public SafetensorsReader {
 public:
  explicit Reader(const std::string& path) : path_(path) {
    map();
    try {
      parse();
    } catch (...) {
      unmap();
      throw;
    }
  }
  ~Reader() override { unmap(); }

  const std::vector<TensorBytes>& tensors() const override { return tensors_; }
  const std::vector<std::pair<std::string, std::string>>& metadata() const override { return metadata_; }
  const TensorBytes* find(const std::string& name) const override {
    const auto found = by_name_.find(name);
    return found == by_name_.end() ? nullptr : &tensors_[found->second];
  }

 private:
  [[noreturn]] void refuse(const std::string& why) const { throw RunError(path_ + " is no safetensors file: " + why); }

  void map() {
    const int handle = ::open(path_.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (handle < 0) throw_disk_error("cannot read", path_, errno);
    struct stat status {};
    const int failed = ::fstat(handle, &status) != 0 ? errno : 0;
    if (failed == 0 && S_ISREG(status.st_mode) && status.st_size > 0) {
      bytes_ = status.st_size;
      void* const start = ::mmap(nullptr, static_cast<std::size_t>(bytes_), PROT_READ, MAP_PRIVATE, handle, 0);
      if (start != MAP_FAILED) start_ = static_cast<const char*>(start);
    }
    const int unmapped = start_ == nullptr ? errno : 0;
    ::close(handle);
    if (failed != 0) throw_disk_error("cannot read", path_, failed);
    if (!S_ISREG(status.st_mode)) refuse("it is no regular file");
    if (bytes_ > 0 && start_ == nullptr) throw_disk_error("cannot map", path_, unmapped);
  }

  void unmap() {
    if (start_ != nullptr) ::munmap(const_cast<char*>(start_), static_cast<std::size_t>(bytes_));
    start_ = nullptr;
  }

  void parse() {
    const std::string_view header = header_text();
    data_bytes_ = bytes_ - kLengthBytes - static_cast<std::int64_t>(header.size());
    data_ = start_ + kLengthBytes + header.size();
    const core::Result<Node> parsed = core::parse_json(header, kHeaderLimits);
    if (!parsed) refuse("its header cannot be read: " + parsed.failure().message);
    if (!parsed.value().is_mapping()) refuse("its header is no object");
    for (const Node::Entry& entry : parsed.value().entries()) {
      if (entry.key == "__metadata__") {
        read_metadata(entry.value);
      } else {
        tensors_.push_back(tensor_of(entry.key, entry.value));
      }
    }
    check_offsets();
    for (std::size_t i = 0; i < tensors_.size(); ++i) by_name_.emplace(tensors_[i].name, i);
  }

  std::string_view header_text() const {
    if (bytes_ < kLengthBytes) refuse("it holds " + std::to_string(bytes_) + " bytes, its length field alone takes 8");
    std::uint64_t length = 0;
    for (int i = 0; i < kLengthBytes; ++i) {
      length |= static_cast<std::uint64_t>(static_cast<unsigned char>(start_[i])) << (8 * i);
    }
    if (length > kHeaderBytesMax) {
      refuse("its header would be " + std::to_string(length) + " bytes long, at most " +
             std::to_string(kHeaderBytesMax) + " are taken");
    }
    if (static_cast<std::int64_t>(length) > bytes_ - kLengthBytes) {
      refuse("its header would be " + std::to_string(length) + " bytes long, the file ends after " +
             std::to_string(bytes_ - kLengthBytes));
    }
    return {start_ + kLengthBytes, static_cast<std::size_t>(length)};
  }

  void read_metadata(const Node& node) {
    if (!node.is_mapping()) refuse("its __metadata__ is no object");
    for (const Node::Entry& entry : node.entries()) {
      if (!entry.value.is_string()) refuse("its __metadata__ entry \"" + entry.key + "\" is no text");
      metadata_.emplace_back(entry.key, entry.value.as_string());
    }
  }

  TensorBytes tensor_of(const std::string& name, const Node& node) const {
    const Node* dtype = node.find("dtype");
    const Node* shape = node.find("shape");
    const Node* offsets = node.find("data_offsets");
    if (dtype == nullptr || !dtype->is_string() || shape == nullptr || !shape->is_sequence() || offsets == nullptr ||
        !offsets->is_sequence() || offsets->items().size() != 2) {
      refuse("tensor \"" + name + "\" lacks dtype, shape or data_offsets");
    }
    TensorBytes tensor{name, dtype->as_string(), {}, nullptr, 0};
    const std::int64_t needed = bytes_of_shape(tensor, *shape);
    const std::int64_t begin = count_of(name, offsets->items()[0]);
    const std::int64_t end = count_of(name, offsets->items()[1]);
    if (begin > end || end > data_bytes_) {
      refuse("tensor \"" + name + "\" lies at [" + std::to_string(begin) + ", " + std::to_string(end) +
             "), the data is " + std::to_string(data_bytes_) + " bytes long");
    }
    if (end - begin != needed) {
      refuse("tensor \"" + name + "\" takes " + std::to_string(needed) + " bytes by its shape and type, but " +
             std::to_string(end - begin) + " by its offsets");
    }
    tensor.data = data_ + begin;
    tensor.bytes = needed;
    return tensor;
  }

  std::int64_t bytes_of_shape(TensorBytes& tensor, const Node& shape) const {
    std::int64_t bytes = safetensors_item_bytes(tensor.dtype);
    if (bytes == 0) refuse("tensor \"" + tensor.name + "\" has the unknown type \"" + tensor.dtype + "\"");
    for (const Node& item : shape.items()) {
      const std::int64_t size = count_of(tensor.name, item);
      if (__builtin_mul_overflow(bytes, size, &bytes)) refuse("the shape of tensor \"" + tensor.name + "\" overflows");
      tensor.shape.push_back(size);
    }
    return bytes;
  }

  std::int64_t count_of(const std::string& name, const Node& node) const {
    if (!node.is_integer() || node.as_integer() < 0) {
      refuse("tensor \"" + name + "\" has a size or offset that is no count");
    }
    return node.as_integer();
  }

  /// The format wants the tensors to fill the data: no two on the same bytes, no hole, nothing behind the last.
  void check_offsets() const {
    std::vector<const TensorBytes*> by_place;
    for (const TensorBytes& tensor : tensors_) by_place.push_back(&tensor);
    std::sort(by_place.begin(), by_place.end(), [](const TensorBytes* a, const TensorBytes* b) {
      return std::pair(a->data, a->bytes) < std::pair(b->data, b->bytes);
    });
    const char* end = data_;
    for (const TensorBytes* tensor : by_place) {
      const char* const begin = static_cast<const char*>(tensor->data);
      if (begin < end) refuse("tensor \"" + tensor->name + "\" overlaps the one before it");
      if (begin > end) refuse("there is a hole before tensor \"" + tensor->name + "\"");
      end = begin + tensor->bytes;
    }
    if (end != data_ + data_bytes_) {
      refuse(std::to_string(data_ + data_bytes_ - end) + " bytes behind the last tensor belong to none");
    }
  }

  std::string path_;
  const char* start_ = nullptr;
  std::int64_t bytes_ = 0;
  const char* data_ = nullptr;
  std::int64_t data_bytes_ = 0;
  std::vector<TensorBytes> tensors_;
  std::vector<std::pair<std::string, std::string>> metadata_;
  std::unordered_map<std::string, std::size_t> by_name_;
};

}  // namespace

core::Result<std::unique_ptr<SafetensorsReader>> SafetensorsReader::open(const std::string& path) {
  return attempt([&]() -> std::unique_ptr<SafetensorsReader> { return std::make_unique<Reader>(path); });
}

}  // namespace runner::artifact
