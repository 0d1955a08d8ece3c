#include "tests/support/checkpoints.h"

#include <algorithm>
#include <filesystem>

#include "runner/artifact/io/io.h"

namespace tests {
namespace {

class FastDisk final : public runner::artifact::Io {
 public:
  void sync_file(int, const std::string&) override {}
  void sync_dir(const std::string&) override {}
};

}  // namespace

std::string save_checkpoint(const std::string& checkpoints_dir, const runner::artifact::ManifestFields& fields,
                            const std::string& content, std::int64_t now_ms) {
  FastDisk io;
  const auto draft = runner::artifact::CheckpointWriter::begin(checkpoints_dir, fields.step, 0, io).value();
  draft->add_text("trainer.json", content).value();
  return draft->commit(fields, nullptr, now_ms).value();
}

std::vector<std::string> names_in(const std::string& folder) {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    names.push_back(entry.path().filename().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace tests
