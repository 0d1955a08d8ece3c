#include "runner/store/null_run_writer.h"

#include <utility>

namespace runner::store {
namespace {

class Follower final : public RunWriter {
 public:
  Follower(std::string run_dir, std::string run_id, std::int64_t branch)
      : run_dir_(std::move(run_dir)), run_id_(std::move(run_id)), branch_(branch) {}

  const std::string& run_dir() const override { return run_dir_; }
  const std::string& run_id() const override { return run_id_; }
  std::int64_t branch() const override { return branch_; }
  void rewind(std::int64_t) override { ++branch_; }
  MetricId metric(const std::string&, const std::string&) override { return 0; }
  void log(std::int64_t, std::span<const MetricValue>) override {}
  void event(const std::string&, std::int64_t, core::Node) override {}
  void artefact(const std::string&, std::int64_t, const std::string&, core::Node) override {}
  std::int64_t last_row() const override { return 0; }
  std::int64_t flush_durable(std::int64_t) override { return 0; }
  void set_summary(core::Node) override {}
  void set_disk_timeout(DiskTimeout) override {}
  bool finish(RunStatus, const std::string&) override { return true; }
  void throw_if_failed() const override {}
  std::int64_t points_waited() const override { return 0; }

 private:
  std::string run_dir_, run_id_;
  std::int64_t branch_;
};

}  // namespace

std::unique_ptr<RunWriter> null_run_writer(const std::string& run_dir, const std::string& run_id, std::int64_t branch) {
  return std::make_unique<Follower>(run_dir, run_id, branch);
}

}  // namespace runner::store
