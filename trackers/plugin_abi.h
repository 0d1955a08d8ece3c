/* What a shared object exports to be a tracker of roux: `trackers: [{type: plugin, path: ./libmine.so}]`. Plain C, so
 * that the author's compiler and language do not matter. Nothing here needs linking against roux.
 *
 * Every call comes from one thread of a process that serves this tracker alone: it may block, print, fail and crash
 * without harm to the training. What a call is given is valid until it returns; texts are UTF-8 and end with a zero.
 * What was given after the last `flush` that returned ROUX_TAKEN comes once more after a failure or a new start.
 */
#ifndef ROUX_TRACKERS_PLUGIN_ABI_H
#define ROUX_TRACKERS_PLUGIN_ABI_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define ROUX_TRACKER_ABI 1

/* What a call answers. */
enum {
  ROUX_TAKEN = 0,
  ROUX_TRY_AGAIN = 1, /* later, with the same: the tool is down, slow or full */
  ROUX_PAUSE = 2,     /* pause until the user acts */
  ROUX_LEAVE_OUT = 3  /* not this; the next may fit */
};

typedef struct roux_point {
  const char* name;
  int64_t step;
  int64_t time_ms; /* since the epoch, UTC */
  double value;    /* may be NaN or infinite */
} roux_point;

/* `self` is the first argument of every call. A call that is NULL is skipped, with its data. */
typedef struct roux_tracker {
  int32_t abi; /* ROUX_TRACKER_ABI of the header that this was compiled with */
  void* self;
  /* `run`: a JSON object with id, name, project, dir, created_ms, tags, command_line and resumed. `state`: what state()
   * gave at the last flush, NULL the first time; a tool that keeps files removes what it wrote after that. */
  int (*start)(void* self, const char* run, const char* state);
  int (*config)(void* self, const char* recipe); /* after each start; the recipe as JSON, secrets as references */
  int (*rewind)(void* self, int64_t step);       /* discard the data of steps beyond this one */
  int (*log)(void* self, const roux_point* points, size_t count);
  int (*text)(void* self, const char* name, int64_t step, int64_t time_ms, const char* text);
  int (*image)(void* self, const char* name, int64_t step, int64_t time_ms, const char* png_path, const char* caption);
  int (*table)(void* self, const char* name, int64_t step, int64_t time_ms, const char* json); /* columns, data */
  int (*histogram)(void* self, const char* name, int64_t step, int64_t time_ms, double least, double most,
                   const double* counts, size_t bins); /* of equal width */
  int (*artifact)(void* self, const char* name, int64_t step, int64_t time_ms, const char* kind, const char* path);
  int (*flush)(void* self, int durable); /* everything given so far has reached the tool when this returns */
  int (*finish)(void* self, const char* ending, const char* reason); /* finished, failed, stopped or crashed */
  const char* (*state)(void* self);                                  /* a text of its own, valid until the next call */
  const char* (*problem)(void* self);                                /* why the last call was not taken */
  void (*destroy)(void* self);
} roux_tracker;

/* The one function that the shared object exports, by this name. `options`: the tracker's `options` as JSON. The
 * result must live until destroy(); NULL: it could not be opened. */
const roux_tracker* roux_tracker_open(const char* options);

#ifdef __cplusplus
}
#endif

#endif
