#pragma once

#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "tests/support/process/process.h"
#include "tests/support/temp_dir.h"

namespace tests {

/// A folder with a recipe in it, and the real program run there with one thread.
class TestRun {
 public:
  explicit TestRun(const std::string& recipe, TempDir::On on = TempDir::On::kDisk) : dir_(on) {
    write("recipe.yaml", recipe);
  }

  void write(const std::string& name, const std::string& content) const { std::ofstream(path() / name) << content; }
  /// corpus.txt, of lines that all differ.
  void write_corpus(std::size_t bytes) const {
    std::string text;
    for (int i = 0; text.size() < bytes; ++i) text += "line " + std::to_string(i * i) + " of a small corpus\n";
    write("corpus.txt", text);
  }
  std::filesystem::path path() const { return dir_.path(); }

  /// `roux run recipe.yaml` with `--set` before each of `settings`.
  std::vector<std::string> command(const std::vector<std::string>& settings = {}) const {
    std::vector<std::string> words = {roux_program(), "run", "recipe.yaml"};
    for (const std::string& setting : settings) {
      words.push_back("--set");
      words.push_back(setting);
    }
    return words;
  }
  struct Ended {
    int status = 0;
    std::string output;
  };
  Ended run(const std::vector<std::string>& settings = {}) const { return end_of(command(settings), environment()); }
  /// `roux WORDS`.
  Ended roux(std::vector<std::string> words, const std::map<std::string, std::string>& with = environment()) const {
    words.insert(words.begin(), roux_program());
    return end_of(words, with);
  }
  static std::map<std::string, std::string> environment() { return {{"OMP_NUM_THREADS", "1"}}; }

  /// The only run there.
  std::filesystem::path run_dir() const {
    std::filesystem::path found;
    for (const auto& entry : std::filesystem::directory_iterator(path() / "runs")) {
      if (entry.is_directory()) found = entry.path();
    }
    return found;
  }
  /// Bytes of a file of a checkpoint of that run.
  std::string saved(const std::string& step, const std::string& file) const {
    std::ostringstream text;
    text << std::ifstream(run_dir() / "checkpoints" / step / file, std::ios::binary).rdbuf();
    return text.str();
  }

 private:
  Ended end_of(const std::vector<std::string>& words, const std::map<std::string, std::string>& with) const {
    Process process(words, with, dir_.path());
    Ended ended;
    ended.status = process.wait();
    ended.output = process.output();
    return ended;
  }

  TempDir dir_;
};

}  // namespace tests
