#include "runner/engine/prediction_file.h"

#include <unistd.h>

#include <cerrno>
#include <cmath>
#include <cstring>
#include <filesystem>

#include "runner/core/error.h"
#include "runner/core/text/text.h"

namespace runner::engine {
namespace {

namespace fs = std::filesystem;

using core::Node;

constexpr const char* kJson = "json";
constexpr const char* kCsv = "csv";

std::string csv_text(const Node& value) {
  if (value.is_null()) return "";
  if (value.is_string()) return value.as_string();
  return value.is_number() && !value.is_integer() ? core::number_text(value.as_double()) : core::to_json(value, -1);
}

}  // namespace

PredictionFile::PredictionFile(const std::string& path, const std::string& format)
    : path_(path), written_path_(path), format_(format), owned_(nullptr, std::fclose), file_(stdout) {
  if (path.empty()) return;
  std::error_code ignored;
  const fs::file_status status = fs::symlink_status(path, ignored);
  if (fs::is_directory(fs::status(path, ignored))) {
    throw core::RunError("cannot write " + path + ": it is a folder", "name a file in it", core::kExitUsage);
  }
  if (fs::exists(path, ignored) && access(path.c_str(), W_OK) != 0) fail(std::strerror(errno));
  // A link keeps its target, which may not exist yet, and a pipe or device is written as it is.
  if (!fs::exists(status) || fs::is_regular_file(status)) written_path_ += ".part-" + std::to_string(getpid());
  owned_.reset(std::fopen(written_path_.c_str(), "w"));
  if (owned_ == nullptr) fail(std::strerror(errno));
  file_ = owned_.get();
}

PredictionFile::~PredictionFile() {
  if (file_ == nullptr || written_path_ == path_) return;
  owned_.reset();
  std::error_code ignored;
  fs::remove(written_path_, ignored);
}

void PredictionFile::fail(const std::string& why) const {
  throw core::RunError("cannot write " + (path_.empty() ? "to standard output" : path_) + ": " + why,
                       path_.empty() ? "" : "check that its folder exists, is writable and has space");
}

void PredictionFile::put(const std::string& text) {
  if (std::fwrite(text.data(), 1, text.size(), file_) != text.size()) fail("write failed");
}

std::vector<std::pair<std::string, std::string>> PredictionFile::columns(const Node& row) {
  std::vector<std::pair<std::string, std::string>> columns;
  for (const Node::Entry& entry : row.entries()) {
    // One of `probabilities` is a probability.
    const std::string name = entry.key == "probabilities" ? "probability" : entry.key;
    for (const Node::Entry& item : entry.value.entries()) {
      columns.emplace_back(name + "_" + item.key, csv_text(item.value));
    }
    for (std::size_t i = 0; entry.value.is_sequence() && i < entry.value.items().size(); ++i) {
      columns.emplace_back(name + "_" + std::to_string(i + 1), csv_text(entry.value.items()[i]));
    }
    if (!entry.value.is_mapping() && !entry.value.is_sequence()) columns.emplace_back(name, csv_text(entry.value));
  }
  return columns;
}

void PredictionFile::add(const Node& row) {
  ++rows_;
  if (format_ != kCsv) {
    const char* before = format_ != kJson ? "" : rows_ == 1 ? "[\n" : ",\n";
    return put(before + core::to_json(row, -1) + (format_ == kJson ? "" : "\n"));
  }
  std::string titles, fields;
  for (const auto& [name, text] : columns(row)) {
    if (!titles.empty()) {
      titles += ",";
      fields += ",";
    }
    titles += core::csv_field(name);
    fields += core::csv_field(text);
  }
  put((rows_ == 1 ? titles + "\n" : "") + fields + "\n");
}

void PredictionFile::finish() {
  if (format_ == kJson) put(rows_ == 0 ? "[]\n" : "\n]\n");
  if (std::fflush(file_) != 0 || std::ferror(file_) != 0) fail("write failed");
  if (owned_ == nullptr) return;
  std::FILE* closing = owned_.release();
  file_ = nullptr;
  bool good = std::fclose(closing) == 0;
  if (good && written_path_ != path_) good = std::rename(written_path_.c_str(), path_.c_str()) == 0;
  if (good) return;
  const std::string why = std::strerror(errno);
  if (written_path_ != path_) std::remove(written_path_.c_str());
  fail(why);
}

}  // namespace runner::engine
