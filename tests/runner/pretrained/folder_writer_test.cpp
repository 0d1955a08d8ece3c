#include "runner/pretrained/folder_writer.h"

#include <unistd.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <filesystem>

#include "runner/core/platform/files.h"
#include "tests/support/disk/faulty_io.h"
#include "tests/support/folder.h"
#include "tests/support/temp_dir.h"

namespace {

namespace fs = std::filesystem;

using runner::pretrained::FolderWriter;
using runner::pretrained::foreign_to;
using runner::pretrained::read_mark;
using tests::FaultyIo;
using tests::TempDir;
using Fault = FaultyIo::Fault;

std::string text_of(const std::string& path) { return runner::core::read_file(path, 1 << 20).value(); }

std::vector<std::string> names_in(const std::string& folder) { return runner::core::list_folder(folder).value(); }

/// A model of one kind, or an adapter of another: they share one name of a file.
void write(const std::string& folder, bool is_adapter, bool force, runner::artifact::Io& io) {
  FolderWriter writer({folder, force}, io);
  writer.write_text("about", is_adapter ? "adapter" : "model");
  if (is_adapter) {
    writer.write_text("style/adapter", "2");
  } else {
    writer.write_text("model", "1");
  }
  writer.finish();
}

void write(const std::string& folder, bool is_adapter = false, bool force = true) {
  write(folder, is_adapter, force, runner::artifact::system_io());
}

bool is_whole(const std::string& folder, bool is_adapter) {
  const std::vector<std::string> model = {".roux.json", "about", "model"}, adapter = {".roux.json", "about", "style"};
  const auto mark = read_mark(folder);
  return mark && foreign_to(*mark, folder, true).empty() && names_in(folder) == (is_adapter ? adapter : model) &&
         text_of(folder + "/about") == (is_adapter ? "adapter" : "model");
}

enum class Before { kNothing, kEmpty, kFolder };

/// Writes an adapter over a model on a disk that strikes at `call`; false once there is no such call.
bool run_one(Before before, bool can_exchange, Fault fault, int call) {
  const TempDir dir(TempDir::On::kMemory), stash(TempDir::On::kMemory);
  const std::string folder = dir / "out";
  if (before == Before::kEmpty) fs::create_directory(folder);
  if (before == Before::kFolder) write(folder);
  FaultyIo io(stash.path(), fault, call);
  io.can_exchange = can_exchange;
  bool is_written = false;
  try {
    write(folder, true, true, io);
    is_written = true;
  } catch (const tests::Crash&) {
  } catch (const runner::core::RunError&) {
  }
  CAPTURE(static_cast<int>(before), can_exchange, static_cast<int>(fault), call, is_written);
  const bool is_old = before == Before::kNothing ? !fs::exists(folder)
                      : before == Before::kEmpty ? fs::exists(folder) && names_in(folder).empty()
                                                 : fs::exists(folder) && is_whole(folder, false);
  const bool is_beside = !can_exchange && !fs::exists(folder) && is_whole(folder + ".replaced", false);
  CHECK((is_written || is_old || is_beside || is_whole(folder, true)));
  if (is_written) CHECK(is_whole(folder, true));
  if (fault == Fault::kDiskError && !is_written) CHECK((is_old || is_whole(folder, true)));

  // The next one finds its way, and tidies up.
  write(folder, true);
  CHECK(is_whole(folder, true));
  for (const std::string& name : names_in(dir.path())) CHECK((name == "out" || name == "out.replaced"));
  return io.injected();
}

}  // namespace

TEST_CASE("a process that dies at any call to the disk leaves the old folder or the new one", "[pretrained][folder]") {
  for (const auto& [before, can_exchange] :
       {std::pair(Before::kNothing, true), {Before::kEmpty, true}, {Before::kFolder, true}, {Before::kFolder, false}}) {
    for (const Fault fault : {Fault::kCrashBefore, Fault::kCrashAfter, Fault::kDiskError}) {
      int call = 1;
      while (run_one(before, can_exchange, fault, call)) ++call;
      CHECK(call > 15);
    }
  }
}

TEST_CASE("what is not ours is refused untouched, and named", "[pretrained][folder]") {
  const tests::Folder here;
  const auto refuses = [](const std::string& folder, const std::string& why, bool force = true) {
    CHECK_THROWS_WITH(write(folder, true, force), why);
  };
  SECTION("a folder without a mark") {
    here.write("out/model-old.safetensors", "mine");
    for (const bool force : {false, true}) {
      refuses("out", "out holds files, and no mark of roux says that it wrote them: model-old.safetensors", force);
    }
    CHECK(names_in("out") == std::vector<std::string>{"model-old.safetensors"});
  }
  SECTION("files beside ours") {
    write("out", true);
    refuses("out", "out exists and is not empty", false);
    here.write("out/README.md", "mine");
    here.write("out/.git/HEAD", "mine");
    here.write("out/style/notes", "mine");
    refuses("out", "out holds files that are not as roux wrote them: .git/, README.md, style/notes");
    refuses("out", "out holds files that are not as roux wrote them: .git/, README.md, style/notes", false);
    CHECK(text_of("out/style/notes") == "mine");
    fs::remove_all("out/.git");
    fs::remove("out/README.md");
    fs::remove("out/style/notes");
    fs::remove("out/about");  // what lacks is no loss
    write("out");
    CHECK(is_whole("out", false));
  }
  SECTION("other content at a name of ours") {
    write("out");
    here.write("out/model", "9");  // of the same size
    refuses("out", "out holds files that are not as roux wrote them: model");
    fs::remove("out/model");
    fs::create_symlink("../elsewhere", "out/model");
    refuses("out", "out holds files that are not as roux wrote them: model");
  }
  SECTION("a mark that cannot be read, or names files elsewhere") {
    here.write("out/.roux.json", "{}");
    refuses("out", "out holds files, and no mark of roux says that it wrote them: .roux.json");
    here.write("out/.roux.json",
               R"({"format": "roux folder", "version": 1, "files": {"../x": {"bytes": 1, "checksum": ""}}})");
    refuses("out", "out holds files, and no mark of roux says that it wrote them: .roux.json");
  }
  SECTION("places") {
    const std::string parent = fs::current_path().string();
    refuses(".", ". is the current folder");
    refuses(parent, parent + " is the current folder");
    refuses("..", ".. holds the current folder");
    refuses("/", "/ is the root folder");
    refuses("/proc", "/proc is a mount point");
    fs::create_symlink("nowhere", "link");
    refuses("link", "link is a link to a folder that does not exist");
    here.write("file", "mine");
    refuses("file", "file is not a folder");
    write("base");
    CHECK_THROWS_WITH(FolderWriter({"base", true, 0, {"base/model"}}), "base holds what is read: base/model");
    CHECK(is_whole("base", false));
  }
}

TEST_CASE("a link to a folder stays, and leads to the new one", "[pretrained][folder]") {
  const tests::Folder here;
  write("far/out");
  fs::create_directory_symlink("far/out", "link");
  write("link", true);
  CHECK(fs::is_symlink("link"));
  CHECK(is_whole("far/out", true));
  CHECK(names_in("far") == std::vector<std::string>{"out"});
}

TEST_CASE("only drafts of roux whose process is gone are removed", "[pretrained][folder]") {
  const tests::Folder here;
  // Others', by names that are near.
  for (const char* name : {".out.2024", ".out.roux-999999999", ".out.roux-99999999x", ".out.roux-", ".out.roux-7-"}) {
    here.write(std::string(name) + "/file", "mine");
  }
  write("copy");
  fs::rename("copy", ".out.roux-999999998");  // an old folder that a killed process had exchanged
  write("copy");
  here.write("copy/README.md", "mine");
  fs::rename("copy", ".out.roux-999999997");
  FolderWriter at_work({"out"});
  const std::string draft = ".out.roux-" + std::to_string(::getpid());
  CHECK(fs::exists(draft));
  write("out");
  CHECK(fs::exists(draft));
  std::vector<std::string> left = {
      ".out.2024",           ".out.roux-",          draft, ".out.roux-7-", ".out.roux-999999997",
      ".out.roux-999999999", ".out.roux-99999999x", "out"};
  std::sort(left.begin(), left.end());  // where the draft's number stands depends on this process
  CHECK(names_in(".") == left);
}
