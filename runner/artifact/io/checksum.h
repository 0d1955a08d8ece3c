#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "runner/core/result.h"

namespace runner::artifact {

/// XXH3 of 128 bits over a stream of bytes (what `xxhsum -H2` prints): as fast as memory, so that hashing never delays
/// a save. It detects damage; it is no signature.
class Checksum {
 public:
  Checksum();
  ~Checksum();
  void update(const void* data, std::int64_t bytes);
  /// `xxh128:` and 32 hex digits.
  std::string text() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

std::string checksum_of(std::string_view bytes);
/// Failure names the path.
core::Result<std::string> checksum_of_file(const std::string& path);

inline constexpr std::string_view kChecksumPrefix = "xxh128:";
inline constexpr std::size_t kChecksumDigits = 32;

}  // namespace runner::artifact
