#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace runner::artifact {

/// The directory of a zip archive whose entries are stored as they are, as torch.save writes it (zip64, too).
class TorchZip {
 public:
  struct Entry {
    std::string_view name;              ///< whole, with the folder that all of them are in
    std::int64_t begin = 0, bytes = 0;  ///< of the content, in the file
  };

  /// Errors  RunError that names `path` and the entry: cut off, compressed, encrypted, in each other's or the
  ///         directory's place, outside of the file, a name that leaves the archive or appears twice.
  TorchZip(std::string_view file, const std::string& path);

  /// The one `data.pkl` of the archive, with its folder: `archive/data.pkl`. RunError when it has none, or two.
  const Entry& pickle() const;
  /// Null when there is none of that name.
  const Entry* find(std::string_view name) const;

 private:
  struct Directory {
    std::uint64_t count, bytes, begin;
  };
  [[noreturn]] void refuse(const std::string& why) const;
  std::uint64_t number(std::uint64_t at, int bytes, const char* what) const;
  Directory directory() const;
  Entry read_entry(std::uint64_t& at, std::uint64_t end);
  void check_name(std::string_view name) const;
  void check_places();

  struct Place {
    std::uint64_t begin, end;
    std::string_view name;
  };
  std::string_view file_;
  const std::string& path_;
  std::vector<Entry> entries_;  ///< by name
  std::vector<Place> places_;   ///< with each entry's header
  std::uint64_t directory_begin_ = 0;
};

}  // namespace runner::artifact
