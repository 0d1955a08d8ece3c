#include "runner/artifact/joint_save.h"

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <system_error>
#include <thread>
#include <unordered_map>
#include <utility>

#include "runner/artifact/manifest.h"
#include "runner/core/error.h"
#include "runner/core/fields.h"
#include "runner/core/json.h"
#include "runner/core/platform/files.h"
#include "runner/core/units.h"

namespace runner::artifact {
namespace {

namespace fs = std::filesystem;

using core::Node;
using core::RunError;

constexpr auto kLook = std::chrono::milliseconds(5);
constexpr std::int64_t kShareBytesMax = 64 << 20;

std::string path_of(const std::string& folder, const char* what, std::int64_t number) {
  return (fs::path(folder) / ("." + std::string(what) + "-" + std::to_string(number))).string();
}
std::string mark_of(const std::string& folder, const JointSave& save) { return path_of(folder, "save", save.number); }
std::string share_of(const std::string& folder, int process) { return path_of(folder, "share", process); }
std::string failure_of(const std::string& folder, int process) { return path_of(folder, "failure", process); }

bool is_there(const std::string& path) {
  std::error_code ignored;
  return fs::exists(path, ignored);
}

/// A file that appears whole.
void write_whole(Io& io, const std::string& path, const std::string& text) {
  const std::string draft = path + ".draft";
  std::error_code ignored;
  fs::remove(draft, ignored);  // of an attempt before
  const int handle = io.create(draft);
  io.write(handle, draft, text.data(), static_cast<std::int64_t>(text.size()));
  io.close(handle, draft);
  io.rename(draft, path);
}

[[noreturn]] void throw_failure(int process, const std::string& path) {
  const Node node = core::parse_json(core::read_file(path, kShareBytesMax).value()).value();
  const core::Fields fields(node, path);
  throw RunError("process " + std::to_string(process) + " could not save its part: " + fields.text("message"),
                 fields.text("hint"), static_cast<int>(fields.integer("exit_code")));
}

/// Looks until `found`; what is waited for is `what`, of a process.
template <typename Found>
void wait_until(const JointSave& save, int process, const std::string& what, const Found& found) {
  const auto begin = std::chrono::steady_clock::now();
  while (!found()) {
    const bool has_ended = save.has_ended && save.has_ended(process);
    if (has_ended && !found()) {  // nor did it do so before it ended
      throw RunError("the save waited for " + what + ": it has ended", "", core::kExitPeerLost);
    }
    if (save.give_up && save.give_up()) {
      throw RunError("the save was given up while it waited for " + what, "", core::kExitPeerLost);
    }
    const std::chrono::duration<double> waited = std::chrono::steady_clock::now() - begin;
    if (waited.count() > save.timeout_s) {
      throw RunError("the save waited " + core::format_duration(waited.count()) + " for " + what,
                     "start the run again: it resumes from its last checkpoint", core::kExitPeerLost);
    }
    std::this_thread::sleep_for(kLook);
  }
}

}  // namespace

void open_draft(Io& io, const std::string& folder, const JointSave& save) {
  write_whole(io, mark_of(folder, save), "");
}

void await_draft(const std::string& folder, const JointSave& save) {
  wait_until(save, 0, "process 0 to open " + folder, [&] { return is_there(mark_of(folder, save)); });
}

void hand_in(Io& io, const std::string& folder, const JointSave& save, const Share& share) {
  write_whole(io, share_of(folder, save.process), manifest_text({kManifestVersion, {}, 0, share.files, share.pieces}));
}

void hand_in_failure(Io& io, const std::string& folder, const JointSave& save, const core::Failure& failure) {
  Node node = Node::mapping();
  node.set("message", Node::string(failure.message));
  node.set("hint", Node::string(failure.hint));
  node.set("exit_code", Node::integer(failure.exit_code));
  write_whole(io, failure_of(folder, save.process), core::to_json(node));
}

std::vector<Share> collect_shares(Io& io, const std::string& folder, const JointSave& save) {
  for (int process = 1; process < save.processes; ++process) {
    wait_until(save, process, "process " + std::to_string(process) + " to write its part", [&] {
      for (int any = 1; any < save.processes; ++any) {
        if (is_there(failure_of(folder, any))) throw_failure(any, failure_of(folder, any));
      }
      // Where it lies now the others do not look, and each would wait for the other.
      if (!is_there(folder)) throw RunError(folder + " was moved or removed while the processes wrote their parts");
      return is_there(share_of(folder, process));
    });
  }
  std::vector<Share> shares;
  for (int process = 1; process < save.processes; ++process) {
    const std::string path = share_of(folder, process);
    Manifest manifest = parse_manifest(core::read_file(path, kShareBytesMax).value(), path).value();
    shares.push_back({std::move(manifest.files), std::move(manifest.pieces)});
  }
  for (int process = 1; process < save.processes; ++process) io.remove_file(share_of(folder, process));
  io.remove_file(mark_of(folder, save));
  return shares;
}

void add_pieces(std::vector<PieceSet>& to, const std::vector<PieceSet>& more) {
  for (const PieceSet& set : more) {
    auto known = std::find_if(to.begin(), to.end(), [&set](const PieceSet& one) { return one.set == set.set; });
    if (known == to.end()) known = to.insert(to.end(), PieceSet{set.set, {}});
    std::unordered_map<std::string, std::size_t> places;
    for (std::size_t i = 0; i < known->tensors.size(); ++i) places.emplace(known->tensors[i].name, i);
    for (const TensorPieces& tensor : set.tensors) {
      const auto place = places.find(tensor.name);
      if (place == places.end()) {
        known->tensors.push_back(tensor);
      } else {
        auto& pieces = known->tensors[place->second].pieces;
        pieces.insert(pieces.end(), tensor.pieces.begin(), tensor.pieces.end());
      }
    }
  }
}

}  // namespace runner::artifact
