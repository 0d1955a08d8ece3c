#include "runner/train/save/provenance_recorder.h"

#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <chrono>
#include <exception>
#include <utility>

#include "runner/core/log.h"
#include "runner/core/platform/files.h"
#include "runner/core/platform/machine.h"
#include "runner/store/database/unsynced_file.h"
#include "runner/store/run_reader.h"

namespace runner::train {
namespace {

constexpr std::chrono::milliseconds kLook(20);  // between polls for the code state or a stop request
constexpr int kLooksAtEnd = 50;                 // one second: a hanging git must not delay the end of a run

}  // namespace

ProvenanceRecorder::ProvenanceRecorder(artifact::Provenance provenance, store::RunWriter& run, std::int64_t step,
                                       std::shared_future<artifact::GitState> code, bool light)
    : provenance_(std::move(provenance)),
      run_(run),
      step_(step),
      folder_(store::branch_folder(run.run_dir(), run.branch())),
      code_(std::move(code)),
      light_(light) {
  if (light_ && provenance_.data.empty() && knows_code()) {
    record();
  } else {
    thread_ = std::thread([this] {
      setpriority(PRIO_PROCESS, static_cast<id_t>(syscall(SYS_gettid)), 19);
      record();
    });
  }
}

ProvenanceRecorder::~ProvenanceRecorder() {
  stop_ = true;
  if (thread_.joinable()) thread_.join();
}

void ProvenanceRecorder::finish(std::int64_t timeout_ms) {
  ending_ = true;
  std::unique_lock lock(mutex_);
  done_.wait_for(lock, std::chrono::milliseconds(timeout_ms), [this] { return complete_; });
}

void ProvenanceRecorder::record() {
  read_and_write();
  const std::lock_guard lock(mutex_);
  complete_ = true;
  done_.notify_all();
}

void ProvenanceRecorder::read_and_write() {
  try {
    provenance_.cpu = core::cpu_name();
    provenance_.host = core::host_name();
    static const auto cores = static_cast<int>(sysconf(_SC_NPROCESSORS_ONLN));  // found in a file, each time
    provenance_.cores = cores;
    provenance_.memory_bytes = core::memory_limit();
    for (artifact::DataFile& file : provenance_.data) {
      if (auto seen = artifact::stat_data_file(file.set, file.path)) file = std::move(seen).value();
    }
    const bool is_early = !knows_code() || !provenance_.data.empty();
    if (is_early) write();
    if (code_.valid()) take_code();
    if (code_.valid() || !is_early) write();
    for (artifact::DataFile& file : provenance_.data) {
      if (stop_) break;
      auto read = artifact::read_data_file(file.set, file.path, &stop_);
      if (read) {
        file = std::move(read).value();
      } else {
        core::log_warning("the capsule of this run lacks a checksum: " + read.failure().message);
      }
    }
    if (!provenance_.data.empty()) write();
    add_artefact("capsule", artifact::kProvenanceFile);
  } catch (const std::exception& error) {
    core::log_warning("the capsule of this run could not be written: " + std::string(error.what()));
  }
}

bool ProvenanceRecorder::knows_code() const {
  return !code_.valid() || code_.wait_for(std::chrono::seconds(0)) == std::future_status::ready;
}

void ProvenanceRecorder::take_code() {
  for (int looks = kLooksAtEnd; code_.wait_for(kLook) != std::future_status::ready;) {
    if (stop_) return;
    if (!ending_ || --looks > 0) continue;
    artifact::GitState late;
    late.note = "the run ended before git answered";
    provenance_.code = late.to_node();
    return;
  }
  const artifact::GitState& code = code_.get();
  if (!code.diff.empty()) {
    write(artifact::kDiffFile, code.diff);
    add_artefact("code", artifact::kDiffFile);
  }
  provenance_.code = code.to_node();
}

void ProvenanceRecorder::write() const {
  core::make_folders(folder_).value();
  write(artifact::kProvenanceFile, core::to_json(provenance_.to_node()) + "\n");
}

void ProvenanceRecorder::write(const char* file, const std::string& content) const {
  const std::string path = folder_ + "/" + file;
  if (light_) return store::write_unsynced(path, content);
  core::write_file_atomic(path, content).value();
}

void ProvenanceRecorder::add_artefact(const char* kind, const char* file) {
  core::Node data = core::Node::mapping();
  data.set("name", core::Node::string(file));
  run_.artefact(kind, step_, folder_ + "/" + file, std::move(data));
}

}  // namespace runner::train
