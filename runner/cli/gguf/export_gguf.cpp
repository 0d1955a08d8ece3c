#include "runner/cli/gguf/export_gguf.h"

#include <cstdio>
#include <optional>

#include "runner/cli/export_checkpoint.h"
#include "runner/core/error.h"
#include "runner/core/text/utf8.h"
#include "runner/core/units.h"
#include "runner/gguf/write_model.h"
#include "runner/pretrained/config.h"
#include "runner/pretrained/write/folder_content.h"

namespace runner::cli {
namespace {

using core::RunError;

gguf::WrittenFile write_gguf(const ExportGguf& request, const std::string& runs_dir, std::string& model) {
  const gguf::FileType& type = *gguf::find_file_type(request.type);
  if (pretrained::config_of_folder(request.source).empty()) {
    std::optional<gguf::WrittenFile> done;
    const auto write = [&](const pretrained::ModelContent& content) {
      model = content.type.name;
      done = gguf::write_model(
                 {content.tensors, content.config, content.type, content.tokenizer, request.file, type, request.force})
                 .value();
    };
    export_checkpoint({.name = request.source,
                       .runs_dir = runs_dir,
                       .folder = request.file,
                       .shard_bytes_max = 0,
                       .merge = request.merge,
                       .adapter = request.adapters.empty() ? "" : request.adapters.front(),
                       .write = write});
    return *std::move(done);
  }
  if (!request.adapters.empty()) {
    throw RunError("--adapter is merged into a folder, and a GGUF file is made of one",
                   "`roux merge-adapter ADAPTER DIR` writes the folder; export that", core::kExitUsage);
  }
  const pretrained::FolderContent folder(request.source);
  model = folder.type().name;
  return gguf::write_model(
             {folder.tensors(), folder.config(), folder.type(), request.source, request.file, type, request.force})
      .value();
}

}  // namespace

void export_gguf(const ExportGguf& request, Session& session) {
  if (request.adapters.size() > 1) {
    return session.fail("--adapter was given " + std::to_string(request.adapters.size()) + " times, and one is merged",
                        "`roux merge-adapter` adds several to a folder; export that");
  }
  std::string model;
  const auto done = core::attempt([&] { return write_gguf(request, session.runs_dir(), model); });
  if (!done) return session.fail(done.failure().message, done.failure().hint, done.failure().exit_code);
  std::printf("exported a %s to %s: %lld tensors as %s, %s\n", model.c_str(),
              core::escape_for_terminal(request.file).c_str(), static_cast<long long>(done.value().tensors),
              request.type.c_str(), core::format_bytes(done.value().bytes).c_str());
  for (const std::string& note : done.value().notes)
    std::printf("  note: %s\n", core::escape_for_terminal(note).c_str());
}

}  // namespace runner::cli
