#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "runner/artifact/checkpoint_dir.h"

namespace runner::artifact {

inline constexpr std::int64_t kHeaderLengthBytes = 8;  ///< in front of a safetensors header, little-endian

/// The header of a safetensors file.
struct SafetensorsHeader {
  struct Entry {
    TensorBytes tensor;  ///< without `data`
    std::int64_t begin;  ///< of it, from the end of the header
  };
  std::vector<Entry> entries;  ///< in its own order
  std::vector<std::pair<std::string, std::string>> metadata;

  std::vector<const Entry*> by_offset() const;
};

/// Length of the header, from the first bytes of a file. RunError when the file at `path` is not one.
std::int64_t safetensors_header_bytes(std::string_view start, std::int64_t file_bytes, const std::string& path);

/// RunError that names `path` when `json` does not describe `data_bytes` bytes to the last one: each belongs to exactly
/// one tensor, of a known type and as many elements as its shape says.
SafetensorsHeader parse_safetensors_header(std::string_view json, std::int64_t data_bytes, const std::string& path);

/// A set of tensors by name; derived classes hold their bytes.
class TensorList : public SafetensorsReader {
 public:
  const std::vector<TensorBytes>& tensors() const override { return tensors_; }
  const std::vector<std::pair<std::string, std::string>>& metadata() const override { return metadata_; }
  const TensorBytes* find(const std::string& name) const override;

 protected:
  void add(TensorBytes tensor);
  /// SafetensorsReader::place_of() of the one that has the bytes.
  static std::optional<FilePlace> place_in(const std::vector<std::unique_ptr<SafetensorsReader>>& readers,
                                           const void* data);
  std::vector<std::pair<std::string, std::string>> metadata_;

 private:
  std::vector<TensorBytes> tensors_;
  std::unordered_map<std::string, std::size_t> by_name_;
};

}  // namespace runner::artifact
