#include "runner/cli/data/tokenize.h"

#include <fcntl.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <exception>
#include <filesystem>
#include <utility>

#include "runner/cli/data/tokenize_state.h"
#include "runner/core/error.h"
#include "runner/core/json.h"
#include "runner/core/platform/files.h"
#include "runner/core/text/text.h"

namespace runner::cli {
namespace {

namespace fs = std::filesystem;
using components::tokenizer::Tokenizer;
using std::chrono::steady_clock;

constexpr std::int64_t kStateBytesMax = std::int64_t{64} << 20;
constexpr std::size_t kBatchBytes = std::size_t{1} << 20;  ///< of text, for each thread

const char* const kForceHint = "add --force to replace it, or name another output";

std::optional<core::Node> read_node(const std::string& path) {
  std::error_code ignored;
  if (!fs::exists(path, ignored)) return std::nullopt;
  const auto text = core::read_file(path, kStateBytesMax);
  if (!text) throw core::RunError(text.failure().message, text.failure().hint);
  auto node = core::parse_json(text.value());
  if (!node || !node.value().is_mapping()) {
    throw core::RunError(path + " is damaged: it is no JSON object", "add --force to tokenize everything again");
  }
  return std::move(node).value();
}

bool is_there(const std::string& path) {
  std::error_code ignored;
  return fs::exists(fs::symlink_status(path, ignored));
}

std::string numbered(const std::string& start, std::size_t number) {
  char digits[32];
  std::snprintf(digits, sizeof digits, "-%05zu", number);
  return start + digits;
}

/// Where a file of tokens is written; links are followed. RunError for what cannot hold one.
std::string file_at(const std::string& path) {
  const core::OutputTarget target = core::output_target(path).value();
  if (!target.is_in_place) return target.path;
  throw core::RunError(path + " is a device, a pipe or an open file, and tokens are written to a file of their own",
                       "name a file", core::kExitUsage);
}

/// Gives a file its name. Without `replaces` nothing may have it.
void take_name(const std::string& from, const std::string& to, bool replaces) {
  if (replaces ? std::rename(from.c_str(), to.c_str()) == 0
               : renameat2(AT_FDCWD, from.c_str(), AT_FDCWD, to.c_str(), RENAME_NOREPLACE) == 0) {
    return;
  }
  const bool cannot_ask = !replaces && (errno == EINVAL || errno == ENOSYS) && !is_there(to);
  if (cannot_ask && std::rename(from.c_str(), to.c_str()) == 0) return;
  const bool is_taken = errno == EEXIST || is_there(to);
  throw core::RunError("cannot rename " + from + " to " + to + ": " + std::strerror(errno),
                       is_taken ? "move " + to + " away, and repeat the command" : "", core::kExitFailed);
}

class Tokenizing {
 public:
  Tokenizing(const TokenizeRequest& request, const Tokenizer& tokenizer)
      : request_(request),
        output_(request.shard_tokens ? request.output : file_at(request.output)),
        tokenizer_(tokenizer),
        settings_(settings_of(request, tokenizer)),
        documents_(request.inputs, request.column, request.skip_bad_records),
        file_(request.layout) {}

  TokenizeResult run(const std::function<void(const TokenizeCounts&, double)>& progress) {
    const OutputLock lock(output_);
    if (request_.force) {
      check_may_replace();
      discard();
      state_.replaces = true;
    } else if (auto complete = find_complete()) {
      return *complete;
    }
    begin();
    if (!state_.is_whole) {
      try {
        encode_all(progress);
      } catch (const core::RunError&) {
        if (documents_saved_ == 0) discard();
        throw;
      }
      complete();
    }
    publish();
    return {state_.counts, resumed_, files(), false, seconds(), documents_.skipped()};
  }

 private:
  double seconds() const { return std::chrono::duration<double>(steady_clock::now() - began_).count(); }
  std::string progress_path() const { return output_ + ".progress"; }
  std::string json_path() const { return output_ + ".json"; }
  /// The files of an output, and what each is until all are whole.
  std::string name_of(std::size_t i, bool in_shards) const { return in_shards ? shard_name(output_, i) : output_; }
  std::string part_of(std::size_t i, bool in_shards) const {
    return in_shards ? numbered(output_ + ".part", i) : output_ + ".part";
  }
  bool in_shards() const { return request_.shard_tokens.has_value(); }
  std::string name_of(std::size_t i) const { return name_of(i, in_shards()); }
  std::string part_of(std::size_t i) const { return part_of(i, in_shards()); }
  std::vector<std::string> files() const {
    std::vector<std::string> names;
    for (std::size_t i = 0; i < state_.shards.size(); ++i) names.push_back(name_of(i));
    return names;
  }
  /// How many files have a name of the output.
  std::size_t shards_there() const {
    std::size_t count = 0;
    while (in_shards() ? is_there(name_of(count)) : count == 0 && is_there(output_)) ++count;
    return count;
  }

  /// The files that a description lists, as large as they were.
  std::vector<std::string> listed_in(const core::Node& about) const {
    const core::Node* settings = about.find("settings");
    if (settings == nullptr || !settings->is_mapping()) return {};
    const core::Node* shard_tokens = settings->find("shard_tokens");
    const core::Node* dtype = settings->find("dtype");
    const core::Node* header = settings->find("header_bytes");
    if (shard_tokens == nullptr || dtype == nullptr || header == nullptr || !header->is_integer()) return {};
    const std::int64_t token_bytes = dtype->is_string() && dtype->as_string() == TokenLayout{2}.dtype() ? 2 : 4;
    const TokenizeState state = read_state(about, json_path());
    std::vector<std::string> names;
    for (std::size_t i = 0; i < state.shards.size(); ++i) {
      std::string name = name_of(i, !shard_tokens->is_null());
      const auto file = state_of(name);
      if (file && file->bytes == header->as_integer() + state.shards[i] * token_bytes) names.push_back(std::move(name));
    }
    return names;
  }

  /// For --force: a file that its own name does not say, and no description lists, is another program's.
  void check_may_replace() const {
    const auto about = read_node(json_path());
    if (about && about->find("settings") == nullptr) refuse_foreign(json_path());
    const std::vector<std::string> listed = about ? listed_in(*about) : std::vector<std::string>{};
    for (std::size_t i = 0; in_shards() && is_there(name_of(i)); ++i) {
      if (std::find(listed.begin(), listed.end(), name_of(i)) == listed.end()) refuse_foreign(name_of(i));
    }
  }

  [[noreturn]] void refuse_foreign(const std::string& path) const {
    throw core::RunError(path + " exists, and is not of an output that " + json_path() + " describes",
                         "move it away, or name another output", core::kExitUsage);
  }

  /// Removes the parts that a file of progress tells of, and it.
  void discard() const {
    const auto left = read_node(progress_path());
    if (!left) return;
    const core::Node* settings = left->find("settings");
    const core::Node* shard_tokens = settings != nullptr ? settings->find("shard_tokens") : nullptr;
    if (shard_tokens == nullptr) refuse_foreign(progress_path());
    std::error_code ignored;
    const bool in_shards = !shard_tokens->is_null();
    for (std::size_t i = 0; is_there(part_of(i, in_shards)); ++i) fs::remove(part_of(i, in_shards), ignored);
    fs::remove(progress_path(), ignored);
  }

  [[noreturn]] void refuse(const std::string& what) const { throw core::RunError(what, kForceHint, core::kExitUsage); }

  /// The result of an earlier call of this request; nothing when there is none. RunError when something else is there.
  std::optional<TokenizeResult> find_complete() {
    if (fs::exists(progress_path())) return std::nullopt;
    const auto about = read_node(json_path());
    if (!about) {
      if (shards_there() > 0) refuse(name_of(0) + " exists");
      return std::nullopt;
    }
    const core::Node* settings = about->find("settings");
    const std::string differs = settings != nullptr ? difference(settings_, *settings) : "settings";
    if (!differs.empty()) refuse(output_ + " exists, and was written with another value of " + differs);
    state_ = read_state(*about, json_path());
    for (std::size_t i = 0; i < request_.inputs.size(); ++i) {
      if (i < state_.inputs.size() && state_of(request_.inputs[i]) == state_.inputs[i]) continue;
      refuse(output_ + " exists, and " + request_.inputs[i] + " has changed since");
    }
    for (std::size_t i = 0; i < state_.shards.size(); ++i) {
      const auto state = state_of(name_of(i));
      if (!state || state->bytes != bytes_of(i)) refuse(name_of(i) + " is not as " + json_path() + " describes it");
    }
    return TokenizeResult{state_.counts, state_.counts, files(), true, 0};
  }

  void begin() {
    began_ = saved_ = steady_clock::now();
    const auto left = read_node(progress_path());
    if (!left) {
      if (is_there(part_of(0))) {
        throw core::RunError(part_of(0) + " exists, and there is no " + progress_path() + " that says what it is",
                             "move it away, or name another output", core::kExitUsage);
      }
      save();  // a part is ours where there is such a file
      try {
        return file_.create(part_of(0));
      } catch (const core::RunError&) {
        std::error_code ignored;
        fs::remove(progress_path(), ignored);
        throw;
      }
    }
    const core::Node* settings = left->find("settings");
    const std::string differs = settings != nullptr ? difference(settings_, *settings) : "settings";
    if (!differs.empty()) {
      throw core::RunError(output_ + ".part is of a call with another value of " + differs,
                           "repeat that call to resume it, or add --force to begin again", core::kExitUsage);
    }
    state_ = read_state(*left, progress_path());
    resumed_ = state_.counts;
    documents_saved_ = resumed_.documents;
    if (state_.is_whole) return;
    if (!state_.replaces && shards_there() > 0) {
      throw core::RunError(name_of(0) + " exists, and was not there when its tokenization began",
                           "move it away to go on, or " + std::string(kForceHint), core::kExitUsage);
    }
    for (std::size_t i = 0; i < state_.place.file && i < request_.inputs.size(); ++i) {
      if (i < state_.inputs.size() && state_of(request_.inputs[i]) == state_.inputs[i]) continue;
      throw core::RunError(request_.inputs[i] + " has changed since it was tokenized",
                           "add --force to tokenize everything again", core::kExitUsage);
    }
    // Parts that were begun after the state was saved are made again.
    std::error_code ignored;
    const std::size_t part = state_.shards.size();
    for (std::size_t i = part + 1; in_shards() && is_there(part_of(i)); ++i) fs::remove(part_of(i), ignored);
    if (state_.tokens_in_part == 0 && !is_there(part_of(part))) {
      file_.create(part_of(part));
    } else {
      file_.resume(part_of(part), state_.tokens_in_part);
    }
    documents_.set_states(state_.inputs);
    documents_.seek(state_.place);
  }

  void encode_all(const std::function<void(const TokenizeCounts&, double)>& progress) {
    while (next_batch()) {
      encode_batch();
      if (failure_ != nullptr) {
        save();
        std::rethrow_exception(failure_);
      }
      if (steady_clock::now() - saved_ >= request_.between_saves) save();
      if (progress) progress(state_.counts, seconds());
    }
  }

  /// Reads some texts; false at the end. What is wrong with the next one is kept until these are written.
  bool next_batch() {
    texts_.clear();
    batch_.clear();
    std::size_t bytes = 0;
    try {
      while (bytes < kBatchBytes * request_.threads && texts_.size() < request_.batch_documents * request_.threads) {
        auto document = documents_.next();
        if (!document) break;
        bytes += document->text.size();
        texts_.push_back(std::move(document->text));
        batch_.push_back(std::move(*document));
      }
    } catch (const core::RunError&) {
      failure_ = std::current_exception();
    }
    return !texts_.empty() || failure_ != nullptr;
  }

  void encode_batch() {
    auto encodings = tokenizer_.encode_batch(texts_, {.add_special_tokens = false}, request_.threads);
    if (!encodings) name_bad_text(encodings.failure());
    for (std::size_t i = 0; i < texts_.size(); ++i) {
      auto& ids = encodings.value()[i].ids;
      const auto eos = tokenizer_.special().eos;
      if (request_.append_eos && (ids.empty() || ids.back() != eos)) ids.push_back(*eos);
      file_.append(ids);
      ++state_.counts.documents;
      state_.counts.tokens += static_cast<std::int64_t>(ids.size());
      state_.counts.bytes += static_cast<std::int64_t>(texts_[i].size());
      if (request_.shard_tokens && file_.tokens() >= *request_.shard_tokens) close_shard();
    }
  }

  [[noreturn]] void name_bad_text(const core::Failure& together) const {
    for (std::size_t i = 0; i < texts_.size(); ++i) {
      const auto alone = tokenizer_.encode(texts_[i], {.add_special_tokens = false});
      if (alone) continue;
      const Document& document = batch_[i];
      throw core::RunError(request_.inputs[document.file] +
                               (document.line > 0 ? ":" + std::to_string(document.line) : "") + ": " +
                               alone.failure().message,
                           alone.failure().hint);
    }
    throw core::RunError(together.message, together.hint);
  }

  void close_shard() {
    end_part();
    file_.create(part_of(state_.shards.size()));
  }

  void end_part() {
    const std::int64_t tokens = file_.tokens();
    file_.finish();
    state_.shards.push_back(tokens);
  }

  void save() {
    if (file_.is_open()) file_.sync();
    state_.place = documents_.place();
    state_.inputs = documents_.states();
    state_.tokens_in_part = file_.tokens();
    write(progress_path(), to_node(state_, settings_));
    saved_ = steady_clock::now();
    documents_saved_ = state_.counts.documents;
  }

  void write(const std::string& path, const core::Node& node) const {
    const auto written = core::write_output(path, core::to_json(node) + "\n");
    if (!written) throw core::RunError(written.failure().message, written.failure().hint);
  }

  /// The state, with what is of use to people.
  core::Node description() const {
    core::Node files = core::Node::mapping();
    for (std::size_t i = 0; i < state_.shards.size(); ++i) {
      files.set(fs::path(name_of(i)).filename().string(), core::Node::integer(state_.shards[i]));
    }
    core::Node node = core::Node::mapping();
    node.set("tokenizer", core::Node::string(tokenizer_.description().path));
    node.set("tokens_of_files", std::move(files));
    const core::Node state = to_node(state_, settings_);
    for (const core::Node::Entry& entry : state.entries()) node.set(entry.key, entry.value);
    return node;
  }

  /// All texts are encoded.
  void complete() {
    if (state_.counts.tokens == 0) {
      discard();
      throw core::RunError("the inputs hold no text", "check --column, and that the files are not empty");
    }
    if (file_.tokens() > 0) {
      end_part();
    } else {
      file_.discard();
    }
    state_.is_whole = true;
    save();
  }

  /// Gives the files their names. A call that was killed here is taken up here: a part that is not there has its name.
  void publish() {
    const auto about = state_.replaces ? read_node(json_path()) : std::nullopt;
    const std::vector<std::string> before = about ? listed_in(*about) : std::vector<std::string>{};
    const std::vector<std::string> names = files();
    for (std::size_t i = 0; i < names.size(); ++i) {
      const std::string name = file_at(names[i]);
      const bool is_listed = std::find(before.begin(), before.end(), names[i]) != before.end();
      if (is_there(part_of(i))) take_name(part_of(i), name, state_.replaces && (!in_shards() || is_listed));
      check_bytes(i);
    }
    std::error_code ignored;
    for (const std::string& old : before) {
      if (std::find(names.begin(), names.end(), old) == names.end()) fs::remove(old, ignored);
    }
    state_.is_whole = state_.replaces = false;  // which are of the work, not of the result
    write(json_path(), description());
    fs::remove(progress_path(), ignored);
  }

  std::int64_t bytes_of(std::size_t shard) const {
    return request_.layout.header_bytes() + state_.shards[shard] * request_.layout.token_bytes;
  }

  /// A file that was there already when its part was gone may be another one.
  void check_bytes(std::size_t shard) const {
    const auto state = state_of(name_of(shard));
    if (!state || state->bytes != bytes_of(shard)) refuse(name_of(shard) + " is not as large as it was written");
  }

  const TokenizeRequest& request_;
  std::string output_;  ///< where the request's leads
  const Tokenizer& tokenizer_;
  core::Node settings_;
  Documents documents_;
  TokenFile file_;
  TokenizeState state_;
  TokenizeCounts resumed_;
  std::int64_t documents_saved_ = 0;
  std::vector<std::string> texts_;
  std::vector<Document> batch_;  // without their texts
  std::exception_ptr failure_;
  steady_clock::time_point began_, saved_;
};

}  // namespace

std::string shard_name(const std::string& output, std::size_t number) {
  const fs::path path(output);
  fs::path name = path;
  name.replace_filename(numbered(path.stem().string(), number) + path.extension().string());
  return name.string();
}

TokenizeResult tokenize(const TokenizeRequest& request, const Tokenizer& tokenizer,
                        const std::function<void(const TokenizeCounts&, double)>& progress) {
  return Tokenizing(request, tokenizer).run(progress);
}

}  // namespace runner::cli
