#include "runner/hub/bring.h"

#include <algorithm>

namespace runner::hub {

Bringer::Bringer(Client& client, const Name& name, const Cache& cache, const FetchWatch& watch)
    : client_(client), name_(name), cache_(cache), watch_(watch) {}

void Bringer::bring(const std::string& commit, const std::vector<std::string>& files, bool is_told) {
  std::vector<HubFile> downloads;
  std::vector<FetchFile> told;
  std::int64_t missing = 0;
  for (const std::string& file : files) {
    if (cache_.has(commit, file)) continue;
    const FileInfo info = client_.describe(name_, commit, file);
    const std::int64_t present = bytes_present(cache_, info);
    progress_.bytes_total += std::max<std::int64_t>(info.bytes, 0);
    progress_.bytes += present;
    progress_.bytes_before += present;
    missing += std::max<std::int64_t>(info.bytes - present, 0);
    downloads.emplace_back(client_, name_, commit, file, info);
    told.push_back({file, info.bytes});
  }
  if (is_told && watch_.begins && !told.empty()) watch_.begins(told);
  check_space(cache_, name_.text(), missing);
  for (HubFile& next : downloads) bring_file(next);
}

void Bringer::bring_file(HubFile& next) {
  progress_.file = next.name();
  const std::int64_t others = progress_.bytes - bytes_present(cache_, next.info());
  download(next, cache_,
           {.wait = watch_.wait,
            .at =
                [&](std::int64_t bytes) {
                  progress_.bytes = others + bytes;
                  if (watch_.progress) watch_.progress(progress_);
                },
            .notes = watch_.notes});
  cache_.link(next.commit(), next.name(), next.info().etag);
}

HubError not_whole(const Name& name, const Cache& cache) {
  return {name.text() + " is not whole in the cache " + cache.folder() + ", and HF_HUB_OFFLINE is set",
          "unset HF_HUB_OFFLINE, or copy the cache of a machine that has it"};
}

}  // namespace runner::hub
