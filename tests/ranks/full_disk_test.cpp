// A disk that is full: a small file system in memory, which only root may mount.

#include <signal.h>
#include <sys/mount.h>
#include <sys/statvfs.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <thread>
#include <utility>

#include "tests/support/process/process.h"
#include "tests/support/skip.h"
#include "tests/support/temp_dir.h"

namespace {

namespace fs = std::filesystem;
using tests::Process;

// A checkpoint takes 1.3 MB; all are kept, so that none makes room for the next. The steps between two take long enough
// for the disk to be filled meanwhile.
constexpr const char* kRecipe = R"(
recipe_version: 1
run_name: tight
model: {type: gpt, n_layer: 2, n_head: 2, n_embd: 64}
data: {train: {type: text, path: corpus.txt, max_seq_len: 16}}
loss: cross_entropy
optimizer: {type: adamw, lr: 1.0e-3}
training: {max_steps: 300, micro_batch_size: 2}
checkpoint: {save_steps: 50}
)";

/// A file system of its own below a folder; the test is skipped when this user may not mount one.
class SmallDisk {
 public:
  explicit SmallDisk(const std::string& megabytes) : path_(dir_ / "disk") {
    fs::create_directory(path_);
    mounted_ = ::mount("tmpfs", path_.c_str(), "tmpfs", 0, ("size=" + megabytes + "m").c_str()) == 0;
    if (!mounted_) tests::skip("no file system can be mounted (root can)");
    std::ofstream(dir_ / "recipe.yaml") << kRecipe;
    std::ofstream corpus(dir_ / "corpus.txt");
    for (int i = 0; i < 200; ++i) corpus << "line " << i * i << " of a small corpus\n";
  }
  ~SmallDisk() {
    if (mounted_) ::umount2(path_.c_str(), MNT_DETACH);
  }

  const std::string& path() const { return path_; }
  void fill() const {
    std::ofstream file(filler(), std::ios::binary);
    const std::string block(4096, 'x');
    while (file.write(block.data(), static_cast<std::streamsize>(block.size())).flush()) {
    }
  }
  void make_room() const { fs::remove(filler()); }
  /// Until what a run writes of itself at its start is there: it trains from then on.
  void wait_for_record() const {
    for (int i = 0; i < 20'000; ++i) {
      for (const auto& entry : fs::directory_iterator(path_)) {
        if (fs::exists(entry.path() / "recipe.yaml") && fs::exists(entry.path() / "capsule.json")) return;
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    FAIL("the run has not written its record");
  }

  std::vector<std::string> run(std::vector<std::string> more = {}) const {
    std::vector<std::string> command = {tests::roux_program(), "run", "recipe.yaml", "--output-dir", path_};
    command.insert(command.end(), more.begin(), more.end());
    return command;
  }
  const std::string& folder() const { return dir_.path(); }

  /// How many checkpoints the only run has; all of them have to be whole.
  int whole_checkpoints() const {
    Process verify({tests::roux_program(), "checkpoints", "verify", "last", "--output-dir", path_}, {}, folder());
    const int status = verify.wait();
    INFO(verify.output());
    CHECK(status == 0);
    int count = 0;
    for (const auto& run : fs::directory_iterator(path_)) {
      if (!fs::is_directory(run.path() / "checkpoints")) continue;
      for (const auto& entry : fs::directory_iterator(run.path() / "checkpoints")) {
        CHECK(entry.path().filename().string().front() != '.');
        ++count;
      }
    }
    return count;
  }

 private:
  std::string filler() const { return path_ + "/filler"; }

  tests::TempDir dir_;
  std::string path_;
  bool mounted_ = false;
};

const std::map<std::string, std::string> kOneThread = {{"OMP_NUM_THREADS", "1"}};

}  // namespace

TEST_CASE("a save that finds no room waits for it, and the run ends as if nothing had been", "[ranks][full_disk]") {
  for (const char* async : {"true", "false"}) {
    DYNAMIC_SECTION("async_save " << async) {
      const SmallDisk disk("24");
      Process process(disk.run({"--set", std::string("checkpoint.async_save=") + async}), kOneThread, disk.folder());
      REQUIRE(process.wait_for("step-000050"));
      disk.fill();
      REQUIRE(process.wait_for("waits for disk space"));
      disk.make_room();
      const int status = process.wait();
      INFO(process.output());
      CHECK(status == 0);
      CHECK(process.output().find("disk space is available again: saving step") != std::string::npos);
      CHECK(disk.whole_checkpoints() == 6);
    }
  }
}

TEST_CASE("with on_full_disk: stop the run ends resumable, and goes on when there is room", "[ranks][full_disk]") {
  const SmallDisk disk("24");
  {
    Process process(disk.run({"--set", "checkpoint.on_full_disk=stop"}), kOneThread, disk.folder());
    REQUIRE(process.wait_for("step-000050"));
    disk.fill();
    const int status = process.wait();
    INFO(process.output());
    CHECK(status == 75);
    CHECK(process.output().find("hint: free some space") != std::string::npos);
  }
  CHECK(disk.whole_checkpoints() >= 1);
  disk.make_room();
  Process second(disk.run(), kOneThread, disk.folder());
  const int status = second.wait();
  INFO(second.output());
  CHECK(status == 0);
  CHECK(second.output().find("resuming ") != std::string::npos);
  CHECK(disk.whole_checkpoints() == 6);
}

TEST_CASE("a resume on a full disk exits as resumable, and resumes when there is room", "[ranks][full_disk]") {
  const SmallDisk disk("24");
  {
    Process process(disk.run(), kOneThread, disk.folder());
    REQUIRE(process.wait_for("step-000050"));
    process.send(SIGKILL);
    process.wait();
  }
  disk.fill();
  {
    Process process(disk.run({"--set", "checkpoint.on_full_disk=stop"}), kOneThread, disk.folder());
    const int status = process.wait();
    INFO(process.output());
    CHECK(status == 75);
    CHECK(process.output().find("hint: ") != std::string::npos);
  }
  disk.make_room();
  Process again(disk.run(), kOneThread, disk.folder());
  const int status = again.wait();
  INFO(again.output());
  CHECK(status == 0);
  CHECK(again.output().find("resuming ") != std::string::npos);
  CHECK(disk.whole_checkpoints() == 6);
}

TEST_CASE("a signal or the timeout stops a save that waits for disk space", "[ranks][full_disk]") {
  struct Case {
    const char* name;
    const char* timeout;
    bool signal;
  };
  for (const Case& c : {Case{"signal", "1h", true}, Case{"patience", "0.3s", false}}) {
    DYNAMIC_SECTION(c.name) {
      const SmallDisk disk("24");
      Process process(disk.run({"--set", std::string("checkpoint.full_disk_timeout=") + c.timeout}), kOneThread,
                      disk.folder());
      REQUIRE(process.wait_for("step-000050"));
      disk.fill();
      REQUIRE(process.wait_for("waits for disk space"));
      if (c.signal) process.send(SIGTERM);
      const int status = process.wait();
      INFO(process.output());
      CHECK(status == 75);
      CHECK(disk.whole_checkpoints() >= 1);
    }
  }
}

TEST_CASE("metrics that find no room wait for it in memory, and the run ends as if nothing had been",
          "[ranks][full_disk]") {
  const SmallDisk disk("4");
  const std::vector<std::string> words = {"--set", "checkpoint={save_at_end: false, full_disk_timeout: 1h}", "--set",
                                          "logging_steps=1"};
  {
    Process process(disk.run(words), kOneThread, disk.folder());
    disk.wait_for_record();
    disk.fill();
    REQUIRE(process.wait_for("metrics are kept in memory meanwhile"));
    disk.make_room();
    const int status = process.wait();
    INFO(process.output());
    CHECK(status == 0);
    CHECK(process.output().find("accepts metrics again, nothing was lost") != std::string::npos);
  }
  Process show({tests::roux_program(), "runs", "show", "last", "--metric", "loss", "--format", "json", "--output-dir",
                disk.path()},
               {}, disk.folder());
  CHECK(show.wait() == 0);
  const std::string points = show.output();
  CHECK(std::count(points.begin(), points.end(), '[') == 301);  // a list of 300 pairs
}

TEST_CASE("a run without checkpoints whose metrics find no room ends as resumable", "[ranks][full_disk]") {
  const std::pair<const char*, const char*> cases[] = {
      {"on_full_disk: stop", "set checkpoint.on_full_disk: wait"},
      {"full_disk_timeout: 0.3s", "raise checkpoint.full_disk_timeout"}};
  for (const auto& [policy, way_out] : cases) {
    DYNAMIC_SECTION(policy) {
      const SmallDisk disk("4");
      Process process(disk.run({"--set", "checkpoint={save_at_end: false, " + std::string(policy) + "}", "--set",
                                "logging_steps=1", "--set", "training={max_time: 1h, micro_batch_size: 2}"}),
                      kOneThread, disk.folder());
      disk.wait_for_record();
      disk.fill();
      const int status = process.wait();
      INFO(process.output());
      CHECK(status == 75);
      CHECK(process.output().find("error: the disk has not accepted ") != std::string::npos);
      CHECK(process.output().find(std::string("hint: free some space, or ") + way_out) != std::string::npos);
    }
  }
}

TEST_CASE("a disk without room for the checkpoints is reported before training", "[ranks][full_disk]") {
  const SmallDisk disk("3");
  Process process(disk.run({"--set", "checkpoint.save_total_limit=2"}), kOneThread, disk.folder());
  const int status = process.wait();
  INFO(process.output());
  CHECK(status == 1);
  CHECK(process.output().find("while one is written), but only 3.1 MB are free") != std::string::npos);
  for (const auto& entry : fs::directory_iterator(disk.path())) CHECK_FALSE(entry.is_directory());
}
