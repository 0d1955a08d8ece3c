#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "runner/artifact/io/file_place.h"

namespace runner::artifact {

/// A whole file in memory, read as it is touched. Views live as long as the object.
class MappedFile {
 public:
  /// RunError when it cannot be read, or is no regular file and so not `what` ("a safetensors file").
  MappedFile(const std::string& path, const char* what);
  ~MappedFile();
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  std::string_view bytes() const { return {start_, bytes_}; }
  bool holds(const void* data) const;
  /// Where in the file these bytes are; nothing: elsewhere.
  std::optional<FilePlace> place_of(const void* data) const;
  /// Takes the pages of this part out of the process's memory. They stay in the page cache, and come back when touched.
  void let_go(const void* data, std::int64_t bytes) const;

 private:
  std::string path_;
  const char* start_ = "";
  std::size_t bytes_ = 0;
};

}  // namespace runner::artifact
