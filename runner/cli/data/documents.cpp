#include "runner/cli/data/documents.h"

#include <sys/stat.h>

#include <utility>

#include "components/tokenizer/tokenizer.h"
#include "runner/core/error.h"
#include "runner/core/packed/packed_file.h"
#include "runner/core/platform/files.h"
#include "runner/core/table/table_file.h"

namespace runner::cli {

std::optional<FileState> state_of(const std::string& path) {
  struct stat status {};
  if (stat(path.c_str(), &status) != 0) return std::nullopt;
  return FileState{status.st_size, std::int64_t{status.st_mtim.tv_sec} * 1'000'000'000 + status.st_mtim.tv_nsec};
}

bool is_document_file(const std::string& path) {
  return path.ends_with(".txt") || core::without_packed_ending(path).ends_with(".jsonl") || core::is_table_path(path);
}

Documents::Documents(const std::vector<std::string>& files, std::string column, bool skips)
    : files_(files), column_(std::move(column)), skips_(skips) {}

std::optional<Document> Documents::next() {
  while (file_ < files_.size()) {
    if (files_[file_].ends_with(".txt")) return whole_file();
    if (source_ == nullptr) open();
    if (auto document = next_line()) return document;
    close();
  }
  return std::nullopt;
}

Documents::Place Documents::place() const { return {file_, line_, checksum_ != nullptr ? checksum_->text() : ""}; }

void Documents::seek(const Place& place) {
  file_ = place.file;
  line_ = 0;
  states_.resize(file_);
  if (place.line == 0) return;
  const auto changed = [this] {
    return core::RunError(files_[file_] + " has changed since a part of it was tokenized",
                          "add --force to tokenize everything again");
  };
  if (file_ >= files_.size()) throw core::RunError("there are fewer inputs than were tokenized before");
  open();
  while (line_ < place.line) {
    const auto bytes = source_->next();
    if (!bytes) throw changed();
    note(*bytes);
  }
  if (checksum_->text() != place.checksum) throw changed();
}

void Documents::open() {
  const auto state = state_of(files_[file_]);
  if (!state) throw core::RunError("cannot read " + files_[file_]);
  states_.push_back(*state);
  source_ = DocumentSource::open(files_[file_], column_);
  checksum_ = std::make_unique<artifact::Checksum>();
  line_ = 0;
}

void Documents::close() {
  source_.reset();
  checksum_.reset();
  line_ = 0;
  ++file_;
}

void Documents::note(std::string_view bytes) {
  checksum_->update(bytes.data(), static_cast<std::int64_t>(bytes.size()));
  checksum_->update("\n", 1);
  line_ = source_->number();
}

std::optional<Document> Documents::next_line() {
  while (const auto bytes = source_->next()) {
    auto text = source_->text();
    if (text && !text->ok()) skip_or_throw(text->failure());
    note(*bytes);
    if (text && text->ok()) return Document{std::move(*text).value(), file_, line_};
  }
  return std::nullopt;
}

Document Documents::whole_file() {
  const auto state = state_of(files_[file_]);
  auto text = core::read_file(files_[file_], static_cast<std::int64_t>(components::tokenizer::Tokenizer::kTextMax));
  if (!text) {
    throw core::RunError(text.failure().message, text.failure().hint.empty()
                                                     ? "cut a longer text into several files, or into lines of JSON"
                                                     : text.failure().hint);
  }
  states_.push_back(state.value_or(FileState{}));
  Document document{std::move(text).value(), file_, 0};
  ++file_;
  return document;
}

void Documents::skip_or_throw(const core::Failure& failure) {
  const std::string what = files_[file_] + ":" + std::to_string(source_->number()) + ": " + failure.message;
  if (!skips_) {
    throw core::RunError(what, failure.hint.empty() ? "--on-bad-record skip leaves such lines out" : failure.hint);
  }
  if (skipped_.lines++ == 0) skipped_.first = what;
}

}  // namespace runner::cli
