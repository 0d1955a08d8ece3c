#include "runner/resolve/gguf_values.h"

#include <chrono>
#include <filesystem>
#include <thread>

#include "runner/core/error.h"
#include "runner/core/log.h"
#include "runner/core/platform/machine.h"
#include "runner/core/units.h"
#include "runner/gguf/unpack.h"
#include "runner/hub/file_lock.h"
#include "runner/pretrained/config.h"

namespace runner::resolve {
namespace {

namespace fs = std::filesystem;
using core::Node;

std::string unpacked(const std::string& name) {
  const fs::path file = fs::canonical(name);
  const fs::path cache = fs::path(core::cache_dir()) / "gguf";
  const std::string folder = (cache / (file.stem().string() + "-" + gguf::content_key(file.string()))).string();
  if (!pretrained::config_of_folder(folder).empty()) return folder;
  const auto opened = gguf::open(name).value();
  std::error_code failed;
  fs::create_directories(cache, failed);
  const auto wait = [](double seconds) { std::this_thread::sleep_for(std::chrono::duration<double>(seconds)); };
  const hub::FileLock lock(
      folder + ".lock", wait, [&] { core::log_info("another process unpacks " + name); }, "ROUX_CACHE_DIR");
  if (!pretrained::config_of_folder(folder).empty()) return folder;
  gguf::unpack(*opened, name, folder, [&] {
    core::log_info("unpacking " + name + " into " + folder + ", " + core::format_bytes(gguf::unpacked_bytes(*opened)));
  }).value();
  return folder;
}

void locate(Node* value, core::Diagnostics& diagnostics) {
  std::error_code failed;
  if (value == nullptr || !value->is_string() || !value->as_string().ends_with(gguf::kEnding) ||
      !fs::is_regular_file(value->as_string(), failed)) {
    return;
  }
  const auto folder = unpacked_gguf(value->as_string());
  if (!folder) {
    diagnostics.error(value->location(), folder.failure().message, folder.failure().hint);
    *value = Node::refused(value->location());
    return;
  }
  Node path = Node::string(folder.value(), value->location());
  path.set_history(value->history());
  path.add_history({"unpacked from " + value->as_string(), core::Origin::kSettled});
  *value = std::move(path);
}

Node* inner(Node* value, const char* key) { return value != nullptr && value->is_mapping() ? value->find(key) : value; }

}  // namespace

core::Result<std::string> unpacked_gguf(const std::string& file) {
  return core::attempt([&] { return unpacked(file); });
}

void locate_gguf_values(Node* init_from, Node* teacher, core::Diagnostics& diagnostics) {
  locate(inner(init_from, "path"), diagnostics);
  locate(inner(teacher, "init_from"), diagnostics);
}

}  // namespace runner::resolve
