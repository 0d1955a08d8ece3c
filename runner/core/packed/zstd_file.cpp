#include "runner/core/packed/zstd_file.h"

#include <zstd.h>
#include <zstd_errors.h>

#include <string_view>

namespace runner::core {
namespace {

std::string problem_of(std::size_t code, bool began) {
  switch (ZSTD_getErrorCode(code)) {
    case ZSTD_error_prefix_unknown:
      return began ? "the compressed file is damaged: other bytes follow the end of compressed ones"
                   : "not compressed with zstd, in spite of its name";
    case ZSTD_error_frameParameter_windowTooLarge:
      return "the compressed file needs more than 128 MiB to be unpacked: it was written with --long";
    case ZSTD_error_dictionary_wrong: return "the compressed file needs a dictionary, which roux does not take";
    default: return std::string("the compressed file is damaged: ") + ZSTD_getErrorName(code);
  }
}

}  // namespace

struct ZstdFile::State {
  ZSTD_DStream* stream = nullptr;
  ZSTD_inBuffer packed{nullptr, 0, 0};
  bool inside = false;  ///< of a frame
  bool began = false;   ///< one was there
};

ZstdFile::ZstdFile(const std::string& path) : PackedFile(path), state_(std::make_unique<State>()) {
  state_->stream = ZSTD_createDStream();
  if (state_->stream == nullptr && problem_.empty()) problem_ = "cannot unpack it: there is no memory";
}

ZstdFile::~ZstdFile() { ZSTD_freeDStream(state_->stream); }

std::size_t ZstdFile::read(char* to, std::size_t size) {
  ZSTD_outBuffer out{to, size, 0};
  State& state = *state_;
  while (problem_.empty() && out.pos < out.size) {
    if (state.packed.pos == state.packed.size) {
      const std::string_view packed = next_packed();
      state.packed = {packed.data(), packed.size(), 0};
    }
    const bool ended = state.packed.size == 0;
    if (ended && !state.inside) break;
    const std::size_t before = out.pos;
    const std::size_t left = ZSTD_decompressStream(state.stream, &out, &state.packed);
    if (ZSTD_isError(left) != 0) {
      problem_ = problem_of(left, state.began);
      break;
    }
    state.began = true;
    state.inside = left != 0;
    if (ended && state.inside && out.pos == before) problem_ = "the compressed file is cut short";
  }
  return out.pos;
}

}  // namespace runner::core
