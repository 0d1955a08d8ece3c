#pragma once

#include <string>

#include "runner/core/result.h"

namespace runner::hub {

/// What the environment says of the Hub, as to the Python library huggingface_hub, and of files of other servers.
struct Settings {
  std::string cache;           ///< HF_HUB_CACHE, HF_HOME/hub, XDG_CACHE_HOME/huggingface/hub, ~/.cache/huggingface/hub
  std::string endpoint;        ///< HF_ENDPOINT or https://huggingface.co; no slash at its end
  bool offline = false;        ///< HF_HUB_OFFLINE
  std::string web_files = {};  ///< files of other servers: `files` in core::cache_dir()
  std::string listings = {};   ///< what data sets consist of: `listings` in core::cache_dir()

  /// The host for messages, without a password.
  std::string host() const;
};

/// The Failure names the variable that is wrong.
core::Result<Settings> read_settings();

/// HF_TOKEN, or the file HF_TOKEN_PATH or HF_HOME/token, which `hf auth login` writes; "" for none. It is for requests
/// to the endpoint: no message, log or file may hold it.
core::Result<std::string> read_token();

}  // namespace runner::hub
