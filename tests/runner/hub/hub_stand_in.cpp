#include "tests/runner/hub/hub_stand_in.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "runner/net/digest.h"

namespace hub_tests {
namespace {

using tests::HttpReply;
using tests::HttpRequest;

std::string header(const HttpRequest& request, const std::string& name) {
  const auto found = request.headers.find(name);
  return found == request.headers.end() ? "" : found->second;
}

HttpReply refused(int status, const std::string& code) { return {status, "no", {}, {"X-Error-Code: " + code}}; }

}  // namespace

HttpReply part_of(const std::string& content, const std::string& range) {
  if (!range.starts_with("bytes=")) return {200, content};
  const std::size_t begin = std::stoul(range.substr(6));
  const std::size_t dash = range.find('-'), last = content.size() - 1;
  const std::size_t end =
      dash + 1 < range.size() ? std::min<std::size_t>(std::stoul(range.substr(dash + 1)), last) : last;
  if (begin >= content.size()) return {416, "", {}, {"Content-Range: bytes */" + std::to_string(content.size())}};
  HttpReply reply{206, content.substr(begin, end + 1 - begin)};
  reply.headers.push_back("Content-Range: bytes " + std::to_string(begin) + "-" + std::to_string(end) + "/" +
                          std::to_string(content.size()));
  return reply;
}

std::string git_hash(const std::string& content) {
  runner::net::Digest digest(runner::net::Digest::Kind::kSha1);
  digest.add("blob " + std::to_string(content.size()) + std::string(1, '\0') + content);
  return digest.hex();
}

std::size_t HubStandIn::downloads() const {
  std::size_t count = 0;
  for (const Asked& one : asked) {
    const bool is_file = one.of_storage || one.path.find("/resolve/") != std::string::npos;
    count += is_file && one.method == "GET" ? 1 : 0;
  }
  return count;
}

HttpReply HubStandIn::handle(const HttpRequest& request, bool of_storage) {
  const std::lock_guard lock(mutex_);  // two servers
  asked.push_back(
      {request.method, request.path, header(request, "authorization"), header(request, "range"), of_storage});
  const HttpReply usual = answer(request, of_storage);
  const auto other = fault ? fault(asked.back(), usual) : std::nullopt;
  return other.value_or(usual);
}

HttpReply HubStandIn::answer(const HttpRequest& request, bool of_storage) const {
  if (of_storage) {
    for (const auto& [repository, commits] : repositories) {
      for (const auto& [commit, content] : commits) {
        for (const auto& [name, file] : content.files) {
          if ("/" + runner::net::sha256(file.content) == request.path)
            return part_of(file.content, header(request, "range"));
        }
      }
    }
    return {404, "no such object"};
  }
  for (const std::string kind : {"/api/models/", "/api/"}) {
    const auto at = request.path.find("/revision/");
    if (!request.path.starts_with(kind) || at == std::string::npos) continue;
    return list(request.path.substr(kind.size(), at - kind.size()), request.path.substr(at + 10));
  }
  return resolve(request.path.substr(1), request);
}

HttpReply HubStandIn::list(const std::string& repository, const std::string& revision) const {
  const auto known = repositories.find(repository);
  if (known == repositories.end()) return refused(404, "RepoNotFound");
  std::string commit = revision;
  if (const auto named = revisions.find(repository); named != revisions.end() && named->second.contains(revision)) {
    commit = named->second.at(revision);
  }
  if (!known->second.contains(commit)) return refused(404, "RevisionNotFound");
  nlohmann::json siblings = nlohmann::json::array();
  for (const auto& [name, file] : known->second.at(commit).files) siblings.push_back({{"rfilename", name}});
  return {200, nlohmann::json({{"id", repository}, {"sha", commit}, {"siblings", siblings}}).dump()};
}

HttpReply HubStandIn::resolve(const std::string& path, const HttpRequest& request) const {
  const auto at = path.find("/resolve/");
  const auto end = at == std::string::npos ? at : path.find('/', at + 9);
  if (end == std::string::npos) return refused(404, "RepoNotFound");
  const std::string commit = path.substr(at + 9, end - at - 9), name = path.substr(end + 1);
  const auto repository = repositories.find(path.substr(0, at));
  if (repository == repositories.end() || !repository->second.contains(commit)) return refused(404, "RevisionNotFound");
  const auto& files = repository->second.at(commit).files;
  if (!files.contains(name)) return refused(404, "EntryNotFound");
  const File& file = files.at(name);
  HttpReply reply;
  if (file.is_large) {
    const std::string hash = runner::net::sha256(file.content);
    reply = {302, "moved", {}, {"Location: " + storage_url() + "/" + hash}};
    reply.headers.push_back("X-Linked-Etag: \"" + hash + "\"");
    reply.headers.push_back("X-Linked-Size: " + std::to_string(file.content.size()));
  } else {
    reply = part_of(file.content, header(request, "range"));
    reply.headers.push_back("ETag: \"" + git_hash(file.content) + "\"");
  }
  reply.headers.push_back("X-Repo-Commit: " + commit);
  return reply;
}

}  // namespace hub_tests
