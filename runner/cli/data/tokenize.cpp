#include "runner/cli/data/tokenize.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
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

/// Names of the shards that lie there, complete or not of this call.
std::vector<std::string> shards_there(const std::string& output) {
  std::vector<std::string> names;
  for (std::size_t i = 0; fs::exists(shard_name(output, i)); ++i) names.push_back(shard_name(output, i));
  return names;
}

class Tokenizing {
 public:
  Tokenizing(const TokenizeRequest& request, const Tokenizer& tokenizer)
      : request_(request),
        tokenizer_(tokenizer),
        settings_(settings_of(request, tokenizer)),
        documents_(request.inputs, request.column, request.skip_bad_records),
        file_(request.output + ".part", request.layout) {}

  TokenizeResult run(const std::function<void(const TokenizeCounts&, double)>& progress) {
    const OutputLock lock(request_.output);
    if (request_.force) {
      remove_all();
    } else if (auto complete = find_complete()) {
      return *complete;
    }
    begin();
    try {
      while (next_batch()) {
        encode_batch();
        if (failure_ != nullptr) {
          save();
          std::rethrow_exception(failure_);
        }
        if (steady_clock::now() - saved_ >= request_.between_saves) save();
        if (progress) progress(state_.counts, seconds());
      }
    } catch (const core::RunError&) {
      if (documents_saved_ == 0) remove_all();
      throw;
    }
    finish();
    return {state_.counts, resumed_, files(), false, seconds(), documents_.skipped()};
  }

 private:
  double seconds() const { return std::chrono::duration<double>(steady_clock::now() - began_).count(); }
  std::string progress_path() const { return request_.output + ".progress"; }
  std::string part_path() const { return request_.output + ".part"; }
  std::string json_path() const { return request_.output + ".json"; }
  std::string name_of(std::size_t shard) const {
    return request_.shard_tokens ? shard_name(request_.output, shard) : request_.output;
  }
  std::vector<std::string> files() const {
    std::vector<std::string> names;
    for (std::size_t i = 0; i < state_.shards.size(); ++i) names.push_back(name_of(i));
    return names;
  }

  void remove_all() {
    std::error_code ignored;
    for (const std::string& path : {json_path(), progress_path(), part_path()}) fs::remove(path, ignored);
    if (!request_.shard_tokens) fs::remove(request_.output, ignored);
    if (!request_.shard_tokens) return;
    for (const std::string& path : shards_there(request_.output)) fs::remove(path, ignored);
  }

  [[noreturn]] void refuse(const std::string& what) const { throw core::RunError(what, kForceHint, core::kExitUsage); }

  /// The result of an earlier call of this request; nothing when there is none. RunError when something else is there.
  std::optional<TokenizeResult> find_complete() {
    if (fs::exists(progress_path())) return std::nullopt;
    const auto about = read_node(json_path());
    const auto there = request_.shard_tokens ? shards_there(request_.output) : std::vector<std::string>{};
    const bool has_output = (!request_.shard_tokens && fs::exists(request_.output)) || !there.empty();
    if (!about) {
      if (has_output) refuse((there.empty() ? request_.output : there.front()) + " exists");
      return std::nullopt;
    }
    const core::Node* settings = about->find("settings");
    const std::string differs = settings != nullptr ? difference(settings_, *settings) : "settings";
    if (!differs.empty()) refuse(request_.output + " exists, and was written with another value of " + differs);
    state_ = read_state(*about, json_path());
    for (std::size_t i = 0; i < request_.inputs.size(); ++i) {
      if (i < state_.inputs.size() && state_of(request_.inputs[i]) == state_.inputs[i]) continue;
      refuse(request_.output + " exists, and " + request_.inputs[i] + " has changed since");
    }
    for (std::size_t i = 0; i < state_.shards.size(); ++i) {
      const auto state = state_of(name_of(i));
      const std::int64_t bytes = request_.layout.header_bytes() + state_.shards[i] * request_.layout.token_bytes;
      if (!state || state->bytes != bytes) refuse(name_of(i) + " is not as " + json_path() + " describes it");
    }
    return TokenizeResult{state_.counts, state_.counts, files(), true, 0};
  }

  void begin() {
    began_ = saved_ = steady_clock::now();
    const auto left = read_node(progress_path());
    if (!left) {
      file_.open(0);
      return save();
    }
    const core::Node* settings = left->find("settings");
    const std::string differs = settings != nullptr ? difference(settings_, *settings) : "settings";
    if (!differs.empty()) {
      throw core::RunError(part_path() + " is of a call with another value of " + differs,
                           "repeat that call to resume it, or add --force to begin again", core::kExitUsage);
    }
    state_ = read_state(*left, progress_path());
    for (std::size_t i = 0; i < state_.place.file && i < request_.inputs.size(); ++i) {
      if (i < state_.inputs.size() && state_of(request_.inputs[i]) == state_.inputs[i]) continue;
      throw core::RunError(request_.inputs[i] + " has changed since it was tokenized",
                           "add --force to tokenize everything again", core::kExitUsage);
    }
    // A file may have got its name after the state was saved: it becomes the part again, later ones are made again.
    std::error_code ignored;
    std::size_t shard = state_.shards.size();
    if (!fs::exists(part_path()) || fs::exists(name_of(shard))) fs::rename(name_of(shard), part_path(), ignored);
    for (++shard; request_.shard_tokens && fs::exists(name_of(shard)); ++shard) fs::remove(name_of(shard), ignored);
    file_.open(state_.tokens_in_part);
    documents_.set_states(state_.inputs);
    documents_.seek(state_.place);
    resumed_ = state_.counts;
    documents_saved_ = resumed_.documents;
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
    const std::int64_t tokens = file_.tokens();
    file_.publish(name_of(state_.shards.size()));
    state_.shards.push_back(tokens);
    file_.open(0);
  }

  void save() {
    file_.sync();
    state_.place = documents_.place();
    state_.inputs = documents_.states();
    state_.tokens_in_part = file_.tokens();
    write(progress_path(), to_node(state_, settings_));
    saved_ = steady_clock::now();
    documents_saved_ = state_.counts.documents;
  }

  void write(const std::string& path, const core::Node& node) const {
    const auto written = core::write_file_atomic(path, core::to_json(node) + "\n");
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

  void finish() {
    if (state_.counts.tokens == 0) {
      remove_all();
      throw core::RunError("the inputs hold no text", "check --column, and that the files are not empty");
    }
    save();  // so that a kill from here on loses nothing
    if (file_.tokens() > 0) {
      const std::int64_t tokens = file_.tokens();
      file_.publish(name_of(state_.shards.size()));
      state_.shards.push_back(tokens);
    } else {
      file_.discard();
    }
    state_.tokens_in_part = 0;
    write(json_path(), description());
    std::error_code ignored;
    fs::remove(progress_path(), ignored);
  }

  const TokenizeRequest& request_;
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
  char digits[32];
  std::snprintf(digits, sizeof digits, "-%05zu", number);
  fs::path name = path;
  name.replace_filename(path.stem().string() + digits + path.extension().string());
  return name.string();
}

TokenizeResult tokenize(const TokenizeRequest& request, const Tokenizer& tokenizer,
                        const std::function<void(const TokenizeCounts&, double)>& progress) {
  return Tokenizing(request, tokenizer).run(progress);
}

}  // namespace runner::cli
