#include "runner/artifact/io/checksum.h"

#include <xxhash.h>
#if defined(__x86_64__)
#include <xxh_x86dispatch.h>  // the same functions, with the widest vectors that this CPU has: twice as fast
#endif

#include <cerrno>
#include <cstdio>
#include <memory>
#include <vector>

#include "runner/artifact/io/io.h"
#include "runner/core/platform/files.h"

namespace runner::artifact {

namespace {

constexpr std::size_t kPieceBytes = 1 << 20;

}  // namespace

struct Checksum::State {
  struct Free {
    void operator()(XXH3_state_t* state) const { XXH3_freeState(state); }
  };
  std::unique_ptr<XXH3_state_t, Free> xxh3{XXH3_createState()};
};

Checksum::Checksum() : state_(std::make_unique<State>()) { XXH3_128bits_reset(state_->xxh3.get()); }

Checksum::~Checksum() = default;

void Checksum::update(const void* data, std::int64_t bytes) {
  if (bytes > 0) XXH3_128bits_update(state_->xxh3.get(), data, static_cast<std::size_t>(bytes));
}

std::string Checksum::text() const {
  const XXH128_hash_t hash = XXH3_128bits_digest(state_->xxh3.get());
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

core::Result<std::string> checksum_of_file(const std::string& path) {
  return attempt([&] {
    core::check_is_file(path).value();
    const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen(path.c_str(), "rbe"), std::fclose);
    if (file == nullptr) throw_disk_error("cannot read", path, errno);
    Checksum checksum;
    std::vector<char> piece(kPieceBytes);
    while (const std::size_t count = std::fread(piece.data(), 1, piece.size(), file.get())) {
      checksum.update(piece.data(), static_cast<std::int64_t>(count));
    }
    if (std::ferror(file.get()) != 0) throw_disk_error("cannot read", path, errno);
    return checksum.text();
  });
}

}  // namespace runner::artifact
