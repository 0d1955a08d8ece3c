#include <arrow/io/file.h>
#include <arrow/memory_pool.h>
#include <arrow/util/thread_pool.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <string_view>

#include "runner/arrow/failures.h"
#include "runner/arrow/ipc_file.h"
#include "runner/arrow/parquet_file.h"
#include "runner/core/platform/files.h"
#include "runner/core/platform/machine.h"
#include "runner/core/table/table_file.h"

namespace runner::arrow_files {
namespace {

using core::Failure;
using core::Result;

constexpr std::string_view kParquet = "PAR1", kIpcFile = "ARROW1", kIpcStream = "\xff\xff\xff\xff";
constexpr std::string_view kEncrypted = "PARE", kFeather = "FEA1", kGitLfs = "version https://git-lfs";

Failure foreign(const std::string& path, std::string_view head) {
  if (head.empty()) return {path + " is empty", ""};
  if (head.starts_with(kEncrypted)) return {path + " is encrypted, and roux has no key", "write it without encryption"};
  if (head.starts_with(kFeather)) {
    return {path + " is a Feather file of version 1", "write it again with pyarrow.feather.write_feather"};
  }
  if (head.starts_with(kGitLfs)) {
    return {path + " is a pointer of Git LFS, not the file itself",
            "`git lfs pull` in its repository fetches the file"};
  }
  return {path + " is neither a Parquet file nor an Arrow file or stream",
          "for JSON lines use a name that ends with .jsonl"};
}

class ArrowLibrary final : public core::TableLibrary {
 public:
  Result<std::unique_ptr<core::TableFile>> open(const std::string& path, const core::TableLimits& given) override {
    core::TableLimits limits = given;
    if (limits.bytes_max == 0) limits.bytes_max = core::memory_limit() / 2;
    return guarded(path, limits, [&] { return open_any(path, limits); });
  }

 private:
  static Result<std::unique_ptr<core::TableFile>> open_any(const std::string& path, const core::TableLimits& limits) {
    if (const auto good = core::check_is_file(path); !good) return good.failure();
    auto file = arrow::io::ReadableFile::Open(path, arrow::system_memory_pool());
    if (!file.ok()) return Failure{"cannot read " + path + ": " + std::strerror(errno), ""};
    std::array<char, kGitLfs.size()> begin{};
    const auto count = (*file)->ReadAt(0, begin.size(), begin.data());
    if (!count.ok()) return Failure{"cannot read " + path + ": " + std::strerror(errno), ""};
    const std::string_view head(begin.data(), static_cast<std::size_t>(*count));
    if (head.starts_with(kParquet)) return open_parquet(path, std::move(*file), limits);
    if (head.starts_with(kIpcFile)) return open_ipc(path, std::move(*file), /*is_file=*/true, limits);
    if (head.starts_with(kIpcStream)) return open_ipc(path, std::move(*file), /*is_file=*/false, limits);
    return foreign(path, head);
  }
};

}  // namespace
}  // namespace runner::arrow_files

extern "C" runner::core::TableLibrary* roux_tables() {
  static runner::arrow_files::ArrowLibrary library;
  // All reading is on the thread that asks for it; what Arrow would start for itself has one.
  if (!arrow::SetCpuThreadPoolCapacity(1).ok()) return nullptr;
  return &library;
}
