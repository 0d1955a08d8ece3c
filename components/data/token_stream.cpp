#include "components/data/token_stream.h"

#include <algorithm>

#include "components/data/text_utils.h"
#include "components/kernels/widen.h"
#include "runner/core/error.h"

namespace components::data {
namespace {

constexpr std::int64_t kStretchTokens = std::int64_t{1} << 18;

}  // namespace

std::int64_t TokenStream::tokens_in(const TextFile& file, const Layout& layout) {
  return std::max<std::int64_t>(0, file.bytes - layout.header_bytes) / layout.token_bytes;
}

TokenStream::TokenStream(const std::vector<TextFile>& files, std::int64_t begin, std::int64_t end, const Layout& layout)
    : layout_(layout), size_(std::max<std::int64_t>(end - begin, 0)) {
  std::int64_t start = 0;  // of the file, in the joined files
  for (const TextFile& file : files) {
    const std::int64_t tokens = tokens_in(file, layout);
    const std::int64_t from = std::clamp<std::int64_t>(begin - start, 0, tokens);
    const std::int64_t to = std::clamp<std::int64_t>(end - start, 0, tokens);
    if (from < to) {
      auto mapped = std::make_unique<MappedFile>(file.path);
      const std::int64_t offset = layout.header_bytes + from * layout.token_bytes;
      if (mapped->size() < offset + (to - from) * layout.token_bytes) {
        throw runner::core::RunError("\"" + file.path + "\" was truncated while being opened");
      }
      pieces_.push_back({std::move(mapped), offset, start + from - begin, to - from});
    }
    start += tokens;
  }
}

std::vector<std::string> TokenStream::paths() const {
  std::vector<std::string> paths;
  for (const Piece& piece : pieces_) paths.push_back(piece.file->path());
  return paths;
}

std::vector<TokenStream::Place> TokenStream::places(std::int64_t at, std::int64_t count) const {
  std::vector<Place> places;
  for (const Piece& piece : pieces_) {
    const std::int64_t from = std::max(at, piece.start), to = std::min(at + count, piece.start + piece.tokens);
    if (from >= to) continue;
    const std::int64_t first = (piece.offset - layout_.header_bytes) / layout_.token_bytes;
    places.push_back({piece.file->path(), first + from - piece.start, to - from});
  }
  return places;
}

const TokenStream::Piece& TokenStream::piece_of(std::int64_t at) const {
  return *std::upper_bound(pieces_.begin(), pieces_.end(), at,
                           [](std::int64_t position, const Piece& p) { return position < p.start + p.tokens; });
}

std::uint32_t TokenStream::copy(std::int64_t at, std::int64_t count, std::int64_t* to) const {
  std::uint32_t largest = 0;
  for (const Piece* piece = &piece_of(at); count > 0; ++piece) {
    const std::int64_t inside = at - piece->start;
    const std::int64_t part = std::min(count, piece->tokens - inside);
    const unsigned char* from = piece->file->bytes() + piece->offset + inside * layout_.token_bytes;
    largest = std::max(
        largest, layout_.token_bytes == 2 ? kernels::widen_u16(from, part, to) : kernels::widen_u32(from, part, to));
    at += part;
    to += part;
    count -= part;
  }
  return largest;
}

void TokenStream::read(const Windows& windows) const {
  std::uint32_t largest = 0;
  auto work = [this, &windows, &largest] {
    const std::int64_t length = windows.length;
    for (std::int64_t i = 0; i < windows.count; ++i) {
      // The target is the input shifted by one token: only its last token is new.
      largest = std::max(largest, copy(windows.starts[i], length, windows.input + i * length));
      largest = std::max(largest, copy(windows.starts[i] + 1, length, windows.target + i * length));
    }
  };
  for (std::int64_t i = 0; i < windows.count; ++i) {
    RUNNER_ASSERT(windows.starts[i] >= 0 && windows.starts[i] + windows.length < size_, "a window lies in its stream");
  }
  if (!read_mapped(work)) throw_read_error();
  if (largest < layout_.vocab_size) return;
  for (std::int64_t i = 0; i < windows.count; ++i) {
    const auto *input = windows.input + i * windows.length, *target = windows.target + i * windows.length;
    for (std::int64_t k = 0; k < windows.length; ++k) {
      if (input[k] >= layout_.vocab_size) throw_out_of_range(windows.starts[i] + k, input[k]);
      if (target[k] >= layout_.vocab_size) throw_out_of_range(windows.starts[i] + k + 1, target[k]);
    }
  }
}

void TokenStream::throw_read_error() const {
  std::string names;
  for (const Piece& piece : pieces_) {
    piece.file->check_whole();
    names += (names.empty() ? "\"" : ", \"") + piece.file->path() + "\"";
  }
  throw runner::core::RunError("the disk failed to read " + names,
                               "the system's log (dmesg) says what the disk reported");
}

void TokenStream::throw_out_of_range(std::int64_t at, std::int64_t id) const {
  const Piece& piece = piece_of(at);
  const std::int64_t byte = piece.offset + (at - piece.start) * layout_.token_bytes;
  throw runner::core::RunError("\"" + piece.file->path() + "\" has the token " + std::to_string(id) + " at byte " +
                                   std::to_string(byte) + ", and vocab_size is " + std::to_string(layout_.vocab_size),
                               "check vocab_size, dtype and header_bytes against the program that wrote the file");
}

double TokenStream::unigram_entropy() const {
  const std::int64_t stretches = (size_ + kStretchTokens - 1) / kStretchTokens;
  const std::int64_t looked_at = std::min(stretches, kCountedTokensMax / kStretchTokens);
  std::vector<std::int64_t> counts(static_cast<std::size_t>(layout_.vocab_size)), tokens(kStretchTokens);
  for (std::int64_t i = 0; i < looked_at; ++i) {
    const std::int64_t at = i * stretches / looked_at * kStretchTokens;
    const std::int64_t count = std::min(kStretchTokens, size_ - at);
    std::uint32_t largest = 0;
    auto work = [this, at, count, &largest, to = tokens.data()] { largest = copy(at, count, to); };
    if (!read_mapped(work)) throw_read_error();
    for (std::int64_t k = 0; k < count; ++k) {
      const std::int64_t id = tokens[static_cast<std::size_t>(k)];
      if (id >= layout_.vocab_size) throw_out_of_range(at + k, id);
      ++counts[static_cast<std::size_t>(id)];
    }
  }
  return entropy_of(counts);
}

}  // namespace components::data
