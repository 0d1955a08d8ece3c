#include "runner/artifact/provenance/provenance.h"

#include <fcntl.h>
#include <fnmatch.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <memory>

#include "runner/artifact/io/checksum.h"
#include "runner/artifact/provenance/secrets.h"
#include "runner/core/error.h"
#include "runner/core/fields.h"
#include "runner/core/json.h"
#include "runner/core/platform/files.h"
#include "runner/core/text/text.h"

namespace runner::artifact {
namespace {

using core::Fields;
using core::Node;

constexpr int kCapsuleVersion = 1;
constexpr std::int64_t kCapsuleBytesMax = std::int64_t{1} << 30;
constexpr std::size_t kReadBytes = std::size_t{1} << 20;

constexpr std::array<const char*, 14> kVariables = {"OMP_NUM_THREADS",
                                                    "MKL_NUM_THREADS",
                                                    "OMP_DYNAMIC",
                                                    "MKL_DYNAMIC",
                                                    "MKL_CBWR",
                                                    "MKL_ENABLE_INSTRUCTIONS",
                                                    "ATEN_CPU_CAPABILITY",
                                                    "ROUX_CPU_CAPABILITY",
                                                    "ROUX_CPU_MAKER",
                                                    "ROUX_CPU_BF16",
                                                    "ONEDNN_MAX_CPU_ISA",
                                                    "DNNL_MAX_CPU_ISA",
                                                    "ONEDNN_DEFAULT_FPMATH_MODE",
                                                    "DNNL_DEFAULT_FPMATH_MODE"};

// Always recorded: variables that affect where and how a program computes.
constexpr std::array<const char*, 21> kUsualVariables = {"CUDA_*",          "NVIDIA_VISIBLE_DEVICES",
                                                         "NCCL_*",          "GLOO_*",
                                                         "TORCH_*",         "OMP_*",
                                                         "GOMP_*",          "KMP_*",
                                                         "MKL_*",           "ATEN_*",
                                                         "ONEDNN_*",        "DNNL_*",
                                                         "MALLOC_*",        "LD_PRELOAD",
                                                         "LD_LIBRARY_PATH", "SLURM_JOB_ID",
                                                         "SLURM_JOB_NAME",  "SLURM_JOB_NODELIST",
                                                         "SLURM_NNODES",    "SLURM_NTASKS",
                                                         "ROUX_*"};

struct Descriptor {
  explicit Descriptor(int given) : fd(given) {}
  ~Descriptor() {
    if (fd >= 0) close(fd);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int fd;
};

core::Failure cannot_read(const std::string& path) { return {"cannot read " + path + ": " + std::strerror(errno), ""}; }

core::Result<DataFile> look_at(int descriptor, const std::string& set, const std::string& path) {
  struct stat status = {};
  if (descriptor < 0 || fstat(descriptor, &status) != 0) return cannot_read(path);
  if (!S_ISDIR(status.st_mode)) {
    if (auto fits = core::check_is_file(path); !fits) return fits.failure();
  }
  return DataFile{set, path, status.st_size, status.st_mtim.tv_sec * 1'000'000'000 + status.st_mtim.tv_nsec, ""};
}

Node list_of(const std::vector<std::string>& words) {
  std::vector<Node> items;
  for (const std::string& word : words) items.push_back(Node::string(word));
  return Node::sequence(std::move(items));
}

Provenance provenance_of(const Node& node, const std::string& path) {
  const Fields fields(node, path);
  Provenance provenance;
  provenance.version = fields.text("version");
  provenance.source = fields.text("source");
  provenance.libtorch = fields.text("libtorch");
  provenance.cpu = fields.text("cpu");
  provenance.cpu_capability = fields.text("cpu_capability");
  provenance.threads = static_cast<int>(fields.integer("threads"));
  provenance.total_steps = fields.integer("total_steps");
  provenance.folder = fields.text("folder");
  provenance.recipe = fields.text("recipe");
  for (const auto& entry : fields.mapping("environment").entries()) {
    provenance.environment[entry.key] = entry.value.scalar_text();
  }
  for (const Node& word : fields.list("command_line")) provenance.command_line.push_back(word.scalar_text());
  for (const Node& item : fields.list("data")) {
    const Fields file(item, path + ": data");
    provenance.data.push_back(
        {file.text("set"), file.text("path"), file.integer("bytes"), file.integer("mtime_ns"), file.text("checksum")});
  }
  if (node.find("host") == nullptr) return provenance;  // written before these were recorded
  provenance.build = fields.text("build");
  provenance.host = fields.text("host");
  provenance.cores = static_cast<int>(fields.integer("cores"));
  provenance.memory_bytes = fields.integer("memory_bytes");
  if (const Node* code = node.find("code"); code->is_mapping()) provenance.code = *code;
  if (node.find("labels") == nullptr) return provenance;
  for (const Node& label : fields.list("labels")) provenance.labels.push_back(label.scalar_text());
  return provenance;
}

/// The files of both, by set and path.
using Files = std::map<std::pair<std::string, std::string>, const DataFile*>;

Files files_of(const Provenance& provenance) {
  Files files;
  for (const DataFile& file : provenance.data) files[{file.set, file.path}] = &file;
  return files;
}

bool is_same(const DataFile& a, const DataFile& b) {
  if (a.bytes != b.bytes) return false;
  if (!a.checksum.empty() && !b.checksum.empty()) return a.checksum == b.checksum;
  return a.mtime_ns == b.mtime_ns;
}

std::string name_of(const Files::key_type& key) {
  const auto& [set, path] = key;
  return "file " + path + " of " + (set == kInitFromSet ? set : "data." + set);
}

std::string file_text(const DataFile* file) {
  if (file == nullptr) return "not there";
  return std::to_string(file->bytes) + " bytes" + (file->checksum.empty() ? "" : ", " + file->checksum);
}

}  // namespace

Node Provenance::to_node() const {
  Node node = Node::mapping();
  node.set("capsule_version", Node::integer(kCapsuleVersion));
  node.set("version", Node::string(version));
  node.set("source", Node::string(source));
  node.set("libtorch", Node::string(libtorch));
  node.set("cpu", Node::string(cpu));
  node.set("cpu_capability", Node::string(cpu_capability));
  node.set("threads", Node::integer(threads));
  node.set("total_steps", Node::integer(total_steps));
  Node variables = Node::mapping();
  for (const auto& [name, value] : environment) variables.set(name, Node::string(value));
  node.set("environment", std::move(variables));
  node.set("folder", Node::string(folder));
  node.set("recipe", Node::string(recipe));
  node.set("command_line", list_of(command_line));
  std::vector<Node> files;
  for (const DataFile& file : data) {
    Node entry = Node::mapping();
    entry.set("set", Node::string(file.set));
    entry.set("path", Node::string(file.path));
    entry.set("bytes", Node::integer(file.bytes));
    entry.set("mtime_ns", Node::integer(file.mtime_ns));
    entry.set("checksum", Node::string(file.checksum));
    files.push_back(std::move(entry));
  }
  node.set("data", Node::sequence(std::move(files)));
  node.set("build", Node::string(build));
  node.set("host", Node::string(host));
  node.set("cores", Node::integer(cores));
  node.set("memory_bytes", Node::integer(memory_bytes));
  node.set("code", code);
  if (!labels.empty()) node.set("labels", list_of(labels));
  return node;
}

core::Result<Provenance> read_provenance(const std::string& path) {
  const auto text = core::read_file(path, kCapsuleBytesMax);
  if (!text) return text.failure();
  const auto node = core::parse_json(text.value());
  if (!node) return core::Failure{path + " cannot be read: " + node.failure().message, ""};
  const Node* version = node.value().find("capsule_version");
  if (version == nullptr || !version->is_integer()) return core::Failure{path + " is not a capsule of a run", ""};
  if (version->as_integer() > kCapsuleVersion) {
    return core::Failure{path + " has version " + std::to_string(version->as_integer()) +
                             ", this program reads up to " + std::to_string(kCapsuleVersion),
                         "use the version of roux that wrote it, or a newer one"};
  }
  return core::attempt([&] { return provenance_of(node.value(), path); });
}

std::map<std::string, std::string> arithmetic_environment() {
  std::map<std::string, std::string> found;
  for (const char* name : kVariables) {
    if (const char* value = std::getenv(name); value != nullptr) found[name] = value;
  }
  return found;
}

std::map<std::string, std::string> chosen_environment(const std::vector<std::string>& patterns) {
  std::map<std::string, std::string> found;
  for (char** variable = environ; *variable != nullptr; ++variable) {
    const std::string text = *variable;
    const std::size_t equals = text.find('=');
    if (equals == std::string::npos || equals == 0) continue;
    const std::string name = text.substr(0, equals);
    const auto fits = [&name](const std::string& pattern) { return fnmatch(pattern.c_str(), name.c_str(), 0) == 0; };
    // All of these begin with a letter, which skips most variables quickly.
    const auto fits_usual = [&](const char* pattern) { return *pattern == name.front() && fits(pattern); };
    const bool chosen = std::any_of(kUsualVariables.begin(), kUsualVariables.end(), fits_usual) ||
                        std::any_of(patterns.begin(), patterns.end(), fits);
    if (!chosen) continue;
    found[name] = sounds_secret(name) ? kHiddenValue : hide_secrets(text.substr(equals + 1));
  }
  return found;
}

core::Result<DataFile> stat_data_file(const std::string& set, const std::string& path) {
  const Descriptor file(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  return look_at(file.fd, set, path);
}

core::Result<DataFile> read_data_file(const std::string& set, const std::string& path, const std::atomic<bool>* stop) {
  const Descriptor file(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  auto found = look_at(file.fd, set, path);
  if (!found) return found;
  Checksum checksum;
  const auto buffer = std::make_unique<char[]>(kReadBytes);
  for (;;) {
    if (stop != nullptr && *stop) return found;
    const ssize_t got = read(file.fd, buffer.get(), kReadBytes);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return cannot_read(path);
    if (got == 0) break;
    checksum.update(buffer.get(), got);
  }
  found.value().checksum = checksum.text();
  return found;
}

std::vector<Cause> list_causes(const Provenance& before, const Provenance& after) {
  std::vector<Cause> causes;
  const auto compare = [&causes](const std::string& what, const std::string& a, const std::string& b) {
    if (a != b) causes.push_back({what, a.empty() ? "not set" : a, b.empty() ? "not set" : b});
  };
  const Files then = files_of(before), now = files_of(after);
  for (const auto& [key, file] : then) {
    const auto other = now.find(key);
    const DataFile* there = other == now.end() ? nullptr : other->second;
    if (there != nullptr && is_same(*file, *there)) continue;
    causes.push_back({name_of(key), file_text(file), file_text(there)});
  }
  for (const auto& [key, file] : now) {
    if (!then.contains(key)) causes.push_back({name_of(key), file_text(nullptr), file_text(file)});
  }
  compare("threads", std::to_string(before.threads), std::to_string(after.threads));
  compare("CPU capability", before.cpu_capability, after.cpu_capability);
  compare("CPU", before.cpu, after.cpu);
  compare("LibTorch", before.libtorch, after.libtorch);
  compare("version of roux", before.version, after.version);
  compare("source of roux", before.source, after.source);
  const auto value_in = [](const Provenance& provenance, const std::string& name) {
    const auto found = provenance.environment.find(name);
    return found == provenance.environment.end() ? std::string() : found->second;
  };
  for (const char* name : kVariables) compare(name, value_in(before, name), value_in(after, name));
  return causes;
}

}  // namespace runner::artifact
