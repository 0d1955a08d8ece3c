#include "runner/artifact/io/output_draft.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>

#include "runner/core/platform/files.h"
#include "tests/support/temp_dir.h"

using namespace runner;

TEST_CASE("a draft takes the name of a file, or goes through a link or a pipe", "[artifact][output_draft]") {
  const tests::TempDir dir;
  artifact::Io& io = artifact::system_io();
  const auto write = [&](const std::string& name, const std::string& content) {
    artifact::OutputDraft draft(io, dir / name);
    std::ofstream(draft.path()) << content;
    draft.publish();
    CHECK_FALSE(std::filesystem::exists(draft.path()));
  };
  write("a", "one");
  CHECK(core::read_file(dir / "a", 100).value() == "one");
  std::filesystem::create_symlink("a", dir / "link");
  write("link", "two");
  CHECK(core::read_file(dir / "a", 100).value() == "two");
  CHECK(std::filesystem::is_symlink(dir / "link"));

  REQUIRE(::mkfifo((dir / "fifo").c_str(), 0600) == 0);
  const int reader = ::open((dir / "fifo").c_str(), O_RDONLY | O_NONBLOCK);
  write("fifo", "three");
  char read[8] = {};
  CHECK(::read(reader, read, sizeof read) == 5);
  CHECK(std::string(read) == "three");
  ::close(reader);
  CHECK(std::filesystem::is_fifo(dir / "fifo"));
  CHECK(std::distance(std::filesystem::directory_iterator(dir.path()), {}) == 3);
}

TEST_CASE("a draft that is not published leaves the file, and takes no name that is there",
          "[artifact][output_draft]") {
  const tests::TempDir dir;
  const std::string other = dir / ("a.part-" + std::to_string(::getpid()));
  std::ofstream(dir / "a") << "one";
  std::ofstream(other) << "mine";
  {
    const artifact::OutputDraft draft(artifact::system_io(), dir / "a");
    CHECK(draft.path() == other + "-1");
    std::ofstream(draft.path()) << "two";
  }
  CHECK(core::read_file(dir / "a", 100).value() == "one");
  CHECK(core::read_file(other, 100).value() == "mine");
  CHECK(std::distance(std::filesystem::directory_iterator(dir.path()), {}) == 2);
}
