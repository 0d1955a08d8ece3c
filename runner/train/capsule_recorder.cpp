#include "runner/train/capsule_recorder.h"

#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <chrono>
#include <exception>
#include <filesystem>
#include <utility>

#include "runner/core/files.h"
#include "runner/core/log.h"
#include "runner/core/machine.h"

namespace runner::train {

CapsuleRecorder::CapsuleRecorder(artifact::Capsule capsule, std::string path)
    : capsule_(std::move(capsule)), path_(std::move(path)), thread_([this] { record(); }) {}

CapsuleRecorder::~CapsuleRecorder() {
  stop_ = true;
  if (thread_.joinable()) thread_.join();
}

void CapsuleRecorder::finish(std::int64_t patience_ms) {
  std::unique_lock lock(mutex_);
  done_.wait_for(lock, std::chrono::milliseconds(patience_ms), [this] { return complete_; });
}

void CapsuleRecorder::record() {
  read_and_write();
  const std::lock_guard lock(mutex_);
  complete_ = true;
  done_.notify_all();
}

void CapsuleRecorder::read_and_write() {
  setpriority(PRIO_PROCESS, static_cast<id_t>(syscall(SYS_gettid)), 19);
  try {
    capsule_.cpu = core::cpu_name();
    for (artifact::DataFile& file : capsule_.data) {
      if (auto seen = artifact::look_at_data_file(file.set, file.path)) file = std::move(seen).value();
    }
    write();
    for (artifact::DataFile& file : capsule_.data) {
      if (stop_) return;
      auto read = artifact::read_data_file(file.set, file.path, &stop_);
      if (read) {
        file = std::move(read).value();
      } else {
        core::log_warning("the capsule of this run lacks a checksum: " + read.failure().message);
      }
    }
    if (!capsule_.data.empty()) write();
  } catch (const std::exception& error) {
    core::log_warning("the capsule of this run could not be written: " + std::string(error.what()));
  }
}

void CapsuleRecorder::write() const {
  std::error_code ignored;
  std::filesystem::create_directories(std::filesystem::path(path_).parent_path(), ignored);
  core::write_file_atomic(path_, core::to_json(capsule_.to_node()) + "\n").value();
}

}  // namespace runner::train
