#pragma once

#include <ATen/core/Tensor.h>

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "runner/checkpoint/weight_access.h"

namespace runner::train {

/// Parts of files that fill tensors. The tensors are contiguous, on the CPU, and keep their memory until it is over.
struct PartsToRead {
  struct Tensor {
    at::Tensor filled;
    std::vector<checkpoint::FilePart> parts;
  };
  std::vector<Tensor> tensors;
};

/// Reads parts of files with threads of its own, past the page cache where the file system can: what is read again and
/// again would push everything else out of it. Types of floating-point numbers become those of the tensors.
class PartReader {
 public:
  PartReader();
  ~PartReader();
  PartReader(const PartReader&) = delete;
  PartReader& operator=(const PartReader&) = delete;

  /// Begins to read. One at a time: the one before is waited for.
  void begin(PartsToRead parts);
  /// Waits for what began. RunError: a file cannot be read, or is shorter than it was.
  void wait();

 private:
  class File;
  struct Piece;
  struct Scratch;

  File& file_of(const std::string& path);
  void cut(const PartsToRead::Tensor& tensor, const checkpoint::FilePart& part, std::vector<Piece>& pieces);
  void work();
  void read(const Piece& piece, Scratch& scratch) const;

  std::map<std::string, std::unique_ptr<File>> files_;
  std::unique_ptr<const PartsToRead> parts_;  // what the pieces are of
  std::vector<Piece> pieces_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::size_t next_ = 0, done_ = 0;  // of the pieces
  std::exception_ptr failure_;
  bool ends_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace runner::train
