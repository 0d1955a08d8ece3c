#include "runner/artifact/checksum.h"

#define XXH_INLINE_ALL  // header only: nothing to load at start-up
#include <xxhash.h>

#include <cstdio>

namespace runner::artifact {

struct Checksum::State {
  XXH3_state_t xxh3;
};

Checksum::Checksum() : state_(std::make_unique<State>()) { XXH3_128bits_reset(&state_->xxh3); }

Checksum::~Checksum() = default;

void Checksum::update(const void* data, std::int64_t bytes) {
  if (bytes > 0) XXH3_128bits_update(&state_->xxh3, data, static_cast<std::size_t>(bytes));
}

std::string Checksum::text() const {
  const XXH128_hash_t hash = XXH3_128bits_digest(&state_->xxh3);
  char digits[kChecksumDigits + 1];
  std::snprintf(digits, sizeof digits, "%016llx%016llx", static_cast<unsigned long long>(hash.high64),
                static_cast<unsigned long long>(hash.low64));
  return std::string(kChecksumPrefix) + digits;
}

std::string checksum_of(std::string_view bytes) {
  Checksum checksum;
  checksum.update(bytes.data(), static_cast<std::int64_t>(bytes.size()));
  return checksum.text();
}

}  // namespace runner::artifact
