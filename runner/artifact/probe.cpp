#include "runner/artifact/probe.h"

#include <filesystem>
#include <system_error>

#include "runner/artifact/draft_names.h"
#include "runner/artifact/file_writer.h"

namespace runner::artifact {
namespace {

namespace fs = std::filesystem;

constexpr const char* kName = "probe";

std::string join(const std::string& folder, const std::string& name) { return (fs::path(folder) / name).string(); }

}  // namespace

void probe_folder(const std::string& folder, std::int64_t bytes, Io& io) {
  make_dirs(io, folder);
  // Named like drafts, so that the next save deletes leftovers of a crash.
  const std::string made = join(folder, draft_name(kName)), renamed = join(folder, deleted_name(kName));
  remove_tree(io, made);
  remove_tree(io, renamed);
  try {
    io.make_dir(made);
    const std::string file = join(made, kName);
    const int handle = io.create(file);
    try {
      io.allocate(handle, file, bytes);
      io.write(handle, file, kName, 5);
      io.sync_file(handle, file);
    } catch (...) {
      (void)attempt([&] { io.close(handle, file); });
      throw;
    }
    io.close(handle, file);
    io.rename(made, renamed);
    io.sync_dir(folder);
    remove_tree(io, renamed);
  } catch (...) {
    (void)attempt([&] { remove_tree(io, made); });
    (void)attempt([&] { remove_tree(io, renamed); });
    throw;
  }
}

std::int64_t free_bytes_at(const std::string& path, Io& io) {
  fs::path folder = fs::path(path).lexically_normal();
  std::error_code error;
  while (!folder.empty() && !fs::is_directory(folder, error)) {
    const fs::path parent = folder.parent_path();
    if (parent == folder) break;
    folder = parent;
  }
  return io.free_bytes(folder.empty() ? "." : folder.string());
}

}  // namespace runner::artifact
