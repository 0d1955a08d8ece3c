#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "components/data/data.h"
#include "components/data/field_count.h"
#include "components/data/record/record_options.h"

namespace components::data {

/// What all sets of files of ids or texts have in common: their files, and the tokenizer that shows their ids.
class TokenizedSet : public Dataset, public CountsFields {
 public:
  explicit TokenizedSet(const RecordSetOptions& options);

  /// Those of the records, the tokenizer's, and what is read beside.
  std::vector<std::string> files() const override;
  std::shared_ptr<const tokenizer::Tokenizer> tokenizer() const override { return tokenizer_; }
  std::string decode(std::span<const std::int64_t> ids) const override;
  std::vector<std::int64_t> encode(const std::string& text) const override;

 protected:
  const std::vector<std::string>& paths() const { return paths_; }

 private:
  std::vector<std::string> paths_, read_beside_;
  std::shared_ptr<const tokenizer::Tokenizer> tokenizer_;
};

}  // namespace components::data
