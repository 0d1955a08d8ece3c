#include "runner/core/platform/files.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <filesystem>

#include "tests/support/temp_dir.h"

using namespace runner::core;

TEST_CASE("what is written is read back, and what cannot be read is named", "[core][files]") {
  const tests::TempDir dir;
  const std::string path = dir / "a.txt";
  CHECK(write_file_atomic(path, "one").ok());
  CHECK(write_file_atomic(path, std::string("two\0three", 9)).ok());
  CHECK(read_file(path, 100).value() == std::string("two\0three", 9));
  CHECK(read_file("/proc/self/status", 1 << 20).value().substr(0, 5) == "Name:");

  CHECK(read_file(path, 4).failure().message == "cannot read " + path + ": it holds 9 B, the limit is 4 B");
  CHECK(read_file(dir / "none", 4).failure().message == "cannot read " + (dir / "none") + ": file not found");
  CHECK(read_file(dir.path(), 4).failure().message == "cannot read " + dir.path() + ": it is a folder");
  CHECK(read_file("/dev/zero", 4).failure().message == "cannot read /dev/zero: it is not a regular file");
  REQUIRE(::mkfifo((dir / "fifo").c_str(), 0600) == 0);
  CHECK(read_file(dir / "fifo", 4).failure().message == "cannot read " + (dir / "fifo") + ": it is not a regular file");
  CHECK(check_is_file(dir / "fifo").failure().message == read_file(dir / "fifo", 4).failure().message);
  CHECK(check_is_file(dir.path()).failure().message == read_file(dir.path(), 4).failure().message);
  CHECK((check_is_file(path).ok() && check_is_file(dir / "none").ok()));
  CHECK_FALSE(write_file_atomic(dir / "none/b.txt", "x").ok());
  CHECK(std::distance(std::filesystem::directory_iterator(dir.path()), {}) == 2);  // nothing is left beside the target
}

TEST_CASE("leftovers of a killed process do not hinder the next one with its number", "[core][files]") {
  const tests::TempDir dir;
  const std::string path = dir / "a.txt", left = path + ".tmp-" + std::to_string(::getpid()) + "-";
  for (int i = 0; i < 1000; ++i) std::filesystem::create_symlink("nowhere", left + std::to_string(i));
  CHECK(write_file_atomic(path, "one").ok());
  CHECK(read_file(path, 100).value() == "one");
  CHECK(is_temporary_file("a.txt.tmp-12-0"));
  for (const char* name : {"a.txt", "a.tmp-12", "a.tmp-", "a.tmp-12-0.txt", "a.tmp-1-2-3", "tmp-12-0"}) {
    CHECK_FALSE(is_temporary_file(name));
  }
}

TEST_CASE("write_output() follows links and writes to devices in place", "[core][files]") {
  const tests::TempDir dir;
  CHECK(write_output(dir / "a.txt", "one").ok());
  std::filesystem::create_symlink("a.txt", dir / "link");
  CHECK(write_output(dir / "link", "two").ok());
  CHECK(read_file(dir / "a.txt", 100).value() == "two");
  CHECK(std::filesystem::is_symlink(dir / "link"));

  REQUIRE(::mkfifo((dir / "fifo").c_str(), 0600) == 0);
  const int reader = ::open((dir / "fifo").c_str(), O_RDONLY | O_NONBLOCK);
  CHECK(write_output(dir / "fifo", "three").ok());
  char read[8] = {};
  CHECK(::read(reader, read, sizeof read) == 5);
  CHECK(std::string(read) == "three");
  ::close(reader);
  CHECK(std::filesystem::is_fifo(dir / "fifo"));
  // Through a link, so that a write that goes wrong replaces the link and not the machine's device.
  std::filesystem::create_symlink("/dev/full", dir / "full");
  CHECK(write_output(dir / "full", "x").failure().message == "cannot write " + (dir / "full") + ": the disk is full");
  CHECK(write_output(dir.path(), "x").failure().message == "cannot write " + dir.path() + ": it is a folder");
}

TEST_CASE("a file that a link leads to is made, and no name of something else is taken", "[core][files]") {
  const tests::TempDir dir;
  std::filesystem::create_directory(dir / "far");
  std::filesystem::create_symlink("far/second", dir / "first");
  std::filesystem::create_symlink("new.txt", dir / "far/second");
  CHECK(write_output(dir / "first", "one").ok());
  CHECK(read_file(dir / "far/new.txt", 100).value() == "one");
  CHECK(std::filesystem::is_symlink(dir / "first"));
  CHECK(std::filesystem::is_symlink(dir / "far/second"));
  std::filesystem::create_symlink("round", dir / "round");
  CHECK(write_output(dir / "round", "x").failure().message ==
        "cannot write " + (dir / "round") + ": too many levels of symbolic links");

  REQUIRE(::mkfifo((dir / "fifo").c_str(), 0600) == 0);
  CHECK(write_file_atomic(dir / "fifo", "x").failure().message ==
        "cannot write " + (dir / "fifo") + ": it is not a regular file");
  CHECK(std::filesystem::is_fifo(dir / "fifo"));
  // A device of this folder's own, where the machine lets one be made and opened.
  if (::mknod((dir / "null").c_str(), S_IFCHR | 0600, makedev(1, 3)) == 0) {
    CHECK_FALSE(write_file_atomic(dir / "null", "x").ok());
    (void)write_output(dir / "null", "x");  // refused on a file system without devices
    CHECK(std::filesystem::is_character_file(dir / "null"));
  }
}

TEST_CASE("an open file is written where it stands", "[core][files]") {
  const tests::TempDir dir;
  const int file = ::open((dir / "a.txt").c_str(), O_WRONLY | O_CREAT, 0600);
  REQUIRE(::write(file, "one ", 4) == 4);
  CHECK(write_output("/dev/fd/" + std::to_string(file), "two").ok());
  CHECK(write_output("/proc/self/fd/" + std::to_string(file), " three").ok());
  ::close(file);
  CHECK(read_file(dir / "a.txt", 100).value() == "one two three");
}

TEST_CASE("patterns find files", "[core][files]") {
  const tests::TempDir dir;
  for (const char* name : {"a.cpp", "b.h", ".hidden.h", "sub/c.cpp", "sub/deep/d.h", "sub/deep/e1.txt",
                           "sub/deep/e2.txt", "in [1]/{x}/f.txt", "in 1/f.txt"}) {
    std::filesystem::create_directories(std::filesystem::path(dir / name).parent_path());
    REQUIRE(write_file_atomic(dir / name, "").ok());
  }
  std::filesystem::create_directory_symlink("..", dir / "sub/up");
  std::string far = dir / "far";
  for (int depth = 0; depth < 40; ++depth) far += "/x";
  std::filesystem::create_directories(far);
  REQUIRE(write_file_atomic(far + "/end.bin", "").ok());
  struct Case {
    const char* pattern;
    std::vector<std::string> found;
  };
  const Case cases[] = {
      {"*.cpp", {"a.cpp"}},
      {"**/*.cpp", {"a.cpp", "sub/c.cpp"}},
      {"**/*.{h,cpp}", {"a.cpp", "b.h", "sub/c.cpp", "sub/deep/d.h"}},
      {"sub/**", {"sub/c.cpp", "sub/deep/d.h", "sub/deep/e1.txt", "sub/deep/e2.txt"}},
      {"{a,sub/c}.cpp", {"a.cpp", "sub/c.cpp"}},
      {"far/**/**/**/**/**/**/**/**/**/**/**/**/*.bin", {far.substr(dir.path().size() + 1) + "/end.bin"}},
      {"far/**/x/**/x/**/x/**/x/**/x/**/x/**/x/**/*.none", {}},
      {"sub/*/e[12].txt", {"sub/deep/e1.txt", "sub/deep/e2.txt"}},
      {"sub/*/e[!1].txt", {"sub/deep/e2.txt"}},
      {".*.h", {".hidden.h"}},
      {"?.h", {"b.h"}},
      {"*.none", {}},
      {"in [1]/{x}/*.txt", {"in [1]/{x}/f.txt"}},  // a folder that is called so, not "in 1"
      {"in [12]/f.*", {"in 1/f.txt"}},
      {"sub", {"sub"}},  // no pattern: as it is
      {"none.txt", {"none.txt"}},
  };
  for (const Case& c : cases) {
    DYNAMIC_SECTION(c.pattern) {
      std::vector<std::string> expected;
      for (const std::string& name : c.found) expected.push_back(dir / name);
      CHECK(glob(dir / c.pattern) == expected);
    }
  }
}
