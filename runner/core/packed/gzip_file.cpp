#include "runner/core/packed/gzip_file.h"

#include <zlib.h>

#include <algorithm>
#include <limits>
#include <string_view>

namespace runner::core {
namespace {

constexpr int kOnlyGzip = 16 + MAX_WBITS;
constexpr unsigned char kMagic = 0x1F;  ///< first byte of a member

}  // namespace

struct GzipFile::State {
  z_stream stream = {};
  bool good = false;
};

GzipFile::GzipFile(const std::string& path) : PackedFile(path), state_(std::make_unique<State>()) {
  state_->good = inflateInit2(&state_->stream, kOnlyGzip) == Z_OK;
  if (!state_->good && problem_.empty()) problem_ = "cannot unpack it: there is no memory";
}

GzipFile::~GzipFile() {
  if (state_->good) inflateEnd(&state_->stream);
}

/// False at the end of the file, or after a problem.
bool GzipFile::fill() {
  if (state_->stream.avail_in > 0) return true;
  const std::string_view packed = next_packed();
  // zlib's field is not const, and it only reads there.
  state_->stream.next_in = reinterpret_cast<unsigned char*>(const_cast<char*>(packed.data()));
  state_->stream.avail_in = static_cast<unsigned>(packed.size());
  return !packed.empty();
}

/// The same, at the end of the last member.
bool GzipFile::begin_member() {
  z_stream& stream = state_->stream;
  while (fill()) {
    if (began_ && *stream.next_in == 0) {
      ++stream.next_in;
      --stream.avail_in;
      continue;
    }
    if (*stream.next_in != kMagic) {
      problem_ = began_ ? "the compressed file is damaged: other bytes follow the end of compressed ones"
                        : "not compressed with gzip, in spite of its name";
      return false;
    }
    inflateReset(&stream);
    began_ = inside_ = true;
    return true;
  }
  return false;
}

std::size_t GzipFile::read(char* to, std::size_t size) {
  if (!problem_.empty()) return 0;
  z_stream& stream = state_->stream;
  size = std::min<std::size_t>(size, std::numeric_limits<unsigned>::max());
  stream.next_out = reinterpret_cast<unsigned char*>(to);
  stream.avail_out = static_cast<unsigned>(size);
  while (stream.avail_out > 0) {
    if (!inside_ && !begin_member()) break;
    if (!fill()) {
      if (problem_.empty()) problem_ = "the compressed file is cut short";
      break;
    }
    const int status = inflate(&stream, Z_NO_FLUSH);
    if (status == Z_STREAM_END) {
      inside_ = false;
    } else if (status != Z_OK && status != Z_BUF_ERROR) {
      problem_ = std::string("the compressed file is damaged: ") + (stream.msg != nullptr ? stream.msg : "no memory");
      break;
    }
  }
  return size - stream.avail_out;
}

}  // namespace runner::core
