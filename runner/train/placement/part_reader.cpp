#include "runner/train/placement/part_reader.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/from_blob.h>
#include <c10/core/GradMode.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "runner/artifact/io/aligned_bytes.h"
#include "runner/artifact/io/io.h"
#include "runner/checkpoint/tensor_file.h"
#include "runner/core/error.h"

namespace runner::train {
namespace {

using checkpoint::FilePart;

constexpr std::size_t kThreads = 2;               // one copies while the other waits for the disk
constexpr std::int64_t kPieceBytes = 4 << 20;     // of a file, at once
constexpr std::int64_t kConvertedAtOnce = 32768;  // elements, so few that LibTorch's threads are not asked
constexpr std::int64_t kAligned = artifact::kDirectAlignment;

std::int64_t rounded_down(std::int64_t bytes) { return bytes / kAligned * kAligned; }
std::int64_t rounded_up(std::int64_t bytes) { return rounded_down(bytes + kAligned - 1); }

/// Fills rows, or a turned matrix, from the bytes of a file.
void convert(const char* bytes, const FilePart& part, const at::Tensor& target) {
  const c10::NoGradGuard no_grad;
  artifact::TensorBytes as{part.path, part.dtype, {target.numel()}, nullptr, 0, {}};
  const at::Tensor source = checkpoint::new_tensor(as, part.path);  // aligned as its type asks
  std::memcpy(source.mutable_data_ptr(), bytes, source.nbytes());
  if (target.dim() == 2 && !target.is_contiguous()) {
    target.copy_(source.view_as(target));
    return;
  }
  const at::Tensor flat = target.view(-1);
  for (std::int64_t first = 0; first < flat.numel(); first += kConvertedAtOnce) {
    const std::int64_t count = std::min(kConvertedAtOnce, flat.numel() - first);
    flat.narrow(0, first, count).copy_(source.narrow(0, first, count));
  }
}

}  // namespace

class PartReader::File {
 public:
  explicit File(std::string path) : path_(std::move(path)) {
    handle_ = ::open(path_.c_str(), O_RDONLY | O_CLOEXEC | O_DIRECT);
    is_direct_ = handle_ >= 0;
    if (!is_direct_) handle_ = ::open(path_.c_str(), O_RDONLY | O_CLOEXEC);
    if (handle_ < 0) artifact::throw_disk_error("cannot read", path_, errno);
  }
  ~File() { ::close(handle_); }
  File(const File&) = delete;
  File& operator=(const File&) = delete;

  /// All of [offset, offset + bytes); `to` is aligned and has room for what is read before and behind it. Returns where
  /// the first of them is.
  const char* read(std::int64_t offset, std::int64_t bytes, char* to) const {
    const std::int64_t begin = rounded_down(offset), end = rounded_up(offset + bytes);
    for (std::int64_t at = begin; at < offset + bytes;) {
      const ssize_t got = ::pread(handle_, to + (at - begin), static_cast<std::size_t>(end - at), at);
      if (got < 0 && errno == EINTR) continue;
      if (got < 0) artifact::throw_disk_error("cannot read", path_, errno);
      at += got;
      // A read that ends within a page has met the end of the file.
      const bool has_ended = got == 0 || (is_direct_ && at % kAligned != 0);
      if (has_ended && at < offset + bytes) {
        throw core::RunError(path_ + " is shorter than it was when its weights were left in it",
                             "leave files alone that a program reads weights from");
      }
    }
    if (!is_direct_) ::posix_fadvise(handle_, begin, end - begin, POSIX_FADV_DONTNEED);
    return to + (offset - begin);
  }

 private:
  std::string path_;
  int handle_ = -1;
  bool is_direct_ = false;
};

struct PartReader::Piece {
  const File* file;
  const FilePart* part;
  std::int64_t offset, bytes;  // in the file
  at::Tensor target;           // of that part
};

struct PartReader::Scratch {
  artifact::AlignedBytes memory;
};

PartReader::PartReader() {
  for (std::size_t i = 0; i < kThreads; ++i) threads_.emplace_back([this] { work(); });
}

PartReader::~PartReader() {
  {
    const std::lock_guard lock(mutex_);
    ends_ = true;
    next_ = pieces_.size();
  }
  changed_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

PartReader::File& PartReader::file_of(const std::string& path) {
  auto& file = files_[path];
  if (file == nullptr) file = std::make_unique<File>(path);
  return *file;
}

void PartReader::cut(const PartsToRead::Tensor& tensor, const FilePart& part, std::vector<Piece>& pieces) {
  const File& file = file_of(part.path);
  const c10::NoGradGuard no_grad;
  // A stack of matrices is one below the other here.
  const at::Tensor matrix = tensor.filled.reshape({-1, tensor.filled.dim() > 1 ? tensor.filled.size(-1) : 1});
  if (part.transposed) {
    pieces.push_back({&file, &part, part.offset, part.bytes, matrix.t()});
    return;
  }
  const at::Tensor flat = matrix.view(-1).narrow(0, part.first_row * part.of, part.rows * part.of);
  const std::int64_t of_element = part.bytes / std::max<std::int64_t>(1, flat.numel());
  const std::int64_t at_once = kPieceBytes / of_element;
  for (std::int64_t first = 0; first < flat.numel(); first += at_once) {
    const std::int64_t count = std::min(at_once, flat.numel() - first);
    pieces.push_back(
        {&file, &part, part.offset + first * of_element, count * of_element, flat.narrow(0, first, count)});
  }
}

void PartReader::begin(PartsToRead parts) {
  wait();
  auto kept = std::make_unique<const PartsToRead>(std::move(parts));
  std::vector<Piece> pieces;
  for (const PartsToRead::Tensor& tensor : kept->tensors) {
    for (const FilePart& part : tensor.parts) cut(tensor, part, pieces);
  }
  {
    const std::lock_guard lock(mutex_);
    parts_ = std::move(kept);
    pieces_ = std::move(pieces);
    next_ = done_ = 0;
  }
  changed_.notify_all();
}

void PartReader::wait() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return done_ == pieces_.size(); });
  if (failure_ != nullptr) std::rethrow_exception(std::exchange(failure_, nullptr));
}

void PartReader::work() {
  Scratch scratch;
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [this] { return ends_ || next_ < pieces_.size(); });
    if (ends_) return;
    const Piece& piece = pieces_[next_++];
    lock.unlock();
    std::exception_ptr failure;
    try {
      read(piece, scratch);
    } catch (...) {
      failure = std::current_exception();
    }
    lock.lock();
    if (failure != nullptr && failure_ == nullptr) failure_ = failure;
    if (++done_ == pieces_.size()) changed_.notify_all();
  }
}

void PartReader::read(const Piece& piece, Scratch& scratch) const {
  if (!scratch.memory.reserve(rounded_up(piece.bytes) + kAligned)) {
    throw core::RunError("no memory for reading " + piece.part->path);
  }
  const char* const bytes = piece.file->read(piece.offset, piece.bytes, scratch.memory.data());
  const bool is_same = piece.target.is_contiguous() && checkpoint::dtype_word(piece.target) == piece.part->dtype;
  if (is_same) {
    std::memcpy(piece.target.mutable_data_ptr(), bytes, static_cast<std::size_t>(piece.bytes));
  } else {
    convert(bytes, *piece.part, piece.target);
  }
}

}  // namespace runner::train
