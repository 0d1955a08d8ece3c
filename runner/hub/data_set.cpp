#include "runner/hub/data_set.h"

#include <algorithm>
#include <cstdint>
#include <utility>

#include "runner/core/platform/files.h"
#include "runner/core/text/suggest.h"
#include "runner/core/text/text.h"
#include "runner/core/text/utf8.h"
#include "runner/hub/bring.h"
#include "runner/hub/data_card.h"
#include "runner/hub/data_files.h"

namespace runner::hub {
namespace {

using About = DataError::About;

constexpr const char* kConverted = "refs/convert/parquet";
constexpr std::int64_t kCardBytesMax = 16 << 20;
constexpr std::size_t kNamesShownMax = 20;

/// What a repository holds, asked of the Hub or of the cache. Nothing is what the cache does not know.
class Source {
 public:
  virtual ~Source() = default;
  virtual std::optional<Listing> listing() = 0;
  /// Of the branch with what the Hub converted, without files where there is none.
  virtual std::optional<Listing> converted(const std::string& commit) = 0;
  virtual std::optional<std::string> text(const std::string& commit, const std::string& file) = 0;
};

std::optional<std::string> text_in(const Cache& cache, const std::string& commit, const std::string& file) {
  const auto content = core::read_file(cache.path(commit, file), kCardBytesMax);
  return content ? std::make_optional(content.value()) : std::nullopt;
}

class CacheSource final : public Source {
 public:
  CacheSource(const Cache& cache, const Name& name) : cache_(cache), name_(name) {}

  std::optional<Listing> listing() override { return listing_of(name_.revision); }
  std::optional<Listing> converted(const std::string& commit) override {
    if (cache_.is_known_unconverted(commit)) return Listing{};
    return listing_of(kConverted);
  }
  std::optional<std::string> text(const std::string& commit, const std::string& file) override {
    return text_in(cache_, commit, file);
  }

 private:
  std::optional<Listing> listing_of(const std::string& revision) const {
    const auto commit = cache_.commit_of(revision);
    return commit ? cache_.listing(*commit) : std::nullopt;
  }

  const Cache& cache_;
  const Name& name_;
};

class HubSource final : public Source {
 public:
  HubSource(Client& client, const Cache& cache, const Name& name, Bringer& bringer, Listing listing)
      : client_(client), cache_(cache), name_(name), bringer_(bringer), listing_(std::move(listing)) {}

  std::optional<Listing> listing() override { return listing_; }
  std::optional<Listing> converted(const std::string& commit) override {
    Name branch = name_;
    branch.revision = kConverted;
    try {
      Listing listing = client_.list(branch);
      cache_.keep(listing);
      return listing;
    } catch (const HubError& error) {
      if (error.exit_code() != core::kExitUsage) throw;  // it has no such branch
      cache_.set_unconverted(commit);
      return Listing{};
    }
  }
  std::optional<std::string> text(const std::string& commit, const std::string& file) override {
    bringer_.bring(commit, {file});
    return text_in(cache_, commit, file);
  }

 private:
  Client& client_;
  const Cache& cache_;
  const Name& name_;
  Bringer& bringer_;
  Listing listing_;
};

bool has(const std::vector<std::string>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

std::string named(const std::vector<std::string>& names) {
  return core::joined_first(names, kNamesShownMax, ", ", core::escape_for_terminal);
}

/// `did you mean "train"? its splits: train, test`.
std::string nearest(const std::string& word, const char* what, const std::vector<std::string>& names) {
  const std::string near = core::closest(word, names);
  return (near.empty() ? "" : "did you mean " + core::quote(near) + "? ") + "its " + what + ": " + named(names);
}

std::vector<std::string> split_names(const DataSubset& subset) {
  std::vector<std::string> names;
  for (const DataSplit& split : subset.splits) names.push_back(split.name);
  return names;
}

/// The files that a request means.
struct Choice {
  std::string commit;
  bool is_converted = false;
  std::string subset;
  std::vector<DataSplit> splits;
};

/// Finds them as `load_dataset` does.
class Finder {
 public:
  Finder(const DataRequest& request, Source& source) : request_(request), source_(source), of_(request.name.text()) {}

  /// Nothing when the source does not know. DataError.
  std::optional<Choice> find() {
    const auto listing = source_.listing();
    if (!listing) return std::nullopt;
    const auto card = read_card(*listing);
    if (!card) return std::nullopt;
    const bool may_be_branch = request_.name.revision == kConverted || is_commit(request_.name.revision);
    if (card->empty() && may_be_branch && is_converted(listing->files)) {
      return checked(choose(converted_subsets(listing->files), listing->commit));
    }
    const bool has_script = card->empty() && has(listing->files, request_.name.name + ".py");
    if (has_script && request_.name.revision == "main") {  // files beside it are what it reads
      const auto branch = source_.converted(listing->commit);
      if (!branch) return std::nullopt;
      if (auto choice = choose_converted(*branch)) return choice;
    }
    auto subsets = data_subsets(*card, listing->files);
    if (!subsets) throw DataError(About::kPath, of_ + subsets.failure().message, kNameFiles);
    if (is_readable(subsets.value())) {
      Choice choice = choose(subsets.value(), listing->commit);
      if (is_readable(choice.splits)) return checked(std::move(choice));
    }
    return find_converted(*listing);
  }

 private:
  static constexpr const char* kNameFiles = "name files of it in path: hf://datasets/OWNER/NAME/FILE";

  static bool is_readable(const std::vector<DataSplit>& splits) {
    return std::all_of(splits.begin(), splits.end(),
                       [](const DataSplit& split) { return !types_for(split.kind).empty(); });
  }
  static bool is_readable(const std::vector<DataSubset>& subsets) {
    return std::any_of(subsets.begin(), subsets.end(), [](const DataSubset& subset) {
      return std::any_of(subset.splits.begin(), subset.splits.end(),
                         [](const DataSplit& split) { return !types_for(split.kind).empty(); });
    });
  }

  std::optional<std::vector<CardSubset>> read_card(const Listing& listing) {
    for (const char* file : {kCardSettings, kCard}) {
      if (!has(listing.files, file)) continue;
      const auto text = source_.text(listing.commit, file);
      if (!text) return std::nullopt;
      auto subsets = file == kCard ? subsets_of_card(*text) : subsets_of_settings(*text);
      if (!subsets) {
        throw DataError(About::kPath, "the card " + std::string(file) + " of " + of_ + subsets.failure().message,
                        kNameFiles);
      }
      if (!subsets.value().empty()) return std::move(subsets).value();
    }
    return std::vector<CardSubset>();
  }

  std::optional<Choice> find_converted(const Listing& listing) {
    if (request_.name.revision == "main") {
      const auto branch = source_.converted(listing.commit);
      if (!branch) return std::nullopt;
      if (auto choice = choose_converted(*branch)) return choice;
    }
    Name branch = request_.name;
    branch.revision = kConverted;
    throw DataError(About::kPath, of_ + " has no files that roux reads (JSON, Parquet, Arrow, CSV, text)",
                    listing.files.empty() ? "it has no files at all"
                    : request_.name.revision == "main"
                        ? "the Hub has not converted it either; its files: " + core::joined_first(listing.files, 5)
                        : "write " + branch.text() + " for what the Hub has converted to Parquet");
  }

  /// Nothing where the branch has nothing.
  std::optional<Choice> choose_converted(const Listing& branch) {
    const auto subsets = converted_subsets(branch.files);
    if (subsets.empty()) return std::nullopt;
    Choice choice = choose(subsets, branch.commit);
    choice.is_converted = true;
    return checked(std::move(choice));
  }

  Choice choose(const std::vector<DataSubset>& subsets, const std::string& commit) const {
    const DataSubset& subset = choose_subset(subsets);
    return {.commit = commit, .subset = subset.name, .splits = choose_splits(subset)};
  }

  const DataSubset& choose_subset(const std::vector<DataSubset>& subsets) const {
    std::vector<std::string> names;
    for (const DataSubset& subset : subsets) {
      if (request_.subset.empty() ? subset.is_default : subset.name == request_.subset) return subset;
      names.push_back(subset.name);
    }
    if (request_.subset.empty()) {
      throw DataError(About::kPath,
                      of_ + " has " +
                          core::counted_large(static_cast<std::int64_t>(names.size()), "subset", "subsets") +
                          ", and none is named",
                      "name one as subset; its subsets: " + named(names));
    }
    throw DataError(About::kSubset, of_ + " has no subset " + core::quote(request_.subset),
                    nearest(request_.subset, "subsets", names));
  }

  std::vector<DataSplit> choose_splits(const DataSubset& subset) const {
    const std::string of = subset.name == "default" ? of_ : "the subset " + core::quote(subset.name) + " of " + of_;
    const std::vector<std::string> names = split_names(subset);
    if (request_.split.empty() && request_.usual.empty()) return subset.splits;
    const std::vector<std::string> wanted =
        request_.split.empty() ? request_.usual : std::vector<std::string>{request_.split};
    for (const std::string& name : wanted) {
      const auto split = std::find_if(subset.splits.begin(), subset.splits.end(),
                                      [&name](const DataSplit& one) { return one.name == name; });
      if (split != subset.splits.end()) return {*split};
    }
    if (!request_.split.empty()) {
      throw DataError(About::kSplit, of + " has no split " + core::quote(request_.split),
                      nearest(request_.split, "splits", names));
    }
    throw DataError(About::kPath, of + " has no split " + core::joined(request_.usual, " or "),
                    "name one as split, or a part of one, such as \"" + (names.empty() ? "train" : names.front()) +
                        "[95%:]\"; its splits: " + named(names));
  }

  /// Whether the type reads the files.
  Choice checked(Choice choice) const {
    if (request_.type.empty()) return choice;
    for (const DataSplit& split : choice.splits) {
      const std::string what = "the split " + core::quote(split.name) + " of " + of_;
      if (!reads(request_.type, split.kind)) {
        Name branch = request_.name;
        branch.revision = kConverted;
        const bool may_convert = request_.name.revision == "main" && reads(request_.type, DataKind::kParquet);
        throw DataError(About::kPath,
                        what + " has " + words_of(split.kind) + ", which type " + request_.type + " does not read",
                        "use type: " + core::joined(types_for(split.kind), " or ") +
                            (may_convert ? ", or " + branch.text() + ", what the Hub has converted to Parquet" : ""));
      }
      if (reads_one_file(request_.type) && split.files.size() > 1) {
        Name file = request_.name;
        file.file = split.files.front();
        throw DataError(
            About::kPath,
            what + " has " + std::to_string(split.files.size()) + " files, and type " + request_.type + " reads one",
            "name one of them, such as " + file.text());
      }
    }
    return choice;
  }

  const DataRequest& request_;
  Source& source_;
  std::string of_;
};

DataSet located(const DataRequest& request, const Cache& cache, const Choice& choice) {
  Name name = request.name;
  DataSet set{.name = name.text(choice.commit), .subset = choice.subset};
  for (const DataSplit& split : choice.splits) {
    set.splits.push_back(split.name);
    set.is_partial = set.is_partial || split.is_partial;
    for (const std::string& file : split.files) {
      name.file = file;
      set.files.push_back({cache.path(choice.commit, file), name.text(choice.commit)});
    }
  }
  return set;
}

std::vector<std::string> files_of(const Choice& choice) {
  std::vector<std::string> files;
  for (const DataSplit& split : choice.splits) files.insert(files.end(), split.files.begin(), split.files.end());
  return files;
}

}  // namespace

std::optional<DataSet> locate(const DataRequest& request, const Settings& settings) {
  const Cache cache(settings, request.name);
  CacheSource source(cache, request.name);
  const auto choice = Finder(request, source).find();
  if (!choice) return std::nullopt;
  const std::vector<std::string> files = files_of(*choice);
  const bool is_whole =
      std::all_of(files.begin(), files.end(), [&](const auto& file) { return cache.has(choice->commit, file); });
  return is_whole ? std::make_optional(located(request, cache, *choice)) : std::nullopt;
}

DataSet fetch(const DataRequest& request, const Settings& settings, const FetchWatch& watch) {
  const Name& name = request.name;
  const Cache cache(settings, name);
  std::optional<DataSet> here;
  try {
    here = locate(request, settings);
  } catch (const DataError&) {  // of a branch that may have moved since
    if (settings.offline || is_commit(name.revision)) throw;
  }
  if (here && (settings.offline || is_commit(name.revision))) return *here;
  if (settings.offline) throw not_whole(name, cache);
  Client client(settings, watch.wait);
  Listing listing;
  try {
    listing = client.list(name, here ? 1 : Client::kAttemptsMax);
  } catch (const HubError& error) {
    if (!here || !error.is_unreachable()) throw;
    if (watch.notes) watch.notes(std::string(error.what()) + "; using " + here->name + " from the cache");
    return *here;
  }
  cache.keep(listing);
  Bringer bringer(client, name, cache, watch);
  HubSource source(client, cache, name, bringer, listing);
  const auto choice = Finder(request, source).find();
  RUNNER_ASSERT(choice, "the Hub answers each question, or an error is thrown");
  bringer.bring(choice->commit, files_of(*choice), /*is_told=*/true);
  if (choice->is_converted) cache.set_commit(kConverted, choice->commit);
  cache.set_commit(name.revision, listing.commit);
  return located(request, cache, *choice);
}

}  // namespace runner::hub
