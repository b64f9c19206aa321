/* wick/stream.h: streams, events and captured graphs. Needed by none of the ops: without them a device's work is one
 * queue, in the order of the calls.
 *
 * Work on different streams may run at the same time. The order in which ops use a tensor is kept all the same: an op
 * on one stream waits, on the device, for what another stream queued before it with that tensor. Memory of the
 * caller's (wk_from_pointer) is the exception until an op has used it: order that with events. */
#ifndef WICK_STREAM_H
#define WICK_STREAM_H

#include "core.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct wk_stream wk_stream;
typedef struct wk_event wk_event;
typedef struct wk_graph wk_graph;

/* ---- Streams ---- */

/* A new queue of the device; given back with wk_stream_drop. On the CPU ops are done when their call returns, and a
 * stream changes nothing. NULL with an error when the driver has none. */
WK_API wk_stream *wk_stream_new(wk_device *device);
/* One over a hipStream_t or CUstream of the caller's, which must outlive it. handle is not NULL. */
WK_API wk_stream *wk_stream_from_handle(wk_device *device, void *handle);
/* Waits for its work and gives it back; it must not be pushed on any thread. NULL is fine. */
WK_API void wk_stream_drop(wk_stream *stream);

/* From here on the calling thread's ops on that device go to this stream, until it is popped. Pushes nest, 16 deep. */
WK_API wk_status wk_stream_push(wk_stream *stream);
WK_API void wk_stream_pop(wk_stream *stream);
/* Waits for its work, and reports what went wrong on the device as wk_sync does. */
WK_API wk_status wk_stream_sync(wk_stream *stream);
/* The driver's own stream (hipStream_t, CUstream) that the thread's ops on the device go to; NULL on the CPU. */
WK_API void *wk_stream_handle(wk_device *device);

/* ---- Events: a place in the work of a stream ---- */

WK_API wk_event *wk_event_new(wk_device *device);
WK_API void wk_event_drop(wk_event *event);
/* Marks the place that the thread's stream of the device has reached. */
WK_API wk_status wk_event_record(wk_event *event);
/* The thread's stream waits, on the device, for the place; the caller does not. */
WK_API wk_status wk_event_wait(wk_event *event);
/* The caller waits. */
WK_API wk_status wk_event_sync(wk_event *event);
/* Milliseconds between two places that work has passed; NaN with an error when it has not. */
WK_API double wk_event_ms(wk_event *from, wk_event *to);

/* ---- Graphs: a sequence of ops recorded once and replayed by one call ----
 *     wk_graph_begin(device);
 *     y = wk_softmax(wk_matmul(a, b), -1);    nothing runs yet
 *     graph = wk_graph_end(device);
 *     wk_copy_into(a, next); wk_graph_launch(graph);   y has the new result
 * Replays use the tensors of the recording: inputs are changed with the _into forms, outputs read after a replay. The
 * graph keeps what it needs until it is dropped. GPUs only: on the CPU these fail with WK_ERR_UNSUPPORTED. */

/* Records the calling thread's ops on the device instead of running them. Copies to and from the host, wk_sync and a
 * second recording on this thread are errors meanwhile. */
WK_API wk_status wk_graph_begin(wk_device *device);
/* Ends it. NULL with an error when something in between failed; nothing is recorded any more either way. */
WK_API wk_graph *wk_graph_end(wk_device *device);
/* Queues the whole sequence on the thread's stream. */
WK_API wk_status wk_graph_launch(wk_graph *graph);
/* Waits for its replays. NULL is fine. */
WK_API void wk_graph_drop(wk_graph *graph);

#ifdef __cplusplus
}
#endif
#endif
