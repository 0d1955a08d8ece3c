#include "runner/artifact/foreign/torch_zip.h"

#include <algorithm>

#include "runner/core/error.h"
#include "runner/core/text/utf8.h"

namespace runner::artifact {
namespace {

// Of PKWARE's APPNOTE: 4.3.7 local header, 4.3.12 directory, 4.3.14 to 4.3.16 the ends of it.
constexpr std::uint64_t kLocalSignature = 0x04034b50, kLocalBytes = 30;
constexpr std::uint64_t kCentralSignature = 0x02014b50, kCentralBytes = 46;
constexpr std::string_view kEndSignature = "PK\x05\x06";
constexpr std::uint64_t kEndBytes = 22;
constexpr std::uint64_t kLocatorSignature = 0x07064b50, kLocatorBytes = 20;
constexpr std::uint64_t kEnd64Signature = 0x06064b50, kEnd64Bytes = 56;
constexpr std::uint64_t kCommentBytesMax = 0xFFFF;
constexpr std::uint64_t kIn64 = 0xFFFFFFFF;  // the value is in the zip64 field
constexpr std::uint64_t kField64 = 1;
constexpr std::uint64_t kEncryptedFlag = 1;
constexpr std::uint64_t kEntriesMax = 200'000;
constexpr std::string_view kPickleName = "data.pkl";

}  // namespace

void TorchZip::refuse(const std::string& why) const {
  throw core::RunError(core::escape_for_terminal(path_ + " is not a PyTorch file: " + why));
}

std::uint64_t TorchZip::number(std::uint64_t at, int bytes, const char* what) const {
  if (at > file_.size() || file_.size() - at < static_cast<std::uint64_t>(bytes)) {
    refuse(std::string("its ") + what + " is beyond the end of the file");
  }
  std::uint64_t value = 0;
  for (int i = bytes - 1; i >= 0; --i) {
    value = value << 8 | static_cast<unsigned char>(file_[static_cast<std::size_t>(at) + static_cast<std::size_t>(i)]);
  }
  return value;
}

TorchZip::Directory TorchZip::directory() const {
  constexpr const char* kWhat = "zip directory";
  const std::size_t tail = std::min<std::size_t>(file_.size(), kEndBytes + kCommentBytesMax);
  const std::size_t found = file_.substr(file_.size() - tail).rfind(kEndSignature);
  if (found == std::string_view::npos) refuse("it has no zip directory, as if it were cut off");
  const std::uint64_t end = file_.size() - tail + found;
  // The comment after it ends with the file.
  if (file_.size() - end < kEndBytes || number(end + 20, 2, kWhat) != file_.size() - end - kEndBytes) {
    refuse("its zip directory is not at its end, as if it were cut off");
  }
  Directory directory{number(end + 10, 2, kWhat), number(end + 12, 4, kWhat), number(end + 16, 4, kWhat)};
  std::uint64_t limit = end;
  if (end >= kLocatorBytes && number(end - kLocatorBytes, 4, kWhat) == kLocatorSignature) {
    limit = number(end - kLocatorBytes + 8, 8, kWhat);
    if (limit > end || number(limit, 4, kWhat) != kEnd64Signature || end - limit < kEnd64Bytes) {
      refuse("its zip64 directory is not where it should be");
    }
    directory = {number(limit + 32, 8, kWhat), number(limit + 40, 8, kWhat), number(limit + 48, 8, kWhat)};
  }
  if (directory.begin > limit || directory.bytes > limit - directory.begin) {
    refuse("its zip directory is at " + std::to_string(directory.begin) + " and " + std::to_string(directory.bytes) +
           " bytes long, its end is at " + std::to_string(limit));
  }
  if (directory.count > kEntriesMax) {
    refuse("it has " + std::to_string(directory.count) + " entries, at most " + std::to_string(kEntriesMax) +
           " are allowed");
  }
  return directory;
}

TorchZip::TorchZip(std::string_view file, const std::string& path) : file_(file), path_(path) {
  const Directory directory = this->directory();
  directory_begin_ = directory.begin;
  std::uint64_t at = directory.begin;
  for (std::uint64_t i = 0; i < directory.count; ++i) {
    entries_.push_back(read_entry(at, directory.begin + directory.bytes));
  }
  check_places();
  std::sort(entries_.begin(), entries_.end(), [](const Entry& a, const Entry& b) { return a.name < b.name; });
  const auto twice = std::adjacent_find(entries_.begin(), entries_.end(),
                                        [](const Entry& a, const Entry& b) { return a.name == b.name; });
  if (twice != entries_.end()) refuse("its entry " + std::string(twice->name) + " appears twice");
}

TorchZip::Entry TorchZip::read_entry(std::uint64_t& at, std::uint64_t end) {
  constexpr const char* kWhat = "zip directory";
  if (end - at < kCentralBytes || number(at, 4, kWhat) != kCentralSignature) {
    refuse("its zip directory ends before its last entry");
  }
  const std::uint64_t flags = number(at + 8, 2, kWhat), method = number(at + 10, 2, kWhat);
  std::uint64_t packed = number(at + 20, 4, kWhat), bytes = number(at + 24, 4, kWhat);
  std::uint64_t header = number(at + 42, 4, kWhat);
  const std::uint64_t name_bytes = number(at + 28, 2, kWhat), extra_bytes = number(at + 30, 2, kWhat);
  const std::uint64_t comment_bytes = number(at + 32, 2, kWhat);
  if (end - at - kCentralBytes < name_bytes + extra_bytes + comment_bytes) {
    refuse("its zip directory ends before its last entry");
  }
  const std::string_view name =
      file_.substr(static_cast<std::size_t>(at + kCentralBytes), static_cast<std::size_t>(name_bytes));
  check_name(name);
  const std::string quoted = "its entry " + std::string(name);

  std::uint64_t field = at + kCentralBytes + name_bytes;
  const std::uint64_t fields_end = field + extra_bytes;
  for (std::uint64_t length; fields_end - field >= 4; field += 4 + length) {
    length = number(field + 2, 2, kWhat);
    if (length > fields_end - field - 4) refuse(quoted + " has an extra field that is longer than all of them");
    if (number(field, 2, kWhat) != kField64) continue;
    std::uint64_t value = field + 4;
    for (std::uint64_t* const wide : {&bytes, &packed, &header}) {
      if (*wide != kIn64) continue;
      if (value + 8 > field + 4 + length) refuse(quoted + " lacks a value in its zip64 field");
      *wide = number(value, 8, kWhat);
      value += 8;
    }
  }
  at += kCentralBytes + name_bytes + extra_bytes + comment_bytes;

  if (method != 0) {
    refuse(quoted + " is compressed (method " + std::to_string(method) + "), and torch.save compresses nothing");
  }
  if ((flags & kEncryptedFlag) != 0) refuse(quoted + " is encrypted");
  if (packed != bytes) refuse(quoted + " has two sizes: " + std::to_string(packed) + " and " + std::to_string(bytes));
  if (header > directory_begin_ || directory_begin_ - header < kLocalBytes) {
    refuse(quoted + " begins at " + std::to_string(header) + ", the zip directory at " +
           std::to_string(directory_begin_));
  }
  if (number(header, 4, kWhat) != kLocalSignature) refuse(quoted + " has no header where it should be");
  if (number(header + 8, 2, kWhat) != 0) refuse(quoted + " is compressed by its own header");
  const std::uint64_t local_name_bytes = number(header + 26, 2, kWhat);
  const std::uint64_t begin = header + kLocalBytes + local_name_bytes + number(header + 28, 2, kWhat);
  if (begin > directory_begin_ || bytes > directory_begin_ - begin) {
    refuse(quoted + " is " + std::to_string(bytes) + " bytes long from " + std::to_string(begin) +
           " on, the zip directory begins at " + std::to_string(directory_begin_));
  }
  if (file_.substr(static_cast<std::size_t>(header + kLocalBytes), static_cast<std::size_t>(local_name_bytes)) !=
      name) {
    refuse(quoted + " has another name in its own header");
  }
  places_.push_back({header, begin + bytes, name});
  return {name, static_cast<std::int64_t>(begin), static_cast<std::int64_t>(bytes)};
}

void TorchZip::check_name(std::string_view name) const {
  const auto is_up = [](std::string_view part) { return part == ".."; };
  bool leaves = name.empty() || name.front() == '/' || name.find('\\') != std::string_view::npos ||
                name.find('\0') != std::string_view::npos;
  for (std::size_t begin = 0; begin <= name.size() && !leaves;) {
    const std::size_t end = std::min(name.find('/', begin), name.size());
    leaves = is_up(name.substr(begin, end - begin));
    begin = end + 1;
  }
  if (leaves) refuse("it has an entry named \"" + std::string(name) + "\"");
}

/// Each byte belongs to one entry.
void TorchZip::check_places() {
  std::sort(places_.begin(), places_.end(), [](const Place& a, const Place& b) { return a.begin < b.begin; });
  for (std::size_t i = 1; i < places_.size(); ++i) {
    if (places_[i].begin < places_[i - 1].end) {
      refuse("its entries " + std::string(places_[i - 1].name) + " and " + std::string(places_[i].name) + " overlap");
    }
  }
  places_ = {};
}

const TorchZip::Entry& TorchZip::pickle() const {
  const Entry* found = nullptr;
  for (const Entry& entry : entries_) {
    const std::size_t slash = entry.name.find('/');
    if (slash == std::string_view::npos || entry.name.substr(slash + 1) != kPickleName) continue;
    if (found != nullptr) refuse("it has both " + std::string(found->name) + " and " + std::string(entry.name));
    found = &entry;
  }
  if (found == nullptr) refuse("it is a zip archive without data.pkl");
  return *found;
}

const TorchZip::Entry* TorchZip::find(std::string_view name) const {
  const auto at = std::lower_bound(entries_.begin(), entries_.end(), name,
                                   [](const Entry& entry, std::string_view wanted) { return entry.name < wanted; });
  return at != entries_.end() && at->name == name ? &*at : nullptr;
}

}  // namespace runner::artifact
