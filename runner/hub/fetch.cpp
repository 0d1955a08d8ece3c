#include "runner/hub/fetch.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "runner/core/error.h"
#include "runner/core/platform/files.h"
#include "runner/core/text/suggest.h"
#include "runner/core/text/utf8.h"
#include "runner/hub/bring.h"

namespace runner::hub {
namespace {

constexpr std::int64_t kIndexBytesMax = 64 << 20;
constexpr std::size_t kFilesShownMax = 5;
constexpr const char* kTokenizerFiles[] = {"tokenizer.json", "vocab.json", "tokenizer.model"};

/// What the cache has of a commit.
class Snapshot {
 public:
  Snapshot(const Cache& cache, std::string commit) : cache_(cache), commit_(std::move(commit)) {}

  bool has(const std::string& file) const { return cache_.has(commit_, file); }

  /// A file; of an index its shards, too.
  bool has_whole(const std::string& file) const {
    if (!has(file)) return false;
    if (!is_index(file)) return true;
    const auto content = core::read_file(cache_.path(commit_, file), kIndexBytesMax);
    const auto shards = content ? shards_of(file, content.value()) : std::nullopt;
    return shards && std::all_of(shards->begin(), shards->end(), [this](const auto& shard) { return has(shard); });
  }

  bool has_tokenizer() const {
    return std::any_of(std::begin(kTokenizerFiles), std::end(kTokenizerFiles),
                       [this](const char* file) { return has(file); });
  }

  /// `strictly`: a tokenizer is here, or known not to be in the repository.
  bool has_part(Part part, bool strictly) const {
    const bool tokenizer = has_tokenizer() || cache_.is_known_absent(commit_, kTokenizerFiles[0]);
    if (part == Part::kTokenizer) return has_tokenizer();
    const bool is_adapter = has("adapter_config.json");
    if ((!has("config.json") && !is_adapter) || (strictly && !tokenizer)) return false;
    if (part == Part::kSettings) return true;
    if (is_adapter && has("adapter_model.safetensors")) return true;
    return has_whole("model.safetensors") || has_whole("model.safetensors.index.json") ||
           has_whole("pytorch_model.bin") || has_whole("pytorch_model.bin.index.json");
  }

 private:
  const Cache& cache_;
  std::string commit_;
};

bool is_here(const Cache& cache, const std::string& commit, const Name& name, Part part, bool strictly) {
  const Snapshot snapshot(cache, commit);
  return name.file.empty() ? snapshot.has_part(part, strictly) : snapshot.has_whole(name.file);
}

std::string listed(const std::vector<std::string>& files) {
  std::string text;
  for (std::size_t i = 0; i < std::min(files.size(), kFilesShownMax); ++i) {
    text += (i == 0 ? "" : ", ") + core::escape_for_terminal(files[i]);
  }
  return files.size() > kFilesShownMax ? text + " and " + std::to_string(files.size() - kFilesShownMax) + " more"
                                       : text;
}

class Fetch {
 public:
  Fetch(const Name& name, Part part, const Settings& settings, const FetchWatch& watch)
      : name_(name), part_(part), settings_(settings), watch_(watch), cache_(settings, name) {}

  Located run() {
    RUNNER_ASSERT(!name_.is_dataset || !name_.file.empty(), "data sets are fetched by fetch_data_set()");
    const auto known = cache_.commit_of(name_.revision);
    const bool usable = known && is_here(cache_, *known, name_, part_, /*strictly=*/false);
    if (usable && (settings_.offline || (is_commit(name_.revision) && is_here(cache_, *known, name_, part_, true)))) {
      return located(*known);
    }
    if (settings_.offline) {
      throw not_whole(name_, cache_);
    }
    Client client(settings_, watch_.wait);
    Listing listing;
    try {
      listing = client.list(name_, usable ? 1 : Client::kAttemptsMax);
    } catch (const HubError& error) {
      if (!usable || !error.is_unreachable()) throw;
      note(std::string(error.what()) + "; using " + name_.text(*known) + " from the cache");
      return located(*known);
    }
    bring(client, listing);
    return located(listing.commit);
  }

 private:
  Located located(const std::string& commit) const {
    const std::string path = name_.file.empty() ? cache_.snapshot(commit) : cache_.path(commit, name_.file);
    return {path, name_.text(commit)};
  }

  void note(const std::string& message) const {
    if (watch_.notes) watch_.notes(message);
  }

  void bring(Client& client, const Listing& listing) {
    const std::vector<std::string> files = wanted(listing);
    Bringer bringer(client, name_, cache_, watch_);
    bringer.bring(listing.commit, files);
    for (const std::string& file : files) {
      if (is_index(file)) bringer.bring(listing.commit, shards(listing, file));
    }
    if (name_.file.empty() && !name_.is_dataset) {
      for (const std::string& file : optional_files(part_)) {
        if (std::find(listing.files.begin(), listing.files.end(), file) != listing.files.end()) continue;
        cache_.set_absent(listing.commit, file);
      }
    }
    cache_.set_commit(name_.revision, listing.commit);
  }

  std::vector<std::string> wanted(const Listing& listing) const {
    const auto& all = listing.files;
    if (!name_.file.empty()) {
      if (std::find(all.begin(), all.end(), name_.file) == all.end()) no_file(listing);
      return part_ == Part::kTokenizer ? beside_tokenizer(name_.file, all) : std::vector<std::string>{name_.file};
    }
    std::vector<std::string> files = files_of(part_, all);
    const auto has = [&files](const std::string& file) {
      return std::find(files.begin(), files.end(), file) != files.end();
    };
    if (part_ == Part::kTokenizer && std::none_of(std::begin(kTokenizerFiles), std::end(kTokenizerFiles), has)) {
      lacks("tokenizer: none of tokenizer.json, vocab.json and tokenizer.model is in it", all);
    }
    if (part_ == Part::kAll && files.size() == files_of(Part::kSettings, all).size()) {
      lacks("weights that roux reads: neither model.safetensors nor pytorch_model.bin, nor an index of one, is in it",
            all);
    }
    return files;
  }

  [[noreturn]] void no_file(const Listing& listing) const {
    Name whole = name_;
    whole.file.clear();
    const std::string near = core::closest(name_.file, listing.files);
    throw HubError::wrong_name(whole.text(name_.revision) + " has no file " + core::quote(name_.file),
                               near.empty()
                                   ? "its files: " + listed(listing.files)
                                   : "did you mean " + core::quote(near) + "? its files: " + listed(listing.files));
  }

  [[noreturn]] void lacks(const std::string& what, const std::vector<std::string>& files) const {
    throw HubError::wrong_name(name_.text() + " has no " + what, "its files: " + listed(files));
  }

  std::vector<std::string> shards(const Listing& listing, const std::string& index) const {
    const auto content = core::read_file(cache_.path(listing.commit, index), kIndexBytesMax);
    const auto found = shards_of(index, content.value());
    Name file = name_;
    file.file = index;
    if (!found) {
      throw HubError(file.text(listing.commit) + " is not an index of weights: weight_map must name files beside it",
                     "name the file of the weights: hf://" + name_.repository() + "/FILE");
    }
    for (const std::string& shard : *found) {
      if (std::find(listing.files.begin(), listing.files.end(), shard) != listing.files.end()) continue;
      throw HubError(file.text(listing.commit) + " names " + core::quote(shard) + ", which the repository lacks",
                     "tell the owner of the repository, or name another revision");
    }
    return *found;
  }

  const Name& name_;
  Part part_;
  const Settings& settings_;
  const FetchWatch& watch_;
  Cache cache_;
};

}  // namespace

Located fetch(const Name& name, Part part, const Settings& settings, const FetchWatch& watch) {
  return Fetch(name, part, settings, watch).run();
}

bool is_fetched(const Name& name, Part part, const Settings& settings) {
  const Cache cache(settings, name);
  const auto commit = cache.commit_of(name.revision);
  return commit && is_here(cache, *commit, name, part, /*strictly=*/false);
}

}  // namespace runner::hub
