#include "components/data/record/record_cache.h"

#include <sys/stat.h>
#include <xxhash.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>
#include <string_view>
#include <type_traits>
#include <utility>

#include "runner/core/build_info.h"
#include "runner/core/json.h"
#include "runner/core/platform/files.h"
#include "runner/core/platform/machine.h"

namespace components::data {
namespace {

namespace fs = std::filesystem;
using runner::core::Node;

constexpr std::string_view kMagic = "roux records 1\n";
constexpr std::size_t kChecksum = 32;  ///< hexadecimal digits of XXH3 with 128 bits
constexpr std::size_t kReadAtOnce = std::size_t{1} << 20;

/// Keys of a set that say which records are read, or what becomes of their sequences.
constexpr std::array<std::string_view, 11> kBeside = {
    "path",          "exclude",   "split",          "split_by",           "packing",   "tokenizer",
    "on_bad_record", "streaming", "shuffle_buffer", "pad_to_multiple_of", "transforms"};
/// What stands beside a tokenizer and says more of it, or how conversations are written.
constexpr std::array<const char*, 10> kOfTokenizer = {"tokenizer.json",
                                                      "tokenizer_config.json",
                                                      "special_tokens_map.json",
                                                      "generation_config.json",
                                                      "added_tokens.json",
                                                      "vocab.json",
                                                      "merges.txt",
                                                      "tokenizer.model",
                                                      "chat_template.jinja",
                                                      "chat_template.json"};

std::string digits_of(const XXH128_hash_t& hash) {
  char digits[kChecksum + 1];
  std::snprintf(digits, sizeof digits, "%016llx%016llx", static_cast<unsigned long long>(hash.high64),
                static_cast<unsigned long long>(hash.low64));
  return digits;
}

std::string checksum_of(std::string_view text) { return digits_of(XXH3_128bits(text.data(), text.size())); }

/// Of the bytes on the disk; "" when they cannot be read.
std::string checksum_of_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file.is_open()) return "";
  const std::unique_ptr<XXH3_state_t, XXH_errorcode (*)(XXH3_state_t*)> state(XXH3_createState(), XXH3_freeState);
  XXH3_128bits_reset(state.get());
  std::string bytes(kReadAtOnce, '\0');
  while (file) {
    file.read(bytes.data(), static_cast<std::streamsize>(bytes.size()));
    XXH3_128bits_update(state.get(), bytes.data(), static_cast<std::size_t>(file.gcount()));
  }
  return file.bad() ? "" : digits_of(XXH3_128bits_digest(state.get()));
}

/// Numbers and texts, one after the other.
class Writer {
 public:
  explicit Writer(std::string& to) : to_(to) {}

  template <typename T>
  void number(T value) {
    static_assert(std::is_trivially_copyable_v<T>);
    to_.append(reinterpret_cast<const char*>(&value), sizeof value);
  }
  void text(const std::string& text) {
    number(text.size());
    to_ += text;
  }
  void list(const std::vector<std::int32_t>& list) {
    number(list.size());
    to_.append(reinterpret_cast<const char*>(list.data()), list.size() * sizeof(std::int32_t));
  }
  void list(const std::vector<std::string>& list) {
    number(list.size());
    for (const std::string& one : list) text(one);
  }

 private:
  std::string& to_;
};

/// Of what a Writer wrote, which a checksum has found whole.
class Reader {
 public:
  explicit Reader(std::string_view from) : from_(from) {}

  bool ended() const { return from_.empty(); }
  template <typename T>
  void number(T& value) {
    std::memcpy(&value, take(sizeof value).data(), sizeof value);
  }
  void text(std::string& text) { text = take(size()); }
  void list(std::vector<std::int32_t>& list) {
    list.resize(size());
    const std::string_view bytes = take(list.size() * sizeof(std::int32_t));
    if (!list.empty()) std::memcpy(list.data(), bytes.data(), bytes.size());
  }
  void list(std::vector<std::string>& list) {
    list.resize(size());
    for (std::string& one : list) text(one);
  }

 private:
  std::size_t size() {
    std::size_t size = 0;
    number(size);
    return size;
  }
  std::string_view take(std::size_t bytes) {
    const std::string_view taken = from_.substr(0, bytes);
    from_.remove_prefix(bytes);
    return taken;
  }

  std::string_view from_;
};

/// Both directions list the fields of a record once. A field that is new belongs here.
static_assert(sizeof(Sequence) ==
              7 * sizeof(std::vector<std::int32_t>) + 5 * sizeof(std::size_t) + 5 * sizeof(std::vector<std::string>));
template <typename Visitor, typename Record, typename Failure, typename Flag>
void visit(Visitor& visitor, Record& record, Failure& failure, Flag& failed) {
  visitor.number(record.place.file);
  visitor.number(record.place.number);
  visitor.number(record.place.offset);
  visitor.number(record.place.checksum);
  visitor.number(failed);
  if (failed) {
    visitor.text(failure.message);
    visitor.text(failure.hint);
    visitor.number(failure.exit_code);
  }
  for (auto* list : {&record.sequence.input, &record.sequence.labels, &record.sequence.mask, &record.sequence.types,
                     &record.sequence.decoder, &record.sequence.begins, &record.sequence.offsets}) {
    visitor.list(*list);
  }
  visitor.number(record.sequence.rejected_at);
  visitor.number(record.sequence.desirable);
  visitor.list(record.sequence.given);
  visitor.number(record.sequence.whole);
  visitor.number(record.sequence.whole_decoder);
  visitor.list(record.sequence.odd_roles);
  visitor.list(record.sequence.unread);
  visitor.list(record.sequence.fields.read);
  visitor.list(record.sequence.fields.unread);
  visitor.number(record.sequence.fields.form);
  visitor.number(record.length);
  visitor.number(record.id_max);
  visitor.number(record.type_max);
  visitor.number(record.too_long);
  visitor.number(record.cut);
  visitor.number(record.is_target_too_long);
}

EncodedRecord next_record(Reader& reader) {
  EncodedRecord record;
  runner::core::Failure failure;
  bool failed = false;
  visit(reader, record, failure, failed);
  if (failed) record.failure = std::move(failure);
  return record;
}

/// Size, time of the last change and number of each file; "" when one is gone.
std::string states_of(const std::vector<TextFile>& files) {
  std::string states;
  for (const TextFile& file : files) {
    struct stat status {};
    if (stat(file.path.c_str(), &status) != 0) return "";
    for (const auto number :
         {static_cast<std::int64_t>(status.st_size), static_cast<std::int64_t>(status.st_mtim.tv_sec),
          static_cast<std::int64_t>(status.st_mtim.tv_nsec), static_cast<std::int64_t>(status.st_ino)}) {
      states += std::to_string(number) + ' ';
    }
  }
  return states;
}

bool is_off() {
  const char* value = std::getenv("ROUX_RECORD_CACHE");
  return value != nullptr && std::string_view(value) == "0";
}

std::string folder() { return runner::core::cache_dir() + "/records"; }

}  // namespace

std::string encoding_settings(const Node& block, const tokenizer::Tokenizer& tokenizer) {
  Node settings = Node::mapping();
  for (const Node::Entry& entry : block.entries()) {
    if (std::find(kBeside.begin(), kBeside.end(), entry.key) == kBeside.end()) settings.set(entry.key, entry.value);
  }
  std::string text = to_json(settings, -1) + '\n';
  const auto& special = tokenizer.special();
  for (const auto& id : {special.bos, special.eos, special.pad, special.unk})
    text += std::to_string(id.value_or(-1)) + ' ';
  text += tokenizer.settings().add_special_tokens ? "with" : "without";
  text += tokenizer.settings().truncation_side == tokenizer::Side::kLeft ? " left\n" : " right\n";
  const fs::path file = tokenizer.description().path;
  std::vector<fs::path> files = {file};
  for (const char* name : kOfTokenizer) files.push_back(file.parent_path() / name);
  for (const fs::path& one : files) {
    std::error_code missing;
    if (!fs::is_regular_file(one, missing)) continue;
    const std::string checksum = checksum_of_file(one.string());
    if (checksum.empty()) return "";
    text += one.filename().string() + ' ' + checksum + '\n';
  }
  return text;
}

RecordCache::RecordCache(const RecordEncoder& encoder, std::int64_t begin, std::int64_t end, std::int64_t bytes)
    : encoder_(encoder), wanted_(end - begin) {
  const RecordSetOptions& options = encoder.options();
  if (options.settings.empty() || bytes < kWorthBytes || is_off()) return;
  states_ = states_of(options.files);
  std::string text = std::string(runner::core::source_hash()) + '\n' + options.settings + std::to_string(begin) + ' ' +
                     std::to_string(end) + '\n';
  for (const TextFile& file : options.files) {
    const std::string checksum = checksum_of_file(file.path);
    if (checksum.empty()) return;
    // The end of its name decides how it is read, and the messages of a record that is not valid name no file.
    text += checksum + ' ' + fs::path(file.path).extension().string() + '\n';
  }
  for (const std::string& file : options.read_beside) {
    const std::string checksum = checksum_of_file(file);
    if (checksum.empty()) return;
    text += checksum + '\n';
  }
  key_ = checksum_of(text);
}

std::string RecordCache::path() const { return folder() + '/' + key_; }

bool RecordCache::replay(const std::function<void(const EncodedRecord&)>& use) const {
  if (key_.empty()) return false;
  const auto file = runner::core::read_file(path(), kFileMax);
  if (!file) return false;
  std::string_view content = file.value();
  if (!content.starts_with(kMagic) || content.size() < kMagic.size() + kChecksum) return false;
  const std::string_view checksum = content.substr(content.size() - kChecksum);
  content.remove_suffix(kChecksum);
  if (checksum_of(content) != checksum) return false;
  std::error_code ignored;
  fs::last_write_time(path(), fs::file_time_type::clock::now(), ignored);  // it was used
  content.remove_prefix(kMagic.size());
  for (Reader reader(content); !reader.ended();) use(next_record(reader));
  return true;
}

void RecordCache::add(const EncodedRecord& record) {
  if (key_.empty()) return;
  if (content_.empty()) content_ = kMagic;
  Writer writer(content_);
  const runner::core::Failure none, &failure = record.failure ? *record.failure : none;
  const bool failed = record.failure.has_value();
  visit(writer, record, failure, failed);
  ++added_;
  if (static_cast<std::int64_t>(content_.size()) <= kFileMax - static_cast<std::int64_t>(kChecksum)) return;
  key_.clear();
  content_ = {};
}

void RecordCache::store() {
  if (key_.empty() || added_ != wanted_ || content_.empty()) return;
  if (states_.empty() || states_of(encoder_.options().files) != states_) return;
  if (!runner::core::make_folders(folder())) return;
  content_ += checksum_of(content_);
  const auto bytes = static_cast<std::int64_t>(content_.size());
  make_room(bytes);
  std::error_code unknown;
  const fs::space_info space = fs::space(folder(), unknown);
  const bool fits = !unknown && space.available / 4 > content_.size();  // the disk is there for runs
  if (fits) static_cast<void>(runner::core::write_file_atomic(path(), content_));
  content_ = {};
}

/// Removes what was used longest ago, and what a killed process left.
void RecordCache::make_room(std::int64_t bytes) const {
  struct File {
    fs::file_time_type used;
    fs::path path;
    std::int64_t bytes = 0;
  };
  std::vector<File> files;
  std::error_code failed;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder(), failed)) {
    std::error_code gone;
    File file{entry.last_write_time(gone), entry.path(), static_cast<std::int64_t>(entry.file_size(gone))};
    if (!gone) files.push_back(std::move(file));
  }
  std::sort(files.begin(), files.end(), [](const File& a, const File& b) { return a.used < b.used; });
  std::int64_t total = bytes;
  for (const File& file : files) total += file.bytes;
  for (const File& file : files) {
    if (total <= kFolderMax) return;
    std::error_code gone;
    fs::remove(file.path, gone);
    total -= file.bytes;
  }
}

}  // namespace components::data
