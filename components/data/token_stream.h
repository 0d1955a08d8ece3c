#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "components/data/mapped_file.h"
#include "components/data/text_files.h"

namespace components::data {

/// The concatenated tokens of files, or a range of them. Thread-safe.
class TokenStream {
 public:
  struct Layout {
    std::int64_t token_bytes = 2;  ///< 2 or 4, little-endian
    std::int64_t header_bytes = 0;
    std::int64_t vocab_size = 0;  ///< every id is below it
  };
  /// Number of tokens in a file of this size.
  static std::int64_t tokens_in(const TextFile& file, const Layout& layout);

  /// Tokens [begin, end) of the joined files. RunError names a file that cannot be mapped.
  TokenStream(const std::vector<TextFile>& files, std::int64_t begin, std::int64_t end, const Layout& layout);

  std::int64_t size() const { return size_; }  ///< tokens
  std::vector<std::string> paths() const;      ///< of the files that hold a part of the stream
  std::int64_t file_count() const { return static_cast<std::int64_t>(pieces_.size()); }

  /// A range of the stream that lies in one file.
  struct Place {
    std::string path;
    std::int64_t offset = 0;  ///< in the file, in tokens behind its header
    std::int64_t tokens = 0;
  };
  /// Where tokens [at, at + count) lie, in order.
  std::vector<Place> places(std::int64_t at, std::int64_t count) const;

  /// Copies the windows that begin at these tokens: `length` tokens each to `input`, and shifted by one token to
  /// `target`. RunError names the file and position of an id that is too large, or a file that can no longer be read.
  struct Windows {
    const std::int64_t* starts;
    std::int64_t count, length;
    std::int64_t *input, *target;
  };
  void read(const Windows& windows) const;

  /// Entropy in nats of the token counts; from evenly spaced ranges of kCountedTokensMax in all if there are more.
  double unigram_entropy() const;

  static constexpr std::int64_t kCountedTokensMax = std::int64_t{16} << 20;

 private:
  /// The part of one file that belongs to the stream.
  struct Piece {
    std::unique_ptr<MappedFile> file;
    std::int64_t offset = 0;  ///< in the file, in bytes
    std::int64_t start = 0;   ///< in the stream, in tokens
    std::int64_t tokens = 0;
  };
  /// Copies tokens [at, at + count) and returns the largest; touches mapped memory.
  std::uint32_t copy(std::int64_t at, std::int64_t count, std::int64_t* to) const;
  const Piece& piece_of(std::int64_t at) const;
  [[noreturn]] void throw_read_error() const;
  [[noreturn]] void throw_out_of_range(std::int64_t at, std::int64_t id) const;

  std::vector<Piece> pieces_;
  Layout layout_;
  std::int64_t size_ = 0;
};

}  // namespace components::data
