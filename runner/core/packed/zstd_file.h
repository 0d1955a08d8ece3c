#pragma once

#include <cstddef>
#include <memory>
#include <string>

#include "runner/core/packed/packed_file.h"

namespace runner::core {

/// Unpacks a file of Zstandard frames, one behind the other (RFC 8878), whose windows are at most 128 MiB, as `zstd`
/// does without `--long`. A file without a byte is empty.
class ZstdFile : public PackedFile {
 public:
  explicit ZstdFile(const std::string& path);
  ~ZstdFile() override;

  std::size_t read(char* to, std::size_t size) override;

 private:
  struct State;

  std::unique_ptr<State> state_;
};

}  // namespace runner::core
