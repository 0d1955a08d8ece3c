#include "runner/registry/config_parse.h"

#include "runner/core/error.h"
#include "runner/core/platform/files.h"

namespace runner::registry {
namespace {

constexpr std::int64_t kSecretBytesMax = 64 << 10;

}  // namespace

bool read_boolean(const core::Node& node) { return node.as_bool(); }
std::int64_t read_integer(const core::Node& node) { return node.as_integer(); }
double read_number(const core::Node& node) { return node.as_double(); }
std::string read_text(const core::Node& node) { return node.as_string(); }

std::string read_secret(const core::Node& node) {
  if (!node.is_mapping()) return node.as_string();
  const std::string& path = required(node, "file").as_string();
  const core::Result<std::string> content = core::read_file(path, kSecretBytesMax);
  if (!content) {
    throw core::RunError("the file of a secret: " + content.failure().message,
                         "a relative path counts from the current folder");
  }
  const std::size_t end = content.value().find_last_not_of("\r\n");
  if (end == std::string::npos) throw core::RunError("the file of a secret is empty: " + path);
  return content.value().substr(0, end + 1);
}

core::Interval read_interval(const core::Node& node) {
  const auto interval = core::parse_interval(node.scalar_text());
  RUNNER_ASSERT(interval.ok(), "validation has read this interval before");
  return interval.value();
}

double read_duration_s(const core::Node& node) {
  if (node.is_number()) return node.as_double();
  const auto seconds = core::parse_duration_s(node.as_string());
  RUNNER_ASSERT(seconds.ok(), "validation has read this duration before");
  return seconds.value();
}

std::int64_t read_bytes(const core::Node& node) {
  if (node.is_integer()) return node.as_integer();
  const auto bytes = core::parse_bytes(node.scalar_text());
  RUNNER_ASSERT(bytes.ok(), "validation has read this size before");
  return bytes.value();
}

const core::Node& required(const core::Node& block, const char* key) {
  const core::Node* value = block.find(key);
  if (!value || value->is_null()) core::assertion_failed(key, "validation asks for this key", __FILE__, __LINE__);
  return *value;
}

const core::Node* given(const core::Node& block, const char* key) {
  const core::Node* value = block.find(key);
  return value && !value->is_null() ? value : nullptr;
}

const std::string& type_of(const core::Node& block) {
  if (block.is_string()) return block.as_string();
  return required(block, "type").as_string();
}

void no_such_component(const char* kind, const std::string& name) {
  core::assertion_failed((std::string(kind) + "/" + name).c_str(), "validation lets only known names through", __FILE__,
                         __LINE__);
}

}  // namespace runner::registry
