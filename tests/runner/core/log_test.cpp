#include "runner/core/log.h"

#include <fcntl.h>
#include <unistd.h>
#include <catch2/catch.hpp>

#include <fstream>
#include <sstream>
#include <string>
#include <thread>

#include "tests/support/temp_dir.h"

namespace core = runner::core;

namespace {

/// What is written to standard error while this lives.
class Caught {
 public:
  Caught() : before_(dup(STDERR_FILENO)) {
    const int file = open(path().c_str(), O_WRONLY | O_CREAT | O_APPEND, 0666);
    dup2(file, STDERR_FILENO);
    close(file);
  }
  ~Caught() {
    dup2(before_, STDERR_FILENO);
    close(before_);
  }
  std::string text() const {
    std::ostringstream text;
    text << std::ifstream(path()).rdbuf();
    return text.str();
  }

 private:
  std::string path() const { return dir_ / "stderr"; }

  tests::TempDir dir_;
  int before_;
};

}  // namespace

TEST_CASE("a ThreadLog gets a training's messages, whatever the process's log is set to", "[log]") {
  const core::LogOptions before = core::log_options();
  core::configure_log({});
  const tests::TempDir dir;
  {
    const Caught caught;
    const core::ThreadLog own;
    std::thread training([&dir] {
      core::configure_log({.level = core::LogLevel::kError});
      core::set_log_file(dir / "rank-0.log");
      core::log_info("step 1");
      core::log(core::LogLevel::kError, "no such file");
    });
    training.join();
    core::log_info("trial 0 is the best");
    core::log_debug("not asked for");
    CHECK(caught.text() == "error: no such file\ntrial 0 is the best\n");
  }
  core::set_log_file("");
  std::ostringstream filed;
  filed << std::ifstream(dir / "rank-0.log").rdbuf();
  CHECK(filed.str().find("step 1") != std::string::npos);
  CHECK(filed.str().find("the best") == std::string::npos);
  {
    const Caught caught;
    core::log_warning("no more of that");
    core::log(core::LogLevel::kError, "once \x1b[2Jmore");  // as of a file that it reads
    CHECK(caught.text() == "error: once \\x1b[2Jmore\n");   // as the training has left it
  }
  core::configure_log(before);
}
