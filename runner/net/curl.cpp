#include "runner/net/curl.h"

#include <dlfcn.h>

#include <string>

#include "runner/net/http.h"

namespace runner::net {
namespace {

template <typename Function>
void find(void* library, const char* name, Function& function) {
  function = reinterpret_cast<Function>(dlsym(library, name));
  if (function != nullptr) return;
  throw NoResponse(NoResponse::Cause::kNoLibrary, std::string("libcurl.so.4 has no ") + name, 0, "",
                   "install a newer libcurl");
}

Curl load() {
  void* library = dlopen("libcurl.so.4", RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    throw NoResponse(NoResponse::Cause::kNoLibrary, std::string("cannot load libcurl: ") + dlerror(), 0, "",
                     "install the package libcurl4");
  }
  Curl loaded;
  decltype(&curl_global_init) global_init = nullptr;
  find(library, "curl_global_init", global_init);
  find(library, "curl_easy_init", loaded.easy_init);
  find(library, "curl_easy_cleanup", loaded.easy_cleanup);
  find(library, "curl_easy_reset", loaded.easy_reset);
  find(library, "curl_easy_setopt", loaded.easy_setopt);
  find(library, "curl_easy_perform", loaded.easy_perform);
  find(library, "curl_easy_getinfo", loaded.easy_getinfo);
  find(library, "curl_easy_strerror", loaded.easy_strerror);
  find(library, "curl_slist_append", loaded.slist_append);
  find(library, "curl_slist_free_all", loaded.slist_free_all);
  global_init(CURL_GLOBAL_DEFAULT);
  return loaded;
}

}  // namespace

const Curl& curl() {
  static const Curl loaded = load();
  return loaded;
}

}  // namespace runner::net
