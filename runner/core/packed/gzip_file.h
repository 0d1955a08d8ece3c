#pragma once

#include <cstddef>
#include <memory>
#include <string>

#include "runner/core/packed/packed_file.h"

namespace runner::core {

/// Unpacks a file of gzip members, one behind the other (RFC 1952). Unlike zlib's gzread() it passes over nothing: what
/// follows a member and is none, but for zeros that fill up a block, is an error. A file without a byte is empty.
class GzipFile : public PackedFile {
 public:
  explicit GzipFile(const std::string& path);
  ~GzipFile() override;

  std::size_t read(char* to, std::size_t size) override;

 private:
  struct State;

  bool fill();
  bool begin_member();

  std::unique_ptr<State> state_;
  bool inside_ = false;  ///< of a member
  bool began_ = false;   ///< one was there
};

}  // namespace runner::core
