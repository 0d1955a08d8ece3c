#include "runner/artifact/safetensors_header.h"

#include <algorithm>

#include "runner/artifact/safetensors_layout.h"
#include "runner/core/error.h"
#include "runner/core/json_entries.h"
#include "runner/core/text/utf8.h"

namespace runner::artifact {
namespace {

using core::Node;
using core::RunError;

constexpr std::uint64_t kHeaderBytesMax = 100'000'000;  // the safetensors library's own limit
constexpr core::JsonLimits kEntryLimits{4, 100'000};    // the metadata are one entry
constexpr std::size_t kTensorsMax = 200'000;            // more than any model has in a file

[[noreturn]] void refuse(const std::string& path, const std::string& why) {
  throw RunError(path + " is not a safetensors file: " + core::escape_for_terminal(why));
}

constexpr std::size_t kEntryBytesMin = 50;  // `"a":{"dtype":"U8","shape":[0],"data_offsets":[0,0]}`

class HeaderParser {
 public:
  HeaderParser(std::int64_t data_bytes, const std::string& path) : data_bytes_(data_bytes), path_(path) {}

  SafetensorsHeader parse(std::string_view json) const {
    SafetensorsHeader header;
    header.entries.reserve(std::min(json.size() / kEntryBytesMin, kTensorsMax));  // growing would hold them twice
    // One after the other: a tree of all would take many times the header.
    const auto take = [&](const std::string& key, const Node& value) {
      if (key == "__metadata__") return read_metadata(value, header);
      if (header.entries.size() == kTensorsMax) refuse("it has more than " + std::to_string(kTensorsMax) + " tensors");
      header.entries.push_back(entry_of(key, value));
    };
    const core::Result<Node> parsed = core::parse_json_entries(json, "", kEntryLimits, take);
    if (!parsed) refuse("its header cannot be read: " + parsed.failure().message);
    if (!parsed.value().is_mapping()) refuse("its header is not an object");
    check_places(header);
    return header;
  }

 private:
  [[noreturn]] void refuse(const std::string& why) const { artifact::refuse(path_, why); }

  void read_metadata(const Node& node, SafetensorsHeader& header) const {
    if (!node.is_mapping()) refuse("its __metadata__ is not an object");
    for (const Node::Entry& entry : node.entries()) {
      if (!entry.value.is_string()) refuse("its __metadata__ entry \"" + entry.key + "\" is not text");
      header.metadata.emplace_back(entry.key, entry.value.as_string());
    }
  }

  SafetensorsHeader::Entry entry_of(const std::string& name, const Node& node) const {
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
      refuse("tensor \"" + name + "\" is at [" + std::to_string(begin) + ", " + std::to_string(end) +
             "), the data is " + std::to_string(data_bytes_) + " bytes long");
    }
    if (end - begin != needed) {
      refuse("tensor \"" + name + "\" takes " + std::to_string(needed) + " bytes by its shape and type, but " +
             std::to_string(end - begin) + " by its offsets");
    }
    tensor.bytes = needed;
    return {std::move(tensor), begin};
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
      refuse("tensor \"" + name + "\" has a size or offset that is not a count");
    }
    return node.as_integer();
  }

  /// The format requires that tensors fill the data: no overlap, no gap, nothing after the last.
  void check_places(const SafetensorsHeader& header) const {
    std::int64_t end = 0;
    for (const SafetensorsHeader::Entry* entry : header.by_offset()) {
      const auto& [tensor, begin] = *entry;
      if (begin < end) refuse("tensor \"" + tensor.name + "\" overlaps the previous one");
      if (begin > end) refuse("there is a gap before tensor \"" + tensor.name + "\"");
      end = begin + tensor.bytes;
    }
    if (end != data_bytes_) {
      refuse(std::to_string(data_bytes_ - end) + " trailing bytes after the last tensor");
    }
  }

  const std::int64_t data_bytes_;
  const std::string& path_;
};

}  // namespace

std::vector<const SafetensorsHeader::Entry*> SafetensorsHeader::by_offset() const {
  std::vector<const Entry*> sorted;
  for (const Entry& entry : entries) sorted.push_back(&entry);
  std::sort(sorted.begin(), sorted.end(), [](const Entry* a, const Entry* b) {
    return std::pair(a->begin, a->tensor.bytes) < std::pair(b->begin, b->tensor.bytes);
  });
  return sorted;
}

std::int64_t safetensors_header_bytes(std::string_view start, std::int64_t file_bytes, const std::string& path) {
  if (file_bytes < kHeaderLengthBytes) {
    refuse(path, "it has " + std::to_string(file_bytes) + " bytes, its length field alone takes 8");
  }
  if (start.starts_with("version ")) refuse(path, "it is a pointer of Git LFS; run `git lfs pull`");
  std::uint64_t length = 0;
  for (std::size_t i = 0; i < kHeaderLengthBytes; ++i) {
    length |= static_cast<std::uint64_t>(static_cast<unsigned char>(start[i])) << (8 * i);
  }
  if (length > kHeaderBytesMax) {
    refuse(path, "its header would be " + std::to_string(length) + " bytes long, at most " +
                     std::to_string(kHeaderBytesMax) + " are allowed");
  }
  if (static_cast<std::int64_t>(length) > file_bytes - kHeaderLengthBytes) {
    refuse(path, "its header would be " + std::to_string(length) + " bytes long, the file ends after " +
                     std::to_string(file_bytes - kHeaderLengthBytes));
  }
  return static_cast<std::int64_t>(length);
}

SafetensorsHeader parse_safetensors_header(std::string_view json, std::int64_t data_bytes, const std::string& path) {
  return HeaderParser(data_bytes, path).parse(json);
}

const TensorBytes* TensorList::find(const std::string& name) const {
  const auto found = by_name_.find(name);
  return found == by_name_.end() ? nullptr : &tensors_[found->second];
}

std::optional<FilePlace> TensorList::place_in(const std::vector<std::unique_ptr<SafetensorsReader>>& readers,
                                              const void* data) {
  for (const auto& reader : readers) {
    if (auto place = reader->place_of(data)) return place;
  }
  return {};
}

void TensorList::add(TensorBytes tensor) {
  by_name_.emplace(tensor.name, tensors_.size());
  tensors_.push_back(std::move(tensor));
}

}  // namespace runner::artifact
