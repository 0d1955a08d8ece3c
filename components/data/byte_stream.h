#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "components/data/text_files.h"

namespace components::data {

/// The concatenated bytes of files, or a range of them; in memory or read on demand.
///
/// Reading uses pread and not a memory map: a file that shrinks meanwhile is an error with its name instead of a
/// signal, and the page cache does not count as memory of the run.
class ByteStream {
 public:
  /// Bytes [begin, end) of the joined files. `hold` reads them now; RunError names a file that cannot be read.
  ByteStream(const std::vector<TextFile>& files, std::int64_t begin, std::int64_t end, bool hold);
  ~ByteStream();
  ByteStream(const ByteStream&) = delete;
  ByteStream& operator=(const ByteStream&) = delete;

  std::int64_t size() const { return size_; }
  std::vector<std::string> paths() const;  ///< of the files that hold a part of the stream
  std::int64_t file_count() const { return static_cast<std::int64_t>(pieces_.size()); }

  /// A range of the stream that lies in one file.
  struct Place {
    std::string path;
    std::int64_t offset = 0;  ///< in the file
    std::int64_t bytes = 0;
  };
  /// Where bytes [at, at + count) lie, in order.
  std::vector<Place> places(std::int64_t at, std::int64_t count) const;

  /// Bytes [at, at + count): a pointer into memory, or into `scratch` after reading. Safe from several threads, each
  /// with its own scratch. RunError names a file that cannot be read or was truncated.
  const unsigned char* read(std::int64_t at, std::int64_t count, std::vector<unsigned char>& scratch) const;

  /// Counts of each byte; in one pass, over evenly spaced ranges of kCountedBytesMax in all when not in memory.
  std::array<std::int64_t, 256> histogram() const;

  static constexpr std::int64_t kCountedBytesMax = std::int64_t{256} << 20;

 private:
  /// The part of one file that belongs to the stream.
  struct Piece {
    std::string path;
    std::int64_t offset = 0;  ///< in the file
    std::int64_t start = 0;   ///< in the stream
    std::int64_t bytes = 0;
    int descriptor = -1;  ///< -1: opened for each read, to save file descriptors
  };
  void read_piece(const Piece& piece, std::int64_t at, std::int64_t count, unsigned char* to) const;
  void read_pieces(std::int64_t at, std::int64_t count, unsigned char* to) const;

  std::vector<Piece> pieces_;
  std::vector<unsigned char> held_;
  std::int64_t size_ = 0;
  bool holds_ = false;
};

}  // namespace components::data
