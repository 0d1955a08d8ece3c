#pragma once

#include <curl/curl.h>

namespace runner::net {

/// The functions of libcurl, loaded on first use: linking it would double the program's start time. It is the machine's
/// own, and so are its certificates.
struct Curl {
  decltype(&curl_easy_init) easy_init;
  decltype(&curl_easy_cleanup) easy_cleanup;
  decltype(&curl_easy_reset) easy_reset;
  decltype(&curl_easy_setopt) easy_setopt;
  decltype(&curl_easy_perform) easy_perform;
  decltype(&curl_easy_getinfo) easy_getinfo;
  decltype(&curl_easy_strerror) easy_strerror;
  decltype(&curl_slist_append) slist_append;
  decltype(&curl_slist_free_all) slist_free_all;
};

/// NoResponse, with the package to install, when missing.
const Curl& curl();

}  // namespace runner::net
