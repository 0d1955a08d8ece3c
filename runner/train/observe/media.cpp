#include "runner/train/observe/media.h"

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <utility>

#include "runner/core/log.h"
#include "runner/core/picture/canvas.h"
#include "runner/core/platform/files.h"

namespace runner::train {
namespace {

using core::Node;

constexpr std::size_t kNameMax = 60;  ///< length of a file's name; a number makes it unique

std::string plain(const std::string& name) {
  std::string text = name.substr(0, kNameMax);
  std::replace_if(
      text.begin(), text.end(),
      [](char c) { return std::isalnum(static_cast<unsigned char>(c)) == 0 && c != '-' && c != '_'; }, '_');
  return text;
}

/// Empty on success, else the reason.
std::string problem_with(const std::string& path, const std::string& content) {
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file.write(content.data(), static_cast<std::streamsize>(content.size()));
  file.close();
  if (file) return "";
  std::string why = std::strerror(errno);
  std::remove(path.c_str());
  return why;
}

}  // namespace

void Media::add(std::int64_t step, const std::string& name, const components::callback::Table& table) {
  Node content = Node::mapping();
  content.set("columns", Node::sequence());
  for (const std::string& column : table.columns) content.find("columns")->items().push_back(Node::string(column));
  content.set("data", Node::sequence());
  for (const auto& row : table.rows) content.find("data")->items().push_back(Node::sequence(row));
  write("table", step, name, ".json", core::to_json(content, -1) + "\n", Node::mapping());
}

void Media::add(std::int64_t step, const std::string& name, const std::string& caption, const core::Canvas& image) {
  Node data = Node::mapping();
  data.set("caption", Node::string(caption));
  data.set("width", Node::integer(image.width()));
  data.set("height", Node::integer(image.height()));
  write("image", step, name, ".png", image.png_bytes(), std::move(data));
}

void Media::write(const char* kind, std::int64_t step, const std::string& name, const char* ending,
                  const std::string& content, Node data) {
  const std::string path = new_path(step, name, ending);
  const auto folder = core::make_folders(path.substr(0, path.rfind('/')));
  const std::string why = folder ? problem_with(path, content) : folder.failure().message;
  if (!why.empty()) {
    if (!std::exchange(told_, true)) {
      core::log_warning("cannot write " + path + ": " + why + "; training continues without these images and tables");
    }
    return;
  }
  told_ = false;
  data.set("name", Node::string(name));
  data.set("bytes", Node::integer(static_cast<std::int64_t>(content.size())));
  run_.artefact(kind, step, path, std::move(data));
}

// A branch that repeats a step must not remove files of another branch that trackers have yet to read.
std::string Media::new_path(std::int64_t step, const std::string& name, const char* ending) {
  const std::int64_t branch = run_.branch();
  if (step != step_ || branch != branch_) of_step_ = 0;
  step_ = step;
  branch_ = branch;
  char head[64];
  std::snprintf(head, sizeof head, "/media/branch-%lld/step-%07lld-%lld-", static_cast<long long>(branch_),
                static_cast<long long>(step), static_cast<long long>(++of_step_));
  return run_.run_dir() + head + plain(name) + ending;
}

}  // namespace runner::train
