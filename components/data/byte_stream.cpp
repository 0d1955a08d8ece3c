#include "components/data/byte_stream.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "runner/core/error.h"

namespace components::data {
namespace {

constexpr std::size_t kOpenFilesMax = 128;
constexpr std::int64_t kStretchBytes = std::int64_t{1} << 20;

int open_file(const std::string& path) {
  const int descriptor = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor < 0) throw runner::core::RunError("cannot read \"" + path + "\": " + std::strerror(errno));
  return descriptor;
}

/// Closes what was opened for one read only.
class TemporaryDescriptor {
 public:
  TemporaryDescriptor(const std::string& path, int kept)
      : descriptor_(kept >= 0 ? kept : open_file(path)), kept_(kept >= 0) {}
  ~TemporaryDescriptor() {
    if (!kept_) close(descriptor_);
  }
  TemporaryDescriptor(const TemporaryDescriptor&) = delete;
  TemporaryDescriptor& operator=(const TemporaryDescriptor&) = delete;
  int get() const { return descriptor_; }

 private:
  int descriptor_;
  bool kept_;
};

}  // namespace

ByteStream::ByteStream(const std::vector<TextFile>& files, std::int64_t begin, std::int64_t end, bool hold)
    : size_(std::max<std::int64_t>(end - begin, 0)), holds_(hold) {
  std::int64_t start = 0;  // of the file, in the joined files
  for (const TextFile& file : files) {
    const std::int64_t from = std::clamp<std::int64_t>(begin - start, 0, file.bytes);
    const std::int64_t to = std::clamp<std::int64_t>(end - start, 0, file.bytes);
    if (from < to) pieces_.push_back({file.path, from, start + from - begin, to - from, -1});
    start += file.bytes;
  }
  if (hold) {
    held_.resize(static_cast<std::size_t>(size_));
    read_pieces(0, size_, held_.data());
  } else {
    for (Piece& piece : pieces_) {
      if (&piece - pieces_.data() >= static_cast<std::ptrdiff_t>(kOpenFilesMax)) break;
      piece.descriptor = open_file(piece.path);
    }
  }
}

ByteStream::~ByteStream() {
  for (const Piece& piece : pieces_) {
    if (piece.descriptor >= 0) close(piece.descriptor);
  }
}

std::vector<std::string> ByteStream::paths() const {
  std::vector<std::string> paths;
  for (const Piece& piece : pieces_) paths.push_back(piece.path);
  return paths;
}

std::vector<ByteStream::Place> ByteStream::places(std::int64_t at, std::int64_t count) const {
  std::vector<Place> places;
  for (const Piece& piece : pieces_) {
    const std::int64_t from = std::max(at, piece.start), to = std::min(at + count, piece.start + piece.bytes);
    if (from < to) places.push_back({piece.path, piece.offset + from - piece.start, to - from});
  }
  return places;
}

const unsigned char* ByteStream::read(std::int64_t at, std::int64_t count, std::vector<unsigned char>& scratch) const {
  RUNNER_ASSERT(at >= 0 && count >= 0 && at + count <= size_, "a window lies inside its stream");
  if (holds_) return held_.data() + at;
  scratch.resize(static_cast<std::size_t>(count));
  read_pieces(at, count, scratch.data());
  return scratch.data();
}

void ByteStream::read_pieces(std::int64_t at, std::int64_t count, unsigned char* to) const {
  auto piece = std::upper_bound(pieces_.begin(), pieces_.end(), at,
                                [](std::int64_t position, const Piece& p) { return position < p.start + p.bytes; });
  while (count > 0) {
    const std::int64_t inside = at - piece->start;
    const std::int64_t part = std::min(count, piece->bytes - inside);
    read_piece(*piece, inside, part, to);
    at += part;
    to += part;
    count -= part;
    ++piece;
  }
}

void ByteStream::read_piece(const Piece& piece, std::int64_t at, std::int64_t count, unsigned char* to) const {
  const TemporaryDescriptor file(piece.path, piece.descriptor);
  while (count > 0) {
    const ssize_t got = pread(file.get(), to, static_cast<std::size_t>(count), piece.offset + at);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) throw runner::core::RunError("cannot read \"" + piece.path + "\": " + std::strerror(errno));
    if (got == 0) {
      throw runner::core::RunError("\"" + piece.path + "\" was truncated: it ends at byte " +
                                       std::to_string(piece.offset + at) + ", and " + std::to_string(count) +
                                       " more are missing",
                                   "do not change the files of a run until it ends");
    }
    at += got;
    to += got;
    count -= got;
  }
}

std::array<std::int64_t, 256> ByteStream::histogram() const {
  std::array<std::int64_t, 256> counts{};
  const std::int64_t stretches = (size_ + kStretchBytes - 1) / kStretchBytes;
  const std::int64_t counted_max = holds_ ? stretches : kCountedBytesMax / kStretchBytes;
  const std::int64_t counted = std::min(stretches, counted_max);
  std::vector<unsigned char> scratch;
  for (std::int64_t i = 0; i < counted; ++i) {
    const std::int64_t at = i * stretches / counted * kStretchBytes;
    const std::int64_t count = std::min(kStretchBytes, size_ - at);
    const unsigned char* bytes = read(at, count, scratch);
    for (std::int64_t k = 0; k < count; ++k) ++counts[bytes[k]];
  }
  return counts;
}

}  // namespace components::data
