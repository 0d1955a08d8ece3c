#pragma once

#include <curl/curl.h>

namespace trackers {

/// The functions of libcurl, which is opened when something is sent for the first time: linked, it and what it needs
/// would double the time in which the program starts. It is the machine's own, so that its certificates are too.
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

/// TrackerError, with the package to install, where there is none.
const Curl& curl();

}  // namespace trackers
