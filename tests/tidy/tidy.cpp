// Reads the tree and names what docs/style.md forbids, as `file:line: error: ...`: layer arrows that point the wrong
// way, circles of folders, LibTorch where it may not be, dead files, folders that are too large, lines over 120
// columns, phrases that docs/wording.md refuses, generated pages that are out of date, folders that concern no tests in
// tests/CMakeLists.txt.
#include <algorithm>
#include <cctype>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "arrows.h"

namespace fs = std::filesystem;

namespace {

constexpr std::size_t kColumnsMax = 120;

// Of a folder's own files, without its sub-folders.
constexpr int kFilesMax = 40;
constexpr int kLinesMax = 4000;

struct Source {
  std::string path;  // relative to the root, '/' between
  std::vector<std::string> lines;
  std::string layer;
};

struct Include {
  std::string target;
  bool angle = false;
  int line = 0;
};

std::string between(std::string_view text, std::size_t begin, std::string_view stops) {
  const auto end = text.find_first_of(stops, begin);
  return std::string(text.substr(begin, end == std::string_view::npos ? end : end - begin));
}

/// "" for what belongs to no layer.
std::string layer_of(const std::string& path) {
  if (path.starts_with("runner/")) return between(path, 7, "/");
  if (path.starts_with("components/sampler/")) return "sampler";
  if (path.starts_with("components/template/")) return "template";
  if (path.starts_with("components/tokenizer/")) return "tokenizer";
  if (path.starts_with("components/pruner/")) return "pruner";
  if (path.starts_with("components/kernels/")) return "kernels";
  if (path.starts_with("components/quantization/")) return "quantization";
  if (path.starts_with("components/")) return "components";
  if (path.starts_with("trackers/")) return "trackers";
  if (path.starts_with("schemas/gen/")) return "schema_gen";
  if (path.starts_with("include/")) return "include";
  if (path.starts_with("tests/")) return "tests";
  return "";
}

std::vector<std::string> read_lines(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  std::vector<std::string> lines;
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

std::string read_whole(const fs::path& path) {
  std::ostringstream text;
  text << std::ifstream(path, std::ios::binary).rdbuf();
  return text.str();
}

/// `#include "x"` or `<x>`; an empty target when the line is none.
Include include_of(const std::string& line) {
  Include include;
  const auto hash = line.find_first_not_of(" \t");
  if (hash == std::string::npos || line.compare(hash, 8, "#include") != 0) return include;
  const auto open = line.find_first_of("\"<", hash);
  if (open == std::string::npos) return include;
  include.angle = line[open] == '<';
  include.target = between(line, open + 1, "\">");
  return include;
}

bool is_torch(const Include& include) {
  if (!include.angle) return false;
  for (const char* prefix : {"torch/", "ATen/", "c10/", "caffe2/"}) {
    if (include.target.starts_with(prefix)) return true;
  }
  return false;
}

std::string folder_of(const std::string& path) {
  const auto slash = path.rfind('/');
  return slash == std::string::npos ? "" : path.substr(0, slash);
}

/// components/optimizer/optimizer.h, and what else of components/ the runner may include.
bool is_open_to_runner(const std::string& path) {
  if (!path.starts_with("components/")) return false;
  const std::string folder = folder_of(path);
  return kOpenToRunner.contains(folder) || kOpenToRunner.contains(path) ||
         path == folder + "/" + folder.substr(folder.rfind('/') + 1) + ".h";
}

std::size_t columns(std::string_view line) {
  std::size_t count = 0;
  for (const unsigned char c : line) count += (c & 0xC0) != 0x80;
  return count;
}

class Tidy {
 public:
  /// `generated`: where the build wrote the reference, or empty. `whole_tree`: arrows that no file needs are errors.
  Tidy(fs::path root, fs::path generated, bool whole_tree)
      : root_(std::move(root)), generated_(std::move(generated)), whole_tree_(whole_tree) {}

  int run() {
    collect();
    for (const Source& source : sources_) {
      check_columns(source);
      if (!is_cpp(source.path)) continue;
      for (std::size_t i = 0; i < source.lines.size(); ++i) {
        Include include = include_of(source.lines[i]);
        if (include.target.empty()) continue;
        include.line = static_cast<int>(i) + 1;
        check_include(source, include);
        if (!include.angle) used_.insert(resolve(source, include.target));
      }
    }
    for (const Source& source : sources_) check_alive(source);
    check_sizes();
    check_circles();
    check_phrases();
    check_concerns();
    if (whole_tree_) check_unused_arrows();
    if (!generated_.empty()) check_reference();
    std::cout << sources_.size() << " files, " << errors_ << " errors\n";
    return errors_ == 0 ? 0 : 1;
  }

 private:
  static bool is_cpp(const std::string& path) { return path.ends_with(".cpp") || is_included(path); }
  static bool is_included(const std::string& path) { return path.ends_with(".h") || path.ends_with(".inl"); }

  void error(const std::string& path, int line, const std::string& what) {
    std::cout << path << ":" << line << ": error: " << what << "\n";
    ++errors_;
  }

  void collect() {
    std::vector<fs::path> found = {root_ / "CMakeLists.txt", root_ / "roux"};
    for (const char* folder : {"include", "runner", "components", "trackers", "schemas", "tests", ".ci"}) {
      if (!fs::exists(root_ / folder)) continue;
      for (const auto& entry : fs::recursive_directory_iterator(root_ / folder)) {
        if (entry.is_regular_file()) found.push_back(entry.path());
      }
    }
    for (const fs::path& path : found) {
      const std::string name = fs::relative(path, root_).generic_string();
      if (name.starts_with("tests/bench/peers/")) continue;  // kept as they were measured
      const std::string extension = path.extension().string();
      const bool script = extension.empty() && read_whole(path).starts_with("#!");
      const bool ours =
          is_cpp(name) || extension == ".cmake" || extension == ".sh" || script || path.filename() == "CMakeLists.txt";
      if (ours) sources_.push_back({name, read_lines(path), layer_of(name)});
    }
    std::sort(sources_.begin(), sources_.end(), [](const Source& a, const Source& b) { return a.path < b.path; });
  }

  /// Text inside a raw string is input or expected output, and may be of any width.
  void check_columns(const Source& source) {
    std::string closing;
    for (std::size_t i = 0; i < source.lines.size(); ++i) {
      const std::string& line = source.lines[i];
      const bool inside = !closing.empty();
      std::size_t at = 0;
      while (at != std::string::npos) {
        if (closing.empty()) {
          at = is_cpp(source.path) ? line.find("R\"", at) : std::string::npos;
          if (at == std::string::npos) break;
          const auto open = line.find('(', at);
          if (open == std::string::npos) break;
          closing = ")" + line.substr(at + 2, open - at - 2) + "\"";
          at = open;
        } else {
          at = line.find(closing, at);
          if (at != std::string::npos) closing.clear();
        }
      }
      const bool raw = inside || !closing.empty() || line.find("R\"") != std::string::npos;
      if (!raw && columns(line) > kColumnsMax) {
        error(source.path, static_cast<int>(i) + 1,
              std::to_string(columns(line)) + " columns, and " + std::to_string(kColumnsMax) + " is the limit");
      }
    }
  }

  void check_include(const Source& source, const Include& include) {
    const std::string& target = include.target;
    if (include.angle && (target == "torch/torch.h" || target == "torch/all.h")) {
      return error(source.path, include.line, "<" + target + "> takes 23 s to compile: include what is used");
    }
    if (is_torch(include)) return check_torch(source, include);
    if (include.angle) return;
    const std::string resolved = resolve(source, target);
    const std::string to = layer_of(resolved);
    if (source.path.starts_with("runner/cmake/")) return;
    if (source.layer == "tests") {
      if (to == "tests") note_folders(source, include, resolved);
      return;
    }
    if (to == "tests") {
      return error(source.path, include.line, "includes a file of the tests: " + target);
    }
    if (source.layer == "include" && !fs::exists(root_ / resolved)) {  // the build compiles no public header
      return error(source.path, include.line, "\"" + target + "\" does not exist");
    }
    if (target.starts_with("generated/")) {
      if (source.layer != "components" && source.layer != "sampler" && source.layer != "pruner" &&
          source.layer != "tokenizer" && source.layer != "trackers" && target != "generated/base/fragments.h" &&
          !target.starts_with("generated/section/")) {
        error(source.path, include.line, "a config is its component's own: only components include \"" + target + "\"");
      }
      return;
    }
    if (to.empty()) {
      return error(source.path, include.line,
                   "\"" + target + "\" is in no layer; write paths from the root of the tree");
    }
    note_folders(source, include, resolved);
    if (to == source.layer) return check_folder_arrow(source, include, resolved);
    if (source.layer == "cli" && (resolved == "runner/engine/engine.h" || resolved == "runner/cuda/cuda.h")) return;
    used_arrows_.insert(source.layer + " -> " + to);
    const auto rule = layer_arrows().find(source.layer);
    if (rule == layer_arrows().end()) {
      return error(source.path, include.line,
                   "no arrow is known for the layer " + source.layer + "; add it to tests/tidy/arrows.h");
    }
    if (!rule->second.contains(to)) {
      return error(source.path, include.line,
                   source.layer + " must not know " + to + ", yet it includes \"" + target + "\"");
    }
    if (kInterfacesOnly.contains(source.layer) && to == "components" && !is_open_to_runner(resolved)) {
      error(source.path, include.line,
            source.layer + " knows kinds, never a component: \"" + target + "\" is not a kind's interface");
    }
  }

  void check_folder_arrow(const Source& source, const Include& include, const std::string& resolved) {
    const std::string from = folder_of(source.path), to = folder_of(resolved);
    if (from == to) return;
    used_arrows_.insert(from + " -> " + to);
    const auto rule = folder_arrows().find(from);
    if (rule != folder_arrows().end() && rule->second.contains(to)) return;
    error(source.path, include.line, from + " must not know " + to + ", yet it includes \"" + include.target + "\"");
  }

  /// For the circles: which folder includes which, and where first.
  void note_folders(const Source& source, const Include& include, const std::string& resolved) {
    const std::string from = folder_of(source.path), to = folder_of(resolved);
    if (from != to) folders_[from].emplace(to, source.path + ":" + std::to_string(include.line));
  }

  void check_circles() {
    std::map<std::string, int> state;  // 1: on the way, 2: done
    std::vector<std::string> way;
    for (const auto& [folder, others] : folders_) walk(folder, state, way);
  }

  void walk(const std::string& folder, std::map<std::string, int>& state, std::vector<std::string>& way) {
    if (state[folder] == 2) return;
    if (state[folder] == 1) {
      const auto begin = std::find(way.begin(), way.end(), folder);
      std::string circle;
      for (auto at = begin; at != way.end(); ++at) circle += *at + " -> ";
      const std::string place = folders_[way.back()].at(folder);
      return error(place.substr(0, place.find(':')), std::stoi(place.substr(place.find(':') + 1)),
                   "closes a circle of folders: " + circle + folder);
    }
    state[folder] = 1;
    way.push_back(folder);
    if (const auto found = folders_.find(folder); found != folders_.end()) {
      for (const auto& [to, place] : found->second) walk(to, state, way);
    }
    way.pop_back();
    state[folder] = 2;
  }

  void check_unused_arrows() {
    const auto check = [this](const std::map<std::string, Names>& arrows) {
      for (const auto& [from, all] : arrows) {
        for (const std::string& to : all) {
          if (used_arrows_.contains(from + " -> " + to)) continue;
          error("tests/tidy/arrows.h", 1, "no file needs the arrow " + from + " -> " + to + ": remove it");
        }
      }
    };
    check(layer_arrows());
    check(folder_arrows());
  }

  /// Generated pages, test vectors, recipes of tests and fixtures are data.
  static bool is_data(const std::string& folder) {
    for (const char* data : {"schemas/reference", "tests/golden/", "tests/fixtures", "tests/bench/peers",
                             "tests/components/tokenizer/files", "tests/components/tokenizer/recorded"}) {
      if (folder.starts_with(data)) return true;
    }
    return false;
  }

  void check_sizes() {
    std::map<std::string, std::pair<int, int>> sizes;  // files, lines
    for (const char* top : {"include", "runner", "components", "trackers", "schemas", "tests", "docs"}) {
      if (!fs::exists(root_ / top)) continue;
      for (const auto& entry : fs::recursive_directory_iterator(root_ / top)) {
        const std::string path = fs::relative(entry.path(), root_).generic_string();
        const std::string folder = folder_of(path);
        if (!entry.is_regular_file() || is_data(folder) || path == "schemas/recipe.schema.json") continue;
        const std::string extension = entry.path().extension().string();
        if (extension == ".pyc" || extension == ".svg" || extension == ".png") continue;
        auto& [files, lines] = sizes[folder];
        ++files;
        lines += static_cast<int>(read_lines(entry.path()).size());
      }
    }
    for (const auto& [folder, size] : sizes) {
      if (size.first > kFilesMax) {
        error(folder, 1,
              std::to_string(size.first) + " files, and " + std::to_string(kFilesMax) +
                  " is the limit: make sub-folders");
      }
      if (size.second > kLinesMax) {
        error(folder, 1,
              std::to_string(size.second) + " lines, and " + std::to_string(kLinesMax) +
                  " is the limit: make sub-folders");
      }
    }
  }

  /// The block ```phrases of docs/wording.md, without its fences; empty where there is no such page.
  std::vector<std::string> refused_phrases() const {
    std::vector<std::string> phrases;
    bool inside = false;
    for (const std::string& line : read_lines(root_ / "docs" / "wording.md")) {
      if (inside && line == "```") return phrases;
      if (inside) phrases.push_back(line);
      inside = inside || line == "```phrases";
    }
    return phrases;
  }

  void check_phrases() {
    const std::vector<std::string> phrases = refused_phrases();
    if (phrases.empty()) return;
    for (const char* top : {"runner", "components", "trackers", "schemas", "tests", "recipes", ".ci"}) {
      if (!fs::exists(root_ / top)) continue;
      for (const auto& entry : fs::recursive_directory_iterator(root_ / top)) {
        const std::string path = fs::relative(entry.path(), root_).generic_string();
        if (entry.is_regular_file() && is_prose(path)) check_phrases(path, phrases);
      }
    }
  }

  /// Written by hand and in our words: not what is generated, recorded or taken from elsewhere.
  static bool is_prose(const std::string& path) {
    for (const char* data : {"schemas/reference/", "schemas/recipe.schema.json", "tests/golden/vectors/",
                             "tests/fixtures/", "tests/bench/peers/", "recipes/smoke/data/", "recipes/data/"}) {
      if (path.starts_with(data)) return false;
    }
    for (const char* extension :
         {".cpp", ".h", ".inl", ".cmake", ".sh", ".py", ".json", ".yaml", ".cli", ".expected", ".txt"}) {
      if (path.ends_with(extension)) return true;
    }
    return false;
  }

  /// A phrase may go on in the next line of a comment, or in the next of several texts that the compiler joins.
  void check_phrases(const std::string& path, const std::vector<std::string>& phrases) {
    std::string words;       // in lower case, one space between two of them
    std::vector<int> lines;  // of each character
    int line = 1;
    for (const char c : read_whole(root_ / path)) {
      const bool gap = std::string_view(" \t\n\r\"/#*").find(c) != std::string_view::npos;
      if (!gap || (!words.empty() && words.back() != ' ')) {
        words += gap ? ' ' : static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
        lines.push_back(line);
      }
      if (c == '\n') ++line;
    }
    const auto is_word = [&words](std::size_t at) {  // or the end of one, or of a flag
      return at < words.size() &&
             (std::isalnum(static_cast<unsigned char>(words[at])) || words[at] == '_' || words[at] == '-');
    };
    for (const std::string& phrase : phrases) {
      for (auto at = words.find(phrase); at != std::string::npos; at = words.find(phrase, at + 1)) {
        if ((at > 0 && is_word(at - 1)) || is_word(at + phrase.size())) continue;
        error(path, lines[at], "says \"" + phrase + "\": docs/wording.md has better words");
      }
    }
  }

  /// The rows concerns(PATH LABEL...) of tests/CMakeLists.txt, with their lines; none in a tree without it.
  std::map<std::string, int> concerned_paths() const {
    constexpr std::string_view kBegin = "concerns(";
    std::map<std::string, int> paths;
    int number = 0;
    for (const std::string& line : read_lines(root_ / "tests" / "CMakeLists.txt")) {
      ++number;
      if (line.starts_with(kBegin)) paths.emplace(between(line, kBegin.size(), " )"), number);
    }
    return paths;
  }

  /// Each file has a row, its own or that of a folder above it; once for each folder that lacks one.
  void check_concerns() {
    const std::map<std::string, int> rows = concerned_paths();
    if (rows.empty()) return;
    for (const auto& [path, line] : rows) {
      if (!fs::exists(root_ / path)) error("tests/CMakeLists.txt", line, path + " concerns tests, and is not there");
    }
    Names missing;
    for (const char* top :
         {"include", "runner", "components", "trackers", "schemas", "tests", "docs", "recipes", ".ci"}) {
      if (!fs::exists(root_ / top)) continue;
      for (const auto& entry : fs::recursive_directory_iterator(root_ / top)) {
        if (!entry.is_regular_file()) continue;
        const std::string file = fs::relative(entry.path(), root_).generic_string();
        bool found = false;
        for (std::string at = file; !at.empty() && !found; at = folder_of(at)) found = rows.contains(at);
        if (!found) missing.insert(folder_of(file));
      }
    }
    for (const std::string& folder : missing) {
      error(folder, 1,
            "no row of tests/CMakeLists.txt has the tests that it concerns: add concerns(" + folder + " ...)");
    }
  }

  void check_torch(const Source& source, const Include& include) {
    if (source.path.starts_with("runner/cmake/")) return;
    if (!kWithTorch.contains(source.layer)) {
      return error(source.path, include.line,
                   source.layer + " is without LibTorch, yet it includes <" + include.target + ">");
    }
    const bool interface = source.path == "runner/engine/engine.h" ||
                           (is_open_to_runner(source.path) && source.path != "components/tensor/tensors.h");
    const bool value = include.target.starts_with("c10/core/Device") || include.target == "c10/core/Stream.h";
    if (interface && !value && source.path.ends_with(".h")) {
      error(source.path, include.line,
            "an interface that others include brings no LibTorch: use runner/core/tensor_fwd.h");
    }
  }

  /// An include is written from the root; a test may name a file beside itself.
  std::string resolve(const Source& source, const std::string& target) const {
    const fs::path beside = fs::path(source.path).parent_path() / target;
    if (!fs::exists(root_ / target) && fs::exists(root_ / beside)) return beside.lexically_normal().generic_string();
    return target;
  }

  void check_alive(const Source& source) {
    if (source.path.ends_with("_pch.h")) return;
    if (is_included(source.path) && source.layer != "include" && !used_.contains(source.path)) {
      error(source.path, 1, "no file includes this header");
    }
    if (!source.path.ends_with(".cpp")) return;
    const std::string folder = source.path.substr(0, source.path.rfind('/'));
    if (source.layer != "tests" && !layer_arrows().contains(source.layer)) {
      error(source.path, 1, "belongs to no target: " + folder + " is no layer");
    }
    if (folder == "tests") error(source.path, 1, "belongs to no target: tests mirror the tree, in folders");
  }

  void check_same(const fs::path& committed, const fs::path& generated) {
    const std::string name = fs::relative(committed, root_).generic_string();
    if (!fs::exists(committed)) return error(name, 1, "is missing: build the target `reference`");
    if (!fs::exists(generated)) return error(name, 1, "comes from no fragment any more: build the target `reference`");
    const auto a = read_lines(committed), b = read_lines(generated);
    const auto differ = std::mismatch(a.begin(), a.end(), b.begin(), b.end());
    if (differ.first != a.end() || differ.second != b.end()) {
      error(name, static_cast<int>(differ.first - a.begin()) + 1, "is out of date: build the target `reference`");
    }
  }

  void check_reference() {
    Names pages;
    for (const fs::path& folder : {generated_ / "reference", root_ / "schemas" / "reference"}) {
      if (!fs::exists(folder)) continue;
      for (const auto& entry : fs::directory_iterator(folder)) pages.insert(entry.path().filename().string());
    }
    for (const std::string& page : pages) {
      check_same(root_ / "schemas" / "reference" / page, generated_ / "reference" / page);
    }
    for (const char* file : {"recipe.schema.json", "hashed_keys.json"})
      check_same(root_ / "schemas" / file, generated_ / "schemas" / file);
  }

  fs::path root_, generated_;
  std::vector<Source> sources_;
  bool whole_tree_;
  Names used_, used_arrows_;
  std::map<std::string, std::map<std::string, std::string>> folders_;
  int errors_ = 0;
};

}  // namespace

int main(int argc, char** argv) {
  fs::path root = ".", generated;
  bool whole_tree = false;
  for (int i = 1; i < argc; ++i) {
    const std::string_view option = argv[i];
    if (option == "--whole-tree") whole_tree = true;
    if (option == "--root" && i + 1 < argc) root = argv[++i];
    if (option == "--generated" && i + 1 < argc) generated = argv[++i];
  }
  return Tidy(fs::canonical(root), generated, whole_tree).run();
}
