#include "runner/engine/limits_file.h"

#include <filesystem>
#include <functional>
#include <memory>

#include "runner/core/diagnostics.h"
#include "runner/core/node.h"
#include "runner/core/platform/files.h"
#include "runner/core/platform/machine.h"
#include "runner/recipe/read.h"

namespace runner::engine {
namespace {

std::string limits_path(int threads) {
  char name[64];
  std::snprintf(name, sizeof name, "/machine-%016zx-%dt.json", std::hash<std::string>{}(core::cpu_name()), threads);
  return core::cache_dir() + name;
}

}  // namespace

std::optional<MachineLimits> read_limits(int threads) {
  const auto text = core::read_file(limits_path(threads), 1 << 16);
  if (!text.ok()) return std::nullopt;
  const auto source = std::make_shared<core::Source>(core::Source{limits_path(threads), text.value(), {}});
  core::Diagnostics ignored;
  const auto node = recipe::read_json(source, {}, ignored);
  if (!node) return std::nullopt;
  MachineLimits limits;
  limits.cpu = core::cpu_name();
  limits.threads = threads;
  const auto read = [&node](const char* key, double& into) {
    if (const core::Node* value = node->find(key); value != nullptr && value->is_number()) into = value->as_double();
  };
  read("matmul_fp32_flops", limits.matmul_fp32_flops);
  read("matmul_bf16_flops", limits.matmul_bf16_flops);
  read("memory_bytes_per_s", limits.memory_bytes_per_s);
  read("disk_write_bytes_per_s", limits.disk_write_bytes_per_s);
  return limits;
}

void write_limits(const MachineLimits& limits) {
  core::Node node = core::Node::mapping();
  node.set("cpu", core::Node::string(limits.cpu));
  node.set("threads", core::Node::integer(limits.threads));
  node.set("matmul_fp32_flops", core::Node::floating(limits.matmul_fp32_flops));
  node.set("matmul_bf16_flops", core::Node::floating(limits.matmul_bf16_flops));
  node.set("memory_bytes_per_s", core::Node::floating(limits.memory_bytes_per_s));
  node.set("disk_write_bytes_per_s", core::Node::floating(limits.disk_write_bytes_per_s));
  core::make_folders(core::cache_dir()).value();
  core::write_file_atomic(limits_path(limits.threads), core::to_json(node) + "\n").value();
}

}  // namespace runner::engine
